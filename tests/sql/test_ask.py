"""What statements ask of a table: names, joins, known columns, views, parameters, and traps."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone

import pyarrow as pa
import pytest

from support.statements import ALL, EVENTS, NOW, asked, expected, parts, predicates
from zonal.errors import PredicateError
from zonal.predicates.bind import bind
from zonal.predicates.bound import All, Anything, Some
from zonal.predicates.expressions import And, Column, Compare, Constant, In, Or, Parameter, Unknown, leaves
from zonal.sql.ask import TableRead, ask
from zonal.sql.where import parse_where


@pytest.mark.parametrize(
    ("written", "given", "is_same"),
    [
        ("events", "events", True),
        ("db.events", "events", True),
        ("cat.db.events", "events", True),
        ("cat.db.events", "db.events", True),
        ("events", "db.events", True),
        ("EVENTS", "Db.Events", True),
        ("other.events", "db.events", False),
        ("events2", "events", False),
        ("db.events.snapshots", "db.events", False),
        ("events.files", "events", False),
        ('"db"."events"', "db.events", True),
    ],
)
def test_a_name_with_fewer_parts_is_the_end_of_the_other(written: str, given: str, is_same: bool) -> None:
    assert len(ask(f"SELECT * FROM {written} WHERE id = 1", [given])) == is_same


def test_a_table_may_be_a_path_with_dots() -> None:
    found = ask("SELECT * FROM delta.`/lake/a.b` WHERE id = 1", ["delta.`/lake/a.b`"], dialect="spark")
    assert [one.predicate for one in found] == [Compare(Column("id"), "=", 1)]


def test_a_statement_that_reads_none_of_the_tables_asks_nothing() -> None:
    for sql in ["SELECT * FROM users", "SELECT 1", "SET x = 1", "SHOW TABLES", "DROP TABLE events", "USE db"]:
        assert asked(sql) == [], sql
    for sql in [
        "CREATE TABLE events (id INT)",
        "CREATE VIEW v AS SELECT * FROM events",
        "INSERT INTO events VALUES (1)",
    ]:
        assert asked(sql) == [], sql
    assert asked("OPTIMIZE events ZORDER BY (id)", "databricks") == []
    assert asked("WITH events AS (SELECT 1 AS id) SELECT * FROM events") == [], "the name is that of the WITH clause"


def test_a_table_without_a_name_is_refused() -> None:
    for names in [[], [""], ["a."]]:
        with pytest.raises(PredicateError, match="Which table"):
            ask("SELECT 1", names)


# Joins


@pytest.mark.parametrize(
    ("sql", "joins"),
    [
        ("SELECT * FROM events e JOIN users u ON e.user_id = u.id AND e.ts > u.ts", ("user_id",)),
        ("SELECT * FROM events e, users u WHERE u.id = e.user_id AND u.country = e.country", ("user_id", "country")),
        ("SELECT * FROM events JOIN users USING (country, user_id)", ("country", "user_id")),
        ("SELECT * FROM events e WHERE e.user_id IN (SELECT id FROM users)", ("user_id",)),
        ("SELECT * FROM users WHERE id IN (SELECT user_id FROM events)", ("user_id",)),
        ("SELECT * FROM users WHERE (id, c) IN (SELECT user_id, country FROM events)", ("user_id", "country")),
        ("SELECT * FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = e.user_id)", ("user_id",)),
        ("SELECT * FROM users u WHERE EXISTS (SELECT 1 FROM events e WHERE u.id = e.user_id)", ("user_id",)),
        ("WITH d AS (SELECT user_id AS x FROM events) SELECT * FROM d JOIN users u ON d.x = u.id", ("user_id",)),
        ("MERGE INTO events t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", ("id",)),
        ("SELECT * FROM events WHERE id = user_id", ()),
        ("SELECT * FROM events WHERE id = (SELECT max(id) FROM users)", ()),
    ],
)
def test_columns_compared_with_other_tables_are_join_keys(sql: str, joins: Sequence[str]) -> None:
    (found,) = asked(sql)
    assert found.joins == tuple(joins)


def test_joins_alone_are_no_filter() -> None:
    assert predicates("SELECT * FROM events e JOIN users u ON e.user_id = u.id") == [ALL]


def test_what_cannot_be_followed_is_kept_with_its_reason() -> None:
    (found,) = predicates("SELECT * FROM events WHERE id = 7 AND upper(kind) = 'X'")
    assert found == And((Compare(Column("id"), "=", 7), Unknown("the function upper", (Column("kind"),))))
    (found,) = predicates("SELECT * FROM events e JOIN users u ON u.id = e.id WHERE e.id = 7 OR u.age = 3")
    assert isinstance(found, Or)
    assert found.parts[1] == Unknown("a column of another table")


# Columns that are known


def test_known_columns_find_their_table_without_qualifiers() -> None:
    sql = "SELECT * FROM orders, events WHERE o_id = id AND day > '2024-01-01' AND o_date > '2024-02-01'"
    assert predicates(sql) == [ALL], "any of the names may be the other table's"
    (found,) = asked(sql, columns=EVENTS)
    assert found == TableRead(Compare(Column("day"), ">", "2024-01-01"), ("id",), 1)


def test_known_columns_give_their_spelling() -> None:
    (found,) = predicates('SELECT * FROM events WHERE "USERID" = 1 AND userid < 5', "duckdb", columns=["UserId"])
    assert found == And((Compare(Column("UserId"), "=", 1), Compare(Column("UserId"), "<", 5)))


def test_a_column_that_the_table_lacks_is_never_in_a_predicate() -> None:
    sql = "SELECT * FROM users WHERE EXISTS (SELECT 1 FROM events WHERE id = 3 AND nick = 'x')"
    assert predicates(sql, columns=EVENTS) == [Compare(Column("id"), "=", 3)], "nick is the outer table's"
    sql = "SELECT * FROM events e WHERE e.dropped = 3"
    assert all(not isinstance(leaf, Compare) for leaf in leaves(predicates(sql, columns=EVENTS)[0]))


def test_known_columns_give_stars_their_places() -> None:
    both = "SELECT * FROM events WHERE day = '2024-01-01' UNION ALL SELECT * FROM events"
    sql = f"SELECT * FROM ({both}) q WHERE kind = 'x'"
    first, second = predicates(sql, columns=EVENTS)
    assert parts(first) == expected("day = '2024-01-01' AND kind = 'x'", None)
    assert second == Compare(Column("kind"), "=", "x")
    _, unknown = predicates(sql)
    assert unknown == ALL, "the second star may have its columns in another order"


def test_names_of_the_select_list_may_stand_in_where() -> None:
    sql = "SELECT date(ts) AS d FROM events WHERE d = '2024-01-01'"
    (found,) = predicates(sql, "snowflake", columns=EVENTS)
    assert parts(found) == expected("date(ts) = '2024-01-01'", "snowflake")
    (found,) = predicates("SELECT date(ts) AS ts FROM events WHERE ts = '2024-01-01'", "snowflake", columns=EVENTS)
    assert found == Compare(Column("ts"), "=", "2024-01-01"), "a column goes before a name of the list"


def test_fields_of_structs_pass_through_queries() -> None:
    sql = "SELECT * FROM (SELECT payload AS p FROM events) q WHERE q.p.geo.lat > 5"
    assert predicates(sql, "spark") == [Compare(Column("payload.geo.lat"), ">", 5)]


# Views


VIEWS: Mapping[str, str] = {
    "db.clean": "CREATE OR REPLACE VIEW db.clean AS SELECT id, ts, lower(kind) AS kind FROM lake.db.events "
    "WHERE id > 0",
    "db.daily": "SELECT date(ts) AS day, id FROM db.clean WHERE ts >= '2024-01-01'",
    "db.loop": "SELECT * FROM db.pool",
    "db.pool": "SELECT * FROM db.loop",
    "db.broken": "SELECT FROM WHERE",
    "db.none": "DROP TABLE x",
}


def test_conditions_reach_the_table_through_views() -> None:
    (found,) = predicates("SELECT * FROM daily WHERE day = '2024-02-01' AND id < 9", "spark", views=VIEWS)
    assert parts(found) == expected("id > 0 AND id < 9 AND ts >= '2024-01-01' AND date(ts) = '2024-02-01'", "spark")


def test_views_that_cannot_be_read_are_named() -> None:
    for name, words in [
        ("broken", "view 'db.broken' can't be read"),
        ("none", "view 'db.none' is no query"),
        ("loop", "nested too deeply"),
    ]:
        with pytest.raises(PredicateError, match=words):
            asked(f"SELECT * FROM {name}", views=VIEWS)
    assert asked("SELECT * FROM users", views=VIEWS) == [], "views that aren't named aren't read"


# Parameters


@pytest.mark.parametrize(
    ("dialect", "text", "name"),
    [
        ("", "?", ""),
        ("spark", ":start", "start"),
        ("", ":from", "from"),
        ("spark", "{{ start }}", "start"),
        ("spark", "${start}", "start"),
        ("trino", "?", ""),
        ("trino", "{{start}}", "start"),
        ("snowflake", ":1", "1"),
        ("bigquery", "@start", "start"),
        ("duckdb", "$start", "start"),
        ("postgres", "$1", "1"),
        ("postgres", "%(start)s", "start"),
        ("postgres", "%s", ""),
        ("redshift", "CAST(:start AS DATE)", "start"),
        ("spark", "date_add(:start, 7)", "start"),
        ("bigquery", "TIMESTAMP(@start)", "start"),
    ],
)
def test_parameters_are_values_that_only_the_caller_knows(dialect: str, text: str, name: str) -> None:
    parameter = Parameter(name)
    assert predicates(f"SELECT * FROM events WHERE ts >= {text}", dialect) == [Compare(Column("ts"), ">=", parameter)]
    (found,) = predicates(f"SELECT * FROM events WHERE id BETWEEN 3 AND {text}", dialect)
    assert found == And((Compare(Column("id"), ">=", 3), Compare(Column("id"), "<=", parameter)))
    (found,) = predicates(f"SELECT * FROM events WHERE id IN (3, {text})", dialect)
    assert found == In(Column("id"), (3, parameter))


@pytest.mark.parametrize(
    "condition",
    [
        "? IS NULL",
        "? = ?",
        ":a = :b",
        "? = 5",
        "id <=> ?",
        "id = ? + amount",
        "kind LIKE ?",
        "coalesce(id, 3) = ?",
        "id + 1 = ?",
    ],
)
def test_parameters_elsewhere_are_unknown(condition: str) -> None:
    (found,) = predicates(f"SELECT * FROM events WHERE id > 2 AND ({condition})", "spark")
    assert parts(found) == {Compare(Column("id"), ">", 2)}


def test_an_optional_parameter_leaves_both_ways() -> None:
    (found,) = predicates("SELECT * FROM events WHERE (:p IS NULL OR id = :p)")
    assert found == Or((Unknown("a parameter, whose value isn't known"), Compare(Column("id"), "=", Parameter("p"))))


def test_conditions_and_queries_alone_have_no_parameters() -> None:
    assert parse_where("id = ?") == Unknown("a parameter, whose value isn't known", (Column("id"),))


def test_a_bound_parameter_might_be_anything() -> None:
    schema = pa.schema([("id", pa.int64())])
    anything = Anything("its value is a parameter", ("id",))
    assert bind(Compare(Column("id"), "=", Parameter()), schema) == anything
    assert bind(In(Column("id"), (3, Parameter("p"))), schema) == anything
    both = bind(And((Compare(Column("id"), ">", 3), Compare(Column("id"), "<", Parameter()))), schema)
    assert isinstance(both, All)
    assert anything in both.parts
    assert bind(Constant(False), schema) == Some(())


# Times


def test_relative_dates_are_those_of_the_querys_own_time() -> None:
    sql = "SELECT * FROM events WHERE day >= current_date - INTERVAL '7' DAY"
    for now, first in [(NOW, date(2024, 3, 24)), (datetime(2023, 1, 3, tzinfo=timezone.utc), date(2022, 12, 27))]:
        (found,) = ask(sql, ["events"], dialect="trino", now=now)
        assert found.predicate == Compare(Column("day"), ">=", first)


# Traps


def test_conditions_stop_where_rows_that_fail_them_count() -> None:
    for inner in [
        "SELECT id, kind, count(*) OVER () AS n FROM events",
        "SELECT id, kind, row_number() OVER (PARTITION BY day ORDER BY ts) AS n FROM events",
        "SELECT id, kind FROM events ORDER BY ts LIMIT 5",
        "SELECT id, kind FROM events OFFSET 5",
        "SELECT max(id) AS id, max(kind) AS kind FROM events",
        "SELECT count(*) AS id, 'x' AS kind FROM events",
        "SELECT day, max(id) AS id, min(kind) AS kind FROM events GROUP BY day",
    ]:
        (found,) = predicates(f"SELECT * FROM ({inner}) q WHERE id = 3 AND kind = 'x'", "duckdb")
        assert found == ALL, inner


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("oracle", "SELECT * FROM events WHERE id = 3 START WITH kind = 'x' CONNECT BY PRIOR id = user_id"),
        (
            "snowflake",
            "SELECT * FROM (SELECT * FROM events START WITH kind = 'x' CONNECT BY PRIOR id = user_id) WHERE id = 3",
        ),
        (
            "snowflake",
            "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY kind ORDER BY ts MEASURES max(ts) AS last "
            "PATTERN (a b) DEFINE a AS id > 1) WHERE id = 3",
        ),
        ("clickhouse", "SELECT * FROM db.events AS e FINAL WHERE id = 3"),
        ("clickhouse", "SELECT * FROM users AS u JOIN events FINAL ON u.id = events.id WHERE events.id = 3"),
        ("duckdb", "PIVOT events ON kind USING sum(amount)"),
        ("duckdb", "SELECT * FROM (PIVOT events ON kind USING sum(amount)) WHERE id = 3"),
        ("duckdb", "WITH wide AS (PIVOT events ON kind USING sum(amount)) SELECT * FROM wide WHERE id = 3"),
    ],
)
def test_all_rows_count_where_conditions_come_too_late(dialect: str, sql: str) -> None:
    (found,) = predicates(sql, dialect, columns=EVENTS)
    assert found == ALL or isinstance(found, Unknown)


def test_a_number_in_quotes_stops_at_a_union_which_may_be_of_text() -> None:
    sql = "SELECT * FROM (SELECT id AS k FROM events UNION ALL SELECT code FROM codes) q WHERE k {}"
    assert predicates(sql.format("< '9'")) == [ALL]
    assert predicates(sql.format("< 9")) == [Compare(Column("id"), "<", 9)]


def test_oracles_outer_joins_stop_conditions() -> None:
    assert predicates("SELECT * FROM users u, events e WHERE u.id = e.id(+) AND e.kind IS NULL", "oracle") == [ALL]


def test_an_alias_hides_columns_in_having() -> None:
    (found,) = predicates("SELECT max(day) AS day FROM events GROUP BY day HAVING day > '2024-01-01'", "duckdb")
    assert found == ALL


@pytest.mark.parametrize("columns", [None, EVENTS])
def test_an_alias_hides_columns_of_clickhouse(columns: Sequence[str] | None) -> None:
    for sql in [
        "SELECT amount AS id FROM events WHERE id = 7",
        "SELECT (amount AS id) + 1 AS more FROM events WHERE id = 7",
        "SELECT u.id AS id FROM events, users u WHERE id = 7",
        "SELECT amount AS id FROM events JOIN users u ON u.k = events.kind AND id = 7",
    ]:
        assert predicates(sql, "clickhouse", columns=columns) == [ALL], sql
    own = Compare(Column("id"), "=", 7)
    assert predicates("SELECT amount AS id FROM events e WHERE e.id = 7", "clickhouse", columns=columns) == [own]
    assert predicates("SELECT id AS id, kind FROM events WHERE id = 7", "clickhouse", columns=columns) == [own]
    assert predicates("SELECT amount AS id FROM events WHERE id = 7", "duckdb", columns=columns) == [own]
