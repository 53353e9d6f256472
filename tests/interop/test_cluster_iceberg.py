"""Iceberg's Spark runtime judges what zonal wrote: the rows are the same, the metadata true, and it goes on writing."""

import os
import time
from dataclasses import dataclass, field
from datetime import time as time_of_day
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, LongType, NestedField, StringType, TimestamptzType, TimeType, UUIDType

from interop.clustering import clustered, meanwhile, rows_of, scan_metrics
from interop.engines import run_iceberg
from interop.iceberg_cases import CASES, MERGE_ON_READ, NAMES, Case, insert, rows
from zonal.rewriting import in_place as rewriting
from zonal.rewriting.outcome import Clustering
from zonal.tables.iceberg.table import IcebergTable

pytestmark = pytest.mark.interop


@dataclass(frozen=True)
class Judged:
    """A table that zonal clustered, and what the engine saw in it before."""

    name: str
    before: dict = field(repr=False)
    snapshot: int
    result: Clustering
    case: Case

    @property
    def after(self):
        """The table as zonal left it, for a query."""
        return f"{self.name} VERSION AS OF {self.result.run.versions[0]}"


@pytest.fixture(scope="module")
def sql(spark):
    """Run SQL and return its rows."""
    return lambda statement: spark.sql(statement).collect()


@pytest.fixture(scope="module")
def properties(folder_of_engines):
    """How PyIceberg opens the engine's catalog."""
    uri, warehouse = f"sqlite:///{folder_of_engines / 'catalog.db'}", f"file://{folder_of_engines / 'warehouse'}"
    return {"type": "sql", "uri": uri, "warehouse": warehouse}


@pytest.fixture(scope="module")
def opened(properties):
    """Open a table of the engine's catalog."""

    def of(name, version=None):
        return IcebergTable.from_catalog(f"db.{name}", catalog="ice", catalog_properties=properties, version=version)

    return of


@pytest.fixture(scope="module")
def make(spark):
    """Make a table of a case, and return its name for queries."""

    def made(name, case):
        for statement in case.statements():
            run_iceberg(spark, statement.replace("{t}", f"ice.db.{name}"))
        return f"ice.db.{name}"

    return made


@pytest.fixture(scope="module")
def judged(spark, make, opened):
    """Make and cluster the tables, each when it is first asked for."""
    found = {}

    def of(name):
        if name not in found:
            case = CASES[name]
            table = make(name, case)
            source = f"{table} VERSION AS OF '{case.branch}'" if case.branch else table
            before = rows_of(spark, f"SELECT {case.shown} FROM {source}")
            snapshot = (
                spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = '{case.branch or 'main'}'")
                .first()
                .snapshot_id
            )
            result = clustered(opened(name, case.branch), by=case.by)
            found[name] = Judged(table, before, snapshot, result, case)
        return found[name]

    return of


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(rewriting, "_FIRST_PAUSE", 0)


# --- every table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_rows_are_the_same(spark, sql, judged, name):
    table = judged(name)
    after = rows_of(spark, f"SELECT {table.case.shown} FROM {table.after}")
    assert after - table.before == {}, "no row came back"
    assert table.before - after == {}, "no row is lost"
    assert table.result.change.rows == table.before.total()
    head = sql(f"SELECT snapshot_id FROM {table.name}.refs WHERE name = '{table.case.branch or 'main'}'")
    assert [row.snapshot_id for row in head] == [*table.result.run.versions], "one snapshot, and the branch is there"


@pytest.mark.parametrize("name", CASES)
def test_the_summary_counts_what_the_files_table_counts(sql, judged, name):
    table = judged(name)
    (snapshot,) = sql(f"SELECT * FROM {table.name}.snapshots WHERE snapshot_id = {table.result.run.versions[0]}")
    assert snapshot.operation == "replace"
    assert snapshot.parent_id == table.snapshot
    files = sql(
        f"SELECT content, record_count, file_size_in_bytes FROM {table.name}.files VERSION AS OF {snapshot.snapshot_id}"
    )
    summary = {name: int(value) for name, value in snapshot.summary.items() if value.isdecimal()}
    data = [file for file in files if file.content == 0]
    assert summary["total-data-files"] == summary["added-data-files"] == len(data) == table.result.lookups.files_after
    assert summary["total-records"] == summary["added-records"] == sum(file.record_count for file in data)
    assert summary["total-files-size"] == sum(file.file_size_in_bytes for file in files)
    assert summary["total-delete-files"] == len(files) - len(data) == 0, "all deletes are applied"
    assert summary["total-position-deletes"] == summary["total-equality-deletes"] == 0
    assert summary["deleted-data-files"] == table.result.change.removed_files


