"""Fixtures, and one profile for hypothesis: machines that run tests are noisy, so no deadlines."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from support import judge  # noqa: F401 - sets DuckDB up

# In continuous integration the same examples every time, so that a change is judged by what it changes.
settings.register_profile(
    "zonal",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("zonal")


@pytest.fixture(scope="session")
def spark():
    """A local Spark session, started by the first test that asks for it."""
    from zonal.spark.java import use_java

    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        # Many small jobs: compiling them well would take longer than running them, and other tests want the cores.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session", autouse=True)
def own_history(tmp_path_factory):
    """No test reads or writes the history of whoever runs the tests."""
    os.environ["ZONAL_DATABASE"] = f"sqlite:///{tmp_path_factory.mktemp('history') / 'history.db'}"


@pytest.fixture
def server(monkeypatch):
    """S3 with a bucket of its own for each test; what this machine's environment says of stores is kept out."""
    from support.s3_server import s3_server

    with s3_server(monkeypatch) as found:
        yield found
