"""Read a Parquet file's footer: its columns, its row groups and their statistics.

Nothing here trusts the file: a footer that contradicts itself or the file's size is a `TableError`, and statistics that
are known to be wrong, or whose order is not defined, are left out. Names of fields are those of parquet.thrift in
apache/parquet-format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.parquet import statistics as decode
from zonal.parquet import thrift
from zonal.parquet.schema import ParquetSchema, parse_schema
from zonal.parquet.statistics import NOTHING, PHYSICAL, ParquetLeaf, Range, Statistics
from zonal.parquet.thrift import binary, boolean, integer, list_of, struct, text
from zonal.snapshot import UNKNOWN, Bounds, Physical

TAIL = 64 * 1024
"""Bytes read from the end of a file; most footers fit, so that one read is enough."""

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_MARK = struct({})
_KEY_VALUE = struct({1: ("key", text), 2: ("value", text)})
_STATISTICS = struct({
    1: ("max", binary), 2: ("min", binary), 3: ("null_count", integer), 5: ("max_value", binary),
    6: ("min_value", binary), 7: ("max_exact", boolean), 8: ("min_exact", boolean), 9: ("nan_count", integer),
})  # fmt: skip
_COLUMN = struct({
    1: ("type", integer), 5: ("num_values", integer), 7: ("total_compressed_size", integer),
    9: ("data_page_offset", integer), 11: ("dictionary_page_offset", integer), 12: ("statistics", _STATISTICS),
    14: ("bloom_filter_offset", integer), 15: ("bloom_filter_length", integer),
})  # fmt: skip
_CHUNK = struct({
    1: ("file_path", text), 3: ("meta_data", _COLUMN), 4: ("offset_index_offset", integer),
    5: ("offset_index_length", integer), 6: ("column_index_offset", integer), 7: ("column_index_length", integer),
    8: ("crypto_metadata", _MARK),
})  # fmt: skip
_ROW_GROUP = struct({1: ("columns", list_of(_CHUNK)), 3: ("num_rows", integer), 6: ("total_compressed_size", integer)})
_ORDER = struct({1: ("type", _MARK), 2: ("ieee754", _MARK)})
_FILE = struct({
    2: ("schema", thrift.raw_list), 3: ("num_rows", integer), 4: ("row_groups", list_of(_ROW_GROUP)),
    5: ("key_value_metadata", list_of(_KEY_VALUE)), 6: ("created_by", text), 7: ("column_orders", list_of(_ORDER)),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Where a structure lies in the file; a length of 0 means unknown."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: the part of one column in one row group."""

    statistics: Statistics = NOTHING
    min_exact: bool | None = None
    """Whether the minimum is a value of the column; None where the file doesn't say."""
    max_exact: bool | None = None
    offset: int = UNKNOWN
    """Where the first page begins; the dictionary page, where there is one, is the first."""
    compressed_size: int = 0
    num_values: int = 0
    bloom_filter: ByteRange | None = None
    column_index: ByteRange | None = None
    offset_index: ByteRange | None = None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are stored together; `chunks` follow the order of the file's leaves."""

    rows: int
    compressed_size: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, eq=False)
class Footer:
    """The metadata of a file, from its footer."""

    size: int
    """Bytes of the whole file."""
    rows: int
    schema: ParquetSchema
    row_groups: tuple[RowGroup, ...]
    metadata: Mapping[str, str]
    created_by: str

    @property
    def has_julian_dates(self) -> bool:
        """Tell whether Spark wrote the file with the calendar that it used before version 3."""
        version = self.metadata.get("org.apache.spark.version", "3")
        return "org.apache.spark.legacyDateTime" in self.metadata or version.startswith(("1.", "2."))

    def find(self, physical: Physical) -> ParquetLeaf | None:
        """Return the column by its field id where one is given, else by its exact path.

        None where there is no such column, where two have that name, or where it lies below a list or a map. Where an
        id is given, the path is no substitute: columns may have been renamed since a file without ids was written.
        """
        if physical.field_id is not None:
            return self.schema.by_id.get(physical.field_id)
        return self.schema.by_path.get(physical.path)


def read_footer(file: pa.NativeFile, size: int | None = None) -> Footer:
    """Read and check a file's footer, in one read where it has less than 64 KiB.

    Any bytes give either a footer or a `TableError`.
    """
    size = file.size() if size is None else size
    return parse_footer(read_footer_bytes(file, size), size)


def read_footer_bytes(file: pa.NativeFile, size: int) -> bytes:
    """Read a footer without decoding it, so that threads can read many files while one thread decodes."""
    tail = read_span(file, max(size - TAIL, 0), min(size, TAIL))
    if len(tail) < 12 or tail[-4:] not in (_MAGIC, _ENCRYPTED):
        raise TableError(f"It is no Parquet file: {size:,} bytes that don't end with PAR1.")
    if tail[-4:] == _ENCRYPTED:
        raise TableError("Its footer is encrypted, and zonal has no keys: nothing is known of it.")
    length = int.from_bytes(tail[-8:-4], "little")
    if length > size - 12:
        raise TableError(f"Corrupt footer: it says that it has {length:,} bytes, and the file has {size:,}.")
    if length + 8 > len(tail):
        tail = read_span(file, size - length - 8, length + 8)
    return tail[-8 - length : -8]