@pytest.mark.parametrize("name", CASES)
def test_the_bounds_are_those_of_the_values(spark, sql, judged, name):
    table = judged(name)
    leaves = list(leaves_of(spark.sql(f"SELECT * FROM {table.after}").schema))
    ends = ", ".join(ends_of(*leaf) for leaf in leaves)
    values = {row._file: row for row in sql(f"SELECT _file, {ends} FROM {table.after} GROUP BY _file")}
    files = sql(
        f"SELECT file_path, record_count, readable_metrics AS told FROM {table.name}.files "
        f"VERSION AS OF {table.result.run.versions[0]} WHERE content = 0"
    )
    assert {file.file_path for file in files} == set(values)
    for file in files:
        for at, (path, kind) in enumerate(leaves):
            told = file.told[path]
            least, greatest, nulls, nans = values[file.file_path][1 + at]
            where = f"{path} of {file.file_path}: {told}"
            if least is None:
                assert told.lower_bound is told.upper_bound is None, where
            elif kind in ("string", "binary"):
                assert told.lower_bound <= least, where
                assert told.upper_bound >= greatest, where
                assert least.startswith(told.lower_bound), where
            else:
                assert (told.lower_bound, told.upper_bound) == (least, None if nans else greatest), where
            assert told.null_value_count == nulls, where
            assert told.value_count == file.record_count, where
            only_nans = nans and nans + nulls == file.record_count
            assert (told.nan_value_count or 0) == (0 if only_nans else nans or 0), where


def leaves_of(struct, above=""):
    """Yield path and type of everything that has one value per row."""
    for part in struct.fields:
        kind = part.dataType.typeName()
        if kind == "struct":
            yield from leaves_of(part.dataType, f"{above}{part.name}.")
        elif kind not in ("array", "map"):
            yield above + part.name, kind


def ends_of(path, kind):
    numbers = kind in ("float", "double")
    value = f"if(isnan({path}), NULL, {path})" if numbers else path
    nans = f"count_if(isnan({path}))" if numbers else "cast(NULL AS bigint)"
    return f"struct(min({value}), max({value}), count_if({path} IS NULL), {nans})"


@pytest.mark.parametrize("name", CASES)
def test_pyiceberg_reads_the_same_rows(spark, judged, opened, name):
    table = judged(name)
    key = table.case.by[0]
    found = opened(name).table.scan(snapshot_id=table.result.run.versions[0]).to_arrow()
    (row,) = spark.sql(f"SELECT count(*) AS rows, sum({key}) AS total FROM {table.after}").collect()
    assert found.num_rows == row.rows
    assert pa.compute.sum(found[key]).as_py() == row.total


@pytest.mark.parametrize("name", ["plain_v1", "deletion_vectors", "transforms", "evolved_partitions"])
def test_clustering_again_finds_nothing_to_do(judged, opened, name):
    judged(name)
    assert clustered(opened(name)).run.versions == ()


# --- what Spark's SQL can't write ------------------------------------------------------------------------------------


def java_table(spark, name):
    return spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def delete_equal(spark, name, folder, rows, partition=None):
    """Commit an equality delete, as Flink does, by the Java API; `rows` are Arrow columns with field ids."""
    path = folder / f"equal-{time.monotonic_ns()}.parquet"
    pq.write_table(rows, path)
    table = java_table(spark, name)
    ids = [int(part.metadata[b"PARQUET:field_id"]) for part in rows.schema]
    array = spark._sc._gateway.new_array(spark._jvm.int, len(ids))
    for at, number in enumerate(ids):
        array[at] = number
    builder = spark._jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(array)
    builder = builder.withPath(f"file:{path}").withFormat("PARQUET").withFileSizeInBytes(path.stat().st_size)
    builder = builder.withRecordCount(rows.num_rows)
    if partition:
        builder = builder.withPartitionPath(partition)
    table.newRowDelta().addDeletes(builder.build()).commit()


