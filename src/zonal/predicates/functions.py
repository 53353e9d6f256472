"""Comparisons of monotone functions of a column, turned into ranges of the column.

The ranges hold every matching row, and may hold more: where engines round differently, they cover all results.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import timezone
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from zonal.predicates.bound import Interval, Ranges, union
from zonal.predicates.calendar import DAY, PER_MICROSECOND, next_unit, to_utc, unit_start, year_start
from zonal.predicates.comparisons import ExactPoint, compare, compare_between, half_open
from zonal.predicates.conversion import Incomparable, is_text
from zonal.predicates.domain import Domain, locate
from zonal.predicates.expressions import Call, Column, Value

_CLOCK_CHANGE = 3 * 3600 * 10**6
"""Around a clock change local time jumps: ranges in zones that have any are widened by three hours."""

_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def compare_call(domain: Domain, call: Call, op: str, value: Value) -> Ranges:
    """Return where `function(column) op value` may be true; `Incomparable` where nothing is known."""
    if call.name in ("year", "date", "date_trunc"):
        return _calendar(domain, call, op, value)
    if call.name == "cast":
        return _cast(domain, call.argument, op, value)
    if call.name in ("floor", "ceil"):
        down, up = (0, 1) if call.name == "floor" else (1, 0)
        if isinstance(value, int | Decimal) and abs(Decimal(value)) >= 2**53:
            value = float(value)  # some engines round to doubles, which are no longer whole numbers apart
        return _near(domain, op, value, down, up)
    raise Incomparable(f"the function {call.name}")


def _calendar(domain: Domain, call: Call, op: str, value: Value) -> Ranges:
    """Compare the year, the day or the unit that a date or timestamp lies in."""
    if not (pa.types.is_timestamp(domain.kind) or domain.family == "date"):
        raise Incomparable(f"{call.name} of values of type {domain.kind}")
    if call.name == "date" and domain.family == "date":
        return compare(domain, op, value)
    low, high = _literal(domain, call, value)
    at, above = _starts(call)
    first, end = at(low), above(high)
    if op == "=":
        intervals = [_clock(domain, first, end)]
    elif op in (">", ">="):
        intervals = [_clock(domain, at(low) if op == ">=" else above(low), None)]
    elif op in ("<", "<="):
        intervals = [_clock(domain, None, at(high) if op == "<" else above(high))]
    elif low == high:
        intervals = [_clock(domain, None, first), _clock(domain, end, None)]
    else:
        intervals = [Interval()]
    return Ranges(domain.column, union(intervals))


def _literal(domain: Domain, call: Call, value: Value) -> tuple[Fraction, Fraction]:
    kind = {"year": pa.int64(), "date": pa.date32(), "date_trunc": pa.timestamp("us")}[call.name]
    family = {"year": "int", "date": "date", "date_trunc": "timestamp[us]"}[call.name]
    low, high = locate(replace(domain, kind=kind, family=family), value)
    assert isinstance(low, Fraction)  # noqa: S101 - whole-number domains
    assert isinstance(high, Fraction)  # noqa: S101
    return low, high


def _starts(call: Call) -> tuple[Callable[[Fraction], int], Callable[[Fraction], int]]:
    """Return where on the clock values at or above a literal begin, and where values above it do, as functions."""
    if call.name == "year":
        return lambda v: year_start(math.ceil(v)), lambda v: year_start(math.floor(v) + 1)
    if call.name == "date":
        return lambda v: math.ceil(v) * DAY, lambda v: (math.floor(v) + 1) * DAY
    unit = call.argument
    if unit_start(unit, 0) is None:
        raise Incomparable(f"date_trunc to {unit}")

    def at(v: Fraction) -> int:
        start = unit_start(unit, math.floor(v)) or 0
        return start if start == v else next_unit(unit, start)

    return at, lambda v: next_unit(unit, unit_start(unit, math.floor(v)) or 0)


def _clock(domain: Domain, first: int | None, end: int | None) -> Interval:
    """Return the values whose clock shows `first` or later, and not yet `end`."""
    slack = 0
    if domain.has_zone and domain.zone not in (timezone.utc, ZoneInfo("UTC")):
        slack = _CLOCK_CHANGE

    def place(micros: int | None, shift: int) -> Fraction | None:
        if micros is None:
            return None
        if domain.family == "date":
            return Fraction(micros, DAY)
        moment = to_utc(Fraction(micros), domain.zone) if domain.has_zone else Fraction(micros)
        return (moment + shift) * PER_MICROSECOND[domain.kind.unit]

    return half_open(place(first, -slack), place(end, slack))


def _near(domain: Domain, op: str, value: Value, down: Fraction | int, up: Fraction | int) -> Ranges:
    """Compare a rounded number: the column lies within `down` below and `up` above what it is rounded to."""
    if not (domain.family in ("int", "uint64", "float") or domain.family.startswith("decimal")):
        raise Incomparable(f"rounding of values of type {domain.kind}")
    low, high = locate(domain, value)
    if isinstance(low, float) and isinstance(high, float):
        if math.isnan(low):
            raise Incomparable("rounding compared with NaN")
        low, high = math.nextafter(low - float(down), -math.inf), math.nextafter(high + float(up), math.inf)
        return compare_between(domain, op, low, high)
    assert isinstance(low, Fraction)  # noqa: S101 - numbers only
    assert isinstance(high, Fraction)  # noqa: S101
    one = 10**domain.kind.scale if domain.family.startswith("decimal") else 1
    return compare_between(domain, op, low - down * one, high + up * one)


def _cast(domain: Domain, target: str, op: str, value: Value) -> Ranges:
    family = domain.family
    is_number = family in ("int", "uint64", "float") or family.startswith("decimal")
    if target in ("timestamp", "timestamptz", "date") and (family == "date" or family.startswith("timestamp")):
        if target == "date":
            return _calendar(domain, Call("date", Column(domain.column)), op, value)
        if pa.types.is_timestamp(domain.kind) and domain.kind.unit == "ns":  # rounded to microseconds, or cut
            low, high = locate(domain, value)
            assert isinstance(low, Fraction)  # noqa: S101 - a whole-number domain
            assert isinstance(high, Fraction)  # noqa: S101
            return compare_between(domain, op, low - 1000, high + 1000)
        return compare(domain, op, value)
    if target == "string" and is_text(domain.kind):  # bytes become text with escapes in some engines
        return compare(domain, op, value)
    if target in _INTEGER_BITS and family == "int" and domain.kind.bit_width <= _INTEGER_BITS[target]:
        return compare(domain, op, value)
    if target in _INTEGER_BITS and not _may_wrap(domain, _INTEGER_BITS[target], value):
        # Engines cut or round, and NaN is 0 in Spark without ANSI mode.
        return replace(_near(domain, op, value, 1, 1), nan=family == "float")
    if target in ("float", "double") and is_number:
        return compare_between(domain, op, *_as_floats(domain, value, 32 if target == "float" else 64))
    if target.startswith("decimal") and is_number and family != "float":
        scale = int(target.rstrip(")").rpartition(",")[2] or 0) if "," in target else 0
        step = Fraction(1, 10**scale)
        return _near(domain, op, value, step, step)
    raise Incomparable(f"a cast from {domain.kind} to {target}")


def _may_wrap(domain: Domain, bits: int, value: Value) -> bool:
    """Tell whether a number too large for the target may come out as one near the literal instead of as an error.

    Spark without ANSI mode cuts floats to the ends of int and bigint; in smaller types they wrap, and decimals always.
    """
    if domain.family.startswith("decimal"):
        return bool(domain.kind.precision - domain.kind.scale > {8: 2, 16: 4, 32: 9, 64: 18}[bits])
    if domain.family != "float" or bits < 32:
        return True
    low, high = locate(domain, value)
    return not (
        isinstance(low, float) and isinstance(high, float) and max(abs(low), abs(high)) < 2.0 ** (bits - 1) - 2**11
    )


def _as_floats(domain: Domain, value: Value, bits: int) -> tuple[ExactPoint, ExactPoint]:
    """Return the values of the column that may equal the literal when both are rounded to floats."""
    numbers = replace(domain, kind=pa.float64(), family="float")
    low, high = locate(numbers, value)
    assert isinstance(low, float)  # noqa: S101 - the domain of floats
    assert isinstance(high, float)  # noqa: S101
    if math.isnan(low) or math.isinf(low) or math.isinf(high):
        raise Incomparable("a cast compared with a number that is not finite")
    kind = np.float32 if bits == 32 else np.float64
    with np.errstate(over="ignore"):
        low = float(np.nextafter(kind(low), kind(-np.inf)))
        high = float(np.nextafter(kind(high), kind(np.inf)))
    if domain.family == "float":
        return low, high
    if math.isinf(low) or math.isinf(high):
        raise Incomparable("a cast compared with a number that is too large")
    one = 10**domain.kind.scale if domain.family.startswith("decimal") else 1
    return Fraction(low) * one, Fraction(high) * one
