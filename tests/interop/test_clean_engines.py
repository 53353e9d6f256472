"""The official engines judge what `clean` calls spare: they read every kept version, and would remove no less."""

from urllib.parse import unquote

import pytest

from interop.clustering import clustered, rows_of
from support.cleaning import cleaned, left_by_run, now
from zonal.tables.iceberg.table import IcebergTable
from zonal.verbs.clean import clean

pytestmark = pytest.mark.interop

DELTA = (
    "INSERT INTO {t} SELECT id, id % 7, concat('a', id) FROM range(0, 400, 1, 4)",
    "DELETE FROM {t} WHERE id % 50 = 3",
    "UPDATE {t} SET s = 'b' WHERE id < 40",
    "DELETE FROM {t} WHERE id % 50 = 4",
    "OPTIMIZE {t}",
    "INSERT INTO {t} SELECT id, id % 7, concat('c', id) FROM range(400, 500, 1, 2)",
    "DELETE FROM {t} WHERE id BETWEEN 10 AND 120",
    "INSERT OVERWRITE {t} SELECT id, k, s FROM {t} WHERE id > 100",
    "RESTORE TABLE {t} TO VERSION AS OF 6",
    "DELETE FROM {t} WHERE id % 50 = 5",
)
FEATURES = {
    "plain": "'delta.enableDeletionVectors' = 'false'",
    "changes": "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true', "
    "'delta.checkpointInterval' = '3'",
}


class Home:
    """A table by what `clean` calls it."""

    def __init__(self, name, root, **options):
        self.name, self.root, self.options = name, root, options


@pytest.fixture(params=FEATURES)
def delta(request, spark, tmp_path):
    """A Delta table with a history, and the moments after each of its versions."""
    root = tmp_path / request.param
    table = f"delta.`{root}`"
    spark.sql(
        f"CREATE TABLE {table} (id bigint, k bigint, s string) USING delta TBLPROPERTIES ({FEATURES[request.param]})"
    )
    moments = [now()]
    for statement in DELTA:
        spark.sql(statement.replace("{t}", table))
        moments.append(now())
    clustered(f"delta:{root}", by=["id"])
    moments.append(now())
    return Home(f"delta:{root}", root), table, moments


def versions_of(spark, table, first):
    newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first().version
    return {at: rows_of(spark, f"SELECT * FROM {table} VERSION AS OF {at}") for at in range(first, newest + 1)}


