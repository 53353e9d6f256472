"""Evaluate literals in SQL: numbers, text, dates, intervals, casts of them, and the arithmetic between them.

The guarantee: a value is the one that every engine of the dialect computes. Where engines or their settings differ, or
where a value can't be told without running the query, `Opaque` says why, and the predicate becomes `Unknown`.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp

from zonal.predicates.calendar import MICROS
from zonal.predicates.expressions import Parameter, Value
from zonal.predicates.scalars import (
    DATE,
    FRACTION_DIGITS,
    MYSQL,
    SPARK,
    TRINO,
    TSQL,
    Literal,
    Opaque,
    Session,
    TimeSpan,
    cast,
    day_start,
    finite,
    localize,
    months_added,
    read_spans,
    shift,
    span_of,
    to_date,
    unit_name,
)
from zonal.sql.unusable import describe, is_elsewhere, is_parameter

_MONDAYS = SPARK | TRINO | {"", "postgres", "redshift", "duckdb", "materialize", "risingwave"}
"""Dialects whose weeks begin on Monday, whatever the session's settings."""
_DOUBLE_LITERALS = frozenset({"bigquery", "sqlite", "clickhouse"})
_EXACT_SCIENTIFIC = frozenset({"postgres", "redshift", "materialize", "risingwave", "snowflake", "oracle", "exasol"})
_NAIVE_NOW = MYSQL | TSQL
_DEEPEST = 50


class _Asked(Opaque):
    """The value depends on a parameter, by this name."""

    def __init__(self, name: str) -> None:
        super().__init__("a parameter, whose value isn't known")
        self.name = name


def literal(node: exp.Expr, session: Session) -> Value:
    """Return the value of an expression without columns, None for NULL; `Opaque` where it can't be told.

    What is calculated from a parameter is that parameter, if the session asks for them: its caller chooses both.
    """
    try:
        value = _evaluate(node, session, 0)
    except _Asked as asked:
        if not session.parameters or any(map(_is_of_rows, node.walk(prune=is_parameter))):
            raise
        return Parameter(asked.name)
    if isinstance(value, TimeSpan):
        raise Opaque("an interval compared as such")
    return value


def _is_of_rows(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Query | exp.AggFunc | exp.Window) or is_elsewhere(node)


def _parameter(node: exp.Expr, _session: Session, _depth: int) -> Literal:
    """Tell which parameter it is: the innermost name of `:p`, `@p`, `%(p)s`, `{{ p }}`; none of `?`."""
    if not is_parameter(node):
        raise Opaque(describe(node))
    names = [part for part in node.walk() if isinstance(part, exp.Identifier | exp.Var | exp.Literal)]
    raise _Asked(names[0].name if names else node.this if isinstance(node.this, str) else "")


def plain(node: exp.Expr, *allowed: str) -> None:
    """Raise `Opaque` if a node has options beyond the allowed ones: what isn't known here may change its meaning."""
    extra = [name for name, value in node.args.items() if value and name not in allowed]
    if extra:
        detail = "an argument" if extra[0] in ("this", "expression") else f"the option {extra[0].strip('_')}"
        raise Opaque(f"{describe(node)} with {detail}")


def unit_of(node: exp.Expr | None) -> str:
    """Return the unit of time that a node names."""
    return unit_name(node.name if isinstance(node, exp.Var | exp.Literal) else "")


def trunc_unit(node: exp.Expr, session: Session) -> str:
    """Return the unit that a date_trunc cuts to; weeks only where they begin on Monday in every session."""
    plain(node, "this", "unit", "input_type_preserved")
    unit = unit_of(node.args.get("unit"))
    if unit == "week" and session.dialect not in _MONDAYS:
        raise Opaque("date_trunc to weeks, which begin on a day that depends on the session")
    return unit


def fraction_digits(kind: exp.DataType, session: Session) -> int:
    """Return how many digits of a second a timestamp type keeps, six at most."""
    sizes = type_sizes(kind)
    return min(6, sizes[0] if sizes else FRACTION_DIGITS.get(session.dialect, 6))


def type_sizes(kind: exp.DataType) -> tuple[int, ...]:
    """Return the sizes of a type: (10, 2) of decimal(10, 2)."""
    names = [size.name for size in kind.expressions]
    if not all(name.isdecimal() for name in names):
        raise Opaque(f"a cast to {type_name(kind).lower()}")
    return tuple(int(name) for name in names)


def type_name(kind: exp.DataType) -> str:
    """Return sqlglot's name of a type, such as INT or TIMESTAMPTZ."""
    plain(kind, "this", "expressions", "kind")
    return str(kind.this.name) if isinstance(kind.this, exp.DType) else "type of its own"


