import errno
import json
import os
import threading
import time
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.delta_rewrites import (
    LAYOUT,
    bitmap,
    data_file,
    inline_vector,
    named,
    prepare,
    read_rows,
    rows_of,
    stored_vector,
    write_rows,
)
from support.delta_tables import ADD, CHECKPOINT, LogWriter, features, field, metadata, protocol, remove, struct
from zonal.errors import CommitUnknownError, ConflictError, TableError
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import ColumnMetrics, Written
from zonal.tables.delta import commit as deltacommit
from zonal.tables.delta.actions import lower_bound, upper_bound
from zonal.tables.delta.commit import put_if_absent
from zonal.tables.delta.create import DeltaDestination
from zonal.tables.delta.partition_values import partition_text, partition_value
from zonal.tables.delta.table import DeltaTable

UTC = timezone.utc


@pytest.fixture
def log(tmp_path):
    return LogWriter(tmp_path / "table")


@pytest.fixture
def plain(tmp_path):
    """Three files of a hundred rows each, written by deltalake."""
    for start in (0, 100, 200):
        rows = pa.table({"x": range(start, start + 100), "s": [f"s{i}" for i in range(start, start + 100)]})
        deltalake.write_deltalake(tmp_path, rows, mode="append")
    return tmp_path


def first_two(snapshot):
    """The files with the rows below 200."""
    return np.flatnonzero(pc.less(snapshot.files.bounds["x"].lower, 200).to_numpy(zero_copy_only=False))


