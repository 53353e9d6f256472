"""Statistics in footers and page indexes of other writers are used only where they are sound."""

import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from support.parquet_footers import encoded, file_of, handmade
from zonal.errors import TableError
from zonal.parquet.footer import read_footer, row_group_bounds
from zonal.parquet.page_index import page_bounds
from zonal.parquet.statistics import ParquetLeaf, trusted
from zonal.snapshot import UNKNOWN, Physical
from zonal.tables.parquet.folder import file_bounds

X = Physical("x")


def handmade_bounds(statistics, kind=None, **options):
    bounds = row_group_bounds(read_footer(file_of(handmade(statistics, **options))), X, kind or pa.int64())
    return bounds.lower[0].as_py(), bounds.upper[0].as_py(), bounds.nulls[0]


def i64(number):
    return struct.pack("<q", number)


OLD = {1: i64(9), 2: i64(-9), 3: 1}
NEW = {5: i64(7), 6: i64(-7), 3: 1}


def test_new_statistics_need_an_order_and_old_ones_a_sign():
    assert handmade_bounds(OLD | NEW) == (-7, 7, 1)
    assert handmade_bounds(OLD | NEW, orders=0) == (-9, 9, 1), "without column orders, min_value means nothing"
    assert handmade_bounds(NEW, orders=0) == (None, None, 1)
    assert handmade_bounds(NEW, orders=2) == (None, None, 1), "IEEE 754 order is for floats"
    assert handmade_bounds(NEW, orders=9) == (None, None, 1), "an order of a later version"
    unsigned = {10: {10: {1: 64, 2: False}}}
    assert handmade_bounds(OLD, pa.uint64(), element=unsigned) == (None, None, 1)
    text = {10: {1: {}}}
    assert handmade_bounds({1: b"z", 2: b"a"}, pa.string(), element=text, physical=6) == (None, None, UNKNOWN)
    assert handmade_bounds({5: b"z", 6: b"a"}, pa.string(), element=text, physical=6) == (b"a", b"z", UNKNOWN)


def test_statistics_that_cannot_be_true_are_left_out():
    assert handmade_bounds({5: i64(1), 6: i64(2)}) == (None, None, UNKNOWN), "the lower bound is above the upper"
    assert handmade_bounds({5: b"abc", 6: i64(2), 3: 11}) == (2, None, UNKNOWN), "three bytes are no INT64"
    assert handmade_bounds({3: -1}) == (None, None, UNKNOWN)
    assert handmade_bounds({}, element={3: 0}) == (None, None, 0), "a required column has no nulls"
    nan = struct.pack("<d", math.nan)
    floats = {5: nan, 6: struct.pack("<d", 1.0)}
    assert handmade_bounds(floats, pa.float64(), physical=5) == (None, None, UNKNOWN)


def test_a_minimum_of_zero_admits_minus_zero():
    zeros = {5: struct.pack("<d", -0.0), 6: struct.pack("<d", 0.0)}
    lower, upper, _ = handmade_bounds(zeros, pa.float64(), physical=5)
    assert (math.copysign(1, lower), math.copysign(1, upper)) == (-1, 1)


def indexed(first_rows, *, lower=(1, 5), upper=(4, 9), nulls=None, empty=(False, False), physical=2):
    """The handmade file of ten rows, with a page index."""
    columns = {1: list(empty), 2: list(map(i64, lower)), 3: list(map(i64, upper))}
    column_index = encoded_index(columns | ({5: nulls} if nulls else {}))
    offset_index = encoded({1: [{1: 4, 2: 50, 3: row} for row in first_rows]})
    footer = handmade(NEW, physical=physical)
    chunk = footer[4][0][1][0]
    chunk |= {4: 4, 5: len(offset_index), 6: 4 + len(offset_index), 7: len(column_index)}
    data = encoded(footer)
    return b"PAR1" + offset_index + column_index + data + len(data).to_bytes(4, "little") + b"PAR1"


def encoded_index(columns):
    """Booleans in a list are bytes of their own, unlike those in fields."""
    flags = bytes([0x19, len(columns[1]) << 4 | 2, *(1 if flag else 2 for flag in columns[1])])
    rest = {number: value for number, value in columns.items() if number != 1}
    return flags + encoded(rest)


def handmade_pages(data, kind=None):
    file = pa.BufferReader(data)
    return page_bounds(file, read_footer(file), 0, X, kind or pa.int64())


