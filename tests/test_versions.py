"""Older versions of tables: pinned, listed along the line that led to them, with the names of their time."""

import json
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherDelta
from deltalake import write_deltalake
from pyiceberg.types import LongType

from support.cluster_tables import Delta, Iceberg, Parquet
from zonal.auditing.blame.replaced import replaced_by
from zonal.auditing.renames import _decoded, named_as
from zonal.errors import TableError, ZonalError
from zonal.predicates.bind import bind
from zonal.skipping.files import FileIndex
from zonal.snapshot import Bounds, LazyBounds
from zonal.sql.where import parse_where
from zonal.tables.delta.listing import LogFolder
from zonal.tables.protocol import is_versioned
from zonal.tables.registry import open_table


def rows(first, count=10):
    return pa.table({"x": pa.array(range(first, first + count), pa.int64()), "s": pa.array(["a"] * count)})


def opened(home, version=""):
    return open_table(home.name + version, **home.options)


@pytest.fixture(params=["delta", "iceberg"])
def home(request, tmp_path):
    made = {"delta": Delta, "iceberg": Iceberg}[request.param](tmp_path)
    return made.make([rows(0), rows(10), rows(20)])


def test_every_version_of_the_line_can_be_read_as_it_was(home):
    table = opened(home)
    assert is_versioned(table)
    line = table.versions()
    assert len(line) == 3
    assert [len(table.at(commit.id).snapshot().files) for commit in line] == [1, 2, 3]
    assert line[-1].id == table.snapshot().version
    assert [commit.parent for commit in line] == [None, *(commit.id for commit in line[:-1])]
    assert list(line) == sorted(line, key=lambda commit: commit.time), "oldest first"


def test_a_pinned_table_has_the_line_that_led_to_it(home):
    table = opened(home)
    line = table.versions()
    assert table.at(line[1].id).versions() == line[:2]
    assert table.at(line[1].id).snapshot().version == line[1].id
    assert table.snapshot().version == line[2].id, "the table itself is not pinned by that"


def test_commits_tell_the_same_in_a_snapshot_and_in_the_line(home):
    table = opened(home)
    commits = table.snapshot().commits
    assert [commits[commit.id] for commit in table.versions()] == list(table.versions())


def test_a_version_that_is_not_there_is_named(home):
    with pytest.raises(TableError, match="12345"):
        opened(home).at(12345).snapshot()


def test_plain_parquet_has_no_versions(tmp_path):
    assert not is_versioned(opened(Parquet(tmp_path).make([rows(0)])))


# --- Iceberg ---------------------------------------------------------------------------------------------------------


def test_the_line_of_a_branch_leaves_out_what_main_did(tmp_path):
    home = Iceberg(tmp_path).make([rows(0), rows(10)])
    fork = home.version()
    home.table.manage_snapshots().create_branch(fork, "audit").commit()
    home.table.append(rows(20), branch="audit")
    home.append(rows(30))
    main, branch = opened(home).versions(), opened(home, "@audit").versions()
    assert main[:2] == branch[:2]
    assert [commit.id for commit in main[:2]][-1] == fork
    assert len(main) == len(branch) == 3
    assert main[2].id == home.version() != branch[2].id
    assert main[2].parent == branch[2].parent == fork


def test_what_was_rolled_back_is_not_in_the_line(tmp_path):
    home = Iceberg(tmp_path).make([rows(0), rows(10), rows(20)])
    first, second, third = (commit.id for commit in opened(home).versions())
    home.table.manage_snapshots().set_current_snapshot(snapshot_id=second).commit()
    assert [commit.id for commit in opened(home).versions()] == [first, second]
    home.append(rows(30))
    line = opened(home).versions()
    assert [commit.id for commit in line[:2]] == [first, second]
    assert line[2].id not in (first, second, third)
    assert third in opened(home).snapshot().commits, "it is still known, only not an ancestor"
    assert len(opened(home).at(third).snapshot().files) == 3


def test_the_line_ends_where_snapshots_have_expired(tmp_path):
    home = Iceberg(tmp_path).make([rows(0), rows(10), rows(20)])
    first, second, third = (commit.id for commit in opened(home).versions())
    home.table.maintenance.expire_snapshots().by_id(first).commit()
    line = opened(home).versions()
    assert [commit.id for commit in line] == [second, third]
    with pytest.raises(TableError, match=str(first)):
        opened(home).at(first)


def test_parents_that_go_round_in_circles_end(tmp_path):
    home = Iceberg(tmp_path).make([rows(0), rows(10)])
    location = home.table.metadata_location.removeprefix("file://")
    text = json.loads(Path(location).read_text())
    one, other = text["snapshots"]
    one["parent-snapshot-id"] = other["snapshot-id"]
    broken = tmp_path / "broken.metadata.json"
    broken.write_text(json.dumps(text))
    line = open_table(f"iceberg:{broken}").versions()
    assert [commit.id for commit in line] == [one["snapshot-id"], other["snapshot-id"]]


def test_a_table_without_a_snapshot_has_an_empty_line(tmp_path):
    home = Iceberg(tmp_path)
    home.catalog.create_table("db.t", rows(0).schema)
    assert opened(home).versions() == ()