def theirs(where, column="x"):
    """The same rows as another reader sees them."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(where)))
    return sorted(pa.table(query.execute(f'SELECT "{column}" FROM t').read_all())[column].to_pylist())


def actions(where, version):
    lines = (Path(str(where)) / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def bodies(where, version, name):
    return [action[name] for action in actions(where, version) if name in action]


def debris(where):
    return [path.name for path in (Path(str(where)) / "_delta_log").iterdir() if path.name.startswith(".")]


# --- one commit -------------------------------------------------------------------------------------------------------


def test_a_rewrite_replaces_files_and_keeps_every_row(plain):
    table, rewrite = prepare(plain, choose=first_two)
    assert table.commit(rewrite) == 3
    assert theirs(plain) == rows_of(plain) == list(range(300))
    snapshot = table.newest().snapshot()
    assert snapshot.version == 3
    assert sorted(snapshot.files.layout_ids.to_pylist(), key=str) == [LAYOUT.id, LAYOUT.id, None]
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
    assert [action["tags"] for action in adds] == [{"zonal.layouts.layout": LAYOUT.id, "zonal.run": "r1"}] * 2
    assert all(action["path"].startswith(f"zonal-{LAYOUT.id}-r1/") for action in adds)
    assert "clusteringProvider" not in adds[0]


def test_the_layout_is_recorded_once_and_other_metadata_is_kept(plain):
    before = bodies(plain, 0, "metaData")[0]
    table, rewrite = prepare(plain)
    (after,) = bodies(plain, table.commit(rewrite), "metaData")
    kept = {name: value for name, value in before.items() if value is not None and name != "configuration"}
    assert {name: after[name] for name in kept} == kept
    assert after["configuration"] == {"zonal.layouts.layout": LAYOUT.to_json()}
    table, rewrite = prepare(plain, run="r2")
    assert bodies(plain, table.commit(rewrite), "metaData") == []
    other = Layout("hilbert", ("x", "s"))
    table, rewrite = prepare(plain, run="r3", layout=other)
    version = table.commit(rewrite)
    assert bodies(plain, version, "metaData")[0]["configuration"] == {"zonal.layouts.layout": other.to_json()}
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


# --- other writers ----------------------------------------------------------------------------------------------------


def append(where):
    deltalake.write_deltalake(where, pa.table({"x": [300], "s": ["new"]}), mode="append")


def compact(where):
    deltalake.DeltaTable(where).optimize.compact()


def delete(condition):
    return lambda where: deltalake.DeltaTable(where).delete(condition)


def update(where):
    deltalake.DeltaTable(where).update(predicate="x = 5", updates={"s": "'u'"})


def overwrite(where):
    deltalake.write_deltalake(where, pa.table({"x": [1], "s": ["one"]}), mode="overwrite")


def rewrite_everything(where):
    table, rewrite = prepare(where, run="other")
    table.commit(rewrite)


def checkpoint(where):
    append(where)
    deltalake.DeltaTable(where).create_checkpoint()


SURVIVES = {
    "nothing": lambda _: None,
    "append": append,
    "two appends": lambda where: (append(where), append(where)),
    "append and checkpoint": checkpoint,
    "delete in another file": delete("x = 205"),
    "delete of another file": delete("x >= 200"),
}


@pytest.mark.parametrize("case", SURVIVES)
def test_what_another_writer_did_elsewhere_survives(plain, case):
    table, rewrite = prepare(plain, choose=first_two)
    SURVIVES[case](plain)
    expected = theirs(plain)
    before = deltalake.DeltaTable(plain).version()
    assert table.commit(rewrite) == before + 1
    assert theirs(plain) == rows_of(plain) == expected


CONFLICTS = {
    "delete in a rewritten file": (delete("x = 5"), 1),
    "delete of a rewritten file": (delete("x < 100"), 1),
    "delete, then append": (lambda where: (delete("x = 5")(where), append(where)), 1),
    "delete, then checkpoint": (lambda where: (delete("x = 5")(where), checkpoint(where)), 1),
    "update": (update, 1),
    "overwrite": (overwrite, 2),
    "compaction": (compact, 2),
    "another rewrite": (rewrite_everything, 2),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_a_change_of_a_rewritten_file_is_a_conflict_that_names_it(plain, case):
    act, count = CONFLICTS[case]
    table, rewrite = prepare(plain, choose=first_two)
    act(plain)
    expected, version = theirs(plain), deltalake.DeltaTable(plain).version()
    with pytest.raises(ConflictError, match="removed or changed") as caught:
        table.commit(rewrite)
    now = set(table.newest().snapshot().files.paths.to_pylist())
    removed = set(rewrite.base.files.paths.take(pa.array(rewrite.removed)).to_pylist())
    assert caught.value.paths == removed - now
    assert len(caught.value.paths) == count
    assert theirs(plain) == expected
    assert deltalake.DeltaTable(plain).version() == version
    assert debris(plain) == []


def add_column(where):
    deltalake.DeltaTable(where).alter.add_columns([deltalake.Field("z", deltalake.schema.PrimitiveType("long"))])


def set_property(where):
    deltalake.DeltaTable(where).alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "3"})


def upgrade(where):
    deltalake.DeltaTable(where).alter.add_feature(
        deltalake.TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True
    )


@pytest.mark.parametrize("act", [add_column, set_property, upgrade])
def test_another_schema_property_or_protocol_is_a_conflict_of_everything(plain, act):
    table, rewrite = prepare(plain, choose=first_two)
    act(plain)
    with pytest.raises(ConflictError, match="changed since version 2") as caught:
        table.commit(rewrite)
    assert caught.value.paths == frozenset()


def test_a_layout_that_another_run_recorded_is_no_conflict(plain):
    table, rewrite = prepare(plain, choose=first_two)
    other, elsewhere = prepare(
        plain, run="other", layout=Layout("linear", ("s",)), choose=lambda s: np.setdiff1d([0, 1, 2], first_two(s))
    )
    other.commit(elsewhere)
    table.commit(rewrite)
    assert theirs(plain) == list(range(300))
    assert table.newest().snapshot().layout == LAYOUT


def test_a_table_that_was_made_anew_is_a_conflict(plain):
    table, rewrite = prepare(plain)
    for file in (plain / "_delta_log").iterdir():
        file.unlink()
    for _ in range(4):
        append(plain)
    with pytest.raises(ConflictError):
        table.commit(rewrite)
    (plain / "_delta_log" / f"{3:020d}.json").unlink()
    (plain / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(ConflictError, match="replaced by another table"):
        table.commit(rewrite)


def dropped_and_made_anew(where, commits, *, rows=range(5000, 5010)):
    """Another table in the same place; the old one's data files stay, as where a drop removes the log alone."""
    for file in (where / "_delta_log").iterdir():
        file.unlink()
    for start in range(commits):
        deltalake.write_deltalake(where, pa.table({"x": rows, "s": [f"n{start}"] * len(rows)}), mode="append")


@pytest.mark.parametrize("commits", [4, 3, 7])
@pytest.mark.parametrize("when", ["between two attempts", "right before the commit"])
def test_a_table_that_is_made_anew_during_the_commit_gets_no_rows_back(plain, monkeypatch, when, commits):
    table, rewrite = prepare(plain)
    name = "put_if_absent" if when == "between two attempts" else "actions"
    real, calls = getattr(deltacommit, name), []

    def late(*given, **named):
        if not calls:
            calls.append(given)
            dropped_and_made_anew(plain, commits)
            return False if name == "put_if_absent" else real(*given, **named)
        return real(*given, **named)

    monkeypatch.setattr(deltacommit, name, late)
    with pytest.raises(ConflictError, match="replaced by another table"):
        table.commit(rewrite)
    assert theirs(plain) == sorted([*range(5000, 5010)] * commits)


