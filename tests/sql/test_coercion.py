"""Literals of another type or grain than the column, with DuckDB as the judge: what engines convert skips no match."""

import datetime as dt
import math
import os
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.judge import PLAIN_DUCKDB
from zonal.errors import PredicateError
from zonal.predicates.bind import bind
from zonal.skipping.index import Index
from zonal.snapshot import Bounds
from zonal.sql.where import parse_where

EXAMPLES = int(os.environ.get("COERCION_EXAMPLES", "100"))
"""Tables that are made; each is asked twelve times. More by hand: COERCION_EXAMPLES=5000."""
UTC = dt.timezone.utc
KINDS = {
    "tiny": pa.int8(), "i": pa.int32(), "big": pa.int64(), "u8": pa.uint8(), "u64": pa.uint64(),
    "d": pa.decimal128(10, 2), "wide": pa.decimal128(38, 4), "f": pa.float64(), "g": pa.float32(),
    "s": pa.string(), "flag": pa.bool_(), "bn": pa.binary(), "fixed": pa.binary(4), "id": pa.binary(16),
    "day": pa.date32(), "tm": pa.time64("us"), "sec": pa.timestamp("s"), "ms": pa.timestamp("ms"),
    "ts": pa.timestamp("us"), "ns": pa.timestamp("ns"), "tz": pa.timestamp("us", "UTC"),
}  # fmt: skip


def kept(kind, values, condition, dialect="duckdb", **options):
    """Return which of the values, each in a file of its own, are read for a condition on the column `x`."""
    is_nan = [isinstance(value, float) and math.isnan(value) for value in values]
    told = [None if nan else value for value, nan in zip(values, is_nan, strict=True)]
    bounds = pa.array(told, kind).cast(pa.large_binary()) if kind == pa.string() else pa.array(told, kind)
    nulls = np.array([value is None for value in values], np.int64)
    index = Index(np.ones(len(values), np.int64), {"x": Bounds(bounds, bounds, nulls, np.array(is_nan, np.int64))})
    bound = bind(parse_where(condition, dialect=dialect), pa.schema({"x": kind}), dialect=dialect, **options)
    return set(np.flatnonzero(index.skip(bound).kept).tolist())


@pytest.fixture(scope="module")
def database():
    connection = duckdb.connect()
    connection.execute(PLAIN_DUCKDB)
    return connection


def fill(database, kind, values):
    database.register("given", pa.table({"n": range(len(values)), "x": pa.array(values, kind)}))
    database.execute("CREATE OR REPLACE TEMP TABLE t AS SELECT * FROM given")


def matching(database, condition):
    return {n for (n,) in database.execute(f"SELECT n FROM t WHERE {condition}").fetchall()}


@pytest.mark.parametrize(
    ("name", "value", "condition"),
    [
        ("i", 5, "x = '4.5'"),
        ("i", 5, "x <= '4.6'"),
        ("i", 2147483647, "x >= '2147483647.4'"),
        ("i", 4, "x IN ('4.4', '9')"),
        ("i", 5, "x = '0x5'"),
        ("i", 7, "x"),
        ("u64", 2**53, "floor(x) >= 9007199254740993"),
        ("d", Decimal("4.50"), "x IS NOT DISTINCT FROM '4.501'"),
        ("day", dt.date(1969, 12, 31), "x IS NOT DISTINCT FROM '1969-12-31 23:59:59.999999'"),
        ("day", dt.date(2024, 2, 29), "NOT x <> '2024-02-29 12:00'"),
        ("ts", dt.datetime(1970, 1, 1), "x = '1970-01-01 00:00:00.0000009'"),
        ("ts", dt.datetime(1970, 1, 1), "x >= '1970-01-01 00:00:00.0000009'"),
        ("sec", dt.datetime(1970, 1, 1), "x = '1970-01-01 00:00:00.4'"),
        ("tm", dt.time(12, 30), "x = '12:30:00.0000001'"),
        ("bn", b"a", r"x = '\x61'"),
        ("bn", b"b", r"x IN ('\x62')"),
        ("bn", b"\xff", r"CAST(x AS VARCHAR) <= '\xFG'"),
        ("id", b"@" * 16, "x > '550e8400-e29b-41d4-a716-446655440000'"),
        ("flag", None, "coalesce(x, 't') = 'true'"),
        ("i", None, "coalesce(x, '5') = '05'"),
        ("bn", None, r"coalesce(x, '\x61') = 'a'"),
    ],
)
def test_what_duckdb_converts_is_read(database, name, value, condition):
    fill(database, KINDS[name], [value])
    assert matching(database, condition) == {0}, "the judge finds the row"
    assert kept(KINDS[name], [value], condition) == {0}


