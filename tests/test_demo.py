"""The demonstration: real tables, made and judged by the formats' own libraries; numbers are those of `explain`."""

import io
import re
import shlex
import subprocess
import sys
import tempfile

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from rich.console import Console
from typer.testing import CliRunner

import zonal
from cluster_tables import assert_same_rows
from local_runner import run_here
from zonal.cli import app
from zonal.demo import owndata
from zonal.demo.making import CATALOG, IDENTIFIER, catalog_uri
from zonal.demo.showing import run
from zonal.demo.story import Request
from zonal.demo.telemetry import CONDITIONS, telemetry
from zonal.errors import JavaError, ZonalError
from zonal.tables.iceberg import IcebergTable

ROWS, FILES = 20_000, 40


def text_of(request, runner=run_here):
    """Run a demonstration in this process; return its outcomes and what it printed."""
    console = Console(width=100, record=True, file=io.StringIO())
    outcomes = run(console, request, runner=runner)
    return outcomes, console.export_text()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "kept"
    outcomes, text = text_of(Request(ROWS, FILES, into=folder))
    return folder, outcomes, text


def catalog_of(folder):
    return SqlCatalog(CATALOG, uri=catalog_uri(folder / "iceberg"), warehouse=str(folder / "iceberg"))


# --- telemetry -------------------------------------------------------------------------------------------------------


def test_every_payload_belongs_to_one_mission():
    rows = telemetry(100_000)
    pairs = rows.group_by(["payload_id", "mission_id"]).aggregate([])
    assert len(pairs) == pc.count_distinct(rows["payload_id"]).as_py()
    assert pc.count_distinct(rows["mission_id"]).as_py() == 40


def test_telemetry_is_skewed_and_nearly_in_order_of_time():
    rows = telemetry(100_000)
    missions = np.sort(np.bincount(rows["mission_id"].to_numpy()))
    assert missions[-4:].sum() > 0.35 * 100_000, "a tenth of the missions sends more than a third of the rows"
    ts = rows["ts"].cast(pa.int64()).to_numpy()
    behind = (np.maximum.accumulate(ts) - ts) / 3600e6
    assert 0.005 < (behind > 1).mean() < 0.05, "a few rows are more than an hour late"
    assert rows["battery"].null_count > 0
    assert set(pc.utf8_length(rows["trace_id"]).to_pylist()) == {16}
    assert telemetry(1000).equals(telemetry(1000)), "the same rows every time"


# --- tables ----------------------------------------------------------------------------------------------------------


def test_the_tables_keep_their_rows(kept):
    folder, outcomes, _ = kept
    assert [outcome.before.format for outcome in outcomes] == ["delta", "iceberg"]
    assert_same_rows(DeltaTable(str(folder / "delta")).to_pyarrow_table(), telemetry(ROWS))
    assert_same_rows(catalog_of(folder).load_table(IDENTIFIER).scan().to_arrow(), telemetry(ROWS))


def test_the_numbers_are_those_of_explain(kept):
    folder, outcomes, _ = kept
    table = catalog_of(folder).load_table(IDENTIFIER)
    for outcome in outcomes:
        for version, reads in (
            (outcome.before.version, outcome.reads_before),
            (outcome.after.version, outcome.reads_after),
        ):
            if outcome.before.format == "delta":
                opened = f"delta:{folder / 'delta'}@{version}"
            else:
                opened = IcebergTable(IDENTIFIER, table, version=version)
            told = [zonal.explain(opened, where=text, footers=False) for text in CONDITIONS]
            assert [read.files for read in reads] == [found.levels[-1].kept for found in told]
            assert [read.share for read in reads] == pytest.approx([found.share_of_bytes for found in told])


def test_clustering_makes_the_questions_read_less_in_about_as_many_files(kept):
    for outcome in kept[1]:
        before, after = outcome.shares
        assert after < before / 2
        assert outcome.before.files == outcome.clustering.removed_files == pytest.approx(FILES, rel=0.1)
        assert outcome.after.files == outcome.clustering.added_files == pytest.approx(FILES, rel=0.4)
        assert outcome.reads_before[0].share == 1.0, "as it arrives a payload is everywhere"
        assert outcome.reads_after[0].share < 0.4


def test_every_question_finds_rows():
    rows = telemetry(300_000)  # noqa: F841 - DuckDB sees it
    for condition in CONDITIONS:
        ((count,),) = duckdb.sql(f"SELECT count(*) FROM rows WHERE {condition}").fetchall()
        assert 0 < count < 2_000, condition