def test_a_mounted_file_system_that_numbers_files_anew_is_no_other_table(plain, monkeypatch):
    table, rewrite = prepare(plain)
    real = os.stat

    def renumbered(*given, **named):
        found = real(*given, **named)
        return os.stat_result((*found[:1], found.st_ino + 1, *found[2:10]), {"st_mtime_ns": found.st_mtime_ns})

    monkeypatch.setattr("zonal.tables.delta.listing.os.stat", renumbered)
    table.commit(rewrite)
    monkeypatch.undo()
    assert theirs(plain) == list(range(300))


@pytest.fixture
def vectors(log):
    """Two files, the first with a deletion vector."""
    head = (features("deletionVectors"), metadata(field("x", "long")))
    with_vector = data_file(log, "a", pa.table({"x": range(10)}), deletionVector=stored_vector(log, [7]))
    log.commit(*head, with_vector, data_file(log, "b", pa.table({"x": range(10, 20)})))
    return log


def replaced_vector(log, name, old, new):
    """A commit of another writer that gives a file another deletion vector."""
    add = json.loads(json.dumps(next(a for a in bodies(log, 0, "add") if a["path"] == name)))
    add.pop("deletionVector", None)
    more = {} if old is None else {"deletionVector": old}
    log.commit(remove(name, **more), {"add": add | {"deletionVector": new}})


def test_a_removed_file_keeps_its_deletion_vector_in_the_log(vectors):
    (old,) = (add["deletionVector"] for add in bodies(vectors, 0, "add") if add["path"] == "a")
    table, rewrite = prepare(vectors)
    version = table.commit(rewrite)
    found = {action["path"]: action.get("deletionVector") for action in bodies(vectors, version, "remove")}
    assert found == {"a": old, "b": None}
    expected = [x for x in range(20) if x != 7]
    assert theirs(vectors) == rows_of(vectors) == expected, "the deleted row stays deleted, no other is"
    assert bodies(vectors, version, "commitInfo")[0]["operationMetrics"]["numDeletionVectorsRemoved"] == "1"


def test_a_deletion_vector_that_grew_is_a_conflict(vectors):
    table, rewrite = prepare(vectors)
    (old,) = (add["deletionVector"] for add in bodies(vectors, 0, "add") if add["path"] == "a")
    replaced_vector(vectors, "a", old, stored_vector(vectors, [7, 8]))
    with pytest.raises(ConflictError) as caught:
        table.commit(rewrite)
    assert caught.value.paths == {f"{vectors}/a"}
    assert theirs(vectors) == rows_of(vectors) == [x for x in range(20) if x not in (7, 8)]


def test_a_new_deletion_vector_on_a_rewritten_file_is_a_conflict_and_elsewhere_is_none(vectors):
    first, rewrite_a = prepare(vectors, choose=named("/a"))
    second, rewrite_b = prepare(vectors, choose=named("/b"), run="r2")
    replaced_vector(vectors, "b", None, inline_vector([0]))
    with pytest.raises(ConflictError) as caught:
        second.commit(rewrite_b)
    assert caught.value.paths == {f"{vectors}/b"}
    first.commit(rewrite_a)
    assert theirs(vectors) == rows_of(vectors) == [x for x in range(20) if x not in (7, 10)]


def append_until_it_succeeds(where, rows):
    """Append as a job that retries does: the run that records a layout changes the table's metadata."""
    try:
        deltalake.write_deltalake(where, rows, mode="append")
    except deltalake.exceptions.CommitFailedError as error:
        if "Metadata changed" not in str(error):
            raise
        append_until_it_succeeds(where, rows)


@pytest.mark.parametrize("recorded", [True, False])
def test_rewriters_and_appenders_at_once_lose_nothing(tmp_path, recorded):
    for number in range(3):
        deltalake.write_deltalake(tmp_path, pa.table({"x": range(number * 100, number * 100 + 100)}), mode="append")
    if recorded:
        table, rewrite = prepare(tmp_path, run="first", halves=3)
        table.commit(rewrite)
    start = deltalake.DeltaTable(tmp_path).version()
    prepared = [prepare(tmp_path, run=f"r{number}", choose=lambda _, number=number: [number]) for number in range(3)]
    write = partial(deltalake.write_deltalake, mode="append") if recorded else append_until_it_succeeds
    ready, failures = threading.Barrier(7), []

    def attempt(act):
        ready.wait()
        try:
            act()
        except Exception as error:
            failures.append(error)

    def append_some(number):
        for step in range(3):
            write(tmp_path, pa.table({"x": [1000 + number * 10 + step]}))

    work = [partial(table.commit, rewrite) for table, rewrite in prepared]
    work += [partial(append_some, number) for number in range(4)]
    threads = [threading.Thread(target=attempt, args=(act,)) for act in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    expected = [*range(300), *sorted(1000 + n * 10 + s for n in range(4) for s in range(3))]
    assert theirs(tmp_path) == rows_of(tmp_path) == expected
    assert deltalake.DeltaTable(tmp_path).version() == start + 3 + 12
    assert debris(tmp_path) == []


def test_of_two_rewrites_of_the_same_files_one_wins(plain):
    results = []

    def commit(table, rewrite):
        try:
            results.append(table.commit(rewrite))
        except ConflictError as error:
            results.append(error)

    prepared = [prepare(plain, run=f"r{number}") for number in range(2)]
    threads = [threading.Thread(target=commit, args=one) for one in prepared]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(result).__name__ for result in results) == ["ConflictError", "int"]
    assert theirs(plain) == list(range(300))