def _evaluate(node: exp.Expr, session: Session, depth: int) -> Literal:
    rule = _RULES.get(type(node))
    if rule is None:
        raise Opaque(describe(node))
    if depth > _DEEPEST:
        raise Opaque("an expression that is nested too deeply")
    try:
        return rule(node, session, depth + 1)
    except (ArithmeticError, ValueError):
        raise Opaque("a literal that is out of range") from None


def _text(node: exp.Expr, session: Session, depth: int) -> Literal:
    if isinstance(node, exp.Literal) and not node.is_string:
        return _number(node, session, depth)
    if node.name in session.doubtful:
        raise Opaque("text with an escape that engines read differently")
    return node.name


def _number(node: exp.Expr, session: Session, _depth: int) -> Literal:
    text = node.name
    if re.fullmatch(r"\d{1,38}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"\d*\.?\d*", text, re.ASCII) and any(map(str.isdigit, text)):
        digits = len(text.replace(".", "").lstrip("0"))
        if digits > (15 if session.dialect in _DOUBLE_LITERALS else 38):
            raise Opaque("a number with more digits than every engine keeps")
        return Decimal(text)
    if re.fullmatch(r"\d*\.?\d*e[+-]?\d{1,3}", text, re.ASCII | re.IGNORECASE):
        exact, rounded = Decimal(text), float(text)
        return exact if session.dialect in _EXACT_SCIENTIFIC and exact != Decimal(rounded) else finite(rounded)
    raise Opaque("a number that zonal can't read")


def _named(node: exp.Expr, session: Session, _depth: int) -> Literal:
    """Evaluate a function without parentheses that sqlglot takes for a column."""
    is_bare = isinstance(node.this, exp.Identifier) and not node.this.args.get("quoted") and not node.args.get("table")
    if is_bare and session.dialect in SPARK and node.name.lower() == "localtimestamp":
        return session.now.astimezone(session.zone).replace(tzinfo=None)
    raise Opaque("another column")


def _bytes(node: exp.Expr, session: Session, _depth: int) -> Literal:
    if isinstance(node, exp.HexString) and node.args.get("is_integer") and len(node.name) < 16:
        return int(node.name, 16)
    if isinstance(node, exp.HexString) and session.dialect in SPARK | TRINO | {"snowflake", "sqlite"}:
        return bytes.fromhex(node.name)
    if isinstance(node, exp.ByteString) and node.name.isascii() and "\\" not in node.name:
        if node.args.get("is_bytes"):
            return node.name.encode()
        if session.dialect in ("postgres", "duckdb", "redshift"):  # E'...'
            return node.name
    raise Opaque("a binary literal")


def _negative(node: exp.Expr, session: Session, depth: int) -> Literal:
    value = _evaluate(node.this, session, depth)
    if isinstance(value, int | Decimal | float) and not isinstance(value, bool):
        return value.copy_negate() if isinstance(value, Decimal) else -value
    if isinstance(value, TimeSpan):
        return value * -1
    if value is None:
        return None
    raise Opaque("a minus before something that is no number")


def _arithmetic(node: exp.Expr, session: Session, depth: int) -> Literal:
    left, right = _evaluate(node.this, session, depth), _evaluate(node.expression, session, depth)
    if left is None or right is None:
        return None
    if isinstance(left, TimeSpan) or isinstance(right, TimeSpan) or isinstance(left, date):
        return _move(type(node), left, right, session)
    numbers = [value for value in (left, right) if isinstance(value, int | Decimal) and not isinstance(value, bool)]
    if len(numbers) < 2:
        raise Opaque("arithmetic with something that is no exact number")
    return _calculate(type(node), numbers[0], numbers[1], session)


def _calculate(kind: type[exp.Expr], left: int | Decimal, right: int | Decimal, session: Session) -> Literal:
    """Calculate exactly, or not at all: where a type overflows or rounds, engines differ."""
    if isinstance(left, int) and isinstance(right, int):
        return _whole(kind, left, right)
    if session.dialect in _DOUBLE_LITERALS or kind not in (exp.Add, exp.Sub, exp.Mul):
        raise Opaque("arithmetic that engines round differently")
    parts = [Decimal(left), Decimal(right)]
    if any(len(part.as_tuple().digits) > 13 or part.adjusted() > 12 or part.adjusted() < -6 for part in parts):
        raise Opaque("arithmetic with more digits than every engine keeps")
    one, other = parts
    result = one * other if kind is exp.Mul else one + (other if kind is exp.Add else -other)
    if int(result.as_tuple().exponent) < -12:
        raise Opaque("arithmetic with more digits than every engine keeps")
    return result


def _whole(kind: type[exp.Expr], left: int, right: int) -> int:
    if kind in (exp.Div, exp.Mod, exp.IntDiv):
        if right == 0 or (kind is not exp.Div and (left < 0 or right < 0)):
            raise Opaque("a division that engines do differently")
        if kind is exp.Div and left % right:
            raise Opaque("a division with a remainder, which some engines keep and others drop")
        return left % right if kind is exp.Mod else left // right
    result = left * right if kind is exp.Mul else left + (right if kind is exp.Add else -right)
    # Without ANSI mode, Spark lets integers wrap around; literals below 2^31 are 32-bit integers there.
    bits = 31 if max(abs(left), abs(right)) < 2**31 else 63
    if abs(result) >= 2**bits:
        raise Opaque("arithmetic that overflows in some engines")
    return result


def _move(kind: type[exp.Expr], left: Literal, right: Literal, session: Session) -> Literal:
    """Add or subtract an interval, or a number of days."""
    if kind is exp.Mul:
        factor, span = (right, left) if isinstance(left, TimeSpan) else (left, right)
        if isinstance(factor, int) and isinstance(span, TimeSpan) and not isinstance(factor, bool):
            return span * factor
    if kind is exp.Add and isinstance(left, TimeSpan):
        left, right = right, left
    is_day = isinstance(left, date) and not isinstance(left, datetime)
    if isinstance(right, int) and not isinstance(right, bool) and is_day:
        if session.dialect in MYSQL | TSQL | {"sqlite"}:
            raise Opaque("a number added to a date, which this dialect reads as a number")
        right = TimeSpan(days=right)
    if kind in (exp.Add, exp.Sub) and isinstance(left, date) and isinstance(right, TimeSpan):
        return shift(left, right if kind is exp.Add else right * -1, session)
    raise Opaque("arithmetic with dates or intervals that zonal doesn't follow")


def _interval(node: exp.Expr, session: Session, depth: int) -> Literal:
    plain(node, "this", "unit")
    amount, unit = node.this, node.args.get("unit")
    if unit is None and isinstance(amount, exp.Literal) and amount.is_string:
        return read_spans(amount.name)
    if not isinstance(unit, exp.Var):
        raise Opaque("an interval that zonal doesn't follow")
    return span_of(_count(amount, session, depth), unit_of(unit))


def _count(node: exp.Expr, session: Session, depth: int) -> int:
    """Return a whole number, which intervals may give as text."""
    value = _evaluate(node, session, depth)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", value, re.ASCII):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Opaque("an interval that isn't a whole number of units")
    return value


def _now(node: exp.Expr, session: Session, _depth: int) -> Literal:
    """Evaluate now(), current_date and their kin; a time zone as argument is not followed."""
    local = session.now.astimezone(session.zone).replace(tzinfo=None)
    name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
    if isinstance(node, exp.Anonymous) and (name not in _CLOCKS or node.expressions):
        raise Opaque(describe(node))
    if name in ("currentdate", "today", "curdate", "currentdatetime"):
        plain(node, "" if not isinstance(node, exp.Anonymous) else "this")
        return local if name == "currentdatetime" else local.date()
    if name in ("utctimestamp", "getutcdate") or (node.args.get("sysdate") and session.dialect == "snowflake"):
        return session.now.astimezone(timezone.utc).replace(tzinfo=None)
    if name == "localtimestamp" or node.args.get("sysdate") or session.dialect in _NAIVE_NOW:
        return local
    return session.now.astimezone(timezone.utc)


_CLOCKS = frozenset({"now", "getdate", "today", "curdate", "localtimestamp", "getutcdate", "sysdatetime"})


def _added(node: exp.Expr, session: Session, depth: int) -> Literal:
    """Evaluate date_add, date_sub, dateadd and their kin."""
    plain(node, "this", "expression", "unit", "return_type", "preserve_end_of_month")
    base = _evaluate(node.this, session, depth)
    if isinstance(base, str) and DATE.fullmatch(base):
        base = date.fromisoformat(base)
    if base is None or not isinstance(base, date):
        raise Opaque(describe(node))
    if isinstance(node, exp.TsOrDsAdd) and isinstance(base, datetime):
        if session.dialect not in SPARK:
            raise Opaque("a function that makes dates of timestamps in some engines")
        base = to_date(base, session)
    if isinstance(node, exp.AddMonths):
        return months_added(base, _count(node.expression, session, depth), session)
    if isinstance(node.expression, exp.Interval):
        span = _interval(node.expression, session, depth)
        assert isinstance(span, TimeSpan)  # noqa: S101 - intervals are
    else:
        unit = node.args.get("unit")
        if unit is None and isinstance(base, datetime):
            raise Opaque(f"{describe(node)} without a unit")
        span = span_of(_count(node.expression, session, depth), unit_of(unit) if unit else "day")
    is_less = isinstance(node, exp.DateSub | exp.TimestampSub | exp.DatetimeSub)
    return shift(base, span * -1 if is_less else span, session)


def _truncated(node: exp.Expr, session: Session, depth: int) -> Literal:
    unit, value = trunc_unit(node, session), _evaluate(node.this, session, depth)
    if not isinstance(value, date):
        raise Opaque(describe(node))
    if not isinstance(value, datetime):
        return day_start(value, unit) if unit not in MICROS else datetime.combine(value, time())
    wall = value if value.tzinfo is None else value.astimezone(session.zone).replace(tzinfo=None)
    if unit in MICROS:
        midnight = datetime.combine(wall.date(), time())
        wall = midnight + (wall - midnight) // timedelta(microseconds=MICROS[unit]) * timedelta(
            microseconds=MICROS[unit]
        )
    else:
        wall = datetime.combine(day_start(wall.date(), unit), time())
    return wall if value.tzinfo is None else localize(wall, session.zone)


