"""Bloom filters never deny a value that is there, whoever wrote them."""

import datetime as dt
import math
from decimal import Decimal
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.arrow_values import VALUES, arrays
from zonal.parquet.bloom import bloom_might_contain, plain_bytes, xxh64
from zonal.parquet.footer import read_footer
from zonal.parquet.statistics import ParquetLeaf
from zonal.snapshot import Physical

X = Physical("x")
UTC = dt.timezone.utc
FILTERED = st.sampled_from([kind for kind in VALUES if not pa.types.is_boolean(kind)])


def stored(array, **options):
    sink = pa.BufferOutputStream()
    filters = {"x": {"ndv": 100, "fpp": 0.01}}
    pq.write_table(pa.table({"x": array}), sink, row_group_size=20, bloom_filter_options=filters, **options)
    return pa.BufferReader(sink.getvalue())


def asked(file, value, row_group=0):
    return bloom_might_contain(file, read_footer(file), row_group, X, value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"message digest", 0x066ED728FCEEB3BE),
        (b"abcdefghijklmnopqrstuvwxyz", 0xCFE1F278FA89835C),
        (b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0xAAA46907D3047814),
        (b"1234567890" * 8, 0xE04A477F19EE145D),
    ],
)
def test_xxh64_gives_the_published_hashes(data, expected):
    assert xxh64(data) == expected


@settings(max_examples=200)
@given(FILTERED.flatmap(arrays), st.booleans(), st.booleans())
def test_no_filter_of_pyarrow_denies_a_value(array, use_dictionary, store_decimal_as_integer):
    file = stored(array, use_dictionary=use_dictionary, store_decimal_as_integer=store_decimal_as_integer)
    for number, value in enumerate(array.to_pylist()):
        answer = asked(file, value, number // 20)
        assert answer is not False, f"{value!r} is in the file"


EXAMPLES = [
    (pa.int32(), -5, 6),
    (pa.int8(), -5, 6),
    (pa.uint32(), 2**32 - 1, 6),
    (pa.uint64(), 2**64 - 1, 6),
    (pa.int64(), -(2**63), 6),
    (pa.float32(), 1.5, 6.5),
    (pa.float64(), 0.1, 0.2),
    (pa.string(), "naïve", "naïf"),
    (pa.binary(), b"\xff\0", b"\0\xff"),
    (pa.binary(2), b"ab", b"ba"),
    (pa.uuid(), UUID(int=2**127 + 1), UUID(int=5)),
    (pa.decimal128(9, 2), Decimal("-1.25"), Decimal("1.25")),
    (pa.decimal128(38, 2), Decimal("-1.25"), Decimal("1.25")),
    (pa.date32(), dt.date(1969, 1, 1), dt.date(2026, 1, 1)),
    (pa.time64("us"), dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 5)),
    (pa.timestamp("ms"), dt.datetime(1969, 1, 1, 0, 0, 0, 1000), dt.datetime(1970, 1, 1)),
    (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 1, tzinfo=UTC), dt.datetime(2026, 1, 2, tzinfo=UTC)),
    (pa.timestamp("ns"), dt.datetime(2026, 1, 1, 0, 0, 0, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 2)),
]


@pytest.mark.parametrize(("kind", "there", "absent"), EXAMPLES, ids=[str(kind) for kind, *_ in EXAMPLES])
def test_filters_of_pyarrow_answer_for_every_type(kind, there, absent):
    file = stored(pa.array([there.bytes if isinstance(there, UUID) else there], kind))
    assert asked(file, there) is True
    assert asked(file, absent) is False
    assert asked(file, object()) is None, "no value of this type"


def test_zero_is_minus_zero_and_nan_is_no_question():
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        for zero in (0.0, -0.0):
            file = stored(pa.array([zero, math.nan], kind))
            assert asked(file, 0.0) is True
            assert asked(file, -0.0) is True
            assert asked(file, 0) is True
            assert asked(file, math.nan) is None


def test_equal_numbers_of_another_type_are_found():
    file = stored(pa.array([5], pa.int32()))
    assert [asked(file, value) for value in (5, 5.0, Decimal("5.00"))] == [True] * 3
    assert [asked(file, value) for value in (5.5, 2**40, True, math.inf, "5")] == [None] * 5
    decimals = stored(pa.array([Decimal("5.00")], pa.decimal128(9, 2)))
    assert [asked(decimals, value) for value in (5, 5.0, Decimal(5))] == [True] * 3
    assert asked(decimals, Decimal("5.001")) is None
    floats = stored(pa.array([5, 0.1], pa.float32()))
    assert asked(floats, Decimal(5)) is True
    assert asked(floats, 0.1) is None, "engines differ in whether the column or the value is converted"


