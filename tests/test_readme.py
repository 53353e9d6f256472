"""Every code block of the README runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from zonal.cli import app
from zonal.verbs.config import read_config

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_every_block_runs_in_its_turn(tmp_path, monkeypatch, capsys):
    """In one folder, from the top: later blocks use what earlier ones made."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, code in BLOCKS:
        if language == "python":
            exec(code, names)  # noqa: S102 - our own README
        elif language == "toml":
            (tmp_path / "zonal.toml").write_text(code)
            assert len(read_config(tmp_path / "zonal.toml").tables) == 2
        else:
            for command in code.splitlines():
                run_command(command, tmp_path)
    assert "new keys" in capsys.readouterr().out


def run_command(command, folder):
    program, *arguments = shlex.split(command)
    if program == "make":  # the tests run inside `make test`: look at what the target would do
        told = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    else:
        assert program == "zonal", f"an unknown program in the README: {program}"
        if arguments[0] not in ("cluster", "demo"):
            found = CliRunner().invoke(app, arguments)
            assert found.exit_code == 0, f"{command}: {found.output} {found.exception}"
            return
        line = [sys.executable, "-m", "zonal", *arguments]  # Spark prints past Python, and ends with its process
        told = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    assert told.returncode == 0, f"{command}: {told.stderr}"
    assert program == "make" or not told.stderr, f"{command} prints more than its result: {told.stderr}"
    if arguments[0] == "demo" and program == "zonal":  # the one run of the whole story on Spark
        for told_of in ("delta 1 · show", "times less", "Alert: ", "Most likely because version", "report.html"):
            assert told_of in told.stdout


def test_every_block_is_of_a_kind_that_runs():
    assert {language for language, _ in BLOCKS} == {"python", "sh", "toml"}


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("path", ["CONTRIBUTING.md"])
def test_the_map_names_every_module(path):
    text = (ROOT / path).read_text()
    for module in (ROOT / "src" / "zonal").rglob("*.py"):
        if module.name != "__init__.py":
            assert f"{module.stem}`" in text, f"{module.stem} is not on the map"
