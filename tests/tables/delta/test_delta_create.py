"""A new Delta table appears at once, or is refused with the column's name."""

from datetime import datetime, timezone
from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest

from support.delta_commits import create, theirs
from support.delta_rewrites import LAYOUT
from zonal.errors import ConflictError, TableError
from zonal.tables.delta.table import DeltaTable

UTC = timezone.utc


def test_a_new_table_appears_at_once(tmp_path):
    rows = pa.table(
        {
            "x": [3, 1, 2],
            "p": ["a", None, "a"],
            "t": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("ms", "Europe/Berlin")),
            "g": pa.array([{"y": [1, 2]}, None, {"y": None}], pa.struct({"y": pa.large_list(pa.int32())})),
            "m": pa.array([[("k", Decimal("1.5"))], None, []], pa.map_(pa.string(), pa.decimal128(5, 2))),
            "e": pa.array(["u", "v", "u"], pa.large_string()),
        }
    )
    destination, added = create(tmp_path / "new", rows, partitioning=["p"])
    assert not (tmp_path / "new" / "_delta_log").exists()
    assert destination.publish(added) == 0
    found = deltalake.DeltaTable(tmp_path / "new")
    assert found.protocol().min_writer_version == 2
    assert found.metadata().partition_columns == ["p"]
    read = found.to_pyarrow_table().sort_by("x")
    assert read.column_names == rows.column_names
    assert read["x"].to_pylist() == [1, 2, 3]
    assert read["p"].to_pylist() == [None, "a", "a"]
    assert read["g"].to_pylist() == [None, {"y": None}, {"y": [1, 2]}]
    assert read["t"].to_pylist()[0] == datetime(2024, 1, 1, tzinfo=UTC)
    snapshot = DeltaTable(str(tmp_path / "new")).snapshot()
    assert snapshot.layout == LAYOUT
    assert snapshot.files.bounds["x"].lower.to_pylist() == [2, 1] or snapshot.files.rows.tolist() == [1, 2]
    deltalake.write_deltalake(tmp_path / "new", read, mode="append")
    assert theirs(tmp_path / "new") == [1, 1, 2, 2, 3, 3]


def test_a_timestamp_without_a_zone_is_a_table_feature(tmp_path):
    rows = pa.table({"x": [1], "g": pa.array([{"n": datetime(2024, 1, 1)}], pa.struct({"n": pa.timestamp("us")}))})
    rows = rows.cast(pa.schema([field_.with_nullable(False) for field_ in rows.schema]))
    destination, added = create(tmp_path / "new", rows)
    destination.publish(added)
    found = deltalake.DeltaTable(tmp_path / "new")
    assert found.protocol().writer_features == ["timestampNtz"]
    assert found.to_pyarrow_table()["g"].to_pylist() == [{"n": datetime(2024, 1, 1)}]
    assert all(member.nullable for member in found.schema().fields)


def test_what_is_there_already_stays(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TableError, match="isn't empty"):
        create(tmp_path, pa.table({"x": [1]}))
    destination, added = create(tmp_path / "new", pa.table({"x": [1]}))
    deltalake.write_deltalake(tmp_path / "new", pa.table({"x": [7]}))
    with pytest.raises(ConflictError, match="meanwhile"):
        destination.publish(added)
    assert theirs(tmp_path / "new") == [7]


REFUSED = {
    "t": pa.timestamp("ns"),
    "u": pa.uint64(),
    "h": pa.time64("us"),
    "i": pa.duration("us"),
    "d": pa.decimal256(50, 2),
    "v": pa.null(),
    "g": pa.struct({"y": pa.uint64()}),
    "l": pa.list_(pa.time32("s")),
    "a b": pa.int64(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_delta_cannot_hold_is_refused_with_the_column(tmp_path, name):
    with pytest.raises(TableError, match=f"'{name}"):
        create(tmp_path / "new", pa.table({"x": [1], name: pa.nulls(1, REFUSED[name])}))
    assert not (tmp_path / "new").exists()


def test_names_that_differ_in_case_only_are_refused(tmp_path):
    with pytest.raises(TableError, match="'x' and 'X' apart"):
        create(tmp_path / "new", pa.table({"x": [1], "X": [2]}))


def test_partitions_that_delta_cannot_tell_apart_are_refused(tmp_path):
    with pytest.raises(TableError, match="'p' has the partition value ''"):
        create(tmp_path / "new", pa.table({"x": [1], "p": [""]}), partitioning=["p"])
    with pytest.raises(TableError, match="'p' of type binary can't partition"):
        create(tmp_path / "new", pa.table({"x": [1], "p": [b"a"]}), partitioning=["p"])
    with pytest.raises(TableError, match="needs another one"):
        create(tmp_path / "new", pa.table({"p": [1]}), partitioning=["p"])
