"""Commits of histories with holes, of many appends, of deletion vectors, and with hostile texts."""

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherDelta

from support.cluster_tables import Delta, Iceberg
from support.commit_audits import TIMES, nowhere, opened, replay_of, versions_of, width
from support.delta_tables import LogWriter, add, features, field, metadata, protocol, remove, vector
from zonal.auditing.blame.commits import MOST_COMMITS, commits_of
from zonal.auditing.blame.sentence import times_text
from zonal.tables.registry import open_table


def rows(values):
    return pa.table({"x": pa.array(values, pa.int64())})


def told_of(home, *, columns=("x",), excess=None):
    table = opened(home)
    snapshot = table.snapshot()
    ones = np.ones(len(snapshot.files))
    replayed = replay_of(ones, ones if excess is None else excess)
    return commits_of(snapshot, replayed, dict.fromkeys(columns, 1.0), versions_of(table)[0]).told


def test_files_of_unknown_commits_are_one_row_without_an_id(tmp_path):
    home = Delta(tmp_path).make([rows(range(100)), rows(range(100, 200))])
    OtherDelta(home.root).create_checkpoint()
    home.append(rows(range(200)))
    for number in range(2):
        (home.root / "_delta_log" / f"{number:020d}.json").unlink()
    told = {commit.id: commit for commit in told_of(home)}
    assert set(told) == {None, 2}
    assert (told[None].files, told[None].kind, told[None].writer, told[None].time) == (2, "unknown", "", None)
    assert told[None].sentence == "commits that the table's history doesn't tell any more added 2 files"
    assert width(told[2]).times == pytest.approx(199 / 99)


def test_an_expired_snapshot_keeps_its_id(tmp_path):
    home = Iceberg(tmp_path).make([rows(range(100)), rows(range(100, 200))])
    oldest = opened(home).versions()[0].id
    home.table.maintenance.expire_snapshots().by_id(oldest).commit()
    told = {commit.id: commit for commit in told_of(home)}
    assert told[oldest].kind == "unknown"
    assert told[oldest].sentence == f"snapshot {oldest}, which the history doesn't have any more, added 1 file"


def test_more_than_fifty_commits_are_joined_by_least_excess(tmp_path):
    count = MOST_COMMITS + 10
    home = Delta(tmp_path).make([rows([number]) for number in range(count)])
    snapshot = opened(home).snapshot()
    excess = snapshot.files.added_by / count
    told = told_of(home, excess=excess)
    assert len(told) == MOST_COMMITS
    assert [commit.id for commit in told[:-1]] == list(range(count - 1, 10, -1)), "those with most excess, in order"
    last = told[-1]
    assert (last.id, last.files, last.kind) == (None, 11, "several")
    assert last.sentence == "11 other commits, each with less of what is read, added 11 files"
    assert sum(commit.excess_share for commit in told) == pytest.approx(1)
    assert sum(commit.bytes for commit in told) == snapshot.files.sizes.sum()


def spoiled_then_appended(tmp_path, appends):
    """Ten narrow files, joined to a wide one by a compaction, and files of others behind it."""
    home = Delta(tmp_path).make([rows(range(100 * part, 100 * part + 100)) for part in range(10)])
    OtherDelta(home.root).optimize.compact()
    for _ in range(appends):
        home.append(rows([0, 450, 999]))
    return home


def blamed(home, read, excess):
    """Who is to blame where the first files are read, and read for nothing, so much; `read` tells of a file by size."""
    table = opened(home)
    snapshot = table.snapshot()
    found = commits_of(snapshot, replay_of(read(snapshot), excess(snapshot)), {"x": 1.0}, versions_of(table)[0])
    assert {each.id for each in found.told if each.id is not None} == set(snapshot.files.added_by.tolist())
    return found


@pytest.mark.parametrize("appends", [1, 7, MOST_COMMITS - 2])
def test_a_compaction_is_found_behind_any_number_of_appends_that_are_read_for_nothing(tmp_path, appends):
    home = spoiled_then_appended(tmp_path, appends)
    compacted = 10
    small = lambda snapshot: (snapshot.files.added_by > compacted).astype(float)  # noqa: E731
    found = blamed(home, lambda snapshot: np.where(small(snapshot) > 0, 0.01, 1.0), small)
    assert found.culprits[0].id == found.told[0].id == found.culprits[0].since == compacted
    assert found.culprits[0].excess_share == 0, "a large file nearly always holds a match"
    assert f"widened x 10{TIMES}" in found.culprits[0].sentence


