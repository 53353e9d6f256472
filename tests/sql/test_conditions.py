"""Conditions as predicates, case by case and dialect by dialect."""

import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest

from support.conditions import ACTIVE, NO, NOW, TS, YES, S, X, where
from zonal.predicates.expressions import And, Call, Column, Compare, In, IsNull, Or, StartsWith, Unknown, leaves

DIALECTS = [None, "duckdb", "spark", "trino", "snowflake", "bigquery", "postgres", "tsql"]


def value_of(text: str, dialect: str | None = None, zone: str = "UTC") -> object:
    """Return what `x` is compared with; the predicate itself if that isn't told."""
    found = where(f"x = {text}", dialect, zone)
    return found.value if isinstance(found, Compare) else found


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 5", Compare(X, "=", 5)),
        ("x <> 5", Compare(X, "<>", 5)),
        ("x != 5", Compare(X, "<>", 5)),
        ("x < 5", Compare(X, "<", 5)),
        ("x <= 5", Compare(X, "<=", 5)),
        ("x > 5", Compare(X, ">", 5)),
        ("x >= 5", Compare(X, ">=", 5)),
        ("5 < x", Compare(X, ">", 5)),
        ("5 >= x", Compare(X, "<=", 5)),
        ("NOT x < 5", Compare(X, ">=", 5)),
        ("NOT (NOT x < 5)", Compare(X, "<", 5)),
        ("((x)) = ((5))", Compare(X, "=", 5)),
        ("x IN (1, 2)", In(X, (1, 2))),
        ("x IN (1, NULL)", In(X, (1,))),
        ("x IN (NULL)", NO),
        ("x NOT IN (1, 2)", In(X, (1, 2), negated=True)),
        ("NOT x IN (1, 2)", In(X, (1, 2), negated=True)),
        ("x NOT IN (1, NULL)", NO),
        ("x NOT IN (1, y)", And((In(X, (1,), negated=True), Unknown("another column", (X, Column("y")))))),
        ("x BETWEEN 1 AND 2", And((Compare(X, ">=", 1), Compare(X, "<=", 2)))),
        ("x NOT BETWEEN 1 AND 2", Or((Compare(X, "<", 1), Compare(X, ">", 2)))),
        ("x BETWEEN 1 AND NULL", NO),
        ("x NOT BETWEEN 1 AND NULL", Compare(X, "<", 1)),
        ("5 BETWEEN x AND y", And((Compare(X, "<=", 5), Compare(Column("y"), ">=", 5)))),
        ("x BETWEEN 1 AND y", And((Compare(X, ">=", 1), Unknown("a comparison of two columns", (X, Column("y")))))),
        ("x IS NULL", IsNull(X)),
        ("x IS NOT NULL", IsNull(X, negated=True)),
        ("NOT x IS NULL", IsNull(X, negated=True)),
        ("x = NULL", NO),
        ("NOT (x = NULL)", NO),
        ("f(x) = NULL", NO),
        ("1 = 1", YES),
        ("1 > 2 OR x = 1", Compare(X, "=", 1)),
        ("1 < 2 AND x = 1", Compare(X, "=", 1)),
        ("x = 1 AND 1 = 0", NO),
        ("x = 1 OR 1 = 1", YES),
        ("NULL IS NULL", YES),
        ("x = 1 AND ts = 2 AND s = 3", And((Compare(X, "=", 1), Compare(TS, "=", 2), Compare(S, "=", 3)))),
        (
            "NOT (x = 1 AND (ts = 2 OR s = 3))",
            Or((Compare(X, "<>", 1), And((Compare(TS, "<>", 2), Compare(S, "<>", 3))))),
        ),
        ("year(ts) = 2024", Compare(Call("year", TS), "=", 2024)),
        ("cast(ts as date) = '2024-01-31'", Compare(Call("date", TS), "=", date(2024, 1, 31))),
        ("x > 2 * 3 + 1", Compare(X, ">", 7)),
        ("x > -(2 - 5)", Compare(X, ">", 3)),
        ("x = 6 / 2", Compare(X, "=", 3)),
        ("coalesce(x, 0) > 1", Compare(X, ">", 1)),
        ("coalesce(x, 5) > 1", Or((Compare(X, ">", 1), IsNull(X)))),
        ("floor(x) = 3", Compare(Call("floor", X), "=", 3)),
    ],
)
def test_common_sql_means_the_same_in_every_dialect(text, expected, dialect):
    assert where(text, dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        (None, "active", Compare(ACTIVE, "=", True)),
        (None, "NOT active", Compare(ACTIVE, "=", False)),
        ("spark", "active AND NOT x", And((Compare(ACTIVE, "=", True), Compare(X, "=", False)))),
        ("duckdb", "active", Compare(ACTIVE, "<>", False)),  # any number but 0 is true there
        ("mysql", "NOT active", Compare(ACTIVE, "=", False)),
        (None, "active IS TRUE", Compare(ACTIVE, "=", True)),
        (None, "active IS FALSE", Compare(ACTIVE, "=", False)),
        (None, "active IS NOT TRUE", Or((Compare(ACTIVE, "=", False), IsNull(ACTIVE)))),
        (None, "active IS NOT FALSE", Or((Compare(ACTIVE, "=", True), IsNull(ACTIVE)))),
        (None, "(x > 5) IS TRUE", Compare(X, ">", 5)),
        (None, "(x > 5) IS FALSE", Compare(X, "<=", 5)),
        (None, "(x > 5) IS NOT TRUE", Or((Compare(X, "<=", 5), IsNull(X)))),
        (None, "coalesce(active, FALSE)", Compare(ACTIVE, "=", True)),
        (None, "NOT coalesce(active, FALSE)", Or((Compare(ACTIVE, "=", False), IsNull(ACTIVE)))),
        ("postgres", "x ISNULL", IsNull(X)),
        ("postgres", "x NOTNULL", IsNull(X, negated=True)),
        ("postgres", "active IS UNKNOWN", IsNull(ACTIVE)),
        ("spark", "isnull(x)", IsNull(X)),
        ("spark", "isnotnull(x)", IsNull(X, negated=True)),
        (None, "x IS DISTINCT FROM 5", Or((Compare(X, "<>", 5), IsNull(X)))),
        (None, "x IS NOT DISTINCT FROM 5", Compare(X, "=", 5)),
        (None, "x IS DISTINCT FROM NULL", IsNull(X, negated=True)),
        (None, "x IS NOT DISTINCT FROM NULL", IsNull(X)),
        ("mysql", "x <=> 5", Compare(X, "=", 5)),
        ("spark", "NOT x <=> NULL", IsNull(X, negated=True)),
        (None, "TRUE", YES),
        (None, "NOT TRUE", NO),
        (None, "NULL", NO),
        (None, "NOT NULL", NO),
        ("mysql", "1", YES),
        (None, "x IN ()", NO),
        (None, "year(ts) IS NOT NULL", IsNull(TS, negated=True)),
        (None, "WHERE x = 5;", Compare(X, "=", 5)),
        (None, "x = 5 -- why", Compare(X, "=", 5)),
        ("oracle", "x ^= 5", Compare(X, "<>", 5)),
    ],
)
def test_booleans_and_nulls(dialect, text, expected):
    assert where(text, dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        (None, "s LIKE 'ab%'", StartsWith(S, "ab")),
        (None, "s NOT LIKE 'ab%'", StartsWith(S, "ab", negated=True)),
        (None, "NOT s LIKE 'ab%%'", StartsWith(S, "ab", negated=True)),
        (None, "s LIKE 'ab%c'", StartsWith(S, "ab")),
        (None, "s LIKE 'ab_'", StartsWith(S, "ab")),
        (None, "s LIKE 'ab'", Compare(S, "=", "ab")),
        (None, "s LIKE '%'", IsNull(S, negated=True)),
        (None, "s NOT LIKE '%'", NO),
        (None, "s LIKE NULL", NO),
        (None, "s LIKE '10!%%' ESCAPE '!'", StartsWith(S, "10%")),
        (None, "s NOT LIKE '10!_%' ESCAPE '!'", StartsWith(S, "10_", negated=True)),
        (None, "s LIKE 'a!!' ESCAPE '!'", Compare(S, "=", "a!")),
        (None, "s LIKE 'a!b%' ESCAPE '!'", StartsWith(S, "a")),
        ("duckdb", r"s LIKE 'a\%b'", StartsWith(S, "a")),  # a backslash is an escape in some engines
        ("postgres", "s ~~ 'ab%'", StartsWith(S, "ab")),
        ("trino", "starts_with(s, 'ab')", StartsWith(S, "ab")),
        ("snowflake", "startswith(s, 'ab')", StartsWith(S, "ab")),
        ("spark", "NOT startswith(s, 'ab')", StartsWith(S, "ab", negated=True)),
        ("postgres", "s ^@ 'ab'", StartsWith(S, "ab")),
        ("duckdb", "starts_with(s, '')", IsNull(S, negated=True)),
    ],
)
def test_patterns(dialect, text, expected):
    assert where(text, dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        (None, "a.b.c = 1", Column("a.b.c")),
        (None, "a.b.c.d.e.f = 1", Column("a.b.c.d.e.f")),
        (None, '"Ship Date" = 1', Column("Ship Date", quoted=True)),
        ("spark", "`a`.b = 1", Column("a.b", quoted=True)),
        ("bigquery", "`X` = 1", Column("X", quoted=True)),
        ("tsql", "[a b] = 1", Column("a b", quoted=True)),
        ("snowflake", '"A" = 1', Column("A", quoted=True)),
        ("postgres", "MiXeD = 1", Column("MiXeD")),
    ],
)
def test_names_of_columns(dialect, text, expected):
    assert where(text, dialect) == Compare(expected, "=", 1)


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        (None, "1.10", Decimal("1.10")),
        (None, "-.5", Decimal("-0.5")),
        (None, "12345678901234567890123456789012345678", 12345678901234567890123456789012345678),
        (None, "-1.2345678901234567890123456789012345678", Decimal("-1.2345678901234567890123456789012345678")),
        (None, "1e3", 1000.0),
        ("duckdb", "1e-1", 0.1),
        ("postgres", "1e-1", Decimal("0.1")),
        ("duckdb", "1_000", 1000),
        ("spark", "5L", 5),
        ("spark", "1.5BD", Decimal("1.5")),
        ("bigquery", "0xFF", 255),
        ("spark", "X'00FF'", b"\x00\xff"),
        ("bigquery", "b'abc'", b"abc"),
        (None, "'it''s'", "it's"),
        (None, "TRUE", True),
        ("spark", r"'a\nb\\c'", "a\nb\\c"),
        ("duckdb", r"'a\nb'", r"a\nb"),
        ("postgres", r"E'a\nb'", "a\nb"),
        ("bigquery", r"r'a\nb'", r"a\nb"),
        ("postgres", "$$it's$$", "it's"),
        (None, "1.1 + 2.2", Decimal("3.3")),
        (None, "7 % 4", 3),
        ("duckdb", "7 // 2", 3),
        (None, "CAST('5' AS INT)", 5),
        (None, "CAST(5 AS DECIMAL(10, 2))", Decimal(5)),
        (None, "CAST('1.5' AS DOUBLE)", 1.5),
        (None, "CAST(7 AS VARCHAR)", "7"),
        (None, "CAST('12:30:00' AS TIME)", time(12, 30)),
        (
            "duckdb",
            "CAST('123E4567-e89b-12d3-a456-426614174000' AS UUID)",
            UUID("123e4567-e89b-12d3-a456-426614174000"),
        ),
    ],
)
def test_values_of_literals(dialect, text, expected):
    found = value_of(text, dialect)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        (None, "DATE '2024-01-31'", date(2024, 1, 31)),
        (None, "CAST('2024-01-31' AS DATE)", date(2024, 1, 31)),
        ("postgres", "'2024-01-31'::date", date(2024, 1, 31)),
        ("tsql", "CONVERT(date, '2024-01-31')", date(2024, 1, 31)),
        ("spark", "to_date('2024-01-31')", date(2024, 1, 31)),
        ("spark", "to_date('2024-01-31', 'yyyy-MM-dd')", date(2024, 1, 31)),
        ("snowflake", "to_date('2024-01-31')", date(2024, 1, 31)),
        ("oracle", "DATE '2024-01-31'", date(2024, 1, 31)),
        ("oracle", "to_date('2024-01-31', 'YYYY-MM-DD')", date(2024, 1, 31)),
        ("bigquery", "DATE(2024, 1, 31)", date(2024, 1, 31)),
        ("duckdb", "TIMESTAMP '2024-01-31 10:00:00.5'", datetime(2024, 1, 31, 10, 0, 0, 500_000)),
        ("trino", "TIMESTAMP '2024-01-31 10:00:00.123456'", datetime(2024, 1, 31, 10, 0, 0, 123_456)),
        ("trino", "TIMESTAMP '2024-01-31 10:00:00 UTC'", utc(2024, 1, 31, 10)),
        ("spark", "TIMESTAMP '2024-01-31 10:00:00'", utc(2024, 1, 31, 10)),
        ("spark", "TIMESTAMP_NTZ '2024-01-31 10:00:00'", datetime(2024, 1, 31, 10)),
        ("bigquery", "TIMESTAMP '2024-01-31 10:00:00+02'", utc(2024, 1, 31, 8)),
        ("bigquery", "DATETIME '2024-01-31 10:00:00'", datetime(2024, 1, 31, 10)),
        ("postgres", "TIMESTAMPTZ '2024-01-31 10:00:00-0530'", utc(2024, 1, 31, 15, 30)),
        ("duckdb", "DATE '2024-01-31' + INTERVAL 1 MONTH", date(2024, 2, 29)),
        ("trino", "DATE '2024-01-31' + INTERVAL '1' MONTH", date(2024, 2, 29)),
        ("postgres", "DATE '2024-02-29' - INTERVAL '1 year'", date(2023, 2, 28)),
        ("postgres", "DATE '2024-01-01' + 30", date(2024, 1, 31)),
        ("duckdb", "DATE '2024-01-01' - INTERVAL 1 HOUR", datetime(2023, 12, 31, 23)),
        ("bigquery", "DATE_SUB(DATE '2024-01-31', INTERVAL 1 WEEK)", date(2024, 1, 24)),
        ("snowflake", "DATEADD(quarter, -1, '2024-05-31'::date)", date(2024, 2, 29)),
        ("spark", "date_sub(DATE '2024-01-31', 30)", date(2024, 1, 1)),
        ("trino", "date_add('day', -30, DATE '2024-01-31')", date(2024, 1, 1)),
        ("trino", "date_trunc('month', DATE '2024-01-31')", date(2024, 1, 1)),
        ("duckdb", "date_trunc('hour', TIMESTAMP '2024-01-31 10:59:59')", datetime(2024, 1, 31, 10)),
        ("postgres", "date_trunc('week', DATE '2024-01-31')", date(2024, 1, 29)),
    ],
)
def test_dates_and_timestamps(dialect, text, expected):
    assert value_of(text, dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "zone", "text", "expected"),
    [
        ("postgres", "UTC", "now()", NOW),
        ("duckdb", "UTC", "now()", NOW),
        ("spark", "UTC", "current_timestamp()", NOW),
        ("trino", "UTC", "current_timestamp - INTERVAL '7' DAY", NOW - timedelta(days=7)),
        ("postgres", "UTC", "now() - INTERVAL '1 day 2 hours'", NOW - timedelta(hours=26)),
        ("postgres", "UTC", "now() - 3 * INTERVAL '1 day'", NOW - timedelta(days=3)),
        ("postgres", "UTC", "now() - '3 days'::interval", NOW - timedelta(days=3)),
        ("bigquery", "UTC", "TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 3 HOUR)", NOW - timedelta(hours=3)),
        ("tsql", "UTC", "DATEADD(month, -1, GETDATE())", datetime(2024, 2, 29, 12, 30, 15)),
        ("postgres", "Asia/Tokyo", "localtimestamp", datetime(2024, 3, 31, 21, 30, 15)),
        ("spark", "Asia/Tokyo", "localtimestamp", datetime(2024, 3, 31, 21, 30, 15)),
        ("postgres", "Pacific/Kiritimati", "current_date", date(2024, 4, 1)),
        ("spark", "Pacific/Kiritimati", "date_add(current_date(), 1)", date(2024, 4, 2)),
        ("duckdb", "UTC", "today() - INTERVAL 1 MONTH", date(2024, 2, 29)),
        ("trino", "Asia/Tokyo", "date_trunc('day', now())", utc(2024, 3, 30, 15)),
        ("spark", "Europe/Berlin", "TIMESTAMP '2024-07-01 00:00:00'", utc(2024, 6, 30, 22)),
        ("postgres", "Europe/Berlin", "now() - INTERVAL '1 hour'", NOW - timedelta(hours=1)),
        # Berlin's clocks went forward at 01:00 UTC of this day: a day before is 24 hours in one engine, 23 in another.
        ("postgres", "Europe/Berlin", "now() - INTERVAL '1 day'", None),
        ("spark", "Europe/Berlin", "TIMESTAMP '2024-03-31 02:30:00'", None),
        ("spark", "Europe/Berlin", "TIMESTAMP '2024-10-27 02:30:00'", None),
    ],
)
def test_now_in_the_time_zone_of_the_session(dialect, zone, text, expected):
    found = value_of(text, dialect, zone)
    assert isinstance(found, Unknown) if expected is None else found == expected


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        *((dialect, "extract(year FROM ts)", Call("year", TS)) for dialect in DIALECTS if dialect != "tsql"),
        ("tsql", "datepart(year, ts)", Call("year", TS)),
        ("duckdb", "date_part('year', ts)", Call("year", TS)),
        (None, "ceil(ts)", Call("ceil", TS)),
        ("tsql", "ceiling(ts)", Call("ceil", TS)),
        (None, "cast(ts AS bigint)", Call("cast", TS, "int64")),
        ("postgres", "ts::int", Call("cast", TS, "int32")),
        ("bigquery", "safe_cast(ts AS int64)", Call("cast", TS, "int64")),
        ("duckdb", "try_cast(ts AS smallint)", Call("cast", TS, "int16")),
        ("duckdb", "cast(ts AS float)", Call("cast", TS, "float")),
        ("snowflake", "cast(ts AS float)", Call("cast", TS, "double")),
        (None, "cast(ts AS decimal(10, 2))", Call("cast", TS, "decimal(10,2)")),
        (None, "cast(ts AS decimal(10))", Call("cast", TS, "decimal(10,0)")),
    ],
)
def test_functions_of_a_column_compared_with_numbers(dialect, text, expected):
    assert where(f"{text} >= 7", dialect) == Compare(expected, ">=", 7)
    assert where(f"7 > {text}", dialect) == Compare(expected, "<", 7)
    assert where(f"{text} IN (7, 8)", dialect) == In(expected, (7, 8))


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        *((dialect, "date(ts)", Call("date", TS)) for dialect in DIALECTS),
        ("spark", "to_date(ts)", Call("date", TS)),
        ("duckdb", "ts::date", Call("date", TS)),
        ("tsql", "CONVERT(date, ts)", Call("date", TS)),
        ("postgres", "date_trunc('month', ts)", Call("date_trunc", TS, "month")),
        ("spark", "date_trunc('MM', ts)", Call("date_trunc", TS, "month")),
        ("spark", "trunc(ts, 'year')", Call("date_trunc", TS, "year")),
        ("bigquery", "DATE_TRUNC(ts, QUARTER)", Call("date_trunc", TS, "quarter")),
        ("bigquery", "TIMESTAMP_TRUNC(ts, HOUR)", Call("date_trunc", TS, "hour")),
        ("tsql", "DATETRUNC(day, ts)", Call("date_trunc", TS, "day")),
        ("trino", "date_trunc('week', ts)", Call("date_trunc", TS, "week")),
        ("duckdb", "cast(ts AS timestamp)", Call("cast", TS, "timestamp")),
        ("spark", "cast(ts AS timestamp)", Call("cast", TS, "timestamptz")),
        ("duckdb", "cast(ts AS timestamptz)", Call("cast", TS, "timestamptz")),
    ],
)
def test_functions_of_a_column_compared_with_days(dialect, text, expected):
    assert where(f"{text} < DATE '2024-01-31'", dialect) == Compare(expected, "<", date(2024, 1, 31))
    assert where(f"{text} < '2024-01-31'", dialect) == Compare(expected, "<", date(2024, 1, 31))


