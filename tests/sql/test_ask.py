"""What statements ask of a table: real shapes of SQL in eight dialects, hostile text, and guesses of dialects."""

import contextlib
import random
import time as clock
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone

import pyarrow as pa
import pytest

from zonal.errors import PredicateError
from zonal.predicates.bind import bind
from zonal.predicates.bound import All, Anything, Some
from zonal.predicates.expressions import And, Column, Compare, Constant, In, Or, Parameter, Predicate, Unknown, leaves
from zonal.sql.ask import TableRead, ask, guess_dialect
from zonal.sql.where import parse_where

NOW = datetime(2024, 3, 31, 12, 30, tzinfo=timezone.utc)
ALL = Constant(True)
EVENTS = ("id", "user_id", "ts", "day", "kind", "country", "amount", "payload")


def asked(sql: str, dialect: str | None = None, **options: object) -> list[TableRead]:
    return ask(sql, ["lake.db.events"], dialect=dialect, now=NOW, **options)  # type: ignore[arg-type]


def predicates(sql: str, dialect: str | None = None, **options: object) -> list[Predicate]:
    return [found.predicate for found in asked(sql, dialect, **options)]


def parts(predicate: Predicate) -> set[Predicate]:
    """Return the conditions that all hold, without those of which nothing is known."""
    found: set[Predicate] = set()
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        found |= parts(part) if isinstance(part, And) else {part}
    return {part for part in found if part != ALL and not isinstance(part, Unknown)}


def expected(condition: str, dialect: str | None) -> set[Predicate]:
    return parts(parse_where(condition, dialect=dialect, now=NOW)) if condition else set()


