"""Decode a Delta table's per-file statistics to bounds that hold for every value.

Writers truncate strings and timestamps and print numbers through floats, so every bound is moved outward by as much as
its type may have lost; what can't be read is unknown. Section names are those of Delta's PROTOCOL.md.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DecimalException
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from zonal.snapshot import UNKNOWN, Bounds
from zonal.tables.delta.schema import TIMESTAMP_NTZ, DeltaLeaf, Json, Steps, raw_type, wide_type
from zonal.values.arrays import Int64Array

Numbers = Any
"""A numpy array whose type depends on an argument."""

# --- statistics of many files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stats:
    """Statistics of the files of one source, each as JSON, as a parsed struct, or missing."""

    json: pa.Array
    parsed: pa.Array | None

    @cached_property
    def texts(self) -> pa.Array:
        """Return the JSON objects, with an empty one for each file that has none."""
        texts = pc.fill_null(self.json, "{}")
        return pc.if_else(pc.starts_with(texts, "{"), texts, "{}")

    @cached_property
    def lines(self) -> pa.Buffer | None:
        """Return the JSON objects as lines of text; None if an object has several lines."""
        if pc.any(pc.match_substring_regex(self.texts, r"[\n\r]")).as_py():
            return None
        nothing, newline = (pa.scalar(end, pa.large_string()) for end in ("", "\n"))
        return pc.binary_join_element_wise(self.texts, nothing, newline).buffers()[2]


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of whole files in their statistics."""

    rows: Int64Array
    wide: np.ndarray[Any, np.dtype[np.bool_]]
    """Whether `tightBounds` is false: then counts of nulls include deleted rows."""


def counts(sources: Sequence[Stats]) -> Counts:
    """Read `numRecords` and `tightBounds` of every file."""
    schema = pa.schema({"numRecords": pa.int64(), "tightBounds": pa.bool_()})
    read = [_read_json(source, schema) for source in sources]

    def column(name: str, missing: object) -> Numbers:
        filled = [_filled(part[name], name, (), source) for part, source in zip(read, sources, strict=True)]
        return _numpy(filled, schema.field(name).type, missing)

    return Counts(np.maximum(column("numRecords", UNKNOWN), UNKNOWN), ~column("tightBounds", True))


def bounds(leaf: DeltaLeaf, sources: Sequence[Stats], totals: Counts) -> Bounds:
    """Decode one column's statistics: `lower` <= every value <= `upper` in every file, or null if uncertain."""
    return several_bounds([leaf], sources, totals)[leaf.name]


def several_bounds(leaves: Sequence[DeltaLeaf], sources: Sequence[Stats], totals: Counts) -> dict[str, Bounds]:
    """Decode several columns in one pass over the statistics' text."""
    groups: dict[str, dict[Steps, pa.DataType]] = {"nullCount": {leaf.steps: pa.int64() for leaf in leaves}}
    for leaf in leaves:
        if (raw := _raw(leaf)) is not None:
            for group in ("minValues", "maxValues"):
                groups.setdefault(group, {})[leaf.steps] = raw
    schema = pa.schema({group: _nested(kinds) for group, kinds in groups.items()})
    each = [(_read_json(source, schema), source) for source in sources]
    return {leaf.name: _leaf_bounds(leaf, each, totals) for leaf in leaves}


def _raw(leaf: DeltaLeaf) -> pa.DataType | None:
    return raw_type(leaf.type) if leaf.bounded else None


def _leaf_bounds(leaf: DeltaLeaf, each: Sequence[tuple[Mapping[str, pa.Array], Stats]], totals: Counts) -> Bounds:
    raw = _raw(leaf)
    counted = [_filled(_walk(part["nullCount"], leaf.steps), "nullCount", leaf.steps, source) for part, source in each]
    lower, upper = (_side(leaf, each, side) for side in (-1, 1))
    # Statistics that contradict themselves prove nothing.
    broken = None if raw is None else pc.fill_null(pc.greater(lower, upper), False)
    if broken is not None and pc.any(broken).as_py():
        nothing = pa.scalar(None, lower.type)
        lower, upper = pc.if_else(broken, nothing, lower), pc.if_else(broken, nothing, upper)
    nans = np.full(len(totals.rows), UNKNOWN if pa.types.is_floating(leaf.type) else 0, np.int64)
    return Bounds(lower, upper, _nulls(_numpy(counted, pa.int64(), UNKNOWN), totals), nans)


