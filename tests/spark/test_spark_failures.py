"""What goes wrong around Spark is told in seconds and in words: addresses, workers' Pythons, JVMs that end, waiting."""

import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.cluster_tables import Delta, parts_of, telemetry
from zonal.errors import ZonalError, ZonalNotice
from zonal.report.terminal.progress import rewrite_bar
from zonal.spark import address, jvm, session
from zonal.spark.failures import is_broken_call, reason, start_refusal, told_in_words
from zonal.spark.grants import Idle, asked, lacking
from zonal.spark.progress import watch
from zonal.spark.shipment import carried
from zonal.verbs.cluster import Step, _silent

# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def refusal(check, name):
    with pytest.raises(ZonalError) as caught:
        check(name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("yran", "Spark knows no master 'yran'. Did you mean 'yarn'?"),
        ("mesos://host:5050", "Spark knows no master 'mesos://host:5050'. Masters are: local, local[*], "),
        ("spark://host", "'spark://host' is no address of a Spark master: write it as spark://HOST:PORT."),
        ("spark://nosuch.invalid:7077", "'spark://nosuch.invalid:7077': the host isn't known ("),
        ("spark://127.0.0.1:1", "No Spark master answers at 'spark://127.0.0.1:1': Connection refused. Start it"),
        ("spark://127.0.0.1:1,[::1]:2", "127.0.0.1:1: Connection refused; ::1:2: "),
        ("k8s://https://127.0.0.1:1", "No Kubernetes answers at 'k8s://https://127.0.0.1:1': Connection refused"),
    ],
)
def test_masters_that_are_none_or_do_not_answer_are_told_before_anything_starts(master, told):
    assert told in refusal(address.check_master, master)


@pytest.mark.parametrize(
    ("remote", "told"),
    [
        (
            "sc://localhost:1/;token=secret",
            "No Spark Connect server answers at 'sc://localhost:1/': Connection refused.",
        ),
        ("sc://nosuch.invalid", "the host isn't known"),
        ("somewhere", "'somewhere' is no Spark Connect server: write it as sc://HOST or sc://HOST:PORT."),
        ("spark://127.0.0.1:1", "'spark://127.0.0.1:1' is no Spark Connect server"),
    ],
)
def test_servers_that_are_none_or_do_not_answer_are_named_without_their_token(remote, told):
    found = refusal(address.check_server, remote)
    assert told in found
    assert "secret" not in found


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,3]", "local-cluster[1,1,1024]", "yarn"])
def test_masters_that_need_no_address_are_taken(master):
    address.check_master(master)


def test_one_master_of_several_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address.check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


