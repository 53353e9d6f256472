"""Footers, page indexes and folders of Parquet files: bounds are sound, and hostile bytes are an error, not a crash."""

import datetime as dt
import math
import struct
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.arrow_values import VALUES, arrays, order_key
from zonal.errors import TableError
from zonal.layouts.layout import Layout
from zonal.parquet import thrift
from zonal.parquet.footer import read_footer, row_group_bounds
from zonal.parquet.page_index import page_bounds
from zonal.parquet.statistics import ParquetLeaf, trusted
from zonal.snapshot import UNKNOWN, Physical
from zonal.tables.parquet.folder import ParquetTable, file_bounds

ROWS = 5
PAGE_ROWS = 2
X = Physical("x")


def stored(table, **options):
    """Write a table into memory, with small row groups and pages."""
    sink = pa.BufferOutputStream()
    options = {"row_group_size": ROWS, "max_rows_per_page": PAGE_ROWS, "write_batch_size": 1, **options}
    pq.write_table(table, sink, write_page_index=True, **options)
    return pa.BufferReader(sink.getvalue())


def column(values, kind, **options):
    return stored(pa.table({"x": pa.array(values, kind)}), **options)


def whole(values, kind, table_kind=None, **options):
    """Bounds of a column in one row group, as Python values."""
    file = column(values, kind, row_group_size=100, **options)
    bounds = row_group_bounds(read_footer(file), X, table_kind or kind)
    return bounds.lower[0].as_py(), bounds.upper[0].as_py()


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def assert_within(bounds, units):
    assert len(bounds.lower) == len(bounds.upper) == len(bounds.nulls) == len(bounds.nans) == len(units)
    for i, values in enumerate(units):
        lower, upper = bounds.lower[i].as_py(), bounds.upper[i].as_py()
        known = [order_key(value) for value in values if value is not None and not is_nan(value)]
        assert lower is None or all(order_key(lower) <= key for key in known), "a value is below its lower bound"
        assert upper is None or all(key <= order_key(upper) for key in known), "a value is above its upper bound"
        assert bounds.nulls[i] in (UNKNOWN, sum(value is None for value in values)), "nulls are counted wrongly"
        assert bounds.nans[i] in (UNKNOWN, sum(map(is_nan, values))), "NaNs are counted wrongly"


@settings(max_examples=300)
@given(arrays(), st.booleans(), st.booleans())
def test_every_value_lies_within_its_bounds(array, use_dictionary, store_decimal_as_integer):
    file = stored(
        pa.table({"x": array}), use_dictionary=use_dictionary, store_decimal_as_integer=store_decimal_as_integer
    )
    footer = read_footer(file)
    values = array.to_pylist()
    groups = [values[i : i + ROWS] for i in range(0, max(len(values), 1), ROWS)]
    assert_within(row_group_bounds(footer, X, array.type), groups)
    assert_within(file_bounds([footer], X, array.type), [values])
    for number, group in enumerate(groups):
        pages = page_bounds(file, footer, number, X, array.type)
        if pages is not None:
            starts = [*pages.first_rows.tolist(), len(group)]
            assert_within(pages.bounds, [group[a:b] for a, b in pairwise(starts)])
            assert (pages.sizes > 0).all()