def test_a_lost_race_is_checked_again(plain, monkeypatch):
    """The other writer commits between our look at the log and our commit."""
    for act, expected in ((append, "survives"), (delete("x = 5"), "conflict")):
        table, rewrite = prepare(plain, choose=first_two, run=expected)
        real, calls = deltacommit.put_if_absent, []

        def late(path, text, *, sending, act=act, real=real, calls=calls):
            if not calls:
                act(plain)
            calls.append(path)
            return real(path, text, sending=sending)

        monkeypatch.setattr(deltacommit, "put_if_absent", late)
        if expected == "survives":
            version = table.commit(rewrite)
            assert [path[-6:-5] for path in calls] == [str(version - 1), str(version)]
        else:
            with pytest.raises(ConflictError):
                table.commit(rewrite)
        monkeypatch.undo()
    assert theirs(plain) == [x for x in range(301) if x != 5]


def test_endless_races_end(plain, monkeypatch):
    table, rewrite = prepare(plain)
    monkeypatch.setattr(deltacommit, "put_if_absent", lambda *_, **__: False)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(TableError, match="20 times in a row"):
        table.commit(rewrite)


# --- put if absent ----------------------------------------------------------------------------------------------------


def test_of_many_that_put_one_file_one_succeeds(tmp_path):
    path, won = str(tmp_path / "00.json"), []
    ready = threading.Barrier(8)

    def put(number):
        ready.wait()
        if put_if_absent(path, f"{number}\n" * 1000):
            won.append(number)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert Path(path).read_text() == f"{won[0]}\n" * 1000
    assert os.listdir(tmp_path) == ["00.json"]


def test_a_link_that_was_made_although_an_error_came_back_counts(tmp_path, monkeypatch):
    real = os.link

    def repeated(source, target):
        real(source, target)
        raise FileExistsError(errno.EEXIST, "a network file system asked twice")

    monkeypatch.setattr(os, "link", repeated)
    assert put_if_absent(str(tmp_path / "a"), "text")
    assert (tmp_path / "a").read_text() == "text"


@pytest.mark.parametrize(("code", "error"), [(errno.EPERM, TableError), (errno.EIO, CommitUnknownError)])
def test_an_error_of_the_link_says_whether_the_outcome_is_known(tmp_path, monkeypatch, code, error):
    def refuse(*_):
        raise OSError(code, "no")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(error) as caught:
        put_if_absent(str(tmp_path / "a"), "text")
    assert type(caught.value) is error
    assert os.listdir(tmp_path) == []


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


# --- features ---------------------------------------------------------------------------------------------------------

ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_version",
}


def domain(name, configuration, *, removed=False):
    return {"domainMetadata": {"domain": name, "configuration": json.dumps(configuration), "removed": removed}}


def tracked_table(log, configuration):
    head = (
        protocol(1, 7, writer_features=["rowTracking", "domainMetadata"]),
        metadata(field("x", "long"), configuration=configuration),
        domain("delta.rowTracking", {"rowIdHighWaterMark": 19}),
    )
    first = data_file(log, "a", pa.table({"x": range(10)}), baseRowId=0, defaultRowCommitVersion=0)
    second = data_file(log, "b", pa.table({"x": range(10, 20)}), baseRowId=10, defaultRowCommitVersion=0)
    return log.commit(*head, first, second)


def row_ids(log):
    table = DeltaTable(str(log))
    snapshot = table.snapshot()
    rows = pa.concat_tables(read_rows(table.scan(snapshot, np.arange(len(snapshot.files)))))
    return sorted(zip(*(rows[name].to_pylist() for name in ("x", "_id", "_version")), strict=True))


