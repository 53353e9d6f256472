"""delta-spark judges what zonal wrote: the rows are the same, every feature is kept, and it goes on writing."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable as DeltaRs
from deltalake import QueryBuilder

from interop.clustering import clustered, meanwhile, rows_of, scan_metrics
from zonal.errors import TableError
from zonal.layouts.layout import Layout
from zonal.rewriting import in_place as rewriting
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.outcome import Clustering
from zonal.verbs.cluster import cluster

pytestmark = pytest.mark.interop

COLUMNS = """
    id bigint, i int, d date, ts timestamp, m decimal(12, 2), s string, f double, st struct<x: int, y: array<string>>"""
NAMES = "id, i, d, ts, m, s, f, st"
NAMES_OF_REGIONS = "element_at(array('eu', 'a b', 'x/y', 'p%q', 'é=+', NULL, ''), 1 + cast(id % 7 AS int))"


def rows(first, last, tasks=3):
    """Rows in no order: every file has values from the whole range in every column."""
    count = last - first
    return f"""
        SELECT v AS id, cast(if(v % 50 = 0, NULL, v * 13 % 1009) AS int) AS i,
            date_add(DATE'1969-06-01', cast(v * 7 % 1000 AS int)) AS d,
            timestamp_micros(v * 3 % 1000 * 7777777777 - 1000000000001) AS ts,
            cast(v * 11 % 1000 * 1.25 - 300 AS decimal(12, 2)) AS m,
            concat('text ', lpad(v * 17 % 1000, 5, '0')) AS s,
            if(v % 100 = 7, double('NaN'), v * 19 % 1000 / 3D) AS f,
            named_struct('x', cast(v * 23 % 1000 AS int), 'y', array(concat('y', v), NULL)) AS st
        FROM (SELECT {first} + id * 7919 % {count} AS v FROM range(0, {count}, 1, {tasks}))"""


def insert(first, last, tasks=3, names=NAMES):
    return f"INSERT INTO {{t}} ({names}) {rows(first, last, tasks)}"


@dataclass(frozen=True)
class Case:
    """A table with some of Delta's features."""

    columns: str = COLUMNS
    clause: str = ""
    properties: str = ""
    then: tuple[str, ...] = (insert(0, 500),)
    by: tuple[str, ...] = ("id", "ts")
    delta_rs: bool = True
    """delta-rs can read such a table."""

    def statements(self):
        given = f"TBLPROPERTIES ({self.properties})" if self.properties else ""
        return f"CREATE TABLE {{t}} ({self.columns}) USING delta {self.clause} {given}", *self.then


def mapped(mode):
    """A table whose columns were renamed, dropped, and added again under a name that was in use."""
    return Case(
        columns=f"{COLUMNS}, `odd name.x` int, part string",
        clause="PARTITIONED BY (part)",
        properties=f"'delta.columnMapping.mode' = '{mode}', 'delta.enableDeletionVectors' = 'true'",
        then=(
            f"INSERT INTO {{t}} SELECT *, -i, concat('p', id % 2) FROM ({rows(0, 500)})",
            "ALTER TABLE {t} RENAME COLUMN id TO number",
            "ALTER TABLE {t} RENAME COLUMN part TO partition",
            "ALTER TABLE {t} RENAME COLUMN st.x TO z",
            "ALTER TABLE {t} DROP COLUMN s",
            "ALTER TABLE {t} ADD COLUMN s int",
            "INSERT INTO {t} (number, i, s, partition) SELECT id, -1, -2, 'p2' FROM range(500, 600, 1, 1)",
            "DELETE FROM {t} WHERE number % 10 = 3",
        ),
        by=("number", "st.z", "odd name.x"),
    )


