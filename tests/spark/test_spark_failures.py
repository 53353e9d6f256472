"""Failures on Spark: told in one sentence, and none leaves anything behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cluster_tables import Delta, parts_of, telemetry
from zonal.errors import ZonalError
from zonal.spark.failures import is_broken_call, start_refusal, told_in_words

NO_PYTHON = """An error occurred while calling o125.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult: \n\
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most \
recent failure: Lost task 0.0 in stage 1.0 (TID 1) (192.0.2.2 executor driver): java.io.IOException: Cannot run \
program "/no/such/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
\t... 29 more
"""
NO_PYTHON_ON_CONNECT = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: \
Lost task 0.0 in stage 1.0 (TID 1) (192.0.2.2 executor driver): java.io.IOException: Cannot run program \
"/no/such/python" (in directory "/tmp/spark-c0c1967f/userFiles-d2b18932"): error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
"""
NOT_A_PYTHON = """An error occurred while calling o115.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult: \n\
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most \
recent failure: Lost task 0.0 in stage 1.0 (TID 1) (worker-7 executor 3): org.apache.spark.SparkException: \
EOFException occurred while reading the port number from pyspark.daemon's stdout and terminated with code: 1..
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(SparkCoreErrors.scala:55)
"""
LACKING = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/app/shipping.py", line 91, in load
    raise ImportError(
ImportError: the Python of a Spark worker, /opt/bare/bin/python on vm, has no pyarrow. Install numpy and pyarrow there
 SQLSTATE: 38000
"""
REMOVED = """An error occurred while calling o87.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult: \n\
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Master removed our application: FAILED
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2935)
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            NO_PYTHON,
            r"the workers on 192\.0\.2\.2 can't start Python as '/no/such/python': No such file or directory\. Set",
        ),
        (
            NO_PYTHON_ON_CONNECT,
            r"the workers on 192\.0\.2\.2 can't start Python as '/no/such/python': No such file or d",
        ),
        (
            NOT_A_PYTHON,
            r"what the workers on worker-7 start as Python isn't one, or can't run Spark's code\. Set PYSPARK_PY",
        ),
        (LACKING, r"the Python of a Spark worker, /opt/bare/bin/python on vm, has no pyarrow\. Install numpy and pya"),
        (REMOVED, r"Job aborted due to stage failure: Master removed our application: FAILED$"),
        ("x.TableError: a full sentence", "a full sentence$"),
        ("Traceback\nValueError: odd", "ValueError: odd$"),
        ("", "Exception$"),
    ],
)
def test_what_spark_says_is_told_in_one_sentence(text, told):
    with pytest.raises(ZonalError, match=rf"^Spark couldn't do it: {told}"), told_in_words("Spark couldn't do it"):
        raise Exception(text)


DENIED = """An exception was thrown from the Python worker:
zonal.errors.TableError: Can't read the file 's3://box/t': ACCESS_DENIED. Check the credentials: those of this machine.
"""


@pytest.mark.parametrize("elsewhere", [False, True])
def test_credentials_that_workers_lack_are_told_from_those_of_this_process(elsewhere):
    with pytest.raises(ZonalError) as caught, told_in_words("It failed", elsewhere=elsewhere):
        raise Exception(DENIED)
    told = str(caught.value)
    assert told.startswith("It failed: Can't read the file 's3://box/t': ACCESS_DENIED.")
    assert ("This is about Spark's workers: the environment and the profiles" in told) == elsewhere


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (
            '26/11/17 03:37:42 WARN Utils: Set SPARK_LOCAL_IP\nException in thread "main" org.apache.spark.'
            "SparkException: When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in "
            "the environment.\n\tat x\n",
            "When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment",
        ),
        (
            "26/11/17 03:38:55 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are "
            "unresponsive! Giving up.\n",
            "something answers there, but not as a Spark master.",
        ),
        ("26/11/17 03:38:55 WARN Utils: nothing", None),
    ],
)
def test_the_log_of_a_start_says_why_it_was_refused(log, told):
    found = start_refusal(log)
    assert found == told if told is None else found.startswith(told)


class Py4JNetworkError(Exception):
    """Named as py4j names it."""


