"""`cluster` when something breaks: the table is as it was or has the commit, and nothing of ours is left behind."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException

from support.cluster_tables import Delta, assert_same_rows, home, parts_of, telemetry
from support.delta_tables import LogWriter, add, field, metadata, protocol
from support.local_runner import run_here
from support.parquet_damage import with_chunk
from zonal.errors import CommitUnknownError, TableError, ZonalError
from zonal.tables.delta import commit as deltacommit

BEFORE = telemetry(600)
FORMATS = ["parquet", "delta", "iceberg"]


@pytest.fixture(params=["delta", "iceberg v2"])
def table(request, tmp_path):
    return home(request.param, tmp_path).make(parts_of(BEFORE, 3), ["p"])


def as_before(table, version):
    """The table has its version and rows, no file of ours is there, and a later run works."""
    assert table.version() == version
    assert not table.strays()
    works_again(table)


def works_again(table):
    assert_same_rows(table.rows(), BEFORE)
    table.cluster(by=["x", "y"], target_file_size=4000)
    assert_same_rows(table.rows(), BEFORE)


class Failing:
    """A runner that has written all its files when it fails."""

    def __init__(self, error):
        self.error = error

    def __call__(self, scan, writing, placement, splits, report):
        _, written = run_here(scan, writing, placement, splits, report)
        assert all(Path(file.path.removeprefix("file://")).exists() for file in written)
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, OSError, MemoryError])
def test_when_the_work_fails_its_files_go_and_the_table_stays(error, table):
    version = table.version()
    with pytest.raises(error):
        table.cluster(by=["x", "y"], runner=Failing(error("on purpose")))
    assert not table.run_folders()
    as_before(table, version)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("target", FORMATS)
def test_when_a_copy_fails_nothing_of_it_is_left(error, target, tmp_path):
    source = Delta(tmp_path, "source").make(parts_of(BEFORE, 2), ["p"])
    copy = home(target, tmp_path, "copy")
    before = set(tmp_path.rglob("*.parquet"))
    source_cluster = {"by": "x", "into": copy.name} | copy.options
    with pytest.raises(error):
        source.cluster(runner=Failing(error("on purpose")), **source_cluster)
    assert set(tmp_path.rglob("*.parquet")) == before
    assert source.cluster(**source_cluster).change.rows == 600
    assert_same_rows(copy.rows(), BEFORE)


def test_of_two_attempts_at_the_same_task_the_files_of_one_are_kept(table):
    """As with Spark's speculation, which on one machine never starts a second attempt."""

    def twice(*given):
        run_here(*given)
        return run_here(*given)

    done = table.cluster(by=["x", "y"], target_file_size=4000, runner=twice)
    assert done.change.added_files == len(table.files()) == len(list(table.root.rglob("zonal-*/**/*.parquet")))
    assert_same_rows(table.rows(), BEFORE)
    assert not table.strays()


# --- rows that don't add up ------------------------------------------------------------------------------------------


def losing(tallies, written):
    return tallies, written[1:]


def doubling(tallies, written):
    return tallies, [*written, replace(written[0])]


def miscounting(tallies, written):
    return tallies, [replace(written[0], rows=written[0].rows + 1), *written[1:]]


def moving(tallies, written):
    other = next(file for file in written if file.partition != written[0].partition)
    return tallies, [replace(written[0], partition=other.partition), *written[1:]]


def reading_twice(tallies, written):
    return [*tallies, tallies[0]], written


def not_reading(tallies, written):
    return tallies[1:], written


def passing_fewer(tallies, written):
    return [replace(tallies[0], live=tallies[0].live - 1), *tallies[1:]], written


@pytest.mark.parametrize(
    "wrong",
    [losing, doubling, miscounting, moving, reading_twice, not_reading, passing_fewer],
    ids=lambda f: f.__name__,
)
def test_results_in_which_rows_are_lost_or_doubled_are_never_committed(wrong, table):
    version = table.version()

    def runner(*given):
        return wrong(*run_here(*given))

    with pytest.raises(ZonalError, match=r"Rows don't add up .* Nothing was committed"):
        table.cluster(by=["x", "y"], runner=runner)
    as_before(table, version)


