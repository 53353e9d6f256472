"""The commits behind what is read for nothing: who made them, what they widened, and how it is told."""

from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherDelta
from hypothesis import given
from hypothesis import strategies as st

from support.audit_life import COMPACTED_BYTES, DELETED_BELOW, HOPELESS, QUERIES, ROWS, STAGES, Life
from support.cluster_tables import Delta, Iceberg
from support.delta_tables import LogWriter, add, features, field, metadata, protocol, remove, vector
from zonal.auditing.blame.authors import plain, writer_of
from zonal.auditing.blame.commits import MOST_COMMITS, commits_of
from zonal.auditing.blame.sentence import times_text
from zonal.auditing.blame.widths import measured
from zonal.auditing.replay import Replay
from zonal.errors import TableError
from zonal.snapshot import Bounds, Commit
from zonal.tables.delta import operations as delta_operations
from zonal.tables.iceberg import operations as iceberg_operations
from zonal.tables.registry import open_table

UTC = timezone.utc
TIMES = "\N{MULTIPLICATION SIGN}"
ONES = {"x": 1.0, "t": 1.0}


def opened(home, version=""):
    return open_table(home.name + version, **home.options)


def replay_of(read, excess):
    """A replay of which only what each file is read for counts."""
    none = np.zeros(0)
    return Replay(
        files=none.astype(int),
        bytes=none.astype(int),
        partition_files=none.astype(int),
        partition_bytes=none.astype(int),
        in_partition=np.zeros((1, 0), bool),
        read=np.asarray(read, float),
        excess=np.asarray(excess, float),
        excess_files=none,
        excess_bytes=none,
        skipped={},
        skipped_by_partition={},
    )


def exact_replay(snapshot, stage):
    """What footers and rows tell of each file: the weight of queries that read it, and of those that find nothing."""
    queries = (*QUERIES, HOPELESS)
    runs = sum(asked.count for asked in queries)
    place = {Path(path.removeprefix("file://")): at for at, path in enumerate(snapshot.files.paths.to_pylist())}
    read, excess = np.zeros(len(place)), np.zeros(len(place))
    for asked in queries:
        needed = {file.path for file in stage.needed(asked)}
        for file in stage.read(asked):
            read[place[file.path]] += asked.count / runs
            excess[place[file.path]] += (file.path not in needed) * asked.count / runs
    return replay_of(read, excess)


def nowhere(version):
    """A past that is gone."""


def versions_of(table):
    """Older versions, and which of them were asked for."""
    asked = []

    def at(number):
        asked.append(number)
        try:
            return table.at(number).snapshot()
        except TableError:
            return None

    return at, asked


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def life(request, tmp_path_factory):
    """A whole life, and its commits as they are told at each stage."""
    lived = Life(request.param, tmp_path_factory.mktemp(request.param))
    lived.told, lived.blamed = {}, {}
    for name in STAGES:
        stage = lived.until(name)
        table = opened(lived.home)
        snapshot = table.snapshot()
        found = commits_of(snapshot, exact_replay(snapshot, stage), ONES, versions_of(table)[0])
        lived.told[name], lived.blamed[name] = found.told, found.culprits
    return lived


def first(life, stage):
    return life.told[stage][0]


def width(commit, column="x"):
    return next(each for each in commit.widths if each.column == column)


# --- the life of a table ---------------------------------------------------------------------------------------------


def test_shares_add_up_and_every_live_file_is_counted_once(life):
    for name, told in life.told.items():
        stage = life.stages[name]
        assert sum(commit.files for commit in told) == len(stage.files)
        assert sum(commit.bytes for commit in told) == stage.bytes
        assert sum(commit.read_share for commit in told) == pytest.approx(1)
        assert sum(commit.excess_share for commit in told) in (pytest.approx(1), 0)
        innocent = [commit.excess_share for commit in told if commit not in life.blamed[name]]
        assert innocent == sorted(innocent, reverse=True)


def test_first_appends_are_alike(life):
    told = life.told["written"]
    assert [commit.kind for commit in told] == ["append"] * 4
    assert [commit.replaced for commit in told] == [0] * 4
    for commit in told:
        assert width(commit).times == pytest.approx(1, abs=0.01)
        assert "wide" not in commit.sentence


