"""The demonstration: real tables, made and judged by the formats' own libraries; its numbers are the verbs'."""

import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from types import NoneType

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
from support.cluster_tables import assert_same_rows
from support.local_runner import run_here
from zonal.advising import verdict as deciding
from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.cli import app
from zonal.demo import own_data as owndata
from zonal.demo.chapters import Compacted, Compared
from zonal.demo.query_log import NAME, kinds, log_text
from zonal.demo.story import LOG, DemoRequest, history_url
from zonal.demo.telemetry import CONDITIONS, telemetry
from zonal.demo.terminal import run
from zonal.demo.writers import CATALOG, IDENTIFIER, catalog_uri
from zonal.errors import JavaError, ZonalError
from zonal.history.store import History
from zonal.rewriting.outcome import Clustering
from zonal.tables.iceberg.table import IcebergTable
from zonal.verbs.show import TableHealth

ROWS, FILES = 20_000, 40


def text_of(request, runner=run_here):
    """Run a demonstration in this process; return its outcomes and what it printed."""
    console = Console(width=100, record=True, file=io.StringIO())
    outcomes = run(console, request, runner=runner)
    return outcomes, console.export_text()


@pytest.fixture(autouse=True)
def pages_in(tmp_path_factory, monkeypatch):
    """Let pages without a name lie in a folder of the tests."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "kept"
    outcomes, text = text_of(DemoRequest(ROWS, FILES, into=folder))
    return folder, outcomes, text


def results_of(outcome, kind):
    return [chapter.result for chapter in outcome.chapters if isinstance(chapter.result, kind)]


def catalog_of(folder):
    return SqlCatalog(CATALOG, uri=catalog_uri(folder / "iceberg"), warehouse=str(folder / "iceberg"))


def pinned(folder, form, version):
    """Open a kept table at a version."""
    if form == "delta":
        return f"delta:{folder / 'delta'}@{version}"
    return IcebergTable(IDENTIFIER, catalog_of(folder).load_table(IDENTIFIER), version=version)


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


# --- the story -------------------------------------------------------------------------------------------------------


def test_each_table_lives_through_the_whole_story(kept):
    _, outcomes, text = kept
    assert [outcome.format for outcome in outcomes] == ["delta", "iceberg"]
    for outcome in outcomes:
        assert [type(chapter.result) for chapter in outcome.chapters] == [
            TableHealth, Advice, Clustering, Compared, Audit, Compacted, Audit, Clustering, Audit,
        ]  # fmt: skip
        headings = re.findall(rf"^{outcome.format} (\d) · (\w+)", text, re.MULTILINE)
        verbs = ["show", "advise", "cluster", "explain", "audit", "another", "audit", "cluster", "audit"]
        assert headings == [(str(number), verb) for number, verb in enumerate(verbs, 1)]


def test_the_tables_keep_their_rows(kept):
    folder, *_ = kept
    assert_same_rows(DeltaTable(str(folder / "delta")).to_pyarrow_table(), telemetry(ROWS))
    assert_same_rows(catalog_of(folder).load_table(IDENTIFIER).scan().to_arrow(), telemetry(ROWS))


def test_clustering_makes_the_queries_read_less_in_about_as_many_files(kept):
    for outcome in kept[1]:
        (arrived,), (compared,) = results_of(outcome, TableHealth), results_of(outcome, Compared)
        before, after = compared.shares
        assert after < before / 2
        assert compared.before[0].share > 0.99, "as it arrives a payload is everywhere"
        assert compared.after[0].share < 0.4
        first, again = results_of(outcome, Clustering)
        assert arrived.table.files == first.change.removed_files == pytest.approx(FILES, rel=0.1)
        assert first.change.added_files == pytest.approx(FILES, rel=0.4)
        assert again.layout == first.layout, "the table remembers it"


def test_the_prediction_is_near_what_came_out(kept):
    for outcome in kept[1]:
        told = results_of(outcome, Clustering)[0].predicted
        assert told.share_after == pytest.approx(told.share_predicted, rel=0.25)
        assert told.share_after < told.share_before / 2


def test_the_compaction_raises_the_alert_and_is_named(kept):
    for outcome in kept[1]:
        (compacted,) = results_of(outcome, Compacted)
        clean, spoiled, repaired = results_of(outcome, Audit)
        assert not clean.judgment.alerts
        assert compacted.files_after < compacted.files_before / 4
        assert spoiled.judgment.alerts
        assert spoiled.reads.ratio > 1.5 * clean.reads.ratio
        assert spoiled.blame.culprit.id == compacted.version
        assert f"{compacted.version} (" in spoiled.blame.culprit.sentence
        assert not repaired.judgment.alerts
        assert repaired.reads.ratio == pytest.approx(clean.reads.ratio, rel=0.2)


def test_the_alert_goes_with_the_compaction_and_without_it_there_is_none(kept):
    """Between the clean audit and the spoiled one lies one commit of another tool, by the tables' own logs."""
    folder, (delta, iceberg), _ = kept
    operations = {each["version"]: each for each in DeltaTable(str(folder / "delta")).history()}
    version = results_of(delta, Compacted)[0].version
    assert operations[version]["operation"] == "OPTIMIZE"
    assert "zonal" not in str(operations[version]), "delta-rs did it"
    assert "zonal" in str(operations[version - 1])
    table = catalog_of(folder).load_table(IDENTIFIER)
    spoiled = table.snapshot_by_id(results_of(iceberg, Compacted)[0].version)
    assert "zonal" not in str(spoiled.summary)
    removed = table.snapshot_by_id(spoiled.parent_snapshot_id)
    assert removed.parent_snapshot_id == results_of(iceberg, Clustering)[0].run.versions[-1]