def test_the_printed_commands_run(kept):
    *_, text = kept
    commands = re.findall(r"^ +zonal (.+)$", text, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        told = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert told.exit_code == 0, command
        assert f"{ROWS:,} rows" in told.output or "payload_id = 4711" in told.output


def test_other_columns_are_asked_by_look_ups(tmp_path):
    (outcome,), text = text_of(Request(5_000, 10, ("delta",), by=("sensor", "value"), into=tmp_path / "kept"))
    assert [question.text for question in outcome.questions] == [
        "sensor = ?", "value = ?", "1 % of sensor", "1 % of value", "5 % of each",
    ]  # fmt: skip
    assert outcome.reads_after[0].share < outcome.reads_before[0].share
    assert "zorder(sensor, value" in text


# --- a user's own data -----------------------------------------------------------------------------------------------


@pytest.fixture
def orders(tmp_path):
    path = tmp_path / "orders.parquet"
    names = pa.array([{"name": f"n{i * 7919 % 50:02d}"} for i in range(2000)])
    when = pa.array(np.arange(2000) * 1001 * 10**9, pa.timestamp("ns"))
    pq.write_table(pa.table({"who": names, "when": when, "[red]": [1.5] * 1999 + [float("nan")]}), path)
    return path


def test_own_data_is_asked_by_look_ups_and_ranges(orders):
    (outcome,), text = text_of(Request(0, 20, ("delta",), data=orders, by=("when", "who.name", "[red]")))
    assert "[red] = ?" in text, "a name is text, not markup"
    shares = {
        q.text: (b.share, a.share)
        for q, b, a in zip(outcome.questions, outcome.reads_before, outcome.reads_after, strict=True)
    }
    assert shares["who.name = ?"][1] < 0.5 * shares["who.name = ?"][0]
    assert shares["[red] = ?"][1] == 1.0, "a constant skips nothing"
    assert outcome.before.rows == outcome.after.rows == 2000


def test_too_much_data_is_refused_with_the_way_that_works(orders, monkeypatch):
    monkeypatch.setattr(owndata, "MOST_BYTES", 1000)
    with pytest.raises(ZonalError, match=r"too much for the demo.*zonal cluster parquet:PATH --by when --into delta:"):
        text_of(Request(0, 20, ("delta",), data=orders, by=("when",)))


def test_data_that_delta_cannot_hold_is_refused(tmp_path):
    pq.write_table(pa.table({"x": range(100), "at": pa.array(range(100), pa.time64("us"))}), tmp_path / "t.parquet")
    with pytest.raises(ZonalError, match="can't be written as a table of Delta"):
        text_of(Request(0, 20, ("delta",), data=tmp_path / "t.parquet", by=("x",)))


def test_own_data_goes_through_delta_only(orders):
    with pytest.raises(ZonalError, match="leave out --format"):
        text_of(Request(0, 20, data=orders, by=("when",)))


# --- what is left ----------------------------------------------------------------------------------------------------


def failing(error):
    def runner(*_):
        raise error

    return runner


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZonalError("no"), None])
def test_nothing_is_left_of_a_run_without_into(tmp_path, monkeypatch, error):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    request = Request(2_000, 4)
    if error is None:
        text_of(request)
    else:
        with pytest.raises(type(error)):
            text_of(request, failing(error))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("was_there", [False, True])
def test_nothing_is_left_of_an_interrupted_run_with_into(tmp_path, was_there):
    into = tmp_path / "kept"
    if was_there:
        into.mkdir()
    with pytest.raises(KeyboardInterrupt):
        text_of(Request(2_000, 4, into=into), failing(KeyboardInterrupt()))
    assert into.exists() == was_there
    assert not was_there or list(into.iterdir()) == []


def test_a_folder_that_a_catalog_cannot_name_is_refused(tmp_path):
    with pytest.raises(ZonalError, match="mean something in a catalog's address"):
        text_of(Request(2_000, 4, into=tmp_path / "what?"))


# --- Spark -----------------------------------------------------------------------------------------------------------


def test_a_missing_spark_is_said_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("zonal.spark.session.find_spec", lambda _: None)
    with pytest.raises(ZonalError, match=r"pip install 'zonal\[spark\]'"):
        text_of(Request(2_000, 4, into=tmp_path / "kept"), None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_a_missing_java_is_said_before_anything_is_made(tmp_path):
    code = "import zonal.spark.java as java, zonal.cli\njava._candidates = lambda: iter(())\nzonal.cli.main()\n"
    command = [sys.executable, "-c", code, "demo", "--into", str(tmp_path / "kept")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "Install OpenJDK 17 or 21" in told.stderr
    assert list(tmp_path.iterdir()) == []
    assert JavaError.__name__ not in told.stderr


@pytest.mark.spark
def test_the_command_runs_on_spark_and_prints_nothing_else(tmp_path):
    command = [sys.executable, "-m", "zonal.cli", "demo", "--rows", "20000", "--files", "8", "--format", "delta"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=None, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stderr == ""
    assert told.stdout.startswith("delta: 8 files")
    assert "times less" in told.stdout
    assert list(tmp_path.iterdir()) == []