TWICE = (insert(0, 300, 2), insert(300, 500, 1))
CASES = {
    "plain": Case(
        by=("id", "i", "d", "ts", "m", "s", "st.x"),
        then=(insert(0, 1000, 4),),
    ),
    "partitioned": Case(
        columns=f"{COLUMNS}, region string, day date, amount decimal(5, 1), moment timestamp",
        clause="PARTITIONED BY (region, day, amount, moment)",
        then=(
            f"INSERT INTO {{t}} SELECT *, {NAMES_OF_REGIONS}, if(id % 7 = 6, NULL, DATE'1969-12-30'), "
            "if(id % 7 = 5, NULL, -1.5), if(id % 7 = 4, NULL, timestamp_micros(1704067200123456)) "
            f"FROM ({rows(0, 420, 2)})",
        ),
    ),
    "deletion_vectors": Case(
        properties="'delta.enableDeletionVectors' = 'true'",
        then=(
            *TWICE,
            "DELETE FROM {t} WHERE id % 10 = 3",
            "DELETE FROM {t} WHERE id BETWEEN 290 AND 310",
            "UPDATE {t} SET i = -1 WHERE id = 77",
        ),
    ),
    "mapping_by_name": mapped("name"),
    "mapping_by_id": mapped("id"),
    "row_tracking": Case(
        properties="'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'",
        then=(*TWICE, "UPDATE {t} SET i = -1 WHERE id % 50 = 7", "DELETE FROM {t} WHERE id % 10 = 3"),
    ),
    "in_commit_timestamps": Case(properties="'delta.enableInCommitTimestamps' = 'true'"),
    "liquid": Case(clause="CLUSTER BY (id, i)", then=(*TWICE, "OPTIMIZE {t}", insert(500, 600, 1))),
    "columns_with_rules": Case(
        columns=f"{COLUMNS}, key bigint GENERATED ALWAYS AS IDENTITY, twice bigint GENERATED ALWAYS AS (id * 2), "
        "seven int DEFAULT 7, sure bigint NOT NULL DEFAULT 1",
        properties="'delta.feature.allowColumnDefaults' = 'supported'",
        then=("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)", *TWICE),
        delta_rs=False,
    ),
    "change_data_feed": Case(
        properties="'delta.enableChangeDataFeed' = 'true'", then=(*TWICE, "UPDATE {t} SET i = -1 WHERE id < 9")
    ),
    "widened": Case(
        columns="id int, tiny tinyint, f float, m decimal(6, 2), dt date, st struct<x: smallint>",
        properties="'delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported'",
        then=(
            "INSERT INTO {t} SELECT cast(id AS int), cast(id % 100 AS tinyint), cast(id / 7 AS float), "
            "cast(id AS decimal(6, 2)), date_add(DATE'1969-12-01', cast(id AS int)), "
            "named_struct('x', cast(id AS smallint)) FROM range(0, 300, 1, 2)",
            "ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
            "ALTER TABLE {t} ALTER COLUMN tiny TYPE int",
            "ALTER TABLE {t} ALTER COLUMN f TYPE double",
            "ALTER TABLE {t} ALTER COLUMN m TYPE decimal(14, 6)",
            "ALTER TABLE {t} ALTER COLUMN dt TYPE timestamp_ntz",
            "ALTER TABLE {t} ALTER COLUMN st.x TYPE int",
            "INSERT INTO {t} SELECT id + 5000000000, 100000, id / 7D + 1e300, id + 0.000001, "
            "timestamp_ntz'2024-01-01 12:00:00.5', named_struct('x', 100000) FROM range(0, 100, 1, 1)",
        ),
        by=("id", "dt", "m"),
        delta_rs=False,
    ),
    "variants_and_maps": Case(
        columns=f"{COLUMNS}, v variant, n timestamp_ntz, pairs map<string, array<int>>, bin binary, b boolean",
        then=(
            "INSERT INTO {t} SELECT *, parse_json(concat('{\"a\": [', id, ', null, \"x\"]}')), "
            "cast(ts AS timestamp_ntz), if(id % 5 = 0, NULL, map('k', array(i, NULL), 'l', NULL)), "
            f"unhex(hex(id)), id % 3 = 0 FROM ({rows(0, 500)})",
        ),
        by=("n", "bin", "b", "id"),
        delta_rs=False,
    ),
    "v2_checkpoints": Case(
        properties="'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2', "
        "'delta.enableDeletionVectors' = 'true'",
        then=(*TWICE, "DELETE FROM {t} WHERE id % 10 = 3"),
    ),
    "append_only": Case(properties="'delta.appendOnly' = 'true'"),
}
TRACKED = "*, _metadata.row_id AS row_id, _metadata.row_commit_version AS row_version"


@dataclass(frozen=True)
class Judged:
    """A table that zonal clustered, and what the engine saw in it before."""

    name: str
    path: str
    before: dict = field(repr=False)
    version: int
    result: Clustering

    def at(self, version):
        return f"{self.name} VERSION AS OF {version}"


@pytest.fixture(scope="module")
def sql(spark):
    """Run SQL and return its rows."""
    return lambda statement: spark.sql(statement).collect()


