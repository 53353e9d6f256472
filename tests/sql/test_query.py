"""One statement as a predicate of one of its tables: which table is meant, and the same answer as a log's reader."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zonal.errors import PredicateError
from zonal.predicates.bind import bind
from zonal.predicates.expressions import And, Column, Compare, Constant, Or, Predicate, Unknown
from zonal.skipping.files import FileIndex
from zonal.sql.conditions import join
from zonal.sql.query import parse_query
from zonal.tables.registry import open_table
from zonal.verbs.explain import explain
from zonal.workload.reader import read_workload
from zonal.workload.weights import Weighting

COLUMNS = ("id", "k", "x", "a")
ALL = Constant(True)
MAIN_DIALECTS = (
    None,
    "spark",
    "databricks",
    "trino",
    "snowflake",
    "bigquery",
    "duckdb",
    "postgres",
    "redshift",
    "tsql",
)


def is_(name: str, value: int) -> Predicate:
    return Compare(Column(name), "=", value)


ID = is_("id", 7)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t WHERE id = 7", ID),
        ("SELECT * FROM t WHERE t.id = 7", ID),
        ("SELECT * FROM t AS e WHERE e.id = 7 ORDER BY 1 LIMIT 5;", ID),
        ("SELECT * FROM db.t WHERE db.t.id = 7", ID),
        ("SELECT * FROM cat.db.t WHERE cat.db.t.id = 7", ID),
        ("SELECT * FROM t e WHERE E.a.b = 7", is_("a.b", 7)),
        ("SELECT * FROM t WHERE a.b = 7", is_("a.b", 7)),
        ("SELECT count(*) FROM t WHERE id = 7 GROUP BY x HAVING count(*) > 1", ID),
        ("SELECT id, count(*) FROM t GROUP BY id HAVING id = 7", ID),
        ("SELECT * FROM t", ALL),
        ("(SELECT * FROM t WHERE id = 7)", ID),
        ("WITH c AS (SELECT * FROM t WHERE id = 7) SELECT * FROM c WHERE id = 8", And((is_("id", 8), ID))),
        ("WITH t AS (SELECT * FROM t WHERE id = 7) SELECT * FROM t WHERE id = 8", And((is_("id", 8), ID))),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c WHERE id = 7", ID),
        ("SELECT * FROM (SELECT * FROM t) AS q WHERE id = 7", ID),
        ("SELECT * FROM t WHERE id = 7 UNION ALL SELECT * FROM t WHERE id = 8", Or((ID, is_("id", 8)))),
        ("SELECT * FROM t WHERE id = 7 UNION ALL SELECT * FROM t", ALL),
        ("SELECT * FROM t WHERE id = 7 AND x IN (SELECT x FROM t)", ALL),
        ("SELECT * FROM read_parquet('t.parquet') WHERE id = 7", ID),
        ("SELECT * FROM read_parquet('t.parquet') AS r, generate_series(1, 3) AS g WHERE r.id = 7", None),
        ("SELECT * FROM t, generate_series(1, 3) AS g(n) WHERE id = 7 AND n = 1", ID),
        ("WITH unused AS (SELECT * FROM u) SELECT * FROM t WHERE id = 7", ID),
        ("DELETE FROM t WHERE id = 7", ID),
        ("INSERT INTO other SELECT * FROM t WHERE id = 7", ID),
    ],
)
def test_a_single_table_is_meant_whatever_its_name(sql, expected):
    if expected is None:
        with pytest.raises(PredicateError, match="several tables"):
            parse_query(sql).predicate(columns=COLUMNS)
    else:
        assert parse_query(sql).predicate(columns=COLUMNS) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t JOIN u ON t.k = u.k WHERE t.id = 7 AND u.x = 1", ID),
        ("SELECT * FROM u, t WHERE t.id = 7 OR u.x = 1", Or((ID, Unknown("a column of another table")))),
        ("SELECT * FROM u, t WHERE t.id = 7 AND t.k = u.k", ID),
        ("SELECT * FROM u, t WHERE id = 7", ID),
        ("SELECT * FROM u JOIN t ON t.k = u.k AND t.id = 7", ID),
        ("SELECT * FROM t LEFT JOIN u ON t.k = u.k WHERE t.id = 7", ID),
        ("SELECT * FROM u LEFT JOIN t ON t.k = u.k WHERE t.id = 7", ID),
        ("SELECT * FROM u LEFT JOIN t ON t.k = u.k WHERE t.id IS NULL", ALL),
        ("SELECT * FROM t RIGHT JOIN u ON t.k = u.k WHERE t.id IS NULL", ALL),
        ("SELECT * FROM t FULL OUTER JOIN u ON t.k = u.k WHERE t.id IS NULL", ALL),
        ("SELECT * FROM u RIGHT JOIN t ON t.k = u.k WHERE t.id = 7", ID),
        ("SELECT * FROM t a JOIN t b ON a.k = b.k JOIN u ON 1 = 1 WHERE a.id = 7", ALL),
        ("SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = 7 AND t.k = u.k)", ID),
        ("SELECT * FROM t WHERE id = 7 AND k IN (SELECT k FROM u)", And((ID, Unknown("a subquery", (Column("k"),))))),
        ("SELECT * FROM db.t, u WHERE t.id = 7", ID),
        ("SELECT * FROM u AS t, db.t AS v WHERE v.id = 7 AND t.id = 8", ID),
        (
            "SELECT * FROM t PIVOT (sum(x) FOR y IN (1, 2)), u WHERE t.id = 7",
            Unknown("rows that are sampled, pivoted or renamed before"),
        ),
        ("SELECT * FROM t AS v(a, b), u WHERE v.a = 7", Unknown("rows that are sampled, pivoted or renamed before")),
        ("SELECT * FROM (t JOIN u ON 1 = 1) WHERE t.id = 7", ID),
    ],
)
def test_one_of_several_tables_is_meant_by_name(sql, expected):
    query = parse_query(sql)
    assert query.predicate(table="db.t" if "db.t" in sql else "t", columns=COLUMNS) == expected
    assert query.predicate(own=["t"], columns=COLUMNS) == expected, "its own name will do"


def test_an_alias_names_one_of_the_reads_of_a_table():
    query = parse_query("SELECT * FROM t AS a JOIN t AS b ON a.k = b.k WHERE a.id = 7 AND b.id = 8")
    assert query.predicate(table="a") == ID
    assert query.predicate(table="b") == is_("id", 8)
    assert query.predicate() == Or((ID, is_("id", 8)))


def test_a_name_is_the_only_tables_or_the_given_one():
    query = parse_query("SELECT * FROM orders o JOIN users u ON o.id = u.id WHERE o.id = 7 AND u.id = 8")
    assert query.predicate(own=["orders"]) == ID
    assert query.predicate(own=["orders"], table="users") == is_("id", 8), "the given name goes first"
    assert parse_query("SELECT * FROM users WHERE id = 7").predicate(own=["orders"]) == ID
    for own in ([], ["events"]):
        with pytest.raises(PredicateError, match=r"several tables\. Name one of them \(read_as\): 'orders', 'users'"):
            query.predicate(own=own)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t WHERE idd = 7 AND x = 1",
        "SELECT * FROM t AS e WHERE e.idd = 7",
        "WITH c AS (SELECT * FROM t WHERE idd = 7) SELECT * FROM c",
        "SELECT * FROM (SELECT id, x FROM t) AS q WHERE idd = 7",
        "SELECT * FROM t AS a JOIN t AS b ON a.idd = b.id",
    ],
)
def test_a_column_that_no_table_has_is_an_error(sql):
    with pytest.raises(PredicateError, match=r"Unknown column 'idd'\. Did you mean 'id'\?"):
        parse_query(sql).predicate(columns=COLUMNS)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        (None, "SELECT * FROM t JOIN u ON t.k = u.k WHERE idd = 1"),
        (None, "SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND idd = 1)"),
        ("snowflake", "SELECT x AS idd FROM t WHERE idd = 1"),
        ("duckdb", "SELECT * FROM t WHERE len(list_filter(a, idd -> idd > 1)) > 0"),
        ("snowflake", "SELECT * FROM t WHERE x > dateadd(day, 1, a)"),
        ("clickhouse", "SELECT x AS idd FROM t WHERE idd = 1"),
        ("duckdb", "SELECT * FROM t, LATERAL (SELECT * FROM u WHERE idd = 1) AS q"),
    ],
)
def test_a_name_that_may_be_something_else_is_no_error(dialect, sql):
    parse_query(sql, dialect=dialect).predicate(own=["t"], columns=COLUMNS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parse_query("SELECT 1; SELECT 2"), "several statements"),
        (lambda: parse_query("SELECT 1"), "reads no table"),
        (lambda: parse_query("INSERT INTO t SELECT 1"), "reads no table"),
        (lambda: parse_query("DROP TABLE t"), "reads no table"),
        (lambda: parse_query("SELECT FROM WHERE"), "can't be read"),
        (lambda: parse_query("id = 7"), "no statement to read"),
        (lambda: parse_query("SELECT * FROM t, u WHERE x = 1").predicate(), "Name one of them (read_as): 't', 'u'"),
        (lambda: parse_query("SELECT * FROM events").predicate(table="event"), "Did you mean 'events'?"),
    ],
)
def test_errors_speak_to_people(call: Callable[[], object], message: str):
    with pytest.raises(PredicateError) as error:
        call()
    assert message in str(error.value)
    assert len(str(error.value)) < 400


# The same SQL is read the same way as in a log

STATEMENTS = [
    "SELECT * FROM t WHERE id = 7",
    "SELECT * FROM db.t AS e WHERE e.id BETWEEN 7 AND 9",
    "WITH c AS (SELECT id, x FROM t) SELECT * FROM c WHERE id = 7",
    "WITH c AS (SELECT id, x FROM t), d AS (SELECT * FROM c WHERE x = 1) SELECT * FROM d WHERE id = 7",
    "SELECT * FROM (SELECT id, x FROM t) AS q WHERE id = 7",
    "SELECT id, count(*) AS n FROM t GROUP BY id HAVING id = 7",
    "SELECT u.k FROM u JOIN t ON t.k = u.k AND t.id = 7",
    "SELECT u.k FROM u LEFT JOIN t ON t.k = u.k WHERE t.id = 7",
    "SELECT u.k FROM u LEFT JOIN t ON t.k = u.k WHERE t.id IS NULL",
    "SELECT u.k FROM u FULL JOIN t ON t.k = u.k WHERE t.id = 7",
    "SELECT id FROM u, t WHERE id = 7 AND u.z = 1",
    "SELECT u.k FROM u JOIN t ON t.k = u.k WHERE id = 7 AND z = 1",
    "SELECT * FROM t WHERE id = 7 UNION ALL SELECT * FROM t WHERE id = 9",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.k WHERE a.id = 7 AND b.id = 9",
    "SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = 7 AND t.k = u.k)",
    "SELECT * FROM u WHERE k IN (SELECT k FROM t WHERE id = 7)",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY x) AS r FROM t WHERE id = 7",
    "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY x) AS r FROM t) AS q WHERE id = 7 AND r = 1",
    "SELECT max(x) FROM t",
    "DELETE FROM t WHERE id = 7",
    "INSERT INTO u SELECT * FROM t WHERE id = 7",
]


def written(folder: Path, sql: str) -> Path:
    log = folder / "queries.sql"
    log.write_text(sql + ";\n")
    return log


def in_a_log(folder: Path, sql: str, dialect: str | None, name: str = "t") -> list[Predicate]:
    log = written(folder, sql)
    workload = read_workload(
        [log], tables=[name], dialect=dialect or "", columns=COLUMNS, weighting=Weighting(cap=None)
    )
    return [query.predicate for query in workload.queries for _ in range(query.count)]


def alternatives(predicate: Predicate) -> set[str]:
    return set(map(repr, predicate.parts if isinstance(predicate, Or) else (predicate,)))


@pytest.mark.parametrize("dialect", MAIN_DIALECTS)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_asks_what_it_asks_in_a_log(tmp_path, sql, dialect):
    expected = join(in_a_log(tmp_path, sql, dialect), is_and=False)
    found = parse_query(sql, dialect=dialect).predicate(own=["t"], columns=COLUMNS)
    assert alternatives(found) == alternatives(expected)
    assert "id" in repr(found) or "IS NULL" in sql or "max" in sql, f"{sql} reads less than all, in {dialect}"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> str:
    """Sixteen files of ten ids each."""
    folder = tmp_path_factory.mktemp("tables") / "t"
    folder.mkdir()
    for number in range(16):
        ids = list(range(number * 10, number * 10 + 10))
        pq.write_table(pa.table(dict.fromkeys(COLUMNS, ids)), folder / f"{number:02}.parquet")
    return str(folder)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_explain_keeps_the_files_that_an_audit_counts(tmp_path, table, sql):
    snapshot = open_table(table).snapshot()
    index = FileIndex(snapshot)
    kept = [index.prune(bind(one, snapshot.schema)).kept for one in in_a_log(tmp_path, sql, "duckdb")]
    paths = snapshot.files.paths.to_pylist()
    expected = {path for path, *flags in zip(paths, *kept, strict=True) if any(flags)}
    assert {file.path for file in explain(table, sql=sql, dialect="duckdb").files} == expected
    assert len(expected) in (1, 2) or "IS NULL" in sql or "max" in sql
