"""The contract of tables: the same rows in every format are shown, explained and pruned alike."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as OtherDelta
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog

import zonal
from support.predicates import TEXT
from zonal.errors import ColumnError, PredicateError, TableError
from zonal.tables.registry import open_table
from zonal.verbs.explain import explain, prune
from zonal.verbs.show import show

FORMATS = ("parquet", "delta", "iceberg")
UTC = dt.timezone.utc
START = dt.datetime(2024, 1, 1, tzinfo=UTC)
FILES, ROWS = 10, 50


def batch(number):
    """Fifty rows of day `number`: ids and times rise with the file, names don't."""
    rows = range(number * ROWS, (number + 1) * ROWS)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "ts": pa.array([START + dt.timedelta(hours=i / 2) for i in rows], pa.timestamp("us", "UTC")),
            "day": pa.array([(START + dt.timedelta(hours=i / 2)).date() for i in rows], pa.date32()),
            "name": pa.array([f"a very long name that is cut by every format {i % 7}-{i}" for i in rows]),
            "amount": pa.array([Decimal(i) / 100 if i % 5 else None for i in rows], pa.decimal128(12, 2)),
            "score": pa.array([float(i) for i in rows]),
            "flag": pa.array([i < 250 for i in rows]),
            "geo": pa.array([{"lat": float(i), "city": f"c{i:04}"} for i in rows]),
            "empty": pa.nulls(ROWS, pa.int32()),
        }
    )


def write(kind, folder):
    """Write ten files and return how zonal opens them."""
    batches = [batch(number) for number in range(FILES)]
    if kind == "parquet":
        (folder / "t").mkdir()
        for number, rows in enumerate(batches):
            pq.write_table(rows, folder / "t" / f"{number}.parquet", row_group_size=10, write_page_index=True)
        return {"name": str(folder / "t")}
    if kind == "delta":
        for rows in batches:
            write_deltalake(str(folder / "t"), rows, mode="append")
        return {"name": str(folder / "t")}
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    catalog = SqlCatalog("test", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", batches[0].schema)
    for rows in batches:
        table.append(rows)
    return {"name": "iceberg:db.t", "catalog": "test", "storage_options": properties}


@pytest.fixture(scope="module", params=FORMATS)
def table(request, tmp_path_factory):
    return open_table(**write(request.param, tmp_path_factory.mktemp(request.param)))


def rows_by_file(table):
    snapshot = table.snapshot()
    found = {}
    for path in snapshot.files.paths.to_pylist():
        with table.open_file(path) as file:
            found[path] = pq.read_table(file)
    return found


def test_files_rows_and_commits(table):
    snapshot = table.snapshot()
    assert len(snapshot.files) == FILES
    assert snapshot.files.rows.tolist() == [ROWS] * FILES
    assert (snapshot.files.sizes > 0).all()
    assert (snapshot.files.deleted == 0).all()
    assert snapshot.schema.names == batch(0).schema.names
    if snapshot.format != "parquet":
        assert set(snapshot.files.added_by.tolist()) <= set(snapshot.commits), (
            "the commit that added each file is known"
        )
        assert len(set(snapshot.files.added_by.tolist())) == FILES


def test_every_value_lies_within_its_bounds(table):
    snapshot = table.snapshot()
    contents = rows_by_file(table)
    names = ["id", "ts", "day", "name", "amount", "score", "geo.lat", "geo.city"]
    if snapshot.format == "iceberg":
        names = names[:6]  # PyIceberg writes no bounds of struct leaves
    for name in names:
        known = snapshot.files.bounds[name]
        assert known.lower.null_count == known.upper.null_count == 0, f"{name} has no bounds"
        for row, path in enumerate(snapshot.files.paths.to_pylist()):
            parts = name.split(".")
            column = contents[path][parts[0]].combine_chunks()
            column = column.field(parts[1]) if len(parts) > 1 else column
            values = [v.encode() if isinstance(v, str) else v for v in column.to_pylist() if v is not None]
            assert known.lower[row].as_py() <= min(values), name
            assert known.upper[row].as_py() >= max(values), name
            assert known.nulls[row] in (-1, column.null_count), name


CONDITIONS = [
    "id = 123",
    "id IN (3, 120, 499)",
    "id BETWEEN 95 AND 105",
    "id < 0",
    "NOT (id < 450 OR id > 470)",
    "ts >= TIMESTAMP '2024-01-10 00:00:00'",
    "date(ts) = DATE '2024-01-03'",
    "date_trunc('month', ts) = DATE '2024-02-01'",
    "year(ts) < 2024",
    "day > DATE '2024-01-09' AND id <> 499",
    "name LIKE 'a very long name that is cut by every format 3%'",
    "name = 'nobody'",
    "amount = 1.23",
    "amount IS NULL",
    "amount >= 4.9",
    "score BETWEEN 60.5 AND 61.5",
    "flag = false",
    "flag",
    "geo.lat > 480 AND geo.lat < 490",
    "geo.city = 'c0077'",
    "empty = 3",
    "empty IS NULL",
    "upper(name) = 'X'",
    "id = 5 OR day = DATE '2024-01-11'",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_files_with_matching_rows_are_kept(table, condition):
    kept = set(prune(table, where=condition, dialect="duckdb"))
    for path, rows in rows_by_file(table).items():
        told = rows.set_column(1, "ts", rows["ts"].cast(pa.timestamp("us")))  # noqa: F841 - DuckDB finds it
        matching = duckdb.sql(f"SELECT count(*) FROM told WHERE {condition}").fetchall()[0][0]
        assert not matching or path in kept, f"{condition} skipped {path}, which has {matching} rows"


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("id = 123", 1), ("id IN (3, 120, 499)", 3), ("id < 0", 0), ("ts >= '2024-01-10'", 2), ("year(ts) < 2024", 0),
        ("date(ts) = DATE '2024-01-03'", 2), ("day > DATE '2024-01-09'", 2), ("amount >= 4.9", 1), ("amount > 1000", 0),
        ("score BETWEEN 60.5 AND 61.5", 1), ("geo.city = 'c0077'", 1), ("GEO.City = 'c0077'", 1), ("empty = 3", 0),
        ("upper(name) = 'X'", FILES), ("name < 'a'", 0), ("amount IS NULL", FILES), ("id IS NULL", 0),
    ],
)  # fmt: skip
def test_all_formats_skip_alike(table, condition, files):
    if "geo" in condition.lower() and table.snapshot().format == "iceberg":
        files = FILES  # PyIceberg writes no bounds of struct leaves
    assert len(prune(table, where=condition)) == files