@pytest.mark.parametrize(
    ("name", "value", "condition", "dialect"),
    [
        ("bn", b"\xca\xfe", "x = 'cafe'", "snowflake"),
        ("s", "\\x61", "x = X'61'", "spark"),
        ("i", 7, "x", None),
        ("i", 7, "x = TRUE", "snowflake"),
        ("flag", True, "x = 2", "snowflake"),
        ("big", 2**53 + 1, "x = '9007199254740992'", "hive"),
        ("wide", Decimal("9007199254740993.0000"), "x <= '9007199254740992'", "spark"),
        ("day", dt.date(2024, 1, 31), "x = '2024-01-31 10:00:00'", "tsql"),
        ("day", dt.date(2024, 1, 31), "x >= '2024-01-31 10:00:00'", "postgres"),
    ],
)
def test_what_other_engines_convert_is_read(name, value, condition, dialect):
    assert kept(KINDS[name], [value], condition, dialect) == {0}


def test_a_time_that_clocks_show_twice_or_never_is_read():
    berlin = [dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC)]
    for clock in ("2024-10-27 02:30:00", "2024-03-31 02:30:00"):
        assert kept(KINDS["tz"], berlin, f"x = '{clock}'", timezone="Europe/Berlin") == {0}
    assert kept(KINDS["tz"], berlin, "x = '2024-10-27 04:30:00'", timezone="Europe/Berlin") == set()


@pytest.mark.parametrize(
    ("name", "values", "condition", "expected"),
    [
        ("i", [4, 5, 6], "x = '5'", {1}),
        ("i", [4, 5, 6], "x IN ('-1', '6')", {2}),
        ("i", [4, 5, 6], "x < 4.5", {0}),
        ("i", [4, 5, 6], "x = 4.5", set()),
        ("big", [4, 2**53 - 1], "x > '9007199254740990'", {1}),
        ("d", [Decimal("4.50"), Decimal("4.51")], "x < '4.51'", {0}),
        ("wide", [Decimal("4.5"), Decimal("4.6")], "x = '4.6'", {1}),
        ("f", [0.1, 0.3], "x = '0.1'", {0}),
        ("f", [0.1, math.inf], "x = 'inf'", {1}),
        ("flag", [True, False], "x = 'true'", {0}),
        ("day", [dt.date(1996, 11, 30), dt.date(1996, 12, 1)], "x = '1996-12-01'", {1}),
        ("day", [dt.date(1996, 11, 30), dt.date(1996, 12, 1)], "x >= '1996-12-01 00:00:00'", {1}),
        ("day", [dt.date(1996, 11, 30), dt.date(1996, 12, 1)], "x > '1996-11-30 12:00:00'", {1}),
        ("ts", [dt.datetime(2026, 1, 19, 23), dt.datetime(2026, 1, 20)], "x >= '2026-01-20'", {1}),
        ("ts", [dt.datetime(2026, 1, 19, 23), dt.datetime(2026, 1, 20)], "x = '2026-01-19T23:00:00.000'", {0}),
        ("tz", [dt.datetime(2026, 1, 19, tzinfo=UTC)], "x < '2026-01-19 01:00:00+01:00'", set()),
        ("tm", [dt.time(10), dt.time(11)], "x > '10:30'", {1}),
        ("bn", [b"order", b"paid"], "x = 'paid'", {1}),
        ("id", [b"a" * 16, b"b" * 16], "x = '61616161-6161-6161-6161-616161616161'", {0}),
        ("s", [None, "new", "old"], "coalesce(x, '') = 'new'", {1}),
        ("i", [0, 7], "x", {1}),
    ],
)
def test_what_is_exact_still_skips(name, values, condition, expected):
    assert kept(KINDS[name], values, condition) == expected


# Generated: values of every type, and text that is one of them but for a blank, a digit, a fraction or a zone

