"""Other writers' commits survive a rewrite of a Delta table, or are conflicts."""

import json
import os
import threading
import time
from functools import partial

import deltalake
import numpy as np
import pyarrow as pa
import pytest

from support.delta_commits import bodies, debris, first_two, theirs
from support.delta_rewrites import LAYOUT, data_file, inline_vector, named, prepare, rows_of, stored_vector
from support.delta_tables import features, field, metadata, remove
from zonal.errors import ConflictError, TableError
from zonal.layouts.layout import Layout
from zonal.tables.delta import commit as deltacommit
from zonal.tables.delta import replacement


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
    newer = Layout("linear", ("s",))
    other, elsewhere = prepare(plain, run="other", layout=newer, choose=lambda s: np.setdiff1d([0, 1, 2], first_two(s)))
    other.commit(elsewhere)
    table.commit(rewrite)
    assert theirs(plain) == list(range(300))
    after = table.newest().snapshot()
    assert set(after.files.layout_ids.to_pylist()) == {LAYOUT.id, newer.id}
    assert after.layout == newer, "a commit that began before another layout was recorded leaves that one"


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
    """Make another table in the same place; the old data files stay, as after a drop that removes only the log."""
    for file in (where / "_delta_log").iterdir():
        file.unlink()
    for start in range(commits):
        deltalake.write_deltalake(where, pa.table({"x": rows, "s": [f"n{start}"] * len(rows)}), mode="append")


@pytest.mark.parametrize("commits", [4, 3, 7])
@pytest.mark.parametrize("when", ["between two attempts", "right before the commit"])
def test_a_table_that_is_made_anew_during_the_commit_gets_no_rows_back(plain, monkeypatch, when, commits):
    table, rewrite = prepare(plain)
    place, name = (deltacommit, "put_version") if when == "between two attempts" else (replacement, "actions")
    real, calls = getattr(place, name), []

    def late(*given, **named):
        if not calls:
            calls.append(given)
            dropped_and_made_anew(plain, commits)
            return False if name == "put_version" else real(*given, **named)
        return real(*given, **named)

    monkeypatch.setattr(place, name, late)
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
    """Append and retry: a run that records a layout changes the table's metadata."""
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
    """The other writer commits after we read the log and before we commit."""
    for act, expected in ((append, "survives"), (delete("x = 5"), "conflict")):
        table, rewrite = prepare(plain, choose=first_two, run=expected)
        real, calls = deltacommit.put_version, []

        def late(log, number, *given, act=act, real=real, calls=calls):
            if not calls:
                act(plain)
            calls.append(number)
            return real(log, number, *given)

        monkeypatch.setattr(deltacommit, "put_version", late)
        if expected == "survives":
            version = table.commit(rewrite)
            assert calls == [version - 1, version]
        else:
            with pytest.raises(ConflictError):
                table.commit(rewrite)
        monkeypatch.undo()
    assert theirs(plain) == [x for x in range(301) if x != 5]


def test_endless_races_end(plain, monkeypatch):
    table, rewrite = prepare(plain)
    monkeypatch.setattr(deltacommit, "put_version", lambda *_, **__: False)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(TableError, match="20 times in a row"):
        table.commit(rewrite)