def test_page_indexes_that_contradict_the_footer_are_corrupt():
    pages = handmade_pages(indexed([0, 4], nulls=[1, 2]))
    assert (pages.bounds.lower.to_pylist(), pages.bounds.upper.to_pylist()) == ([1, 5], [4, 9])
    assert (pages.bounds.nulls.tolist(), pages.first_rows.tolist(), pages.sizes.tolist()) == ([1, 2], [0, 4], [50, 50])
    assert handmade_pages(indexed([0, 4])).bounds.nulls.tolist() == [UNKNOWN, UNKNOWN]
    assert handmade_pages(indexed([0, 4], nulls=[5, 2])).bounds.nulls.tolist() == [UNKNOWN, 2], "more nulls than rows"
    for first_rows in ([1, 4], [0, 11], [0, -1], [0], [0, 4, 5]):
        with pytest.raises(TableError, match="Corrupt page index"):
            handmade_pages(indexed(first_rows))


def test_an_empty_page_that_counts_too_few_nulls_may_hold_nan():
    data = indexed([0, 4], nulls=[4, 2], empty=(True, True), physical=5)
    pages = handmade_pages(data, pa.float64())
    assert pages.bounds.nulls.tolist() == [4, UNKNOWN]
    assert pages.bounds.nans.tolist() == [0, UNKNOWN]
    assert pages.bounds.lower.null_count == 2


def test_float_statistics_with_a_count_of_nans():
    one = struct.pack("<d", 1.0)
    footer = read_footer(file_of(handmade({3: 2, 5: one, 6: one, 9: 3}, physical=5, orders=2)))
    bounds = row_group_bounds(footer, X, pa.float64())
    assert (bounds.lower.to_pylist(), bounds.nans.tolist()) == ([1.0], [3])
    all_nan = read_footer(file_of(handmade({3: 2, 9: 8}, physical=5)))
    both = file_bounds([all_nan], X, pa.float64())
    assert (both.nulls.tolist(), both.nans.tolist()) == ([2], [8])


def test_converted_types_and_unknown_annotations():
    assert handmade_bounds(NEW, pa.timestamp("us", "UTC"), element={6: 10})[0].microsecond == 999993
    big = {5: b"\x01\x00", 6: b"\xff"}
    decimal = {6: 5, 7: 1, 8: 6}
    spark = b"parquet-mr version 1.15.2 (build x)"
    expected = (Decimal("-0.1"), Decimal("25.6"), UNKNOWN)
    assert handmade_bounds(big, pa.decimal128(6, 1), element=decimal, physical=6, created_by=spark) == expected
    assert handmade_bounds(big, pa.decimal128(6, 1), element=decimal, physical=6) == (None, None, UNKNOWN)
    assert handmade_bounds(NEW, pa.int64(), element={10: {99: {}}}) == (None, None, 1), "a type of a later version"
    assert handmade_bounds(NEW, pa.int64(), element={6: 21}) == (None, None, 1), "intervals have no order"
    assert handmade_bounds(NEW, pa.int64(), element={10: {5: {1: 80, 2: 90}}}) == (None, None, 1)


@pytest.mark.parametrize(
    ("created_by", "text", "decimal"),
    [
        ("parquet-mr version 1.6.0 (build 1)", False, False),
        ("parquet-mr version 1.9.1", False, False),
        ("parquet-mr version 1.10.0", True, True),
        ("parquet-cpp version 1.2.9", False, False),
        ("parquet-cpp version 1.5.1-SNAPSHOT", True, False),
        ("parquet-cpp-arrow version 26.0.0", True, True),
        ("Polars", True, False),
        ("DuckDB version v2.0.0", True, True),
        ("", True, True),
    ],
)
def test_writers_with_wrong_statistics_of_bytes(created_by, text, decimal):
    fixed = {"length": 4, "field_id": None, "nullable": True, "repeated": False, "ordered": True}
    assert trusted(ParquetLeaf("x", 0, "BYTE_ARRAY", pa.string(), **fixed), created_by) == text
    assert trusted(ParquetLeaf("x", 0, "FIXED_LEN_BYTE_ARRAY", pa.decimal128(9), **fixed), created_by) == decimal
    assert trusted(ParquetLeaf("x", 0, "INT64", pa.int64(), **fixed), created_by)
