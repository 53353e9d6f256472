"""The official engines' jars, fetched once by Maven, and a summary of what was skipped."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from interop.engines import both_engines
from zonal.errors import JavaError
from zonal.spark.java import find_java

SPARK = "4.1"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
JARS = {
    "delta": ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.xerial:sqlite-jdbc:3.50.3.0"),
}
SUMMARY = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def delta_jars():
    return _jars("delta")


@pytest.fixture(scope="session")
def iceberg_jars():
    return _jars("iceberg")


@pytest.fixture(scope="session")
def folder_of_engines(tmp_path_factory):
    """Where the tables of this process's session lie."""
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="session")
def spark(folder_of_engines, delta_jars, iceberg_jars):
    """The one session of this process, with both engines."""
    session = both_engines(folder_of_engines, [*delta_jars, *iceberg_jars])
    yield session
    session.stop()


@pytest.fixture(scope="session")
def summary(request):
    """Lines for the end of the run."""
    return request.config.stash.setdefault(SUMMARY, [])


def pytest_terminal_summary(terminalreporter, config):
    lines = config.stash.get(SUMMARY, [])
    if lines:
        terminalreporter.section("files that zonal keeps")
        terminalreporter.write("\n".join([*lines, ""]))


def _jars(engine):
    """Return an engine's jars, from ZONAL_JARS or the user's cache; those that are missing are fetched."""
    pyspark = pytest.importorskip("pyspark")
    if not pyspark.__version__.startswith(f"{SPARK}."):
        pytest.skip(f"The engines' jars are for Spark {SPARK}, and this is Spark {pyspark.__version__}.")
    try:
        find_java()
    except JavaError as error:
        pytest.skip(str(error))
    cache = Path(os.environ.get("ZONAL_JARS") or Path.home() / ".cache" / "zonal" / "jars")
    return [_jar(cache, artifact) for artifact in JARS[engine]]


def _jar(cache, artifact):
    _, name, version = artifact.split(":")
    jar = cache / f"{name}-{version}.jar"
    if jar.exists():
        return jar
    if shutil.which("mvn") is None:
        pytest.skip(f"{jar.name} is not in {cache}, and there is no mvn to fetch it.")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = ["mvn", "-q", "-B", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
        try:
            fetched = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"Maven took more than 300 seconds for {artifact}.")
        if fetched.returncode or not (Path(folder) / jar.name).exists():
            pytest.skip(f"Maven can't get {artifact}: {fetched.stdout[-500:].strip()}")
        (Path(folder) / jar.name).replace(jar)
    return jar