def _converted(node: exp.Expr, session: Session, depth: int) -> Literal:
    """Evaluate functions that are casts: to_date, date, timestamp, datetime."""
    plain(node, "this", "format", "safe", "with_tz")
    form = node.args.get("format")
    value = _evaluate(node.this, session, depth)
    if form is not None and (form.name.replace("strict", "") != "%Y-%m-%d" or not isinstance(value, str)):
        raise Opaque(f"{describe(node)} with a format")
    if isinstance(node, exp.Timestamp):
        return cast(value, "TIMESTAMPTZ" if node.args.get("with_tz") else "TIMESTAMP", session)
    return cast(value, "TIMESTAMP" if isinstance(node, exp.TsOrDsToDatetime) else "DATE", session)


def _from_parts(node: exp.Expr, session: Session, depth: int) -> Literal:
    plain(node, "year", "month", "day")
    return date(*(_count(node.args[part], session, depth) for part in ("year", "month", "day")))


def _cast(node: exp.Expr, session: Session, depth: int) -> Literal:
    convert = isinstance(node, exp.Convert)
    plain(node, *("this", "expression") if convert else ("this", "to", "safe", "requires_string"))
    kind, inner = (node.this, node.expression) if convert else (node.args["to"], node.this)
    value = _evaluate(inner, session, depth)
    if not isinstance(kind, exp.DataType):
        if isinstance(kind, exp.Interval) and isinstance(value, str) and kind.args.get("unit") is None:
            return read_spans(value)
        raise Opaque("a cast to a type of its own")
    if type_name(kind) == "INTERVAL" and isinstance(value, str):
        return read_spans(value)
    return cast(value, type_name(kind), session, type_sizes(kind), fraction_digits(kind, session))


