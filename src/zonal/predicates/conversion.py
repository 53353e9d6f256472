"""Text as a value of a column's type: only where every engine that converts it arrives at the same value.

The law: what `read` returns is exactly the text's value. Text of a finer grain than the type (`'4.5'` for an integer,
microseconds for a date), or in a form that not all engines read alike, is `Incomparable`: some round, some cut, some
convert the column instead.
"""

import re
from datetime import datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa

from zonal.errors import PredicateError, quoted
from zonal.predicates.expressions import Value
from zonal.predicates.scalars import read_moment, read_time
from zonal.values.words import plain_type

_INTEGER = re.compile(r"-?\d{1,38}", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,38}(?:\.\d{1,38})?", re.ASCII)
_FLOAT = re.compile(r"-?\d{1,38}(?:\.\d{1,38})?(?:e[+-]?\d{1,3})?|[+-]?inf(?:inity)?|nan", re.ASCII | re.IGNORECASE)
_UUID = re.compile(r"[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}", re.ASCII)
_HEX = re.compile(r"(?:[\da-f]{2})*", re.ASCII | re.IGNORECASE)
_WORDS = (
    frozenset({"t", "f", "y", "n", "yes", "no", "on", "off", "true", "false"})
    | {"inf", "infinity", "nan"}
    | {"epoch", "now", "today", "tomorrow", "yesterday"}
)
"""Text without digits that some engines take for a truth value, a number or a moment."""
_DOUBLE_DIGITS = 15
"""Decimals of at most this many digits have the order of the doubles nearest to them."""
_GRAIN = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}


class Incomparable(Exception):  # noqa: N818 - not an error: the predicate stays unknown
    """Engines compare such a literal by converting it or the column, in an order that the bounds don't follow."""


def mismatch(column: str, kind: pa.DataType, value: object) -> PredicateError:
    """Say that a literal is of another type than the column."""
    return PredicateError(
        f"{quoted(str(value))} can't be compared with column {quoted(column)}, which has type {kind}."
    )


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text: binary values are bytes, whatever they mean."""
    plain = plain_type(kind)
    return any(test(plain) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def read(column: str, kind: pa.DataType, text: str) -> Value:
    """Convert text to a value of the column's type; `Incomparable` where engines may disagree on it.

    >>> read("i", pa.int32(), "5")
    5
    >>> read("i", pa.int32(), "4.5")
    Traceback (most recent call last):
    zonal.predicates.conversion.Incomparable: text that engines convert to int32 differently
    """
    plain = plain_type(kind)
    types = pa.types
    value: Value = None
    if is_text(plain):
        return text.encode("utf-8", "surrogatepass")
    if types.is_boolean(plain):
        value = {"true": True, "false": False}.get(text.lower())
    elif types.is_integer(plain):
        value = _whole(text)
    elif types.is_decimal(plain):
        value = _decimal(text, plain)
    elif types.is_floating(plain):
        value = _float(text)
    elif types.is_date(plain) or types.is_timestamp(plain):
        value = read_moment(text)
    elif types.is_time(plain):
        value = read_time(text)
    else:
        value = _binary(text, plain)
    if value is None or _is_inexact(value, plain):
        raise _unread(column, kind, text)
    return value


def may_be_one(left: str, right: str) -> bool:
    """Tell whether two texts may be the same value of a type that isn't known.

    >>> may_be_one("t", "true"), may_be_one("05", "5"), may_be_one("a", "\\\\x61"), may_be_one("", "new")
    (True, True, True, False)
    """
    return left == right or "\\" in left + right or not (_is_word(left) or _is_word(right))


def _is_word(text: str) -> bool:
    """Tell whether a text is nothing but text: no number, moment or truth value."""
    return text.replace(" ", "").isalpha() and text.isascii() and text.strip().lower() not in _WORDS


def _unread(column: str, kind: pa.DataType, text: str) -> Exception:
    is_number_or_time = any(map(str.isdigit, text)) or text.strip().lstrip("+-").lower() in _WORDS
    if is_number_or_time or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return Incomparable(f"text that engines convert to {kind} differently")
    return mismatch(column, kind, text)


def _whole(text: str) -> int | float | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if abs(number) < 2**53 else float(number)  # some engines compare both as doubles


def _decimal(text: str, kind: pa.DataType) -> Decimal | float | None:
    if not _DECIMAL.fullmatch(text):
        return None
    number = Decimal(text)
    is_exact = kind.precision <= _DOUBLE_DIGITS and len(number.as_tuple().digits) <= _DOUBLE_DIGITS
    if len(text.partition(".")[2].rstrip("0")) > kind.scale:
        return None
    return number if is_exact else float(number)  # some engines compare both as doubles


def _float(text: str) -> Decimal | float | None:
    if not _FLOAT.fullmatch(text):
        return None
    return Decimal(text) if any(map(str.isdigit, text)) else float(text)


def _binary(text: str, kind: pa.DataType) -> bytes | UUID | None:
    """Read plain ASCII: some engines read escapes, others hexadecimal digits. Of 16 bytes, the text is a UUID's."""
    if pa.types.is_fixed_size_binary(kind):
        return UUID(text) if kind.byte_width == 16 and _UUID.fullmatch(text) else None
    is_plain = text.isascii() and text.isprintable() and "\\" not in text and not _HEX.fullmatch(text)
    return text.encode() if is_plain else None


def _is_inexact(value: Value, kind: pa.DataType) -> bool:
    """Tell whether a time has more digits than the column keeps, or a zone where the column has none."""
    if isinstance(value, datetime) and value.tzinfo is not None and (pa.types.is_date(kind) or kind.tz is None):
        return True  # some engines ignore the zone
    if not isinstance(value, datetime | time) or pa.types.is_date(kind):
        return False
    return value.microsecond % _GRAIN[kind.unit] != 0