# --- Delta -----------------------------------------------------------------------------------------------------------


def test_commits_that_were_cleaned_behind_a_checkpoint_are_not_in_the_line(tmp_path):
    home = Delta(tmp_path).make([rows(10 * number) for number in range(5)])
    OtherDelta(home.root).create_checkpoint()  # of version 4
    home.append(rows(50))
    log = home.root / "_delta_log"
    for number in range(3):
        (log / f"{number:020d}.json").unlink()
    table = opened(home)
    assert [commit.id for commit in table.versions()] == [4, 5], "3 has a commit, but nothing to start from"
    assert [len(table.at(commit.id).snapshot().files) for commit in table.versions()] == [5, 6]
    with pytest.raises(TableError, match="Version 3"):
        table.at(3).snapshot()


def reads_of(monkeypatch):
    """The versions whose commits are read from now on, in order."""
    real, found = LogFolder.read, []

    def read(self, info):
        found.append(int(info.base_name[:20]))
        return real(self, info)

    monkeypatch.setattr(LogFolder, "read", read)
    return found


def test_versions_that_are_asked_for_oldest_first_have_each_commit_read_once(tmp_path, monkeypatch):
    home = Delta(tmp_path).make([rows(10 * number) for number in range(6)])
    OtherDelta(home.root).delete("x = 15")  # version 6
    expected = [OtherDelta(home.root, version=number).file_uris() for number in range(7)]
    table = opened(home)
    read = reads_of(monkeypatch)
    held = None
    for number in range(7):
        held = table.at(number).snapshot()
        assert sorted(held.files.paths.to_pylist()) == sorted(expected[number])
        assert held.version == number
        assert list(held.commits) == list(range(number + 1))
    assert read == list(range(7))


def test_a_version_of_a_table_that_was_made_anew_is_read_from_nothing(tmp_path):
    home = Delta(tmp_path).make([rows(10 * number) for number in range(3)])
    table = opened(home)
    held = table.at(1).snapshot()
    for file in (home.root / "_delta_log").iterdir():
        file.unlink()
    home.make([rows(100), rows(110), rows(120), rows(130)])
    found = table.at(2).snapshot()
    assert found.files.bounds["x"].lower.to_pylist() == [100, 110, 120]
    assert not {*held.files.paths.to_pylist()} & {*found.files.paths.to_pylist()}


def test_what_a_commit_replaced_is_asked_for_oldest_first(tmp_path):
    home = Delta(tmp_path).make([rows(10 * number) for number in range(3)])
    OtherDelta(home.root).delete("x = 15")  # version 3
    home.append(rows(50))
    table, asked = opened(home), []
    snapshot = table.snapshot()

    def at(version):
        asked.append(version)
        return table.at(version).snapshot()

    files = np.flatnonzero(snapshot.files.added_by == 3)
    found = replaced_by(snapshot.commits[3], snapshot.files, files, snapshot, at)
    assert asked == [2, 3], "going back, all commits before would be read again"
    assert found.removed == 1


def test_an_older_version_is_named_without_decoding_its_bounds(home):
    now, old = (opened(home).snapshot() for _ in range(2))
    undecoded = LazyBounds({name: lambda: pytest.fail("bounds were decoded") for name in old.files.bounds})
    named = named_as(replace(old, files=replace(old.files, bounds=undecoded)), now)
    assert [*named.files.bounds] == [*now.files.bounds]
    assert "x" in named.files.bounds
    assert "nothing" not in named.files.bounds


def test_a_gap_in_the_log_ends_the_line_until_the_next_checkpoint(tmp_path):
    home = Delta(tmp_path).make([rows(10 * number) for number in range(4)])
    OtherDelta(home.root).create_checkpoint()  # of version 3
    home.append(rows(50))
    (home.root / "_delta_log" / f"{1:020d}.json").unlink()
    table = opened(home)
    assert [commit.id for commit in table.versions()] == [0, 3, 4]
    assert [len(table.at(commit.id).snapshot().files) for commit in table.versions()] == [1, 4, 5]


def test_a_checkpoint_alone_can_be_read_but_tells_no_commit(tmp_path):
    home = Delta(tmp_path).make([rows(0), rows(10)])
    OtherDelta(home.root).create_checkpoint()
    home.append(rows(20))
    for number in range(2):
        (home.root / "_delta_log" / f"{number:020d}.json").unlink()
    table = opened(home)
    assert [commit.id for commit in table.versions()] == [2]
    assert len(table.at(1).snapshot().files) == 2


# --- names and types of the time -------------------------------------------------------------------------------------


def renamed_table(tmp_path):
    """A table whose column `pid` became `payload_id`, then got a neighbor with its old name."""
    home = Iceberg(tmp_path)
    first = pa.table({"pid": pa.array(range(10), pa.int32())})
    second = pa.table({"pid": pa.array(range(100, 110), pa.int32())})
    home.make([first, second])
    with home.table.update_schema() as update:
        update.rename_column("pid", "payload_id")
    with home.table.update_schema() as update:
        update.update_column("payload_id", LongType())
    with home.table.update_schema() as update:
        update.add_column("pid", LongType())
    home.append(pa.table({"payload_id": pa.array([50], pa.int64()), "pid": pa.array([5], pa.int64())}))
    return home