def test_times_that_the_column_cannot_hold_have_no_answer():
    file = stored(pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("ms")))
    assert asked(file, dt.datetime(2026, 1, 1)) is True
    assert asked(file, dt.datetime(2026, 1, 1, 0, 0, 0, 1)) is None
    assert asked(file, dt.datetime(2026, 1, 1, tzinfo=UTC)) is None
    days = stored(pa.array([dt.date(2026, 1, 1)]))
    assert asked(days, dt.datetime(2026, 1, 1)) is True
    assert asked(days, dt.datetime(2026, 1, 1, 12)) is None


def test_decimals_of_varying_length_have_no_one_encoding():
    leaf = ParquetLeaf("x", 0, "BYTE_ARRAY", pa.decimal128(9, 2), 0, None, True, False, True)
    assert plain_bytes(Decimal("1.00"), leaf) is None


def test_without_a_filter_there_is_no_answer():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink)
    file = pa.BufferReader(sink.getvalue())
    assert asked(file, 1) is None
    assert bloom_might_contain(file, read_footer(file), 0, Physical("y"), 1) is None


def test_filters_deny_most_values_that_are_not_there():
    file = stored(pa.array(range(20), pa.int64()))
    footer = read_footer(file)
    wrong = sum(bloom_might_contain(file, footer, 0, X, value) for value in range(1000, 2000))
    assert wrong < 50


@settings(max_examples=150)
@given(st.integers(0, 60), st.integers(0, 255))
def test_a_damaged_header_is_no_filter(position, byte):
    whole = bytearray(stored(pa.array([1, 2, 3], pa.int64())).read_buffer(2**20).to_pybytes())
    footer = read_footer(pa.BufferReader(bytes(whole)))
    begin = footer.row_groups[0].chunks[0].bloom_filter.offset
    whole[begin + position % 16] = byte
    assert bloom_might_contain(pa.BufferReader(bytes(whole)), footer, 0, X, 1) in (True, False, None)


def test_no_filter_of_duckdb_denies_a_value(tmp_path):
    path = str(tmp_path / "duck.parquet")
    rows = duckdb.sql("""
        SELECT i::TINYINT AS i8, i::INT AS i32, i * 7919 AS i64, i::UTINYINT AS u8, i::UINTEGER AS u32,
               i::UBIGINT AS u64, (i / 8)::FLOAT AS f32, i / 8 AS f64, 'name ' || i AS s, ('b' || i)::BLOB AS b,
               DATE '2020-01-01' + i::INT AS day, TIMESTAMP '2020-01-01' + INTERVAL (i) HOUR AS ts,
               to_timestamp(i) AS tz, (i / 4)::DECIMAL(9, 2) AS d9, (i / 4)::DECIMAL(18, 2) AS d18,
               (i / 4)::DECIMAL(30, 2) AS d30, uuid() AS uid
        FROM range(100) t(i), range(10)
    """)
    rows.write_parquet(path)
    table = pq.read_table(path)
    file = pa.OSFile(path)
    footer = read_footer(file)
    filtered = 0
    for name in table.column_names:
        answers = {bloom_might_contain(file, footer, 0, Physical(name), v) for v in table[name].to_pylist()}
        assert answers in ({True}, {None}), name
        filtered += answers == {True}
    assert filtered >= 8, "DuckDB writes filters for columns with dictionaries"


@pytest.mark.spark
def test_no_filter_of_spark_denies_a_value(spark, tmp_path):
    path = str(tmp_path / "spark")
    rows = spark.range(100).selectExpr(
        "id", "int(id) AS i", "'name ' || id AS s", "id / 8 AS f", "CAST(id AS DECIMAL(9, 2)) AS d9",
        "CAST(id AS DECIMAL(30, 2)) AS d30", "date_add(DATE'2020-01-01', int(id)) AS day",
    )  # fmt: skip
    rows.coalesce(1).write.option("parquet.bloom.filter.enabled", "true").parquet(path)
    (found,) = (tmp_path / "spark").glob("*.parquet")
    table = pq.read_table(str(found))
    file = pa.OSFile(str(found))
    footer = read_footer(file)
    for name in table.column_names:
        answers = {bloom_might_contain(file, footer, 0, Physical(name), v) for v in table[name].to_pylist()}
        assert answers == {True}, name