def test_clustering_is_zonals_and_narrowed_its_column(life):
    (commit,) = life.told["clustered"]
    written, clustered = life.stages["written"], life.stages["clustered"]
    assert (commit.kind, commit.replaced, commit.files) == ("zonal", 4, len(clustered.files))
    assert commit.operation == {"delta": "OPTIMIZE", "iceberg": "replace"}[life.kind]
    assert commit.writer.split()[0] == "zonal"
    assert width(commit).width == pytest.approx(clustered.mean_width("x"))
    assert width(commit).before == pytest.approx(written.mean_width("x"))
    assert "narrowed x to 1/" in commit.sentence
    assert f"widened t 3{TIMES}" in commit.sentence or f"widened t 3.1{TIMES}" in commit.sentence, "the price of it"


def test_an_append_is_held_against_the_other_files(life):
    commit = first(life, "appended")
    stage = life.stages["appended"]
    old = {file.path for file in life.stages["clustered"].files}
    (late,) = (file for file in stage.files if file.path not in old)
    assert (commit.kind, commit.files, commit.replaced) == ("append", 1, 0)
    assert commit.id == stage.version
    assert commit.excess_share == pytest.approx(1), "clustered files are read for nothing by none of the queries"
    assert width(commit).width == pytest.approx(late.width("x"))
    assert width(commit).before == pytest.approx(life.stages["clustered"].mean_width("x"))
    assert commit.widths[0].column == "x"
    assert commit.sentence.endswith(
        f"added 1 file, x {round(width(commit).times, 1):g}{TIMES} as wide as the others"
    ) or (commit.sentence.endswith(f"added 1 file, x {width(commit).times:.0f}{TIMES} as wide as the others"))


def test_the_compaction_is_the_culprit_and_widened_its_column_by_so_much(life):
    commit = first(life, "compacted")
    appended, compacted = life.stages["appended"], life.stages["compacted"]
    assert commit.id == compacted.version
    assert commit.excess_share == pytest.approx(1)
    assert commit.replaced == len(appended.files)
    assert commit.widths[0].column == "x"
    times = compacted.mean_width("x") / appended.mean_width("x")
    assert times > 3
    assert width(commit).times == pytest.approx(times)
    assert f"widened x {times:.1f}{TIMES}" in commit.sentence
    if life.kind == "delta":
        assert (commit.kind, commit.operation, commit.writer) == ("compaction", "OPTIMIZE", "delta-rs 1.6.6")
        assert commit.sentence.startswith(
            f"version {commit.id} (OPTIMIZE by delta-rs 1.6.6, {commit.time:%Y-%m-%d %H:%M} UTC)"
        )
    else:
        assert (commit.kind, commit.operation, commit.writer) == ("overwrite", "append", "")
        assert compacted.versions == 2, "PyIceberg overwrites by a delete and an append"
        assert "with the delete of snapshot" in commit.sentence


def test_a_delete_that_rewrote_wide_files_is_traced_to_the_compaction(life):
    commit = first(life, "deleted")
    appended, compacted, deleted = (life.stages[name] for name in ("appended", "compacted", "deleted"))
    kept = {file.path for file in compacted.files}
    rewritten = [file for file in deleted.files if file.path not in kept]
    now = sum(file.width("x") * file.size for file in rewritten) / sum(file.size for file in rewritten)
    assert commit.id == deleted.version
    assert commit.kind == {"delta": "delete", "iceberg": "overwrite"}[life.kind]
    assert commit.replaced == len(rewritten)
    assert width(commit).times == pytest.approx(now / appended.mean_width("x"))
    name = {"delta": "version", "iceberg": "snapshot"}[life.kind]
    assert f"rewrote files that {name} {compacted.version} (" in commit.sentence
    assert commit.sentence.endswith(f"had widened: x {now / appended.mean_width('x'):.1f}{TIMES}")


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_repair_narrowed_what_others_had_widened(kind, tmp_path):
    life = Life(kind, tmp_path)
    life.until("compacted")
    life.home.cluster()
    table = opened(life.home)
    snapshot = table.snapshot()
    ones = np.ones(len(snapshot.files))
    found = commits_of(snapshot, replay_of(ones, ones), ONES, versions_of(table)[0])
    assert (found.told[0].kind, found.told[0].since) == ("zonal", snapshot.version)
    assert "narrowed x to 1/" in found.told[0].sentence
    assert found.culprits == ()