def test_a_call_that_broke_because_the_jvm_ended_is_told_as_that(monkeypatch):
    pyspark = pytest.importorskip("pyspark")
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process.kill()
    monkeypatch.setattr(pyspark.SparkContext, "_gateway", type("Gateway", (), {"proc": process}))
    ended = r"^It failed: the JVM of Spark's driver ended: signal SIGKILL"
    with pytest.raises(ZonalError, match=ended), told_in_words("It failed"):
        raise Py4JNetworkError("Error while sending or receiving")
    with pytest.raises(ZonalError, match=r"^It failed: ValueError: x$"), told_in_words("It failed"):
        raise Exception("ValueError: x")
    assert not is_broken_call(ValueError("x"))


def test_an_interrupt_behind_a_broken_call_stays_one():
    def broken():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            try:
                raise Py4JNetworkError
            except Py4JNetworkError as error:
                raise ValueError("the call broke") from error

    with pytest.raises(KeyboardInterrupt), told_in_words("It failed"):
        broken()


FAILING = """
import os, signal, sys, tempfile
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from support.cluster_tables import Delta
from zonal.errors import ZonalError
from zonal.spark import session
import warnings
import zonal
warnings.simplefilter("ignore", zonal.ZonalNotice)  # its partitions are small
name = Delta(sys.argv[2]).name
bare = Path(sys.argv[3])
def attempt(what, work):
    try:
        work()
    except ZonalError as error:
        print(what, error)
    except Exception as error:
        print(what, "RAW", str(error).splitlines()[-1])
kept = session._environment
def with_bare(*given):
    found = kept(*given)
    class Environment:
        def __enter__(self):
            found.__enter__()
            os.environ["PYSPARK_PYTHON"] = str(bare)
        def __exit__(self, *error):
            return found.__exit__(*error)
    return Environment()
session._environment = with_bare
with session.spark_session(master="local[1]", conf={"spark.python.daemon.module": "pyspark.daemon"}) as spark:
    attempt("lacks", lambda: zonal.cluster(name, by=["x"], spark=spark, database=None))
    attempt("clustered", lambda: spark.range(9).transform(zonal.clustered("zorder(id)", files=2)))
    bare.unlink()
    attempt("read", lambda: zonal.read(spark, name))
    pid = spark.sparkContext._gateway.proc.pid
    def killed(step):
        if step.name == "rewriting":
            os.kill(pid, signal.SIGKILL)
    attempt("killed", lambda: zonal.cluster(name, by=["x"], spark=spark, database=None, progress=killed))
"""


@pytest.mark.spark
def test_failures_on_spark_are_told_in_words_and_leave_nothing(tmp_path):
    table = Delta(tmp_path / "table").make(parts_of(telemetry(60), 2), ["p"])
    before = table.listing()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    bare = tmp_path / "bare" / "bin" / "python"
    (tmp_path / "tmp").mkdir()
    told = subprocess.run(
        [sys.executable, "-c", FAILING, str(Path(__file__).parents[1]), str(tmp_path / "table"), str(bare)],
        check=False, capture_output=True, text=True, timeout=300, env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr[-3000:]
    assert told.stderr == ""
    lines = dict(line.split(" ", 1) for line in told.stdout.splitlines())
    lacks = f"the Python of a Spark worker, {bare} on {os.uname().nodename}, has no "
    assert lines["lacks"].startswith(f"Spark couldn't finish the rewrite: {lacks}")
    assert lines["lacks"].endswith("Nothing was committed.")
    assert lines["clustered"].startswith(f"Spark couldn't sample the keys: {lacks}")
    assert lines["read"].startswith(f"The workers can't start Python as '{bare}'")
    assert lines["killed"].startswith(
        "Spark couldn't finish the rewrite: the JVM of Spark's driver ended: signal SIGKILL"
    )
    assert table.listing() == before
    assert not list((tmp_path / "tmp").iterdir()), "Spark's temporary folders are removed"


@pytest.mark.spark
def test_sigterm_removes_sparks_temporary_folders(tmp_path):
    table = Delta(tmp_path / "table").make(parts_of(telemetry(60), 2), ["p"])
    (tmp_path / "tmp").mkdir()
    command = [
        sys.executable,
        "-m",
        "zonal",
        "cluster",
        table.name,
        "--by",
        "x",
        "--no-database",
        "--master",
        "local[1]",
    ]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    while running.poll() is None and not list((tmp_path / "tmp").glob("zonal-spark-*/spark-*")):
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=120)
    assert (running.returncode, told.splitlines()[-1]) == (130, "Stopped. Nothing was committed.")
    assert not list((tmp_path / "tmp").iterdir())
    assert not table.strays()
