"""Literals in the domain of a column's type: a point, or a small interval where engines may disagree on it."""

import math
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pyarrow as pa

from zonal.predicates.calendar import DAY, PER_MICROSECOND, is_doubtful, micros_of, to_local, to_utc
from zonal.predicates.conversion import Incomparable, is_text, mismatch, read
from zonal.predicates.expressions import Value
from zonal.values.words import family_of, plain_type

_BEYOND = Fraction(10) ** 400
"""Stands for infinity among whole numbers and decimals, which have at most 76 digits."""


@dataclass(frozen=True)
class Domain:
    """How values of one column are compared: the `family` of its words, and the session's time `zone`."""

    column: str
    kind: pa.DataType
    family: str
    zone: tzinfo

    @property
    def is_whole(self) -> bool:
        """Tell whether the domain is whole numbers."""
        return self.family not in ("float", "bytes")

    @property
    def has_zone(self) -> bool:
        """Tell whether the column holds moments rather than clock times."""
        return pa.types.is_timestamp(self.kind) and self.kind.tz is not None


def domain_of(column: str, kind: pa.DataType, zone: tzinfo) -> Domain | None:
    """Return the domain of a column; None for types that no statistics order."""
    family = family_of(kind)
    if family is None or family == "null" or family.startswith("duration"):
        return None
    return Domain(column, kind, family, zone)


def locate(domain: Domain, value: Value) -> "tuple[Fraction, Fraction] | tuple[float, float] | tuple[bytes, bytes]":
    """Return the interval of the domain that a literal lies in; a literal of another type is a `PredicateError`."""
    if isinstance(value, str):
        value = read(domain.column, domain.kind, value)
    elif domain.family == "bytes" and is_text(domain.kind):
        raise Incomparable(f"a value of type {type(value).__name__} compared with text")
    if domain.family == "bytes":
        place = _bytes(domain, value)
        return place, place
    if domain.family == "float":
        return _float(domain, value)
    if domain.family == "date" or domain.family.startswith("timestamp"):
        return _moment(domain, value)
    if domain.family == "time":
        return _time(domain, value)
    return _number(domain, value)


def _bytes(domain: Domain, value: Value) -> bytes:
    if isinstance(value, UUID):
        if plain_type(domain.kind) != pa.binary(16):
            raise Incomparable("a UUID compared with bytes")
        return value.bytes
    if isinstance(value, bytes):
        return value
    raise Incomparable(f"a value of type {type(value).__name__} compared with bytes")


def _exact(domain: Domain, value: Value) -> Fraction | float:
    """Return a number exactly, or as float where it is infinite or NaN."""
    if isinstance(value, int | Decimal | float):
        number = value if isinstance(value, int) or math.isfinite(value) else float(value)
        return number if isinstance(number, float) and not math.isfinite(number) else Fraction(number)
    raise mismatch(domain.column, domain.kind, value)


def _number(domain: Domain, value: Value) -> tuple[Fraction, Fraction]:
    if pa.types.is_boolean(domain.kind) and value not in (0, 1):
        if isinstance(value, int):
            raise Incomparable("a number compared with truth values, to which some engines convert it")
        raise mismatch(domain.column, domain.kind, value)
    number = _exact(domain, value)
    if isinstance(number, float):
        if math.isnan(number):
            raise Incomparable("NaN compared with whole numbers")
        number = _BEYOND if number > 0 else -_BEYOND
    low = high = number
    if isinstance(value, float) and math.isfinite(value):
        # Engines compare as doubles: the column's value may be rounded to this one.
        low, high = Fraction(math.nextafter(value, -math.inf)), Fraction(math.nextafter(value, math.inf))
    scale = 10**domain.kind.scale if domain.family.startswith("decimal") else 1
    return low * scale, high * scale


def _float(domain: Domain, value: Value) -> tuple[float, float]:
    number = _exact(domain, value)
    if isinstance(number, float):
        return number, number
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.copysign(math.inf, number)
    places = [nearest]
    if not math.isfinite(nearest) or Fraction(nearest) != number:
        places += [math.nextafter(nearest, -math.inf), math.nextafter(nearest, math.inf)]
    if domain.kind.bit_width < 64:  # some engines narrow the literal, others widen the column
        with np.errstate(over="ignore"):
            narrow = np.dtype(f"f{domain.kind.bit_width // 8}").type(nearest)
        places += [float(narrow), float(np.nextafter(narrow, -np.inf)), float(np.nextafter(narrow, np.inf))]
    return min(places), max(places)


def _moment(domain: Domain, value: Value) -> tuple[Fraction, Fraction]:
    """Return dates in days and timestamps in their unit; a literal without a zone is in the session's zone."""
    if isinstance(value, datetime):
        clock = Fraction(micros_of(value))
        offset = value.utcoffset()
        shift = None if offset is None else Fraction(offset.total_seconds()) * 10**6
    elif isinstance(value, date):
        clock, shift = Fraction(micros_of(value)), None
    else:
        raise mismatch(domain.column, domain.kind, value)
    if domain.has_zone:
        if shift is None and is_doubtful(clock, domain.zone):
            raise Incomparable("a time at a change of the clocks")
        place = to_utc(clock, domain.zone) if shift is None else clock - shift
    else:
        place = clock if shift is None else to_local(clock - shift, domain.zone)
    if domain.family == "date":
        slack = 0 if shift is None else 1  # where a day begins, clocks may have been moved
        day = math.floor(place / DAY)  # some engines cut a time to its day, others compare it with the day's start
        return Fraction(day - slack), place / DAY + slack
    place *= PER_MICROSECOND[domain.kind.unit]
    return place, place


def _time(domain: Domain, value: Value) -> tuple[Fraction, Fraction]:
    if not isinstance(value, time) or value.tzinfo is not None:
        raise mismatch(domain.column, domain.kind, value)
    nanos = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    return Fraction(nanos), Fraction(nanos)