def test_appends_are_blamed_together_where_each_alone_is_too_small(tmp_path):
    home = Delta(tmp_path).make([rows(range(100 * part, 100 * part + 100)) for part in range(10)])
    home.cluster(by=["x"], layout="linear", target_file_size=60, full=True)
    last = opened(home).snapshot().version
    for _ in range(20):
        home.append(rows([0, 450, 999]))
    read = lambda snapshot: np.where(snapshot.files.added_by > last, 1.0, 0.1)  # noqa: E731
    found = blamed(home, read, lambda snapshot: np.zeros(len(snapshot.files)))
    (culprit,) = found.culprits
    assert (culprit.id, culprit.kind, culprit.files, culprit.since) == (None, "append", 20, last + 1)
    assert culprit.ids == tuple(range(last + 1, last + 21))
    assert culprit.read_files_share == pytest.approx(20 / (20 + 0.1 * (len(opened(home).snapshot().files) - 20)))
    assert all(each.read_files_share < 0.1 for each in found.told if each.kind == "append")
    assert culprit.sentence.startswith("20 appends (WRITE by delta-rs 1.6.6, 20")
    assert culprit.widths[0].times > 3
    wide = times_text(culprit.widths[0].times)
    assert culprit.sentence.endswith(f"UTC) added 20 files, x {wide} as wide as the others")
    assert sum(each.files for each in found.told) == len(opened(home).snapshot().files), "they are no row of their own"


def test_appends_without_others_to_be_held_against_are_no_culprits(tmp_path):
    home = Delta(tmp_path).make([rows(range(100 * part, 100 * part + 100)) for part in range(10)])
    ones = lambda snapshot: np.ones(len(snapshot.files))  # noqa: E731
    assert blamed(home, ones, ones).culprits == ()


def test_nothing_is_read_for_nothing(tmp_path):
    home = Delta(tmp_path).make([rows(range(100))])
    snapshot = opened(home).snapshot()
    (commit,) = commits_of(snapshot, replay_of([0.0], [0.0]), {"x": 1.0}, nowhere).told
    assert (commit.read_share, commit.excess_share) == (0, 0)
    assert commit.sentence.endswith("added 1 file, all that the table has")


def test_a_table_without_files_has_no_commits_to_tell(tmp_path):
    home = Iceberg(tmp_path)
    home.catalog.create_table("db.t", rows([]).schema)
    snapshot = opened(home).snapshot()
    assert commits_of(snapshot, replay_of([], []), {"x": 1.0}, nowhere).told == ()


def test_a_deletion_vector_marks_files_and_widens_nothing(tmp_path):
    wide, narrow = (add(name, stats=stats) for name, stats in (("wide", ends(0, 1000)), ("narrow", ends(0, 10))))
    log = LogWriter(tmp_path / "t").commit(features("deletionVectors"), metadata(field("x", "long")), wide, narrow)
    marked = add("wide", stats=ends(0, 1000), deletionVector=vector("ab^-aqEH.-t@S}K{vb[*k^"))
    log.commit({"commitInfo": {"operation": "DELETE"}}, remove("wide"), marked)
    table = open_table(str(log))
    snapshot = table.snapshot()
    told = commits_of(snapshot, replay_of([1, 1], [1, 1]), {"x": 1.0}, versions_of(table)[0]).told
    deleted = next(commit for commit in told if commit.id == 1)
    assert (deleted.kind, deleted.replaced) == ("delete", 0)
    assert width(deleted).times == pytest.approx(1)
    assert deleted.sentence.endswith("marked 1 file anew, about as wide as before")


def ends(low, high, name="x", rows=10):
    return {"numRecords": rows, "minValues": {name: low}, "maxValues": {name: high}, "nullCount": {name: 0}}


def test_files_without_bounds_count_as_wide_as_the_column_and_are_named(tmp_path):
    log = LogWriter(tmp_path / "t").commit(protocol(), metadata(field("x", "long")))
    log.commit(*(add(f"f{number}", stats=ends(100 * number, 100 * number + 99)) for number in range(10)))
    log.commit({"commitInfo": {"operation": "WRITE", "engineInfo": "somebody"}}, add("bare", stats={"numRecords": 10}))
    table = open_table(str(log))
    snapshot = table.snapshot()
    ones = np.ones(11)
    told = commits_of(snapshot, replay_of(ones, ones), {"x": 1.0}, versions_of(table)[0]).told
    bare = next(commit for commit in told if commit.id == 2)
    assert (width(bare).width, width(bare).before) == (1, pytest.approx(99 / 999))
    assert "(WRITE by somebody, " in bare.sentence
    assert bare.sentence.endswith("added 1 file without bounds of x")


def test_hostile_texts_of_a_history_stay_on_one_short_line(tmp_path):
    nasty = "OPT\x1b[31m\n<script>" + "x" * 10_000
    column = "a\nb" + "c" * 500
    log = LogWriter(tmp_path / "t").commit(protocol(), metadata(field(column, "long")))
    log.commit(add("narrow", stats=ends(0, 1, column)), add("high", stats=ends(99, 100, column)))
    log.commit({"commitInfo": {"operation": nasty, "engineInfo": nasty}}, add("wide", stats=ends(0, 100, column)))
    table = open_table(str(log))
    snapshot = table.snapshot()
    told = commits_of(snapshot, replay_of([1] * 3, [1] * 3), {column: 1.0}, versions_of(table)[0]).told
    commit = next(commit for commit in told if commit.id == 2)
    for text in (commit.sentence, commit.operation, commit.writer):
        assert text.isprintable()
        assert len(text) < 500
    assert commit.kind == "unknown"
    assert f"c… 100{TIMES} as wide as the others" in commit.sentence