def test_row_ids_and_versions_stay(log):
    before = row_ids(tracked_table(log, ROW_TRACKING))
    table, rewrite = prepare(log)
    rewrite = type(rewrite)(rewrite.base, rewrite.removed, rewrite.added[::-1], rewrite.layout, rewrite.run)
    version = table.commit(rewrite)
    assert row_ids(log) == before
    assert [add["baseRowId"] for add in bodies(log, version, "add")] == [20, 30], "ids are never given twice"
    assert {add["defaultRowCommitVersion"] for add in bodies(log, version, "add")} == {version}
    assert bodies(log, version, "domainMetadata") == [
        domain("delta.rowTracking", {"rowIdHighWaterMark": 39})["domainMetadata"]
    ]
    assert bodies(log, version, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}
    removed = {action["path"]: action for action in bodies(log, version, "remove")}
    assert (removed["b"]["baseRowId"], removed["b"]["defaultRowCommitVersion"]) == (10, 0)
    assert all("_id" not in add["stats"] for add in bodies(log, version, "add")), "no statistics of hidden columns"


def test_row_ids_are_given_where_tracking_is_supported_but_not_enabled(log):
    tracked_table(log, {})
    table, rewrite = prepare(log)
    log.commit(domain("delta.rowTracking", {"rowIdHighWaterMark": 99}))
    version = table.commit(rewrite)
    assert [add["baseRowId"] for add in bodies(log, version, "add")] == [100, 110], "the newest mark counts"
    assert "tags" not in bodies(log, version, "commitInfo")[0]
    assert pq.read_schema(rewrite.added[0].path).names == ["x"]


def test_row_ids_are_not_given_while_tracking_is_suspended(log):
    tracked_table(log, {"delta.rowTrackingSuspended": "true"})
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    assert all("baseRowId" not in add for add in bodies(log, version, "add"))
    assert bodies(log, version, "domainMetadata") == []


def test_marks_of_rows_come_from_a_checkpoint_too(log):
    tracked_table(log, ROW_TRACKING)
    add = pa.struct([*ADD, pa.field("baseRowId", pa.int64()), pa.field("defaultRowCommitVersion", pa.int64())])
    text = pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()})
    schema = CHECKPOINT.set(CHECKPOINT.get_field_index("add"), pa.field("add", add))
    log.checkpoint(*actions(log, 0), schema=schema.append(pa.field("domainMetadata", text))).forget(0)
    before = row_ids(log)
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    assert [add["baseRowId"] for add in bodies(log, version, "add")] == [20, 30]
    assert row_ids(log) == before


def test_in_commit_timestamps_rise(log):
    configuration = {"delta.enableInCommitTimestamps": "true"}
    far = int(time.time() * 1000) + 10**9
    head = (
        protocol(1, 7, writer_features=["inCommitTimestamp"]),
        metadata(field("x", "long"), configuration=configuration),
    )
    log.commit({"commitInfo": {"inCommitTimestamp": far}}, *head, data_file(log, "a", pa.table({"x": [1]})))
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    first = next(iter(actions(log, version)[0].items()))
    assert first[0] == "commitInfo"
    assert first[1]["inCommitTimestamp"] == far + 1
    table, rewrite = prepare(log, run="r2")
    log.commit({"commitInfo": {"inCommitTimestamp": far + 50}}, data_file(log, "b", pa.table({"x": [2]})), version=2)
    assert bodies(log, table.commit(rewrite), "commitInfo")[0]["inCommitTimestamp"] == far + 51
    log.commit({"commitInfo": {}}, version=4)
    table, rewrite = prepare(log, run="r3")
    with pytest.raises(TableError, match="in-commit timestamps"):
        table.commit(rewrite)


def test_liquid_tables_keep_their_columns_and_know_the_provider(log):
    clustering = domain("delta.clustering", {"clusteringColumns": [["x"]]})
    head = (
        protocol(1, 7, writer_features=["clustering", "domainMetadata"]),
        metadata(field("x", "long")),
        clustering,
    )
    log.commit(*head, data_file(log, "a", pa.table({"x": [1]}), clusteringProvider="liquid"))
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    assert bodies(log, version, "add")[0]["clusteringProvider"] == "zonal"
    assert bodies(log, version, "domainMetadata") == [], "a commit that doesn't mention a domain keeps it"


def test_a_v2_checkpoint_is_rewritten_with_all_fields_of_its_files(log):
    head = [features("v2Checkpoint", "deletionVectors"), metadata(field("x", "long"))]
    vector = stored_vector(log, [0])
    file = data_file(log, "a", pa.table({"x": range(3)}), deletionVector=vector, tags={"k": "v"})
    log.commit(*head, file)
    sidecar = log.sidecar("one.parquet", file)
    middle = ".11111111-1111-1111-1111-111111111111"
    log.checkpoint(*head, sidecar, {"checkpointMetadata": {"version": 0}}, middle=middle).forget(0)
    table, rewrite = prepare(log)
    (removed,) = bodies(log, table.commit(rewrite), "remove")
    assert removed["deletionVector"] == vector
    assert removed["tags"] == {"k": "v"}
    assert rows_of(log) == [1, 2]