def read_span(file: pa.NativeFile, offset: int, length: int) -> bytes:
    """Read bytes of a file, fewer at its end; raise a `TableError` where that fails."""
    try:
        return bytes(file.read_at(length, offset))
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"It can't be read: {error}") from error


def row_group_bounds(footer: Footer, physical: Physical, kind: pa.DataType) -> Bounds:
    """Return one column's bounds in every row group, as values of the table's type `kind`.

    A column that the file doesn't have, or whose type can't be converted soundly, has null bounds.
    """
    leaf, units, ranges = row_group_ranges(footer, physical, kind)
    return decode.bounds(leaf, kind, ranges, units)


def row_group_ranges(
    footer: Footer, physical: Physical, kind: pa.DataType
) -> tuple[ParquetLeaf | None, list[Statistics], list[Range]]:
    """Return one column's leaf, its statistics in every row group, and their decoded ranges."""
    leaf = footer.find(physical)
    if leaf is None:
        units = [NOTHING for _ in footer.row_groups]
    else:
        units = [group.chunks[leaf.index].statistics for group in footer.row_groups]
    ranges = decode.ranges(leaf, kind, units)
    return leaf, units, decode.without_julian(ranges, kind) if footer.has_julian_dates else ranges


def parse_footer(data: bytes, size: int) -> Footer:
    """Decode and check the bytes of a footer, from `read_footer_bytes`."""
    stored = thrift.decode(_FILE, data, what="footer")
    try:
        orders = tuple(next(iter(order), "") for order in stored.get("column_orders", ()))
        schema = parse_schema(stored["schema"], orders)
        created_by = stored.get("created_by", "")
        trust = [decode.trusted(leaf, created_by) for leaf in schema.leaves]
        groups = tuple(_row_group(group, schema.leaves, trust) for group in stored["row_groups"])
        rows = stored["num_rows"]
        metadata = {pair["key"]: pair.get("value", "") for pair in stored.get("key_value_metadata", ())}
    except KeyError as missing:
        raise TableError(f"Corrupt footer: {missing} is missing.") from None
    if rows != sum(group.rows for group in groups):
        raise TableError("Corrupt footer: the rows of its row groups don't add up to those of the file.")
    return Footer(size, rows, schema, groups, metadata, created_by)


def _row_group(stored: Mapping[str, Any], leaves: Sequence[ParquetLeaf], trust: Sequence[bool]) -> RowGroup:
    columns, rows = stored["columns"], stored["num_rows"]
    if rows < 0 or len(columns) != len(leaves):
        raise TableError(f"Corrupt footer: a row group has {rows} rows and {len(columns)} of {len(leaves)} columns.")
    chunks = tuple(_chunk(column, leaf, rows, ok) for column, leaf, ok in zip(columns, leaves, trust, strict=True))
    total = stored.get("total_compressed_size", 0)
    return RowGroup(rows, total if total > 0 else sum(chunk.compressed_size for chunk in chunks), chunks)


def _chunk(stored: Mapping[str, Any], leaf: ParquetLeaf, rows: int, trust: bool) -> Chunk:
    column = stored.get("meta_data")
    if column is None:  # the column is encrypted with its own key
        return Chunk()
    if not 0 <= column["type"] < len(PHYSICAL) or PHYSICAL[column["type"]] != leaf.physical:
        raise TableError(f"Corrupt footer: a row group has column {quoted(leaf.path)} in another type than the schema.")
    # Spans of an encrypted column hold ciphertext, those of a `_metadata` file lie in another file.
    here = "crypto_metadata" not in stored and "file_path" not in stored
    statistics = column.get("statistics", {})
    return Chunk(
        _statistics(statistics, leaf, rows, trust),
        statistics.get("min_exact"),
        statistics.get("max_exact"),
        column.get("dictionary_page_offset") or column["data_page_offset"],
        max(column["total_compressed_size"], 0),
        column["num_values"],
        _span(column, "bloom_filter") if here else None,
        _span(stored, "column_index") if here else None,
        _span(stored, "offset_index") if here else None,
    )


def _span(stored: Mapping[str, Any], name: str) -> ByteRange | None:
    offset = stored.get(f"{name}_offset", 0)
    return ByteRange(offset, max(stored.get(f"{name}_length", 0), 0)) if offset > 0 else None


def _statistics(stored: Mapping[str, Any], leaf: ParquetLeaf, rows: int, trust: bool) -> Statistics:
    """Choose the bounds whose order is known, and counts that are possible."""
    lower = upper = None
    if leaf.ordered and ("min_value" in stored or "max_value" in stored):
        lower, upper = stored.get("min_value"), stored.get("max_value")
    elif _was_signed(leaf):
        lower, upper = stored.get("min"), stored.get("max")
    nulls = stored.get("null_count", UNKNOWN if leaf.nullable and rows else 0)
    nans = stored.get("nan_count", UNKNOWN if rows else 0)
    return Statistics(
        lower if trust else None,
        upper if trust else None,
        nulls if 0 <= nulls <= rows else UNKNOWN,
        nans if 0 <= nans <= rows else UNKNOWN,
    )


def _was_signed(leaf: ParquetLeaf) -> bool:
    """Tell whether the deprecated `min` and `max`, which compare signed, are right for this column."""
    numbers = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
    return leaf.physical in numbers and not pa.types.is_unsigned_integer(leaf.kind)