@pytest.fixture(scope="module")
def make(spark, tmp_path_factory):
    """Make a table of a case, and return its path."""
    folder = tmp_path_factory.mktemp("delta tables")

    def made(name, case):
        path = str(folder / name)
        for statement in case.statements():
            spark.sql(statement.replace("{t}", f"delta.`{path}`"))
        return path

    return made


@pytest.fixture(scope="module")
def judged(spark, make):
    """Make and cluster the tables, each when it is first asked for."""
    found = {}

    def of(name):
        if name not in found:
            case = CASES[name]
            path = make(name, case)
            table = f"delta.`{path}`"
            version = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first().version
            before = rows_of(spark, f"SELECT {shown(name)} FROM {table}")
            found[name] = Judged(table, path, before, version, clustered(path, by=case.by))
        return found[name]

    return of


def shown(name):
    return TRACKED if name == "row_tracking" else "*"


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(rewriting, "_FIRST_PAUSE", 0)


# --- every table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_rows_are_the_same(spark, judged, name):
    table = judged(name)
    (version,) = table.result.run.versions
    assert version == table.version + 1, "one commit, right behind what was read"
    after = rows_of(spark, f"SELECT {shown(name)} FROM {table.at(version)}")
    assert after - table.before == {}, "no row came back"
    assert table.before - after == {}, "no row is lost"
    assert rows_of(spark, f"SELECT {shown(name)} FROM {table.at(table.version)}") == table.before, "nor in the past"
    assert table.result.change.rows == table.before.total()


@pytest.mark.parametrize("name", CASES)
def test_all_files_are_replaced_in_an_operation_that_the_history_shows(sql, judged, name):
    table = judged(name)
    entry = next(e for e in sql(f"DESCRIBE HISTORY {table.name}") if e.version == table.result.run.versions[0])
    assert entry.operation == "OPTIMIZE"
    assert entry.engineInfo.startswith("zonal/")
    assert entry.isBlindAppend is False
    parameters = entry.operationParameters
    assert json.loads(parameters["zOrderBy"]) == list(CASES[name].by)
    assert Layout.from_json(parameters["zonal.layout"]).columns == CASES[name].by
    assert int(entry.operationMetrics["numAddedFiles"]) == table.result.change.added_files
    assert int(entry.operationMetrics["numRemovedFiles"]) == table.result.change.removed_files
    frame = sql(f"SELECT DISTINCT _metadata.file_path AS path FROM {table.at(table.result.run.versions[0])}")
    assert len(frame) == table.result.change.added_files
    assert all("zonal" in row.path for row in frame), "every row is read from a new file"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.delta_rs])
def test_delta_rs_reads_the_same_rows(spark, judged, name):
    table = judged(name)
    found = DeltaRs(table.path, version=table.result.run.versions[0])
    key = CASES[name].by[0]
    query = f"SELECT count(*) AS rows, sum({key}) AS total, count(i) AS i FROM t"
    (row,) = pa.table(QueryBuilder().register("t", found).execute(query).read_all()).to_pylist()
    (spark_row,) = spark.sql(query.replace("FROM t", f"FROM {table.at(table.version)}")).collect()
    assert row == spark_row.asDict()


@pytest.mark.parametrize("name", ["plain", "deletion_vectors", "liquid", "row_tracking", "partitioned"])
def test_clustering_again_finds_nothing_to_do(judged, name):
    assert clustered(judged(name).path).run.versions == ()


# --- features --------------------------------------------------------------------------------------------------------


def test_rows_that_come_later_get_ids_of_their_own(sql, judged):
    table = judged("row_tracking")
    sql(f"INSERT INTO {table.name} (id) VALUES (-1), (-2)")
    (row,) = sql(f"SELECT count(*) AS rows, count(DISTINCT _metadata.row_id) AS ids FROM {table.name}")
    assert row.rows == row.ids == table.before.total() + 2


def test_times_of_commits_rise(sql, judged):
    table = judged("in_commit_timestamps")
    sql(f"INSERT INTO {table.name} (id) VALUES (-1)")
    times = [entry.timestamp for entry in sql(f"DESCRIBE HISTORY {table.name}")]
    assert times == sorted(set(times), reverse=True), "every version is later than the one before"


def test_a_liquid_table_stays_liquid(spark, sql, judged):
    table = judged("liquid")
    assert sql(f"DESCRIBE DETAIL {table.name}")[0].clusteringColumns == ["id", "i"]
    adds = [action["add"] for action in commit_of(table) if "add" in action]
    assert {add["clusteringProvider"] for add in adds} == {"zonal"}
    sql(f"OPTIMIZE {table.name} FULL")
    assert rows_of(spark, f"SELECT * FROM {table.name}") == table.before, "delta-spark clusters zonal's files anew"