@pytest.mark.parametrize("kind", [k for k in VALUES if not pa.types.is_duration(k)], ids=str)
def test_bounds_and_pages_are_there_wherever_pyarrow_writes_them(kind):
    values = [0, 1, 2] if pa.types.is_integer(kind) else None
    example = {
        "bool": [False, True, True], "halffloat": [0.5, 1.5, 2.5], "float": [0.5, 1.5, 2.5], "double": [0.5, 1.5, 2.5],
    }  # fmt: skip
    if pa.types.is_decimal(kind):
        values = [Decimal("-1.50"), Decimal("0.25"), Decimal("7.00")]
    elif pa.types.is_date(kind):
        values = [dt.date(1900, 1, 1), dt.date(1970, 1, 1), dt.date(2026, 1, 1)]
    elif pa.types.is_time(kind):
        values = [dt.time(0), dt.time(1, 2, 3), dt.time(23, 59, 59)]
    elif pa.types.is_timestamp(kind):
        zone = dt.timezone.utc if kind.tz else None
        values = [dt.datetime(year, 1, 1, tzinfo=zone) for year in (1901, 1970, 2026)]
    elif isinstance(kind, pa.UuidType):
        values = [bytes([i]) * 16 for i in (0, 1, 255)]
    elif pa.types.is_dictionary(kind):
        values = [1, 2, 3] if pa.types.is_integer(kind.value_type) else ["a", "b", "c"]
    elif values is None:
        fixed = pa.types.is_fixed_size_binary(kind)
        values = example.get(str(kind)) or ([b"aaaa", b"bbbb", b"\xff\0\0\0"] if fixed else ["a", "b", "ü"])
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    array = pa.array(values, plain)
    file = stored(pa.table({"x": array.dictionary_encode().cast(kind) if plain is not kind else array}))
    footer = read_footer(file)
    low, high = order_key(array[0].as_py()), order_key(array[2].as_py())
    pages = page_bounds(file, footer, 0, X, kind)
    for bounds in (row_group_bounds(footer, X, kind), file_bounds([footer], X, kind)):
        assert order_key(bounds.lower[0].as_py()) == low
        assert order_key(bounds.upper[0].as_py()) == high
    assert order_key(pages.bounds.lower[0].as_py()) == low
    assert order_key(pages.bounds.upper[-1].as_py()) == high


@settings(max_examples=60)
@given(arrays(pa.int64()), arrays(pa.string()), arrays(pa.float64()))
def test_bounds_are_what_pyarrow_reads(numbers, texts, floats):
    for array in (numbers, texts, floats):
        file = stored(pa.table({"x": array}))
        bounds = row_group_bounds(read_footer(file), X, array.type)
        metadata = pq.ParquetFile(file).metadata
        for i in range(metadata.num_row_groups):
            theirs = metadata.row_group(i).column(0).statistics
            lower, upper = bounds.lower[i].as_py(), bounds.upper[i].as_py()
            if theirs is not None and theirs.has_min_max:
                assert (order_key(lower), order_key(upper)) == (order_key(theirs.min), order_key(theirs.max))
            assert bounds.nulls[i] == (0 if theirs is None else theirs.null_count)


DAY = dt.date(2026, 3, 1)
MOMENT = dt.datetime(2026, 3, 1, 12, 0, 0, 123_456)