_Rule: TypeAlias = Callable[[exp.Expr, Session, int], Literal]
_RULES: dict[type[exp.Expr], _Rule] = {
    exp.Literal: _text,
    exp.National: _text,
    exp.RawString: lambda node, *_: node.name,
    exp.Null: lambda *_: None,
    exp.Boolean: lambda node, *_: bool(node.this),
    exp.Paren: lambda node, session, depth: _evaluate(node.this, session, depth),
    exp.Column: _named,
    exp.Neg: _negative,
    exp.Interval: _interval,
    exp.DateFromParts: _from_parts,
    **dict.fromkeys((exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.Struct), _parameter),
    **dict.fromkeys((exp.HexString, exp.ByteString, exp.BitString), _bytes),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv), _arithmetic),
    **dict.fromkeys((exp.Cast, exp.TryCast, exp.Convert), _cast),
    **dict.fromkeys((exp.Date, exp.TsOrDsToDate, exp.StrToDate, exp.DateStrToDate), _converted),
    **dict.fromkeys((exp.Timestamp, exp.TsOrDsToDatetime), _converted),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc, exp.DatetimeTrunc), _truncated),
    **dict.fromkeys((exp.DateAdd, exp.DateSub, exp.TsOrDsAdd, exp.AddMonths), _added),
    **dict.fromkeys((exp.TimestampAdd, exp.TimestampSub, exp.DatetimeAdd, exp.DatetimeSub), _added),
    **dict.fromkeys((exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.Localtimestamp), _now),
    **dict.fromkeys((exp.UtcTimestamp, exp.Systimestamp, exp.Anonymous), _now),
}
