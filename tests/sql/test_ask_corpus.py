"""What statements ask of a table: real shapes of SQL in eight dialects, and guesses of the dialect."""

import pytest

from support.statements import asked, expected, parts, predicates
from support.work import calls_in
from zonal.sql.ask import guess_dialect

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


# Dialects


@pytest.mark.parametrize("dialect", ["spark", "trino", "snowflake", "bigquery", "duckdb", "postgres"])
def test_the_dialect_of_the_corpus_is_guessed(dialect: str) -> None:
    assert guess_dialect([sql for name, sql, _ in CORPUS if name == dialect]) == dialect


def test_plain_statements_are_standard() -> None:
    assert guess_dialect(["SELECT * FROM events WHERE id = 5", "SELECT 1"]) == ""
    assert guess_dialect([]) is None
    assert guess_dialect(["\0", "events events"]) is None


def test_guessing_looks_at_few_statements() -> None:
    sqls = [f"SELECT * FROM `db`.events WHERE ts >= date_sub(current_date(), {i})" for i in range(20_000)]
    assert guess_dialect([*sqls, "x" * 10_000_000]) == "spark"
    assert calls_in(lambda: guess_dialect(sqls)) < 5_000_000, "a fraction of what reading all of them takes"
