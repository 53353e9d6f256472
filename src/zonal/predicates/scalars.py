"""Values of SQL literals, whatever their syntax: dates and times in text, spans of time, casts."""

import re
import struct
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import TypeAlias, TypeVar
from uuid import UUID

from zonal.predicates.calendar import DAY, DAYS, EPOCH, MICROS, MONTHS, parse_moment
from zonal.predicates.expressions import Value

SPARK = frozenset({"spark", "spark2", "databricks", "hive"})
TRINO = frozenset({"trino", "presto", "athena"})
MYSQL = frozenset({"mysql", "singlestore", "doris", "starrocks"})
TSQL = frozenset({"tsql", "fabric"})
FRACTION_DIGITS = dict.fromkeys(TRINO | {"exasol"}, 3) | dict.fromkeys({"mysql", "singlestore", "doris"}, 0)
"""Digits of a second that a TIMESTAMP without a precision keeps, where these are fewer than six."""
_NAIVE = frozenset({"TIMESTAMP", "TIMESTAMPNTZ", "DATETIME", "DATETIME2"})
_AWARE = frozenset({"TIMESTAMPTZ", "TIMESTAMPLTZ"})
_ALIASES = {"mon": "month", "mm": "month", "yyyy": "year", "yy": "year", "dd": "day"}
INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
TEXTS = frozenset({"TEXT", "VARCHAR", "NVARCHAR"})
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d(?P<clock>[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?))?)?", re.ASCII
)
_TIME = re.compile(r"\d\d:\d\d(?::\d\d(?:\.(\d{1,9}))?)?", re.ASCII)
_SPANS = re.compile(r"\s*([+-]?\d{1,9})\s+([a-z]+)", re.ASCII | re.IGNORECASE)


class Opaque(Exception):  # noqa: N818 - not an error: the predicate becomes Unknown
    """The reason why the text doesn't determine a value or a condition."""


@dataclass(frozen=True)
class Session:
    """What a literal's value depends on: the dialect ("" for none), the moment and the session's time zone."""

    dialect: str
    now: datetime
    zone: tzinfo
    doubtful: frozenset[str] = frozenset()
    """Text with escapes that sqlglot and the engines may read differently."""
    parameters: bool = False
    """Whether a parameter of the query is a value, by its name; else it is `Opaque`."""


@dataclass(frozen=True)
class TimeSpan:
    """An interval: months and days have no fixed length, so they are kept apart."""

    months: int = 0
    days: int = 0
    micros: int = 0

    def __mul__(self, factor: int) -> "TimeSpan":
        return TimeSpan(self.months * factor, self.days * factor, self.micros * factor)


Literal: TypeAlias = "Value | TimeSpan"
_Day = TypeVar("_Day", date, datetime)


def read_moment(text: str) -> date | datetime | None:
    """Read an ISO date or timestamp strictly; None for any other text.

    >>> read_moment("2024-01-31")
    datetime.date(2024, 1, 31)
    """
    match = _TIMESTAMP.fullmatch(text)
    parsed = None if match is None else parse_moment(text)
    if match is None or parsed is None:
        return None
    micros, offset = parsed
    if micros.denominator > 1 or abs(offset or 0) >= DAY:
        return None
    try:
        moment = EPOCH + timedelta(microseconds=int(micros) - (offset or 0))
    except OverflowError:
        return None
    if match["clock"] is None:
        return moment.date()
    return moment if offset is None else moment.replace(tzinfo=timezone.utc)


def read_time(text: str) -> time | None:
    """Read an ISO time of day strictly; None for any other text."""
    match = _TIME.fullmatch(text)
    try:
        return None if match is None else _clock(text, match[1])
    except ValueError:
        return None


def _clock(text: str, fraction: str | None) -> time:
    """Read a time of day, with the digits of a second that it ends with."""
    digits = (fraction or "").ljust(9, "0")
    if digits[6:].strip("0") or text.startswith("24"):  # which newer versions of Python take for midnight
        raise ValueError("not a time in microseconds")
    return time.fromisoformat(text.partition(".")[0]).replace(microsecond=int(digits[:6]))


def shift(value: date, span: TimeSpan, session: Session) -> date:
    """Add an interval to a date or timestamp; months clip to the last day, as engines do.

    >>> shift(date(2024, 1, 31), TimeSpan(months=1), Session("", datetime.now(timezone.utc), timezone.utc))
    datetime.date(2024, 2, 29)
    """
    if not isinstance(value, datetime):
        if not span.micros:
            return _by_calendar(value, span)
        return _by_calendar(datetime.combine(value, time()), span) + timedelta(microseconds=span.micros)
    exact = timedelta(microseconds=span.micros)
    if value.tzinfo is None:
        return _by_calendar(value, span) + exact
    moved = localize(_by_calendar(value.astimezone(session.zone).replace(tzinfo=None), span), session.zone)
    if not span.months and moved != value + timedelta(days=span.days):
        raise Opaque("an interval over a change of the clocks, where a day isn't 24 hours")
    return moved + exact


def _by_calendar(value: _Day, span: TimeSpan) -> _Day:
    year, month = divmod(value.year * 12 + value.month - 1 + span.months, 12)
    last = monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 0
    return value.replace(year=year, month=month + 1, day=min(value.day, last)) + timedelta(days=span.days)


def localize(wall: datetime, zone: tzinfo) -> datetime:
    """Return the moment at which a zone's clock shows this time, in UTC; not where it does so twice or never."""
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise Opaque("a time at a change of the clocks")
    return first.astimezone(timezone.utc)


