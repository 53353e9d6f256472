"""Find how values of one type are read as another type, where that changes no value."""

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
from pyarrow import types

ArrayConverter: TypeAlias = Callable[[pa.Array], pa.Array]

_DIGITS = {
    pa.int8(): 3, pa.uint8(): 3, pa.int16(): 5, pa.uint16(): 5, pa.int32(): 10, pa.uint32(): 10, pa.int64(): 19,
}  # fmt: skip
"""Decimal digits that hold every value of an integer type."""


def same(array: pa.Array) -> pa.Array:
    """Return the array itself, where no conversion is needed."""
    return array


def promotion(have: pa.DataType, want: pa.DataType, *, zoneless: bool = False) -> ArrayConverter | None:
    """Return how to convert a primitive type to another, or None where that could change values.

    The conversion itself raises `pa.ArrowInvalid` for single values that don't fit, such as nanoseconds that are no
    whole microseconds. `zoneless` marks a timestamp whose file doesn't say whether it is adjusted to UTC: INT96,
    and the older annotation TIMESTAMP_MICROS.

    >>> promotion(pa.int32(), pa.int64())(pa.array([1], pa.int32())).type
    DataType(int64)
    >>> promotion(pa.int64(), pa.int32()) is None
    True
    """
    if have.equals(want):
        return same
    if isinstance(have, pa.BaseExtensionType) or isinstance(want, pa.BaseExtensionType):
        return _through_storage(have, want, zoneless)
    if types.is_dictionary(have):
        inner = promotion(have.value_type, want, zoneless=zoneless)
        return None if inner is None else lambda array: inner(array.dictionary_decode())
    if types.is_null(have):
        return lambda array: pa.nulls(len(array), want)
    if types.is_timestamp(have) and types.is_timestamp(want):
        return _between_timestamps(have, want, zoneless)
    if _is_exact(have, want):
        return lambda array: array.cast(want)
    return None


def _through_storage(have: pa.DataType, want: pa.DataType, zoneless: bool) -> ArrayConverter | None:
    """Convert between extension types (UUID, JSON) through their storage types."""
    stored = have.storage_type if isinstance(have, pa.BaseExtensionType) else have
    wanted = want.storage_type if isinstance(want, pa.BaseExtensionType) else want
    inner = promotion(stored, wanted, zoneless=zoneless)
    if inner is None:
        return None

    def convert(array: pa.Array) -> pa.Array:
        converted = inner(array.storage if isinstance(array, pa.ExtensionArray) else array)
        return pa.ExtensionArray.from_storage(want, converted) if wanted is not want else converted

    return convert


def _between_timestamps(have: pa.TimestampType, want: pa.TimestampType, zoneless: bool) -> ArrayConverter | None:
    """Convert the unit where that is exact; all zones name the same instants, but a type without a zone is another."""
    if (have.tz is None) != (want.tz is None) and not zoneless:
        return None
    return lambda array: array.cast(pa.timestamp(want.unit, have.tz)).view(want)


def _is_exact(have: pa.DataType, want: pa.DataType) -> bool:
    if types.is_integer(have):
        return _integer_fits(have, want)
    if types.is_floating(have):
        return bool(types.is_floating(want) and have.bit_width < want.bit_width)
    if types.is_decimal(have):
        whole = have.precision - have.scale
        return bool(types.is_decimal(want) and want.scale >= have.scale and want.precision - want.scale >= whole)
    if types.is_date(have):
        # Delta widens date to timestamp without a time zone.
        return bool(types.is_date(want) or (types.is_timestamp(want) and want.tz is None))
    if _is_bytes(have) or types.is_fixed_size_binary(have):
        return _is_bytes(want)  # into strings the cast checks the encoding
    if types.is_time(have):
        return bool(types.is_time(want))
    return bool(types.is_duration(have) and (types.is_duration(want) or types.is_int64(want)))


def _integer_fits(have: pa.DataType, want: pa.DataType) -> bool:
    if types.is_integer(want):
        keeps_sign = types.is_signed_integer(want) or not types.is_signed_integer(have)
        return bool(keeps_sign and have.bit_width < want.bit_width)
    if types.is_decimal(want):
        return bool(want.precision - want.scale >= _DIGITS.get(have, 77))
    return bool(types.is_float64(want) and have.bit_width <= 32)


def _is_bytes(kind: pa.DataType) -> bool:
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(texts or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))
