"""`zonal clean` on the command line."""

import json
import os
import re
import signal

import pytest
from typer.testing import CliRunner

from support.cleaning import WEEK, clock, everything, left_by_run, now, quarantined
from support.cluster_tables import Delta, parts_of, telemetry
from zonal.cli import app
from zonal.report.notebook.results import html_of
from zonal.verbs.clean import clean


def run(*words, at=None):
    with clock(at or now() + WEEK):
        return CliRunner().invoke(app, ["clean", *map(str, words)])


@pytest.fixture
def table(tmp_path):
    made = Delta(tmp_path).make(parts_of(telemetry(60), 3))
    made.cluster(by=["x"])
    left_by_run(made.root)
    return made


def test_a_dry_run_tells_bytes_by_reason_and_changes_nothing(table):
    before = everything(table.root)
    told = run(table.root, "--expire", "7d")
    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert any(line.split()[:4] == ["nobody", "needs", "4", "files,"] for line in lines)
    assert any(re.search("left by broken runs of zonal +│ +1 │ +4 B", line) for line in lines)
    assert any(re.search("removed from the table +│ +3 │", line) for line in lines)
    assert lines[-1] == "Nothing was changed: add --yes to do it."
    assert everything(table.root) == before


def test_files_are_moved_brought_back_and_deleted(table):
    before = everything(table.root)
    done = json.loads(run(table.root, "--expire", "7d", "--yes", "--output", "json").stdout)
    assert done["action"] == "clean"
    assert done["bytes"] == sum(file["size"] for file in done["files"]) == sum(each["bytes"] for each in done["totals"])
    assert {file["path"] for file in done["files"]} == before.keys() - everything(table.root).keys()
    assert all(file["why"].endswith(".") for file in done["files"])
    text = run(table.root, "--undo", done["run"]).stdout
    assert "brought back" in text
    assert everything(table.root) == before
    again = run(table.root, "--expire", "7d", "--yes", at=now() + 2 * WEEK).stdout
    (named,) = quarantined(table.root).keys() - {done["run"]}
    assert f"--undo {named} brings the files back" in again
    later = now() + 3 * WEEK
    assert "Nothing was changed: add --yes" in run(table.root, "--purge", at=later).stdout
    assert "deleted for good" in run(table.root, "--purge", "--yes", at=later).stdout
    assert quarantined(table.root) == {}
    assert "There is nothing to do." in run(table.root, "--expire", "7d", at=later).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--expire", "soon"], "--expire soon is no duration"),
        (["--expire", "1d"], "break the promise with --ignore-retention"),
        (["--older-than", "1h"], "--older-than 1h is less than 1 day"),
        (["--undo", "nix"], "There is no run 'nix' in quarantine"),
        (["--undo", "x", "--purge"], "--undo and --purge are different things"),
    ],
)
def test_errors_end_the_command_with_code_1_and_a_message(words, told, table, monkeypatch, capsys):
    from zonal import cli

    before = everything(table.root)
    monkeypatch.setattr("sys.argv", ["zonal", "clean", str(table.root), *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert told in " ".join(capsys.readouterr().err.split())
    assert everything(table.root) == before


def test_an_interrupt_says_where_moved_files_are(table, monkeypatch):
    real = os.rename

    def interrupted(source, target):
        real(source, target)
        if str(source).endswith(".parquet"):
            os.kill(os.getpid(), signal.SIGINT)

    before = everything(table.root)
    monkeypatch.setattr(os, "rename", interrupted)
    told = run(table.root, "--expire", "7d", "--yes")
    monkeypatch.undo()
    assert told.exit_code == 130
    (named,) = quarantined(table.root)
    assert f"--undo {named} brings them back" in " ".join(told.output.split())
    run(table.root, "--undo", named)
    assert everything(table.root) == before


def test_a_notebook_shows_it(table):
    with clock(now() + WEEK):
        html = html_of(clean(table.name, expire="7d"))
    assert "removed from the table" in html
    assert "Nothing was changed: add yes to do it." in html
