"""`append`: rows of any kind get into the table once, in clustered files of their partitions, with their statistics."""

import json
from datetime import datetime, timedelta
from itertools import pairwise

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from support.appends import append_to
from support.cluster_tables import IN_PLACE, NEWEST, Delta, Iceberg, assert_same_rows, home, partitions_hold, telemetry
from support.delta_tables import LogWriter, features, metadata, struct
from zonal.history.store import History
from zonal.tables.registry import open_table
from zonal.verbs.append import append


def both(before, new):
    return pa.concat_tables([before, new])


@pytest.mark.parametrize("kind", IN_PLACE)
@pytest.mark.parametrize("keys", [(), ("p",)])
def test_rows_are_added_in_one_commit_and_marked_as_a_run(kind, keys, tmp_path):
    before, new = telemetry(300), telemetry(500, 1, first=1000)
    table = home(kind, tmp_path).make([before], keys)
    old = {file.path for file in table.files()}
    done = append_to(table, new, by=["x", "y"], transaction=None)
    assert (done.rows, done.version, done.repeated) == (500, table.version(), False)
    assert_same_rows(table.rows(), both(before, new))
    partitions_hold(table, both(before, new)) if keys else None
    added = [file for file in table.files() if file.path not in old]
    assert (len(added), sum(file.size for file in added)) == (done.files, done.bytes)
    assert not table.strays(), "staged files are gone"
    snapshot = open_table(table.name, **table.options).snapshot()
    assert str(snapshot.layout) == "zorder(x, y)"
    marked = dict(zip(snapshot.files.paths.to_pylist(), snapshot.files.layout_ids.to_pylist(), strict=True))
    assert {path for path, layout in marked.items() if layout == snapshot.layout.id} == {
        path for path in marked if any(path.endswith(file.path.name) for file in added)
    }
    assert snapshot.commits[snapshot.version].kind == "append"
    assert "zonal" in snapshot.commits[snapshot.version].writer


@pytest.mark.parametrize("kind", NEWEST)
def test_files_are_cut_and_sorted_by_the_recorded_layout(kind, tmp_path):
    before, new = telemetry(300), telemetry(6000, 1, first=1000)
    table = home(kind, tmp_path).make([before])
    table.cluster(layout="linear(x, file_size=16KB)")
    old = {file.path for file in table.files()}
    done = append_to(table, new)
    ranges = sorted(
        (min(values), max(values))
        for file in table.files()
        if file.path not in old
        for values in [pq.ParquetFile(file.path).read(["x"])["x"].to_pylist()]
    )
    assert done.files == len(ranges) > 3
    assert all(one[1] <= other[0] for one, other in pairwise(ranges)), "the run doesn't overlap"
    assert table.cluster(layout="linear(x, file_size=16KB)").run.versions == (), "nothing is left to do"


FORMS = {
    "table": lambda rows, _: rows,
    "batch": lambda rows, _: rows.combine_chunks().to_batches()[0],
    "reader": lambda rows, _: pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches(100))),
    "dataset": lambda rows, _: pyarrow.dataset.dataset(rows),
    "scanner": lambda rows, _: pyarrow.dataset.dataset(rows).scanner(),
    "polars": lambda rows, _: polars.from_arrow(rows),
    "duckdb": lambda rows, _: duckdb.connect().from_arrow(rows),
    "file": lambda rows, folder: _written(rows, folder / "new.parquet"),
    "files": lambda rows, folder: [
        _written(rows.slice(0, 100), folder / "1.parquet"),
        _written(rows.slice(100), folder / "2.parquet"),
    ],
}


def _written(rows, path):
    pq.write_table(rows, path)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_as_arrow_of_any_kind_or_as_files(form, tmp_path):
    before, new = telemetry(100), telemetry(250, 1, first=1000)
    table = Delta(tmp_path).make([before], ["p"])
    assert append_to(table, FORMS[form](new, tmp_path), by="x").rows == 250
    assert_same_rows(table.rows(), both(before, new))


def test_a_folder_with_hives_partitions_gives_its_columns(tmp_path):
    new = telemetry(200, 1, first=1000)
    pq.write_to_dataset(new, tmp_path / "new", partition_cols=["p"])
    table = Iceberg(tmp_path / "lake").make([telemetry(10)], ["p"])
    append_to(table, tmp_path / "new", by="x")
    assert_same_rows(table.rows(), both(telemetry(10), new))
    partitions_hold(table, both(telemetry(10), new))