def test_show_measures_the_table(table):
    health = show(table, columns=["id", "name", "geo.lat"])
    assert (health.table.files, health.table.rows, health.deletes.delete_files) == (FILES, FILES * ROWS, 0)
    by_name = {column.depth.column: column for column in health.columns}
    assert by_name["id"].depth.average_depth == 1.0
    assert by_name["id"].verdict == "a look-up of id reads 1 of 10 files"
    assert by_name["name"].depth.average_depth == FILES, "names are cut where they begin to differ"
    with pytest.raises(ColumnError, match=r"Unknown column 'geo\.lot'\. Did you mean 'geo\.lat'"):
        show(table, columns=["geo.lot"])


def test_explain_goes_down_to_the_pages(table):
    found = explain(table, where="id >= 123 AND id < 125 AND upper(name) <> 'X'")
    levels = {level.name: level for level in found.levels}
    assert (levels["files"].kept, levels["files"].total) == (1, FILES)
    assert found.skipped_by == {"id": FILES - 1}
    assert found.unknown == ("the function upper",)
    assert [file.rows for file in found.files] == [ROWS]
    if found.format == "parquet":
        assert (levels["row groups"].kept, levels["row groups"].total) == (1, 5)
        assert "pages" in levels
    assert 0 < found.share_of_bytes < 0.2


def test_explain_takes_a_whole_query(table):
    sql = "SELECT count(*) FROM events e WHERE e.id = 499 AND e.flag"
    assert explain(table, sql=sql).levels[0].kept == 0, "flag is true below 250 only"
    with pytest.raises(PredicateError, match="either a condition"):
        explain(table)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("ts > 'banana'", "'banana' can't be compared with column 'ts'"),
        ("idd = 3", "Unknown column 'idd'. Did you mean 'id'"),
        ("id = = 3", "."),
        ("", "."),
    ],
)
def test_bad_conditions_are_explained(table, where, message):
    with pytest.raises(PredicateError, match=message):
        prune(table, where=where)


def test_long_lists_are_quick(table):
    where = f"id IN ({', '.join(str(n) for n in range(100_000, 110_000))}, 7)"
    assert len(prune(table, where=where)) == 1


