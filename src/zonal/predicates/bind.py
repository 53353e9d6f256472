"""Bind a predicate to a schema: names to columns, literals to their domains, functions to ranges.

The law: a row for which the predicate is true, in any engine, satisfies the bound one. Where that can't be guaranteed,
the part becomes `Anything`, and files are read.
"""

from collections.abc import Iterator, Sequence
from datetime import tzinfo

import pyarrow as pa

from zonal.errors import ColumnError, PredicateError, quoted, suggestion
from zonal.predicates.bound import All, Anything, Bound, Interval, Nulls, Point, Ranges, Some, intersection, union
from zonal.predicates.calendar import zone_of
from zonal.predicates.comparisons import compare
from zonal.predicates.conversion import Incomparable
from zonal.predicates.domain import Domain, domain_of, locate
from zonal.predicates.expressions import (
    And,
    Call,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Or,
    Parameter,
    Predicate,
    StartsWith,
    Unknown,
    Value,
)
from zonal.predicates.fold import fold
from zonal.predicates.functions import compare_call
from zonal.values.columns import find, leaf_type, leaves

_LOWER = {"postgres", "redshift", "materialize", "risingwave"}
_UPPER = {"snowflake", "oracle", "exasol", "db2"}


def bind(predicate: Predicate, schema: pa.Schema, *, dialect: str | None = None, timezone: str = "UTC") -> Bound:
    """Return the predicate over the schema's columns; unknown columns and unfit literals are a `PredicateError`."""
    return _Binder(schema, dialect, zone_of(timezone)).bind(predicate)


class _Binder:
    def __init__(self, schema: pa.Schema, dialect: str | None, zone: tzinfo) -> None:
        self.schema, self.dialect, self.zone = schema, dialect, zone
        self.names = [*schema.names, *(name for name in leaves(schema) if name not in schema.names)]
        self.resolved: dict[Column, str] = {}

    def bind(self, predicate: Predicate) -> Bound:
        """Bind from the leaves up."""
        return fold(predicate, self.leaf, _joined)

    def leaf(self, node: Predicate) -> Bound:
        if isinstance(node, Constant):
            return All(()) if node.value else Some(())
        if isinstance(node, Unknown):
            return Anything(node.reason, tuple(self.column(column) for column in node.columns))
        if isinstance(node, IsNull):
            return Nulls(self.column(node.column), node.negated)
        assert isinstance(node, Compare | In | StartsWith)  # noqa: S101 - the rest of the union
        column = node.column if isinstance(node, StartsWith) else _column_of(node.term)
        name = self.column(column)
        if not isinstance(node, StartsWith) and any(isinstance(value, Parameter) for value in _values(node)):
            return Anything("its value is a parameter", (name,))
        domain = domain_of(name, self.kind(name), self.zone)
        if domain is None:
            return Anything(f"{name} has type {self.kind(name)}, which has no bounds", (name,))
        try:
            if isinstance(node, StartsWith):
                return _starts_with(domain, node.prefix, node.negated)
            op = node.op if isinstance(node, Compare) else ("<>" if node.negated else "=")
            call = node.term if isinstance(node.term, Call) else None
            return _compare(domain, call, op, _values(node))
        except Incomparable as reason:
            return Anything(str(reason), (name,))

    def kind(self, name: str) -> pa.DataType:
        return leaf_type(self.schema, find(self.schema, name))

    def column(self, column: Column) -> str:
        """Find a column: names in quotes exactly, others in the case that the dialect folds to, then in any case."""
        if column not in self.resolved:
            self.resolved[column] = self._search(column)
        return self.resolved[column]

    def _search(self, column: Column) -> str:
        folded = column.name.casefold()
        same: list[str] = [name for name in self.names if name.casefold() == folded]
        wanted = column.name
        if not column.quoted and self.dialect in _LOWER | _UPPER:
            wanted = wanted.lower() if self.dialect in _LOWER else wanted.upper()
        for name in (wanted, column.name):
            if name in same:
                return name
        if len(same) == 1:
            return same[0]
        if same:
            raise PredicateError(f"Column {quoted(column.name)} is ambiguous: {', '.join(map(quoted, same))}.")
        try:
            find(self.schema, column.name)
        except ColumnError:
            raise PredicateError(
                f"Unknown column {quoted(column.name)}. {suggestion(column.name, self.names)}"
            ) from None
        return column.name


def _column_of(term: Column | Call) -> Column:
    return term.column if isinstance(term, Call) else term


