"""`cluster` with queries: layouts that are learned from them, and any layout held against what they read."""

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from support.cluster_tables import assert_same_rows, home, parts_of
from zonal.cli import app
from zonal.errors import LayoutError, TableError
from zonal.layouts.layout import Layout
from zonal.rewriting.done import RewrittenFiles
from zonal.rewriting.in_place import Expected
from zonal.rewriting.lessons import learn
from zonal.workload.query import Workload

KINDS = ["delta", "iceberg v2"]
SIZE = 30_000


def events(rows=40_000, seed=0):
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "time": pa.array(draw.integers(0, 1_000_000, rows)),
            "tenant": pa.array(draw.zipf(1.4, rows) % 500),
            "kind": pa.array(draw.choice(["view", "click", "buy"], rows).tolist()),
            "amount": pa.array(draw.normal(size=rows)),
        }
    )


def dashboard(count=40, seed=1):
    draw = np.random.default_rng(seed)
    found = []
    for number in range(count):
        start = int(draw.integers(0, 900_000))
        ranged = f"time BETWEEN {start} AND {start + 20_000}"
        tenant = f"tenant = {int(draw.integers(1, 40))}"
        found.append((ranged, tenant, f"{tenant} AND {ranged}", f"kind = 'buy' AND {ranged}")[number % 4])
    return found


def log_in(folder, name="t", conditions=None):
    log = folder / "queries.sql"
    log.write_text("".join(f"SELECT * FROM {name} WHERE {each};\n" for each in conditions or dashboard()))
    return log


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["tree", "auto"])
def test_a_learned_layout_is_applied_and_held_against_its_prediction(kind, layout, tmp_path):
    before = events()
    table = home(kind, tmp_path).make(parts_of(before, 4))
    done = table.cluster(layout=layout, queries=[log_in(tmp_path)], target_file_size=SIZE)
    assert_same_rows(table.rows(), before)
    assert done.predicted.share_before == pytest.approx(1.0)
    assert done.predicted.share_after < 0.5
    assert done.predicted.share_predicted == pytest.approx(done.predicted.share_after, rel=0.15, abs=0.01)
    assert done.predicted.queries == 38, "all of them: of 40, two are asked twice"
    again = table.cluster(layout=Layout.parse(done.layout))
    assert again.run.versions == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["zorder", "linear"])
def test_a_given_layout_is_held_against_what_queries_were_predicted_to_read(kind, layout, tmp_path):
    table = home(kind, tmp_path).make(parts_of(events(), 4))
    asked = {"by": ["time", "tenant"], "layout": layout, "queries": [log_in(tmp_path)], "target_file_size": SIZE}
    plan = table.plan(**asked)
    done = table.cluster(**asked)
    assert Layout.parse(done.layout).kind == layout
    assert done.predicted.queries == 38, "all of them: nothing was chosen with them"
    assert (plan.reads.share_before, plan.reads.share_predicted) == (
        done.predicted.share_before,
        done.predicted.share_predicted,
    )
    assert done.predicted.share_after < 0.9 * done.predicted.share_before
    assert done.predicted.share_predicted == pytest.approx(done.predicted.share_after, rel=0.15, abs=0.01)
    assert done.note == ""


@pytest.mark.parametrize("kind", ["auto", "tree"])
@pytest.mark.parametrize("keys", [[], ["kind"]])
def test_the_same_layout_and_log_give_the_same_numbers_however_it_was_chosen(tmp_path, kind, keys):
    table = home("delta", tmp_path).make(parts_of(events(), 4), keys)
    asked = {"queries": [log_in(tmp_path)], "target_file_size": SIZE}
    learned = table.plan(layout=kind, **asked)
    given = table.plan(layout=Layout.parse(learned.layout), **asked)
    assert learned.reads == given.reads


def test_what_is_predicted_of_the_whole_table_is_told_where_a_part_is_rewritten(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(), 4))
    table.cluster(by=["time"], target_file_size=SIZE)
    clustered = len(table.files())
    table.append(events(8000, seed=5))
    done = table.cluster(queries=[log_in(tmp_path)])
    assert done.change.removed_files == 1
    assert done.predicted is not None
    assert done.note.startswith(f"1 of {clustered + 1} files were rewritten: what was predicted is of the whole table")


@pytest.mark.parametrize("kind", KINDS)
def test_every_rewrite_tells_how_many_files_and_bytes_were_expected(kind, tmp_path):
    table = home(kind, tmp_path).make(parts_of(events(), 4))
    plan = table.plan(by=["time", "tenant"], target_file_size=SIZE)
    done = table.cluster(by=["time", "tenant"], target_file_size=SIZE)
    assert (done.change.predicted_files, done.change.predicted_bytes) == (
        plan.change.new_files,
        pytest.approx(plan.change.new_bytes, rel=0.01),
    )
    assert done.change.predicted_files == pytest.approx(done.change.added_files, rel=0.1)
    assert done.change.predicted_bytes == pytest.approx(done.change.added_bytes, rel=0.15)
    copied = table.cluster(by=["time"], target_file_size=SIZE, into=f"delta:{tmp_path / 'copy'}")
    assert copied.change.predicted_files == pytest.approx(copied.change.added_files, rel=0.1)


