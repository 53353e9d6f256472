"""The official engines' jars, fetched once by Maven, and a summary of what was skipped."""

import pytest

from interop.engines import both_engines
from support.jars import jar
from zonal.errors import JavaError
from zonal.spark.java import find_java

SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"
JARS = {
    "4.1": {
        "delta": ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
        "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", SQLITE),
    },
    "3.5": {
        "delta": ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2"),
        "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0", SQLITE),
    },
}
"""By version of Spark. All tests run on the first; on the others, `test_each_spark.py`."""
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


def pytest_sessionfinish(session):
    """Send a worker's lines to the process that reports."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["summary"] = session.config.stash.get(SUMMARY, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take the lines of a worker; of one that crashed there are none."""
    node.config.stash.setdefault(SUMMARY, []).extend(getattr(node, "workeroutput", {}).get("summary", []))


def pytest_terminal_summary(terminalreporter, config):
    lines = config.stash.get(SUMMARY, [])
    if lines:
        terminalreporter.section("files that zonal keeps")
        terminalreporter.write("\n".join([*lines, ""]))


def _jars(engine):
    """Return an engine's jars, or skip the test where they don't fit this Spark."""
    pyspark = pytest.importorskip("pyspark")
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in JARS:
        pytest.skip(f"The engines' jars are for Spark {' and '.join(JARS)}, and this is Spark {pyspark.__version__}.")
    try:
        find_java()
    except JavaError as error:
        pytest.skip(str(error))
    return [jar(artifact) for artifact in JARS[version][engine]]