def test_the_text_tells_the_alert_the_commit_and_the_repair(kept):
    _, outcomes, text = kept
    alerts = 0
    for outcome in outcomes:
        clean, spoiled, repaired = results_of(outcome, Audit)
        assert spoiled.judgment.alerts
        assert not clean.judgment.alerts
        assert not repaired.judgment.alerts
        alerts += len(spoiled.judgment.alerts)
        assert text.count(f"Most likely because {spoiled.blame.culprit.sentence}.") == 1
        trend = " → ".join(f"{audit.reads.ratio:.1%}" for audit in (clean, spoiled, repaired))
        assert trend in text
    assert text.count("Alert: ") == alerts


# --- its numbers -----------------------------------------------------------------------------------------------------


def test_the_reads_are_those_of_explain(kept):
    folder, outcomes, _ = kept
    asked = kinds()
    for outcome in outcomes:
        (arrived,), (compared,) = results_of(outcome, TableHealth), results_of(outcome, Compared)
        clustered = results_of(outcome, Clustering)[0].run.versions[-1]
        for version, reads in ((arrived.table.version, compared.before), (clustered, compared.after)):
            table = pinned(folder, outcome.format, version)
            for kind in (2, 3):
                told = [zonal.explain(table, where=text, footers=False) for text in asked[kind].conditions]
                assert reads[kind].files == pytest.approx(np.mean([each.levels[-1].kept for each in told]))
                assert reads[kind].share == pytest.approx(np.mean([each.share_of_bytes for each in told]))


def test_an_audit_agrees_with_the_questions_one_by_one(kept):
    for outcome in kept[1]:
        (compared,), audited = results_of(outcome, Compared), results_of(outcome, Audit)
        assert audited[0].reads.byte_share == pytest.approx(compared.shares[1])


def test_the_explained_query_is_one_of_the_log(kept):
    folder, outcomes, _ = kept
    assert f"WHERE {CONDITIONS[0]} " in (folder / LOG).read_text()
    for outcome in outcomes:
        (compared,) = results_of(outcome, Compared)
        before, after = compared.explained
        assert before.predicate == after.predicate == CONDITIONS[0]
        assert before.levels[-1].kept == FILES
        assert after.levels[-1].kept < FILES / 2


# --- the log ---------------------------------------------------------------------------------------------------------


def test_every_statement_of_the_log_asks_the_table(kept):
    folder, *_ = kept
    read = zonal.Logs([folder / LOG], names=[NAME]).read([], telemetry(1).column_names)
    told = read.summary
    assert (told.statements, told.matched, told.unparsable, told.full_scans) == (110, 110, 0, 0)
    assert log_text(kinds()) == (folder / LOG).read_text(), "the same statements every time"


def test_every_kind_of_query_finds_rows():
    with duckdb.connect() as judge:
        judge.register("rows", telemetry(300_000))

        def count(condition):
            return judge.sql(f"SELECT count(*) FROM rows WHERE {condition}").fetchall()[0][0]

        for kind in kinds():
            counts = np.array([count(condition) for condition in kind.conditions])
            assert (counts > 0).mean() > 0.5, kind.text
            assert counts.max() < 3_000, kind.text
        assert all(count(condition) for condition in CONDITIONS)


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_the_history_has_all_audits_and_runs(kept):
    folder, outcomes, _ = kept
    with History.open(history_url(folder)) as history:
        for outcome in outcomes:
            audits = results_of(outcome, Audit)
            found = history.audits(audits[0].table.location)
            assert [record.ratio for record in found] == [audit.reads.ratio for audit in audits]
            assert [bool(record.alerts) for record in found] == [False, True, False]
            runs = history.runs(audits[0].table.location)
            assert (len(found), len(runs)) == (3, 2)
            assert [run.share_predicted is not None for run in runs] == [True, False]


