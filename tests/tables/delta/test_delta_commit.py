"""A commit to a Delta log replaces files, keeps every row, and appears whole or not at all."""

import os
from collections import Counter

import deltalake
import pyarrow as pa
import pytest

from support.delta_commits import actions, bodies, debris, first_two, theirs
from support.delta_rewrites import LAYOUT, data_file, inline_vector, named, prepare, rows_of
from support.delta_tables import features, field, metadata
from zonal.errors import CommitUnknownError, TableError
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Written

# --- one commit -------------------------------------------------------------------------------------------------------


def test_a_rewrite_replaces_files_and_keeps_every_row(plain):
    table, rewrite = prepare(plain, choose=first_two)
    assert table.commit(rewrite) == 3
    assert theirs(plain) == rows_of(plain) == list(range(300))
    snapshot = table.newest().snapshot()
    assert snapshot.version == 3
    assert Counter(snapshot.files.layout_ids.to_pylist()) == {LAYOUT.id: 2, None: 1}
    assert snapshot.layout == LAYOUT, "the table's property names the layout"
    assert debris(plain) == []


def test_the_commit_says_what_was_done(plain):
    table, rewrite = prepare(plain, choose=first_two)
    version = table.commit(rewrite)
    first, *_ = actions(plain, version)
    info = first["commitInfo"]
    assert info["operation"] == "OPTIMIZE"
    assert info["operationParameters"]["zOrderBy"] == '["x"]'
    assert info["operationParameters"]["predicate"] == info["operationParameters"]["clusterBy"] == "[]"
    assert info["operationParameters"]["zonal.run"] == "r1"
    assert info["readVersion"] == 2
    assert (info["isolationLevel"], info["isBlindAppend"]) == ("SnapshotIsolation", False)
    assert info["engineInfo"].startswith("zonal")
    assert all(isinstance(value, str) for value in info["operationMetrics"].values())
    assert info["operationMetrics"]["numRemovedFiles"] == info["operationMetrics"]["numAddedFiles"] == "2"
    assert deltalake.DeltaTable(plain).history(1)[0]["operation"] == "OPTIMIZE"
    adds, removes = bodies(plain, version, "add"), bodies(plain, version, "remove")
    assert {action["dataChange"] for action in adds + removes} == {False}
    assert all(action["extendedFileMetadata"] and action["size"] > 0 for action in removes)
    assert [action["tags"] for action in adds] == [{"zonal.layout": LAYOUT.id, "zonal.run": "r1"}] * 2
    assert all(action["path"].startswith(f"zonal-{LAYOUT.id}-r1/") for action in adds)
    assert "clusteringProvider" not in adds[0]


def test_the_layout_is_recorded_once_and_other_metadata_is_kept(plain):
    before = bodies(plain, 0, "metaData")[0]
    table, rewrite = prepare(plain)
    (after,) = bodies(plain, table.commit(rewrite), "metaData")
    kept = {name: value for name, value in before.items() if value is not None and name != "configuration"}
    assert {name: after[name] for name in kept} == kept
    assert after["configuration"] == {"zonal.layout": LAYOUT.to_json()}
    table, rewrite = prepare(plain, run="r2")
    assert bodies(plain, table.commit(rewrite), "metaData") == []
    other = Layout("hilbert", ("x", "s"))
    table, rewrite = prepare(plain, run="r3", layout=other)
    version = table.commit(rewrite)
    assert bodies(plain, version, "metaData")[0]["configuration"] == {"zonal.layout": other.to_json()}
    assert theirs(plain) == list(range(300))


def test_partition_values_are_those_of_the_replaced_files(tmp_path):
    values = ["a b/ü%", "x=y", None, "a b/ü%"]
    for number, value in enumerate(values):
        rows = pa.table({"x": [number, number + 10], "p": pa.array([value, value], pa.string())})
        deltalake.write_deltalake(tmp_path, rows, mode="append", partition_by=["p"])
    table, rewrite = prepare(tmp_path, halves=1)
    version = table.commit(rewrite)
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("x")
    assert found["p"].to_pylist() == values + values
    assert sorted(str(add["partitionValues"]["p"]) for add in bodies(tmp_path, version, "add")) == [
        "None",
        "a b/ü%",
        "x=y",
    ]


def test_paths_are_percent_encoded(tmp_path):
    where = tmp_path / "ta ble ü"
    deltalake.write_deltalake(where, pa.table({"x": [3, 1]}))
    table, rewrite = prepare(where, run="r ü%41")
    version = table.commit(rewrite)
    assert all("%20%C3%BC%2541/" in add["path"] for add in bodies(where, version, "add"))
    assert theirs(where) == rows_of(where) == [1, 3]


def test_files_without_rows_leave_no_files(log):
    head = (features("deletionVectors"), metadata(field("x", "long")))
    gone = data_file(log, "a", pa.table({"x": [1, 2]}), deletionVector=inline_vector([0, 1]))
    log.commit(*head, gone, data_file(log, "b", pa.table({"x": [3]})))
    table, rewrite = prepare(log, choose=named("/a"))
    assert rewrite.added == ()
    assert bodies(log, table.commit(rewrite), "add") == []
    assert rows_of(log) == [3]


def test_a_file_outside_of_the_table_is_refused(plain):
    table, rewrite = prepare(plain)
    (elsewhere,) = (Written("/tmp/f", 1, 1, 0, rewrite.added[0].columns),)  # noqa: S108
    broken = type(rewrite)(rewrite.base, rewrite.removed, (elsewhere,), rewrite.layout, rewrite.run)
    with pytest.raises(TableError, match="outside of"):
        table.commit(broken)
    assert table.newest().snapshot().version == 2


def test_an_interrupt_while_the_link_is_made_leaves_the_outcome_open(plain, monkeypatch):
    real = os.link

    def interrupted(source, target):
        real(source, target)
        raise KeyboardInterrupt

    table, rewrite = prepare(plain)
    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(CommitUnknownError, match="KeyboardInterrupt"):
        table.commit(rewrite)
    monkeypatch.undo()
    assert table.newest().snapshot().version == 3, "the commit was made, so its files must stay"
    assert theirs(plain) == list(range(300))
