"""The process that forks zonal's own workers: where it can be used, and that Spark's own does the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

from zonal.spark import daemon
from zonal.spark.session import options_of

HOME = Path(daemon.__file__).parents[2]


def test_zonal_is_found_where_it_is_installed_or_on_the_python_path(monkeypatch, tmp_path):
    monkeypatch.setattr(daemon.site, "getsitepackages", lambda: [str(tmp_path)])
    monkeypatch.setattr(daemon.site, "getusersitepackages", lambda: str(tmp_path / "user"))
    monkeypatch.setenv("PYTHONPATH", "")
    assert not daemon.is_importable(), "a program's own path isn't that of a worker"
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere:{HOME}")
    assert daemon.is_importable()
    monkeypatch.setenv("PYTHONPATH", "")
    (tmp_path / "_zonal.pth").write_text(f"{HOME}\n")
    assert daemon.is_importable(), "as an editable install has it"


def test_a_session_with_another_python_has_the_daemon_of_spark(monkeypatch):
    name = "spark.python.daemon.module"
    monkeypatch.setattr(daemon, "is_importable", lambda: True)
    assert options_of("local[2]", {})[name] == "zonal.spark.daemon"
    assert name not in options_of("local[2]", {"spark.pyspark.python": "/other/python"})
    assert name not in options_of("spark://far:7077", {})
    assert options_of("local[2]", {name: "mine"})[name] == "mine"
    monkeypatch.setattr(daemon, "is_importable", lambda: False)
    assert name not in options_of("local[2]", {})


LOADED = """
import os, sys
import pyarrow as pa
from zonal.spark.session import spark_session

def loaded(batches):
    parent = open(f"/proc/{os.getppid()}/cmdline").read()
    zipped = ".zip" in sys.modules["pyspark"].__file__
    found = ["zonal.worker.tasks" in sys.modules, "zonal.spark.daemon" in parent, zipped]
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"found": [str(found)]})

with spark_session(master="local[1]") as spark:
    print(spark.range(1).mapInArrow(loaded, "found string").collect()[0].found)
"""


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="it looks into /proc")
def test_workers_are_forked_from_it_with_all_imports_done():
    command = [sys.executable, "-W", "ignore", "-c", LOADED]
    told = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert told.stdout.strip() == "[True, True, False]", told.stderr[-3000:]