def test_results_are_json(table):
    from zonal.report.machine.json_form import to_json

    health = json.loads(to_json(show(table)))
    assert health["files"] == FILES
    assert health["columns"][0]["verdict"].startswith("a look-up of")
    assert json.loads(to_json(explain(table, where="id = 3")))["levels"][0]["kept"] == 1


def test_a_file_that_is_gone_does_not_hide_the_others(tmp_path):
    for kind in ("delta", "iceberg"):
        folder = tmp_path / kind
        folder.mkdir()
        table = open_table(**write(kind, folder))
        path = prune(table, where="id = 123")[0].removeprefix("file://")
        Path(path).unlink()
        found = explain(table, where="id BETWEEN 95 AND 125")
        assert [level.kept for level in found.levels if level.name == "files"] == [2]
        assert len(found.notes) == 1, "the missing file is named"
        assert path.rsplit("/", 1)[1] in found.notes[0]


def test_delta_versions_and_their_end(tmp_path):
    name = write("delta", tmp_path)["name"]
    assert len(open_table(f"{name}@3").snapshot().files) == 4
    assert len(open_table(f"delta:{name}@0").snapshot().files) == 1
    for wrong in ("99", "main"):
        with pytest.raises(TableError, match=wrong):
            open_table(f"{name}@{wrong}").snapshot()


def test_iceberg_metadata_files_and_folders(tmp_path):
    write("iceberg", tmp_path)
    newest = max((tmp_path / "warehouse").rglob("*.metadata.json"), key=lambda path: path.stat().st_mtime)
    assert len(open_table(str(newest)).snapshot().files) == FILES
    with pytest.raises(TableError, match="is the folder of an Iceberg table"):
        open_table(str(newest.parent.parent))


MANAGED = {
    "Hudi": (["t/.hoodie/hoodie.properties"], "t", "is the folder of a Hudi table"),
    "a partition of Hudi": ([".hoodie/hoodie.properties"], "t", "lies in the folder of a Hudi table"),
    "Hudi further up": ([".hoodie/hoodie.properties"], "t/day=1", "lies in the folder of a Hudi table"),
    "Paimon": (["t/snapshot/snapshot-1", "t/schema/schema-0", "t/manifest/m-0"], "t", "is the folder of a Paimon"),
    "a bucket of Paimon": (["snapshot/snapshot-1", "schema/schema-0", "manifest/m-0"], "t", "lies in .* a Paimon"),
    "Lance": (["t/_versions/1.manifest"], "t", "is the folder of a Lance table"),
    "Lance's data": (["t/data/0.lance"], "t", "has a Lance table in it"),
    "Hive, inserted": (["t/delta_0000001_0000001_0000/000000_0"], "t", "is the folder of a transactional Hive table"),
    "Hive, compacted": (["t/day=1/base_0000005_v0000012/0_0"], "t", "has a transactional Hive table in it"),
    "Hive, deleted": (["t/delete_delta_0000002_0000002/0_0"], "t", "is the folder of a transactional Hive table"),
    "a folder of Delta": (["_delta_log/0.json"], "t", "lies in the folder of a Delta table.*delta:"),
    "a folder of Iceberg": (["metadata/v1.metadata.json"], "t", "lies in the folder of an Iceberg table"),
    "Delta below": (["t/x/_delta_log/0.json"], "t", "has a Delta table in it.*delta:.*/x"),
    "Hudi below": (["t/x/y/.hoodie/hoodie.properties"], "t", "has a Hudi table in it"),
    "Iceberg below": (["t/x/metadata/v1.metadata.json"], "t", "has an Iceberg table in it"),
}


@pytest.mark.parametrize("case", MANAGED)
def test_folders_of_other_formats_are_not_taken_for_plain_parquet(case, tmp_path):
    marks, asked, message = MANAGED[case]
    files = ["t/day=1/a.parquet", "t/day=2/b.parquet"]
    for name in (*files, *marks):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    for name in files:
        pq.write_table(pa.table({"id": [1]}), tmp_path / name)
    with pytest.raises(TableError, match=message):
        open_table(str(tmp_path / asked)).snapshot()
    with pytest.raises(TableError, match=message):
        zonal.cluster(str(tmp_path / asked), by="id", into=f"delta:{tmp_path}/copy", spark=pytest.fail)
    assert not (tmp_path / "copy").exists()
    assert len(open_table(f"parquet:{tmp_path / 't/day=2'}").snapshot().files) == 1, "asked for as it is"


