"""The Spark session that a rewrite runs in: the caller's own, or one that is started quietly and stopped again."""

import atexit
import os
import re
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from zonal.errors import ZonalError, option, quoted
from zonal.spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST = 4, 1
"""Spark 4.1 is the first with `repartitionById`."""

_MOST_DRIVER_BYTES, _LEAST_DRIVER_BYTES = 4 << 30, 1 << 30
_TAIL_LINES = 12
LOCAL: Mapping[str, str] = {
    "spark.app.name": "zonal",
    # The JVM only moves payloads: optimizing its code costs more than it saves (docs/decisions.md has the numbers).
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.shuffle.compress": "false",  # payloads are compressed already
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a session on this machine, where the user says nothing else."""
_FAR = {"spark.app.name": "zonal", "spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
_CONNECT_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"

_logs: list[Path] = []
"""Where the JVM of this process writes what it would print; one JVM serves all sessions of a process."""


@contextmanager
def spark_session(
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    session: "SparkSession | None" = None,
) -> Iterator["SparkSession"]:
    """Give a Spark session: the given one, else the one that runs in this process, else a new one.

    A session of the caller is used as it is and left running. A new one runs on `master` (this machine, if nothing
    is said), or on the Spark Connect server at `remote`; it prints nothing, and is stopped at the end.
    """
    check_pyspark(remote)
    options = {"master": master, "remote": remote, "conf": conf or None}
    asked = [option(name) for name, value in options.items() if value is not None]
    if session is not None and asked:
        raise ZonalError(f"The given Spark session is used as it is: leave out {', '.join(asked)}.")
    if master is not None and remote is not None:
        raise ZonalError(f"Say {option('master', master)} or {option('remote', _public(remote))}, not both.")
    running = session if session is not None else _running()
    if running is not None:
        if asked:
            raise ZonalError(
                f"A Spark session already runs in this process: leave out {', '.join(asked)}, or stop it first."
            )
        _check_version(running.version, "The running Spark")
        yield running
        return
    with _started(master, remote or (None if master else os.environ.get("SPARK_REMOTE")), conf or {}) as started:
        yield started


@contextmanager
def settings(spark: "SparkSession", wanted: Mapping[str, str]) -> Iterator[None]:
    """Change the session's configuration, and restore it at the end.

    What this Spark doesn't know, or fixed when it started, stays as it is.
    """
    before: dict[str, str | None] = {}
    try:
        for name, value in wanted.items():
            if spark.conf.isModifiable(name):
                before[name] = spark.conf.get(name, None)  # None where the default applies
                spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            with suppress(Exception):  # a session that broke down has nothing to restore
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)


def is_connect(spark: "SparkSession") -> bool:
    """Tell a Spark Connect session from a classic one."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(spark).__mro__)


def is_on_this_machine(spark: "SparkSession") -> bool:
    """Tell whether tasks run in threads of a JVM here, with this process's own Python packages."""
    if is_connect(spark):
        return False
    return is_local_master(str(spark.conf.get("spark.master", "")))


def is_local_master(master: str) -> bool:
    """Tell `local`, `local[4]` and `local[*]` from masters with executors.

    >>> [is_local_master(master) for master in ("local[*]", "local", "local-cluster[1,1,1024]", "yarn")]
    [True, True, False, False]
    """
    return re.match(r"local(\[|$)", master) is not None


def check_pyspark(remote: str | None = None) -> None:
    """Refuse what needs Spark where pyspark isn't installed, or is too old."""
    try:
        import pyspark  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise ZonalError("This needs Spark. Run: pip install 'zonal[spark]'") from None

    _check_version(pyspark.__version__, "pyspark")
    if remote is not None and find_spec("grpc") is None:
        raise ZonalError("Spark Connect needs more of pyspark. Run: pip install 'pyspark[connect]'")


def _check_version(version: str, what: str) -> None:
    match = re.match(r"(\d+)\.(\d+)", version)
    if match and (int(match[1]), int(match[2])) < OLDEST:
        least = ".".join(map(str, OLDEST))
        raise ZonalError(f"{what} has version {version}; zonal needs Spark {least} or later. Update it.")


def _running() -> "SparkSession | None":
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


@contextmanager
def _started(master: str | None, remote: str | None, conf: Mapping[str, str]) -> Iterator["SparkSession"]:
    was_connect = _CONNECT_VARIABLE in os.environ
    session = _start(master, remote, conf)
    try:
        _check_version(session.version, "The Spark server")
        yield session
    finally:
        session.stop()
        if not was_connect:  # Spark keeps it, and the process could start no classic session any more
            os.environ.pop(_CONNECT_VARIABLE, None)


def _start(master: str | None, remote: str | None, conf: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Under spark-submit the JVM is there already, and knows its master and settings.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    here = remote if remote is not None else master or (None if submitted else "local[*]")
    options = _options(here, conf)
    builder = SparkSession.builder
    if remote is not None:
        builder = builder.remote(remote)
    elif here is not None:
        builder = builder.master(here)
    for name, value in options.items():
        builder = builder.config(name, value)
    if remote is not None:
        _check_reachable(remote)
    what = f"Spark at {_shown(remote)}" if remote else f"Spark on {quoted(here)}" if here else "Spark"
    starts_jvm = not submitted and here is not None and not here.startswith("sc:")
    with _environment(here, remote), warnings.catch_warnings():
        if remote is not None and starts_jvm:  # the JVM that starts has what the session then warns that it can't set
            warnings.filterwarnings("ignore", message="Failed to set ")
        try:
            if starts_jvm:
                _start_jvm({"spark.master": str(here), **options})
            return builder.getOrCreate()
        except ZonalError:
            raise
        except Exception as error:
            raise ZonalError(f"{what} did not start: {_reason(error)}{_tail()}") from error


def _check_reachable(remote: str) -> None:
    """Knock at the server: Spark's own client tries for minutes before it says that nobody is there."""
    match = re.match(r"sc://(?:\[([^\]]+)\]|([^:/;]+))(?::(\d{1,5}))?(?:/|$)", remote)
    if match is None or any(name.lower().endswith("_proxy") for name in os.environ):
        return  # an address that Spark judges, or one that is reached in another way
    host, port = match[1] or match[2], int(match[3] or 15002)
    try:
        socket.create_connection((host, port), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ZonalError(f"No Spark Connect server answers at {_shown(remote)}: {error}") from None


def _shown(remote: str) -> str:
    return quoted(_public(remote))


def _public(remote: str) -> str:
    """Return the address without its parameters, which may hold a token."""
    return remote.partition(";")[0]


def _options(here: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    if here is None or here.startswith("sc:"):
        return {"spark.sql.session.timeZone": "UTC", **conf}
    if not is_local_master(here):
        return {**_FAR, **conf}
    return {**LOCAL, "spark.driver.memory": f"{_driver_bytes() >> 20}m", **conf}


@contextmanager
def _environment(here: str | None, remote: str | None) -> Iterator[None]:
    """Let workers on this machine run this Python; elsewhere, what the user set or the cluster has.

    `SPARK_REMOTE`, which pyspark doesn't take beside a master, is put away while a session on a master starts.
    """
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    before = {name: os.environ.get(name) for name in (*names, "SPARK_REMOTE")}
    if remote is None:
        os.environ.pop("SPARK_REMOTE", None)
    if here is not None and is_local_master(here):
        os.environ.update(dict.fromkeys(names, sys.executable))
    elif here is not None and here.startswith("local-cluster"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _start_jvm(options: Mapping[str, str]) -> None:
    """Start the JVM of this process with its output in a log file, unless it runs already.

    `launch_gateway` alone takes where the JVM prints to; redirecting this process's own output while the JVM starts
    would swallow what other threads print, such as a progress bar.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None:
        return
    use_java()
    descriptor, name = tempfile.mkstemp(prefix="zonal-spark-", suffix=".log")
    _logs.append(Path(name))
    atexit.register(_logs[-1].unlink, missing_ok=True)
    try:
        settings = SparkConf(loadDefaults=False).setAll(list(options.items()))
        gateway = launch_gateway(settings, {"stdout": descriptor, "stderr": descriptor})  # type: ignore[no-untyped-call]
    finally:
        os.close(descriptor)
    SparkContext._ensure_initialized(gateway=gateway)


def _driver_bytes() -> int:
    """Return the JVM's share of the memory: the Python workers, which hold the rows, need the rest."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _LEAST_DRIVER_BYTES
    with suppress(OSError, ValueError):  # "max" in a container without a limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(max(memory // 4, _LEAST_DRIVER_BYTES), _MOST_DRIVER_BYTES)


def _reason(error: Exception) -> str:
    """Take the lines of an error that tell a person something, without Java's stack."""
    # Py4J puts the Java exception and its stack behind a line of its own.
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line.removeprefix(": ") for line in lines if line and not line.startswith(("at ", "An error occurred"))]
    return " ".join(told[:3]) or type(error).__name__


def _tail() -> str:
    if not _logs:
        return ""
    with suppress(OSError):
        lines = _logs[-1].read_text(errors="replace").splitlines()
        told = [line for line in lines if line and not line.startswith("\tat ")][-_TAIL_LINES:]
        if told:
            return "\nThe last lines of its log:\n" + "\n".join(f"  {line[:300]}" for line in told)
    return ""
