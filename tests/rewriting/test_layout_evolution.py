"""Other layouts for rows that arrive: recorded without a rewrite, understood by every verb, changed back for free."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import StringType
from typer.testing import CliRunner

from support.cluster_tables import NEWEST, Meanwhile, assert_same_rows, home, parts_of, telemetry
from support.local_runner import run_here
from zonal.cli import app
from zonal.errors import ConflictError
from zonal.layouts.layout import Layout
from zonal.report.command import repair_command
from zonal.tables.iceberg import layout_commit
from zonal.tables.registry import read_snapshot, table_of
from zonal.verbs.append import append
from zonal.verbs.audit import audit
from zonal.verbs.explain import explain
from zonal.verbs.show import show
from zonal.workload.query import Workload

SIZE = {"target_file_size": 12_000}
TIGHT = {"max_amplification": 1}
"""Under which nothing is moved once all is clustered."""
OTHER = Layout("zorder", ("y", "x"), target_file_bytes=12_000)


def rows_of(count, seed=0):
    draw = np.random.default_rng(seed)
    columns = {name: draw.integers(0, 5000, count) for name in ("x", "y", "z")}
    # What no encoding makes smaller: a rewrite takes about as many bytes as arrived.
    return pa.table({"id": seed * 10**6 + np.arange(count), **columns, "noise": draw.integers(0, 2**62, (3, count))[0]})


def refuse(*_, **__):
    raise AssertionError("no file is worth moving: no runner may start")


def now(table):
    return read_snapshot(table_of(table.name, **table.options))


def data_files(table):
    return {path for path in table.listing() if path.suffix == ".parquet"}


def layouts_of(table):
    """Count the files of each layout's id."""
    ids = now(table).files.layout_ids.to_pylist()
    return {each: ids.count(each) for each in ids}


@pytest.fixture(params=NEWEST)
def clustered(request, tmp_path):
    """A table in zorder(x, y), and its rows."""
    rows = rows_of(6000)
    table = home(request.param, tmp_path).make([rows])
    table.cluster(by=["x", "y"], **SIZE)
    return table, rows


def test_three_layouts_and_back_and_every_verb_understands_them(clustered):
    table, rows = clustered
    first = now(table)
    for seed, columns in enumerate((["y"], ["z", "x"]), start=1):
        there = data_files(table)
        done = table.cluster(runner=refuse, by=columns, **TIGHT)
        assert done.layout_recorded
        assert "too much would be rewritten" in done.note
        assert data_files(table) == there
        recorded = now(table).layout
        assert (recorded.columns, recorded.target_file_bytes) == (tuple(columns), 12_000)
        more = rows_of(1500, seed)
        append(table.name, more, **table.options)
        rows = pa.concat_tables([rows, more])
        assert layouts_of(table)[recorded.id] >= 1, "rows that arrive take the new layout at once"
        assert_same_rows(table.rows(), rows)
        check_mixed(table, rows)
    assert len(layouts_of(table)) == 3
    table.cluster(by=["x", "y"], **TIGHT)
    back = now(table)
    assert back.layout == first.layout
    assert {*first.files.paths.to_pylist()} <= {*back.files.paths.to_pylist()}, "they are in the layout again"
    assert not show(table.name, **table.options).condition.due
    table.cluster(full=True)
    assert set(layouts_of(table)) == {first.layout.id}
    assert_same_rows(table.rows(), rows)


def test_changing_back_at_once_changes_no_file(clustered):
    table, _ = clustered
    first, there = now(table).layout, data_files(table)
    for columns in (["y"], ["z", "x"], ["x", "y"]):
        assert table.cluster(runner=refuse, by=columns, **TIGHT).layout_recorded
    assert now(table).layout == first
    assert data_files(table) == there
    assert show(table.name, **table.options).condition.share_in_layout == 1.0
    assert not table.cluster(runner=refuse).layout_recorded, "and there is nothing left to do"


def check_mixed(table, rows):
    """What `show`, `explain` and `audit` say of a table in several layouts is true."""
    snapshot = now(table)
    sizes = snapshot.files.sizes
    inside = np.array([each == snapshot.layout.id for each in snapshot.files.layout_ids.to_pylist()])
    health = show(table.name, **table.options)
    assert health.files_in_layout == inside.sum()
    assert health.condition.share_in_layout == pytest.approx(sizes[inside].sum() / sizes.sum())
    assert health.condition.share_in_others == pytest.approx(sizes[~inside].sum() / sizes.sum())
    assert health.condition.share_unclustered == 0
    for name in ("x", "y", "z"):
        value = rows[name][17].as_py()
        read = explain(table.name, where=f"{name} = {value}", **table.options)
        values = [pq.read_table(each.path.removeprefix("file://"), columns=[name])[name] for each in read.files]
        held = sum(pc.sum(pc.equal(each, value)).as_py() for each in values)
        assert held == pc.sum(pc.equal(rows[name], value)).as_py(), "all rows are in files that are read"
    found = audit(table.name, queries=Workload.of([f"x = {number}" for number in range(9)]), **table.options)
    assert (found.judgment.outside, found.judgment.in_others) == ((~inside).sum(), (~inside).sum())
    assert found.fresh.recorded
    assert repair_command(found).endswith(" --full"), "nothing is unclustered that a plain run would have to cluster"