def test_mapped_columns_keep_physical_names_in_files_and_statistics(log):
    def mapped(name, number, kind, physical):
        both = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
        return field(name, kind, metadata=both)

    columns = (mapped("x", 1, "long", "c-1"), mapped("g", 2, struct(mapped("y", 3, "string", "c-3")), "c-2"))
    configuration = {"delta.columnMapping.mode": "name"}
    rows = pa.table({"c-1": [5, 3], "c-2": pa.array([{"c-3": "b"}, {"c-3": "a"}])})
    log.commit(protocol(2, 5), metadata(*columns, configuration=configuration), data_file(log, "a", rows))
    table, rewrite = prepare(log, layout=Layout("zorder", ("x", "g.y")), halves=1)
    version = table.commit(rewrite)
    found = json.loads(bodies(log, version, "add")[0]["stats"])
    assert found["minValues"] == {"c-1": 3, "c-2": {"c-3": "a"}}
    assert found["nullCount"] == {"c-1": 0, "c-2": {"c-3": 0}}
    file = pq.ParquetFile(rewrite.added[0].path).schema_arrow
    assert file.names == ["c-1", "c-2"]
    assert [file.field(n).metadata[b"PARQUET:field_id"] for n in (0, 1)] == [b"1", b"2"]
    assert file.field(1).type.field(0).metadata[b"PARQUET:field_id"] == b"3"
    assert theirs(log) == rows_of(log) == [3, 5]


def test_an_append_to_an_identity_column_is_no_conflict(log):
    def head(mark):
        return metadata(field("x", "long", metadata={"delta.identity.start": 1, "delta.identity.highWaterMark": mark}))

    old = protocol(1, 7, writer_features=["identityColumns"])
    log.commit(old, head(1), data_file(log, "a", pa.table({"x": [1]})))
    table, rewrite = prepare(log)
    log.commit(head(2), data_file(log, "b", pa.table({"x": [2]})))
    version = table.commit(rewrite)
    assert rows_of(log) == [1, 2]
    assert '"delta.identity.highWaterMark": 2' in bodies(log, version, "metaData")[0]["schemaString"]


def test_an_unknown_feature_is_refused_by_name_whatever_the_snapshot_says(log):
    log.commit(protocol(), metadata(field("x", "long")), data_file(log, "a", pa.table({"x": [1]})))
    table, rewrite = prepare(log)
    log.commit(protocol(1, 7, writer_features=["futureThing"]))
    with pytest.raises(ConflictError, match="protocol"):
        table.commit(rewrite)
    broken = type(rewrite)(table.newest().snapshot(), rewrite.removed, rewrite.added, LAYOUT, "r")
    with pytest.raises(TableError, match="futureThing"):
        table.commit(broken)


def test_an_append_only_table_may_be_rewritten(log):
    head = metadata(field("x", "long"), configuration={"delta.appendOnly": "true"})
    log.commit(protocol(), head, data_file(log, "a", pa.table({"x": [2, 1]})))
    table, rewrite = prepare(log)
    table.commit(rewrite)
    assert theirs(log) == [1, 2]


# --- statistics -------------------------------------------------------------------------------------------------------


def metrics(lower, upper, *, nans=0):
    return ColumnMetrics("c", 1, 1, 0, nans, lower, upper)


def both(kind, lower, upper, **more):
    found = metrics(pa.scalar(lower, kind), pa.scalar(upper, kind), **more)
    return lower_bound(found), upper_bound(found)


LAST = "\U0010ffff"


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int64(), (-(2**63), 2**63 - 1), (-(2**63), 2**63 - 1)),
        (pa.date32(), (date(1, 1, 1), date(9999, 12, 31)), ("0001-01-01", "9999-12-31")),
        (pa.date32(), (-1_000_000, 2**31 - 1), (None, None)),
        (pa.timestamp("us", "UTC"), (1_500, 1_500), ("1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z")),
        (pa.timestamp("us"), (-1_500, -1_500), ("1969-12-31T23:59:59.998", "1969-12-31T23:59:59.999")),
        (pa.timestamp("us", "UTC"), (2_000, 2_000), ("1970-01-01T00:00:00.002Z", "1970-01-01T00:00:00.002Z")),
        (pa.timestamp("us"), (datetime.max, datetime.max), ("9999-12-31T23:59:59.999", None)),
        (pa.float64(), (float("-inf"), float("inf")), (None, None)),
        (pa.float32(), (0.5, 1.5), (0.5, 1.5)),
        (pa.bool_(), (False, True), (None, None)),
        (pa.binary(), (b"a", b"b"), (None, None)),
        (pa.string(), ("a" * 32, "b" * 32), ("a" * 32, "b" * 32)),
        (pa.string(), ("a" * 33, "b" * 33), ("a" * 32, "b" * 32 + LAST)),
        (pa.string(), ("😀" * 40, "😀" * 40), ("😀" * 32, "😀" * 32 + LAST)),
        (pa.string(), ("", "a" * 32 + LAST + "b"), ("", "a" * 32 + LAST + LAST)),
        (pa.string(), ("", "a" * 32 + LAST), ("", "a" * 32 + LAST)),
    ],
)
def test_bounds_are_exact_or_outward(kind, values, expected):
    assert both(kind, *values) == expected


