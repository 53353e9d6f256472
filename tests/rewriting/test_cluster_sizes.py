"""The size of new files where nobody asks for one: told, recorded, and kept by later runs and other columns."""

import json

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from support.cluster_tables import NEWEST, home
from zonal.cli import app
from zonal.plan import file_size
from zonal.tables.registry import read_snapshot, table_of
from zonal.values.sizes import format_size
from zonal.verbs.append import append


def rows_of(count, seed=0):
    draw = np.random.default_rng(seed)
    columns = {name: draw.integers(0, 2**40, count) for name in ("x", "y", "z")}
    return pa.table({"id": seed * 10**6 + np.arange(count), **columns})


def refuse(*_, **__):
    raise AssertionError("nothing is due: no runner may start")


def now(table):
    return read_snapshot(table_of(table.name, **table.options))


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Let tables of some hundred kilobytes have several files."""
    monkeypatch.setattr(file_size, "LEAST", 512)
    monkeypatch.setattr(file_size, "ONE_GIB_FILES", 4096)


@pytest.mark.parametrize("kind", NEWEST)
def test_a_size_that_suits_the_table_is_told_and_recorded_and_stays(kind, tmp_path):
    table = home(kind, tmp_path).make([rows_of(8_000)])
    suited = file_size.suited(int(now(table).files.sizes.sum()))
    plan = table.plan(by=["x", "y"])
    done = table.cluster(by=["x", "y"])
    assert (plan.change.file_size, done.change.file_size) == (suited, suited)
    assert plan.change.file_size_reason.startswith("which suits a table of ")
    assert done.change.file_size_reason == plan.change.file_size_reason
    assert done.layout == "zorder(x, y)", "nobody asked for it, so the layout doesn't insist on it"
    assert done.change.added_files > 4
    recorded = now(table).layout
    assert recorded.fitted_file_bytes == suited
    assert recorded.target_file_bytes is None
    for seed in range(1, 4):
        table.append(rows_of(8_000, seed))
        assert table.cluster().change.file_size == suited, "the table is at most four times as large"
    assert not table.cluster(runner=refuse).run.versions
    full = table.cluster(full=True)
    assert full.change.file_size == 2 * suited
    assert now(table).layout.fitted_file_bytes == 2 * suited
    assert now(table).layout.id == recorded.id


@pytest.mark.parametrize("kind", NEWEST)
def test_a_table_that_outgrew_its_size_takes_the_new_one_with_new_files(kind, tmp_path):
    table = home(kind, tmp_path).make([rows_of(1_000)])
    table.cluster(by=["x", "y"])
    first = now(table)
    table.append(rows_of(30_000, 1))
    done = table.cluster()
    assert done.change.file_size > 2 * first.layout.fitted_file_bytes
    after = now(table)
    assert after.layout.fitted_file_bytes == done.change.file_size
    assert {*first.files.paths.to_pylist()} <= {*after.files.paths.to_pylist()}, "files of the first run stay"
    assert all(each == after.layout.id for each in after.files.layout_ids.to_pylist())


@pytest.mark.parametrize("kind", NEWEST)
def test_other_columns_keep_a_size_that_was_asked_for(kind, tmp_path):
    table = home(kind, tmp_path).make([rows_of(4_000)])
    table.cluster(by=["x", "y"], target_file_size="20KB")
    plan = table.plan(by=["z"], full=True)
    assert (plan.layout, plan.change.file_size_reason) == ("zorder(z, file_size=20KB)", "as the table's layout has it")
    assert table.cluster(by=["z"], full=True).layout == "zorder(z, file_size=20KB)"
    assert table.cluster(layout="hilbert(x)", full=True, target_file_size="30KB").layout == "hilbert(x, file_size=30KB)"


def test_the_tables_own_property_comes_before_its_size(tmp_path):
    table = home("delta", tmp_path).make([rows_of(4_000)])
    DeltaTable(table.root).alter.set_table_properties({"delta.targetFileSize": "16kb"}, raise_if_not_exists=False)
    done = table.cluster(by=["x", "y"])
    assert done.change.file_size == 16 * 1024
    assert done.change.file_size_reason == "as the table property delta.targetFileSize has it"


def test_rows_that_are_appended_to_an_empty_table_count(tmp_path):
    table = home("delta", tmp_path).make([rows_of(8_000).slice(0, 0)])
    append(table.name, rows_of(8_000), by=["x", "y"])
    assert now(table).layout.fitted_file_bytes == file_size.suited(int(now(table).files.sizes.sum()))
    assert len(now(table).files) > 4


def test_the_command_line_tells_the_size_and_why(tmp_path):
    table = home("delta", tmp_path).make([rows_of(8_000)])
    suited = file_size.suited(int(now(table).files.sizes.sum()))
    asked = ["cluster", table.name, "--by", "x,y", "--dry-run"]
    told = " ".join(CliRunner().invoke(app, asked).output.split())
    assert f"file size {format_size(suited)}, which suits a table of " in told
    document = json.loads(CliRunner().invoke(app, [*asked, "--output", "json"]).output)
    assert document["file_size"] == suited
    assert document["file_size_reason"].startswith("which suits")