@pytest.mark.parametrize(
    ("value", "kind", "table_kind", "lower", "upper"),
    [
        (-5, pa.int32(), pa.int64(), -5, -5),
        (255, pa.uint8(), pa.int64(), 255, 255),
        (2**64 - 1, pa.uint64(), pa.uint64(), 2**64 - 1, 2**64 - 1),
        (2**64 - 1, pa.uint64(), pa.int64(), None, None),
        (5, pa.int64(), pa.decimal128(20, 2), Decimal("5.00"), Decimal("5.00")),
        (2**53 + 1, pa.int64(), pa.float64(), 2.0**53 - 1, 2.0**53 + 2),
        (1.5, pa.float32(), pa.float64(), 1.5, 1.5),
        (1.5, pa.float64(), pa.float32(), None, None),
        (Decimal("1.25"), pa.decimal128(9, 2), pa.decimal128(18, 2), Decimal("1.25"), Decimal("1.25")),
        (Decimal("1.25"), pa.decimal128(9, 2), pa.decimal128(38, 4), Decimal("1.2500"), Decimal("1.2500")),
        (Decimal("-1.25"), pa.decimal128(9, 2), pa.decimal128(9, 1), Decimal("-1.3"), Decimal("-1.2")),
        (Decimal("999.25"), pa.decimal128(9, 2), pa.decimal128(3, 2), None, None),
        (DAY, pa.date32(), pa.timestamp("us"), dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 1)),
        (DAY, pa.date32(), pa.timestamp("us", "UTC"), None, None),
        (DAY, pa.date32(), pa.date64(), DAY, DAY),
        (MOMENT, pa.timestamp("us"), pa.timestamp("ns"), MOMENT, MOMENT),
        (MOMENT, pa.timestamp("us"), pa.timestamp("s"), dt.datetime(2026, 3, 1, 12), dt.datetime(2026, 3, 1, 12, 0, 1)),
        (MOMENT, pa.timestamp("us"), pa.timestamp("us", "UTC"), None, None),
        (dt.datetime(9000, 1, 1), pa.timestamp("us"), pa.timestamp("ns"), None, None),
        (dt.time(1, 2, 3, 4), pa.time64("us"), pa.time32("ms"), dt.time(1, 2, 3), dt.time(1, 2, 3, 1000)),
        ("ä", pa.string(), pa.large_string(), "ä".encode(), "ä".encode()),
        ("ä", pa.string(), pa.binary(), "ä".encode(), "ä".encode()),
        (b"ab", pa.binary(2), pa.binary(3), None, None),
        (7, pa.int64(), pa.string(), None, None),
        ("7", pa.string(), pa.int64(), None, None),
        (True, pa.bool_(), pa.int64(), None, None),
        (7, pa.int64(), pa.list_(pa.int64()), None, None),
    ],
)
def test_a_files_type_is_converted_to_the_tables_or_gives_no_bound(value, kind, table_kind, lower, upper):
    assert whole([value], kind, table_kind) == (lower, upper)


def test_nan_and_zeros():
    assert whole([math.nan, 1.0], pa.float64()) == (1.0, 1.0), "pyarrow leaves NaN out"
    lower, upper = whole([0.0, -0.0], pa.float64())
    assert math.copysign(1, lower) == -1
    assert math.copysign(1, upper) == 1
    footer = read_footer(column([1.0, math.nan], pa.float32()))
    assert row_group_bounds(footer, X, pa.float32()).nans.tolist() in ([UNKNOWN], [1])


def test_all_nulls_some_nulls_and_no_stats():
    table = pa.table({
        "all_nulls": pa.nulls(4, pa.int64()),
        "some_nulls": [1, None, 3, None],
        "no_stats": [1, 2, 3, 4],
    })  # fmt: skip
    file = stored(table, write_statistics=["all_nulls", "some_nulls"])
    footer = read_footer(file)
    found = {name: row_group_bounds(footer, Physical(name), pa.int64()) for name in table.column_names}
    assert found["all_nulls"].nulls.tolist() == [4]
    assert found["all_nulls"].lower.null_count == 1
    assert found["some_nulls"].nulls.tolist() == [2]
    assert found["some_nulls"].upper.to_pylist() == [3]
    assert found["no_stats"].nulls.tolist() == [UNKNOWN]
    assert found["no_stats"].lower.null_count == 1
    pages = page_bounds(file, footer, 0, Physical("all_nulls"), pa.int64())
    assert pages.bounds.nulls.tolist() == [2, 2], "a page of nulls counts its rows"


def test_a_missing_column_is_unknown():
    file = column([1, 2], pa.int64())
    bounds = row_group_bounds(read_footer(file), Physical("y"), pa.float64())
    assert (bounds.lower.null_count, bounds.nulls.tolist(), bounds.nans.tolist()) == (1, [UNKNOWN], [UNKNOWN])
    assert page_bounds(file, read_footer(file), 0, Physical("y"), pa.int64()) is None


def test_columns_are_found_by_field_id_where_the_table_has_ids():
    fields = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(i)}) for i, name in ((7, "a"), (8, "b"))]
    footer = read_footer(stored(pa.table({"a": [1], "b": [2]}, pa.schema(fields))))
    assert footer.find(Physical("a", 8)).path == "b", "the id wins over the name"
    assert footer.find(Physical("a", 9)) is None
    assert footer.find(Physical("a")).path == "a"
    assert read_footer(column([1], pa.int64())).find(Physical("x", 9)) is None, "names may have changed"


