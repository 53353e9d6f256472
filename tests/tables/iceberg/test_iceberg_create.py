"""New Iceberg tables for `--into`."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from support.iceberg_rewriting import LAYOUT, local, numbers, opened, replacement, write_file
from support.iceberg_tables import properties_in
from zonal.errors import ConflictError, TableError
from zonal.layouts.layout import Layout
from zonal.tables.iceberg.create import IcebergDestination


def destination(folder: Path, name: str = "new.t") -> IcebergDestination:
    return IcebergDestination(name, catalog="test", catalog_properties=properties_in(folder))


def published(folder: Path, data: pa.Table, *, partitioning=(), partitions=({},), layout=LAYOUT):
    target = destination(folder)
    writing = target.writing(data.schema, partitioning, partitions, layout=layout, run="r1")
    Path(local(writing.folder)).mkdir(parents=True)
    per = data.num_rows // len(partitions)
    added = [
        write_file(f"{writing.folder}/{n}.parquet", data.slice(n * per, per), writing, n)
        for n in range(len(partitions))
    ]
    return target, writing, target.publish(added)


def test_a_new_table_appears_with_all_files_and_its_layout(catalog, tmp_path):
    data = pa.table(
        {
            "x": pa.array([1, 2, 3, 4], pa.int16()),
            "y": pa.array([1.5, None, float("nan"), 2.5], pa.float32()),
            "region": pa.array(["eu", "eu", None, None]).dictionary_encode(),
            "day": pa.array([date(2026, 1, 1)] * 4),
            "tags": pa.array([["a"], [], None, ["b", None]]),
            "at": pa.array([1, 2, 3, None], pa.timestamp("ms", "Europe/Paris")),
        }
    )
    partitions = [
        {"region": pa.scalar("eu"), "day": pa.scalar(date(2026, 1, 1))},
        {"region": pa.scalar(None, pa.string()), "day": pa.scalar(date(2026, 1, 1))},
    ]
    layout = Layout("linear", ("x", "y"))
    target, writing, version = published(
        tmp_path, data, partitioning=("region", "day"), partitions=partitions, layout=layout
    )
    assert target.file_columns(data.schema, ("region",)) == data.column_names
    current = catalog.load_table("new.t")
    assert writing.folder.startswith(current.location())
    assert current.metadata.format_version == 2
    assert current.current_snapshot().snapshot_id == version
    found = current.scan().to_arrow()
    assert sorted(found["x"].to_pylist()) == [1, 2, 3, 4]
    assert found["region"].to_pylist().count("eu") == 2
    assert len(list(current.scan(row_filter="region = 'eu'").plan_files())) == 1
    assert [str(field.transform) for field in current.spec().fields] == ["identity", "identity"]
    snapshot = opened(catalog, "new.t").snapshot()
    assert snapshot.layout == layout
    assert snapshot.files.layout_ids.to_pylist() == [layout.id] * 2
    assert snapshot.commits[version].details["total-records"] == "4"
    assert {task.file.sort_order_id for task in current.scan().plan_files()} == {1}
    table = opened(catalog, "new.t")
    table.commit(replacement(table, table.snapshot(), run="r2"))
    current = catalog.load_table("new.t")
    current.append(found)
    assert current.scan().to_arrow().num_rows == 8


def test_a_new_table_without_rows_is_empty(catalog, tmp_path):
    target = destination(tmp_path)
    target.writing(pa.schema({"x": pa.int64(), "y": pa.int64()}), (), [{}], layout=LAYOUT, run="r")
    assert target.publish([]) is None
    assert catalog.load_table("new.t").scan().to_arrow().num_rows == 0


def test_an_existing_table_is_refused_also_one_that_appeared_meanwhile(tmp_path):
    data = numbers(1, 2)
    target = destination(tmp_path)
    writing = target.writing(data.schema, (), [{}], layout=LAYOUT, run="r")
    Path(local(writing.folder)).mkdir(parents=True)
    added = [write_file(f"{writing.folder}/0.parquet", data, writing, 0)]
    other = destination(tmp_path)
    other.writing(data.schema, (), [{}], layout=LAYOUT, run="r")
    assert other.publish(added) is not None
    with pytest.raises(ConflictError, match=r"made the table 'new\.t' meanwhile"):
        target.publish(added)
    with pytest.raises(TableError, match=r"'new\.t' exists"):
        destination(tmp_path).writing(data.schema, (), [{}], layout=LAYOUT, run="r")
    with pytest.raises(TableError, match=r"name it as namespace\.table"):
        destination(tmp_path, "t").writing(data.schema, (), [{}], layout=LAYOUT, run="r")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.timestamp("ns"), "bad"),
        (pa.uint64(), "bad"),
        (pa.duration("s"), "bad"),
        (pa.list_(pa.null()), "bad.element"),
        (pa.struct({"z": pa.month_day_nano_interval()}), "bad.z"),
        (pa.decimal256(50, 2), "bad"),
    ],
)
def test_types_that_iceberg_lacks_are_refused_by_column(catalog, tmp_path, kind, name):
    schema = pa.schema({"x": pa.int64(), "y": pa.int64(), "bad": kind})
    with pytest.raises(TableError, match=f"Column '{name}' has the type"):
        destination(tmp_path).writing(schema, (), [{}], layout=LAYOUT, run="r")
    assert not catalog.namespace_exists("new")


def test_the_catalog_at_home_is_made_where_none_is_configured(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.delenv("PYICEBERG_CATALOG__DEFAULT__URI", raising=False)
    target = IcebergDestination("db.t")
    target.writing(numbers(1).schema, (), [{}], layout=LAYOUT, run="r")
    assert (tmp_path / ".zonal" / "catalog.db").exists()