CORPUS: list[tuple[str, str, list[str]]] = [
    # Spark and Databricks
    (
        "spark",
        """WITH recent AS (
             SELECT user_id, kind, amount, to_date(ts) AS day FROM lake.db.events
             WHERE ts >= date_sub(current_date(), 7)
           ), spend AS (SELECT day, user_id, sum(amount) AS total FROM recent WHERE kind = 'buy' GROUP BY day, user_id)
           SELECT u.name, s.total FROM spend s JOIN users u ON u.id = s.user_id
           WHERE s.day BETWEEN '2024-03-01' AND '2024-03-07' AND s.total > 100 ORDER BY s.total DESC LIMIT 10""",
        ["ts >= date_sub(current_date(), 7) AND kind = 'buy' AND to_date(ts) BETWEEN '2024-03-01' AND '2024-03-07'"],
    ),
    (
        "spark",
        "SELECT e.id, item FROM events e LATERAL VIEW OUTER explode(e.items) x AS item WHERE e.day = "
        "DATE'2024-01-01' AND item > 3",
        ["day = DATE'2024-01-01'"],
    ),
    (
        "spark",
        "SELECT /*+ BROADCAST(u) */ * FROM `db`.`events` LEFT ANTI JOIN users u ON events.user_id = u.id AND "
        "kind = 'x' WHERE events.`day` >= '2024-01-01'",
        ["`day` >= '2024-01-01'"],
    ),
    (
        "spark",
        "INSERT OVERWRITE TABLE daily PARTITION (day) SELECT count(*), day FROM events WHERE day = '2024-01-01' "
        "GROUP BY day",
        ["day = '2024-01-01'"],
    ),
    (
        "databricks",
        """MERGE INTO lake.db.events AS t USING (SELECT * FROM staged WHERE day = '2024-01-01') AS s
           ON t.id = s.id AND t.day = DATE'2024-01-01'
           WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
        ["day = DATE'2024-01-01'"],
    ),
    (
        "databricks",
        """MERGE INTO target t USING (SELECT id, kind FROM db.events WHERE kind IN ('a', 'b')) s
           ON t.id = s.id AND s.kind = 'a'
           WHEN MATCHED THEN DELETE""",
        ["kind IN ('a', 'b') AND kind = 'a'"],
    ),
    (
        "databricks",
        "MERGE INTO events t USING s ON t.id = s.id AND t.day = '2024-01-01' WHEN NOT MATCHED BY SOURCE THEN DELETE",
        [""],
    ),
    (
        "databricks",
        "SELECT * FROM lake.db.events VERSION AS OF 12 WHERE id = 7 QUALIFY row_number() OVER (PARTITION BY id "
        "ORDER BY ts DESC) = 1",
        ["id = 7"],
    ),
    (
        "databricks",
        "DELETE FROM lake.db.events WHERE ts < '2020-01-01' AND country = 'DE'",
        ["ts < '2020-01-01' AND country = 'DE'"],
    ),
    ("spark", "UPDATE events SET kind = 'x' WHERE id IN (1, 2)", ["id IN (1, 2)"]),
    ("spark", "CACHE TABLE hot AS SELECT * FROM events WHERE day > '2024-01-01'", ["day > '2024-01-01'"]),
    # Trino
    (
        "trino",
        """SELECT date_trunc('day', ts), approx_distinct(user_id) FROM iceberg.db.events
           JOIN users ON users.id = events.user_id
           WHERE events.ts >= date_add('day', -7, current_date) AND events.country = 'FR'
           AND users.age > 30 GROUP BY 1""",
        [],
    ),
    (
        "trino",
        """SELECT * FROM lake.db.events CROSS JOIN UNNEST(payload) AS p (item)
           WHERE ts BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-01-02 00:00:00' AND item = 'x'""",
        ["ts BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-01-02 00:00:00'"],
    ),
    (
        "trino",
        """SELECT * FROM (SELECT *, rank() OVER (PARTITION BY user_id, kind ORDER BY ts DESC) AS r FROM events) AS t
           WHERE r = 1 AND user_id = 42 AND ts > DATE '2024-01-01'""",
        ["user_id = 42"],
    ),
    ("trino", "CREATE TABLE x AS SELECT * FROM db.events WHERE id < 100", ["id < 100"]),
    (
        "trino",
        "SELECT id FROM events WHERE kind = 'a' INTERSECT SELECT id FROM events WHERE kind = 'b'",
        ["kind = 'a'", "kind = 'b'"],
    ),
    # Snowflake
    (
        "snowflake",
        """SELECT e.payload:name::string AS name FROM DB.EVENTS e, LATERAL FLATTEN(input => e.payload) f
           WHERE e.ts >= DATEADD(day, -7, '2024-03-31'::date) AND f.value = 3
           QUALIFY ROW_NUMBER() OVER (PARTITION BY e.id ORDER BY e.ts DESC) = 1""",
        ["ts >= DATEADD(day, -7, '2024-03-31'::date)"],
    ),
    (
        "snowflake",
        'SELECT * FROM (SELECT "ts" AS "When", kind AS k FROM events) WHERE "When" > \'2024-01-01\' AND K = \'x\'',
        ["\"ts\" > '2024-01-01' AND kind = 'x'"],
    ),
    ("snowflake", "SELECT TOP 10 * FROM events AT (TIMESTAMP => '2024-01-01'::timestamp) WHERE id = 5", ["id = 5"]),
    # BigQuery
    (
        "bigquery",
        """SELECT * EXCEPT (payload) FROM `lake.db.events`
           WHERE ts >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 24 HOUR) AND country = "DE" """,
        ["ts >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 24 HOUR) AND country = 'DE'"],
    ),
    (
        "bigquery",
        """WITH a AS (SELECT * REPLACE (DATE(ts) AS day) FROM `lake.db.events`)
           SELECT COUNT(*) FROM a WHERE day = DATE "2024-01-01" AND kind = 'x'""",
        ["DATE(ts) = DATE '2024-01-01' AND kind = 'x'"],
    ),
    (
        "bigquery",
        "SELECT e.id, i FROM `lake.db.events` AS e, UNNEST(e.items) AS i WHERE DATE(e.ts) = '2024-01-01' AND "
        "i.price > 3",
        ["DATE(ts) = '2024-01-01'"],
    ),
    # DuckDB
    ("duckdb", "FROM events SELECT count(*) WHERE ts > TIMESTAMP '2024-01-01'", ["ts > TIMESTAMP '2024-01-01'"]),
    (
        "duckdb",
        "SELECT * FROM (SELECT * EXCLUDE (payload), amount AS a FROM db.events UNION ALL BY NAME SELECT * FROM "
        "old) WHERE a > 5 AND id = 7",
        ["id = 7"],  # the star may have an `a`, too, which DuckDB would take
    ),
    ("duckdb", "COPY (SELECT * FROM events WHERE id > 5) TO 'x.parquet'", ["id > 5"]),
    (
        "duckdb",
        "SELECT * FROM trades ASOF JOIN events e ON trades.id = e.id AND trades.ts >= e.ts WHERE e.kind = 'x'",
        [""],
    ),
    # PostgreSQL
    (
        "postgres",
        "SELECT DISTINCT ON (user_id) user_id, ts FROM events WHERE ts >= '2024-01-01'::timestamp ORDER BY user_id, ts",
        ["ts >= '2024-01-01'::timestamp"],
    ),
    (
        "postgres",
        "SELECT * FROM (SELECT DISTINCT ON (user_id) user_id, id FROM events ORDER BY user_id, ts DESC) x WHERE "
        "user_id = 5 AND id > 3",
        ["user_id = 5"],
    ),
    (
        "postgres",
        "SELECT u.id, l.last FROM users u CROSS JOIN LATERAL (SELECT max(e.ts) AS last FROM events e WHERE "
        "e.user_id = u.id AND e.id > 9) l",
        ["id > 9"],
    ),
    (
        "postgres",
        """WITH gone AS (DELETE FROM events WHERE id < 5 RETURNING *) INSERT INTO archive SELECT * FROM gone""",
        ["id < 5"],
    ),
    ("postgres", "UPDATE events e SET amount = s.amount FROM s WHERE s.id = e.id AND e.id > 1000", ["id > 1000"]),
    (
        "postgres",
        "DELETE FROM events USING s WHERE s.id = events.id AND events.day = '2024-01-01'",
        ["day = '2024-01-01'"],
    ),
    # Redshift
    (
        "redshift",
        "SELECT * FROM db.events e JOIN (SELECT max(id) AS top FROM db.events WHERE id < 50) m ON e.id = m.top "
        "WHERE e.amount >= 5",
        ["amount >= 5", "id < 50"],
    ),
    (
        "redshift",
        "UNLOAD ('SELECT * FROM events WHERE day >= \\'2024-01-01\\'') TO 's3://b/x' FORMAT PARQUET",
        ["day >= '2024-01-01'"],
    ),
    # standard
    ("", "SELECT count(*) FROM events WHERE 1 = 0", ["FALSE"]),
    ("", "SELECT * FROM events ORDER BY ts LIMIT 10", [""]),
    ("", "SELECT (SELECT max(ts) FROM events WHERE kind = 'a') AS m, * FROM users", ["kind = 'a'"]),
    ("", "SELECT * FROM a WHERE x IN (SELECT id FROM events WHERE id > 3) OR y = 2", ["id > 3"]),
    (
        "",
        "SELECT * FROM events a JOIN events b ON a.id = b.id AND a.day = '2024-01-01' WHERE b.kind = 'y'",
        ["day = '2024-01-01'", "kind = 'y'"],
    ),
    (
        "",
        "SELECT * FROM (a JOIN (events e JOIN b ON b.id = e.id AND b.x = 1) ON a.id = e.id) WHERE e.id = 3",
        ["id = 3"],
    ),
    (
        "",
        "SELECT * FROM users u LEFT JOIN events e ON e.user_id = u.id AND e.kind = 'x' WHERE e.id IS NULL",
        ["kind = 'x'"],
    ),
    (
        "",
        "SELECT * FROM users u LEFT JOIN events e ON e.user_id = u.id AND e.kind = 'x' WHERE e.id > 3",
        ["kind = 'x' AND id > 3"],
    ),
    ("", "SELECT * FROM events e LEFT JOIN users u ON e.user_id = u.id AND e.kind = 'x' WHERE e.id > 3", ["id > 3"]),
    (
        "",
        "SELECT * FROM events e LEFT JOIN users u ON e.user_id = u.id AND e.kind = 'x' WHERE u.id > 3",
        ["kind = 'x'"],
    ),
    ("", "SELECT * FROM events e FULL JOIN users u ON e.user_id = u.id WHERE e.id = 3 OR u.id = 3", [""]),
    ("", "SELECT * FROM events e FULL JOIN users u ON e.user_id = u.id WHERE e.id = 3", ["id = 3"]),
    (
        "",
        "SELECT day, count(*) FROM events GROUP BY day HAVING day > '2024-01-01' AND count(*) > 5",
        ["day > '2024-01-01'"],
    ),
    ("", "SELECT * FROM (SELECT day, count(*) AS n FROM events GROUP BY ROLLUP (day)) q WHERE day IS NULL", [""]),
    ("", "SELECT * FROM (SELECT max(day) AS day FROM events) q WHERE day = '2024-01-01'", [""]),
    ("", "SELECT * FROM (SELECT * FROM events WHERE id > 3 LIMIT 10) q WHERE kind = 'x'", ["id > 3"]),
    ("", "SELECT * FROM events TABLESAMPLE (10) WHERE id = 3", [""]),
    (
        "",
        "WITH events AS (SELECT * FROM events WHERE id = 1) SELECT * FROM events WHERE kind = 'x'",
        ["id = 1 AND kind = 'x'"],
    ),
    ("", "WITH unused AS (SELECT * FROM events WHERE id = 1) SELECT * FROM events WHERE id = 2", ["id = 2"]),
    (
        "",
        "WITH e (a, b) AS (SELECT id, kind FROM events) SELECT * FROM e WHERE a = 1 AND b = 'x'",
        ["id = 1 AND kind = 'x'"],
    ),
    ("", "WITH e AS (SELECT * FROM events) SELECT * FROM e a, e b WHERE a.id = 1 AND b.id = 2", ["id = 1", "id = 2"]),
]