MOMENTS = st.one_of(
    st.sampled_from([-(10**6), -1, 0, 1, 500, 500_000, 43_200 * 10**6, 86_400 * 10**6 - 1]),
    st.integers(-(10**12), 10**12),
).map(lambda micros: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros))
WHOLE = st.one_of(st.integers(0, 6), st.sampled_from([10, 100, 127]))
WIDE = st.one_of(WHOLE, st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1]))
CENTS = st.integers(-600, 600).map(lambda cents: Decimal(cents).scaleb(-2))
FLOATS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 4.5, 16777216.0, 1e300, 5e-324, math.nan, math.inf, -math.inf])
VALUES = {
    "tiny": WHOLE, "i": WHOLE | st.sampled_from([-1, 2**31 - 1, -(2**31)]), "big": WIDE, "u8": WHOLE, "u64": WIDE,
    "d": CENTS, "wide": CENTS | st.sampled_from([Decimal(2**53), Decimal(2**53 + 1), Decimal("1e21")]),
    "f": FLOATS, "g": FLOATS.filter(lambda number: not 1e299 < number < 1e301 and number != 5e-324),
    "s": st.sampled_from(["", "a", "A", "a ", "5", "05", "4.5", "true", "t", "1970-01-01", "\\x61", "é", "inf"]),
    "flag": st.booleans(), "bn": st.sampled_from([b"", b"a", b"ab", b"61", b"\\x61", b"\x00", b"\xff", b"\xc3\xa9"]),
    "fixed": st.sampled_from([b"abcd", b"\\x61", b"\xff" * 4]), "id": st.sampled_from([b"a" * 16, b"\xff" * 16]),
    "day": MOMENTS.map(dt.datetime.date), "tm": MOMENTS.map(dt.datetime.time),
    "sec": MOMENTS.map(lambda moment: moment.replace(microsecond=0)),
    "ms": MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    "ts": MOMENTS, "ns": MOMENTS, "tz": MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
}  # fmt: skip
ENDS = [
    "", "", "0", "5", ".4", ".5", ".50000001", ".0000009", ".", " ", "e0", "E-1", "_0", "Z", "+00", "+01:00", "+0530",
    " UTC", " 00:00:00", " 12:00", " 23:59:59.999999", " 00:00:00.0000009", " 24:00:00",
]  # fmt: skip
CHANGES = [
    str, str, str.upper, str.lstrip, lambda text: text[:-1], lambda text: text.replace(" ", "T"),
    lambda text: text.replace("-0", "-", 1), lambda text: text.partition(".")[0],
]  # fmt: skip
WORDS = st.sampled_from(
    ["true", "f", "T", "yes", "on", "1", "0", "inf", "-inf", "nan", "epoch", "0x5", "-0.5", "a", ""]
)
OTHERS = st.sampled_from([
    "NULL", "TRUE", "FALSE", "0", "1", "2", "4.5", "-0.4", "127.5", "4.5e0", "1e300", "2147483648", "9007199254740993",
    "9007199254740992.5", "X'61'", r"'\x61'::BLOB", r"E'\x61'", "DATE '1970-01-01'", "TIMESTAMP '1970-01-01 12:00:00'",
    "'4.5'::DECIMAL(3, 1)",
    "TIMESTAMP '1970-01-01 00:00:00.000001'", "TIME '12:00:00'", "'5'::INTEGER", "'4.5'::DOUBLE",
])  # fmt: skip
TERMS = [
    *["x"] * 12, "coalesce(x, {0})", "coalesce(x, {0})", "floor(x)", "date(x)", "year(x)", "date_trunc('day', x)",
    *(f"try_cast(x AS {kind})" for kind in ("VARCHAR", "INTEGER", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN", "BLOB")),
]  # fmt: skip
FORMS = [
    *(f"{{term}} {op} {{0}}" for op in ("=", "<>", "<", "<=", ">", ">=")), "{1} >= {term}", "NOT {term} < {1}",
    "{term} IN ({0}, {1})", "{term} NOT IN ({0}, {1})", "{term} BETWEEN {0} AND {1}",
    "{term} NOT BETWEEN {0} AND {1}", "{term} IS DISTINCT FROM {0}", "{term} IS NOT DISTINCT FROM {0}",
    "({term} = {0}) IS NOT TRUE", "{term} LIKE {0}", "{term} NOT LIKE {0}", "starts_with({term}, {0})", "{term}",
    "NOT {term}", "{term} IS NOT TRUE", "{term} < {0} OR {term} = {1}", "{term} > {0} AND {term} <> {1}",
]  # fmt: skip


def as_text(value):
    if isinstance(value, bytes):
        return "".join(f"\\x{byte:02x}" for byte in value)
    return str(value).lower() if isinstance(value, bool | float) else str(value)


@st.composite
def literals(draw, name, values):
    """Return a literal as SQL: mostly text that nearly is one of the column's values."""
    source = draw(st.integers(0, 9))
    if source == 0:
        return draw(OTHERS)
    if source == 1:
        text = draw(WORDS)
    else:
        is_near = source < 9
        other = draw(st.sampled_from(sorted(VALUES)))
        value = draw(st.sampled_from(values)) if is_near else draw(VALUES[other])
        text = draw(st.sampled_from(CHANGES))(as_text(draw(VALUES[name]) if value is None else value))
        text += draw(st.sampled_from(ENDS))
    return "'" + text.replace("'", "''") + "'"


@st.composite
def cases(draw):
    """Return a column's name, a few values, and conditions on it."""
    name = draw(st.sampled_from(sorted(KINDS)))
    values = draw(st.lists(st.none() | VALUES[name], min_size=1, max_size=6))
    conditions = []
    for _ in range(12):
        pair = [draw(literals(name, values)) for _ in range(2)]
        term = draw(st.sampled_from(TERMS)).replace("{0}", pair[1])
        conditions.append(draw(st.sampled_from(FORMS)).format(*pair, term=term))
    return name, values, conditions


@given(cases())
@settings(max_examples=EXAMPLES)
def test_no_row_that_duckdb_finds_by_converting_is_skipped(database, case):
    name, values, conditions = case
    fill(database, KINDS[name], values)
    for condition in conditions:
        try:
            found = matching(database, condition)
            read = kept(KINDS[name], values, condition)
        except (duckdb.Error, PredicateError):
            continue
        lost = [values[number] for number in sorted(found - read)]
        assert not lost, f"{name}: {condition} skips {lost}"
