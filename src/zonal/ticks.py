"""Where an axis is labeled: round numbers and moments, or values at even steps where their order alone is drawn."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Literal
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.words import plain_type

LAST_PLACE = 65_535

Kind = Literal["number", "time", "date", "text"]
Places = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.generic]
Ticks = tuple[tuple[int, str], ...]

_MOST = 5
_LONGEST = 24
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, *(
    _DAY * days for days in (1, 2, 5, 7, 14)
))  # fmt: skip
"""Seconds between moments; beyond two weeks months are counted."""


def axis_kind(kind: pa.DataType) -> Kind:
    """Tell what a column's values are for people."""
    kind = plain_type(kind)
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return "time"
    is_number = pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    return "number" if is_number or pa.types.is_integer(kind) or pa.types.is_floating(kind) else "text"


def ticks_of(values: Values, places: Places, kind: pa.DataType, *, is_even: bool) -> Ticks:
    """Label an axis on which these sorted values of a column's domain (see `predicates.bound`) have these places."""
    if not is_even and len(values) > 1 and not pa.types.is_boolean(kind):
        found = _round_ticks(values, kind)
        if len(found) > 1:
            return found
    chosen = np.unique(np.round(np.linspace(0, len(values) - 1, min(_MOST, len(values)))).astype(np.int64))
    return tuple((int(places[at]), value_text(values[at : at + 1].tolist()[0], kind)) for at in chosen.tolist())


def value_text(value: int | float | bytes, kind: pa.DataType) -> str:
    """Write a value of a column's domain for people, in a few characters.

    >>> value_text(0, pa.date32()), value_text(1_500, pa.timestamp("ms")), value_text(1250, pa.decimal128(9, 2))
    ('1970-01-01', '1970-01-01 00:00:01.500', '12.50')
    >>> value_text(b"caf" + bytes([0xC3]), pa.string()), value_text(1234567, pa.int64()), value_text(0.1, pa.float64())
    ('caf', '1,234,567', '0.1')
    """
    written = plain_type(kind)
    if isinstance(value, bytes):
        return _bytes_text(value, kind)
    if pa.types.is_boolean(written):
        return "true" if value else "false"
    if pa.types.is_decimal(written):
        return f"{Decimal(int(value)).scaleb(-written.scale):f}"[:_LONGEST]
    if _seconds(written) is not None:
        return _moment_text(int(value), written)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _bytes_text(value: bytes, kind: pa.DataType) -> str:
    if isinstance(kind, pa.BaseExtensionType) and len(value) == 16:
        return str(UUID(bytes=value))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        text = value.decode(errors="ignore")  # a bound may be cut within a character
    else:
        text = value.hex()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _seconds(kind: pa.DataType) -> float | None:
    """Return how many of the column's units a second has; None for what is no time."""
    if pa.types.is_date(kind):
        return 1 / _DAY
    if pa.types.is_timestamp(kind):
        return _SECOND[kind.unit]
    return 10**9 if pa.types.is_time(kind) else None  # the words of times of day are nanoseconds


def _moment_text(value: int, kind: pa.DataType) -> str:
    unit = _seconds(kind) or 1
    seconds, rest = (value * _DAY, 0) if unit < 1 else divmod(value, int(unit))
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=rest * 10**6 // int(unit) if unit >= 1 else 0)
    except OverflowError:
        return f"{value:,}"
    if pa.types.is_date(kind):
        return f"{moment:%Y-%m-%d}"
    clock = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}" if moment.microsecond else f"{moment:%H:%M:%S}"
    return clock if pa.types.is_time(kind) else f"{moment:%Y-%m-%d} {clock}"


# --- Round values ----------------------------------------------------------------------------------------------------


def _round_ticks(values: Values, kind: pa.DataType) -> Ticks:
    first, last = float(values[0]), float(values[-1])
    kind = plain_type(kind)
    if not (math.isfinite(first) and math.isfinite(last) and math.isfinite(last - first)) or last <= first:
        return ()
    unit = _seconds(kind)
    if unit is not None:
        labeled = _round_moments(first / unit, last / unit, is_clock=pa.types.is_time(kind))
        found = [(moment * unit, text) for moment, text in labeled]
    else:
        scale = 10.0**-kind.scale if pa.types.is_decimal(kind) else 1.0
        is_whole = pa.types.is_integer(kind)
        found = [(number / scale, text) for number, text in _round_numbers(first * scale, last * scale, is_whole)]
    return tuple((round((value - first) / (last - first) * LAST_PLACE), text) for value, text in found)


def _round_numbers(first: float, last: float, is_whole: bool) -> list[tuple[float, str]]:
    step = 10.0 ** math.floor(math.log10((last - first) / (_MOST - 1)))
    step *= next(times for times in (1, 2, 5, 10, 20) if (last - first) / (step * times) <= _MOST + 2)
    step = max(step, 1.0) if is_whole else step
    start, end = math.ceil(first / step), math.floor(last / step)
    return [(number * step, _number_text(number * step)) for number in range(start, min(end, start + 2 * _MOST) + 1)]


def _number_text(number: float) -> str:
    """Write a round number: 40, 2,500, 1.5M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if size <= abs(number) < size * 1000:
            return f"{number / size:.6g}{letter}"
    if abs(number) < 1e6 and number == round(number):
        return f"{round(number):,}"
    return f"{number:.6g}"


def _round_moments(first: float, last: float, *, is_clock: bool) -> list[tuple[float, str]]:
    """Return round moments in seconds from 1970 on, each with its text."""
    span = last - first
    if span < 2:
        return []
    step = next((step for step in _STEPS if span / step <= _MOST), None)
    if step is None:
        return [] if is_clock else _round_months(first, last)
    start = math.ceil(first / step)
    moments = [number * step for number in range(start, math.floor(last / step) + 1)]
    return [(moment, _tick_text(moment, step, is_clock=is_clock, is_first=not at)) for at, moment in enumerate(moments)]


def _tick_text(seconds: int, step: int, *, is_clock: bool, is_first: bool) -> str:
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds:,} s"
    if step >= _DAY:
        return f"{moment:%Y-%m-%d}"
    clock = f"{moment:%H:%M}" if step >= 60 else f"{moment:%H:%M:%S}"
    has_day = is_first or seconds % _DAY == 0
    return f"{moment:%m-%d} {clock}" if has_day and not is_clock else clock


def _round_months(first: float, last: float) -> list[tuple[float, str]]:
    try:
        start, end = _EPOCH + timedelta(seconds=first), _EPOCH + timedelta(seconds=last)
    except OverflowError:
        return []
    months = (end.year - start.year) * 12 + end.month - start.month
    step = next(step for step in _month_steps() if months / step <= _MOST)
    begin = start.year * 12 + start.month - 1
    numbers: Sequence[int] = range(-(-begin // step) * step, end.year * 12 + end.month, step)
    moments = [datetime(max(number // 12, 1), number % 12 + 1, 1, tzinfo=timezone.utc) for number in numbers]
    form = "%Y" if step % 12 == 0 else "%Y-%m"
    found = [((moment - _EPOCH).total_seconds(), moment.strftime(form)) for moment in moments]
    return [(seconds, text) for seconds, text in found if first <= seconds <= last]


def _month_steps() -> list[int]:
    return [1, 2, 3, 6, *(12 * years * 10**power for power in range(4) for years in (1, 2, 5))]
