"""Spark's own processes on loopback, as people run them: a standalone master with workers, a Spark Connect server."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.jars import jar
from zonal.errors import JavaError
from zonal.spark.java import use_java

SECONDS = 240
"""How long a process may take until it serves."""
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for processes that live for seconds."""
_DEPLOY = "org.apache.spark.deploy"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SERVER_JAR = "org.apache.spark:spark-connect_2.12:3.5.7"
"""The newest one that Maven Central has; it serves clients of later patches as well."""


@dataclass(frozen=True)
class Daemon:
    """A process with its log."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def told(self, pattern: str) -> str:
        """Wait until the log has a line like this, and return what its group matches."""
        end = time.monotonic() + SECONDS
        while (found := re.search(pattern, self.log.read_text(errors="replace"))) is None:
            assert self.process.poll() is None, f"it ended:\n{self.log.read_text(errors='replace')[-3000:]}"
            assert time.monotonic() < end, f"no {pattern!r} in:\n{self.log.read_text(errors='replace')[-3000:]}"
            time.sleep(0.1)
        return found[1] if found.re.groups else found[0]


@contextmanager
def daemon(folder: Path, words: Sequence[object], env: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """Run a program of Spark's in a process group of its own, which is ended with all that it started.

    Its environment has neither the Python nor the credentials of this one, as on other machines.
    """
    folder.mkdir(parents=True)
    try:
        use_java()
    except JavaError as error:
        pytest.skip(str(error))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PY", "AWS_", "SPARK_"))}
    ours = {
        "AWS_EC2_METADATA_DISABLED": "true",  # a machine without a role, which clients would wait for
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "SPARK_LOG_DIR": str(folder),
        "SPARK_PID_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_NO_DAEMONIZE": "1",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(word) for word in words], env={**kept, **ours, **(env or {})}, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield Daemon(process, folder / "log")
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def spark_home() -> Path:
    """Return the folder of the Spark that pyspark brings."""
    pyspark = pytest.importorskip("pyspark")
    return Path(pyspark.__file__).parent


def spark_class(name: str, *words: object) -> list[object]:
    """Return the command of a class of Spark's."""
    return [spark_home() / "bin" / "spark-class", f"{_DEPLOY}.{name}", *words]


@contextmanager
def standalone(folder: Path, *, workers: int = 2, under: Sequence[object] = ()) -> Iterator[str]:
    """Run a master, and workers with one core and a gigabyte each; yield the master's address.

    Every worker has a host of its own, 127.0.0.2 and so on: Spark starts no second attempt on the host of the first.
    `under` is a command that starts the workers' own.
    """
    ports = ("--port", 0, "--webui-port", 0)
    with ExitStack() as stack:
        words = spark_class("master.Master", "--host", "127.0.0.1", *ports)
        master = stack.enter_context(daemon(folder / "master", words))
        address = master.told(r"Starting Spark master at (spark://\S+)")
        started = []
        for number in range(workers):
            place = folder / f"worker-{number}"
            host = f"127.0.0.{number + 2}"
            room = ("--cores", 1, "--memory", "1g", "--work-dir", place / "work")
            words = [*under, *spark_class("worker.Worker", "--host", host, *ports, *room, address)]
            started.append(stack.enter_context(daemon(place, words, {"SPARK_LOCAL_IP": host})))
        for worker in started:
            worker.told("Successfully registered with master")
        yield address


@contextmanager
def connect_server(folder: Path, python: Path) -> Iterator[str]:
    """Run a Spark Connect server by Spark's own script; yield its address. Its workers run `python`."""
    conf = {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.ui.enabled": "false",
    }
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    script: list[object] = [spark_home() / "sbin" / "start-connect-server.sh"]
    if not script[0].exists():  # Spark 3.5, whose server is a jar of its own
        script = [spark_home() / "bin" / "spark-submit", "--class", _SERVER, "--jars", jar(_SERVER_JAR)]
    with daemon(folder, [*script, *words], {"PYSPARK_PYTHON": str(python)}) as server:
        port = server.told(r"Spark Connect server started at: \S+:(\d+)")
        yield f"sc://127.0.0.1:{port}"