def _nulls(nulls: Int64Array, totals: Counts) -> Int64Array:
    impossible = (nulls < 0) | ((totals.rows >= 0) & (nulls > totals.rows))
    # "Per-file Statistics": a wide count means something only if it is 0 or all of the file's records.
    useless = totals.wide & (nulls != 0) & (nulls != totals.rows)
    return np.where(impossible | useless, UNKNOWN, nulls)


def _side(leaf: DeltaLeaf, each: Sequence[tuple[Mapping[str, pa.Array], Stats]], side: int) -> pa.Array:
    """Return the lower (-1) or upper (1) bounds of the files of all sources."""
    none = pa.nulls(0, pa.large_binary() if pa.types.is_string(leaf.type) else leaf.type)
    group = "minValues" if side < 0 else "maxValues"
    parts = [none]
    for read, source in each:
        if leaf.bounded:
            values = _values(_walk(read[group], leaf.steps), leaf.type, side)
            parts.append(_outward(_filled(values, group, leaf.steps, source), leaf, side))
        else:
            parts.append(pa.nulls(len(source.json), none.type))
    return pa.concat_arrays(parts)


def _nested(kinds: Mapping[Steps, pa.DataType]) -> pa.DataType:
    """Return the struct that holds each type at the end of its steps."""
    if () in kinds:
        return kinds[()]
    below: dict[str, dict[Steps, pa.DataType]] = {}
    for (first, *rest), kind in kinds.items():
        below.setdefault(first, {})[tuple(rest)] = kind
    return pa.struct({step: _nested(inner) for step, inner in below.items()})


def _walk(values: pa.Array, steps: Sequence[str]) -> pa.Array:
    for step in steps:
        values = pc.struct_field(values, values.type.get_field_index(step))
    return values


def _filled(values: pa.Array, group: str, steps: Sequence[str], source: Stats) -> pa.Array:
    """Fill in `stats_parsed` for files without JSON statistics."""
    if (parsed := source.parsed) is None:
        return values
    for step in (group, *steps):
        if not pa.types.is_struct(parsed.type) or parsed.type.get_field_index(step) < 0:
            return values
        parsed = _walk(parsed, (step,))
    return pc.if_else(pc.is_valid(source.json), values, cast_or_null(parsed, values.type))


def _numpy(arrays: Sequence[pa.Array], kind: pa.DataType, missing: object) -> Numbers:
    return pc.fill_null(pa.concat_arrays([pa.nulls(0, kind), *arrays]), missing).to_numpy(zero_copy_only=False)


# --- reading JSON ----------------------------------------------------------------------------------------------------


def _read_json(source: Stats, schema: pa.Schema) -> dict[str, pa.Array]:
    """Read the fields of `schema` from one JSON object per file; a value that is missing or of another type is null."""
    if not len(source.texts):
        return {field.name: pa.nulls(0, field.type) for field in schema}
    try:
        read = _read_lines(source, schema)
    except pa.ArrowInvalid:
        # One odd value ("NaN" as a string, invalid JSON) stops Arrow's reader; Python's reader skips only that value.
        read = pa.Table.from_pylist([_object(text, schema) for text in source.texts.to_pylist()], schema)
    return {field.name: pa.concat_arrays(read[field.name].chunks) for field in schema}


def _read_lines(source: Stats, schema: pa.Schema) -> pa.Table:
    if source.lines is None:
        raise pa.ArrowInvalid("a text of several lines")
    longest = pc.max(pc.binary_length(source.texts)).as_py()
    read = pyarrow.json.read_json(
        pa.BufferReader(source.lines),
        read_options=pyarrow.json.ReadOptions(block_size=max(4 * 1024**2, 2 * longest)),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    # Each text begins an object, so as many rows as texts means one object in each of them.
    if read.num_rows != len(source.texts):
        raise pa.ArrowInvalid("a text of several objects")
    return read


class _Number(str):
    """The text of a JSON number that isn't an integer."""


_DECODER = json.JSONDecoder(parse_float=_Number, parse_constant=_Number)


def _object(text: str, schema: pa.Schema) -> dict[str, Any]:
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return {}
    return _pick(value, pa.struct(list(schema))) or {}


def _pick(value: Json, kind: pa.DataType) -> Json:
    """Return the value if it fits the type, else None."""
    try:
        if pa.types.is_struct(kind):
            return {part.name: _pick(value.get(part.name), part.type) for part in kind}
        if pa.types.is_large_string(kind):
            return value if type(value) is str and value.encode() is not None else None
        if pa.types.is_boolean(kind) or isinstance(value, bool):
            return value if pa.types.is_boolean(kind) and isinstance(value, bool) else None
        if pa.types.is_float64(kind):
            return float(value)
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(value), kind).as_py()
        return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None
    except (ValueError, TypeError, AttributeError, ArithmeticError, pa.ArrowException):
        return None


