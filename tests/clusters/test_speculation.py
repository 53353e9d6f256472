"""Second attempts of slow tasks: both write, one file is committed, and the other is removed."""

from pathlib import Path

import pytest

import zonal
from clusters.gates import Gate, gated_writer, meanwhile
from clusters.sessions import classic
from support.cluster_tables import Delta, Iceberg, assert_same_rows, parts_of, telemetry
from zonal.worker import tasks

pytestmark = pytest.mark.clusters
ROWS = telemetry(6000)
SPECULATION = {
    "speculation": "true",
    "speculation_interval": "100ms",
    "speculation_multiplier": "1.1",
    "speculation_task_duration_threshold": "500ms",  # of a stage with one task
    "speculation_minTaskRuntime": "100ms",
}


@pytest.fixture(scope="module")
def spark(master, executor_python):
    """A session that starts a second attempt of a task that takes longer than others."""
    with classic(master, executor_python, **SPECULATION) as session:
        yield session


@pytest.mark.parametrize("home", [Delta, Iceberg])
def test_of_two_attempts_that_both_write_one_file_stays(spark, tmp_path, monkeypatch, home):
    table = home(tmp_path).make(parts_of(ROWS, 3))
    gate = Gate(tmp_path / "gate")
    monkeypatch.setattr(tasks, "FileWriter", gated_writer(tasks.FileWriter, gate, before=False))
    with meanwhile(gate, lambda: gate.awaited(lambda found: len(found) > 1)):
        done = zonal.cluster(table.name, by=["x", "y"], spark=spark, **table.options)
    first, second = sorted(gate.arrivals(), key=lambda each: each.attempt)
    assert (first.partition, first.attempt, second.partition, second.attempt) == (0, 0, 0, 1)
    assert first.executor != second.executor
    assert done.change.added_files == 1
    (live,) = table.files()
    written = {Path(each.note) for each in (first, second)}
    assert len(written) == 2
    assert {path for path in written if path.exists()} == {live.path}, "what the other attempt wrote is removed"
    assert_same_rows(table.rows(), ROWS)
    assert not table.strays()
