"""Rewrites in threads of this process, without Spark: bounded, stopped together, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from support.cluster_tables import Delta, assert_same_rows, parts_of, telemetry
from zonal.errors import ZonalError
from zonal.rewriting import on_this_machine
from zonal.rewriting.on_this_machine import ThisMachine
from zonal.rewriting.places import runner_at
from zonal.spark.place import HERE, Spark
from zonal.verbs.cluster import cluster
from zonal.worker.exchange.spill import Spill

ROWS = telemetry(6000)


@pytest.fixture(autouse=True)
def _many_tasks(monkeypatch):
    """Small tables are read and written by several tasks, as large ones are."""
    monkeypatch.setattr("zonal.worker.splits.SPLIT_BYTES", 4000)
    monkeypatch.setattr("zonal.worker.splits.PAYLOAD_BYTES", 100)
    monkeypatch.setattr("zonal.plan.placement.LEAST_TASK_BYTES", 1000)


@pytest.fixture
def table(tmp_path):
    return Delta(tmp_path).make(parts_of(ROWS, 6))


@pytest.mark.parametrize("machine", [ThisMachine(1), ThisMachine(4), ThisMachine(3, spill_bytes=0)])
def test_threads_and_spilled_rows_change_no_row_and_no_file(tmp_path, machine):
    tables = [Delta(tmp_path, name).make(parts_of(ROWS, 6)) for name in ("one", "other")]
    steps = []
    done = [
        each.cluster(runner, by=["x", "y"], target_file_size=20_000, verify=True, progress=steps.append)
        for each, runner in zip(tables, (ThisMachine(1), machine), strict=True)
    ]
    assert done[0].change.added_files == done[1].change.added_files > 3
    assert done[0].change.added_bytes == done[1].change.added_bytes
    for each in tables:
        assert_same_rows(each.rows(), ROWS)
    for name in ("reading", "writing"):
        told = [step for step in steps if step.name == name]
        assert told[-1].done == told[-1].total > 1


def test_the_master_here_needs_no_spark(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)  # an import of it fails
    steps = []
    done = cluster(table.name, by=["x", "y"], spark=Spark(master=HERE), progress=steps.append)
    assert done.change.rows == 6000
    assert "starting Spark" not in [step.name for step in steps]
    assert_same_rows(table.rows(), ROWS)


def test_without_spark_the_error_says_how_to_do_without(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    before = table.listing()
    with pytest.raises(ZonalError, match=r"needs Spark\. Run: pip install 'zonal\[spark\]'\. Or do without: .*'here'"):
        cluster(table.name, by="x", spark=Spark(master="local[2]"))
    assert table.listing() == before


def test_settings_of_spark_are_refused_where_there_is_none():
    for more in ({"conf": {"a": "b"}}, {"remote": "sc://host"}):
        with (
            pytest.raises(ZonalError, match=f"without Spark: leave out .*{next(iter(more))}"),
            runner_at(Spark(master=HERE, **more)),
        ):
            pass


def test_the_first_error_stops_all_threads_and_leaves_nothing(table, monkeypatch):
    written = on_this_machine.write_step

    def failing(*given):
        step = written(*given)

        def write(batches):
            for batch in step(batches):
                yield batch
                raise ZonalError("Here it ends.")

        return write

    monkeypatch.setattr(on_this_machine, "write_step", failing)
    with pytest.raises(ZonalError, match=r"Here it ends\. Nothing was committed\."):
        table.cluster(ThisMachine(3), by=["x"], target_file_size=20_000)
    assert not table.run_folders()
    assert_same_rows(table.rows(), ROWS)


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_a_spill_gives_every_task_its_records_in_their_order(memory):
    def batch(tasks, first):
        columns = {"task": pa.array(tasks, pa.int32()), "payload": [b"%d" % (first + at) for at in range(len(tasks))]}
        return pa.record_batch(columns)

    spill = Spill(memory)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(spill.put, [batch([0, 0, 2, 1, 0], 10 * number) for number in range(50)]))
    spill.put(batch([], 0))
    assert spill.tasks == [0, 1, 2]
    for task, ends in ((0, "014"), (1, "3"), (2, "2")):
        values = [value.decode() for each in spill.take(task) for value in each.column(1).to_pylist()]
        assert len(values) == 50 * len(ends)
        assert {value[-1] for value in values} == set(ends)
    spill.close()


def test_a_full_disk_is_told_with_what_to_set(monkeypatch):
    spill = Spill(1)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spill._file, "write", full)
    with pytest.raises(ZonalError, match=r"Can't keep rows in .*: No space left on device\. Set TMPDIR"):
        spill.put(pa.record_batch({"task": pa.array([0], pa.int32())}))


SLOW = """
import sys, time
from zonal.plan import placement
from zonal.rewriting import on_this_machine
placement.LEAST_TASK_BYTES = 1000
written = on_this_machine.write_step
def slow(*given):
    step = written(*given)
    def write(batches):
        sys.stdout.write("writing\\n")
        sys.stdout.flush()
        for batch in step(batches):
            time.sleep(.3)
            yield batch
    return write
on_this_machine.write_step = slow
from zonal.cli import main
sys.argv[1:] = ["cluster", sys.argv[1], "--by", "x,y", "--master", "here", "--target-file-size", "5KB", "--no-database"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_the_table_as_it_was_and_no_temporary_file(table, tmp_path, number):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    run = subprocess.Popen(
        [sys.executable, "-c", SLOW, table.name],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    assert run.stdout.readline() == "writing\n"
    time.sleep(0.2)
    run.send_signal(number)
    _, told = run.communicate(timeout=60)
    assert not list(temporary.iterdir())
    assert_same_rows(table.rows(), ROWS)
    if number != signal.SIGKILL:
        assert run.returncode == 130
        assert re.search(r"Nothing was (committed|changed)", told)
        assert not table.run_folders()


def test_temporary_files_have_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spill = Spill(1)
    spill.put(pa.record_batch({"task": pa.array([0] * 100, pa.int32())}))
    assert not list(tmp_path.iterdir())
    spill.close()