def test_a_dry_run_says_that_the_layout_would_be_recorded_and_changes_nothing(clustered):
    table, _ = clustered
    before = table.listing()
    plan = table.plan(by=["z"], **TIGHT)
    assert (plan.change.files, plan.layout_recorded, plan.layout) == (0, True, "zorder(z, file_size=12KB)")
    assert table.listing() == before
    assert not table.plan(**TIGHT).layout_recorded


def test_the_command_line_says_what_is_recorded(tmp_path):
    table = home("delta", tmp_path).make([rows_of(6000)])
    table.cluster(by=["x", "y"], **SIZE)
    asked = ["cluster", table.name, "--by", "z", "--max-amplification", "1"]
    told = " ".join(CliRunner().invoke(app, [*asked, "--dry-run"]).output.split())
    assert "zorder(z, file_size=12KB) would be the layout of" in told
    told = " ".join(CliRunner().invoke(app, asked).output.split())
    assert "zorder(z, file_size=12KB) is the layout of" in told
    assert "Files stay as they are." in told
    last = json.loads(sorted((table.root / "_delta_log").glob("*.json"))[-1].read_text().split("\n")[0])
    assert last["commitInfo"]["operation"] == "SET TBLPROPERTIES"


def test_a_table_without_files_records_its_layout(tmp_path):
    table = home("delta", tmp_path).make([rows_of(10).slice(0, 0)])
    assert table.cluster(runner=refuse, by=["x"]).layout_recorded
    assert now(table).layout.columns == ("x",)


def test_a_condition_that_no_file_meets_changes_no_layout(clustered):
    table, _ = clustered
    assert not table.cluster(runner=refuse, by=["z"], where="x < -5").layout_recorded
    assert now(table).layout.columns == ("x", "y")


@pytest.mark.parametrize("change", ["layout", "schema"])
def test_what_another_writer_changed_meanwhile_is_a_conflict(clustered, change):
    table, _ = clustered
    opened = table_of(table.name, **table.options)
    base = read_snapshot(opened)
    if change == "layout":
        table.cluster(runner=refuse, by=["z"], **TIGHT)
    else:
        _add_column(table)
    with pytest.raises(ConflictError, match="Run it again"):
        opened.newest().record(OTHER, base)
    assert now(table).layout != OTHER


def _add_column(table):
    if isinstance(table.table, DeltaTable):
        table.table.alter.add_columns([Field("more", PrimitiveType("string"))])
    else:
        with table.table.update_schema() as update:
            update.add_column("more", StringType())


def test_an_append_meanwhile_is_none_and_survives(clustered):
    table, rows = clustered
    opened = table_of(table.name, **table.options)
    base = read_snapshot(opened)
    more = rows_of(10, 9)
    table.append(more)
    opened.newest().record(OTHER, base)
    assert now(table).layout == OTHER
    assert_same_rows(table.rows(), pa.concat_tables([rows, more]))


def test_a_rewrite_that_began_before_leaves_the_new_layout_recorded(clustered):
    table, rows = clustered

    def run_late(*given):
        table_of(table.name, **table.options).newest().record(OTHER, now(table))
        return run_here(*given)

    table.cluster(runner=run_late, full=True)
    assert now(table).layout == OTHER
    assert_same_rows(table.rows(), rows)


def test_an_answer_of_the_catalog_that_got_lost_is_looked_up(tmp_path, monkeypatch):
    table = home("iceberg v2", tmp_path).make([rows_of(6000)])
    table.cluster(by=["x", "y"], **SIZE)
    sent, commit = [], layout_commit.commit_updates

    def answerless(*given):
        sent.append(given)
        commit(*given)
        raise CommitFailedException("the second request failed")

    monkeypatch.setattr(layout_commit, "commit_updates", answerless)
    assert table.cluster(runner=refuse, by=["z"], **TIGHT).layout_recorded
    assert len(sent) == 1


@pytest.mark.parametrize("kind", NEWEST)
def test_rows_of_another_schema_that_arrive_during_several_commits_are_clustered_by_the_next(kind, tmp_path):
    """What is due after the first commits is planned by the schema that the table has then."""
    rows, more = telemetry(600), telemetry(600, 1, first=1000)
    table = home(kind, tmp_path).make(parts_of(rows, 3))

    def arrive():
        _add_column(table)
        for part in parts_of(more, 3):
            table.append(part.append_column("more", pa.array(["new"] * len(part))))

    done = table.cluster(by=["x"], target_file_size=4000, commit_every=8000, runner=Meanwhile(arrive))
    assert done.change.rows >= 1200
    found = table.rows()
    assert_same_rows(found.drop_columns("more"), pa.concat_tables([rows, more]))
    assert found["more"].null_count == 600