def test_struct_leaves_are_columns_and_list_items_are_not():
    nested = pa.table({
        "geo": [{"lat": 1.5, "tags": ["a"]}, None],
        "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "a.b": [1, 2],
        "a": [{"b": 3}, {"b": 4}],
    })  # fmt: skip
    footer = read_footer(stored(nested))
    bounds = row_group_bounds(footer, Physical("geo.lat"), pa.float64())
    assert (bounds.upper.to_pylist(), bounds.nulls.tolist()) == ([1.5], [1])
    assert footer.find(Physical("geo.tags.list.element")) is None
    assert footer.find(Physical("map.key_value.key")) is None
    assert footer.find(Physical("a.b")) is None, "two columns have this path"


def test_int96_timestamps_have_no_bounds():
    file = column([MOMENT], pa.timestamp("us"), use_deprecated_int96_timestamps=True)
    footer = read_footer(file)
    assert footer.schema.leaves[0].physical == "INT96"
    assert row_group_bounds(footer, X, pa.timestamp("us")).lower.null_count == 1


def test_schemas_are_those_that_pyarrow_reads():
    kinds = [kind for kind in VALUES if not pa.types.is_dictionary(kind)]
    fields = [pa.field(f"c{i}", kind, nullable=bool(i % 2)) for i, kind in enumerate(kinds)]
    fields += [
        pa.field("list", pa.list_(pa.struct({"x": pa.int8(), "y": pa.list_(pa.string())}))),
        pa.field("map", pa.map_(pa.string(), pa.decimal128(20, 3))),
        pa.field("null", pa.null()),
    ]
    file = stored(pa.schema(fields).empty_table(), store_schema=False)
    assert read_footer(file).schema.arrow.equals(pq.read_schema(file))


def test_footers_larger_than_the_first_read():
    table = pa.table({f"column_{i:04}": [i] for i in range(1500)})
    file = stored(table)
    assert row_group_bounds(read_footer(file), Physical("column_1499"), pa.int64()).lower.to_pylist() == [1499]


def test_bounds_of_duckdbs_files(tmp_path):
    path = str(tmp_path / "duck.parquet")
    duckdb.sql("""
        SELECT i::INT AS i, i::UBIGINT AS u, 'name' || i AS s, (i - 500)::DECIMAL(30, 2) AS d, i / 4 AS f,
               DATE '2020-01-01' + i::INT AS day, to_timestamp(i) AS ts
        FROM range(1000) t(i)
    """).write_parquet(path)
    table = pq.read_table(path)
    footer = read_footer(pa.OSFile(path))
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        bounds = row_group_bounds(footer, Physical(name), kind)
        assert bounds.lower[0].is_valid, name
        assert_within(bounds, [table[name].to_pylist()])


# Footers made by hand: what no writer at hand does.


def encoded(value):
    """Encode a value in the compact protocol: dicts are structs, by field number."""
    if isinstance(value, dict):
        return b"".join(
            bytes([wire_of(item)]) + varint(2 * number) + (b"" if isinstance(item, bool) else encoded(item))
            for number, item in value.items()
        ) + b"\0"  # fmt: skip
    if isinstance(value, list):
        return bytes([0xF0 | (wire_of(value[0]) if value else 12)]) + varint(len(value)) + b"".join(map(encoded, value))
    return (
        varint(len(value)) + value
        if isinstance(value, bytes)
        else varint(value << 1 if value >= 0 else ~value << 1 | 1)
    )


def wire_of(value):
    return (1 if value else 2) if isinstance(value, bool) else {dict: 12, list: 9, bytes: 8, int: 6}[type(value)]


def varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def file_of(footer):
    data = footer if isinstance(footer, bytes) else encoded(footer)
    return pa.BufferReader(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1")


def handmade(statistics, *, element=None, orders=1, created_by=b"somebody", physical=2, rows=10):
    """One INT64 column `x`, unless told otherwise, with these statistics."""
    return {
        1: 2,
        2: [{4: b"root", 5: 1}, {1: physical, 3: 1, 4: b"x", **(element or {})}],
        3: rows,
        4: [{1: [{2: 0, 3: {1: physical, 5: rows, 7: 100, 9: 4, 12: statistics}}], 2: 100, 3: rows}],
        6: created_by,
        **({7: [{orders: {}}]} if orders else {}),
    }


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


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no Parquet file"),
        (b"PAR1", "no Parquet file"),
        (b"a text that is long enough", "no Parquet file"),
        (b"PAR1\0\0\0\0\xff\xff\xff\xffPAR1", "Corrupt footer"),
        (b"PAR1\0\0\0\0\1\0\0\0PAR1", "Corrupt footer: .* is missing"),
        (b"PAR1\0\0\0\0\1\0\0\0PARE", "encrypted"),
    ],
)
def test_what_is_no_parquet_file_is_an_error(data, message):
    with pytest.raises(TableError, match=message):
        read_footer(pa.BufferReader(data))


