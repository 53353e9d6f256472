"""Position deletes that another writer adds to an Iceberg table during a run become those of the new files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException

from support.cluster_tables import Meanwhile, parts_of, telemetry, upgrade
from support.delta_vectors import assert_rows
from support.iceberg_positions import Positioned
from support.iceberg_rewriting import delete_equal, delete_vectors, local
from zonal.errors import TableError
from zonal.plan.rewrite import FIELD_ID
from zonal.rewriting import carry_over
from zonal.rewriting import in_place as rewriting
from zonal.tables.iceberg import commit as committing
from zonal.tables.iceberg.operations import commit_of

BEFORE = telemetry(240)
ASKED = {"by": ["x", "y"]}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(rewriting, "_FIRST_PAUSE", 0.001)


@pytest.fixture
def table(tmp_path):
    """Three files of 80 rows."""
    return Positioned(tmp_path).create(parts_of(BEFORE, 3))


@pytest.fixture
def partitioned(tmp_path):
    """Two partitions of two files of 60 rows each."""
    parts = [part.drop_columns(["p"]) for part in parts_of(BEFORE, 4)]
    return Positioned(tmp_path).create(parts, partitioning=["p"], values=[{"p": name} for name in "aabb"])


def without(rows, positions):
    return rows.take(pa.array(np.setdiff1d(np.arange(rows.num_rows), positions)))


def assert_ids(table, gone):
    """All ids are there once, but for these."""
    assert sorted(table.rows()["id"].to_pylist()) == sorted({*BEFORE["id"].to_pylist()} - {*gone})


def between(monkeypatch, act):
    """Let another writer act after the first deletes were carried over, and before they are committed."""

    def write(*given):
        written = real(*given)
        if acts:
            acts.pop()()
        return written

    acts, real = [act], carry_over.write_deletes
    monkeypatch.setattr(carry_over, "write_deletes", write)


# --- what is committed -----------------------------------------------------------------------------------------------


def test_the_commit_says_what_it_did(table):
    table.delete("0.parquet", [7])
    done = table.cluster(runner=Meanwhile(lambda: table.delete("1.parquet", [3, 4])), target_file_size=2000, **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 2)
    assert_rows(table, without(BEFORE, [7, 83, 84]))
    snapshot = table.table.current_snapshot()
    (base, data) = (table.table.metadata.snapshots[-3].sequence_number, {file.file_path for file in table.live()})
    deletes = table.delete_files()
    assert {entry.sequence_number for entry in deletes} == {snapshot.sequence_number}
    assert {entry.data_file.file_path for entry in deletes} == {f"file://{path}" for path in table.stored_deletes()}
    for entry in deletes:
        file, stored = entry.data_file, pq.ParquetFile(local(entry.data_file.file_path))
        rows = stored.read()
        (target,) = set(rows["file_path"].to_pylist())
        assert target in data
        assert file.lower_bounds[2147483546] == file.upper_bounds[2147483546] == target.encode()
        assert rows["pos"].to_pylist() == sorted(rows["pos"].to_pylist())
        assert [field.metadata[FIELD_ID] for field in stored.schema_arrow] == [b"2147483546", b"2147483545"]
        assert not any(field.nullable for field in stored.schema_arrow)
        assert stored.metadata.metadata[b"delete-type"] == b"position"
        assert file.record_count == rows.num_rows
        assert file.file_size_in_bytes == Path(local(file.file_path)).stat().st_size
    summary = snapshot.summary.additional_properties
    assert snapshot.summary.operation.value == "replace"
    assert summary["added-delete-files"] == summary["added-position-delete-files"] == str(len(deletes))
    assert (summary["added-position-deletes"], summary["removed-position-deletes"]) == ("2", "3")
    assert summary["removed-delete-files"] == "2", "those of the replaced files, before and during the run"
    sizes = [file.file_size_in_bytes for file in table.live()]
    assert int(summary["added-files-size"]) == sum(sizes) + sum(e.data_file.file_size_in_bytes for e in deletes)
    assert commit_of(snapshot).added_bytes == sum(sizes)
    added = [m for m in snapshot.manifests(table.table.io) if m.added_snapshot_id == snapshot.snapshot_id]
    found = [e for m in added if not m.content for e in m.fetch_manifest_entry(table.table.io)]
    assert {entry.sequence_number for entry in found} == {base}, "new data files keep the number of what was read"


def test_totals_follow_from_those_of_the_head(table):
    table.delete("0.parquet", [7], totals=True)
    path = table.paths["1.parquet"]
    other = Meanwhile(lambda: table.delete("1.parquet", [3, 4], totals=True, paths=(path, path)))
    done = table.cluster(runner=other, where="id >= 80", **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 2)
    summary = table.table.current_snapshot().summary.additional_properties
    data, deletes = table.live(), [entry.data_file for entry in table.delete_files()]
    assert {name: int(value) for name, value in summary.items() if name.startswith("total-")} == {
        "total-data-files": len(data),
        "total-delete-files": len(deletes),
        "total-records": 240,
        "total-position-deletes": 3,
        "total-equality-deletes": 0,
        "total-files-size": sum(file.file_size_in_bytes for file in (*data, *deletes)),
    }
    assert sum(file.record_count for file in deletes) == 3


def test_rows_that_were_deleted_before_are_not_deleted_twice(table):
    table.delete("1.parquet", [3, 9])
    done = table.cluster(runner=Meanwhile(lambda: table.delete_all({"1.parquet": [3, 5, 9]})), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes, done.change.rows) == (0, 1, 237)
    assert_rows(table, without(BEFORE, [83, 85, 89]))


def test_deletes_of_a_partition_that_name_other_files_stay(partitioned):
    """One delete file names a file that is rewritten and one that isn't."""
    later = parts_of(BEFORE, 4)[0].slice(0, 20).drop_columns(["p"]).append_column("p", pa.array(["a"] * 20))
    later = later.set_column(0, "id", pa.array(range(1000, 1020)))

    def other():
        partitioned.append(later)
        partitioned.paths["later"] = partitioned.newest_path()
        partitioned.delete_all({"0.parquet": [1], "1.parquet": [2, 3], "later": [4]})

    done = partitioned.cluster(runner=Meanwhile(other), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 3)
    ids = sorted(partitioned.rows()["id"].to_pylist())
    assert ids == sorted([*({*range(240)} - {1, 62, 63}), *({*range(1000, 1020)} - {1004})])
    assert not partitioned.strays()


