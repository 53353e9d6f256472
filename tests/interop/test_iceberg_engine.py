"""Tables that Iceberg's Spark runtime wrote are read by zonal as Spark reads them."""

import numpy as np
import pytest

from interop.all_types import TYPE_COLUMNS, TYPE_CONDITIONS, TYPE_ROWS
from interop.contract import EngineContract
from interop.engines import NEWEST, Recipe, make, seen_in
from zonal.snapshot import UNKNOWN
from zonal.tables.iceberg.table import IcebergTable

pytestmark = pytest.mark.interop

# Twelve groups of 50 rows, each with the same value in every column that a partition is made of.
GROUPED = """
    SELECT id,
        nullif(concat('r', g % 3), 'r2') AS region,
        date_add(DATE'1969-11-20', cast(g * 40 AS int)) AS year_of,
        date_add(DATE'1969-11-20', cast(g * 20 AS int)) AS month_of,
        timestamp_micros((g - 6) * 86400000000 - 1) AS day_of,
        timestamp_micros((g - 6) * 3600000000 - 1) AS hour_of,
        cast(g * 7 - 40 AS int) AS tens,
        concat('é漢😀', chr(97 + cast(g AS int)), id) AS text,
        cast(g * 1.37 - 5 AS decimal(9, 2)) AS amount,
        unhex(concat('ff', hex(g), '0')) AS bytes,
        cast(g * 3 AS int) AS i,
        g * 5000000000 AS l,
        concat('ü', g) AS s,
        date_add(DATE'1969-12-28', cast(g AS int)) AS dt,
        timestamp_micros(g * 999999999 - 5) AS ts,
        cast(timestamp_micros(g * 999999999 - 5) AS timestamp_ntz) AS n,
        cast(g * -1.5 AS decimal(12, 3)) AS m,
        unhex(concat(hex(g), '0')) AS b
    FROM (SELECT id, id div 50 AS g FROM range(0, 600, 1, 1))"""
GROUPED_COLUMNS = """
    id bigint, region string, year_of date, month_of date, day_of timestamp, hour_of timestamp, tens int, text string,
    amount decimal(9, 2), bytes binary, i int, l bigint, s string, dt date, ts timestamp, n timestamp_ntz,
    m decimal(12, 3), b binary"""
TRANSFORMS = """
    region, years(year_of), months(month_of), days(day_of), hours(hour_of),
    truncate(10, tens), truncate(4, text), truncate(100, amount), truncate(1, bytes),
    bucket(5, i), bucket(5, l), bucket(5, s), bucket(5, dt), bucket(5, ts), bucket(5, n), bucket(5, m), bucket(5, b)"""
GROUPED_CONDITIONS = (
    "region = 'r1'",
    "region IS NULL",
    "region <> 'r0'",
    "year_of = DATE'1969-11-20'",
    "year(year_of) = 1970",
    "year_of < '1970-01-01'",
    "month_of BETWEEN DATE'1970-01-01' AND DATE'1970-02-28'",
    "day_of = TIMESTAMP'1969-12-31 23:59:59.999999'",
    "date(day_of) = '1970-01-01'",
    "day_of >= TIMESTAMP'1970-01-04 00:00:00'",
    "hour_of < TIMESTAMP'1969-12-31 22:00:00'",
    "hour_of = TIMESTAMP'1970-01-01 01:59:59.999999'",
    "tens = -5",
    "tens < -30 OR tens > 30",
    "text LIKE 'é漢😀c%'",
    "text = 'é漢😀b77'",
    "text > 'é漢😀l'",
    "amount = 0.48",
    "amount BETWEEN -2.3 AND -0.8",
    "bytes = X'FF30'",
    "bytes > X'FFA0'",
    "i = 9",
    "i IN (3, 30)",
    "l = 25000000000",
    "s = 'ü7'",
    "s IN ('ü1', 'ü11')",
    "dt = DATE'1970-01-01'",
    "dt = DATE'1969-12-28'",
    "ts = TIMESTAMP'1970-01-01 00:16:39.999994'",
    "ts = TIMESTAMP'1969-12-31 23:59:59.999995'",
    "n = TIMESTAMP_NTZ'1970-01-01 00:33:19.999993'",
    "m = -4.5",
    "m IN (0, -16.500)",
    "b = X'30'",
    "id = 333",
)