def kept(snapshot, condition, schema):
    bound = bind(parse_where(condition), schema)
    return int(FileIndex(snapshot).prune(bound).kept.sum())


def test_an_old_snapshot_has_the_schema_of_its_time(tmp_path):
    table = opened(renamed_table(tmp_path))
    old = table.at(table.versions()[1].id).snapshot()
    assert old.schema.names == ["pid"]
    assert old.schema.field("pid").type == pa.int32()
    assert kept(old, "pid = 105", old.schema) == 1
    with pytest.raises(ZonalError, match="payload_id"):
        bind(parse_where("payload_id = 105"), old.schema)


def test_todays_names_are_found_in_an_old_version_by_field_id(tmp_path):
    table = opened(renamed_table(tmp_path))
    now = table.snapshot()
    old = table.at(table.versions()[1].id).snapshot()
    condition = bind(parse_where("payload_id = 105"), now.schema)
    assert int(FileIndex(old).prune(condition).kept.sum()) == 2, "by name, nothing is known, and nothing skipped"
    named = named_as(old, now)
    assert int(FileIndex(named).prune(condition).kept.sum()) == 1
    assert named.files.bounds["payload_id"].lower.to_pylist() == [100, 0]
    assert named.files.bounds["payload_id"].lower.type == pa.int64(), "in today's type"
    assert kept(named, "pid = 105", now.schema) == 2, "today's pid is another column, of which nothing is known"


def test_names_stay_where_nothing_was_renamed(home):
    table = opened(home)
    now, old = table.snapshot(), table.at(table.versions()[0].id).snapshot()
    named = named_as(old, now)
    for column in ("x", "s"):
        assert named.files.bounds[column].lower.equals(old.files.bounds[column].lower)


def test_partition_columns_keep_their_bounds(tmp_path):
    for kind in (Delta, Iceberg):
        home = kind(tmp_path / kind.format)
        home.make([rows(0), rows(10)], partition_by=["s"])
        table = opened(home)
        now, old = table.snapshot(), table.at(table.versions()[0].id).snapshot()
        named = named_as(old, now)
        assert kept(named, "s = 'b'", now.schema) == 0, kind.format
        assert kept(named, "s = 'a'", now.schema) == 1, kind.format


@pytest.mark.parametrize(
    ("before", "after", "where", "needed"),
    [
        ([5, 20, 100], ["5", "20", "100"], "x = '50'", 1),  # as a text, 50 isn't between 100 and 5
        (["5", "20", "100"], [5, 20, 100], "x = 50", 1),
        ([5, 20, 100], [True, False, True], "x = true", 1),
        ([5, 20, 100], [5.0, 20.0, 100.0], "x = 101", 1),  # of 64 bits, not all are exact
    ],
)
def test_a_column_of_another_order_skips_nothing_in_an_older_version(tmp_path, before, after, where, needed):
    home = Delta(tmp_path).make([pa.table({"x": before})])
    write_deltalake(home.root, pa.table({"x": after}), mode="overwrite", schema_mode="overwrite")
    table = opened(home)
    named = named_as(table.at(0).snapshot(), table.snapshot())
    assert kept(named, where, table.snapshot().schema) == needed


def cast_bounds(values, older, kind):
    """Bounds of values in one type, as `named_as` gives them in another."""
    array = pa.array(values, older)
    none = np.zeros(len(values), np.int64)
    found = _decoded({"x": Bounds(array, array, none, none)}, "x", older, kind)
    return found.lower.to_pylist()


@pytest.mark.parametrize(
    ("values", "older", "kind", "expected"),
    [
        ([1, 2], pa.int32(), pa.int64(), [1, 2]),
        ([1, 2**40], pa.int64(), pa.int32(), [None, None]),
        ([1, 2], pa.int32(), pa.float64(), [1.0, 2.0]),
        ([1, 2], pa.int64(), pa.float64(), [None, None]),
        ([0.1], pa.float32(), pa.float64(), [float(np.float32(0.1))]),
        ([0.1], pa.float64(), pa.float32(), [None]),
        ([Decimal("1.5")], pa.decimal128(5, 1), pa.decimal128(9, 2), [Decimal("1.50")]),
        ([7], pa.int32(), pa.decimal128(12, 1), [Decimal("7.0")]),
        ([date(2026, 1, 2)], pa.date32(), pa.timestamp("us"), [datetime(2026, 1, 2)]),
        ([date(2026, 1, 2)], pa.date32(), pa.timestamp("us", "UTC"), [None]),
        ([datetime(2026, 1, 2)], pa.timestamp("us"), pa.timestamp("us", "UTC"), [None]),
        (["a"], pa.string(), pa.large_string(), ["a"]),
        ([1], pa.int64(), pa.string(), [None]),
    ],
)
def test_bounds_are_turned_into_types_that_order_values_alike_and_no_others(values, older, kind, expected):
    assert cast_bounds(values, older, kind) == expected
