"""Executors that are killed while they read or write: rows stay as they were, and no file is left."""

import pytest

import zonal
from clusters.gates import Gate, gated_reads, gated_writer, kill_executor, meanwhile
from clusters.sessions import classic
from support.cluster_tables import Delta, Iceberg, assert_same_rows, partitions_hold, parts_of, telemetry
from zonal.spark import job
from zonal.worker import tasks

pytestmark = pytest.mark.clusters
ROWS = telemetry(6000)
SMALL_FILES = zonal.NewFiles(target_file_size=20_000, verify=True)


@pytest.fixture(scope="module")
def spark(master, executor_python):
    """A session on the standalone cluster."""
    with classic(master, executor_python) as session:
        yield session


@pytest.mark.parametrize(("home", "step"), [(Delta, "read"), (Iceberg, "write")])
def test_an_executor_that_is_killed_changes_nothing(spark, tmp_path, monkeypatch, home, step):
    table = home(tmp_path).make(parts_of(ROWS, 3), ["p"])
    gate = Gate(tmp_path / "gate")
    if step == "read":
        monkeypatch.setattr(job, "read_step", gated_reads(job.read_step, gate))
    else:
        monkeypatch.setattr(tasks, "FileWriter", gated_writer(tasks.FileWriter, gate, before=True))
    killed = []

    def kill():
        killed.extend(gate.awaited(lambda found: found)[:1])
        kill_executor(killed[0])

    with meanwhile(gate, kill):
        zonal.cluster(table.name, by=["x", "y"], files=SMALL_FILES, spark=spark, **table.options)
    again = [each for each in gate.arrivals() if each.partition == killed[0].partition and each != killed[0]]
    assert again, "the task that was lost ran once more"
    assert all(each.executor != killed[0].executor for each in again)
    assert_same_rows(table.rows(), ROWS)
    partitions_hold(table, ROWS)
    assert not table.strays()