COLUMNS = "id bigint, i int, s string, k int, ts timestamp, part string"
CONDITIONS = (
    "id = 777",
    "id BETWEEN 500 AND 620",
    "i > 1900 OR i < 10",
    "s LIKE 's012%'",
    "s = 's00003'",
    "k = 96",
    "k = 5 AND id < 100",
    "s IS NULL",
    "i NOT IN (1, 2)",
    "year(ts) = 2024",
    "date(ts) = '2024-02-01'",
    "ts < TIMESTAMP'2024-01-02 00:00:00'",
    "part = 'p1'",
    "part IN ('p0', 'p9') AND id > 900",
)
WITHOUT_K = tuple(condition for condition in CONDITIONS if not condition.startswith("k "))
MERGE_ON_READ = (
    "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
    "'write.merge.mode' = 'merge-on-read', 'write.distribution-mode' = 'none'"
)


def rows(first, last, tasks=8):
    """A plain table's rows: `id` and `i` rise, `s` follows `id`, `k` repeats, a `part` has a thousand rows."""
    return f"""
        SELECT id, cast(id AS int) AS i, concat('s', lpad(id, 5, '0')) AS s, cast(id % 97 AS int) AS k,
            timestamp_micros(1704067200123456 + id * 3600000000) AS ts, concat('p', id div 1000) AS part
        FROM range({first}, {last}, 1, {tasks})"""


def table(version, *, clause="", properties="'write.distribution-mode' = 'none'", columns=COLUMNS):
    return (
        f"CREATE TABLE {{t}} ({columns}) USING iceberg {clause} "
        f"TBLPROPERTIES ('format-version' = '{version}', {properties})"
    )


def insert(first=0, last=2000, tasks=8):
    return f"INSERT INTO {{t}} {rows(first, last, tasks)}"


DELETES = (
    insert(),
    "DELETE FROM {t} WHERE id % 10 = 3",
    "DELETE FROM {t} WHERE id BETWEEN 480 AND 530 AND id % 3 = 0",
    "DELETE FROM {t} WHERE id < 250 AND id % 5 < 4",
    "UPDATE {t} SET k = 1000 WHERE id = 777",
    insert(2000, 2100, 1),
)
DELETE_CONDITIONS = (*CONDITIONS, "k = 1000", "id = 1003", "id = 489")


def deletes(name, version, *, partitioned=True, granularity="file", older=("0", "1", "4")):
    properties = f"{MERGE_ON_READ}, 'write.delete.granularity' = '{granularity}'"
    clause = "PARTITIONED BY (part)" if partitioned else ""
    return Recipe(
        name,
        (table(version, clause=clause, properties=properties), *DELETES),
        DELETE_CONDITIONS,
        dict.fromkeys(older, CONDITIONS),
    )


