"""Every code block of the README runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

import zonal
from zonal.cli import app
from zonal.cli.config import read_config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    if program == "pip":
        check_pip(arguments)
        return
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
    said = [line for line in told.stderr.splitlines() if "has been starting for" not in line]  # on a busy machine
    assert program == "make" or not said, f"{command} prints more than its result: {told.stderr}"
    if arguments[0] == "demo" and program == "zonal":  # the one run of the whole story on Spark
        for told_of in ("delta 1 · show", "times less", "Alert: ", "Most likely because version", "report.html"):
            assert told_of in told.stdout


def check_pip(arguments):
    """What is installed is there, or is what the build makes; nothing is installed into the tests' own environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert arguments[0] in ("install", "wheel")
    target, _, extras = arguments[-1].partition("[")
    assert target in (".", f"dist/zonal-{zonal.__version__}-py3-none-any.whl")
    assert {each for each in extras.rstrip("]").split(",") if each} <= set(project["optional-dependencies"])


@pytest.mark.spark
def test_functions_for_spark_jobs_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"payload_id": [1234, 1, 2] * 10, "ts": range(30)})
    write_deltalake("build/readme/delta", rows)
    names = {"zonal": zonal}
    (code,) = (code for language, code in BLOCKS if language == "python" and "def look(" in code)
    exec(code, names)  # noqa: S102 - our own README
    assert names["look"](spark).count() == 10
    assert names["job"](spark.createDataFrame(rows)).count() == 30


def test_every_block_is_of_a_kind_that_runs():
    assert {language for language, _ in BLOCKS} == {"python", "sh", "toml"}


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
