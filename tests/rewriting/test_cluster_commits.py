"""`cluster --commit-every`: files of several commits skip as those of one, or it says so before."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from support.cluster_tables import assert_same_rows, home, parts_of
from zonal.cli import app
from zonal.errors import RanksError
from zonal.layouts.ranks import ColumnRanks, Ranks
from zonal.report.terminal.progress import rewrite_bar
from zonal.values.progress import Step

ROWS, PARTS = 60_000, 24


def readings(order):
    draw = np.random.default_rng(1)
    time = np.sort(draw.integers(0, 10**9, ROWS))
    table = pa.table({"time": time, "device": draw.integers(0, 10**6, ROWS), "value": draw.random(ROWS)})
    return table if order == "time" else table.take(draw.permutation(ROWS))


def made(folder, order):
    table = home("delta", folder).make(parts_of(readings(order), PARTS))
    return table, sum(file.path.stat().st_size for file in table.files())


def shares(done):
    return {depth.column: depth.after / done.lookups.files_after for depth in done.lookups.depths}


def rewritten(folder, order, commits, by):
    table, size = made(folder, order)
    every = {} if commits == 1 else {"commit_every": size // commits + size // PARTS // 2}
    done = table.cluster(by=by, target_file_size=size // 64, **every)
    assert len(done.run.versions) == commits
    return table, shares(done)


@pytest.mark.parametrize("by", [["time", "device"], ["device", "time"]])
def test_commits_of_a_table_that_arrived_in_order_skip_as_well_as_one(tmp_path, by):
    """Whichever column comes first: they are ranges of time, and share the ranks of one commit."""
    _, once = rewritten(tmp_path / "once", "time", 1, by)
    table, several = rewritten(tmp_path / "several", "time", 6, by)
    assert_same_rows(table.rows(), readings("time"))
    assert max(several[name] / once[name] for name in by) < 1.5, (once, several)


def test_each_commit_of_a_table_that_arrived_in_order_is_a_range_of_time(tmp_path):
    table, size = made(tmp_path, "time")
    done = table.cluster(by=["device", "time"], target_file_size=size // 64, commit_every=size // 4 + size // PARTS)
    ranges = []
    for version in done.run.versions:
        before, after = (set(_files_at(table, number)) for number in (version - 1, version))
        times = [pa.parquet.read_table(path, columns=["time"])["time"] for path in after - before]
        ranges.append(
            (min(pa.compute.min(each).as_py() for each in times), max(pa.compute.max(each).as_py() for each in times))
        )
    ranges.sort()
    assert all(end < start for (_, end), (start, _) in pairwise(ranges)), ranges


def _files_at(table, version):
    from deltalake import DeltaTable

    return DeltaTable(table.root, version=version).file_uris()


@pytest.mark.parametrize("order", ["time", "random"])
def test_what_look_ups_read_after_several_commits_is_predicted(tmp_path, order):
    table, size = made(tmp_path / "t", order)
    options = {"by": ["time", "device"], "target_file_size": size // 64, "commit_every": size // 4 + size // PARTS // 2}
    plan = table.plan(**options)
    once = rewritten(tmp_path / "once", order, 1, ["time", "device"])[1]
    several = shares(table.cluster(**options))
    assert [each.column for each in plan.lookups] == ["time", "device"]
    for each in plan.lookups:
        assert each.at_once == pytest.approx(once[each.column], rel=0.25)
        assert each.in_commits == pytest.approx(several[each.column], rel=0.25)


def test_what_several_commits_cost_is_said_before_the_first_one(tmp_path):
    table, size = made(tmp_path, "random")
    options = {"by": ["time", "device"], "target_file_size": size // 64}
    steps = []
    table.cluster(**options, commit_every=size // 4 + size // PARTS // 2, progress=steps.append)
    noted = [at for at, step in enumerate(steps) if step.notice]
    assert len(noted) == 1
    assert noted[0] < next(at for at, step in enumerate(steps) if step.name == "sampling")
    assert "After 4 commits look-ups are predicted to read 2" in steps[noted[0]].notice


def test_a_table_that_arrived_in_order_has_nothing_to_be_told(tmp_path):
    table, size = made(tmp_path, "time")
    steps = []
    table.cluster(
        by=["device", "time"],
        target_file_size=size // 16,
        commit_every=size // 2 + size // PARTS,
        progress=steps.append,
    )
    assert not [step.notice for step in steps if step.notice]


def test_a_dry_run_prints_what_several_commits_cost(tmp_path):
    table, size = made(tmp_path, "random")
    asked = ["cluster", table.name, "--by", "time,device", "--target-file-size", f"{size // 64}B", "--dry-run"]
    several = CliRunner().invoke(app, [*asked, "--commit-every", f"{size // 4 + size // PARTS // 2}B"]).output
    assert "look-up       one time: 2" in several
    assert "Leave out --commit-every" in several
    once = CliRunner().invoke(app, asked).output
    assert "look-up" not in once
    assert "--commit-every" not in once


def test_what_is_to_be_known_is_printed_without_a_terminal_too(capsys):
    with rewrite_bar() as report:
        report(Step("planning the commits", notice="After 4 commits \x1b[31m"))
    assert capsys.readouterr().err == "After 4 commits \\x1b[31m\n"


@pytest.mark.parametrize("bits", [4, 16, 32])
def test_ranks_in_a_slot_keep_their_order_and_to_their_part_of_the_codes(bits):
    values = pa.chunked_array([pa.array([None, *range(-500, 500)])])
    fitted = ColumnRanks.fit(pa.chunked_array([pa.array([None, *range(0, 300, 3)])]))
    for slot in range(4):
        ranks = ColumnRanks.from_dict(json.loads(json.dumps(fitted.within(slot, 4).to_dict())))
        null, *codes = ranks.codes(values, bits).tolist()
        assert null == 0, "nulls alone have it"
        assert codes == sorted(codes)
        assert max(1, slot * 2**bits // 4) <= codes[0]
        assert codes[-1] < (slot + 1) * 2**bits // 4
        assert ranks.codes(values, bits).tolist() == fitted.within(slot, 4).codes(values, bits).tolist()


@pytest.mark.parametrize("slot", [[4, 4], [-1, 2], [0, 3], [0, 2**17], [0], "ab", None])
def test_a_slot_that_is_none_is_refused(slot):
    stored = ColumnRanks.fit(pa.chunked_array([[1, 2]])).to_dict() | {"slot": slot}
    with pytest.raises(RanksError, match="can't be read"):
        ColumnRanks.from_dict(stored)


def test_ranks_that_no_longer_fit_a_column_are_fitted_again():
    """Between two commits another writer may make a column wider."""
    ranks = Ranks.fit(pa.table({"a": [1, 2], "b": ["x", "y"]}), ["a", "b"])
    assert ranks.fit_for(pa.table({"a": pa.array([1], pa.int32()), "b": ["z"]}), ["a", "b"])
    assert not ranks.fit_for(pa.table({"a": ["1"], "b": ["z"]}), ["a", "b"])
    assert not ranks.fit_for(pa.table({"a": [[1]], "b": ["z"]}), ["a"])
    assert not ranks.fit_for(pa.table({"a": [1], "c": ["z"]}), ["c"])
