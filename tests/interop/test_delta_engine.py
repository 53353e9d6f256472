"""Tables that delta-spark wrote are read by zonal as delta-spark reads them."""

import pytest

from interop.all_types import TYPE_COLUMNS, TYPE_CONDITIONS, TYPE_ROWS
from interop.contract import EngineContract
from interop.engines import NEWEST, Recipe, make, seen_in
from zonal.tables.delta.table import DeltaTable

pytestmark = pytest.mark.interop

REGIONS = "element_at(array('eu', 'a b', 'x/y', 'p%q', 'é=+', NULL), 1 + cast(id % 6 AS int))"


def rows(first, last, tasks=8):
    """A plain table's rows: `id` and `i` rise, `s` follows `id`, `k` repeats."""
    return f"""
        SELECT id, cast(id AS int) AS i, concat('s', lpad(id, 5, '0')) AS s, cast(id % 97 AS int) AS k,
            timestamp_micros(1704067200123456 + id * 3600000000) AS ts
        FROM range({first}, {last}, 1, {tasks})"""


COLUMNS = "id bigint, i int, s string, k int, ts timestamp"
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
)


def table(*, clause="", properties="", columns=COLUMNS):
    given = f"TBLPROPERTIES ({properties})" if properties else ""
    return f"CREATE TABLE {{t}} ({columns}) USING delta {clause} {given}"


def insert(first=0, last=2000, tasks=8):
    return f"INSERT INTO {{t}} {rows(first, last, tasks)}"


def mapped(mode):
    """A table whose columns were renamed, dropped and added again under a name that was in use."""
    kept = [condition for condition in CONDITIONS if not condition.startswith(("s ", "k "))]
    renamed = [condition.replace("id ", "number ") for condition in kept]
    return Recipe(
        f"mapping_by_{mode}",
        (
            table(
                properties=f"'delta.columnMapping.mode' = '{mode}'",
                clause="PARTITIONED BY (part)",
                columns=f"{COLUMNS}, `odd name.x` int, st struct<a: int, b: int>, part string",
            ),
            f"INSERT INTO {{t}} SELECT *, -i, struct(i, -i), concat('p', id div 1000) FROM ({rows(0, 2000)})",
            "ALTER TABLE {t} RENAME COLUMN id TO number",
            "ALTER TABLE {t} RENAME COLUMN part TO partition",
            "ALTER TABLE {t} RENAME COLUMN st.a TO c",
            "ALTER TABLE {t} DROP COLUMN s",
            "ALTER TABLE {t} DROP COLUMN k",
            "ALTER TABLE {t} ADD COLUMN s int",
            "INSERT INTO {t} (number, i, ts, `odd name.x`, st, partition, s) "
            f"SELECT id, i, ts, -i, struct(i, -i), 'p2', i FROM ({rows(2000, 2400, 3)})",
        ),
        (
            *renamed,
            "s IS NULL",
            "s = 2100",
            "`odd name.x` = -1999",
            "st.c = 1500",
            "st.b > -5",
            "partition = 'p1' AND i < 1100",
            "partition >= 'p2'",
        ),
        {"1": ("id = 777", "s = 's00003'", "k = 5 AND id < 100", "part = 'p1'", "st.a = 1500")},
    )