def clear(spark):
    """Let delta-spark forget what it has read of logs and files."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def test_delta_spark_reads_every_kept_version_and_its_changes(spark, delta):
    home, table, moments = delta
    left = left_by_run(home.root)
    runs = []
    for kept in (3, 6, 9):
        before = versions_of(spark, table, kept)
        changes = changes_of(spark, home, kept + 1)
        done = cleaned(home, moments[kept], ignore_retention=True, expire="7d")
        assert done.files
        runs.append(done.run)
        clear(spark)
        assert versions_of(spark, table, kept) == before
        assert changes_of(spark, home, kept + 1) == changes
    assert not left.exists()
    spark.sql(f"INSERT INTO {table} VALUES (-1, -1, 'more')")
    for run in runs:
        cleaned(home, undo=run)
    clear(spark)
    versions_of(spark, table, 0)


def changes_of(spark, home, first):
    """What changed since a version, where the table tells."""
    if home.root.name != "changes":
        return None
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
    rows = reader.load(str(home.root)).drop("_commit_timestamp").collect()
    return sorted(map(repr, rows))


def test_vacuum_would_remove_all_that_is_spare(spark, delta):
    home, table, moments = delta
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    found = spark.sql(f"VACUUM {table} RETAIN 0 HOURS DRY RUN").collect()
    theirs = {unquote(row[0]).removeprefix("file:").replace("//", "/") for row in found}
    plan = cleaned(home, moments[-1], yes=False, expire="7d", ignore_retention=True)
    ours = {str(home.root / file.path) for file in plan.files}
    assert ours
    assert ours <= theirs
    left = {path for path in theirs - ours if "_change_data" not in path}
    assert not {path for path in left if path.endswith((".parquet", ".bin"))}, "the log names every one of them"
    cleaned(home, moments[-1], expire="7d", ignore_retention=True)
    quarantine = {path for path in (home.root / "_zonal_quarantine").rglob("*") if path.is_file()}
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    assert {path for path in (home.root / "_zonal_quarantine").rglob("*") if path.is_file()} == quarantine


# --- Iceberg ---------------------------------------------------------------------------------------------------------

ICEBERG = (
    "INSERT INTO {t} SELECT id, id % 7, concat('a', id) FROM range(0, 400, 1, 4)",
    "DELETE FROM {t} WHERE id % 50 = 3",
    "ALTER TABLE {t} CREATE TAG early",
    "UPDATE {t} SET s = 'b' WHERE id < 40",
    "INSERT INTO {t} SELECT id, id % 7, concat('c', id) FROM range(400, 500, 1, 2)",
    "ALTER TABLE {t} CREATE BRANCH side",
    "INSERT INTO {t}.branch_side SELECT id, id % 7, concat('d', id) FROM range(500, 600, 1, 2)",
    "DELETE FROM {t} WHERE id BETWEEN 10 AND 120",
    "CALL ice.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
    "CALL ice.system.rewrite_manifests('{name}')",
    "INSERT OVERWRITE {t} SELECT id, k, s FROM {t} WHERE id > 100",
    "DELETE FROM {t} WHERE id % 50 = 5",
)
MERGE_ON_READ = "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'"


@pytest.fixture(params=[2, 3])
def iceberg(request, spark, folder_of_engines, tmp_path):
    """An Iceberg table with a history, and the moments after each statement."""
    name = f"db.clean_{tmp_path.name[-12:].replace('-', '_')}_{request.param}"
    table = f"ice.{name}"
    spark.sql(
        f"CREATE TABLE {table} (id bigint, k bigint, s string) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{request.param}', {MERGE_ON_READ})"
    )
    moments = []
    for statement in ICEBERG:
        spark.sql(statement.replace("{t}", table).replace("{name}", name))
        moments.append(now())
    uri, warehouse = f"sqlite:///{folder_of_engines / 'catalog.db'}", f"file://{folder_of_engines / 'warehouse'}"
    options = {"catalog": "ice", "storage_options": {"type": "sql", "uri": uri, "warehouse": warehouse}}
    opened = IcebergTable.from_catalog(name, catalog="ice", catalog_properties=options["storage_options"])
    clustered(opened, by=["id"])
    moments.append(now())
    root = folder_of_engines / "warehouse" / name.replace(".", "/")
    return Home(f"iceberg:{name}", root, **options), table, moments


def snapshots_of(spark, table):
    found = [row.snapshot_id for row in spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()]
    return {at: rows_of(spark, f"SELECT * FROM {table} VERSION AS OF {at}") for at in found}


def test_iceberg_reads_every_kept_snapshot_and_finds_no_orphan(spark, iceberg):
    home, table, moments = iceberg
    left_by_run(home.root / "data")
    for kept in (4, 9, 12):
        before = snapshots_of(spark, table)
        at = f"TIMESTAMP '{moments[kept]:%Y-%m-%d %H:%M:%S.%f}'"
        current = rows_of(spark, f"SELECT * FROM {table} TIMESTAMP AS OF {at}")
        done = cleaned(home, moments[kept])
        assert done.snapshots
        assert done.files
        after = snapshots_of(spark, table)
        assert after == {number: rows for number, rows in before.items() if number not in done.snapshots}
        assert rows_of(spark, f"SELECT * FROM {table} TIMESTAMP AS OF {at}") == current
        assert orphans_of(spark, table) == [], "all that Iceberg doesn't need is in quarantine, which it doesn't see"
    assert {"main", "early", "side"} == {row.name for row in spark.sql(f"SELECT name FROM {table}.refs").collect()}
    spark.sql(f"CALL ice.system.expire_snapshots(table => '{table}', older_than => {at}, retain_last => 1)")
    assert snapshots_of(spark, table).items() <= after.items()
    spark.sql(f"INSERT INTO {table} VALUES (-1, -1, 'more')")


def orphans_of(spark, table):
    """Files of any age that Iceberg itself finds that no snapshot needs; its SQL refuses ages below a day."""
    iceberg = spark._jvm.org.apache.iceberg.spark
    loaded = iceberg.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    action = iceberg.actions.SparkActions.get(spark._jsparkSession).deleteOrphanFiles(loaded)
    found = action.olderThan(int(now().timestamp() * 1000) + 86_400_000).execute()
    return list(found.orphanFileLocations())


def test_a_table_that_iceberg_expired_has_nothing_left_to_clean(spark, iceberg):
    home, table, moments = iceberg
    asked = f"TIMESTAMP '{moments[-1]:%Y-%m-%d %H:%M:%S.%f}'"
    plan = cleaned(home, moments[-1], yes=False)
    spark.sql(f"CALL ice.system.expire_snapshots(table => '{table}', older_than => {asked}, retain_last => 1)")
    there = {file.path for file in plan.files if (home.root / file.path).exists()}
    assert there == set(), "Iceberg removed all that was called spare"
    assert clean(home.name, **home.options).files == ()