def test_the_last_lines_of_a_log_stay_by_themselves(tmp_path):
    table = Delta(tmp_path).make(parts_of(BEFORE, 3))

    def runner(*_):
        raise ZonalError("Spark did not start.\nThe last lines of its log:\n  WARN it is late")

    with pytest.raises(ZonalError, match=r"its log:\n  WARN it is late\nNothing was committed\.$"):
        table.cluster(by=["x", "y"], runner=runner)


def test_a_damaged_file_ends_the_run_before_anything_is_written(tmp_path):
    table = Delta(tmp_path).make(parts_of(BEFORE, 3))
    damaged = table.files()[1].path
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    with pytest.raises((ZonalError, pa.ArrowInvalid)):
        table.cluster(by=["x", "y"])
    assert not table.run_folders()
    damaged.write_bytes(content)
    as_before(table, 2)


# --- the commit ------------------------------------------------------------------------------------------------------


def test_a_commit_that_the_file_system_refuses_leaves_nothing_behind(tmp_path, monkeypatch):
    table = Delta(tmp_path).make(parts_of(BEFORE, 2))

    def refuse(*_):
        raise PermissionError(1, "on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        with pytest.raises(TableError, match="on purpose"):
            table.cluster(by=["x", "y"])
    assert not list(table.root.glob("_delta_log/.*"))
    as_before(table, 1)


def unknown_delta(patch):
    def lost(*_):
        raise TimeoutError(110, "on purpose")

    patch.setattr(os, "link", lost)


def unknown_iceberg(patch):
    def lost(*_, **__):
        raise CommitStateUnknownException("on purpose")

    patch.setattr(SqlCatalog, "commit_table", lost)


def test_when_nobody_knows_whether_a_commit_happened_its_files_stay(table, monkeypatch):
    version = table.version()
    with monkeypatch.context() as patch:
        (unknown_delta if table.format == "delta" else unknown_iceberg)(patch)
        with pytest.raises(CommitUnknownError, match="on purpose"):
            table.cluster(by=["x", "y"])
    assert table.version() == version
    assert table.strays(), "they may be the table's by now"
    works_again(table)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupted_commit_never_takes_files_from_the_table(moment, table, monkeypatch):
    version = table.version()
    name, place = ("put_version", deltacommit) if table.format == "delta" else ("commit_table", SqlCatalog)
    real = getattr(place, name)

    def interrupted(*given, **named):
        if moment == "after":
            real(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            table.cluster(by=["x", "y"])
    assert (table.version() != version) == (moment == "after")
    works_again(table)


@pytest.mark.parametrize("target", ["delta", "iceberg"])
def test_an_interrupted_creation_never_takes_files_from_the_copy(target, tmp_path, monkeypatch):
    from zonal.tables.delta import create as deltacreate

    source = Delta(tmp_path, "source").make([BEFORE])
    copy = home(target, tmp_path, "copy")
    name, place = ("put_version", deltacreate) if target == "delta" else ("commit_table", SqlCatalog)
    real = getattr(place, name)

    def interrupted(*given, **named):
        real(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            source.cluster(by="x", into=copy.name, **copy.options)
    assert_same_rows(copy.rows(), BEFORE)


# --- the driver dies -------------------------------------------------------------------------------------------------

DYING = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from support.cluster_tables import home
kind, folder, stage = sys.argv[2:]
table = home(kind, folder)
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
def dying(step):
    if step.name == stage:
        die()
if stage == "committed":
    if kind == "delta":
        from zonal.storage import hard_links
        real = hard_links._link
        hard_links._link = lambda *given: (real(*given), die())
    else:
        from pyiceberg.catalog.sql import SqlCatalog
        real = SqlCatalog.commit_table
        SqlCatalog.commit_table = lambda *given, **named: (real(*given, **named), die())
if stage == "linking":
    os.link = die
if stage == "cataloging":
    from pyiceberg.catalog.sql import SqlCatalog
    SqlCatalog.commit_table = die
if stage == "running":
    from zonal.worker.write import writer
    real_close, closed = writer._OpenFile.close, []
    def close(file):
        closed.append(real_close(file))
        return closed[-1] if len(closed) < 3 else die()
    writer._OpenFile.close = close
table.cluster(by=["x", "y"], target_file_size=4000, progress=dying)
"""

STAGES = [
    *(("delta", stage) for stage in ("sampling", "running", "committing", "linking", "committed")),
    *(("iceberg v2", stage) for stage in ("running", "cataloging", "committed")),
]


@pytest.mark.parametrize(("kind", "stage"), STAGES)
def test_a_driver_that_is_killed_leaves_a_table_that_works(kind, stage, tmp_path):
    table = home(kind, tmp_path).make(parts_of(BEFORE, 3), ["p"])
    version = table.version()
    ended = python(DYING, kind, tmp_path, stage)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (table.version() != version) == (stage == "committed")
    assert bool(table.strays()) == (stage not in ("sampling", "committed")), "nobody was left to remove them"
    works_again(table)


def python(code, *words, **environment):
    command = [sys.executable, "-c", code, str(Path(__file__).parents[1]), *map(str, words)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=240, env=os.environ | environment
    )


# --- on Spark --------------------------------------------------------------------------------------------------------

SPARK = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import zonal.plan.placement as placing
import zonal.spark.job as job
from support.cluster_tables import Delta, parts_of, telemetry
from zonal import NewFiles, Spark
from zonal.verbs.cluster import cluster

placing.LEAST_TASK_BYTES = 1  # several tasks, though the table is small
folder = Path(sys.argv[2])
BEFORE = telemetry(600)
real = {name: getattr(job, name) for name in ("read_step", "write_step")}

def faulty(name, fault, folder):
    # The first task that gets to its first result has the fault; `marker` tells that somebody had it.
    marker = str(folder / f"{fault}-{name}")
    def wrapped(*given):
        step = real[name](*given)
        def run(batches):
            import os, signal, sys
            with open(marker + "-modules", "a") as told:
                told.write("zonal " if "zonal.worker.tasks" in sys.modules else "none ")
            for batch in step(batches):
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                    first = batch.num_rows > 0
                except FileExistsError:
                    first = False
                if first and fault == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if first and fault == "raise":
                    raise OSError("on purpose")
                yield batch
        return run
    return wrapped

def rewritten(fault, name, session):
    where = folder / f"{fault}-{name}"
    where.mkdir()
    table = Delta(where).make(parts_of(BEFORE, 3), ["p"])
    setattr(job, name, faulty(name, fault, where))
    try:
        done = cluster(table.name, by=["x", "y"], files=NewFiles(target_file_size=4000), spark=session)
    finally:
        setattr(job, name, real[name])
    marker = where / f"{fault}-{name}"
    told[f"{fault} in {name}"] = {
        "happened": marker.exists(), "rows": done.change.rows,
        "modules": sorted(set(Path(f"{marker}-modules").read_text().split())),
    }

told = {}
"""

ON_ONE_MACHINE = f"""{SPARK}
from zonal.spark.session import spark_session
with spark_session(master="local[2,4]") as session:
    for fault in ("kill", "raise"):
        for name in real:
            rewritten(fault, name, session)
print(json.dumps(told))
"""

ON_EXECUTORS = f"""{SPARK}
from zonal.spark.session import spark_session
conf = {{
    "spark.speculation": "true", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}}
with spark_session(master="local-cluster[2,1,1024]", conf=conf) as session:
    rewritten("raise", "write_step", session)
print(json.dumps(told))
"""

ON_CONNECT = """
import sys
sys.path.insert(0, sys.argv[1])
from support.cluster_tables import Delta, telemetry, parts_of
from pyspark.errors import AnalysisException
from pyspark.sql.connect.conf import RuntimeConf
from zonal.spark.session import spark_session
from zonal import NewFiles, Spark
from zonal.verbs.cluster import cluster
from zonal.verbs.read import read
from zonal.workload.query import Workload
def forbidden(*_):
    raise AnalysisException("[CANNOT_MODIFY_CONFIG] Cannot modify the value of the Spark config. SQLSTATE: 46110")
table = Delta(sys.argv[2]).make(parts_of(telemetry(600), 3), ["p"])
queries = Workload.of([f"x BETWEEN {n} AND {n + 50}" for n in range(0, 900, 60)] + ["s = 'device-0007'"])
with spark_session(remote="local[2]") as spark:
    RuntimeConf.set = forbidden
    done = cluster(table.name, layout="tree", queries=queries, files=NewFiles(target_file_size=4000))
    print(done.change.rows, done.change.added_files - done.change.predicted_files, read(spark, table.name).count())
    print(read(spark, table.name, where="x = -1").count())
assert done.layout.startswith("tree("), done.layout
"""

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import zonal.spark.job as job
from support.cluster_tables import Delta
from zonal import NewFiles, Spark
from zonal.verbs.cluster import cluster
driver, real = os.getpid(), job.write_step
def write_step(*given):
    step = real(*given)
    def run(batches):
        import os, signal, time
        for batch in step(batches):
            if batch.column(1).null_count < batch.num_rows:
                os.kill(driver, signal.SIGKILL)  # a file is written: the driver dies
                time.sleep(1)
            yield batch
    return run
job.write_step = write_step
cluster(Delta(sys.argv[2]).name, by=["x", "y"], files=NewFiles(target_file_size=4000), spark=Spark(master="local[2,4]"))
"""


def told_by(code, folder, **environment):
    ended = python(code, folder, **environment)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.spark
def test_tasks_that_fail_or_are_killed_are_repeated_without_duplicates(tmp_path):
    told = told_by(ON_ONE_MACHINE, tmp_path)
    assert set(told) == {f"{fault} in {name}" for fault in ("kill", "raise") for name in ("read_step", "write_step")}
    for case, found in told.items():
        table = Delta(tmp_path / case.replace(" in ", "-"))
        assert found["happened"], case
        assert found["rows"] == 600
        assert not table.strays(), f"{case}: files of the first attempt are removed"
        works_again(table)


@pytest.mark.spark
def test_executors_need_no_zonal(tmp_path):
    told = told_by(ON_EXECUTORS, tmp_path, SPARK_HOME=str(Path(find_spec("pyspark").origin).parent))
    (found,) = told.values()
    assert (found["happened"], found["rows"]) == (True, 600)
    assert found["modules"] == ["none"], "zonal's functions travel with the job"
    table = Delta(tmp_path / "raise-write_step")
    assert not table.strays()
    works_again(table)


@pytest.mark.spark
@pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
def test_a_rewrite_runs_over_spark_connect(tmp_path):
    ended = python(ON_CONNECT, tmp_path)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.split() == ["600", "0", "600", "0"], "rows, files but those predicted, rows read, and none"
    works_again(Delta(tmp_path))


@pytest.mark.spark
def test_a_driver_that_is_killed_while_spark_writes_leaves_the_table_as_it_was(tmp_path):
    table = Delta(tmp_path).make(parts_of(BEFORE, 3), ["p"])
    ended = python(KILLED, tmp_path)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]
    assert table.version() == 2
    assert table.strays()
    works_again(table)


def test_a_damaged_footer_is_an_error_before_anything_is_written(tmp_path):
    """The log has no numbers of rows with which a lost row group would be noticed."""
    table = home("delta", tmp_path)
    table.root.mkdir()
    rows = telemetry(300)
    pq.write_table(rows, table.root / "a.parquet", row_group_size=100, use_dictionary=False, compression="none")
    with_chunk(table.root / "a.parquet", 1, compressed=-700)
    fields = [field("id", "long"), field("x", "long"), field("y", "double"), field("s", "string"), field("p", "string")]
    LogWriter(table.root).commit(
        protocol(), metadata(*fields), add("a.parquet", size=(table.root / "a.parquet").stat().st_size)
    )
    before = table.listing()
    with pytest.raises(TableError, match=r"a\.parquet.*footer is damaged.*Nothing was committed"):
        table.cluster(by=["x"])
    assert table.listing() == before