RECIPES = (
    *(
        Recipe(
            f"types_v{version}",
            (table(version, columns=TYPE_COLUMNS), f"INSERT INTO {{t}} {TYPE_ROWS}"),
            TYPE_CONDITIONS,
        )
        for version in (1, 2, 3)
    ),
    *(
        Recipe(
            f"transforms_v{version}",
            (
                table(version, clause=f"PARTITIONED BY ({TRANSFORMS})", columns=GROUPED_COLUMNS),
                f"INSERT INTO {{t}} {GROUPED} ORDER BY id",
                "INSERT INTO {t} (id) VALUES (1000), (1001)",
            ),
            GROUPED_CONDITIONS,
        )
        for version in (1, 2)
    ),
    Recipe(
        "transforms_without_metrics",
        (
            table(
                2,
                clause=f"PARTITIONED BY ({TRANSFORMS})",
                columns=GROUPED_COLUMNS,
                properties="'write.distribution-mode' = 'none', 'write.metadata.metrics.default' = 'none'",
            ),
            f"INSERT INTO {{t}} {GROUPED} ORDER BY id",
            "INSERT INTO {t} (id) VALUES (1000), (1001)",
        ),
        GROUPED_CONDITIONS,
    ),
    deletes("position_deletes_by_file", 2),
    deletes("position_deletes_by_partition", 2, granularity="partition"),
    deletes("position_deletes_unpartitioned", 2, partitioned=False, granularity="partition", older=()),
    deletes("deletion_vectors", 3),
    deletes("deletion_vectors_unpartitioned", 3, partitioned=False, older=()),
    Recipe(
        "upgraded_from_v1_to_v3",
        (
            table(1, clause="PARTITIONED BY (part)", properties=MERGE_ON_READ),
            insert(0, 1000, 4),
            "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '2')",
            insert(1000, 2000, 4),
            "DELETE FROM {t} WHERE id % 10 = 3",
            "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",
            "DELETE FROM {t} WHERE id % 10 = 4 AND id < 600",
            insert(2000, 2100, 1),
        ),
        CONDITIONS,
        {"0": CONDITIONS, "2": CONDITIONS},
    ),
    Recipe(
        "copy_on_write",
        (
            table(2, clause="PARTITIONED BY (part)"),
            insert(),
            "DELETE FROM {t} WHERE id BETWEEN 480 AND 530",
            "UPDATE {t} SET k = 1000 WHERE id = 777",
            "MERGE INTO {t} USING (SELECT 1999L AS id UNION ALL SELECT 5000L AS id) n ON {t}.id = n.id "
            "WHEN MATCHED THEN UPDATE SET k = 2000 WHEN NOT MATCHED THEN INSERT (id, k) VALUES (n.id, 3000)",
            "CALL ice.system.rewrite_manifests(table => '{t}', use_caching => false)",
            insert(2000, 2100, 1),
        ),
        (*CONDITIONS, "k = 1000", "k >= 2000", "part IS NULL"),
        {"0": CONDITIONS, "1": CONDITIONS},
    ),
    *(
        Recipe(
            f"evolved_partitions_v{version}",
            (
                table(version, clause="PARTITIONED BY (part, days(ts))"),
                insert(0, 200, 1),
                "ALTER TABLE {t} REPLACE PARTITION FIELD ts_day WITH months(ts)",
                insert(200, 1200, 2),
                "ALTER TABLE {t} DROP PARTITION FIELD part",
                "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",
                insert(1200, 1600, 1),
                "ALTER TABLE {t} ADD PARTITION FIELD truncate(3, s) AS prefix",
                insert(1600, 2000, 1),
            ),
            CONDITIONS,
            {"1": CONDITIONS},
        )
        for version in (1, 2)
    ),
    Recipe(
        "evolved_columns",
        (
            table(
                2,
                columns="id int, a string, f float, m decimal(9, 2), dt date, gone string, "
                "st struct<x: int, y: string>",
            ),
            "INSERT INTO {t} SELECT cast(id AS int), concat('a', id), cast(id / 7 AS float), "
            "cast(id AS decimal(9, 2)), date_add(DATE'1969-12-01', cast(id AS int)), concat('g', id), "
            "named_struct('x', cast(id AS int), 'y', 'y') FROM range(0, 800, 1, 8)",
            "ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
            "ALTER TABLE {t} RENAME COLUMN a TO a2",
            "ALTER TABLE {t} ALTER COLUMN f TYPE double",
            "ALTER TABLE {t} ALTER COLUMN m TYPE decimal(18, 2)",
            "ALTER TABLE {t} ADD COLUMN added string AFTER id",
            "ALTER TABLE {t} DROP COLUMN gone",
            "ALTER TABLE {t} ADD COLUMN gone int",
            "ALTER TABLE {t} ADD COLUMN st.z string",
            "ALTER TABLE {t} RENAME COLUMN st.x TO w",
            "ALTER TABLE {t} ADD COLUMN a bigint",
            "INSERT INTO {t} SELECT id + 5000000000, concat('n', id), concat('a', id), id / 7D + 1e300, "
            "1234567890123456.78BD, DATE'2024-01-01', named_struct('w', cast(id AS int), 'y', 'y', 'z', 'zz'), "
            "cast(id AS int), id FROM range(0, 200, 1, 2)",
        ),
        (
            "id = 150",
            "id >= 5000000000",
            "a2 = 'a77'",
            "a = 77",
            "a IS NULL",
            "f > 1e299",
            "f = cast(cast(99 / 7 AS float) AS double)",
            "f < 14.2",
            "m = 150",
            "m > 10000000",
            "dt = DATE'1970-01-01'",
            "dt < '1969-12-15'",
            "gone IS NULL",
            "gone = 150",
            "added LIKE 'n1%'",
            "added IS NOT NULL",
            "st.w = 799",
            "st.z = 'zz'",
            "st.z IS NULL AND id < 100",
        ),
        {"0": ("id = 150", "a = 'a77'", "gone = 'g5'", "st.x = 799", "m = 150", "f < 14.2")},
    ),
    Recipe(
        "defaults",
        (
            table(3),
            insert(0, 1000, 4),
            "ALTER TABLE {t} ADD COLUMN five int DEFAULT 5",
            "ALTER TABLE {t} ADD COLUMN word string DEFAULT 'word'",
            f"INSERT INTO {{t}} SELECT *, cast(id AS int), s FROM ({rows(1000, 2000, 4)})",
        ),
        (*CONDITIONS, "five = 5", "five > 1990", "five IS NULL", "word = 'word'", "word LIKE 's019%'", "word IS NULL"),
        {"0": CONDITIONS},
    ),
    Recipe(
        "zordered",
        (
            table(2),
            insert(0, 9000, 4),
            "CALL ice.system.rewrite_data_files(table => '{t}', strategy => 'sort', sort_order => 'zorder(k, i)', "
            "options => map('rewrite-all', 'true', 'target-file-size-bytes', '16000'))",
        ),
        CONDITIONS,
        {"0": CONDITIONS},
    ),
    Recipe(
        "branched",
        (
            table(2, properties=MERGE_ON_READ),
            insert(0, 1000, 4),
            "ALTER TABLE {t} CREATE TAG first_rows",
            "ALTER TABLE {t} CREATE BRANCH trial",
            f"INSERT INTO {{t}}.branch_trial {rows(5000, 5400, 2)}",
            "DELETE FROM {t}.branch_trial WHERE id % 10 = 3",
            insert(1000, 2000, 4),
            "ALTER TABLE {t} RENAME COLUMN k TO kk",
            "ALTER TABLE {t} ADD COLUMN later int",
        ),
        (*WITHOUT_K, "kk = 96", "later IS NULL"),
        {
            "first_rows": CONDITIONS,
            "trial": (*WITHOUT_K, "kk = 5", "id > 5390"),
            "0": CONDITIONS,
        },
    ),
    Recipe(
        "metrics_modes_and_bloom_filters",
        (
            table(
                2,
                properties="'write.distribution-mode' = 'none', 'write.metadata.metrics.default' = 'counts', "
                "'write.metadata.metrics.column.s' = 'truncate(3)', 'write.metadata.metrics.column.id' = 'full', "
                "'write.metadata.metrics.column.ts' = 'none', "
                "'write.parquet.bloom-filter-enabled.column.k' = 'true', "
                "'write.parquet.bloom-filter-enabled.column.s' = 'true', "
                "'write.parquet.bloom-filter-enabled.column.ts' = 'true'",
            ),
            insert(),
        ),
        (*CONDITIONS, "s = 's01234x'", "ts = TIMESTAMP'2024-01-01 05:00:00.123456'", "k = 1234567"),
    ),
)
VERSIONS = [(recipe, version) for recipe in RECIPES for version in recipe.versions()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("iceberg")


@pytest.fixture(scope="module")
def made(folder, iceberg_jars):
    return make("iceberg", RECIPES, folder=folder, jars=iceberg_jars)


@pytest.fixture(params=VERSIONS, ids=[f"{recipe.name}@{version or 'newest'}" for recipe, version in VERSIONS])
def case(request, made, folder):
    """A table for zonal, and what the engine sees of the same version."""
    recipe, version = request.param
    seen = seen_in(made, recipe.name, version)
    asked = None if version == NEWEST else seen.version if version.isdecimal() else version
    return open_in_catalog(folder, recipe.name, asked), seen


def open_in_catalog(folder, name, version=None):
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": f"file://{folder / 'warehouse'}",
    }
    return IcebergTable.from_catalog(f"db.{name}", catalog="ice", catalog_properties=properties, version=version)


