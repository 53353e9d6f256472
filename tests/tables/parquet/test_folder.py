"""A folder of Parquet files is a table, by the footers of its files."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zonal.errors import TableError
from zonal.layouts.layout import Layout
from zonal.parquet.footer import read_footer, row_group_bounds
from zonal.parquet.page_index import page_bounds
from zonal.snapshot import UNKNOWN, Physical
from zonal.tables.parquet.folder import ParquetTable


# Tables.
def write(folder, name, table, **options):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return str(path)


def test_a_folder_is_a_table(tmp_path):
    write(tmp_path, "a.parquet", pa.table({"x": [1, 2, 3, 4], "s": ["a", None, "c", "d"]}), row_group_size=2)
    write(tmp_path, "deep/b.parquet", pa.table({"x": [None, None, 9], "s": ["x", "y", "z"]}), row_group_size=2)
    write(tmp_path, "c.parquet", pa.table({"x": pa.array([], pa.int64()), "s": pa.array([], pa.string())}))
    for hidden in ("_SUCCESS", ".a.parquet.crc", "_metadata", "_temporary/x.parquet"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_bytes(b"no")
    calls = []
    snapshot = ParquetTable(str(tmp_path)).snapshot(lambda step: calls.append((step.done, step.total)))
    files = snapshot.files
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert files.paths.to_pylist() == [str(tmp_path / name) for name in ("a.parquet", "c.parquet", "deep/b.parquet")]
    assert files.rows.tolist() == [4, 0, 3]
    assert files.partitions == ("",)
    assert files.bounds["x"].lower.to_pylist() == [1, None, 9], "a row group of nulls doesn't spoil the file's bound"
    assert files.bounds["x"].upper.to_pylist() == [4, None, 9]
    assert files.bounds["x"].nulls.tolist() == [0, 0, 2]
    assert files.bounds["s"].upper.to_pylist() == [b"d", None, b"z"]
    assert snapshot.schema == pa.schema({"x": pa.int64(), "s": pa.string()})
    assert (snapshot.format, snapshot.version, snapshot.problems) == ("parquet", None, ())
    assert "use into" in snapshot.blockers[0]


def test_a_row_group_without_bounds_spoils_the_files(tmp_path):
    path = write(tmp_path, "a.parquet", pa.table({"x": [1, 2]}), write_statistics=False)
    assert ParquetTable(path).snapshot().files.bounds["x"].lower.to_pylist() == [None]


def test_a_single_file_and_a_uri_are_tables(tmp_path):
    path = write(tmp_path, "with space.parquet", pa.table({"x": [1, 2]}))
    for location in (path, f"file://{path.replace(' ', '%20')}", f"file://{tmp_path}/"):
        table = ParquetTable(location)
        files = table.snapshot().files
        assert files.paths.to_pylist() == [path]
        with table.open_file(path) as file:
            assert pq.ParquetFile(file).metadata.num_rows == 2


def test_footers_are_read_once(tmp_path, monkeypatch):
    path = write(tmp_path, "a.parquet", pa.table({"x": [1, 2]}))
    table = ParquetTable(str(tmp_path))
    assert table.footer(path).rows == 2
    table.snapshot()
    monkeypatch.setattr(table, "open_file", None)
    assert table.footer(path).rows == 2


def test_hive_partitions_with_odd_names(tmp_path):
    odd = ["a b", "x/y", "p%q", "é=+", "", "50%25", None]
    for number, value in enumerate(odd):
        text = "__HIVE_DEFAULT_PARTITION__" if value is None else "".join(
            char if char.isalnum() and char.isascii() else "".join(f"%{byte:02X}" for byte in char.encode())
            for char in value
        )  # fmt: skip
        write(tmp_path, f"re%67ion={text}/{number}.parquet", pa.table({"x": [number]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    number_of = snapshot.files.bounds["x"].lower.to_pylist()
    bounds = snapshot.files.partition_bounds["region"]
    expected = [None if odd[i] is None else odd[i].encode() for i in number_of]
    assert bounds.lower.to_pylist() == bounds.upper.to_pylist() == expected
    assert bounds.nulls.tolist() == [1 if odd[i] is None else 0 for i in number_of]
    assert snapshot.partitioning == ("region",)
    assert snapshot.schema.field("region").type == pa.string()
    assert "region=x/y" in snapshot.files.partitions
    assert len(set(snapshot.files.partition.tolist())) == len(odd)


def test_hive_types_hold_for_the_whole_table(tmp_path):
    folders = ["day=2026-01-01/n=7/_m=1", "day=2026-01-02/n=-3/_m=a", "day=__HIVE_DEFAULT_PARTITION__/n=07"]
    for folder in folders:
        write(tmp_path, f"{folder}/x.parquet", pa.table({"x": [1], "n": ["not seven"]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    kinds = {"x": pa.int64(), "n": pa.int64(), "day": pa.date32(), "_m": pa.string()}
    assert dict(zip(snapshot.schema.names, snapshot.schema.types, strict=True)) == kinds
    found = snapshot.files.partition_bounds
    assert found["n"].lower.to_pylist() == [7, -3, 7]
    assert found["day"].upper.to_pylist() == [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None]
    assert found["_m"].nulls.tolist() == [0, 0, UNKNOWN], "a file outside of the key's folders could hold anything"
    assert set(snapshot.physical) == set(snapshot.files.bounds) == {"x"}, "a folder's value hides the file's"


def test_schemas_are_merged(tmp_path):
    write(tmp_path, "a.parquet", pa.table({"x": pa.array([1], pa.int32()), "only_a": [1.5], "Case": [1]}))
    write(tmp_path, "b.parquet", pa.table({"x": pa.array([2**40], pa.int64()), "case": [2]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    assert snapshot.schema.field("x").type == pa.int64()
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, 2**40]
    assert snapshot.files.bounds["only_a"].nulls.tolist() == [0, 1], "a column that a file lacks is null in all rows"
    assert snapshot.files.bounds["case"].nulls.tolist() == [UNKNOWN, 0], "some readers take Case for case"
    assert snapshot.problems == ()


def test_types_that_do_not_merge_are_a_problem(tmp_path):
    a = write(tmp_path, "a.parquet", pa.table({"x": [1], "y": [1]}))
    b = write(tmp_path, "b.parquet", pa.table({"x": ["one"], "y": [2]}))
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    (problem,) = snapshot.problems
    assert all(part in problem for part in (a, b, "int64", "string", "'x'"))
    assert snapshot.schema.field("x").type == pa.int64()
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, None]
    assert snapshot.files.bounds["y"].lower.to_pylist() == [1, 2]


def test_a_corrupt_file_is_a_problem_and_never_skipped(tmp_path):
    write(tmp_path, "a.parquet", pa.table({"x": [1]}))
    whole_file = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole_file[:-20])
    (tmp_path / "c.parquet").write_bytes(b"")
    table = ParquetTable(str(tmp_path))
    snapshot = table.snapshot()
    assert [problem.split(":")[0] for problem in snapshot.problems] == [str(tmp_path / f"{n}.parquet") for n in "bc"]
    assert snapshot.files.rows.tolist() == [1, UNKNOWN, UNKNOWN]
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, None, None]
    assert snapshot.files.bounds["x"].nulls.tolist() == [0, UNKNOWN, UNKNOWN]
    with pytest.raises(TableError, match=r"b\.parquet"):
        table.footer(str(tmp_path / "b.parquet"))


def test_tables_that_are_not_there(tmp_path):
    write(tmp_path, "orders/a.parquet", pa.table({"x": [1]}))
    with pytest.raises(TableError, match="Did you mean 'orders'"):
        ParquetTable(str(tmp_path / "order")).snapshot()
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="no Parquet files"):
        ParquetTable(str(tmp_path / "empty")).snapshot()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.parquet").write_bytes(b"")
    with pytest.raises(TableError, match=r"can be read.*a\.parquet"):
        ParquetTable(str(tmp_path / "broken")).snapshot()
    with pytest.raises(TableError, match="doesn't know the storage nowhere://"):
        ParquetTable("nowhere://x/y")
    with pytest.raises(TableError, match="is no file of"):
        ParquetTable(str(tmp_path / "orders")).open_file(str(tmp_path / "orders2" / "a.parquet"))


def test_the_layout_that_the_files_agree_on(tmp_path):
    layout, other = Layout.parse("zorder(x, y)"), Layout.parse("hilbert(x, y)")
    columns = pa.table({"x": [1], "y": [2]})
    for name, metadata in (("a", layout.to_json()), ("b", layout.to_json()), ("c", None)):
        write(
            tmp_path,
            f"{name}.parquet",
            columns.replace_schema_metadata(metadata and {"zonal.layout": metadata}),
        )
    snapshot = ParquetTable(str(tmp_path)).snapshot()
    assert snapshot.layout == layout
    assert snapshot.files.layout_ids.to_pylist() == [layout.id, layout.id, None]
    write(tmp_path, "d.parquet", columns.replace_schema_metadata({"zonal.layout": other.to_json()}))
    assert ParquetTable(str(tmp_path)).snapshot().layout is None
    write(tmp_path, "d.parquet", columns.replace_schema_metadata({"zonal.layout": "{no json"}))
    assert ParquetTable(str(tmp_path)).snapshot().files.layout_ids[3].as_py() is None


def test_sizes_and_rows_are_those_of_the_files(tmp_path):
    for number in range(40):
        write(tmp_path, f"{number:02}.parquet", pa.table({"x": np.arange(number)}))
    files = ParquetTable(str(tmp_path)).snapshot().files
    assert files.rows.tolist() == list(range(40))
    assert files.sizes.tolist() == [(tmp_path / f"{number:02}.parquet").stat().st_size for number in range(40)]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("ns")], ids=str)
def test_dates_of_the_julian_calendar_have_no_bounds(kind, tmp_path):
    """Spark shifts dates before 1900 when it reads a file of Spark 2 or in legacy mode."""
    days = (
        [[-400_000, -30_000], [-30_000, 10], [0, 10]]
        if "ns" not in str(kind)
        else [[-30_000, -29_000], [-26_000, 1], [0, 10]]
    )
    unit = 1 if kind == pa.date32() else 86_400_000_000 * (1000 if "ns" in str(kind) else 1)
    for old in (False, True):
        told = {"org.apache.spark.legacyDateTime": ""} if old else {}
        values = (
            pa.array([day * unit for pair in days for day in pair])
            .cast(pa.int32() if unit == 1 else pa.int64())
            .cast(kind)
        )
        table = pa.table({"x": values}).replace_schema_metadata(told)
        path = tmp_path / f"{old}.parquet"
        pq.write_table(table, path, row_group_size=2, write_page_index=True, version="2.6")
        with pa.OSFile(str(path)) as file:
            footer = read_footer(file)
            groups = row_group_bounds(footer, Physical("x"), kind)
            assert groups.lower.is_null().to_pylist() == [old, old, False]
            assert page_bounds(file, footer, 0, Physical("x"), kind).bounds.upper.null_count == old