@pytest.mark.parametrize(
    "footer",
    [
        b"\x19" * 100_000,
        b"\x1c" * 100_000,
        b"\x19\xfc\xff\xff\xff\xff\x0f",
        b"\x18\xff\xff\xff\xff\x7f",
        b"\x16" + b"\xff" * 50,
        b"\x1b\xff\xff\xff\xff\x0f\x11",
        handmade({}) | {2: [{4: b"root", 5: 1}]},
        handmade({}) | {2: [{4: b"root", 5: 2**40}]},
        handmade({}) | {2: [{4: b"root", 5: -1}]},
        handmade({}) | {2: []},
        handmade({}) | {2: [{4: b"g", 5: 1}] * 500 + [{1: 2, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {1: 99, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {1: 7, 2: 2**40, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {1: 1, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {4: b"g" * 300_000, 5: 5000}, *[{1: 2, 4: b"x"}] * 5000]},
        handmade({}) | {3: 11},
        handmade({}) | {4: [{1: [], 2: 0, 3: 10}]},
        handmade({}, rows=-1),
        handmade({}) | {3: b"ten"},
    ],
)
def test_hostile_footers_are_corrupt(footer):
    with pytest.raises(TableError, match="Corrupt footer"):
        read_footer(file_of(footer))


def sample():
    table = pa.table({
        "x": pa.array([1, None, 3, 4, 5, 6, 7], pa.int32()),
        "s": ["a", "b", None, "d", "e", "f", "g"],
        "d": pa.array([Decimal(i) for i in range(7)], pa.decimal128(20, 2)),
        "t": pa.array(range(7), pa.timestamp("us", "UTC")),
        "n": [{"f": float(i), "l": [i]} for i in range(7)],
    })  # fmt: skip
    return stored(table, bloom_filter_options={"x": {"ndv": 8}}).read_buffer(2**20).to_pybytes()


SAMPLE = sample()
FOOTER_BYTES = int.from_bytes(SAMPLE[-8:-4], "little") + 8


def read_everything(data):
    file = pa.BufferReader(data)
    footer = read_footer(file)
    for leaf in footer.schema.leaves:
        for kind in (leaf.kind, pa.int64(), pa.string()):
            row_group_bounds(footer, Physical(leaf.path), kind)
            file_bounds([footer], Physical(leaf.path), kind)
            for group in range(len(footer.row_groups)):
                page_bounds(file, footer, group, Physical(leaf.path), kind)


@settings(max_examples=400)
@given(st.lists(st.tuples(st.integers(1, 2 * FOOTER_BYTES), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_nothing_worse_than_a_table_error(flips):
    data = bytearray(SAMPLE)
    for from_end, byte in flips:
        data[-min(from_end, len(data))] = byte
    with suppress(TableError):
        read_everything(bytes(data))


@settings(max_examples=150)
@given(st.binary(max_size=200), st.integers(0, FOOTER_BYTES))
def test_any_bytes_as_a_footer_are_nothing_worse_than_a_table_error(noise, cut):
    for footer in (noise, SAMPLE[-FOOTER_BYTES:-8][:cut] + noise):
        with suppress(TableError):
            read_everything(file_of(footer).read_buffer().to_pybytes())


def test_every_truncation_is_an_error():
    for length in [*range(0, len(SAMPLE), 97), len(SAMPLE) - 1]:
        with pytest.raises(TableError):
            read_footer(pa.BufferReader(SAMPLE[:length]))


NUMBERS = st.integers(-(2**63), 2**63 - 1)
THRIFT = st.recursive(
    st.one_of(st.booleans(), NUMBERS, st.binary(max_size=9), st.lists(NUMBERS, max_size=3)),
    lambda inner: st.dictionaries(st.integers(1, 300), inner, max_size=4),
)


@given(THRIFT)
def test_unknown_fields_are_skipped(value):
    data = encoded({1: 5, 7: value, 9: b"end"})
    reader = thrift.struct({1: ("first", thrift.integer), 9: ("last", thrift.binary)})
    assert thrift.decode(reader, data, what="struct") == {"first": 5, "last": b"end"}


# Tables.


def write(folder, name, table, **options):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return str(path)


def test_a_folder_is_a_table(tmp_path):
    write(tmp_path, "a.parquet", pa.table({"x": [1, 2, 3, 4], "s": ["a", None, "c", "d"]}), row_group_size=2)
    write(tmp_path, "deep/b.parquet", pa.table({"x": [None, None, 9], "s": ["x", "y", "z"]}), row_group_size=2)
    write(tmp_path, "c.parquet", pa.table({"x": pa.array([], pa.int64()), "s": pa.array([], pa.string())}))
    for hidden in ("_SUCCESS", ".a.parquet.crc", "_metadata", "_temporary/x.parquet"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_bytes(b"no")
    calls = []
    snapshot = ParquetTable(str(tmp_path)).snapshot(lambda *progress: calls.append(progress))
    files = snapshot.files
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert files.paths.to_pylist() == [str(tmp_path / name) for name in ("a.parquet", "c.parquet", "deep/b.parquet")]
    assert files.rows.tolist() == [4, 0, 3]
    assert files.partitions == ("",)
    assert files.bounds["x"].lower.to_pylist() == [1, None, 9], "a row group of nulls doesn't spoil the file's bound"
    assert files.bounds["x"].upper.to_pylist() == [4, None, 9]
    assert files.bounds["x"].nulls.tolist() == [0, 0, 2]
    assert files.bounds["s"].upper.to_pylist() == [b"d", None, b"z"]
    assert snapshot.schema == pa.schema({"x": pa.int64(), "s": pa.string()})
    assert (snapshot.format, snapshot.version, snapshot.problems) == ("parquet", None, ())
    assert "--into" in snapshot.blockers[0]


def test_a_row_group_without_bounds_spoils_the_files(tmp_path):
    path = write(tmp_path, "a.parquet", pa.table({"x": [1, 2]}), write_statistics=False)
    assert ParquetTable(path).snapshot().files.bounds["x"].lower.to_pylist() == [None]


def test_a_single_file_and_a_uri_are_tables(tmp_path):
    path = write(tmp_path, "with space.parquet", pa.table({"x": [1, 2]}))
    for location in (path, f"file://{path.replace(' ', '%20')}", f"file://{tmp_path}/"):
        table = ParquetTable(location)
        files = table.snapshot().files
        assert files.paths.to_pylist() == [path]
        with table.open_file(path) as file:
            assert pq.ParquetFile(file).metadata.num_rows == 2


def test_footers_are_read_once(tmp_path, monkeypatch):
    path = write(tmp_path, "a.parquet", pa.table({"x": [1, 2]}))
    table = ParquetTable(str(tmp_path))
    assert table.footer(path).rows == 2
    table.snapshot()
    monkeypatch.setattr(table, "open_file", None)
    assert table.footer(path).rows == 2


def test_hive_partitions_with_odd_names(tmp_path):
    odd = ["a b", "x/y", "p%q", "é=+", "", "50%25", None]
    for number, value in enumerate(odd):
        text = "__HIVE_DEFAULT_PARTITION__" if value is None else "".join(
            char if char.isalnum() and char.isascii() else "".join(f"%{byte:02X}" for byte in char.encode())
            for char in value
        )  # fmt: skip
        write(tmp_path, f"re%67ion={text}/{number}.parquet", pa.table({"x": [number]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    number_of = snapshot.files.bounds["x"].lower.to_pylist()
    bounds = snapshot.files.partition_bounds["region"]
    expected = [None if odd[i] is None else odd[i].encode() for i in number_of]
    assert bounds.lower.to_pylist() == bounds.upper.to_pylist() == expected
    assert bounds.nulls.tolist() == [1 if odd[i] is None else 0 for i in number_of]
    assert snapshot.partitioning == ("region",)
    assert snapshot.schema.field("region").type == pa.string()
    assert "region=x/y" in snapshot.files.partitions
    assert len(set(snapshot.files.partition.tolist())) == len(odd)


def test_hive_types_hold_for_the_whole_table(tmp_path):
    folders = ["day=2026-01-01/n=7/_m=1", "day=2026-01-02/n=-3/_m=a", "day=__HIVE_DEFAULT_PARTITION__/n=07"]
    for folder in folders:
        write(tmp_path, f"{folder}/x.parquet", pa.table({"x": [1], "n": ["not seven"]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    kinds = {"x": pa.int64(), "n": pa.int64(), "day": pa.date32(), "_m": pa.string()}
    assert dict(zip(snapshot.schema.names, snapshot.schema.types, strict=True)) == kinds
    found = snapshot.files.partition_bounds
    assert found["n"].lower.to_pylist() == [7, -3, 7]
    assert found["day"].upper.to_pylist() == [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None]
    assert found["_m"].nulls.tolist() == [0, 0, UNKNOWN], "a file outside of the key's folders could hold anything"
    assert set(snapshot.physical) == set(snapshot.files.bounds) == {"x"}, "a folder's value hides the file's"


def test_schemas_are_merged(tmp_path):
    write(tmp_path, "a.parquet", pa.table({"x": pa.array([1], pa.int32()), "only_a": [1.5], "Case": [1]}))
    write(tmp_path, "b.parquet", pa.table({"x": pa.array([2**40], pa.int64()), "case": [2]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    assert snapshot.schema.field("x").type == pa.int64()
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, 2**40]
    assert snapshot.files.bounds["only_a"].nulls.tolist() == [0, 1], "a column that a file lacks is null in all rows"
    assert snapshot.files.bounds["case"].nulls.tolist() == [UNKNOWN, 0], "some readers take Case for case"
    assert snapshot.problems == ()


def test_types_that_do_not_merge_are_a_problem(tmp_path):
    a = write(tmp_path, "a.parquet", pa.table({"x": [1], "y": [1]}))
    b = write(tmp_path, "b.parquet", pa.table({"x": ["one"], "y": [2]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    (problem,) = snapshot.problems
    assert all(part in problem for part in (a, b, "int64", "string", "'x'"))
    assert snapshot.schema.field("x").type == pa.int64()
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, None]
    assert snapshot.files.bounds["y"].lower.to_pylist() == [1, 2]


def test_a_corrupt_file_is_a_problem_and_never_skipped(tmp_path):
    write(tmp_path, "a.parquet", pa.table({"x": [1]}))
    whole_file = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole_file[:-20])
    (tmp_path / "c.parquet").write_bytes(b"")
    table = ParquetTable(str(tmp_path))
    snapshot = table.snapshot()
    assert [problem.split(":")[0] for problem in snapshot.problems] == [str(tmp_path / f"{n}.parquet") for n in "bc"]
    assert snapshot.files.rows.tolist() == [1, UNKNOWN, UNKNOWN]
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, None, None]
    assert snapshot.files.bounds["x"].nulls.tolist() == [0, UNKNOWN, UNKNOWN]
    with pytest.raises(TableError, match=r"b\.parquet"):
        table.footer(str(tmp_path / "b.parquet"))


def test_tables_that_are_not_there(tmp_path):
    write(tmp_path, "orders/a.parquet", pa.table({"x": [1]}))
    with pytest.raises(TableError, match="Did you mean 'orders'"):
        ParquetTable(str(tmp_path / "order")).snapshot()
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="no Parquet files"):
        ParquetTable(str(tmp_path / "empty")).snapshot()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.parquet").write_bytes(b"")
    with pytest.raises(TableError, match=r"can be read.*a\.parquet"):
        ParquetTable(str(tmp_path / "broken")).snapshot()
    with pytest.raises(TableError, match="doesn't know the storage nowhere://"):
        ParquetTable("nowhere://x/y")
    with pytest.raises(TableError, match="is no file of"):
        ParquetTable(str(tmp_path / "orders")).open_file(str(tmp_path / "orders2" / "a.parquet"))


def test_the_layout_that_the_files_agree_on(tmp_path):
    layout, other = Layout.parse("zorder(x, y)"), Layout.parse("hilbert(x, y)")
    columns = pa.table({"x": [1], "y": [2]})
    for name, metadata in (("a", layout.to_json()), ("b", layout.to_json()), ("c", None)):
        write(
            tmp_path,
            f"{name}.parquet",
            columns.replace_schema_metadata(metadata and {"zonal.layouts.layout": metadata}),
        )
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    assert snapshot.layout == layout
    assert snapshot.files.layout_ids.to_pylist() == [layout.id, layout.id, None]
    write(tmp_path, "d.parquet", columns.replace_schema_metadata({"zonal.layouts.layout": other.to_json()}))
    assert ParquetTable(str(tmp_path)).snapshot().layout is None
    write(tmp_path, "d.parquet", columns.replace_schema_metadata({"zonal.layouts.layout": "{no json"}))
    assert ParquetTable(str(tmp_path)).snapshot().files.layout_ids[3].as_py() is None


def test_sizes_and_rows_are_those_of_the_files(tmp_path):
    for number in range(40):
        write(tmp_path, f"{number:02}.parquet", pa.table({"x": np.arange(number)}))
    files = ParquetTable(str(tmp_path)).snapshot().files
    assert files.rows.tolist() == list(range(40))
    assert files.sizes.tolist() == [(tmp_path / f"{number:02}.parquet").stat().st_size for number in range(40)]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("ns")], ids=str)
def test_dates_of_the_julian_calendar_have_no_bounds(kind, tmp_path):
    """Spark moves dates before 1900 when it reads a file that says it was written the old way."""
    days = (
        [[-400_000, -30_000], [-30_000, 10], [0, 10]]
        if "ns" not in str(kind)
        else [[-30_000, -29_000], [-26_000, 1], [0, 10]]
    )
    unit = 1 if kind == pa.date32() else 86_400_000_000 * (1000 if "ns" in str(kind) else 1)
    for old in (False, True):
        told = {"org.apache.spark.legacyDateTime": ""} if old else {}
        values = (
            pa.array([day * unit for pair in days for day in pair])
            .cast(pa.int32() if unit == 1 else pa.int64())
            .cast(kind)
        )
        table = pa.table({"x": values}).replace_schema_metadata(told)
        path = tmp_path / f"{old}.parquet"
        pq.write_table(table, path, row_group_size=2, write_page_index=True, version="2.6")
        with pa.OSFile(str(path)) as file:
            footer = read_footer(file)
            groups = row_group_bounds(footer, Physical("x"), kind)
            assert groups.lower.is_null().to_pylist() == [old, old, False]
            assert page_bounds(file, footer, 0, Physical("x"), kind).bounds.upper.null_count == old