def commit_of(table):
    with open(f"{table.path}/_delta_log/{table.result.run.versions[0]:020d}.json") as lines:
        return [json.loads(line) for line in lines]


def test_rules_of_columns_go_on(sql, judged):
    table = judged("columns_with_rules")
    (old,) = sql(f"SELECT max(key) AS key FROM {table.name}")
    sql(f"INSERT INTO {table.name} (id) VALUES (4000), (4001)")
    new = sql(f"SELECT key, twice, seven, sure FROM {table.name} WHERE id >= 4000 ORDER BY id")
    assert all(row.key > old.key for row in new), "identities continue"
    assert new[0].key != new[1].key
    assert [(row.twice, row.seven, row.sure) for row in new] == [(8000, 7, 1), (8002, 7, 1)]
    with pytest.raises(Exception, match="positive"):
        sql(f"INSERT INTO {table.name} (id) VALUES (-5)")


def test_the_change_data_feed_has_no_changes(spark, judged):
    table = judged("change_data_feed")
    (version,) = table.result.run.versions
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", version - 1)
    changes = feed.option("endingVersion", version).format("delta").load(table.path).collect()
    assert {row._commit_version for row in changes} == {version - 1}, "the update before is there, the rewrite is not"


def test_iceberg_compatibility_is_refused_by_name(make):
    case = Case(properties="'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name'")
    path = make("iceberg_compat", case)
    with pytest.raises(TableError, match="icebergCompatV2"):
        clustered(path, by=("id",))


# --- skipping --------------------------------------------------------------------------------------------------------

FILTERS = (
    "id = 123",
    "i BETWEEN 500 AND 510",
    "d = DATE'1970-03-01'",
    "ts = timestamp_micros(3 * 7777777777 - 1000000000001)",
    "m = 12.50",
    "s = 'text 00500'",
    "st.x < 20",
)


@pytest.fixture(scope="module")
def one_file(make):
    """A table of one file, which is clustered by another column in each test."""
    return make("skipped", Case(then=(insert(0, 1000, 1),)))


@pytest.mark.parametrize("condition", FILTERS)
def test_delta_spark_skips_files(spark, sql, one_file, condition):
    table = f"delta.`{one_file}`"
    result = clustered(one_file, by=condition.split()[0], full=True, target_file_size=3_500)
    assert result.change.added_files >= 5
    query = f"SELECT * FROM {table} WHERE {condition}"
    assert scan_metrics(spark, query)["numFiles"] <= 2, f"of {result.change.added_files} files"
    found = sql(f"SELECT count_if({condition}) AS rows FROM {table}")[0].rows
    assert len(sql(query)) == found > 0, "and finds what a query without skipping finds"


# --- writers that come after, and in between -------------------------------------------------------------------------


def test_delta_spark_goes_on_writing(spark, sql, make):
    path = make(
        "goes_on",
        Case(
            properties="'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '4', "
            "'delta.enableRowTracking' = 'true'",
            then=(insert(0, 400, 2), "DELETE FROM {t} WHERE id % 10 = 3"),
        ),
    )
    table = f"delta.`{path}`"
    ids = {number for number in range(400) if number % 10 != 3}
    before = rows_of(spark, f"SELECT {TRACKED} FROM {table}")
    result = cluster(path, by=("id", "ts"), files=NewFiles(target_file_size=3000), spark=spark)
    assert result.change.added_files > 1, "this one ran on Spark"
    assert rows_of(spark, f"SELECT {TRACKED} FROM {table}") == before

    def seen():
        return sorted(row.id for row in sql(f"SELECT id FROM {table}"))

    sql(f"INSERT INTO {table} (id) VALUES (1000)")
    sql(f"DELETE FROM {table} WHERE id % 10 = 4")
    sql(f"UPDATE {table} SET id = 2000 WHERE id = 55")
    sql(
        f"MERGE INTO {table} t USING (SELECT explode(array(3000L, 56L, 57L)) AS id) n ON t.id = n.id "
        "WHEN MATCHED AND t.id = 56 THEN DELETE WHEN MATCHED THEN UPDATE SET t.id = 4000 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)"
    )
    now = {number for number in ids if number % 10 != 4} - {55, 56, 57} | {1000, 2000, 3000, 4000}
    assert seen() == sorted(now)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert seen() == sorted(now), "also from the checkpoint"
    sql(f"RESTORE TABLE {table} TO VERSION AS OF {result.run.versions[0] - 1}")
    assert rows_of(spark, f"SELECT {TRACKED} FROM {table}") == before
    sql(f"RESTORE TABLE {table} TO VERSION AS OF {result.run.versions[0]}")
    sql(f"OPTIMIZE {table} ZORDER BY (i)")
    assert seen() == sorted(ids)
    clustered(path)
    assert seen() == sorted(ids)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    sql(f"VACUUM {table} RETAIN 0 HOURS")
    assert seen() == sorted(ids), "all live files survive"
    left = {str(found) for found in Path(path).rglob("*.parquet") if "_delta_log" not in str(found)}
    assert left == {unquote(uri) for uri in DeltaRs(path).file_uris()}, "and nothing but live files does"