def test_folders_that_only_sound_like_tables_are_plain_parquet(tmp_path):
    likely = [
        "metadata/a.parquet",
        "snapshot/b.parquet",
        "base_1/c.parquet",
        "delta_5/d.parquet",
        "delta_log/e.parquet",
    ]
    for name in likely:
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), tmp_path / "t" / name)
    for name in (".trash/old/_delta_log/0.json", "_tmp/x/.hoodie/hoodie.properties"):
        (tmp_path / "t" / name).parent.mkdir(parents=True)
        (tmp_path / "t" / name).write_text("{}")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "snapshot").mkdir()
    assert len(open_table(str(tmp_path / "t")).snapshot().files) == len(likely)


@pytest.mark.parametrize("name", ["nowhere", "delta:nowhere", "parquet:nowhere", "x.metadata.json"])
def test_what_is_not_there_is_named(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match=name.rpartition(":")[2].partition(".")[0]):
        open_table(name).snapshot()


def test_parquet_has_no_versions(tmp_path):
    name = write("parquet", tmp_path)["name"]
    with pytest.raises(TableError, match="has no versions"):
        open_table(f"{name}@3")


def test_delta_rs_keeps_what_we_keep_or_more(tmp_path):
    """The peer's own file skipping is never tighter than ours."""
    name = write("delta", tmp_path)["name"]
    other = OtherDelta(name)
    for column, op, value in [("id", "=", 123), ("id", "<", 60), ("id", ">=", 440), ("day", ">", dt.date(2024, 1, 9)),
                              ("name", "=", "b"), ("score", "<", 10.0)]:  # fmt: skip
        literal = f"DATE '{value}'" if isinstance(value, dt.date) else repr(value)
        ours = {path.rsplit("/", 1)[-1] for path in prune(name, where=f"{column} {op} {literal}")}
        fragments = other.to_pyarrow_dataset().get_fragments(filter=_arrow_filter(column, op, value))
        theirs = {fragment.path.rsplit("/", 1)[-1] for fragment in fragments}
        assert ours <= theirs, f"{column} {op} {value}: we keep {len(ours)} files, delta-rs {len(theirs)}"


def _arrow_filter(column, op, value):
    import operator

    import pyarrow.dataset as ds

    return {"=": operator.eq, "<": operator.lt, ">=": operator.ge, ">": operator.gt}[op](ds.field(column), value)


@given(st.sampled_from(["id", "day", "amount", "name"]), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pyiceberg_keeps_what_we_keep_or_more(iceberg, column, op, data):
    values = {
        "id": st.integers(-10, 510),
        "day": st.dates(dt.date(2023, 12, 30), dt.date(2024, 1, 14)),
        "amount": st.decimals(-1, 6, places=2),
        "name": TEXT.filter(lambda text: "'" not in text and text.isprintable()),
    }
    value = data.draw(values[column])
    literal = f"'{value}'" if isinstance(value, str | dt.date) else str(value)
    where = f"{column} {op} {literal}"
    theirs = {task.file.file_path for task in iceberg.table.scan(row_filter=where).plan_files()}
    date = f"DATE {literal}" if isinstance(value, dt.date) else literal
    ours = set(prune(iceberg, where=f"{column} {op.replace('==', '=').replace('!=', '<>')} {date}"))
    assert ours <= theirs, f"{where}: we keep {len(ours)} files, PyIceberg {len(theirs)}"


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory):
    return open_table(**write("iceberg", tmp_path_factory.mktemp("peer")))


def test_the_names_are_public(table):
    assert zonal.prune(table, where="id = 1") == prune(table, where="id = 1")
    assert zonal.show(table).table.files == FILES
    assert zonal.explain(table, where="id = 1").levels
    assert np.isfinite(zonal.explain(table, where="id = 1").share_of_bytes)


def test_names_that_tables_keep_never_change():
    """Tables that were clustered by an older zonal know their layout by these names."""
    from zonal.tables.delta.adds import LAYOUT_TAG, RUN_TAG
    from zonal.tables.parquet.copy import LAYOUT_KEY
    from zonal.tables.protocol import LAYOUT_PROPERTY

    assert (*["zonal.layout"] * 3, "zonal.run") == (LAYOUT_PROPERTY, LAYOUT_TAG, LAYOUT_KEY, RUN_TAG)