def test_few_versions_are_read(life):
    table = opened(life.home)
    snapshot = table.snapshot()
    at, asked = versions_of(table)
    commits_of(snapshot, exact_replay(snapshot, life.stages["deleted"]), {"x": 1.0}, at)
    assert len(asked) == len(set(asked)) <= 4


def test_versions_that_are_gone_leave_the_comparison_with_other_files(life):
    snapshot = opened(life.home).snapshot()
    told = commits_of(snapshot, exact_replay(snapshot, life.stages["deleted"]), {"x": 1.0}, nowhere).told
    assert told[0].replaced is None
    assert "rewrote" not in told[0].sentence
    assert [commit.files for commit in told] == [commit.files for commit in life.told["deleted"]]


def test_columns_without_bounds_and_unknown_ones_have_no_widths(life):
    snapshot = opened(life.home).snapshot()
    replayed = exact_replay(snapshot, life.stages["deleted"])
    told = commits_of(snapshot, replayed, {"nowhere": 1.0, "x": 1.0}, versions_of(opened(life.home))[0]).told
    assert [each.column for each in told[0].widths] == ["x"]


def test_the_life_is_the_same_each_time(tmp_path):
    one, other = (Life("delta", tmp_path / name) for name in ("one", "other"))
    for stage in STAGES:
        ranges = [sorted((file.rows, *file.ends["x"]) for file in each.until(stage).files) for each in (one, other)]
        assert ranges[0] == ranges[1]


def test_the_oracle_counts_what_rows_say(life):
    for stage in life.stages.values():
        assert stage.rows.num_rows == sum(file.rows for file in stage.files)
        for asked in QUERIES:
            needed, read = ({file.path for file in files} for files in (stage.needed(asked), stage.read(asked)))
            assert needed <= read
    assert life.stages["compacted"].ratio() > 0.3 > life.stages["appended"].ratio() > life.stages["clustered"].ratio()
    assert min(life.stages["deleted"].rows["x"].to_pylist()) == DELETED_BELOW
    assert life.stages["appended"].bytes > COMPACTED_BYTES
    assert max(life.stages["appended"].rows["x"].to_pylist()) == ROWS - 1


# --- histories with holes --------------------------------------------------------------------------------------------


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
    home.cluster(by=["x"], layout="linear", target_file_size=1_000, full=True)
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


# --- widths ----------------------------------------------------------------------------------------------------------


def bounds(pairs, kind=None):
    kind = kind or pa.int64()
    lower, upper = (pa.array(list(side), kind) for side in zip(*pairs, strict=True))
    return Bounds(lower, upper, np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64))


def widths(given_bounds, rows):
    return measured(given_bounds, rows).widths


TEN = np.full(3, 10)


def test_widths_are_parts_of_the_whole_range():
    assert widths(bounds([(0, 10), (10, 20), (0, 40)]), TEN).tolist() == [0.25, 0.25, 1.0]


def test_texts_are_placed_behind_what_all_have_in_common():
    found = widths(bounds([(b"id-a", b"id-b"), (b"id-b", b"id-c"), (b"id-a", b"id-e")], pa.large_binary()), TEN)
    assert found.tolist() == pytest.approx([0.25, 0.25, 1.0])


def test_a_file_of_one_value_is_as_wide_as_one_of_the_bounds():
    assert widths(bounds([(1, 1), (2, 2), (1, 4)]), TEN).tolist() == pytest.approx([1 / 3, 1 / 3, 1])


def test_a_missing_bound_reaches_to_the_end_and_two_to_both():
    found = widths(bounds([(0, 100), (None, None), (75, None)]), TEN)
    assert found.tolist() == [1.0, 1.0, 0.25]


