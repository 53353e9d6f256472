"""What commits say they wrote: bytes of new data files, rows, runs, and whether they are the table's first."""

import pyarrow as pa
import pytest
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from support.cluster_tables import NEWEST, home
from support.delta_snapshots import read
from support.delta_tables import LogWriter, add, features, field, metadata, protocol, remove, vector
from zonal.tables.iceberg.operations import commit_of
from zonal.tables.registry import open_table

HEAD = [protocol(), metadata(field("x", "long"))]
VECTORS = [
    features("deletionVectors"),
    metadata(field("x", "long"), configuration={"delta.enableDeletionVectors": "true"}),
]


def info(operation, **metrics):
    return {"commitInfo": {"operation": operation, "operationMetrics": metrics}}


def written(table):
    return [commit.added_bytes for commit in read(table).commits.values()]


def test_delta_commits_wrote_the_files_that_they_add_whatever_metrics_say(tmp_path):
    log = LogWriter(tmp_path / "t")
    log.commit(*HEAD, info("WRITE", numOutputBytes="7", numOutputRows="3"), add("a"), add("b", size=20))
    log.commit(info("DELETE"), remove("b"))
    log.commit(info("RESTORE"), add("b", size=20))
    assert written(log) == [1020, 0, 0], "what is brought back was written before"
    commits = read(log).commits
    assert (commits[0].added_rows, commits[1].added_rows) == (3, None)
    assert [commit.is_first for commit in commits.values()] == [True, False, False]


def test_a_file_that_gets_a_deletion_vector_was_written_before(tmp_path):
    log = LogWriter(tmp_path / "t")
    log.commit(*VECTORS, info("WRITE"), add("a", stats={"numRecords": 5}))
    log.commit(info("DELETE"), remove("a"), add("a", stats={"numRecords": 5}, deletionVector=vector("v" * 20)))
    assert written(log) == [1000, 0]


def test_commits_before_a_checkpoint_tell_the_same(tmp_path):
    log = LogWriter(tmp_path / "t")
    log.commit(*HEAD, add("a")).commit(add("b", size=30)).checkpoint(*HEAD, add("a"), add("b", size=30))
    log.commit(add("c", size=4))
    assert written(log) == [1000, 30, 4]
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").write_text('{"add":{"path":"a"}}')
    assert written(log) == [None, 30, 4], "a damaged one tells nothing"


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"added-files-size": "70", "added-data-files": "1"}, 70),
        ({"added-files-size": "70", "added-delete-files": "1"}, 0),
        ({"added-files-size": "70", "added-delete-files": "1", "added-data-files": "2"}, None),
        ({"added-files-size": "much"}, None),
        ({}, 0),
    ],
)
def test_iceberg_snapshots_wrote_data_files(details, expected):
    summary = Summary(operation=Operation.OVERWRITE, **details)
    snapshot = Snapshot(snapshot_id=5, parent_snapshot_id=4, timestamp_ms=0, manifest_list="m", summary=summary)
    assert commit_of(snapshot).added_bytes == expected


@pytest.mark.parametrize(
    ("given", "details", "expected"),
    [
        ({"sequence_number": 1}, {}, True),
        ({"sequence_number": 7}, {"total-data-files": "2", "added-data-files": "2"}, False),
        ({"sequence_number": 0}, {"total-data-files": "2", "added-data-files": "2"}, True),
        ({"sequence_number": 0}, {"total-data-files": "9", "added-data-files": "2"}, False),
        ({"sequence_number": 0}, {}, False),
        ({"sequence_number": 1, "parent_snapshot_id": 3}, {}, False),
    ],
)
def test_an_iceberg_snapshot_without_a_parent_need_not_be_the_first(given, details, expected):
    summary = Summary(operation=Operation.APPEND, **details)
    snapshot = Snapshot(snapshot_id=5, timestamp_ms=0, manifest_list="m", summary=summary, **given)
    assert commit_of(snapshot).is_first is expected


@pytest.mark.parametrize("kind", NEWEST)
def test_a_run_is_named_by_its_commits(kind, tmp_path):
    table = home(kind, tmp_path).make([pa.table({"x": range(100)})])
    done = table.cluster(by="x")
    commits = open_table(table.name, **table.options).snapshot().commits
    assert [commit.run for commit in commits.values()] == ["", f"{done.run.id}-0"]
    last = commits[done.run.versions[-1]]
    assert (last.kind, last.added_bytes) == ("zonal", done.change.added_bytes)
