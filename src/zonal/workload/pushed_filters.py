"""Predicates from the text of the filters that Spark pushed into a scan.

Spark prints values without quotes and types. Types come from the scan's read schema, and a value ends where the rest
is a filter again. A comma within a value of an `In` list can't be told from one between two values.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

from zonal.predicates.calendar import parse_moment
from zonal.predicates.expressions import (
    NEGATED,
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Op,
    Or,
    Predicate,
    StartsWith,
    Unknown,
    Value,
)

_OPS: dict[str, Op] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_TEXTS = ("StringStartsWith", "StringEndsWith", "StringContains")
_KNOWN = "|".join((*_OPS, *_TEXTS, "In", "IsNull", "IsNotNull", "And", "Or", "Not", "AlwaysTrue", "AlwaysFalse"))
_HEAD = re.compile(rf"({_KNOWN})\(")
_VALUE_END = re.compile(rf"(?=\)+(?:,\s?(?:{_KNOWN})\(|\Z))")
_LIST_END = re.compile(rf"\](?=\)+(?:,\s?(?:{_KNOWN})\(|\Z))")
_DEEPEST, _LONGEST = 100, 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def read_pushed(text: str, kinds: Mapping[str, str]) -> Predicate:
    """Read Spark's `PushedFilters`, joined by AND; `kinds` are the columns' types in Spark's words.

    >>> read_pushed("[IsNotNull(id), EqualTo(id,7)]", {"id": "bigint"})
    Compare(term=Column(name='id', quoted=True), op='=', value=7)
    """
    text = text.strip()
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if len(inner) > _LONGEST:
        return Unknown("a filter that is too long")
    reader = _Reader(inner, kinds)
    parts: list[Predicate] = []
    try:
        while reader.place < len(inner):
            parts.append(reader.filter(negated=False))
            reader.skip(",")
    except _UnreadableError:
        # The reason may be a value with parentheses, so the filter before is in doubt as well.
        parts = [*parts[:-1], Unknown("a filter of Spark's plan that zonal doesn't read")]
    return all_of(parts)


def all_of(parts: list[Predicate]) -> Predicate:
    """Join with AND, without the IS NOT NULL that Spark adds to every other condition on the column."""
    flat = [part for joined in parts for part in (joined.parts if isinstance(joined, And) else (joined,))]
    named = {_column(part) for part in flat if not isinstance(part, IsNull)}
    kept = [p for p in flat if not (isinstance(p, IsNull) and p.negated and p.column in named) and p != Constant(True)]
    unique = list({repr(part): part for part in kept}.values())
    return Constant(True) if not unique else unique[0] if len(unique) == 1 else And(tuple(unique))


def _column(node: Predicate) -> Column | None:
    if isinstance(node, Compare | In):
        return node.term if isinstance(node.term, Column) else None
    return node.column if isinstance(node, StartsWith) else None


class _UnreadableError(Exception):
    """The text is no known filter."""


class _Reader:
    def __init__(self, text: str, kinds: Mapping[str, str]) -> None:
        self.text, self.kinds, self.place, self.depth = text, kinds, 0, 0

    def skip(self, mark: str) -> None:
        if not self.text.startswith(mark, self.place):
            if self.place >= len(self.text) and mark == ",":
                return
            raise _UnreadableError
        self.place += len(mark)
        while self.text.startswith(" ", self.place):
            self.place += 1

    def filter(self, *, negated: bool) -> Predicate:
        head = _HEAD.match(self.text, self.place)
        self.depth += 1
        if head is None or self.depth > _DEEPEST:
            raise _UnreadableError
        self.place = head.end()
        node = self._body(head[1], negated)
        self.skip(")")
        self.depth -= 1
        return node

    def _body(self, name: str, negated: bool) -> Predicate:
        if name in ("AlwaysTrue", "AlwaysFalse"):
            return Constant((name == "AlwaysTrue") != negated)
        if name == "Not":
            return self.filter(negated=not negated)
        if name in ("And", "Or"):
            left = self.filter(negated=negated)
            self.skip(",")
            both = (left, self.filter(negated=negated))
            return And(both) if (name == "And") != negated else Or(both)
        if name in ("IsNull", "IsNotNull"):
            return IsNull(Column(self._until(")"), quoted=True), (name == "IsNotNull") != negated)
        column = self._until(",")
        self.place += 1
        if name == "In":
            return self._list(column, negated)
        end = _VALUE_END.search(self.text, self.place)
        if end is None:
            raise _UnreadableError
        text, self.place = self.text[self.place : end.start()], end.start()
        return _compared(name, column, text, self.kinds, negated)

    def _list(self, column: str, negated: bool) -> Predicate:
        opening = re.compile(r"\s?\[").match(self.text, self.place)
        if opening is None:
            raise _UnreadableError
        self.place = opening.end()
        end = _LIST_END.search(self.text, self.place)
        if end is None:
            raise _UnreadableError
        texts, self.place = self.text[self.place : end.start()].split(","), end.end()
        values = [_typed(text, column, self.kinds) for text in texts]
        if any(value is None for value in values):
            return Unknown("values that Spark's plan doesn't show", (Column(column, quoted=True),))
        return In(Column(column, quoted=True), tuple(values), negated)

    def _until(self, mark: str) -> str:
        end = self.text.find(mark, self.place)
        if end < 0:
            raise _UnreadableError
        name, self.place = self.text[self.place : end], end
        return _unquoted(name)


def _unquoted(name: str) -> str:
    return ".".join(part.strip("`") for part in name.split(".")) if "`" in name else name


def _compared(name: str, column: str, text: str, kinds: Mapping[str, str], negated: bool) -> Predicate:
    term = Column(column, quoted=True)
    if name == "StringStartsWith":
        return StartsWith(term, text, negated)
    if name in _TEXTS:
        return Unknown("a pattern that begins with anything", (term,))
    value = _typed(text, column, kinds)
    if value is None:
        return Unknown("a value that Spark's plan doesn't show", (term,))
    op = NEGATED[_OPS[name]] if negated else _OPS[name]
    node = Compare(term, op, value)
    return Or((node, IsNull(term))) if negated and name == "EqualNullSafe" else node


def _typed(text: str, column: str, kinds: Mapping[str, str]) -> Value:
    """Return a value of the column's type; where the type isn't known, text, which binding converts."""
    kind = kinds.get(column, "")
    try:
        if kind in ("tinyint", "smallint", "int", "bigint"):
            return int(text)
        if kind in ("float", "double"):
            return float(text)
        if kind.startswith("decimal"):
            return Decimal(text)
        if kind == "boolean":
            return {"true": True, "false": False}.get(text)
        if kind == "date":
            return date.fromisoformat(text)
        if kind.startswith("timestamp"):
            return _moment(text)
    except (ValueError, InvalidOperation, OverflowError):
        return None
    return None if kind == "binary" else text


def _moment(text: str) -> datetime | None:
    parsed = parse_moment(text)
    if parsed is None:
        return None
    moment = _EPOCH + timedelta(microseconds=int(parsed[0]) - (parsed[1] or 0))
    return moment.replace(tzinfo=None) if parsed[1] is None else moment


_ATTRIBUTE = r"((?:[^\s()#,]|\([^()]*\))+)#\d+L?((?:\.\w+)*)"
_PARTITION = re.compile(rf"\(?{_ATTRIBUTE} (<=>|=|<=|>=|<|>) (.*?)\)?", re.DOTALL)
_PARTITION_IN = re.compile(rf"{_ATTRIBUTE} (?:IN \((.*)\)|INSET (.*))", re.DOTALL)
_PARTITION_NULL = re.compile(rf"(isnull|isnotnull)\({_ATTRIBUTE}\)")


def read_partition_filters(text: str) -> Predicate:
    """Read Spark's `PartitionFilters`, expressions whose values are plain text; binding gives them their types.

    >>> read_partition_filters("[isnotnull(day#2), (day#2 >= 2026-01-05)]")
    Compare(term=Column(name='day', quoted=True), op='>=', value='2026-01-05')
    """
    inner = text.strip()[1:-1][:_LONGEST]
    return all_of([_partition_filter(part) for part in _split(inner) if part])


def _partition_filter(text: str) -> Predicate:
    if match := _PARTITION_NULL.fullmatch(text):
        return IsNull(Column(match[2] + match[3], quoted=True), match[1] == "isnotnull")
    if match := _PARTITION_IN.fullmatch(text):
        values = tuple(value.strip() for value in (match[3] or match[4] or "").split(","))
        return In(Column(match[1] + match[2], quoted=True), values)
    match = _PARTITION.fullmatch(text)
    if match and not re.search(r"#\d|\(", match[4]):
        op: Op = "=" if match[3] == "<=>" else match[3]  # type: ignore[assignment]  # the pattern's own
        return Compare(Column(match[1] + match[2], quoted=True), op, match[4])
    names = dict.fromkeys(re.findall(r"([A-Za-z_]\w*)#\d+", text))
    return Unknown("a filter on partitions that zonal doesn't read", tuple(Column(n, quoted=True) for n in names))


def _split(text: str) -> list[str]:
    """Split a list of expressions at its commas, not at those in parentheses."""
    parts, depth, start = [], 0, 0
    for mark in re.finditer(r"[()]|, ", text):
        depth += (mark[0] == "(") - (mark[0] == ")")
        # INSET lists its values without parentheses.
        if mark[0] == ", " and depth <= 0 and not re.match(r"[^\s#]+(?:, |\Z)", text[mark.end() : mark.end() + 200]):
            parts.append(text[start : mark.start()])
            start = mark.end()
    return [*parts, text[start:]]