def span_of(count: int, unit: str) -> TimeSpan:
    """Return so many units of time."""
    if unit in MICROS:
        return TimeSpan(micros=count * MICROS[unit])
    return TimeSpan(months=count * MONTHS[unit]) if unit in MONTHS else TimeSpan(days=count * DAYS[unit])


def read_spans(text: str) -> TimeSpan:
    """Read `1 day 2 hours`."""
    spans = [span_of(int(count), unit_name(unit)) for count, unit in _SPANS.findall(text)]
    if not spans or _SPANS.sub("", text).strip():
        raise Opaque("an interval that zonal doesn't follow")
    return TimeSpan(*(sum(getattr(span, part) for span in spans) for part in ("months", "days", "micros")))


def months_added(base: date, months: int, session: Session) -> date:
    """Add months to a date, except from the last day of a month."""
    if isinstance(base, datetime) or base.day == monthrange(base.year, base.month)[1]:
        raise Opaque("add_months from the last day of a month, which engines do differently")
    return shift(base, TimeSpan(months=months), session)


def day_start(day: date, unit: str) -> date:
    """Return the first day of the unit that a day lies in."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "day":
        return day
    return day.replace(month=day.month - (day.month - 1) % MONTHS[unit], day=1)


def cast(value: Literal, kind: str, session: Session, sizes: tuple[int, ...] = (), digits: int = 6) -> Literal:
    """Cast a value, where every engine agrees on the result; `digits` is how finely a timestamp type counts."""
    if value is None:
        return None
    result: Literal = None
    if kind in INTEGERS or kind in ("DOUBLE", "FLOAT", "DECIMAL"):
        result = _to_number(value, kind, sizes)
    elif kind in TEXTS and session.dialect not in TSQL:
        result = _to_text(value, sizes)
    elif kind == "DATE" and not (session.dialect == "oracle" and isinstance(value, datetime)):  # they have a time
        result = to_date(value, session)
    elif kind in _NAIVE | _AWARE:
        has_zone = kind in _AWARE or (kind == "TIMESTAMP" and session.dialect in SPARK)
        step = 10 ** (6 if kind == "DATETIME" and session.dialect in TSQL else 6 - digits)  # DATETIME: 3.33 ms
        moment = _to_timestamp(value, has_zone, session)
        result = None if moment.microsecond % step else moment
    else:
        result = _to_other(value, kind, sizes)
    if result is None:
        raise Opaque(f"a cast to {kind.lower()} that zonal doesn't follow")
    return result


def _to_other(value: Literal, kind: str, sizes: tuple[int, ...]) -> Value:
    if kind == "TIME" and isinstance(value, str) and not sizes:
        return read_time(value)
    if kind == "UUID" and isinstance(value, str) and re.fullmatch(r"[\da-fA-F]{8}(-[\da-fA-F]{4}){4}.{8}", value):
        return UUID(value)
    if kind == "BOOLEAN" and (isinstance(value, bool) or value in (0, 1, "true", "false")):
        return value in (True, 1, "true")
    return None


def _to_number(value: Literal, kind: str, sizes: tuple[int, ...]) -> Value:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,38}(\.\d{1,38})?", value, re.ASCII):
        value = Decimal(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        return None
    if kind == "DOUBLE":
        return finite(float(value))
    if kind == "FLOAT":  # 32 bits in some dialects, 64 in others: only numbers that are the same in both
        narrow: float = struct.unpack("f", struct.pack("f", value))[0]
        return narrow if narrow == value else None
    exact = Decimal(value)
    if kind == "DECIMAL":
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        is_fit = exact == round(exact, scale) and abs(exact) < 10 ** (precision - scale)
        return exact if is_fit and not isinstance(value, float) else None
    is_fit = exact == int(exact) and -(2 ** (INTEGERS[kind] - 1)) <= exact < 2 ** (INTEGERS[kind] - 1)
    return int(exact) if is_fit and not (isinstance(value, float) and abs(value) > 2**53) else None


def _to_text(value: Literal, sizes: tuple[int, ...]) -> str | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return text if isinstance(text, str) and (not sizes or len(text) <= sizes[0]) else None


def to_date(value: Literal, session: Session) -> date:
    """Cast a value to a date; a moment becomes its day in the session's zone."""
    if isinstance(value, str) and DATE.fullmatch(value):
        return date.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(session.zone)).date()
    if isinstance(value, date):
        return value
    raise Opaque("a cast to date that zonal doesn't follow")


def _to_timestamp(value: Literal, has_zone: bool, session: Session) -> datetime:
    if isinstance(value, str):
        value = read_moment(value)
        if isinstance(value, datetime) and value.tzinfo is not None and not has_zone:
            raise Opaque("a time zone in a timestamp without one, which some engines ignore")
    if not isinstance(value, date):
        raise Opaque("a cast to timestamp that zonal doesn't follow")
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    if has_zone:
        return localize(moment, session.zone) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    return moment if moment.tzinfo is None else moment.astimezone(session.zone).replace(tzinfo=None)


def finite(number: float) -> float:
    """Return the number, unless it is infinite or NaN: those are `Opaque`."""
    if number - number != 0:
        raise Opaque("a number that isn't finite")
    return number


def unit_name(text: str) -> str:
    """Return a unit of time in lower case, without its plural."""
    name = text.lower()
    name = _ALIASES.get(name, name.removesuffix("s"))
    if name not in MICROS and name not in MONTHS and name not in DAYS:
        raise Opaque("a unit of time that zonal doesn't follow")
    return name
