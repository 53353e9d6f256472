"""Bounds in the footers and page indexes that pyarrow and DuckDB write are sound."""

import datetime as dt
import math
from decimal import Decimal
from itertools import pairwise

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.arrow_values import VALUES, arrays, order_key
from support.parquet_footers import ROWS, stored
from zonal.parquet.footer import read_footer, row_group_bounds
from zonal.parquet.page_index import page_bounds
from zonal.snapshot import UNKNOWN, Physical
from zonal.tables.parquet.folder import file_bounds

X = Physical("x")


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
