"""Notices for users who wait: no executor is granted, or Spark starts slowly; and the end of waiting by Ctrl-C."""

import os
import signal
import threading
import time

import pytest

from zonal.errors import ZonalNotice
from zonal.report.terminal.progress import rewrite_bar
from zonal.spark import jvm
from zonal.spark.failures import told_in_words
from zonal.spark.grants import Idle, asked, lacking
from zonal.spark.progress import watch
from zonal.spark.versions import collected
from zonal.values.progress import Step, only_notices


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
        only_notices(Step("waiting for Spark", notice="it waits"))


def test_a_start_that_takes_long_says_what_its_log_says(monkeypatch, tmp_path):
    usual = "WARN NativeCodeLoader: Unable to load native-hadoop library for your platform"
    (tmp_path / "log").write_text(f"WARN first\nWARN Client: Retrying connect to server\n\tat x.y\n{usual}\n")
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


@pytest.mark.spark
def test_ctrl_c_cancels_the_job_and_does_not_wait_for_its_end(spark, tmp_path):
    begun, over = tmp_path / "begun", tmp_path / "over"

    def long(batches):
        import time

        begun.touch()
        time.sleep(60)
        over.touch()
        yield from batches

    def interrupt():
        while not begun.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # as sessions that zonal starts have it
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt), told_in_words("It failed"), watch(spark, lambda _: None):
            collected(spark.range(1, numPartitions=1).mapInArrow(long, "id long"))
        assert not over.exists()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert spark.range(3).count() == 3
