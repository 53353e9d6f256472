"""Convert partition values of Delta tables from the log's text and back ("Partition Value Serialization")."""

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import TableError, quoted
from zonal.snapshot import Bounds
from zonal.tables.delta.adds import LiveFile
from zonal.tables.delta.stats import Counts, cast_or_null, timestamps


def constants(file: LiveFile, fields: Sequence[pa.Field]) -> dict[str, pa.Scalar]:
    """Return the values of partition columns, by their name in files."""
    return {field.name: partition_value(file.values.get(field.name), field) for field in fields}


def partition_value(text: str | None, field: pa.Field) -> pa.Scalar:
    """Parse a partition value ("Partition Value Serialization"); an empty text is null for every type.

    A timestamp without a zone is read as UTC, as deltalake writes it and the Delta kernel reads it.
    """
    kind = field.type
    if not text:
        return pa.scalar(None, kind)
    try:
        if pa.types.is_timestamp(kind):
            return _moment(text, kind)
        if pa.types.is_binary(kind):
            if (data := escaped_bytes(text)) is None:
                raise ValueError("not ASCII")
            return pa.scalar(data, kind)
        if pa.types.is_boolean(kind):
            return pa.scalar({"true": True, "false": False}[text.lower()], kind)
        return pa.scalar(text, pa.string()).cast(kind)
    except (pa.ArrowException, KeyError, ValueError):
        raise TableError(
            f"The partition value {quoted(text)} of column {quoted(field.name)} is not of type {kind}."
        ) from None


def _moment(text: str, kind: pa.TimestampType) -> pa.Scalar:
    zoned = re.search(r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$", text) is not None
    if kind.tz is None and zoned:
        text, zoned = re.sub(r"(Z|\+00:?00)$", "", text), False
    as_read = pa.timestamp(kind.unit, "UTC" if zoned else None)
    return pa.scalar(pa.scalar(text, pa.string()).cast(as_read).value, kind)


def escaped_bytes(text: str) -> bytes | None:
    """Decode binary written as `\\u0001\\u00FF` or as ASCII; None for the rest, on which writers disagree."""
    if re.fullmatch(r"(\\u00[0-9a-fA-F]{2})+", text):
        return bytes(int(code, 16) for code in text.split("\\u00")[1:])
    return text.encode() if text.isascii() else None


def partition_text(value: pa.Scalar, column: str) -> str | None:
    """Serialize a value, null as None; refuse a value that readers would read differently.

    `partition_value(partition_text(value)) == value`.
    """
    if not value.is_valid:
        return None
    if pa.types.is_dictionary(value.type):
        return partition_text(value.value, column)
    try:
        plain = _plain_text(value)
    except OverflowError:
        raise TableError(
            f"The partition value {value} of column {quoted(column)} is outside of the years 1 to 9999, which Delta's "
            "readers know."
        ) from None
    if plain is None:
        raise TableError(f"Column {quoted(column)} of type {value.type} can't partition a Delta table.")
    if not plain:
        raise TableError(
            f"Column {quoted(column)} has the partition value '', which Delta can't tell from null. "
            "Don't partition by it, or change the value first."
        )
    return plain


def _plain_text(value: pa.Scalar) -> str | None:
    kind = value.type
    if pa.types.is_boolean(kind):
        return str(value.as_py()).lower()
    if pa.types.is_timestamp(kind):
        return _timestamp_text(value)
    if pa.types.is_floating(kind):
        return _float_text(float(value.as_py()))
    if pa.types.is_decimal(kind):
        return format(value.as_py(), "f")
    if pa.types.is_integer(kind) or _is_text(kind):
        return str(value.as_py())
    return str(value.as_py().isoformat()) if pa.types.is_date(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _timestamp_text(value: pa.Scalar) -> str:
    """Serialize an instant in UTC with `Z`, as readers differ on texts without a zone; a local time as it is."""
    kind = value.type
    moment = datetime(1970, 1, 1) + timedelta(microseconds=value.cast(pa.timestamp("us", kind.tz)).value)
    return moment.isoformat(timespec="microseconds") + "Z" if kind.tz else moment.isoformat(" ", "microseconds")


def _float_text(number: float) -> str:
    """Serialize a number in Java's form, which has no `inf`."""
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return "NaN" if math.isnan(number) else repr(number)


def partition_bounds(key: pa.DictionaryArray, kind: pa.DataType, totals: Counts) -> Bounds:
    """Return each file's partition value as both bounds; a value that can't be parsed is unknown, an empty one null."""
    plain = key.dictionary_decode()
    key = pc.dictionary_encode(pc.if_else(pc.equal(plain, ""), None, plain))
    texts = key.dictionary.cast(pa.large_string())
    lower, upper = (_partition_values(texts, kind, side) for side in (-1, 1))
    nans = np.zeros(len(key), np.int64)
    if pa.types.is_floating(kind):
        undefined = pc.is_nan(lower).take(key.indices)
        nans = np.where(pc.fill_null(undefined, False).to_numpy(zero_copy_only=False), totals.rows, 0)
        lower = upper = pc.if_else(pc.is_nan(lower), None, lower)
    nulls = np.where(pc.is_null(key.indices).to_numpy(zero_copy_only=False), totals.rows, 0)
    return Bounds(lower.take(key.indices), upper.take(key.indices), nulls, nans)


def _partition_values(texts: pa.Array, kind: pa.DataType, side: int) -> pa.Array:
    """Parse partition values; `side` is -1 for lower and 1 for upper bounds."""
    if pa.types.is_string(kind):
        return texts.cast(pa.large_binary())
    if pa.types.is_timestamp(kind):
        return timestamps(texts, kind, side)
    if pa.types.is_binary(kind):
        return pa.array([escaped_bytes(text) for text in texts.to_pylist()], kind)
    return cast_or_null(texts, kind)
