"""The JVM of this process: how its end is told, who handles Ctrl-C, and what becomes of its files."""

import logging
import os
import signal
import subprocess
import sys
import threading
from pickle import UnpicklingError
from socketserver import BaseRequestHandler
from types import SimpleNamespace

import pytest
from pyspark.accumulators import AccumulatorTCPServer

from zonal.spark import jvm


@pytest.mark.parametrize(
    ("code", "log", "told"),
    [
        (-9, "", "signal SIGKILL ended it, as the system does where memory runs out"),
        (137, "", "signal SIGKILL ended it, as the system does where memory runs out"),
        (52, "", "it ran out of memory: give it more, such as spark.driver.memory=8g in spark=Spark(conf="),
        (
            1,
            "ERROR x: java.lang.OutOfMemoryError: Java heap space",
            "it ran out of memory: give it more, such as spark.driver.memory=8g in ",
        ),
        (-15, "", "signal SIGTERM ended it"),
        (1, "", "exit code 1"),
    ],
)
def test_how_a_jvm_ended_is_told_in_words(code, log, told):
    assert jvm.ending(code, log).startswith(told)


def test_calls_that_broke_are_not_logged_by_py4j_and_others_are(caplog):
    with jvm.quiet_calls():
        record = logging.LogRecord("root", logging.ERROR, "/site-packages/py4j/java_gateway.py", 1, "broken", (), None)
        logging.getLogger().handle(record)
        logging.getLogger().error("mine")
    assert [found.getMessage() for found in caplog.records] == ["mine"]


def test_calls_that_break_because_the_process_ends_are_not_logged(caplog, tmp_path):
    root = logging.getLogger()
    before = list(root.filters)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        try:
            jvm._end(tmp_path / "folder", [process])
            root.handle(logging.LogRecord("root", logging.ERROR, "/site-packages/py4j/x.py", 1, "broken", (), None))
            root.error("mine")
        finally:
            root.filters[:] = before
    assert [found.getMessage() for found in caplog.records] == ["mine"]


@pytest.mark.parametrize(
    ("error", "printed"), [(EOFError, False), (ConnectionResetError, False), (UnpicklingError, True)]
)
def test_accumulators_print_a_traceback_unless_the_jvm_that_sends_them_ended(capfd, error, printed):
    server = AccumulatorTCPServer(("127.0.0.1", 0), BaseRequestHandler, "token")
    jvm.quiet_accumulators(SimpleNamespace(_sc=SimpleNamespace(_accumulatorServer=server)))
    with server:
        try:
            raise error
        except error:
            server.handle_error(None, ("127.0.0.1", 5))
    assert (error.__name__ in capfd.readouterr().err) == printed


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
    with jvm._told([f"-Djava.io.tmpdir={folder}"]):
        assert os.environ["SPARK_SUBMIT_OPTS"] == f'"-Djava.io.tmpdir={tmp_path}/a \\"b" -Dx=1'
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dx=1"
