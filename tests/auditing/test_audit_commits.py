"""Commits over the life of a table: who made them, what they widened, and who is the culprit."""

from pathlib import Path

import numpy as np
import pytest

from support.audit_life import COMPACTED_BYTES, DELETED_BELOW, HOPELESS, QUERIES, ROWS, STAGES, Life
from support.commit_audits import TIMES, nowhere, opened, replay_of, versions_of, width
from zonal.auditing.blame.commits import commits_of

ONES = {"x": 1.0, "t": 1.0}


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
    assert f"widened x {f'{times:.1f}'.removesuffix('.0')}{TIMES}" in commit.sentence
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