def test_the_page_shows_the_alarm_and_its_path_is_printed_last(kept):
    folder, outcomes, text = kept
    assert [outcome.page for outcome in outcomes] == [folder / "report-delta.html", folder / "report-iceberg.html"]
    assert text.split()[-2:] == [str(outcome.page) for outcome in outcomes]
    for outcome in outcomes:
        page = outcome.page.read_text()
        spoiled = results_of(outcome, Audit)[1]
        assert f"widened {spoiled.blame.culprit.widths[0].column}" in page
        assert str(spoiled.blame.culprit.id) in page


def test_the_printed_commands_run(kept):
    *_, text = kept
    commands = re.findall(r"^ +zonal (.+)$", text, re.MULTILINE)
    assert [command.split()[0] for command in commands] == 2 * ["show", "explain", "explain", "audit", "audit"]
    for command in commands:
        told = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert told.exit_code == 0, command
        shown = (f"{ROWS:,} rows", "payload_id = 4711", "Queries read", "cluster, ")
        assert any(text in told.output for text in shown), command


# --- other columns ---------------------------------------------------------------------------------------------------


def test_given_columns_are_asked_by_look_ups(tmp_path):
    (outcome,), text = text_of(DemoRequest(5_000, 10, ("delta",), by=("sensor", "value"), into=tmp_path / "kept"))
    (compared,) = results_of(outcome, Compared)
    assert [question.text for question in compared.questions] == [
        "sensor = ?", "value = ?", "1 % of sensor", "1 % of value", "5 % of each",
    ]  # fmt: skip
    assert compared.after[0].share < compared.before[0].share
    assert "zorder(sensor, value" in text
    assert not results_of(outcome, Advice), "who names columns needs no advice"
    assert not (tmp_path / "kept" / LOG).exists()
    commands = re.findall(r"^ +zonal (\w+)", text, re.MULTILINE)
    assert commands == ["show", "audit"], "those that need no log"


def test_a_table_that_is_best_left_as_it_is_ends_the_story(tmp_path, monkeypatch):
    monkeypatch.setattr(deciding, "LEAST_GAIN", 1.1)
    (outcome,), text = text_of(DemoRequest(2_000, 8, ("delta",), into=tmp_path / "kept"))
    assert [type(chapter.result) for chapter in outcome.chapters] == [TableHealth, Advice, Audit, NoneType]
    assert "the story ends here" in text
    assert outcome.page.exists()


# --- a user's own data -----------------------------------------------------------------------------------------------


@pytest.fixture
def orders(tmp_path):
    path = tmp_path / "orders.parquet"
    names = pa.array([{"name": f"n{i * 7919 % 50:02d}"} for i in range(8000)])
    when = pa.array(np.arange(8000) * 1001 * 10**9, pa.timestamp("ns"))
    noise = np.random.default_rng(0).integers(0, 2**62, 8000)  # what no encoding makes smaller
    columns = {"who": names, "when": when, "[red]": [1.5] * 7999 + [float("nan")], "noise": noise}
    pq.write_table(pa.table(columns), path)
    return path


def test_own_data_lives_through_the_story_without_a_log(orders):
    (outcome,), text = text_of(DemoRequest(0, 40, ("delta",), data=orders, by=("when", "who.name", "[red]")))
    assert "[red] = ?" in text, "a name is text, not markup"
    (compared,) = results_of(outcome, Compared)
    shares = {
        q.text: (b.share, a.share) for q, b, a in zip(compared.questions, compared.before, compared.after, strict=True)
    }
    assert shares["who.name = ?"][1] < 0.5 * shares["who.name = ?"][0]
    assert shares["[red] = ?"][1] == 1.0, "a constant skips nothing"
    assert [type(chapter.result) for chapter in outcome.chapters] == [
        TableHealth, Clustering, Compared, Audit, Compacted, Audit, Clustering, Audit,
    ]  # fmt: skip
    assert {audit.table.rows for audit in results_of(outcome, Audit)} == {8000}
    assert results_of(outcome, Audit)[0].workload.queries == 700


def test_too_much_data_is_refused_with_the_way_that_works(orders, monkeypatch):
    monkeypatch.setattr(owndata, "MOST_BYTES", 1000)
    with pytest.raises(ZonalError, match=r"too much for the demo.*zonal cluster parquet:PATH --by when --into delta:"):
        text_of(DemoRequest(0, 20, ("delta",), data=orders, by=("when",)))