def test_a_file_with_nan_has_no_maximum():
    assert both(pa.float64(), 1.0, 2.0, nans=1) == (1.0, None)


def only_stats(where, version):
    (add,) = bodies(where, version, "add")
    return add["stats"]


def test_decimals_keep_every_digit(log):
    big, small = Decimal(f"{'9' * 33}.99999"), Decimal(f"-{'1' * 33}.00001")
    rows = pa.table({"x": pa.array([big, small], pa.decimal128(38, 5))})
    log.commit(protocol(), metadata(field("x", "decimal(38,5)")), data_file(log, "a", rows))
    table, rewrite = prepare(log, halves=1)
    text = only_stats(log, table.commit(rewrite))
    assert f'"maxValues":{{"x":{big}}}' in text
    assert f'"minValues":{{"x":{small}}}' in text
    assert json.loads(text)["tightBounds"] is True


def wide_table(log, configuration):
    names = [f"c{number}" for number in range(40)]
    rows = pa.table({name: [1, None] for name in names} | {"l": [[1], None], "g": [{"y": 1}, None]})
    list_ = {"type": "array", "elementType": "long", "containsNull": True}
    columns = [field(name, "long") for name in names] + [field("l", list_), field("g", struct(field("y", "long")))]
    log.commit(protocol(), metadata(*columns, configuration=configuration), data_file(log, "a", rows))
    table, rewrite = prepare(log, layout=Layout("zorder", ("c38", "g.y")), halves=1)
    return json.loads(only_stats(log, table.commit(rewrite)))


FIRST = [f"c{number}" for number in range(32)]


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, [*FIRST, "c38", "g"]),
        ({"delta.dataSkippingNumIndexedCols": "1"}, ["c0", "c38", "g"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, ["c38", "g"]),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, [*(f"c{n}" for n in range(40)), "g"]),
        ({"delta.dataSkippingStatsColumns": "C1, `c2`"}, ["c1", "c2", "c38", "g"]),
    ],
)
def test_statistics_cover_what_the_table_asks_for_and_every_key(log, configuration, expected):
    found = wide_table(log, configuration)
    assert list(found["nullCount"]) == expected
    assert found["nullCount"]["c38"] == 1
    assert found["nullCount"]["g"] == {"y": 1}
    assert found["minValues"]["g"] == found["maxValues"]["g"] == {"y": 1}
    assert found["numRecords"] == 2


MOMENTS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.none() | st.integers(-(2**63), 2**63 - 1),
            "s": st.none() | st.text(st.sampled_from(["a", "b", "é", "\uffff", "😀", LAST]), max_size=40),
            "d": st.none() | st.decimals(-(10**28), 10**28, places=9, allow_nan=False),
            "t": st.none() | MOMENTS,
            "n": st.none() | MOMENTS,
            "f": st.none() | st.floats(),
            "h": st.none() | st.floats(width=32),
            "day": st.none() | st.dates(),
            "b": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)
