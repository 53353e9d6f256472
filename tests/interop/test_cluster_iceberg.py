"""Iceberg's Spark runtime judges what zonal wrote: the rows are the same, the metadata true, and it goes on writing."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clustering import clustered, meanwhile, rows_of, scan_metrics
from engines import run_iceberg
from pyiceberg.catalog.sql import SqlCatalog

from zonal.tables.iceberg import IcebergTable
from zonal.verbs import rewriting
from zonal.verbs.cluster import Clustering

pytestmark = pytest.mark.interop

COLUMNS = """
    id bigint, i int, d date, ts timestamp, m decimal(12, 2), w decimal(30, 4), s string, f double, b boolean,
    bin binary, st struct<x: int, y: struct<z: string>>, many array<struct<e: int>>, pairs map<string, int>"""
KEYS = ("id", "i", "d", "ts", "m", "s", "st.x")
MERGE_ON_READ = (
    "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
    "'write.merge.mode' = 'merge-on-read'"
)


def rows(first, last, tasks=3):
    """Rows in no order: every file has values from the whole range in every column."""
    count = last - first
    return f"""
        SELECT v AS id, cast(if(v % 50 = 0, NULL, v * 13 % 1009) AS int) AS i,
            date_add(DATE'1969-06-01', cast(v * 7 % 1000 AS int)) AS d,
            timestamp_micros(v * 3 % 1000 * 7777777777 - 1000000000001) AS ts,
            cast(v * 11 % 1000 * 1.25 - 300 AS decimal(12, 2)) AS m,
            cast(v * -1234567890123456789012.3457BD AS decimal(30, 4)) AS w,
            concat('long text that is cut ', lpad(v * 17 % 1000, 5, '0'), '😀') AS s,
            if(v % 100 = 7, double('NaN'), v * 19 % 1000 / 3D) AS f, v % 3 = 0 AS b, unhex(hex(v * 31)) AS bin,
            named_struct('x', cast(v * 23 % 1000 AS int), 'y', named_struct('z', nullif(concat('z', v), 'z5'))) AS st,
            if(v % 9 = 0, NULL, array(named_struct('e', cast(v AS int)), NULL)) AS many,
            if(v % 8 = 0, NULL, map('k', cast(v AS int), 'l', NULL)) AS pairs
        FROM (SELECT {first} + id * 7919 % {count} AS v FROM range(0, {count}, 1, {tasks}))"""


def insert(first, last, tasks=3):
    return f"INSERT INTO {{t}} {rows(first, last, tasks)}"


@dataclass(frozen=True)
class Case:
    """A table of some format version."""

    version: int
    columns: str = COLUMNS
    clause: str = ""
    properties: str = MERGE_ON_READ
    then: tuple[str, ...] = (insert(0, 500),)
    by: tuple[str, ...] = ("id", "ts")
    branch: str | None = None

    def statements(self):
        properties = f"'format-version' = '{self.version}', 'write.distribution-mode' = 'none', {self.properties}"
        return f"CREATE TABLE {{t}} ({self.columns}) USING iceberg {self.clause} TBLPROPERTIES ({properties})", *self.then

    @property
    def shown(self):
        return "*, _row_id, _last_updated_sequence_number" if self.version == 3 else "*"


def deleted(version, granularity="file", *, partitioned=False):
    return Case(
        version,
        clause="PARTITIONED BY (bucket(2, id))" if partitioned else "",
        properties=f"{MERGE_ON_READ}, 'write.delete.granularity' = '{granularity}'",
        then=(
            insert(0, 300, 2) + (" ORDER BY 1" if partitioned else ""),
            insert(300, 400, 1),
            "DELETE FROM {t} WHERE id % 10 = 3",
            "DELETE FROM {t} WHERE id BETWEEN 280 AND 310 AND id % 3 = 0",
            "UPDATE {t} SET i = -1 WHERE id % 50 = 7",
        ),
    )


CASES = {
    "plain_v1": Case(1, by=KEYS),
    "plain_v2": Case(2, then=(insert(0, 1000, 4),)),
    "plain_v3": Case(3, then=(insert(0, 300, 2), insert(300, 500, 1))),
    "transforms": Case(
        2,
        clause="PARTITIONED BY (b, bucket(2, i), truncate(100, s), days(ts), hours(n), years(d), truncate(500, m))",
        columns=f"{COLUMNS}, n timestamp_ntz",
        then=(
            "INSERT INTO {t} SELECT id, i, if(b, d, NULL), timestamp_micros(id % 2 * 86400000000 - 1), m, w, "
            "nullif(concat('é漢😀/=% ', id % 2), 'é漢😀/=% 0'), f, if(id % 5 = 0, NULL, b), bin, st, many, pairs, "
            f"timestamp_ntz'1970-01-01 00:59:59.999999' FROM ({rows(0, 200, 1)}) WHERE id % 3 = 0",
            "INSERT INTO {t} (id) VALUES (1000), (1001)",
        ),
        by=("id", "f"),
    ),
    "position_deletes_by_file": deleted(2),
    "position_deletes_by_partition": deleted(2, "partition", partitioned=True),
    "deletion_vectors": deleted(3),
    "deletion_vectors_in_partitions": deleted(3, partitioned=True),
    "evolved_columns": Case(
        2,
        columns="id int, a string, f float, m decimal(9, 2), gone string, st struct<x: int, y: string>, "
        "many array<struct<e: int>>",
        then=(
            "INSERT INTO {t} SELECT cast(id AS int), concat('a', id), cast(id / 7 AS float), "
            "cast(id AS decimal(9, 2)), concat('g', id), named_struct('x', cast(id AS int), 'y', 'y'), "
            "array(named_struct('e', 5)) FROM range(0, 300, 1, 2)",
            "ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
            "ALTER TABLE {t} RENAME COLUMN a TO a2",
            "ALTER TABLE {t} ALTER COLUMN f TYPE double",
            "ALTER TABLE {t} ALTER COLUMN m TYPE decimal(18, 2)",
            "ALTER TABLE {t} ADD COLUMN added string AFTER id",
            "ALTER TABLE {t} DROP COLUMN gone",
            "ALTER TABLE {t} ADD COLUMN gone int",
            "ALTER TABLE {t} ADD COLUMN st.z string",
            "ALTER TABLE {t} RENAME COLUMN st.x TO w",
            "ALTER TABLE {t} ALTER COLUMN m FIRST",
            "ALTER TABLE {t} ADD COLUMN many.element.g string",
            "INSERT INTO {t} SELECT 1234567890123456.78BD, id + 5000000000, concat('n', id), concat('a', id), "
            "id / 7D + 1e300, named_struct('w', cast(id AS int), 'y', 'y', 'z', 'zz'), "
            "array(named_struct('e', 6, 'g', 'g')), cast(id AS int) FROM range(0, 100, 1, 1)",
        ),
        by=("id", "st.w", "m"),
    ),
    "defaults": Case(
        3,
        then=(
            insert(0, 300, 2),
            "ALTER TABLE {t} ADD COLUMN five int DEFAULT 5",
            "ALTER TABLE {t} ADD COLUMN word string DEFAULT 'word'",
            f"INSERT INTO {{t}} SELECT *, cast(id AS int), s FROM ({rows(300, 400, 1)})",
        ),
        by=("five", "word", "id"),
    ),
    "evolved_partitions": Case(
        2,
        clause="PARTITIONED BY (b)",
        then=(
            f"{insert(0, 200, 1)} ORDER BY b",
            "ALTER TABLE {t} REPLACE PARTITION FIELD b WITH bucket(2, id) AS two",
            f"{insert(200, 300, 1)} ORDER BY id",
            "ALTER TABLE {t} DROP PARTITION FIELD two",
            insert(300, 400, 1),
            "DELETE FROM {t} WHERE id % 10 = 3",
        ),
    ),
    "branch": Case(
        2,
        then=(
            insert(0, 100, 1),
            "ALTER TABLE {t} CREATE BRANCH trial",
            f"INSERT INTO {{t}}.branch_trial {rows(100, 400, 2)}",
            "DELETE FROM {t}.branch_trial WHERE id % 10 = 3",
        ),
        branch="trial",
    ),
    "upgraded": Case(
        1,
        then=(
            insert(0, 200, 1),
            "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '2')",
            "DELETE FROM {t} WHERE id % 10 = 3",
            "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",
            "DELETE FROM {t} WHERE id % 10 = 4",
            insert(200, 300, 1),
        ),
    ),
}


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
        return f"{self.name} VERSION AS OF {self.result.versions[0]}"


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
            snapshot = spark.sql(
                f"SELECT snapshot_id FROM {table}.refs WHERE name = '{case.branch or 'main'}'"
            ).first().snapshot_id
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
    assert table.result.rows == table.before.total()
    head = sql(f"SELECT snapshot_id FROM {table.name}.refs WHERE name = '{table.case.branch or 'main'}'")
    assert [row.snapshot_id for row in head] == [*table.result.versions], "one snapshot, and the branch is there"


@pytest.mark.parametrize("name", CASES)
def test_the_summary_counts_what_the_files_table_counts(sql, judged, name):
    table = judged(name)
    (snapshot,) = sql(f"SELECT * FROM {table.name}.snapshots WHERE snapshot_id = {table.result.versions[0]}")
    assert snapshot.operation == "replace"
    assert snapshot.parent_id == table.snapshot
    files = sql(
        f"SELECT content, record_count, file_size_in_bytes FROM {table.name}.files "
        f"VERSION AS OF {snapshot.snapshot_id}"
    )
    summary = {name: int(value) for name, value in snapshot.summary.items() if value.isdecimal()}
    data = [file for file in files if file.content == 0]
    assert summary["total-data-files"] == summary["added-data-files"] == len(data) == table.result.files_after
    assert summary["total-records"] == summary["added-records"] == sum(file.record_count for file in data)
    assert summary["total-files-size"] == sum(file.file_size_in_bytes for file in files)
    assert summary["total-delete-files"] == len(files) - len(data) == 0, "all deletes are applied"
    assert summary["total-position-deletes"] == summary["total-equality-deletes"] == 0
    assert summary["deleted-data-files"] == table.result.removed_files


@pytest.mark.parametrize("name", CASES)
def test_the_bounds_are_those_of_the_values(spark, sql, judged, name):
    table = judged(name)
    leaves = [leaf for leaf in leaves_of(spark.sql(f"SELECT * FROM {table.after}").schema)]
    ends = ", ".join(ends_of(*leaf) for leaf in leaves)
    values = {row._file: row for row in sql(f"SELECT _file, {ends} FROM {table.after} GROUP BY _file")}
    files = sql(f"SELECT file_path, record_count, readable_metrics AS told FROM {table.name}.files "
                f"VERSION AS OF {table.result.versions[0]} WHERE content = 0")
    assert {file.file_path for file in files} == set(values)
    checked = 0
    for file in files:
        for at, (path, kind) in enumerate(leaves):
            told = file.told[path]
            least, greatest, nulls, nans, parents = values[file.file_path][1 + at]
            where = f"{path} of {file.file_path}: {told}"
            if least is None or nans is not None and told.lower_bound is None:
                assert told.upper_bound is None, where
            elif kind in ("string", "binary"):
                assert told.lower_bound <= least, where
                assert told.upper_bound >= greatest, where
                assert least.startswith(told.lower_bound), where
                checked += 1
            else:
                assert (told.lower_bound, told.upper_bound) == (least, greatest), where
                checked += 1
            assert told.null_value_count == nulls, where
            assert told.value_count == file.record_count, where
            assert (told.nan_value_count or 0) == (nans or 0), where
            assert parents >= 0
    assert checked >= len(files)


def leaves_of(struct, above=""):
    """Yield path and type of everything that has one value a row."""
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
    return f"struct(min({value}), max({value}), count_if({path} IS NULL), {nans}, count(*))"


@pytest.mark.parametrize("name", CASES)
def test_pyiceberg_reads_the_same_rows(spark, judged, opened, name):
    table = judged(name)
    key = table.case.by[0]
    found = opened(name).table.scan(snapshot_id=table.result.versions[0]).to_arrow()
    (row,) = spark.sql(f"SELECT count(*) AS rows, sum({key}) AS total FROM {table.after}").collect()
    assert found.num_rows == row.rows
    assert pa.compute.sum(found[key]).as_py() == row.total


@pytest.mark.parametrize("name", ["plain_v1", "deletion_vectors", "transforms", "evolved_partitions"])
def test_clustering_again_finds_nothing_to_do(judged, opened, name):
    judged(name)
    assert clustered(opened(name)).versions == ()