@pytest.mark.parametrize(
    ("dialect", "text", "reason"),
    [
        (None, "x = y", "two columns"),
        (None, "x + 1 > 5", "overflow"),
        (None, "-x > 5", "overflow"),
        (None, "x = 7 / 2", "remainder"),
        (None, "x = 1 / 0", "division"),
        (None, "x = -7 % 2", "division"),
        ("spark", "x > 2147483647 + 1", "overflows"),
        ("bigquery", "x = 1.1 + 2.2", "round"),
        (None, "x = ?", "parameter"),
        (None, "x = :p", "parameter"),
        ("postgres", "x = $1", "parameter"),
        ("tsql", "x = @p", "parameter"),
        (None, "x = {{p}}", "parameter"),
        (None, "(x, ts) = (1, 2)", "row of several values"),
        (None, "(x, ts) IN ((1, 2))", "row of several values"),
        (None, "x IN (SELECT y FROM u)", "subquery"),
        (None, "x IN (1, ts)", "another column"),
        (None, "x IN (1, 'a')", "several types"),
        (None, "x BETWEEN 1 AND 'a'", "several types"),
        (None, "EXISTS (SELECT 1 FROM u)", "subquery"),
        (None, "x = (SELECT max(y) FROM u)", "subquery"),
        (None, "max(x) > 1", "aggregate"),
        (None, "row_number() OVER (ORDER BY x) = 1", "window"),
        (None, "upper(x) = 'A'", "upper"),
        (None, "month(ts) = 1", "month"),
        (None, "day(ts) = 1", "day"),
        (None, "year(date_trunc('day', ts)) = 1", "year of another expression"),
        (None, "my_function(x) = 1", "my_function"),
        ("sqlite", "x = 'a' COLLATE NOCASE", "collation"),
        ("sqlite", "x COLLATE NOCASE = 'a'", "collation"),
        ("sqlite", "s LIKE 'ab%'", "case"),
        ("duckdb", "s ILIKE 'ab%'", "any case"),
        ("spark", "s RLIKE 'ab'", "regular expression"),
        ("postgres", "s ~ 'ab'", "regular expression"),
        (None, "s LIKE '%ab'", "wildcard"),
        (None, "s NOT LIKE 'a%b'", "negated pattern"),
        (None, "s NOT LIKE 'ab'", "negated pattern"),
        ("snowflake", "s LIKE ANY ('a%', 'b%')", "any of several"),
        ("spark", r"s LIKE 'a\\_b' AND x = '\u0041'", "escape"),
        ("mysql", "x XOR ts", "XOR"),
        (None, "CASE WHEN x = 1 THEN 1 END = 1", "CASE"),
        (None, "cast(x AS varchar(3)) = 'a'", "cast to varchar"),
        (None, "cast(x AS decimal) = 1", "cast to decimal"),
        (None, "cast(x AS float) = 1", "cast to float"),
        ("trino", "cast(ts AS timestamp) = DATE '2024-01-31'", "cast to timestamp"),
        ("tsql", "cast(ts AS datetime) = '2024-01-31'", "cast to datetime"),
        ("oracle", "cast(ts AS date) = DATE '2024-01-31'", "cast to date"),
        ("oracle", "x = CAST(sysdate AS date)", "cast to date"),
        ("snowflake", "date_trunc('week', ts) = '2024-01-29'", "weeks"),
        ("bigquery", "TIMESTAMP_TRUNC(ts, DAY, 'Asia/Tokyo') = '2024-01-29'", "zone"),
        ("postgres", "ts AT TIME ZONE 'UTC' = '2024-01-29'", "time zones"),
        ("postgres", "x = TIMESTAMP '2024-01-31 10:00:00+02'", "time zone"),
        (None, "date(ts) = '2024-01-31 12:00:00'", "another type"),
        (None, "year(ts) = '2024'", "another type"),
        ("duckdb", "x = CAST(1.5 AS INT)", "cast to int"),
        ("duckdb", "x = CAST('NaN' AS DOUBLE)", "cast to double"),
        ("duckdb", "x = CAST('2024-01-31 12:00:00' AS DATE)", "cast to date"),
        ("postgres", "s < 'abc'", "collation"),
        ("postgres", "cast(s AS text) < 'abc'", "collation"),
        ("tsql", "s = 'abc'", "collation"),
        ("mysql", "s IN ('abc')", "collation"),
        ("snowflake", "a:b.c = 1", "json"),
        ("duckdb", "x[1] = 1", "element"),
        ("clickhouse", "x NOT IN (1, NULL)", "null"),
        (None, "try_cast(s AS int) IS NULL", "may be null"),
        (None, "(x = 1 OR ts = 2) IS NOT TRUE", "null in several ways"),
        ("bigquery", "x = 1.00000000000000000001", "digits"),
    ],
)
def test_what_engines_do_differently_is_unknown(dialect, text, reason):
    found = list(leaves(where(text, dialect)))
    unknown = [leaf for leaf in found if isinstance(leaf, Unknown)]
    assert unknown, f"{text} should not be {found}"
    assert reason in unknown[-1].reason
    names = {"x", "ts", "s", "y", "a"}
    assert all(column.name in names for leaf in unknown for column in leaf.columns), "only columns of the table"


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("postgres", "s = 'abc'", Compare(S, "=", "abc")),
        ("postgres", "ts >= '2024-01-31'", Compare(TS, ">=", date(2024, 1, 31))),
        ("tsql", "ts >= '2024-01-31 10:00:00'", Compare(TS, ">=", datetime(2024, 1, 31, 10))),
        ("tsql", "ts = '2024-01-31'", Compare(TS, "=", date(2024, 1, 31))),
        ("duckdb", "ts >= '2024-01-31'", Compare(TS, ">=", "2024-01-31")),
        ("duckdb", "s < 'abc'", Compare(S, "<", "abc")),
    ],
)
def test_text_is_a_date_where_collations_order_text(dialect, text, expected):
    assert where(text, dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("spark", "NOT x > 5", Compare(X, "<=", 5)),  # NaN is the greatest number
        ("trino", "NOT x > 5", Or((Compare(X, "<=", 5), Compare(X, ">", math.inf)))),
        ("bigquery", "NOT 5 <= x", Or((Compare(X, "<", 5), Compare(X, ">", math.inf)))),
        ("trino", "NOT x < 5", Compare(X, ">=", 5)),
        ("trino", "NOT ts > DATE '2024-01-31'", Compare(TS, "<=", date(2024, 1, 31))),
    ],
)
def test_negations_keep_nan_where_it_is_in_no_order(dialect, text, expected):
    assert where(text, dialect) == expected