MEANWHILE = {
    "insert": insert(1000, 1100, 1),
    "delete": "DELETE FROM {t} WHERE id % 20 = 1",
    "update": "UPDATE {t} SET i = -7 WHERE id < 5",
    "delete_of_whole_files": "DELETE FROM {t} WHERE part = 'p1'",
    "compaction": "OPTIMIZE {t} ZORDER BY (i)",
    "new_column": "ALTER TABLE {t} ADD COLUMN later int",
}
CARRIED = {"delete": 10, "update": 5}
"""Rows that Delta deletes by deletion vectors, in files that stay."""


@pytest.mark.parametrize(
    ("name", "vectors"), [*((name, "true") for name in MEANWHILE), ("delete", "false"), ("update", "false")]
)
def test_what_others_write_meanwhile_is_kept(spark, make, name, vectors):
    path = make(
        f"meanwhile_{name}_{vectors}",
        Case(
            columns=f"{COLUMNS}, part string",
            clause="PARTITIONED BY (part)",
            properties=f"'delta.enableDeletionVectors' = '{vectors}'",
            then=(f"INSERT INTO {{t}} SELECT *, concat('p', id % 2) FROM ({rows(0, 200, 1)})",),
        ),
    )
    table = f"delta.`{path}`"
    runner = meanwhile(lambda: spark.sql(MEANWHILE[name].replace("{t}", table)))
    result = clustered(path, by=("id", "ts"), spark=runner)
    theirs = rows_of(spark, f"SELECT * FROM {table} VERSION AS OF 2")
    assert rows_of(spark, f"SELECT * FROM {table}") == theirs, "the rows are those of the other writer's version"
    assert min(result.run.versions) > 2, "both commits are there, theirs first"
    kept = name == "insert" or (vectors == "true" and name in CARRIED)
    assert (result.run.conflicts == 0) == kept, "an insert touches no file that was rewritten, and deletes are carried"
    assert result.run.carried_deletes == (CARRIED.get(name, 0) if kept else 0)


def test_delta_goes_on_with_deletes_that_were_carried_over(spark, make):
    """The new files' vectors are read, grow by further deletes, survive a VACUUM, and are purged."""
    path = make(
        "carried",
        Case(properties="'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true'", then=TWICE),
    )
    table = f"delta.`{path}`"
    delete = f"DELETE FROM {table} WHERE id % 50 = 3"
    before = clustered(path, by=("id", "ts"), spark=meanwhile(lambda: spark.sql(delete)))
    assert (before.run.conflicts, before.run.carried_deletes) == (0, 10)
    assert list(Path(path).rglob("zonal-*/deletion_vector_*.bin"))
    expected = {number for number in range(500) if number % 50 != 3}

    def ids():
        return [row.id for row in spark.sql(f"SELECT id FROM {table} ORDER BY id").collect()]

    assert ids() == sorted(expected)
    for low in (3, 53, 203):
        found = spark.sql(f"SELECT id FROM {table} WHERE id BETWEEN {low} AND {low + 1}").collect()
        assert [row.id for row in found] == [low + 1], "by statistics and vectors together"
    changes = spark.read.option("readChangeFeed", "true").option("startingVersion", before.run.versions[0])
    assert not changes.format("delta").load(path).count(), "a rewrite changes no row"
    spark.sql(f"DELETE FROM {table} WHERE id % 50 = 4")
    expected -= set(range(4, 500, 50))
    assert ids() == sorted(expected), "vectors grow"
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    assert ids() == sorted(expected), "the files of live vectors survive"
    spark.sql(f"REORG TABLE {table} APPLY (PURGE)")
    assert ids() == sorted(expected)
    clustered(path)
    assert ids() == sorted(expected)
