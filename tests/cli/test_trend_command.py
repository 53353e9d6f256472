"""`zonal audit --trend` and `zonal show`: what the ledger knows, on the command line and in Python."""

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import zonal
from support.appends import append_to
from support.cluster_tables import NEWEST, home
from zonal.cli.app import app
from zonal.errors import ZonalError


@pytest.fixture(params=NEWEST)
def grown(request, tmp_path):
    """A table that was clustered, grew twice, and has rows that wait."""
    draw = np.random.default_rng(0)
    rows = pa.table({"ts": np.arange(4000), "x": draw.integers(0, 500, 4000)})
    table = home(request.param, tmp_path).make([rows.slice(0, 2000)])
    database = f"sqlite:///{tmp_path / 'h.db'}"
    table.cluster(by=["ts", "x"], target_file_size=5000, database=database)
    for start in (2000, 2500):
        append_to(table, rows.slice(start, 500), database=database)
    table.append(rows.slice(3000))
    return table, database


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def of(table):
    options = [
        word
        for name, value in table.options.get("storage_options", {}).items()
        for word in ("--storage-option", f"{name}={value}")
    ]
    return [table.name, *(["--catalog", "test"] if table.options else []), *options]


def test_the_trend_is_printed_drawn_and_given_as_json(grown, tmp_path):
    table, database = grown
    page = tmp_path / "trend.html"
    told = run("audit", *of(table), "--trend", "--database", database, "--report", page)
    assert told.exit_code == 0, told.output
    assert "bytes were rewritten per byte that arrived" in told.output
    assert "first" in told.output.partition("bytes were rewritten")[2], "each run is listed"
    assert 'data-chart="ledger"' in page.read_text()
    found = json.loads(run("audit", *of(table), "--trend", "--database", database, "--output", "json").stdout)
    assert [point["what"] for point in found["points"]] == ["first", "append", "append"]
    assert found["waiting_bytes"] > 0
    assert found["arrived_bytes"] == found["waiting_bytes"] + sum(point["arrived_bytes"] for point in found["points"])
    assert len(found["runs"]) == 3
    course = zonal.trend(table.name, database=database, **table.options)
    assert course.amplification == found["amplification"]
    assert "first clustering" in course._repr_html_()


def test_show_has_the_numbers_of_the_trend(grown):
    table, database = grown
    course = zonal.trend(table.name, database=database, **table.options)
    told = run("show", *of(table), "--database", database)
    assert told.exit_code == 0, told.output
    assert f"{course.amplification:.2f} bytes per byte that arrived so far" in told.output
    health = zonal.show(table.name, database=database, **table.options)
    assert health.condition.rewritten_bytes == course.rewritten_bytes


def test_a_history_without_the_table_is_told_once(grown, tmp_path):
    table, _ = grown
    done = run("audit", *of(table), "--trend", "--database", f"sqlite:///{tmp_path / 'other.db'}")
    assert done.exit_code == 0, done.output
    assert "bytes were rewritten per byte that arrived" in done.output, "the table's own log tells"
    assert "is in the history yet" in done.output
    assert "is in the database yet" not in done.output


def test_a_trend_needs_a_history(grown, tmp_path):
    table, _ = grown
    with pytest.raises(ZonalError, match="name one with database"):
        zonal.trend(table.name, database=None, **table.options)
    empty = zonal.trend(table.name, database=f"sqlite:///{tmp_path / 'other.db'}", **table.options)
    assert empty.points == ()
    assert empty.amplification > 0, "the table's own log tells"


def test_show_goes_on_without_a_history_that_cant_be_opened(grown, tmp_path, monkeypatch):
    table, _ = grown
    (tmp_path / "broken.db").write_bytes(b"no database" * 1000)
    broken = f"sqlite:///{tmp_path / 'broken.db'}"
    monkeypatch.setenv("ZONAL_DATABASE", broken)
    told = run("show", *of(table))
    assert told.exit_code == 0, told.output
    assert "per byte that arrived so far" in told.output
    assert "without the history" in told.output
    assert run("show", *of(table), "--database", broken).exit_code == 1, "one that was named is refused"
    assert run("show", *of(table), "--no-database").exit_code == 0
