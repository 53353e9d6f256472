"""Labels of an axis: at round numbers and moments, or at evenly chosen values where only their order is drawn."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Literal
from uuid import UUID

import numpy as np
import pyarrow as pa

from zonal.values.arrays import AnyArray, UInt16Array
from zonal.values.words import plain_type

LAST_PLACE = 65_535

AxisKind = Literal["number", "time", "date", "text"]


Ticks = tuple[tuple[int, str], ...]

_MOST = 5
_LONGEST, _LONGEST_NUMBER = 24, 40
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SECOND = 10**9
_DAY = 86_400 * _SECOND
_UNITS = {"s": _SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
_STEPS = (
    *(times * 10**power for power in range(9) for times in (1, 2, 5)),
    *(_SECOND * seconds for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(_SECOND * 3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(_DAY * days for days in (1, 2, 5, 7, 14)),
)
"""Nanoseconds between moments; longer steps are whole months."""
_NEAR = 1e-9
"""The part of a step by which a round number may lie beyond the ends: floats are not exact."""
_WIDE = Context(prec=100)
"""Enough digits for every decimal."""


def axis_kind(kind: pa.DataType) -> AxisKind:
    """Return the kind of axis for a column's type."""
    kind = plain_type(kind)
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return "time"
    is_number = pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    return "number" if is_number or pa.types.is_integer(kind) or pa.types.is_floating(kind) else "text"


def ticks_of(values: AnyArray, places: UInt16Array, kind: pa.DataType, *, is_even: bool) -> tuple[Ticks, bool]:
    """Label an axis on which these sorted values of a column's domain (see `predicates.bound`) have these places.

    Return the labels, and whether they are round rather than values of the column. No two labels read the same: of
    values that can't be told apart in a few characters, only the first has one.
    """
    if not is_even and len(values) > 1 and not pa.types.is_boolean(kind):
        ticks = _once(_round_ticks(values, kind))
        if len(ticks) > 1:
            return ticks, True
    chosen = np.unique(np.round(np.linspace(0, len(values) - 1, min(_MOST, len(values)))).astype(np.int64))
    texts = _value_texts([values[at : at + 1].tolist()[0] for at in chosen.tolist()], kind)
    return _once(zip((int(places[at]) for at in chosen.tolist()), texts, strict=True)), False


def _once(ticks: Iterable[tuple[int, str]]) -> Ticks:
    """Keep the first of the labels at one place, and of those that read the same."""
    by_text = {text: place for place, text in dict(reversed(list(ticks))).items()}
    return tuple(sorted((place, text) for text, place in by_text.items()))


def _value_texts(values: Sequence[int | float | bytes], kind: pa.DataType) -> list[str]:
    """Write values in a few characters, so that different ones read differently.

    >>> _value_texts([0], pa.date32()), _value_texts([1_500], pa.timestamp("ms"))
    (['1970-01-01'], ['1970-01-01 00:00:01.500'])
    >>> _value_texts([b"caf" + bytes([0xC3])], pa.string()), _value_texts([1234567], pa.int64())
    (['caf'], ['1,234,567'])
    """
    texts = [_whole_text(value, kind) for value in values]
    if any(isinstance(value, float) for value in values) and len(set(texts)) < len(set(values)):
        texts = [repr(value) for value in values]
    is_uuid = isinstance(kind, pa.BaseExtensionType)
    longest = _LONGEST if any(isinstance(value, bytes) for value in values) and not is_uuid else _LONGEST_NUMBER
    return apart(texts, longest)