def test_data_that_delta_cannot_hold_is_refused(tmp_path):
    pq.write_table(pa.table({"x": range(100), "at": pa.array(range(100), pa.time64("us"))}), tmp_path / "t.parquet")
    with pytest.raises(ZonalError, match="can't be written as a table of Delta"):
        text_of(DemoRequest(0, 20, ("delta",), data=tmp_path / "t.parquet", by=("x",)))


def test_own_data_goes_through_delta_only(orders):
    with pytest.raises(ZonalError, match="leave out --format"):
        text_of(DemoRequest(0, 20, data=orders, by=("when",)))


# --- what is left ----------------------------------------------------------------------------------------------------


def failing(error, runs=0):
    """Run so many rewrites, and fail in the next one."""
    done = []

    def runner(*given):
        if len(done) == runs:
            raise error
        done.append(given)
        return run_here(*given)

    return runner


@pytest.mark.parametrize(("error", "runs"), [(ZonalError("no"), 0), (KeyboardInterrupt(), 1)])
@pytest.mark.parametrize("into", [None, "kept"])
def test_nothing_is_left_of_a_failed_run(tmp_path, pages_in, error, runs, into):
    request = DemoRequest(2_000, 8, ("delta",), by=("ts",), into=into and tmp_path / into)
    with pytest.raises(type(error)):
        text_of(request, failing(error, runs))
    assert list(pages_in.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_only_the_page_is_left_of_a_run_without_into(pages_in):
    (outcome,), text = text_of(DemoRequest(2_000, 8, ("delta",), by=("ts",)))
    assert list(pages_in.iterdir()) == [outcome.page]
    assert text.split()[-1] == str(outcome.page)


def test_an_empty_folder_that_was_there_is_empty_again_after_a_failure(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        text_of(DemoRequest(2_000, 8, ("delta",), by=("ts",), into=tmp_path), failing(KeyboardInterrupt(), 1))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("into", [None, "kept"])
def test_the_page_goes_where_it_is_wanted(tmp_path, into):
    page = tmp_path / "my page.html"
    request = DemoRequest(2_000, 8, ("delta",), by=("ts",), into=into and tmp_path / into, page=page)
    (outcome,), _ = text_of(request)
    assert outcome.page == page
    assert page.read_text().startswith("<!")


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(ZonalError, match="page can't be written"):
        text_of(
            DemoRequest(2_000, 8, ("delta",), by=("ts",), into=tmp_path / "kept", page=tmp_path / "no" / "page.html")
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["page.pdf", "no/page.html"])
def test_a_page_of_a_bad_name_is_refused_before_anything_starts(tmp_path, name):
    told = CliRunner().invoke(app, ["demo", "--report", str(tmp_path / name)])
    assert isinstance(told.exception, ZonalError)
    assert "--report" in str(told.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_a_url_cannot_name_is_refused(tmp_path):
    with pytest.raises(ZonalError, match="mean something in a database's URL"):
        text_of(DemoRequest(2_000, 4, into=tmp_path / "what?"))


@pytest.mark.parametrize(
    ("options", "request_"),
    [
        ([], DemoRequest(1_000_000, 240, ("delta", "iceberg"))),
        (["--format", "iceberg", "--rows", "5000"], DemoRequest(5_000, 240, ("iceberg",))),
        (
            ["--data", "x.parquet", "--by", "a, b"],
            DemoRequest(1_000_000, 240, ("delta",), Path("x.parquet"), ("a", "b")),
        ),
        (["--into", "new", "--report", "p.html"], DemoRequest(1_000_000, 240, into=Path("new"), page=Path("p.html"))),
    ],
)
def test_options_say_what_to_demonstrate(monkeypatch, options, request_):
    asked = []
    monkeypatch.setattr("zonal.demo.terminal.run", lambda _, request: asked.append(request))
    assert CliRunner().invoke(app, ["demo", *options], catch_exceptions=False).exit_code == 0
    assert asked == [request_]


# --- Spark -----------------------------------------------------------------------------------------------------------


def test_a_missing_spark_is_said_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ZonalError, match=r"pip install 'zonal\[spark\]'"):
        text_of(DemoRequest(2_000, 4, into=tmp_path / "kept"), None)
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


def test_a_library_that_is_not_there_is_named_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("zonal.demo.writers.find_spec", lambda _: None)
    told = CliRunner().invoke(app, ["demo", "--format", "delta", "--into", str(tmp_path / "x")])
    assert "writes a table with deltalake. Run: pip install 'zonal[demo]'" in str(told.exception)
    assert not (tmp_path / "x").exists()