def test_deletes_of_each_partition_are_in_it(partitioned):
    def other():
        partitioned.delete_all({"0.parquet": [1], "1.parquet": [2]})
        partitioned.delete_all({"3.parquet": [5]})

    done = partitioned.cluster(runner=Meanwhile(other), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 3)
    assert_ids(partitioned, [1, 62, 185])
    places = {file.file_path: file.partition[0] for file in partitioned.live()}
    for entry in partitioned.delete_files():
        (target,) = set(pq.read_table(local(entry.data_file.file_path))["file_path"].to_pylist())
        assert entry.data_file.partition[0] == places[target]


# --- between carrying and commit -------------------------------------------------------------------------------------


def test_deletes_that_another_writer_merges_are_carried_once(table, monkeypatch):
    def merged():
        table.drop_deletes()
        table.delete_all({"1.parquet": [3], "2.parquet": [0]})

    def other():
        table.delete("1.parquet", [3])
        table.delete("2.parquet", [0])

    between(monkeypatch, merged)
    done = table.cluster(runner=Meanwhile(other), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 2)
    assert_rows(table, without(BEFORE, [83, 160]))
    assert not table.strays()


def test_rows_that_are_back_are_not_deleted(table, monkeypatch):
    between(monkeypatch, table.drop_deletes)
    done = table.cluster(runner=Meanwhile(lambda: table.delete("1.parquet", [3])), **ASKED)
    assert done.run.carried_deletes == 0
    assert_rows(table, BEFORE)
    assert not table.stored_deletes()