def test_a_picture_that_cant_be_drawn_hides_no_commit(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("cannot convert float NaN to integer")

    monkeypatch.setattr("zonal.rewriting.outcome.compared", broken)
    table = home("delta", tmp_path).make(parts_of(events(2000), 2))
    done = table.cluster(by=["time"], picture=True)
    assert (done.run.versions, done.picture) == ((table.version(),), None)
    assert "It can't be drawn: ValueError('cannot convert float NaN to integer')" in done.note


def test_what_was_expected_of_partitions_that_were_lost_does_not_count():
    expected = Expected(np.array([0, 0, 1]), np.array([50, 60, 70]))
    assert expected.without().change == RewrittenFiles(predicted_files=3, predicted_bytes=180)
    assert expected.without([0]).change == RewrittenFiles(predicted_files=1, predicted_bytes=70)


def test_files_that_come_later_are_cut_by_the_recorded_tree(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(), 4))
    first = table.cluster(layout="tree", queries=Workload.of(dashboard()), target_file_size=SIZE)
    table.append(events(8000, seed=5))
    second = table.cluster()
    assert second.layout == first.layout
    assert second.change.removed_files == 1
    assert second.change.rows == 8000


def test_a_table_that_its_queries_read_whole_is_left_as_it_is(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(2000), 2))
    before = table.listing()
    everything = Workload.of([f"time >= {-number}" for number in range(12)])
    done = table.cluster(layout="auto", queries=everything, target_file_size=SIZE)
    assert (done.run.versions, done.change.added_files) == ((), 0)
    assert done.note.startswith("Leave it")
    plan = table.plan(layout="auto", queries=everything, target_file_size=SIZE)
    assert (plan.change.files, plan.note) == (0, done.note)
    assert table.listing() == before


def test_a_dry_run_predicts_what_queries_will_read(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(), 4))
    before = table.listing()
    asked = {"layout": "tree", "queries": Workload.of(dashboard()), "target_file_size": SIZE}
    plan = table.plan(**asked)
    assert table.listing() == before
    assert plan.reads.share_predicted < plan.reads.share_before
    done = table.cluster(**asked)
    assert plan.reads.share_predicted == pytest.approx(done.predicted.share_predicted)
    assert plan.layout == done.layout


def test_a_copy_takes_a_learned_layout_too(tmp_path):
    before = events(20_000)
    table = home("delta", tmp_path).make(parts_of(before, 2))
    target = f"delta:{tmp_path / 'copy'}"
    done = table.cluster(layout="tree", queries=Workload.of(dashboard()), target_file_size=SIZE, into=target)
    assert done.table.endswith("copy")
    assert done.predicted.share_after < 0.6
    assert len(table.files()) == 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"layout": "tree"}, "give their logs"),
        ({"layout": "auto"}, "give their logs"),
        ({"queries": Workload.of(["time = 1"])}, "layout='auto' or layout='tree'"),
        ({"layout": "tree", "by": ["time"], "queries": Workload.of(["time = 1"])}, "leave out by"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(asked, told, tmp_path):
    table = home("delta", tmp_path).make([events(100)])
    with pytest.raises(LayoutError, match=told):
        table.cluster(**asked)


def test_queries_from_which_nothing_can_be_learned_are_an_error(tmp_path):
    table = home("delta", tmp_path).make([events(100)])
    other = [log_in(tmp_path, name="another_table")]
    with pytest.raises(TableError, match="No layout can be learned"):
        table.cluster(layout="tree", queries=other)
    with pytest.raises(TableError, match=r"can't be predicted\. No query in the logs reads it"):
        table.cluster(by=["time"], queries=other)
    assert table.version() == 0, "refused before any work"


def test_learning_is_the_same_every_time(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(), 2))
    from zonal.tables.registry import open_table, read_snapshot

    opened = open_table(table.name)
    found = {
        str(learn("tree", opened, read_snapshot(opened), Workload.of(dashboard()), target_file_bytes=SIZE).layout)
        for _ in range(2)
    }
    assert len(found) == 1


def test_the_command_plans_a_learned_layout_and_hides_its_cuts(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(), 4))
    command = ["cluster", table.name, "--layout", "tree", "--queries", str(log_in(tmp_path)), "--dry-run"]
    command += ["--target-file-size", "30000B", "--hide-literals", "--output", "json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["share_predicted"] < told["share_before"]
    assert "cuts" not in told["layout"]
