"""Snapshots of Delta tables are what deltalake reads, and reading changes nothing."""

import io
import json

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.delta_snapshots import HEAD, names, of, read
from support.delta_tables import LogWriter, add, remove, synthetic_table, vector
from zonal.snapshot import UNKNOWN

# --- tables that deltalake writes -------------------------------------------------------------------------------------


def judge(where, **options):
    """Compare files, rows, sizes and whole-number bounds with deltalake's own reading of the log."""
    snapshot = read(where, **options)
    theirs = pa.table(deltalake.DeltaTable(str(where), **options).get_add_actions(flatten=True))
    mine = {path: row for row, path in enumerate(snapshot.files.paths.to_pylist())}
    full = [f"{where}/{path}".replace("%25", "%") for path in theirs["path"].to_pylist()]
    assert sorted(mine) == sorted(full), "the same files are live"
    order = [mine[path] for path in full]
    assert snapshot.files.rows[order].tolist() == theirs["num_records"].to_pylist(), "the same numbers of rows"
    assert snapshot.files.sizes[order].tolist() == theirs["size_bytes"].to_pylist(), "the same sizes"
    for name, bounds in snapshot.files.bounds.items():
        if f"min.{name}" in theirs.column_names and pa.types.is_integer(theirs[f"min.{name}"].type):
            assert bounds.lower.take(order).to_pylist() == theirs[f"min.{name}"].to_pylist(), name
            assert bounds.upper.take(order).to_pylist() == theirs[f"max.{name}"].to_pylist(), name
        if f"null_count.{name}" in theirs.column_names:
            counts = [UNKNOWN if n is None else n for n in theirs[f"null_count.{name}"].to_pylist()]
            assert bounds.nulls[order].tolist() == counts, name
    return snapshot


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_a_commit_added_is_known_where_its_writer_tells_no_metrics(checkpoint, tmp_path):
    rows = pa.table({"x": [1, 2, 3]})
    for _ in range(3):
        deltalake.write_deltalake(tmp_path, rows, mode="append")
    sizes = pa.table(deltalake.DeltaTable(tmp_path).get_add_actions())["size_bytes"].to_pylist()
    if checkpoint:
        deltalake.DeltaTable(tmp_path).create_checkpoint()
    assert sorted(commit.added_bytes for commit in read(tmp_path).commits.values()) == sorted(sizes)


def test_a_file_that_gets_a_deletion_vector_did_not_arrive_again(tmp_path):
    log = LogWriter(tmp_path).commit(*HEAD, add("a", size=70), add("b", size=5))
    log.commit(remove("a"), add("a", size=70, deletionVector=vector("v")), add("c", size=9))
    assert [commit.added_bytes for commit in read(tmp_path).commits.values()] == [75, 9]


def test_a_life_of_appends_deletes_and_compactions_is_read_as_deltalake_reads_it(tmp_path):
    rows = pa.table({"x": [1, 2, None], "s": ["a", "b", None], "g": pa.array([{"y": 1}, None, {"y": 3}])})
    for _ in range(3):
        deltalake.write_deltalake(tmp_path, rows, mode="append")
    snapshot = judge(tmp_path)
    assert snapshot.version == 2
    assert sorted(snapshot.files.added_by.tolist()) == [0, 1, 2]
    assert snapshot.time == snapshot.commits[2].time
    assert snapshot.commits[0].operation == "WRITE"

    table = deltalake.DeltaTable(tmp_path)
    table.delete("x = 2")
    judge(tmp_path)
    deltalake.write_deltalake(tmp_path, rows, mode="append")
    table.update_incremental()
    table.optimize.compact()
    judge(tmp_path)
    table.create_checkpoint()
    snapshot = judge(tmp_path)
    assert snapshot.files.added_by.tolist() == [5], "the commits before the checkpoint are still there"
    deltalake.write_deltalake(tmp_path, rows, mode="append")
    assert judge(tmp_path).files.added_by.tolist() == [5, 6]
    wider = rows.append_column("z", pa.array([1, 2, 3]))
    deltalake.write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")
    snapshot = judge(tmp_path)
    assert of(snapshot, "z", 0) == (None, None, UNKNOWN), "the column is younger than the file"
    deltalake.write_deltalake(tmp_path, wider, mode="overwrite")
    judge(tmp_path)
    for version in range(9):
        judge(tmp_path, version=version)


def test_a_checkpoint_alone_is_a_table(tmp_path):
    deltalake.write_deltalake(tmp_path, pa.table({"x": [1, 2]}))
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    snapshot = read(tmp_path)
    assert of(snapshot, "x") == (1, 2, 0)
    assert snapshot.files.added_by.tolist() == [UNKNOWN]
    assert snapshot.time is not None
    assert snapshot.commits == {}


def test_column_mapping_of_deltalake_is_told_by_logical_names(tmp_path):
    rows = pa.table({"x": [1, 2], "part": ["a", "a"]})
    mapped = {"delta.columnMapping.mode": "name"}
    deltalake.write_deltalake(tmp_path, rows, configuration=mapped, partition_by=["part"])
    snapshot = read(tmp_path)
    assert of(snapshot, "x") == (1, 2, 0)
    assert snapshot.files.partition_bounds["part"].lower.to_pylist() == [b"a"]
    assert snapshot.physical["x"].path.startswith("col-")
    assert snapshot.physical["x"].field_id is None


# --- storage ----------------------------------------------------------------------------------------------------------


def test_thousands_of_files_are_read_alike_from_a_checkpoint_and_from_commits(tmp_path):
    one = read(synthetic_table(tmp_path / "checkpoint", 3_000))
    other = read(synthetic_table(tmp_path / "commits", 3_000, checkpoint=False, commits=10))
    assert len(one.files) == len(other.files) == 3_000
    assert other.files.added_by.max() == 9
    assert [path.rpartition("/")[2] for path in one.files.paths.to_pylist()] == [
        path.rpartition("/")[2] for path in other.files.paths.to_pylist()
    ]
    for name in one.files.bounds:
        assert one.files.bounds[name].lower.equals(other.files.bounds[name].lower), name


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.integers(0, 12), max_size=2))
def test_checkpoints_change_nothing(tmp_path_factory, steps, checkpoints):
    """Adding and removing in any order gives the same files with and without checkpoints on the way."""
    log = LogWriter(tmp_path_factory.mktemp("table")).commit(*HEAD)
    live = set()
    for number, name in enumerate(steps):
        log.commit(remove(name) if name in live else add(name))
        live ^= {name}
        if number in checkpoints:
            log.checkpoint(*HEAD, *map(add, sorted(live)))
    assert names(read(log)) == sorted(live)


def test_nothing_is_written(log):
    log.commit(*HEAD, add("a"))
    before = sorted(log.path.rglob("*"))
    read(log)
    assert sorted(log.path.rglob("*")) == before
    assert json.loads(io.StringIO((log.log / f"{0:020d}.json").read_text()).readline())