# --- sound bounds ----------------------------------------------------------------------------------------------------


def cast_or_null(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast the values that can be cast, and make the others null."""
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(values) <= 1 or pa.types.is_nested(values.type):
            return pa.nulls(len(values), kind)
        half = len(values) // 2
        return pa.concat_arrays([cast_or_null(values[:half], kind), cast_or_null(values[half:], kind)])


def _values(raw: pa.Array, kind: pa.DataType, side: int) -> pa.Array:
    return timestamps(raw, kind, side) if pa.types.is_timestamp(kind) else cast_or_null(raw, wide_type(kind))


def timestamps(texts: pa.Array, kind: pa.DataType, side: int) -> pa.Array:
    """Parse the log's timestamps, with or without a zone.

    An instant that is written without its zone may be in any zone from -12 to +14 hours, so the bound is moved outward
    by that much ("Partition Value Serialization").
    """
    if kind.tz is None:
        return cast_or_null(pc.replace_substring_regex(texts, r"(Z|\+00:?00)$", ""), kind)
    zoned = pc.match_substring_regex(texts, r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$")
    local = cast_or_null(pc.if_else(zoned, None, texts), TIMESTAMP_NTZ).cast(pa.int64())
    moved = pc.add(local, (12 if side > 0 else -14) * 3_600_000_000).cast(kind)
    return pc.coalesce(cast_or_null(pc.if_else(zoned, texts, None), kind), moved)


def _outward(values: pa.Array, leaf: DeltaLeaf, side: int) -> pa.Array:
    """Move bounds outward by as much as writers may have rounded, and give them the column's type."""
    if pa.types.is_string(leaf.type):
        return _outward_strings(values, side)
    if pa.types.is_floating(leaf.type):
        return _outward_floats(values, leaf, side)
    if pa.types.is_decimal(leaf.type):
        bounds = (_outward_decimal(value, leaf.type, side) for value in values.to_pylist())
        return pa.array(bounds, leaf.type, size=len(values))
    if pa.types.is_timestamp(leaf.type) and side > 0:
        # "Timestamp columns are truncated down to milliseconds": only further digits prove that this one was not.
        micros = values.cast(pa.int64())
        whole = pc.equal(pc.multiply(pc.divide(micros, 1000), 1000), micros)
        return pc.if_else(whole, pc.add(micros, 999), micros).cast(leaf.type)
    return values


def _outward_strings(values: pa.Array, side: int) -> pa.Array:
    """Allow for "String columns are cut off at a fixed prefix length", 32 characters in practice.

    A truncated minimum is still a lower bound. A maximum that may be truncated becomes its first 32 characters and the
    byte 0xFF, which is above all UTF-8 texts with that prefix. Bytes are never fewer than characters.
    """
    as_bytes = values.cast(pa.large_binary())
    if side < 0:
        return as_bytes
    prefix = pc.utf8_slice_codeunits(values, 0, 32).cast(pa.large_binary())
    nothing, last = (pa.scalar(end, pa.large_binary()) for end in (b"", b"\xff"))
    above = pc.binary_join_element_wise(prefix, nothing, last)
    return pc.if_else(pc.greater_equal(pc.binary_length(as_bytes), 32), above, as_bytes)


def _outward_floats(values: pa.Array, leaf: DeltaLeaf, side: int) -> pa.Array:
    """Move floats by one step of their precision, for texts that were rounded twice; doubles round-trip."""
    numbers = values.to_numpy(zero_copy_only=False)
    if pa.types.is_float32(leaf.type) or leaf.was_float:
        with np.errstate(over="ignore"):
            numbers = np.nextafter(numbers.astype(np.float32), np.float32(side * np.inf))
    return pa.array(numbers.astype(leaf.type.to_pandas_dtype()), leaf.type, mask=np.isnan(numbers))


_EXACT = Context(prec=100)


def _outward_decimal(value: Decimal | None, kind: pa.DataType, side: int) -> Decimal | None:
    """Round outward to the column's scale; some writers print decimals through doubles, which hold 15 digits."""
    if value is None:
        return None
    if kind.precision > 15:
        margin = _EXACT.multiply(value.copy_abs(), Decimal(2) ** -48)
        value = _EXACT.add(value, margin.copy_sign(Decimal(side)))
    try:
        step = Decimal(1).scaleb(-kind.scale)
        bound = value.quantize(step, ROUND_CEILING if side > 0 else ROUND_FLOOR, _EXACT)
    except DecimalException:
        return None
    return bound if bound.copy_abs() < Decimal(10) ** (kind.precision - kind.scale) else None
