"""Read page indexes: the bounds of every page of a column, where the writer stored them.

A chunk's ColumnIndex has the bounds and its OffsetIndex the offsets; see PageIndex.md in apache/parquet-format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from zonal.errors import TableError
from zonal.parquet import statistics as decode
from zonal.parquet import thrift
from zonal.parquet.footer import ByteRange, Footer, read_span
from zonal.parquet.statistics import NOTHING, ParquetLeaf, Statistics
from zonal.parquet.thrift import binary, integer, list_of, listed_boolean, struct
from zonal.snapshot import UNKNOWN, Bounds, Physical
from zonal.values.arrays import Int64Array

_COLUMN_INDEX = struct({
    1: ("null_pages", list_of(listed_boolean)), 2: ("min_values", list_of(binary)), 3: ("max_values", list_of(binary)),
    5: ("null_counts", list_of(integer)), 8: ("nan_counts", list_of(integer)),
})  # fmt: skip
_LOCATION = struct({1: ("offset", integer), 2: ("compressed_page_size", integer), 3: ("first_row_index", integer)})
_OFFSET_INDEX = struct({1: ("page_locations", list_of(_LOCATION))})


@dataclass(frozen=True, eq=False)
class Pages:
    """The pages of one column in one row group."""

    bounds: Bounds
    first_rows: Int64Array
    """The first row of each page, counted in the row group."""
    sizes: Int64Array
    """Compressed bytes of each page, its header included."""


def page_bounds(
    file: pa.NativeFile, footer: Footer, row_group: int, physical: Physical, kind: pa.DataType
) -> Pages | None:
    """Return the pages of a column in a row group with their bounds; None where the file has no page index.

    Bounds hold for every row from a page's first to the next page's first. An index that contradicts the footer is a
    `TableError`.
    """
    leaf = footer.find(physical)
    if leaf is None:
        return None
    group = footer.row_groups[row_group]
    chunk = group.chunks[leaf.index]
    if chunk.column_index is None or chunk.offset_index is None:
        return None
    columns = thrift.decode(_COLUMN_INDEX, _read(file, footer, chunk.column_index), what="page index")
    places = thrift.decode(_OFFSET_INDEX, _read(file, footer, chunk.offset_index), what="page index")
    try:
        locations = places["page_locations"]
        first_rows = [location["first_row_index"] for location in locations]
        sizes = [location["compressed_page_size"] for location in locations]
        units = _units(columns, _page_rows(first_rows, group.rows), leaf, footer.created_by)
    except KeyError as missing:
        raise TableError(f"Corrupt page index: {missing} is missing.") from None
    ranges = decode.ranges(leaf, kind, units)
    if footer.has_julian_dates:
        ranges = decode.without_julian(ranges, kind)
    return Pages(
        decode.bounds(leaf, kind, ranges, units),
        np.array(first_rows, np.int64),
        np.array(sizes, np.int64),
    )


def _read(file: pa.NativeFile, footer: Footer, span: ByteRange) -> bytes:
    if not span.length or span.length > footer.size - span.offset:
        raise TableError("Corrupt page index: it lies outside of the file.")
    return read_span(file, span.offset, span.length)


def _page_rows(first_rows: Sequence[int], rows: int) -> list[int]:
    """Return the number of rows of each page; check that the pages cover the row group."""
    ends = [*first_rows[1:], rows]
    counts = [end - first for first, end in zip(first_rows, ends, strict=False)]
    if (first_rows and first_rows[0] != 0) or (rows and not first_rows) or any(count < 0 for count in counts):
        raise TableError("Corrupt page index: its pages don't cover the row group.")
    return counts


def _units(columns: thrift.Struct, rows: Sequence[int], leaf: ParquetLeaf, created_by: str) -> list[Statistics]:
    lower, upper, empty = columns["min_values"], columns["max_values"], columns["null_pages"]
    unknown = [UNKNOWN] * len(rows)
    nulls: list[Any] = columns.get("null_counts") or (unknown if leaf.nullable else [0] * len(rows))
    nans: list[Any] = columns.get("nan_counts") or unknown
    if any(len(values) != len(rows) for values in (lower, upper, empty, nulls, nans)):
        raise TableError("Corrupt page index: its lists have different lengths.")
    usable = leaf.ordered and decode.trusted(leaf, created_by)
    return [
        _unit(lower[i], upper[i], rows=rows[i], nulls=nulls[i], nans=nans[i], empty=empty[i], usable=usable)
        for i in range(len(rows))
    ]


def _unit(lower: bytes, upper: bytes, *, rows: int, nulls: int, nans: int, empty: bool, usable: bool) -> Statistics:
    if empty:  # the lists hold empty placeholders for a page of nulls
        # A page whose null count says otherwise may hold NaN, which have no bounds either.
        return Statistics(nulls=rows, nans=0) if nulls in (rows, UNKNOWN) else NOTHING
    nulls = nulls if 0 <= nulls <= rows else UNKNOWN
    nans = nans if 0 <= nans <= rows else UNKNOWN
    return Statistics(lower, upper, nulls, nans) if usable else Statistics(nulls=nulls, nans=nans)