def test_files_of_nulls_alone_have_no_width():
    given_bounds = bounds([(0, 100), (None, None), (0, 50)])
    given_bounds.nulls[1] = 10
    found = widths(given_bounds, TEN)
    assert np.isnan(found[1])
    assert found[[0, 2]].tolist() == [1.0, 0.5]


def test_no_bounds_at_all_are_no_widths():
    assert measured(bounds([(None, None)] * 3), TEN) is None


def test_outliers_dont_put_all_files_in_one_spot():
    pairs = [(number, number + 1) for number in range(20)] + [(0, 10**15)]
    found = widths(bounds(pairs), np.full(21, 10))
    assert found[:20] == pytest.approx(np.full(20, 1 / 21)), "by rank: 22 distinct bounds"
    assert found[20] == 1


@given(
    st.lists(
        st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 2**40)).map(lambda p: (p[0], p[0] + p[1])),
        min_size=1,
        max_size=20,
    )
)
def test_widths_lie_between_nothing_and_everything_and_grow_with_the_file(pairs):
    whole = (min(low for low, _ in pairs), max(high for _, high in pairs))
    found = widths(bounds([*pairs, whole]), np.full(len(pairs) + 1, 10))
    assert (found > 0).all()
    assert (found <= 1).all()
    assert found[-1] == found.max()


# --- who wrote, and what ---------------------------------------------------------------------------------------------

DELTA_RS = {"engineInfo": "delta-rs:py-1.6.6"}
SPARK_DELTA = {"engineInfo": "Apache-Spark/4.1.4 Delta-Lake/4.4.0"}
ZONAL = {"zonal.layout": "{}", "zonal.run": "20261116-014641-54c701aa"}
SPARK_ICEBERG = {
    "engine-name": "spark",
    "engine-version": "4.1.4",
    "iceberg-version": "Apache Iceberg 1.12.0 (commit 0123456)",
    "app-id": "local-1794796253991",
}
RS, SPARK_WITH_DELTA = "delta-rs 1.6.6", "Spark 4.1.4, Delta Lake 4.4.0"
OPERATIONS = {"delta": delta_operations, "iceberg": iceberg_operations}


def told_commit(table_format, operation, details):
    """Return a commit as the format's adapter describes it."""
    told = OPERATIONS[table_format]
    time = datetime(2026, 11, 16, tzinfo=UTC)
    return Commit(1, time, operation, details, kind=told.kind_of(operation, details), writer=told.writer_of(details))