def _values(node: Compare | In) -> tuple[Value, ...]:
    return node.values if isinstance(node, In) else (node.value,)


def _flattened(parts: Sequence[Bound], kind: type[All] | type[Some]) -> Iterator[Bound]:
    for part in parts:
        if isinstance(part, All | Some) and isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def _joined(node: And | Or, parts: list[Bound]) -> Bound:
    return _all(parts) if isinstance(node, And) else _some(parts)


def _all(parts: Sequence[Bound]) -> Bound:
    """Join with AND; ranges of one column become their intersection, so that x >= 1 AND x <= 2 excludes NaN."""
    ranges: dict[str, Ranges] = {}
    flat: list[Bound] = []
    for part in _flattened(parts, All):
        if isinstance(part, Ranges):
            if known := ranges.get(part.column):
                both = intersection(known.intervals, part.intervals)
                ranges[part.column] = Ranges(part.column, both, known.nan and part.nan)
                continue
            ranges[part.column] = part
        flat.append(part)
    whole = [ranges[part.column] if isinstance(part, Ranges) else part for part in flat]
    return whole[0] if len(whole) == 1 else All(tuple(whole))


def _some(parts: Sequence[Bound]) -> Bound:
    """Join with OR; ranges of one column become their union."""
    ranges: dict[str, list[Ranges]] = {}
    others: list[Bound] = []
    for part in _flattened(parts, Some):
        if isinstance(part, Ranges):
            ranges.setdefault(part.column, []).append(part)
        else:
            others.append(part)
    joined = [
        Ranges(column, union(i for part in same for i in part.intervals), any(part.nan for part in same))
        for column, same in ranges.items()
    ]
    whole = (*joined, *others)
    return whole[0] if len(whole) == 1 else Some(whole)


def _starts_with(domain: Domain, prefix: str, negated: bool) -> Bound:
    if domain.family != "bytes" or pa.types.is_fixed_size_binary(domain.kind):
        raise Incomparable("a pattern compared with values that are not text")
    low = locate(domain, prefix)[0]
    assert isinstance(low, bytes)  # noqa: S101 - the domain of bytes
    stem = low.rstrip(b"\xff")
    after = stem[:-1] + bytes([stem[-1] + 1]) if stem else None
    if not negated:
        return Ranges(domain.column, (Interval(low, after, high_open=after is not None),))
    outside = [Interval(None, low, high_open=True), *([] if after is None else [Interval(after, None)])]
    return Ranges(domain.column, union(outside))


def _compare(domain: Domain, call: Call | None, op: str, values: Sequence[Value]) -> Bound:
    """Compare with one literal, or with a list of them: IN is a union, NOT IN an intersection."""
    if not values:  # NOT IN an empty list is true for nulls, too
        return All(()) if op == "<>" else Some(())
    parts = [compare(domain, op, v) if call is None else compare_call(domain, call, op, v) for v in values]
    nan = all(part.nan for part in parts) if op == "<>" else any(part.nan for part in parts)
    if op != "<>":
        return Ranges(domain.column, union(interval for part in parts for interval in part.intervals), nan)
    if len(parts) == 1:
        return parts[0]
    # What NOT IN leaves is what lies between its values: far cheaper than intersecting thousands of complements.
    holes = [_hole(part.intervals) for part in parts]
    return Ranges(domain.column, _between(union(hole for hole in holes if hole is not None)), nan)


def _hole(intervals: Sequence[Interval]) -> Interval | None:
    """Return the gap between the two halves of a `<>`, if it has one."""
    if len(intervals) != 2:
        return None
    before, after = intervals
    if isinstance(before.high, int) and isinstance(after.low, int):
        return Interval(before.high + 1, after.low - 1)
    return Interval(before.high, after.low, not before.high_open, not after.low_open)


def _between(holes: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return everything outside of sorted holes."""
    starts: list[Interval | None] = [None, *holes]
    ends: list[Interval | None] = [*holes, None]
    return union(_outside(before, after) for before, after in zip(starts, ends, strict=True))


def _outside(before: Interval | None, after: Interval | None) -> Interval:
    low: Point = None
    high: Point = None
    low_open = high_open = False
    if before is not None:
        low, low_open = before.high, not before.high_open
        if isinstance(low, int):
            low, low_open = low + 1, False
    if after is not None:
        high, high_open = after.low, not after.low_open
        if isinstance(high, int):
            high, high_open = high - 1, False
    return Interval(low, high, low_open, high_open)