def test_files_and_rows_are_the_engines(case):
    table, seen = case
    snapshot = table.snapshot()
    paths = snapshot.files.paths.to_pylist()
    assert snapshot.version == seen.version, "the snapshot is the engine's"
    assert sorted(paths) == sorted(seen.files), "the live data files are the engine's"
    assert dict(zip(paths, snapshot.files.rows.tolist(), strict=True)) == seen.records, "every file has its rows"
    assert sum(seen.records.values()) >= sum(seen.live_rows.values())


def test_files_are_added_by_the_snapshots_of_their_entries(case):
    table, seen = case
    snapshot = table.snapshot()
    added_by = dict(zip(snapshot.files.paths.to_pylist(), snapshot.files.added_by.tolist(), strict=True))
    assert added_by == seen.added_by, "every file was added by the snapshot of its manifest entry"
    operations = {str(number): commit.operation for number, commit in snapshot.commits.items()}
    assert operations == seen.operations, "every snapshot has the engine's operation"


def test_deleted_rows_are_the_engines(case):
    table, seen = case
    files = table.snapshot().files
    for path, deleted, applied in zip(files.paths.to_pylist(), files.deleted, files.delete_files, strict=True):
        expected = seen.records[path] - seen.live_rows.get(path, 0)
        assert deleted in (UNKNOWN, expected), f"{path} has {expected} deleted rows"
        assert applied or not expected, f"{path} has deleted rows, so a delete file applies to it"
        assert applied >= seen.delete_files.get(path, 0), f"all delete files of {path} are seen"


@pytest.mark.parametrize("name", ["position_deletes_by_file", "deletion_vectors", "deletion_vectors_unpartitioned"])
def test_delete_files_of_one_data_file_are_counted_exactly(made, folder, name):
    files = open_in_catalog(folder, name).snapshot().files
    seen = seen_in(made, name, NEWEST)
    found = dict(zip(files.paths.to_pylist(), files.delete_files.tolist(), strict=True))
    assert {path: count for path, count in found.items() if count} == seen.delete_files
    assert not np.isin(UNKNOWN, files.deleted), "the metadata tells the deleted rows"


def test_the_metadata_file_tells_the_same_as_the_catalog(made, folder):
    seen = seen_in(made, "deletion_vectors", NEWEST)
    location = open_in_catalog(folder, "deletion_vectors").table.metadata_location
    files = IcebergTable.from_metadata(location).snapshot().files
    assert sorted(files.paths.to_pylist()) == sorted(seen.files), "the live data files are the engine's"


class TestContract(EngineContract):
    """What holds for every engine."""