@pytest.mark.parametrize(("dialect", "sql", "conditions"), CORPUS)
def test_each_read_asks_for_its_conditions(dialect: str, sql: str, conditions: list[str]) -> None:
    found = predicates(sql, dialect)
    assert [parts(predicate) for predicate in found] == [expected(condition, dialect) for condition in conditions]
    assert [one.reads for one in asked(sql, dialect)] == [len(conditions)] * len(conditions), "a read counts all reads"


def test_the_corpus_has_many_dialects() -> None:
    assert len({dialect for dialect, _, _ in CORPUS}) >= 8


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


# Hostile text


def seconds(sql: str, **options: object) -> float:
    start = clock.perf_counter()
    with pytest.raises(PredicateError):
        asked(sql, **options)
    return clock.perf_counter() - start


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM events WHERE id IN (" + "1234567," * 1_300_000 + "1)",
        "SELECT * FROM events WHERE " + "(" * 10_000 + "id = 1" + ")" * 10_000,
        "SELECT * FROM (" * 10_000 + "events" + ")" * 10_000,
        "SELECT * FROM events WHERE " + "NOT " * 10_000 + "id = 1",
        "WITH " + ", ".join(f"c{i} AS (SELECT 1)" for i in range(1_001)) + " SELECT * FROM events",
        random.Random(0).randbytes(100_000).decode("latin-1"),  # noqa: S311 - a test's
        random.Random(0).randbytes(100_000).decode("latin-1").replace("\0", ""),  # noqa: S311
        "events events",
        "SELECT * FROM events WHERE 'unclosed",
        "SELECT 1 FROM events; SELECT 2 FROM events",
        "",
        "-- events",
    ],
    ids=lambda sql: f"{len(sql)}",
)
def test_hostile_text_is_refused_in_bounded_time(sql: str) -> None:
    assert seconds(sql) < 10


