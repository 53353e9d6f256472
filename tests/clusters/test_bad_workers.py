"""Executors that lack something: each is told as what it is, before anything is committed, and nothing is left."""

import os
import shutil
import signal
import subprocess
import sys
from threading import Timer

import pytest

import zonal
from clusters.daemons import standalone
from clusters.pythons import python_with
from clusters.sessions import LOOPBACK, classic
from support.cluster_tables import Delta, Iceberg, assert_same_rows, parts_of, telemetry
from support.s3_server import KEYS, S3Server
from support.store_tables import StoredDelta

pytestmark = pytest.mark.clusters
ROWS = telemetry(600)
ONCE = {"task_maxFailures": "1"}
"""What executors lack, they lack at every attempt."""


@pytest.fixture
def table(tmp_path):
    return Delta(tmp_path / "table").make(parts_of(ROWS, 2))


def refusal(table, spark, **asked):
    """Return what is said where the table can't be clustered, and see that nothing happened to it."""
    before = table.listing()
    with pytest.raises(zonal.ZonalError) as caught:
        zonal.cluster(table.name, by=["x"], spark=spark, **table.options, **asked)
    assert table.listing() == before
    assert_same_rows(table.rows(), ROWS)
    return str(caught.value)


def test_a_python_that_is_not_there_is_named_with_its_host(table, master):
    with classic(master, "/no/such/python", **ONCE) as spark:
        told = refusal(table, spark)
    assert told.startswith("Spark couldn't finish the rewrite: the workers on 127.0.0.")
    assert "can't start Python as '/no/such/python': No such file or directory. Set PYSPARK_PYTHON" in told
    assert told.endswith("Nothing was committed.")


def test_a_python_without_pyarrow_is_named_with_what_it_lacks(table, master, tmp_path):
    python = python_with(tmp_path / "lacking", ("numpy",))
    with classic(master, python, **ONCE) as spark:
        told = refusal(table, spark)
        with pytest.raises(zonal.ZonalError, match=r"^Spark couldn't sample the keys: the Python of a Spark worker, "):
            spark.range(9).transform(zonal.clustered("zorder(id)", files=2))
    lacks = f"the Python of a Spark worker, {python} on {os.uname().nodename}, has no pyarrow."
    assert told.startswith(f"Spark couldn't finish the rewrite: {lacks}")


def test_workers_without_credentials_are_told_from_the_driver(master, executor_python, monkeypatch):
    server = S3Server()
    try:
        for name, value in KEYS.items():
            monkeypatch.setenv(name.upper(), value)
        table = StoredDelta(server).make(parts_of(ROWS, 2))
        objects = server.objects()
        with classic(master, executor_python, **ONCE) as spark:
            with pytest.raises(zonal.ZonalError) as caught:
                zonal.cluster(table.name, by=["x"], storage_options={"aws_endpoint_url": server.url}, spark=spark)
            told = str(caught.value)
            assert "Can't read the file 's3://box/t/" in told
            assert "This is about Spark's workers: the environment and the profiles of the machine that zonal" in told
            assert "storage options go with the job" in told
            assert told.endswith("Nothing was committed.")
            assert not any(value in told for name, value in KEYS.items() if name != "aws_region")
            assert server.objects() == objects
            zonal.cluster(table.name, by=["x"], spark=spark, **table.options)
        assert_same_rows(table.rows(), ROWS)
        assert not table.leftovers()
    finally:
        server.stop()


def test_executors_with_another_disk_are_refused_before_the_commit(tmp_path, executor_python):
    """Their disk has a copy of the tables where this machine has the tables themselves."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mount namespaces aren't allowed here: unshare -m")
    lake, other = tmp_path / "lake", tmp_path / "other"
    tables = [home(lake / home.format).make(parts_of(ROWS, 2)) for home in (Delta, Iceberg)]
    shutil.copytree(lake, other)
    under = ["unshare", "-m", "sh", "-c", f'mount --bind "{other}" "{lake}" && exec "$@"', "worker"]
    with standalone(tmp_path / "cluster", workers=1, under=under) as master, classic(master, executor_python) as spark:
        for table in tables:
            told = refusal(table, spark)
            assert "isn't there, although a worker has written it." in told
            assert "do Spark's workers and this machine see the same disk at this path?" in told
            assert told.endswith("Nothing was committed.")
    assert list(other.rglob("zonal-*/**/*.parquet")), "the executors did write, on their own disk"


WAITING = "from zonal.spark import grants; grants.SECONDS = 2.0; from zonal.cli import main; main()"
"""The command, which says sooner that it waits."""


def test_a_cluster_that_grants_nothing_is_told_with_what_was_asked_for(table, master):
    conf = {**LOOPBACK, "spark.executor.memory": "64g", "spark.cores.max": "2"}
    words = ["cluster", table.name, "--by", "x", "--no-database", "--master", master]
    words += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    before = table.listing()
    running = subprocess.Popen([sys.executable, "-c", WAITING, *words], stderr=subprocess.PIPE, text=True)
    watchdog = Timer(300, running.kill)
    watchdog.start()
    try:
        heard = ""
        for line in running.stderr:
            heard += line
            if "Ctrl-C ends it" in " ".join(heard.split()) and "granted" in heard:
                running.send_signal(signal.SIGINT)
                break
        heard += running.stderr.read()
        running.wait()
    finally:
        watchdog.cancel()
    told = " ".join(heard.split())
    assert f"Spark on '{master}' granted no executor. Asked for: executors with spark.executor.memory=64g" in told
    assert "and spark.cores.max=2 in all" in told
    assert (running.returncode, heard.splitlines()[-1]) == (130, "Stopped. Nothing was committed.")
    assert table.listing() == before