@pytest.mark.parametrize("kind", IN_PLACE)
def test_an_empty_table_takes_its_first_rows(kind, tmp_path):
    new = telemetry(120)
    table = home(kind, tmp_path).make([new.slice(0, 0)], ["p"])
    append_to(table, new, by=["x", "y"])
    append_to(table, telemetry(10, 2, first=500))
    assert_same_rows(table.rows(), both(new, telemetry(10, 2, first=500)))


@pytest.mark.parametrize("kind", NEWEST)
def test_no_rows_are_no_commit(kind, tmp_path):
    table = home(kind, tmp_path).make([telemetry(10)])
    before = table.version()
    done = append_to(table, telemetry(0), by="x")
    assert (done.version, done.rows, done.note) == (None, 0, "There were no rows to append.")
    assert table.version() == before
    assert not table.run_folders()


@pytest.mark.parametrize("kind", IN_PLACE)
def test_statistics_hold_for_every_row_and_hide_no_nan(kind, tmp_path):
    new = telemetry(400, 1, first=1000)
    numbers = new["y"].to_pylist()
    new = new.set_column(2, "y", pa.array([float("nan"), None, *numbers[2:]], pa.float64()))
    table = home(kind, tmp_path).make([telemetry(10)])
    append_to(table, new, by=["id"])
    snapshot = open_table(table.name, **table.options).snapshot()
    file = next(at for at, rows in enumerate(snapshot.files.rows) if rows == 400)
    ids, texts, floats = (snapshot.files.bounds[name] for name in ("id", "s", "y"))
    assert (ids.lower[file].as_py(), ids.upper[file].as_py(), ids.nulls[file]) == (1000, 1399, 0)
    assert texts.lower[file].as_py().decode() <= pc.min(new["s"]).as_py()
    assert texts.upper[file].as_py().decode() >= pc.max(new["s"]).as_py()
    assert floats.nulls[file] == 1
    assert not floats.upper[file].is_valid, "NaN is above all numbers"


def test_delta_readers_skip_by_the_new_files_and_find_every_row(tmp_path):
    new = telemetry(3000, 1, first=1000)
    table = Delta(tmp_path).make([telemetry(10)], ["p"])
    append_to(table, new, by=["x"])
    wanted = new.filter(pc.and_(pc.less(new["x"], 100), pc.equal(new["p"], "b"))).num_rows
    wanted += (
        telemetry(10).filter(pc.and_(pc.less(telemetry(10)["x"], 100), pc.equal(telemetry(10)["p"], "b"))).num_rows
    )
    polar = polars.scan_delta(str(table.root)).filter((polars.col("x") < 100) & (polars.col("p") == "b")).collect()
    arrow = DeltaTable(table.root).to_pyarrow_dataset().to_table(filter=(pc.field("x") < 100) & (pc.field("p") == "b"))
    assert polar.height == arrow.num_rows == wanted


def test_iceberg_transforms_put_every_row_into_its_partition(tmp_path):
    count = 400
    moments = [datetime(2025, 12, 30) + timedelta(hours=7 * number) for number in range(count)]
    new = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "ts": pa.array(moments, pa.timestamp("us")),
            "s": [f"name {number % 17}" for number in range(count)],
            "x": pa.array(np.arange(count) % 50, pa.int32()),
        }
    )
    table = Iceberg(tmp_path).make([new.slice(0, 0)])
    with table.table.update_spec() as spec:
        spec.add_field("ts", "month")
        spec.add_field("s", "bucket[4]")
        spec.add_field("x", "truncate[20]")
    append_to(table, new, by="id")
    assert_same_rows(table.rows(), new)
    schema, spec = table.table.schema(), table.table.spec()
    for task in table.table.scan().plan_files():
        rows = pq.ParquetFile(task.file.file_path.removeprefix("file://")).read()
        for at, field in enumerate(spec.fields):
            column = schema.find_column_name(field.source_id)
            judge = field.transform.transform(schema.find_type(field.source_id))
            values = rows[column].cast(pa.int64()) if column == "ts" else rows[column]
            assert {judge(value) for value in values.to_pylist()} == {task.file.partition[at]}, field
    for row in new.slice(0, 20).to_pylist():
        for condition in (
            f"ts = '{row['ts'].isoformat()}'",
            f"s = '{row['s']}' and id = {row['id']}",
            f"x = {row['x']}",
        ):
            assert row["id"] in table.table.scan(row_filter=condition).to_arrow()["id"].to_pylist()


