"""Which files a run takes, in how many commits, and what its plan says of that."""

from dataclasses import replace

import numpy as np
import pytest

import zonal
from support.cluster_tables import (
    IN_PLACE,
    NEWEST,
    Delta,
    assert_same_rows,
    home,
    never,
    parts_of,
    rows_in,
    telemetry,
)
from zonal.errors import ZonalError
from zonal.layouts.layout import Layout
from zonal.study.sample import survey


@pytest.mark.parametrize("kind", NEWEST)
def test_where_leaves_files_alone_that_cant_match(kind, tmp_path):
    before = telemetry(900).sort_by("id")
    table = home(kind, tmp_path).make(parts_of(before, 3))
    spared = [file.path for file in table.files() if min(rows_in(file)) < 600]
    done = table.cluster(by="x", where="id >= 650")
    assert done.change.removed_files == 1
    assert set(spared) < {file.path for file in table.files()}
    assert_same_rows(table.rows(), before)
    assert table.cluster(by="x", where="id >= 650", runner=never).run.versions == ()
    assert table.cluster(by="x").change.removed_files == 3, "the partition becomes one file"


@pytest.mark.parametrize("kind", NEWEST)
def test_where_takes_whole_partitions_by_their_value(kind, tmp_path):
    before = telemetry(300)
    table = home(kind, tmp_path).make(parts_of(before, 2), ["p"])
    spared = {file.path for file in table.files() if file.partition != ("b",)}
    done = table.cluster(by="x", where="p = 'b'")
    assert (done.change.removed_files, done.change.added_files) == (2, 1)
    assert spared < {file.path for file in table.files()}
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
def test_runs_of_bounded_size_come_to_an_end(kind, tmp_path):
    before = telemetry(900)
    table = home(kind, tmp_path).make(parts_of(before, 3), ["p"])
    most = int(max(sum(f.size for f in table.files() if f.partition == (p,)) for p in "abc") * 1.2)
    rewritten = []
    for _ in range(3):
        done = table.cluster(by="x", max_bytes=most)
        assert 0 < done.change.removed_bytes <= most
        rewritten.append(done.change.removed_files)
        assert_same_rows(table.rows(), before)
    assert rewritten == [3, 3, 3], "a partition at a time"
    assert table.cluster(by="x", max_bytes=most, runner=never).run.versions == ()


def test_a_run_smaller_than_a_partition_takes_some_of_its_files_and_one_smaller_than_a_file_is_refused(tmp_path):
    before = telemetry(900)
    table = Delta(tmp_path).make(parts_of(before, 4))
    sizes = [file.size for file in table.files()]
    done = table.cluster(by="x", max_bytes=int(2.5 * max(sizes)))
    assert done.change.removed_files == 2
    assert_same_rows(table.rows(), before)
    with pytest.raises(ZonalError, match=r"can't rewrite any file.*Raise scope=Scope\(max_bytes=…\)"):
        table.cluster(by="x", max_bytes="10B", full=True, runner=never)


@pytest.mark.parametrize("kind", NEWEST)
@pytest.mark.parametrize("partitioning", [(), ("p",)], ids=["unpartitioned", "partitioned"])
def test_a_run_in_several_commits_does_all_of_it(kind, partitioning, tmp_path):
    before = telemetry(900)
    table = home(kind, tmp_path).make(parts_of(before, 6), partitioning)
    total, old = sum(file.size for file in table.files()), len(table.files())
    plan = table.plan(by="x", commit_every=total // 3 + 2000)
    steps = []
    done = table.cluster(by="x", commit_every=total // 3 + 2000, progress=steps.append)
    assert len(done.run.versions) == plan.change.commits == 3
    assert len(set(done.run.versions)) == 3
    assert (done.change.removed_files, done.change.rows) == (old, 900)
    assert {(step.commit, step.commits) for step in steps if step.name == "committing"} == {(1, 3), (2, 3), (3, 3)}
    assert_same_rows(table.rows(), before)
    assert table.cluster(by="x", runner=never).run.versions == ()


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_plan_writes_nothing_and_says_what_a_run_does(kind, tmp_path):
    before = telemetry(3000)
    table = home(kind, tmp_path).make(parts_of(before, 3), ["p"])
    version, listing = table.version(), table.listing()
    plan = table.plan(by=["x", "y"], target_file_size=8000)
    assert (table.version(), table.listing()) == (version, listing)
    done = table.cluster(by=["x", "y"], target_file_size=8000)
    assert (plan.change.files, plan.change.bytes, plan.change.rows) == (
        done.change.removed_files,
        done.change.removed_bytes,
        done.change.rows,
    )
    assert (plan.change.partitions, plan.change.commits, plan.layout) == (3, 1, done.layout)
    assert plan.change.new_files == pytest.approx(done.change.added_files, rel=0.2)
    assert plan.change.new_bytes == pytest.approx(done.change.added_bytes, rel=0.3)
    assert plan.time.seconds > 0
    nothing = table.plan()
    empty = nothing.change
    assert (empty.files, empty.bytes, empty.rows, empty.commits, empty.new_files) == (0, 0, 0, 0, 0)


def test_a_trial_counts_the_time_of_reading_and_of_sorting_by_the_rows_of_each(tmp_path, monkeypatch):
    """A thousand rows are read in 10 s, their keys found in 5, and two row groups of them written in 20 s."""
    table = home("delta", tmp_path).make([telemetry(1000)])
    clock = iter([0.0, 10.0, 15.0, 100.0, 120.0])
    monkeypatch.setattr("zonal.study.row_trial.time.process_time", lambda: next(clock))
    layout = replace(Layout("zorder", ("x", "y")), row_group_rows=400)
    opened = zonal.open_table(table.name)
    snapshot = opened.snapshot()
    writing = opened.writing(snapshot, layout=layout, run="r")
    found = survey(opened.scan(snapshot, np.arange(1)), writing, layout)
    assert found.sizes.row_seconds == pytest.approx(10 / 1000 + 5 / 1000 + 20 / 800)