def column(name, number, values, kind=None):
    kind = kind or pa.int64()
    schema = pa.schema([pa.field(name, kind, True, {"PARQUET:field_id": str(number)})])
    return pa.table([pa.array(values, kind)], schema)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_equality_deletes_removed_stay_away(spark, sql, make, opened, tmp_path, version):
    name = f"equality_deletes_v{version}"
    case = Case(version, columns="id bigint, k string, v int", clause="PARTITIONED BY (k)", then=())
    table = make(name, case)
    sql(f"INSERT INTO {table} SELECT id, concat('k', id % 3), cast(id AS int) FROM range(0, 300, 1, 1) ORDER BY 2")
    delete_equal(spark, table, tmp_path, column("id", 1, [0, 3, 6, 7, None]), "k=k0")
    sql(f"INSERT INTO {table} VALUES (0, 'k0', -1), (NULL, 'k0', -2)")
    delete_equal(spark, table, tmp_path, column("v", 3, [4, None], pa.int32()), "k=k1")
    before = rows_of(spark, f"SELECT {case.shown} FROM {table}")
    assert before.total() == 298, "0, 3 and 6 were deleted, 7 is in another partition, 0 came back; 4 was deleted"
    runner = meanwhile(lambda: delete_equal(spark, table, tmp_path, column("id", 1, [9]), "k=k0"))
    result = clustered(opened(name), by=("id",), spark=runner)
    gone = 1
    assert result.change.rows == 298
    after = rows_of(spark, f"SELECT {case.shown} FROM {table}")
    assert after - before == {}, "no row came back"
    assert (before - after).total() == gone, "what was deleted meanwhile is deleted"
    assert not sql(f"SELECT * FROM {table} WHERE id = 9")
    clustered(opened(name), full=True)
    assert rows_of(spark, f"SELECT {case.shown} FROM {table}") == after
    assert sql(f"SELECT count(*) AS n FROM {table}.delete_files")[0].n == 0, "no delete file is needed any more"