def test_v3_tables_number_new_rows_on(tmp_path):
    table = home("iceberg v3", tmp_path).make([telemetry(50)])
    first = table.table.metadata.next_row_id
    append_to(table, telemetry(70, 1, first=100), by="x")
    metadata = table.table.metadata
    assert metadata.next_row_id == first + 70
    assert first == 50


def test_delta_row_tracking_and_timestamps_go_on(tmp_path):
    table = Delta(tmp_path).make([telemetry(20)])
    log = table.root / "_delta_log"
    features = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["rowTracking", "domainMetadata", "inCommitTimestamp"],
    }
    meta = json.loads(next(line for line in (log / f"{0:020d}.json").read_text().splitlines() if "metaData" in line))
    meta["metaData"]["configuration"] = {"delta.enableInCommitTimestamps": "true"}
    mark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark": 19}', "removed": False}
    lines = [{"commitInfo": {"inCommitTimestamp": 4 * 10**12}}, {"protocol": features}, meta, {"domainMetadata": mark}]
    (log / f"{1:020d}.json").write_text("\n".join(map(json.dumps, lines)))
    append_to(table, telemetry(30, 1, first=100), by="x")
    actions = [json.loads(line) for line in (log / f"{2:020d}.json").read_text().splitlines()]
    info, add = actions[0]["commitInfo"], next(action["add"] for action in actions if "add" in action)
    assert info["inCommitTimestamp"] > 4 * 10**12
    assert (add["baseRowId"], add["defaultRowCommitVersion"], add["dataChange"]) == (20, 2, True)
    domain = next(action["domainMetadata"] for action in actions if "domainMetadata" in action)
    assert json.loads(domain["configuration"]) == {"rowIdHighWaterMark": 49}


def test_column_mapping_keeps_physical_names_and_nested_fields(tmp_path):

    def mapped(name, kind, number):
        told = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        return {"name": name, "type": kind, "nullable": True, "metadata": told}

    log = LogWriter(tmp_path / "t")
    inner = struct(mapped("lat", "double", 3), mapped("lon", "double", 4))
    fields = (mapped("id", "long", 1), mapped("geo", inner, 2), mapped("day", "date", 5))
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "5"}
    log.commit(features("columnMapping"), metadata(*fields, partitioning=["day"], configuration=configuration))
    place = pa.array([{"lat": 1.5, "lon": 2.5}, None, {"lat": None, "lon": 3.0}])
    days = pa.array([datetime(2026, 1, 1).date(), None, datetime(2026, 1, 1).date()])
    new = pa.table({"id": [1, 2, 3], "geo": place, "day": days})
    append(f"delta:{tmp_path / 't'}", new, by="geo.lat")
    stored = [pq.ParquetFile(file).read() for file in (tmp_path / "t").rglob("*.parquet")]
    assert {tuple(rows.column_names) for rows in stored} == {("col-1", "col-2")}
    found = sorted((row for rows in stored for row in rows.to_pylist()), key=lambda row: row["col-1"])
    assert [row["col-2"] for row in found] == [
        {"col-3": 1.5, "col-4": 2.5}, None, {"col-3": None, "col-4": 3.0},
    ]  # fmt: skip
    lines = (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
    adds = [action["add"] for action in map(json.loads, lines) if "add" in action]
    assert sorted(str(add["partitionValues"]) for add in adds) == ["{'col-5': '2026-01-01'}", "{'col-5': None}"]
    assert {key for add in adds for key in json.loads(add["stats"])["nullCount"]} == {"col-1", "col-2"}


def test_the_run_is_in_the_history_with_what_arrived(tmp_path):
    table = Delta(tmp_path).make([telemetry(20)])
    url = f"sqlite:///{tmp_path}/history.db"
    done = append_to(table, telemetry(30, 1, first=100), by="x", database=url)
    with History.open(url) as history:
        (run,) = history.runs(str(table.root))
    assert (run.run, run.rows, run.removed_bytes, run.added_bytes) == (done.run, 30, 0, done.bytes)


def test_a_table_that_was_appended_to_is_clustered_on(tmp_path):
    table = Delta(tmp_path).make([telemetry(200)])
    append_to(table, telemetry(300, 1, first=1000), by="x")
    done = table.cluster()
    assert (done.change.removed_files, done.change.rows) == (2, 500), "less than a file's worth becomes one file"
    assert table.cluster().run.versions == (), "nothing is left to do"
