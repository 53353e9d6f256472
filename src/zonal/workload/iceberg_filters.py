"""Predicates from the text of Iceberg's filters in Spark's plans.

The text is SQL but for two things: quotes in literals are not doubled, and dates and times are numbers since 1970.
Which columns hold dates and times follows from Spark's own filters on them, and from numbers that are too large for
the column's type.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone

from zonal.errors import PredicateError
from zonal.predicates.expressions import And, Call, Column, Compare, In, Or, Predicate, Unknown, Value
from zonal.sql.where import parse_where
from zonal.workload.pushed_filters import all_of

_LITERAL = re.compile(r"'(.*?)'(?=,|\)|\Z| AND | OR )", re.DOTALL)
_NAME = re.compile(r"([^\s()',]+)(?= (?:IS |=|<|>|!|IN |NOT IN |LIKE |NOT LIKE ))")
_WORDS = frozenset({"AND", "OR", "NOT"})
_LONGEST = 1_000_000
_INT32, _LATEST_DAY = 2**31, 2_932_896
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def read_iceberg(text: str, *, longs: Collection[str], times: Mapping[str, str]) -> Predicate:
    """Read the filters of an `IcebergScan`, joined by AND.

    `longs` are the columns known to be 64-bit integers, `times` those known to be of type `date` or `timestamp`.

    >>> read_iceberg("id IS NOT NULL, id = 7", longs=(), times={})
    Compare(term=Column(name='id', quoted=True), op='=', value=7)
    """
    if not text or len(text) > _LONGEST:
        return all_of([Unknown("a filter that is too long")] if text else [])
    try:
        predicate = parse_where(_sql(text), dialect="spark")
    except PredicateError:
        return Unknown("a filter of Iceberg's plan that zonal doesn't read")
    return all_of([_with_times(predicate, lambda column, value: _moment(column, value, longs, times))])


def _sql(text: str) -> str:
    """Return the filters as SQL: quotes doubled, names quoted, the list joined with AND."""
    pieces, end = [], 0
    for literal in _LITERAL.finditer(text):
        pieces += [_outside(text[end : literal.start()])]
        pieces += ["'" + literal[1].replace("\\", "\\\\").replace("'", "\\'") + "'"]
        end = literal.end()
    pieces.append(_outside(text[end:]))
    return "".join(_joined(pieces))


def _joined(pieces: Iterable[str]) -> Iterator[str]:
    """Replace the commas between filters by AND; those of IN lists are within parentheses, and stay."""
    depth = 0
    for piece in pieces:
        if piece.startswith("'"):
            yield piece
            continue
        for character in piece:
            depth += (character == "(") - (character == ")")
            yield " AND " if character == "," and depth == 0 else character


def _outside(text: str) -> str:
    return _NAME.sub(lambda name: name[1] if name[1] in _WORDS else _quoted(name[1]), text)


def _quoted(name: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def _with_times(node: Predicate, change: Callable[[Column, Value], Value]) -> Predicate:
    """Replace values, by recursion: the parser limits the depth of Iceberg's filters."""
    if isinstance(node, And):
        return And(tuple(_with_times(part, change) for part in node.parts))
    if isinstance(node, Or):
        return Or(tuple(_with_times(part, change) for part in node.parts))
    if isinstance(node, Compare) and not isinstance(node.term, Call):
        return Compare(node.term, node.op, change(node.term, node.value))
    if isinstance(node, In) and isinstance(node.term, Column):
        column = node.term
        return In(column, tuple(change(column, value) for value in node.values), node.negated)
    return node


def _moment(column: Column, value: Value, longs: Collection[str], times: Mapping[str, str]) -> Value:
    if isinstance(value, bool) or not isinstance(value, int) or column.name in longs:
        return value
    kind = times.get(column.name)
    try:
        if kind == "date" and abs(value) <= _LATEST_DAY:
            return date(1970, 1, 1) + timedelta(days=value)
        if kind == "timestamp" or (kind is None and abs(value) >= _INT32):
            return _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        return value
    return value