def test_types_that_spark_lacks(properties, spark, opened):
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "u", UUIDType(), required=False),
        NestedField(3, "fixed", FixedType(4), required=False),
        NestedField(4, "ts", TimestamptzType(), required=False),
        NestedField(5, "s", StringType(), required=False),
        NestedField(6, "t", TimeType(), required=False),
    )
    catalog = SqlCatalog("ice", **properties)
    made = catalog.create_table("db.odd_types", schema)
    values = [at * 7919 % 300 for at in range(300)]
    made.append(
        pa.table(
            {
                "id": values,
                "u": pa.array([UUID(int=n << 100).bytes for n in values], pa.binary(16)).cast(pa.uuid()),
                "fixed": pa.array([n.to_bytes(4, "big") for n in values], pa.binary(4)),
                "ts": pa.array([n * 10**9 for n in values], pa.timestamp("us", "UTC")),
                "s": pa.array([None if n % 7 == 0 else f"s{n}" for n in values]),
                "t": pa.array([time_of_day(n // 60, n % 60, 1) for n in values], pa.time64("us")),
            }
        )
    )
    before = sorted(made.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert clustered(opened("odd_types"), by=("u", "fixed", "t"), target_file_size=3000).change.added_files > 1
    after = catalog.load_table("db.odd_types").scan().to_arrow().to_pylist()
    assert sorted(after, key=lambda row: row["id"]) == before
    catalog.load_table("db.odd_types").update_schema().delete_column("t").commit()  # Spark reads no table with a time
    seen = spark.sql("SELECT id, u, fixed, ts, s FROM ice.db.odd_types ORDER BY id").collect()
    assert [(row.id, row.u, bytes(row.fixed)) for row in seen] == [
        (row["id"], str(row["u"]), row["fixed"]) for row in before
    ]


def test_a_linear_layout_is_a_sort_order_of_the_files(sql, make, opened):
    table = make("linear", Case(2, then=(insert(0, 300, 2),)))
    clustered(opened("linear"), by=("d", "st.x"), layout="linear")
    orders = opened("linear").table.metadata.sort_orders
    (told,) = sql(f"SELECT DISTINCT sort_order_id AS id FROM {table}.files")
    (order,) = [order for order in orders if order.order_id == told.id]
    schema = opened("linear").table.schema()
    assert [schema.find_column_name(part.source_id) for part in order.fields] == ["d", "st.x"]
    clustered(opened("linear"), by=("d", "st.x"), layout="zorder", full=True)
    assert [row.id for row in sql(f"SELECT DISTINCT sort_order_id AS id FROM {table}.files")] in ([0], [None])


# --- skipping --------------------------------------------------------------------------------------------------------

FILTERS = (
    "id = 123",
    "i BETWEEN 500 AND 510",
    "d = DATE'1970-03-01'",
    "ts = timestamp_micros(3 * 7777777777 - 1000000000001)",
    "m = 12.50",
    "w > -24691357802469135780246.914",
    "f < 5",
    "bin < X'0100'",
    "s = 'long text that is cut 00500😀'",
    "st.x < 20",
)


@pytest.fixture(scope="module")
def one_file(make):
    """A table of one file, which is clustered by another column in each test."""
    return make("skipped", Case(2, then=(insert(0, 1000, 1),)))


@pytest.mark.parametrize("condition", FILTERS)
def test_the_engine_skips_files(spark, sql, one_file, opened, condition):
    result = clustered(opened("skipped"), by=condition.split()[0], full=True)
    assert result.change.added_files >= 5
    query = f"SELECT * FROM {one_file} WHERE {condition}"
    told = scan_metrics(spark, query)
    assert told["resultDataFiles"] + told["skippedDataFiles"] == result.change.added_files
    # Bounds of texts are cut after 16 characters, which all texts have in common here.
    assert told["resultDataFiles"] <= (result.change.added_files if condition.startswith("s ") else 2)
    found = sql(f"SELECT count_if({condition}) AS rows FROM {one_file}")[0].rows
    assert len(sql(query)) == found > 0, "and finds what a query without skipping finds"


# --- writers that come after, and in between -------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_engine_goes_on_writing(spark, sql, make, opened, version):
    name = f"goes_on_v{version}"
    then = (insert(0, 400, 2), "DELETE FROM {t} WHERE id % 10 = 3")
    mode = MERGE_ON_READ if version > 1 else "'write.delete.mode' = 'copy-on-write'"
    case = Case(version, then=then, properties=mode)
    table = make(name, case)
    ids = {number for number in range(400) if number % 10 != 3}
    before = rows_of(spark, f"SELECT {case.shown} FROM {table}")
    options = {"spark": spark} if version == 3 else {}  # this one runs on Spark
    result = clustered(opened(name), by=("id", "ts"), **options)
    assert rows_of(spark, f"SELECT {case.shown} FROM {table}") == before
    ours = result.run.versions[0]

    def seen():
        return sorted(row.id for row in sql(f"SELECT id FROM {table}"))

    sql(f"INSERT INTO {table} (id) VALUES (1000)")
    sql(f"DELETE FROM {table} WHERE id % 10 = 4")
    sql(
        f"MERGE INTO {table} t USING (SELECT explode(array(3000L, 56L, 57L)) AS id) n ON t.id = n.id "
        "WHEN MATCHED AND t.id = 56 THEN DELETE WHEN MATCHED THEN UPDATE SET t.id = 4000 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)"
    )
    now = {number for number in ids if number % 10 != 4} - {56, 57} | {1000, 3000, 4000}
    assert seen() == sorted(now)
    if version == 3:
        (row,) = sql(f"SELECT count(*) AS rows, count(DISTINCT _row_id) AS ids FROM {table}")
        assert row.rows == row.ids, "new rows have ids of their own"
    sql(f"CALL ice.system.rewrite_manifests(table => '{table}', use_caching => false)")
    sql(f"CALL ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
    assert seen() == sorted(now)
    clustered(opened(name))
    assert seen() == sorted(now), "and zonal goes on where the engine left"
    sql(f"CALL ice.system.rollback_to_snapshot('{table}', {ours})")
    assert rows_of(spark, f"SELECT {case.shown} FROM {table}") == before
    sql(f"CALL ice.system.rollback_to_snapshot('{table}', {parent_of(sql, table, ours)})")
    assert rows_of(spark, f"SELECT {case.shown} FROM {table}") == before, "the state before is still there"
    sql(f"CALL ice.system.set_current_snapshot('{table}', {ours})")
    late = "TIMESTAMP '2100-01-01 00:00:00'"
    sql(f"CALL ice.system.expire_snapshots(table => '{table}', older_than => {late}, retain_last => 1)")
    assert rows_of(spark, f"SELECT {case.shown} FROM {table}") == before
    assert len(sql(f"SELECT * FROM {table}.snapshots")) == 1


def parent_of(sql, table, snapshot):
    return sql(f"SELECT parent_id FROM {table}.snapshots WHERE snapshot_id = {snapshot}")[0].parent_id


def test_orphans_are_found_and_live_files_are_not(spark, sql, make, opened, monkeypatch):
    table = make("orphans", Case(2, then=(insert(0, 300, 2),)))
    clustered(opened("orphans"), by=("id", "ts"))
    before = rows_of(spark, f"SELECT * FROM {table}")
    location = Path(opened("orphans").table.location().removeprefix("file:"))
    known = set(location.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(rewriting, "sweep", lambda *_: None)  # a process that is killed doesn't clean up
        with pytest.raises(KeyboardInterrupt):
            clustered(opened("orphans"), full=True, spark=meanwhile(interrupted))
    left = {str(path) for path in set(location.rglob("*")) - known if path.is_file()}
    assert len(left) > 1
    for path in location.rglob("*"):
        os.utime(path, (time.time() - 10 * 86400,) * 2)
    found = sql(f"CALL ice.system.remove_orphan_files(table => '{table}')")
    assert {"/" + row.orphan_file_location.removeprefix("file:").lstrip("/") for row in found} == left
    assert rows_of(spark, f"SELECT * FROM {table}") == before


def interrupted():
    raise KeyboardInterrupt


@pytest.mark.parametrize("version", [2, 3])
def test_a_part_of_a_table_keeps_the_deletes_of_the_rest(spark, sql, make, opened, version):
    name = f"part_v{version}"
    case = Case(
        version,
        properties=f"{MERGE_ON_READ}, 'write.delete.granularity' = 'partition'",
        then=(insert(0, 200, 1), insert(200, 400, 1), "DELETE FROM {t} WHERE id % 10 = 3"),
    )
    table = make(name, case)
    before = rows_of(spark, f"SELECT {case.shown} FROM {table}")
    result = clustered(opened(name), by=("id",), where="id < 100")
    assert result.change.removed_files == 1
    assert rows_of(spark, f"SELECT {case.shown} FROM {table}") == before
    files = sql(f"SELECT * FROM {table}.files")
    (snapshot,) = sql(f"SELECT summary FROM {table}.snapshots WHERE snapshot_id = {result.run.versions[0]}")
    deletes = [file for file in files if file.content == 1]
    assert len(deletes) == int(snapshot.summary["total-delete-files"]) == 1
    assert int(snapshot.summary["total-position-deletes"]) == sum(file.record_count for file in deletes)
    sizes = [file.content_size_in_bytes or file.file_size_in_bytes for file in files]
    assert int(snapshot.summary["total-files-size"]) == sum(sizes), "of a deletion vector its own bytes count"
    sql(f"DELETE FROM {table} WHERE id % 10 = 4")
    ids = [row.id for row in sql(f"SELECT id FROM {table}")]
    assert sorted(ids) == [number for number in range(400) if number % 10 not in (3, 4)]


MEANWHILE = {
    "insert": f"INSERT INTO {{t}} {rows(1000, 1100, 1)}",
    "delete": "DELETE FROM {t} WHERE id % 20 = 1",
    "update": "UPDATE {t} SET i = -7 WHERE id < 5",
    "delete_of_whole_files": "DELETE FROM {t} WHERE b",
    "compaction": "CALL ice.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))",
    "manifests": "CALL ice.system.rewrite_manifests(table => '{t}', use_caching => false)",
    "new_column": "ALTER TABLE {t} ADD COLUMN later int",
}
HARMLESS = ("insert", "manifests", "new_column")
CARRIED = {("delete", 2): 13, ("update", 2): 5}
"""Rows that Iceberg deletes by positions, in files that stay."""


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", MEANWHILE)
def test_what_others_write_meanwhile_is_kept(spark, sql, make, opened, name, version):
    case = Case(version, clause="PARTITIONED BY (b)", then=(f"{insert(0, 200, 1)} ORDER BY b", insert(200, 250, 1)))
    table = make(f"meanwhile_{name}_v{version}", case)
    runner = meanwhile(lambda: spark.sql(MEANWHILE[name].replace("{t}", table)))
    result = clustered(opened(f"meanwhile_{name}_v{version}"), by=("id", "ts"), spark=runner)
    parent = parent_of(sql, table, result.run.versions[0])
    shown = case.shown.replace("*", NAMES)  # a snapshot of before has no new column
    theirs = rows_of(spark, f"SELECT {shown} FROM {table} VERSION AS OF {parent}")
    assert rows_of(spark, f"SELECT {shown} FROM {table}") == theirs, "the rows are those of the other writer's snapshot"
    assert (result.run.conflicts == 0) == (name in HARMLESS or (name, version) in CARRIED)
    assert result.run.carried_deletes == CARRIED.get((name, version), 0)


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_iceberg_goes_on_with_deletes_that_were_carried_over(spark, sql, make, opened, granularity):
    name = f"carried_{granularity}"
    told = f"{MERGE_ON_READ}, 'write.delete.granularity' = '{granularity}'"
    case = Case(2, clause="PARTITIONED BY (b)", properties=told, then=(insert(0, 400, 4), insert(400, 500, 2)))
    table = make(name, case)
    delete = f"DELETE FROM {table} WHERE id % 50 = 3"
    result = clustered(opened(name), by=("id", "ts"), spark=meanwhile(lambda: spark.sql(delete)))
    assert (result.run.conflicts, result.run.carried_deletes) == (0, 10)
    (snapshot,) = sql(f"SELECT * FROM {table}.snapshots WHERE snapshot_id = {result.run.versions[0]}")
    files = sql(f"SELECT content, record_count, file_size_in_bytes FROM {table}.files")
    deletes = [file for file in files if file.content == 1]
    assert snapshot.operation == "replace"
    assert sum(file.record_count for file in deletes) == 10, "theirs are gone with their files"
    assert int(snapshot.summary["added-delete-files"]) == int(snapshot.summary["total-delete-files"]) == len(deletes)
    assert snapshot.summary["added-position-deletes"] == snapshot.summary["total-position-deletes"] == "10"
    assert int(snapshot.summary["total-files-size"]) == sum(file.file_size_in_bytes for file in files)
    assert sql(f"SELECT count(*) AS n FROM {table}.position_deletes")[0].n == 10
    left = {*range(500)} - {*range(3, 500, 50)}

    def same():
        return [row.id for row in sql(f"SELECT id FROM {table} ORDER BY id")] == sorted(left)

    assert same()
    for low in (3, 53, 453):
        assert [row.id for row in sql(f"SELECT id FROM {table} WHERE id BETWEEN {low} AND {low + 1}")] == [low + 1]
    sql(f"DELETE FROM {table} WHERE id % 50 = 4")
    left -= {*range(4, 500, 50)}
    assert same(), "deletes of others go on top"
    for call in ("rewrite_position_delete_files", "rewrite_data_files"):
        sql(f"CALL ice.system.{call}(table => '{table}', options => map('rewrite-all', 'true'))")
        assert same(), call
    clustered(opened(name), full=True)
    assert same()