RECIPES = (
    Recipe("types", (table(columns=TYPE_COLUMNS), f"INSERT INTO {{t}} {TYPE_ROWS}"), TYPE_CONDITIONS),
    Recipe(
        "partitioned",
        (
            table(
                clause="PARTITIONED BY (region, day, number, moment)",
                columns="id bigint, region string, day date, number int, moment timestamp",
            ),
            f"INSERT INTO {{t}} SELECT id, {REGIONS}, date_add(DATE'1969-12-30', cast(id div 300 AS int)), "
            "if(id % 6 = 4, NULL, cast(id % 6 AS int) - 3), timestamp_micros(1704067200123456 * (id div 300)) "
            "FROM range(0, 600, 1, 1)",
            "INSERT INTO {t} SELECT id, '', DATE'1970-01-01', -3, NULL FROM range(600, 700, 1, 1)",
        ),
        (
            "region = 'eu'",
            "region = 'a b' OR region = 'x/y'",
            "region LIKE 'p%'",
            "region >= 'é'",
            "region IS NULL",
            "region = ''",
            "region <> 'eu'",
            "day = DATE'1969-12-31'",
            "day > '1969-12-30' AND region = 'é=+'",
            "number < 0",
            "number IS NULL",
            "number = 2 AND id < 10",
            "moment = TIMESTAMP'2024-01-01 00:00:00.123456'",
            "moment < TIMESTAMP'1970-01-02 00:00:00'",
            "year(moment) = 2024",
            "moment IS NULL",
            "id = 650",
        ),
    ),
    Recipe(
        "deletion_vectors",
        (
            table(properties="'delta.enableDeletionVectors' = 'true'"),
            insert(),
            "DELETE FROM {t} WHERE id % 10 = 3",
            "DELETE FROM {t} WHERE id BETWEEN 480 AND 530",
            "DELETE FROM {t} WHERE id < 250",
            "UPDATE {t} SET k = 1000 WHERE id = 777",
            insert(2000, 2100, 1),
        ),
        (*CONDITIONS, "k = 1000", "id = 1003", "id = 490"),
        {"1": CONDITIONS, "2": CONDITIONS, "4": CONDITIONS},
    ),
    mapped("name"),
    mapped("id"),
    Recipe(
        "liquid",
        (
            table(clause="CLUSTER BY (id, k)"),
            insert(0, 6000),
            insert(6000, 9000, 4),
            "OPTIMIZE {t}",
            insert(9000, 9100, 1),
        ),
        CONDITIONS,
    ),
    Recipe(
        "zordered",
        (table(), insert(0, 9000, 4), "OPTIMIZE {t} ZORDER BY (k, id)"),
        CONDITIONS,
        {"1": CONDITIONS},
    ),
    Recipe(
        "checkpointed",
        (
            table(properties="'delta.checkpointInterval' = '3'"),
            *(insert(first, first + 200, 1) for first in range(0, 1400, 200)),
            "DELETE FROM {t} WHERE id BETWEEN 300 AND 350",
            insert(1400, 1600, 1),
        ),
        CONDITIONS,
        {"5": CONDITIONS},
    ),
    Recipe(
        "checkpointed_with_parsed_statistics",
        (
            table(
                columns=TYPE_COLUMNS,
                properties="'delta.checkpointInterval' = '2', 'delta.checkpoint.writeStatsAsStruct' = 'true', "
                "'delta.checkpoint.writeStatsAsJson' = 'false'",
            ),
            f"INSERT INTO {{t}} {TYPE_ROWS}",
            "DELETE FROM {t} WHERE id = 5",
        ),
        TYPE_CONDITIONS,
    ),
    Recipe(
        "checkpointed_in_parts",
        (
            table(
                properties="'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3', "
                "'delta.enableDeletionVectors' = 'true'"
            ),
            *(insert(first, first + 200, 1) for first in range(0, 1200, 200)),
            "DELETE FROM {t} WHERE id % 10 = 3",
            "DELETE FROM {t} WHERE id % 10 = 4 AND id < 900",
            insert(1200, 1600, 2),
        ),
        CONDITIONS,
        {"6": CONDITIONS},
    ),
    Recipe(
        "row_tracking",
        (
            table(properties="'delta.enableRowTracking' = 'true'"),
            insert(),
            "UPDATE {t} SET k = -1 WHERE id BETWEEN 600 AND 610",
            "DELETE FROM {t} WHERE id = 3",
        ),
        (*CONDITIONS, "k = -1"),
    ),
    Recipe(
        "in_commit_timestamps",
        (
            table(),
            insert(0, 1000, 4),
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
            insert(1000, 2000, 4),
        ),
        CONDITIONS,
    ),
    Recipe(
        "widened",
        (
            table(
                columns="id int, tiny tinyint, f float, m decimal(6, 2), dt date",
                properties="'delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported'",
            ),
            "INSERT INTO {t} SELECT cast(id AS int), cast(id % 100 AS tinyint), cast(id / 7 AS float), "
            "cast(id AS decimal(6, 2)), date_add(DATE'1969-12-01', cast(id AS int)) FROM range(0, 800, 1, 8)",
            "ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
            "ALTER TABLE {t} ALTER COLUMN tiny TYPE int",
            "ALTER TABLE {t} ALTER COLUMN f TYPE double",
            "ALTER TABLE {t} ALTER COLUMN m TYPE decimal(14, 6)",
            "ALTER TABLE {t} ALTER COLUMN dt TYPE timestamp_ntz",
            "INSERT INTO {t} SELECT id + 5000000000, 100000, id / 7D + 1e300, id + 0.000001, "
            "timestamp_ntz'2024-01-01 12:00:00.5' FROM range(0, 100, 1, 1)",
        ),
        (
            "id = 150",
            "id >= 5000000000",
            "tiny = 100000",
            "tiny < 5 AND id > 100",
            "f > 1e299",
            "f = cast(cast(99 / 7 AS float) AS double)",
            "f < 14.2",
            "m = 150",
            "m = 99.000001",
            "m BETWEEN 0.5 AND 1.5",
            "dt = TIMESTAMP_NTZ'1970-01-01 00:00:00'",
            "dt < TIMESTAMP_NTZ'1969-12-15 06:00:00'",
            "dt > TIMESTAMP_NTZ'2024-01-01 00:00:00'",
            "year(dt) = 1970",
            "date(dt) = '1969-12-31'",
        ),
        {"1": ("id = 150", "tiny = 5", "m = 150", "dt = DATE'1970-01-01'")},
    ),
    Recipe(
        "evolved",
        (
            table(columns=f"{COLUMNS}, st struct<a: int>"),
            f"INSERT INTO {{t}} SELECT *, struct(i) FROM ({rows(0, 1000, 4)})",
            "ALTER TABLE {t} ADD COLUMN added int AFTER id",
            "ALTER TABLE {t} ADD COLUMN st.b string",
            f"INSERT INTO {{t}} SELECT id, -i, i, s, k, ts, struct(i, s) FROM ({rows(1000, 2000, 4)})",
        ),
        (
            *CONDITIONS,
            "added = -1500",
            "added IS NULL",
            "added > -1010",
            "st.a = 10",
            "st.b = 's01999'",
            "st.b IS NULL",
        ),
        {"1": CONDITIONS},
    ),
    Recipe(
        "few_statistics",
        (table(properties="'delta.dataSkippingNumIndexedCols' = '1'"), insert()),
        CONDITIONS,
    ),
)
VERSIONS = [(recipe, version) for recipe in RECIPES for version in recipe.versions()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("delta tables")


@pytest.fixture(scope="module")
def made(folder, delta_jars):
    return make("delta", RECIPES, folder=folder, jars=delta_jars)


@pytest.fixture(params=VERSIONS, ids=[f"{recipe.name}@{version or 'newest'}" for recipe, version in VERSIONS])
def case(request, made, folder):
    """A table for zonal, and what the engine sees of the same version."""
    recipe, version = request.param
    number = None if version == NEWEST else int(version)
    return DeltaTable(str(folder / recipe.name), version=number), seen_in(made, recipe.name, version)


def test_files_and_live_rows_are_the_engines(case):
    table, seen = case
    snapshot = table.snapshot()
    files = snapshot.files
    assert snapshot.version == seen.version, "the newest version is the engine's"
    assert sorted(files.paths.to_pylist()) == sorted(seen.files), "the live files are the engine's"
    live = dict(zip(files.paths.to_pylist(), (files.rows - files.deleted).tolist(), strict=True))
    assert {path: count for path, count in live.items() if count} == seen.live_rows, "rows without deleted ones agree"
    assert not ((files.delete_files == 0) & (files.deleted != 0)).any(), "rows are deleted by vectors only"


def test_files_are_added_by_the_versions_of_the_history(case):
    table, seen = case
    snapshot = table.snapshot()
    operations = {str(number): commit.operation for number, commit in snapshot.commits.items()}
    assert operations == seen.operations, "every version has the operation of DESCRIBE HISTORY"
    files = snapshot.files
    for path, number, vectors in zip(files.paths.to_pylist(), files.added_by, files.delete_files, strict=True):
        if vectors:
            assert seen.operations[str(number)] in ("DELETE", "UPDATE"), f"{path} has a vector since version {number}"
        else:
            assert number == seen.added_by[path], f"{path} was first seen in version {seen.added_by[path]}"


class TestContract(EngineContract):
    """What holds for every engine."""