def apart(texts: Sequence[str], longest: int) -> list[str]:
    """Shorten texts, leaving out a shared prefix where they would else read the same.

    >>> apart(["some/rather/long/0001", "some/rather/long/0017"], 12)
    ['…/0001', '…/0017']
    """
    clipped = [_clipped(text, longest) for text in texts]
    if len(set(clipped)) == len(set(texts)):
        return clipped
    low, high = min(texts), max(texts)  # all texts share the prefix that these two share
    same = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    start = max(texts[0].rfind(mark, max(0, same - longest // 2), same) for mark in "/-_.:, ")
    start = same if start < 0 else start
    return ["…" + _clipped(text[start:], longest - 1) for text in texts]


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _whole_text(value: int | float | bytes, kind: pa.DataType) -> str:
    written = plain_type(kind)
    if isinstance(value, bytes):
        return _bytes_text(value, kind)
    if pa.types.is_boolean(written):
        return "true" if value else "false"
    if pa.types.is_decimal(written):
        return f"{Decimal(int(value)).scaleb(-written.scale, _WIDE):f}"
    if _unit(written) is not None:
        return _moment_text(int(value), written)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _bytes_text(value: bytes, kind: pa.DataType) -> str:
    if isinstance(kind, pa.BaseExtensionType) and len(value) == 16:
        return str(UUID(bytes=value))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return value.decode(errors="ignore")  # a bound may be cut within a character
    return value.hex()


def _unit(kind: pa.DataType) -> int | None:
    """Return the nanoseconds of a column's unit of time; None for other types."""
    if pa.types.is_date(kind):
        return _DAY
    if pa.types.is_timestamp(kind):
        return _UNITS[kind.unit]
    return 1 if pa.types.is_time(kind) else None  # the words of times of day are nanoseconds


def _moment_text(value: int, kind: pa.DataType) -> str:
    seconds, rest = divmod(value * (_unit(kind) or 1), _SECOND)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{value:,}"
    if pa.types.is_date(kind):
        return f"{moment:%Y-%m-%d}"
    digits = next(digits for digits in (0, 3, 6, 9) if rest % 10 ** (9 - digits) == 0)
    clock = f"{moment:%H:%M:%S}{_fraction(rest, digits)}"
    return clock if pa.types.is_time(kind) else f"{moment:%Y-%m-%d} {clock}"


def _fraction(nanoseconds: int, digits: int) -> str:
    """Write a fraction of a second with this many digits; empty text for none."""
    return f".{nanoseconds:09d}"[: digits + 1] if digits else ""


# --- Round values ----------------------------------------------------------------------------------------------------


def _round_ticks(values: AnyArray, kind: pa.DataType) -> Ticks:
    first, last = float(values[0]), float(values[-1])
    kind = plain_type(kind)
    # Neighboring floats have no round numbers between them.
    least = max(64 * math.ulp(max(abs(first), abs(last))), 1e-290)
    if not math.isfinite(last - first) or last - first < least:
        return ()
    unit = _unit(kind)
    if unit is not None:
        labeled = _round_moments(int(values[0]) * unit, int(values[-1]) * unit, unit, is_clock=pa.types.is_time(kind))
        ticks = [(moment / unit, text) for moment, text in labeled]
    else:
        scale = 10.0**-kind.scale if pa.types.is_decimal(kind) else 1.0
        is_whole = pa.types.is_integer(kind)
        ticks = [(number / scale, text) for number, text in _round_numbers(first * scale, last * scale, is_whole)]
    places = [(round((value - first) / (last - first) * LAST_PLACE), text) for value, text in ticks]
    return tuple((min(max(place, 0), LAST_PLACE), text) for place, text in places)


def _round_numbers(first: float, last: float, is_whole: bool) -> list[tuple[float, str]]:
    power = math.floor(math.log10((last - first) / (_MOST - 1)))
    power = max(power, 0) if is_whole else power
    times = next(times for times in (1, 2, 5, 10, 20) if (last - first) / (10.0**power * times) <= _MOST + 2)
    step = 10.0**power * times
    start, end = math.ceil(first / step - _NEAR), math.floor(last / step + _NEAR)
    numbers = [number * times for number in range(start, min(end, start + 2 * _MOST) + 1)]
    return list(zip([number * 10.0**power for number in numbers], _number_texts(numbers, power), strict=True))


def _number_texts(numbers: Sequence[int], power: int) -> list[str]:
    """Write round numbers, times a power of ten, with all their digits.

    >>> _number_texts([0, 25, 100], 2), _number_texts([1500, 2000], 3), _number_texts([1_000_000_02, 1_000_000_04], -2)
    (['0', '2,500', '10,000'], ['1.5M', '2M'], ['1,000,000.02', '1,000,000.04'])
    >>> _number_texts([500_000, 500_200], 3), _number_texts([5_000_000, 5_000_001], 3), _number_texts([0, 15], 299)
    (['500M', '500.2M'], ['5,000,000,000', '5,000,001,000'], ['0', '1.5e+300'])
    """
    largest = max((abs(number) for number in numbers), default=0)
    size = len(str(largest)) - 1 + power
    texts = []
    for number in numbers:
        exact = Decimal(number).scaleb(power, _WIDE)
        if largest and not -4 <= size < 15:
            mantissa, _, exponent = f"{exact:.{max(size - power, 0)}e}".partition("e")
            texts.append(f"{_trimmed(mantissa)}e{exponent}" if number else "0")
        elif size >= 6 and power >= size // 3 * 3 - 3:
            texts.append(_lettered(exact))
        else:
            texts.append(_trimmed(f"{exact:,f}"))
    return texts


def _lettered(number: Decimal) -> str:
    """Write a round number, with a letter from a million on: 500,000, 1.5M, 2G."""
    for size, letter in ((12, "T"), (9, "G"), (6, "M")):
        if abs(number) >= 10**size:
            return f"{_trimmed(f'{number.scaleb(-size):f}')}{letter}"
    return _trimmed(f"{number:,f}")


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def _round_moments(first: int, last: int, unit: int, *, is_clock: bool) -> list[tuple[int, str]]:
    """Return round moments in nanoseconds since 1970, multiples of a unit, each with its text."""
    step = next((step for step in _STEPS if (last - first) / step <= _MOST and step >= unit), None)
    if step is None:
        months = [] if is_clock else _round_months(first / _SECOND, last / _SECOND)
        return [(round(seconds) * _SECOND, text) for seconds, text in months]
    moments = [number * step for number in range(-(-first // step), last // step + 1)]
    texts = [_tick_text(moment, step, is_clock=is_clock, is_first=not at) for at, moment in enumerate(moments)]
    if len(set(texts)) < len(texts):  # the same hours of more than one day
        texts = [_tick_text(moment, step, is_clock=is_clock, is_first=True) for moment in moments]
    return list(zip(moments, texts, strict=True))


def _tick_text(moment: int, step: int, *, is_clock: bool, is_first: bool) -> str:
    seconds, rest = divmod(moment, _SECOND)
    try:
        time = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds:,} s"
    if step >= _DAY:
        return f"{time:%Y-%m-%d}"
    digits = next(digits for digits in range(10) if step % 10 ** (9 - digits) == 0)
    clock = f"{time:%H:%M}" if step >= 60 * _SECOND else f"{time:%H:%M:%S}{_fraction(rest, digits)}"
    has_day = is_first or moment % _DAY == 0
    return f"{time:%m-%d} {clock}" if has_day and not is_clock else clock


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
    ticks = [((moment - _EPOCH).total_seconds(), moment.strftime(form)) for moment in moments]
    return [(seconds, text) for seconds, text in ticks if first <= seconds <= last]


def _month_steps() -> list[int]:
    return [1, 2, 3, 6, *(12 * years * 10**power for power in range(4) for years in (1, 2, 5))]