def test_an_address_behind_a_proxy_is_not_knocked_at_but_its_exceptions_are(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:3128")
    address.check_server("sc://nosuch.invalid")
    monkeypatch.setenv("no_proxy", "nosuch.invalid")
    assert "isn't known" in refusal(address.check_server, "sc://nosuch.invalid")


def test_a_master_that_does_not_answer_starts_no_jvm(monkeypatch):
    monkeypatch.setattr(session, "_running", lambda: None)
    monkeypatch.setattr(session, "start_jvm", lambda _: pytest.fail("a JVM was started"))
    with pytest.raises(ZonalError, match=r"No Spark master answers at 'spark://127\.0\.0\.1:1'"):
        session.spark_session(master="spark://127.0.0.1:1").__enter__()


# --- texts of real failures ------------------------------------------------------------------------------------------

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
  File "/work/shipping.py", line 91, in load
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


@pytest.mark.parametrize(
    ("code", "log", "told"),
    [
        (-9, "", "signal SIGKILL ended it, as the system does where memory runs out"),
        (137, "", "signal SIGKILL ended it, as the system does where memory runs out"),
        (52, "", "it ran out of memory: give it more, as in conf spark.driver.memory=8g"),
        (
            1,
            "ERROR x: java.lang.OutOfMemoryError: Java heap space",
            "it ran out of memory: give it more, as in conf ",
        ),
        (-15, "", "signal SIGTERM ended it"),
        (1, "", "exit code 1"),
    ],
)
def test_how_a_jvm_ended_is_told_in_words(code, log, told):
    assert jvm.ending(code, log).startswith(told)


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


def test_calls_that_broke_are_not_logged_by_py4j_and_others_are(caplog):
    with jvm.quiet_calls():
        record = logging.LogRecord("root", logging.ERROR, "/site-packages/py4j/java_gateway.py", 1, "broken", (), None)
        logging.getLogger().handle(record)
        logging.getLogger().error("mine")
    assert [found.getMessage() for found in caplog.records] == ["mine"]


def test_the_handler_of_ctrl_c_is_kept_where_pyspark_replaces_it():
    before = signal.getsignal(signal.SIGINT)
    with jvm.own_interrupt():
        signal.signal(signal.SIGINT, lambda *_: None)
    assert signal.getsignal(signal.SIGINT) is before
    reached = []

    def elsewhere():
        with jvm.own_interrupt():
            reached.append(True)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert reached, "threads may not set handlers"


LAUNCHED = """
import os, signal, sys, threading, time
import pyspark.java_gateway as gateway
from zonal.spark import jvm
class Process:
    def kill(self): print("killed")
    def wait(self): print("ended")
class Gateway: proc = Process()
def launch(*_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
    return Gateway
gateway.launch_gateway = launch
try:
    jvm._launched({}, 1)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_jvm_is_ended_that_is_launched_under_ctrl_c():
    pytest.importorskip("pyspark")
    told = subprocess.run([sys.executable, "-c", LAUNCHED], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["killed", "ended", "interrupted"]


def test_a_jvm_is_ended_by_its_input_and_its_folder_removed(tmp_path):
    folder = tmp_path / "left"
    (folder / "spark-1").mkdir(parents=True)
    waits = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    jvm._end(folder, [waits])
    assert waits.returncode == 0
    assert not folder.exists()


def test_a_jvm_puts_temporary_files_where_they_are_found_unless_the_user_says_where(monkeypatch, tmp_path):
    folder = tmp_path / 'a "b'
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dx=1")
    with jvm._temporary_in(folder):
        assert os.environ["SPARK_SUBMIT_OPTS"] == f'-Djava.io.tmpdir="{tmp_path}/a \\"b" -Dx=1'
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dx=1"


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_waiting_is_told_after_half_a_minute_and_ever_more_seldom():
    now, told = [0.0], []
    idle = Idle(lambda: "why", told.append, lambda: now[0])
    for now[0] in range(200):
        idle.look(waits=True)
    assert told == [f"No task has run for {seconds} s: why" for seconds in (30, 60, 120)]
    idle.look(waits=False)
    assert told[-1] == "Spark runs tasks again, after 199 s."
    for now[0] in range(200, 229):
        idle.look(waits=True)
    idle.look(waits=False)
    assert len(told) == 4, "short pauses are nobody's business"


class SparkSession:
    """A session on a Connect server, whose handlers a test calls."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self):
        self.handlers = []
        self.registerProgressHandler = self.handlers.append
        self.removeProgressHandler = self.handlers.remove
        self.conf = Session(0)


def test_waiting_is_noticed_on_a_connect_server_and_its_end_is_no_progress(monkeypatch):
    now, told = [0.0], []
    monkeypatch.setattr("zonal.spark.grants.time.monotonic", lambda: now[0])
    spark = SparkSession()
    with watch(spark, lambda _: None, told.append):
        for now[0] in range(0, 40, 2):
            spark.handlers[0](stages=[], inflight_tasks=0, operation_id="x", done=False)
        spark.handlers[0](stages=[], inflight_tasks=0, operation_id="x", done=True)
    (notice,) = told
    assert notice.startswith("No task has run for 30 s: the Spark Connect server has no free executor for them.")
    assert not spark.handlers


class Session:
    """A classic session on a cluster."""

    def __init__(self, executors, **conf):
        self.executors = executors
        self.values = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
        self.conf = self.sparkContext = self._jsc = self

    def sc(self):
        return self

    statusTracker = sc  # noqa: N815 - as Spark calls it

    def getExecutorInfos(self):  # noqa: N802
        return [None] * (self.executors + 1)

    def get(self, name, default=None):
        return self.values.get(name, default)


def test_what_was_asked_for_is_told_where_nothing_is_granted():
    spark = Session(0, master="spark://host:7077", executor_memory="9g", executor_cores="4", cores_max="8")
    found = lacking(spark)
    assert found.startswith(
        "Spark on 'spark://host:7077' granted no executor. Asked for: executors with spark.executor.memory=9g, "
        "spark.executor.cores=4, and spark.cores.max=8 in all."
    )
    assert "Ctrl-C ends it" in found
    assert asked(Session(0, executor_instances="3")).startswith("3 executors with spark.executor.memory=1g, ")
    assert lacking(Session(2, master="yarn")).startswith("other queries of the session keep its executors busy.")


def test_notices_reach_people_with_and_without_a_terminal(capsys):
    with rewrite_bar() as report:
        report(Step("waiting for Spark", notice="it waits \x1b[2J"))
        report(Step("reading", done=1, total=2))
    told = capsys.readouterr().err
    assert told.startswith("it waits")
    assert "\x1b" not in told
    assert "reading" not in told
    with pytest.warns(ZonalNotice, match="it waits"):
        _silent(Step("waiting for Spark", notice="it waits"))


def test_a_start_that_takes_long_says_what_its_log_says(monkeypatch, tmp_path):
    (tmp_path / "log").write_text("WARN first\nWARN Client: Retrying connect to server\n\tat x.y\n")
    monkeypatch.setattr(jvm, "_folders", [tmp_path])
    monkeypatch.setattr(jvm, "SLOW_SECONDS", 0.05)
    told = []
    heard = threading.Event()

    def tell(notice):
        told.append(notice)
        heard.set()

    with jvm.telling_slowness("Spark on 'yarn'", tell):
        assert heard.wait(30)
    assert told[0].startswith("Spark on 'yarn' has been starting for ")
    assert told[0].endswith("Its log says: WARN Client: Retrying connect to server")


# --- settings --------------------------------------------------------------------------------------------------------


class Forbidding:
    """The configuration of a server that lets only some settings be changed, and read."""

    def __init__(self, forbidden):
        self.forbidden = forbidden
        self.values = {"a": "1"}
        self.conf = self

    def check(self, name, kind):
        from pyspark.errors import AnalysisException

        if self.forbidden == (name, kind):
            raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available. SQLSTATE: 42K0I")

    def isModifiable(self, name):  # noqa: N802
        self.check(name, "ask")
        return True

    def get(self, name, default):
        self.check(name, "get")
        return self.values.get(name, default)

    def set(self, name, value):
        self.check(name, "set")
        self.values[name] = value

    def unset(self, name):
        del self.values[name]


@pytest.mark.parametrize("kind", ["ask", "get", "set"])
def test_a_server_that_forbids_a_setting_is_used_without(kind):
    pytest.importorskip("pyspark")
    spark = Forbidding(("b", kind))
    with session.settings(spark, {"a": "2", "b": "3", "c": "4"}):
        assert spark.values == {"a": "2", "c": "4"}
    assert spark.values == {"a": "1"}


# --- workers' Pythons ------------------------------------------------------------------------------------------------


def test_a_worker_says_which_python_on_which_host_lacks_what():
    from pyspark import cloudpickle

    code = (
        "import sys, pickle\n"
        "class Bare:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('numpy', 'zonal'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Bare())\n"
        f"sys.path.append({str(Path(cloudpickle.__file__).parent.parent.parent)!r})\n"
        "pickle.loads(sys.stdin.buffer.read())"
    )
    from zonal.layouts.keys import key_words

    for by_value, lacks in ((True, "numpy"), (False, "zonal")):
        pickled = cloudpickle.dumps(carried(key_words, by_value=by_value))
        told = subprocess.run([sys.executable, "-c", code], check=False, input=pickled, capture_output=True, timeout=60)
        last = told.stderr.decode().splitlines()[-1]
        assert last.startswith(
            f"ImportError: the Python of a Spark worker, {sys.executable} on {os.uname().nodename}, "
        )
        assert f"has no {lacks}. Install numpy and pyarrow there, or set PYSPARK_PYTHON" in last
        assert reason(Exception(told.stderr.decode())) == last.removeprefix("ImportError: ")


def test_carried_functions_run_on_the_driver_too():
    assert carried(sorted, by_value=False)([2, 1]) == [1, 2]
    from pyspark import cloudpickle

    assert pickle.loads(cloudpickle.dumps(carried(sorted)))([2, 1]) == [1, 2]  # noqa: S301


def test_another_python_of_the_same_kind_is_not_this_one(tmp_path):
    (tmp_path / "python").symlink_to(sys.executable)
    assert session._is_this_python(sys.executable)
    assert not session._is_this_python(str(tmp_path / "python")), "its packages are others"


class Local:
    """A classic session on this machine, with a Python of its own for its workers."""

    def __init__(self, python, master="local[2]"):
        self.pythonExec = python
        self.master = master
        self.conf = self.sparkContext = self

    def get(self, *_):
        return self.master


def test_a_python_that_is_not_there_is_told_before_a_lazy_query_is_made():
    with pytest.raises(
        ZonalError, match=r"can't start Python as '/no/such/python': there is no such program\. Set PYSPA"
    ):
        session.check_worker_python(Local("/no/such/python"))
    session.check_worker_python(Local(sys.executable))
    session.check_worker_python(Local("/no/such/python", "yarn"))  # workers elsewhere may have it
    assert session.is_on_this_machine(Local(sys.executable))
    assert not session.is_on_this_machine(Local("/no/such/python"))


# --- on Spark --------------------------------------------------------------------------------------------------------

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
with session.spark_session(master="local[1]") as spark:
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
    assert lines["read"].startswith(f"the workers can't start Python as '{bare}'")
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