def test_statements_that_grow_when_followed_are_refused() -> None:
    names = range(1, 40)
    twice = ", ".join(f"c{i} AS (SELECT a.* FROM c{i - 1} a JOIN c{i - 1} b ON a.id = b.id)" for i in names)
    assert seconds(f"WITH c0 AS (SELECT * FROM events), {twice} SELECT * FROM c39 WHERE id = 1") < 60
    double = ", ".join(f"c{i} AS (SELECT id + id AS id FROM c{i - 1})" for i in names)
    assert seconds(f"WITH c0 AS (SELECT * FROM events), {double} SELECT * FROM c39 WHERE id = 1") < 60


def test_long_chains_of_queries_are_followed() -> None:
    chain = ", ".join(f"c{i} AS (SELECT * FROM c{i - 1})" for i in range(1, 300))
    sql = f"WITH c0 AS (SELECT * FROM events), {chain} SELECT * FROM c299 WHERE id = 1"
    assert predicates(sql) == [Compare(Column("id"), "=", 1)]
    assert predicates(sql, columns=EVENTS) == [Compare(Column("id"), "=", 1)]


def test_random_words_are_read_or_refused() -> None:
    draw = random.Random(1)  # noqa: S311
    words = [
        "SELECT",
        "FROM",
        "events",
        "(",
        ")",
        ",",
        "WHERE",
        "x",
        "=",
        "1",
        "'",
        '"',
        "--",
        "*",
        "WITH",
        "AS",
        "JOIN",
    ]
    words += [
        "ON",
        "UNION",
        "MERGE INTO",
        "USING",
        "{",
        "}",
        "[",
        ":",
        "@",
        "\x01",
        "é",
        "GROUP BY",
        "OVER",
        ".",
        "DELETE",
    ]
    for _ in range(300):
        sql = " ".join(draw.choices(words, k=draw.randint(1, 30)))
        with contextlib.suppress(PredicateError):
            assert isinstance(asked(sql), list)


# Dialects


@pytest.mark.parametrize("dialect", ["spark", "trino", "snowflake", "bigquery", "duckdb", "postgres"])
def test_the_dialect_of_the_corpus_is_guessed(dialect: str) -> None:
    assert guess_dialect([sql for name, sql, _ in CORPUS if name == dialect]) == dialect


def test_plain_statements_are_standard() -> None:
    assert guess_dialect(["SELECT * FROM events WHERE id = 5", "SELECT 1"]) == ""
    assert guess_dialect([]) is None
    assert guess_dialect(["\0", "events events"]) is None


def test_guessing_looks_at_few_statements() -> None:
    start = clock.perf_counter()
    sqls = [f"SELECT * FROM `db`.events WHERE ts >= date_sub(current_date(), {i})" for i in range(20_000)]
    assert guess_dialect([*sqls, "x" * 10_000_000]) == "spark"
    assert clock.perf_counter() - start < 20