def test_a_table_that_takes_no_positions_any_more_gets_none(table, monkeypatch):
    between(monkeypatch, lambda: upgrade(table.catalog, "db.t"))
    done = table.cluster(runner=Meanwhile(lambda: table.delete("1.parquet", [3])), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (1, 0)
    assert_rows(table, without(BEFORE, [83]))
    assert not table.stored_deletes()


# --- what isn't carried over -----------------------------------------------------------------------------------------


def redone(table, other, gone):
    runner = Meanwhile(other)
    done = table.cluster(runner=runner, **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes, runner.runs) == (1, 0, 2)
    assert_ids(table, gone)
    assert not table.strays()


def test_deletion_vectors_are_a_conflict(tmp_path):
    table = Positioned(tmp_path).create(parts_of(BEFORE, 3))
    upgrade(table.catalog, "db.t")
    redone(table, lambda: delete_vectors(table.catalog, table.folder, {table.paths["1.parquet"]: [0]}), [80])


def test_a_file_that_was_removed_is_a_conflict(table):
    def other():
        table.delete("0.parquet", [0])
        table.remove("1.parquet")

    redone(table, other, [0, *range(80, 160)])


def equal(table, *ids, **place):
    kind = pa.schema([pa.field("id", pa.int64(), metadata={FIELD_ID: "1"})])
    delete_equal(table.catalog, table.root / "data", pa.table([pa.array(ids, pa.int64())], schema=kind), [1], **place)


def test_equality_deletes_of_the_same_files_are_a_conflict(table):
    """With positions; by themselves they aren't, for they apply to new files as well."""

    def other():
        table.delete("1.parquet", [0])
        equal(table, 7)

    done = table.cluster(runner=Meanwhile(other), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (1, 0)
    assert_ids(table, [7, 80])


def test_equality_deletes_of_other_partitions_still_apply(partitioned):
    def other():
        partitioned.delete_all({"0.parquet": [1]})
        place = next(file for file in partitioned.live() if file.partition[0] == "b")
        equal(partitioned, 200, 1, partition=place.partition, spec_id=place.spec_id)

    done = partitioned.cluster(runner=Meanwhile(other), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 1)
    partitioned.cluster(full=True, **ASKED)  # PyIceberg reads no equality deletes
    assert_ids(partitioned, [1, 200])
    assert not partitioned.delete_files()


# --- answers ---------------------------------------------------------------------------------------------------------


def failing(monkeypatch, *, after):
    """Let the catalog's answer to commits with carried deletes be that they failed, once."""

    def commit(table, requirements, updates):
        if told:
            return real(table, requirements, updates)
        if after:
            real(table, requirements, updates)
        told.append(after)
        raise CommitFailedException("on purpose")

    told, real = [], committing.commit_updates
    monkeypatch.setattr(committing, "commit_updates", commit)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_commit_whose_answer_is_lost_happens_once(table, monkeypatch, after):
    failing(monkeypatch, after=after)
    done = table.cluster(runner=Meanwhile(lambda: table.delete("1.parquet", [3])), **ASKED)
    assert (done.run.conflicts, done.run.carried_deletes, len(done.run.versions)) == (0, 1, 1)
    assert_rows(table, without(BEFORE, [83]))
    assert len(table.delete_files()) == len(table.stored_deletes()) == 1
    assert not table.strays()


def test_a_failed_commit_leaves_no_deletes(table, monkeypatch):
    def refused(*_):
        raise TableError("no")

    monkeypatch.setattr(committing, "_settled", refused)
    failing(monkeypatch, after=False)
    with pytest.raises(TableError, match="no"):
        table.cluster(runner=Meanwhile(lambda: table.delete("1.parquet", [3])), **ASKED)
    assert not table.stored_deletes()
    assert not table.run_folders()
    assert_rows(table, without(BEFORE, [83]))