@pytest.mark.parametrize(
    ("table_format", "operation", "details", "kind", "writer"),
    [
        # deltalake 1.6.6
        ("delta", "WRITE", {"mode": "ErrorIfExists", **DELTA_RS}, "append", RS),
        ("delta", "WRITE", {"mode": "Append", **DELTA_RS}, "append", RS),
        ("delta", "WRITE", {"mode": "Overwrite", **DELTA_RS}, "overwrite", RS),
        ("delta", "OPTIMIZE", {"predicate": "[]", "targetSize": "104857600", **DELTA_RS}, "compaction", RS),
        ("delta", "DELETE", {"predicate": "x = 3", **DELTA_RS}, "delete", RS),
        ("delta", "UPDATE", {"predicate": "x = 4", **DELTA_RS}, "overwrite", RS),
        ("delta", "MERGE", {"mergePredicate": "t.x = s.x", **DELTA_RS}, "overwrite", RS),
        ("delta", "RESTORE", {"version": "1", **DELTA_RS}, "overwrite", RS),
        ("delta", "CONVERT", {"numFiles": "8", **DELTA_RS}, "append", RS),
        ("delta", "CREATE TABLE", {"mode": "ErrorIfExists", **DELTA_RS}, "append", RS),
        ("delta", "SET TBLPROPERTIES", DELTA_RS, "unknown", RS),
        ("delta", "WRITE", {"mode": "Append", "engineInfo": "delta-rs.0.17.3"}, "append", "delta-rs 0.17.3"),
        # Spark's Delta 4.4.0
        ("delta", "WRITE", {"mode": "Append", "partitionBy": "[]", **SPARK_DELTA}, "append", SPARK_WITH_DELTA),
        ("delta", "WRITE", {"mode": "Overwrite", "partitionBy": "[]", **SPARK_DELTA}, "overwrite", SPARK_WITH_DELTA),
        ("delta", "STREAMING UPDATE", {"outputMode": "Append", **SPARK_DELTA}, "append", SPARK_WITH_DELTA),
        ("delta", "STREAMING UPDATE", {"outputMode": "Complete", **SPARK_DELTA}, "overwrite", SPARK_WITH_DELTA),
        ("delta", "OPTIMIZE", {"zOrderBy": '["i"]', "auto": "false", **SPARK_DELTA}, "compaction", SPARK_WITH_DELTA),
        ("delta", "OPTIMIZE", {"zOrderBy": "[]", "auto": "true", **SPARK_DELTA}, "compaction", SPARK_WITH_DELTA),
        ("delta", "DELETE", {"predicate": '["(id#3L = 4)"]', **SPARK_DELTA}, "delete", SPARK_WITH_DELTA),
        ("delta", "MERGE", SPARK_DELTA, "overwrite", SPARK_WITH_DELTA),
        ("delta", "UPDATE", SPARK_DELTA, "overwrite", SPARK_WITH_DELTA),
        ("delta", "RESTORE", {"version": "2", **SPARK_DELTA}, "overwrite", SPARK_WITH_DELTA),
        ("delta", "CREATE TABLE AS SELECT", SPARK_DELTA, "append", SPARK_WITH_DELTA),
        ("delta", "CREATE OR REPLACE TABLE AS SELECT", SPARK_DELTA, "overwrite", SPARK_WITH_DELTA),
        ("delta", "OPTIMIZE", {"engineInfo": "Databricks-Runtime/15.4.x"}, "compaction", "Databricks-Runtime/15.4.x"),
        # zonal
        ("delta", "OPTIMIZE", {**ZONAL, "engineInfo": "zonal/0.1.0"}, "zonal", "zonal 0.1.0"),
        ("delta", "CREATE TABLE AS SELECT", {**ZONAL, "engineInfo": "zonal/0.1.0"}, "zonal", "zonal 0.1.0"),
        ("iceberg", "replace", ZONAL, "zonal", "zonal"),
        ("iceberg", "append", ZONAL, "zonal", "zonal"),
        # PyIceberg 0.12, which leaves no name
        ("iceberg", "append", {"added-data-files": "1"}, "append", ""),
        ("iceberg", "overwrite", {"added-data-files": "2", "deleted-data-files": "2"}, "overwrite", ""),
        ("iceberg", "delete", {"deleted-data-files": "2"}, "delete", ""),
        # Spark's Iceberg 1.12.0
        ("iceberg", "append", {**SPARK_ICEBERG, "spark.app.id": "local-1"}, "append", "Spark 4.1.4"),
        ("iceberg", "replace", SPARK_ICEBERG, "compaction", "Spark 4.1.4"),
        ("iceberg", "overwrite", {**SPARK_ICEBERG, "spark.app.id": "local-1"}, "overwrite", "Spark 4.1.4"),
        ("iceberg", "delete", {**SPARK_ICEBERG, "added-position-delete-files": "4"}, "delete", "Spark 4.1.4"),
        ("iceberg", "append", {"spark.app.id": "local-1"}, "append", "Spark"),
        (
            "iceberg",
            "append",
            {"flink.job-id": "1", "engine-name": "flink", "engine-version": "2.1"},
            "append",
            "Flink 2.1",
        ),
        ("iceberg", "append", {"trino_query_id": "1"}, "append", "Trino"),
        ("iceberg", "unheard-of", {}, "unknown", ""),
        ("delta", "UNKNOWN", {}, "unknown", ""),
    ],
)
def test_what_engines_write_tells_kind_and_writer(table_format, operation, details, kind, writer):
    commit = told_commit(table_format, operation, details)
    assert (commit.kind, writer_of(commit)) == (kind, writer)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_of_an_engine_is_taken(operation, engine):
    commit = told_commit("delta", operation, {"engineInfo": engine})
    assert commit.kind in ("append", "compaction", "delete", "overwrite", "unknown")
    assert writer_of(commit).isprintable()
    assert plain(operation).isprintable()