KINDS = {
    "x": ("long", pa.int64()),
    "s": ("string", pa.string()),
    "d": ("decimal(38,9)", pa.decimal128(38, 9)),
    "t": ("timestamp", pa.timestamp("us", "UTC")),
    "n": ("timestamp_ntz", pa.timestamp("us")),
    "f": ("double", pa.float64()),
    "h": ("float", pa.float32()),
    "day": ("date", pa.date32()),
    "b": ("boolean", pa.bool_()),
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS)
def test_every_value_lies_within_the_bounds_that_were_written(rows, tmp_path_factory):
    log = LogWriter(tmp_path_factory.mktemp("t"))
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, (_, kind) in KINDS.items()})
    columns = [field(name, kind) for name, (kind, _) in KINDS.items()]
    log.commit(features("timestampNtz"), metadata(*columns), data_file(log, "a", table))
    ours, rewrite = prepare(log, halves=2)
    ours.commit(rewrite)
    snapshot = ours.newest().snapshot()
    for number, path in enumerate(snapshot.files.paths.to_pylist()):
        stored = pq.read_table(path)
        assert snapshot.files.rows[number] == stored.num_rows
        for name in KINDS:
            bounds, values = snapshot.files.bounds[name], stored[name].drop_null()
            assert bounds.nulls[number] == stored[name].null_count, name
            if pa.types.is_string(values.type):
                values = values.cast(pa.large_binary())
            if pa.types.is_floating(values.type):
                values = values.filter(pc.invert(pc.is_nan(values)))
                assert bounds.upper[number].as_py() is None or len(values) == len(stored[name].drop_null()), (
                    "NaN is last"
                )
            if not len(values):
                continue
            lower, upper = bounds.lower[number], bounds.upper[number]
            if lower.is_valid:
                assert pc.all(pc.greater_equal(values, lower)).as_py(), name
            if upper.is_valid:
                assert pc.all(pc.less_equal(values, upper)).as_py(), name
            if name in ("x", "s", "d", "day"):
                assert lower.is_valid, f"{name} has a lower bound"
                assert upper.is_valid, f"{name} has an upper bound"


def test_statistics_skip_files_for_another_reader_and_lose_no_row(tmp_path):
    rows = pa.table(
        {
            "x": range(1000),
            "d": pa.array([Decimal(i) / 100 for i in range(1000)], pa.decimal128(30, 4)),
            "t": pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=137 * i) for i in range(1000)]),
            "s": [f"{'p' * 32}{i:05}" for i in range(1000)],
        }
    )
    deltalake.write_deltalake(tmp_path, rows)
    table, rewrite = prepare(tmp_path, halves=10)
    table.commit(rewrite)
    theirs_ = deltalake.DeltaTable(tmp_path)
    for number in (0, 99, 100, 555, 999):
        row = rows.slice(number, 1).to_pylist()[0]
        for name in ("x", "t", "s"):
            assert theirs_.to_pyarrow_table(filters=[(name, "=", row[name])]).num_rows == 1, (name, number)


# --- new tables -------------------------------------------------------------------------------------------------------


def create(where, table, *, partitioning=(), layout=LAYOUT):
    """Write rows into a new table, a file a partition."""
    destination = DeltaDestination(str(where))
    columns = destination.file_columns(table.schema, partitioning)
    groups = [{}]
    if partitioning:
        groups = table.select(partitioning).group_by(list(partitioning)).aggregate([]).to_pylist()
    kinds = {name: table.schema.field(name).type for name in partitioning}
    partitions = [{name: pa.scalar(group[name], kinds[name]) for name in partitioning} for group in groups]
    writing = destination.writing(table.schema, partitioning, partitions, layout=layout, run="r1")
    added = []
    for number, partition in enumerate(groups):
        mask = [all(row[name] == partition[name] for name in partitioning) for row in table.to_pylist()]
        added += write_rows(writing, layout, number, table.filter(pa.array(mask)).select(columns))
    return destination, added


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


VALUES = st.one_of(
    st.tuples(st.just(pa.string()), st.text(min_size=1)),
    st.tuples(st.just(pa.int64()), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(pa.bool_()), st.booleans()),
    st.tuples(st.just(pa.float64()), st.floats(allow_nan=False)),
    st.tuples(st.just(pa.float32()), st.floats(allow_nan=False, width=32)),
    st.tuples(st.just(pa.date32()), st.dates()),
    st.tuples(st.just(pa.timestamp("us")), st.datetimes()),
    st.tuples(st.just(pa.timestamp("us", "UTC")), st.datetimes(timezones=st.just(UTC))),
    st.tuples(st.just(pa.decimal128(38, 9)), st.decimals(-(10**28), 10**28, places=9, allow_nan=False)),
    st.tuples(st.just(pa.int32()), st.none()),
)


@given(VALUES)
def test_partition_values_are_read_as_they_were_written(typed):
    value = pa.scalar(typed[1], typed[0])
    assert partition_value(partition_text(value, "p"), pa.field("p", typed[0])) == value


@pytest.mark.parametrize("kind", [pa.int64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.bool_()])
def test_partition_values_mean_the_same_to_another_reader(tmp_path, kind):
    value = pa.scalar(1, pa.int64()).cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    rows = pa.table({"x": [1, 2], "p": pa.array([value.as_py(), None], kind)})
    destination, added = create(tmp_path / "new", rows, partitioning=["p"])
    destination.publish(added)
    found = deltalake.DeltaTable(tmp_path / "new").to_pyarrow_table().sort_by("x")
    assert found["p"].to_pylist() == rows["p"].to_pylist()


def test_vectors_of_these_tests_are_what_deltas_files_hold():
    assert bitmap([1])[:4] == (1681511377).to_bytes(4, "little")
