"""Provide the Spark session of a rewrite: the caller's own, or one that is started quietly and stopped again."""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from zonal.errors import ZonalError, ZonalNotice, in_line, option
from zonal.spark import daemon
from zonal.spark.address import check_master, check_server, public, shown
from zonal.spark.class_archive import archive_flags
from zonal.spark.failures import is_broken_call, missing_python, reason, start_refusal
from zonal.spark.jvm import (
    jvm_ended,
    log_tail,
    log_text,
    own_interrupt,
    quiet_accumulators,
    quiet_calls,
    start_jvm,
    telling_slowness,
)
from zonal.spark.place import HERE
from zonal.spark.versions import check_pyspark, check_version
from zonal.worker.machine import memory_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_DRIVER_BYTES, _LEAST_DRIVER_BYTES = 4 << 30, 1 << 30
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
"""Default settings of a session on this machine."""
_FAR = {"spark.app.name": "zonal", "spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
_WITHOUT = ". Or do without: {} rewrites a table that fits this machine"
_CONNECT_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"

Notice = Callable[[str], None]
"""Hears what the user should know while Spark takes long."""


def warn_of(notice: str) -> None:
    """Warn of a notice that no callback hears."""
    warnings.warn(notice, ZonalNotice, stacklevel=2)


@contextmanager
def spark_session(
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    session: "SparkSession | None" = None,
    tell: Notice = warn_of,
) -> Iterator["SparkSession"]:
    """Yield a Spark session: the given one, else the one that runs in this process, else a new one.

    A session of the caller is used as it is and left running. A new one runs on `master` (by default, this machine),
    or on the Spark Connect server at `remote`; it prints nothing, and is stopped at the end. `tell` hears
    of a start that takes long.
    """
    check_pyspark(remote, otherwise=_WITHOUT.format(option("master", HERE)))
    options = {"master": master, "remote": remote, "conf": conf or None}
    asked = [option(name) for name, value in options.items() if value is not None]
    if session is not None and asked:
        raise ZonalError(f"The given Spark session is used as it is: leave out {', '.join(asked)}.")
    if master is not None and remote is not None:
        raise ZonalError(f"Say {option('master', master)} or {option('remote', public(remote))}, not both.")
    running = session if session is not None else _running()
    if running is not None:
        if asked:
            raise ZonalError(
                f"A Spark session already runs in this process: leave out {', '.join(asked)}, or stop it first."
            )
        check_version(running.version, "The running Spark")
        yield running
        return
    remote = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    with _started(master, remote, conf or {}, tell) as started:
        yield started


@contextmanager
def settings(spark: "SparkSession", wanted: Mapping[str, str]) -> Iterator[None]:
    """Change the session's configuration, and restore it at the end.

    Settings that this Spark doesn't know, or doesn't allow to be changed, stay as they are: `wanted` may hold nothing
    that correctness depends on.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415

    before: dict[str, str | None] = {}
    try:
        for name, value in wanted.items():
            with suppress(PySparkException):  # some vendors' servers restrict what may be set, or read
                if spark.conf.isModifiable(name):
                    old = spark.conf.get(name, None)  # None where the default applies
                    spark.conf.set(name, value)
                    before[name] = old
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


def is_elsewhere(spark: "SparkSession") -> bool:
    """Tell whether tasks run in other processes than a JVM of this one, so that their environment is another."""
    return is_connect(spark) or not is_local_master(str(spark.conf.get("spark.master", "")))


def is_on_this_machine(spark: "SparkSession") -> bool:
    """Tell whether tasks run in threads of a JVM here, with this process's own Python packages."""
    if is_elsewhere(spark):
        return False
    found = shutil.which(worker_python(spark))
    return found is not None and _is_this_python(found)


def worker_python(spark: "SparkSession") -> str:
    """Return what a classic session starts as its workers' Python."""
    return str(spark.sparkContext.pythonExec)


def check_worker_python(spark: "SparkSession") -> None:
    """Raise an error where workers on this machine have no Python, before a lazy query fails in the caller's code."""
    if not hasattr(spark, "conf"):  # pyspark has classes of classic and of Connect sessions
        raise ZonalError(f"spark={in_line(spark)} is not a Spark session.")
    if is_elsewhere(spark):
        return
    if shutil.which(python := worker_python(spark)) is None:
        problem = missing_python(python, "there is no such program")
        raise ZonalError(f"{problem[0].upper()}{problem[1:]}.")


def _is_this_python(path: str) -> bool:
    """Tell whether a program is this process's Python: a link to it from another folder has other packages."""
    mine = Path(sys.executable)
    same = Path(path).resolve() == mine.resolve()
    return same and Path(path).absolute().parent == mine.absolute().parent


def is_local_master(master: str) -> bool:
    """Tell `local`, `local[4]` and `local[*]` from masters with executors.

    >>> [is_local_master(master) for master in ("local[*]", "local", "local-cluster[1,1,1024]", "yarn")]
    [True, True, False, False]
    """
    return re.match(r"local(\[|$)", master) is not None


def _running() -> "SparkSession | None":
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


@contextmanager
def _started(master: str | None, remote: str | None, conf: Mapping[str, str], tell: Notice) -> Iterator["SparkSession"]:
    was_connect = _CONNECT_VARIABLE in os.environ
    with quiet_calls():
        session = _start(master, remote, conf, tell)
        try:
            yield session
        finally:
            with suppress(Exception):  # where the JVM or the server is gone, so is the session
                session.stop()
            if not was_connect:  # Spark keeps it, and the process could start no classic session any more
                os.environ.pop(_CONNECT_VARIABLE, None)


def _start(master: str | None, remote: str | None, conf: Mapping[str, str], tell: Notice) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Under spark-submit the JVM runs already, and has its master and settings.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    here = remote if remote is not None else master or (None if submitted else "local[*]")
    options = options_of(here, conf)
    builder = SparkSession.builder
    if remote is not None:
        builder = builder.remote(remote)
    elif here is not None:
        builder = builder.master(here)
    for name, value in options.items():
        builder = builder.config(name, value)
    what = f"Spark at {shown(remote)}" if remote else f"Spark on {shown(here)}" if here else "Spark"
    starts_jvm = not submitted and here is not None and not here.startswith("sc:")
    if remote is not None:
        check_server(remote)
    elif starts_jvm:
        check_master(options.get("spark.master", str(here)))
    with _environment(here, remote, conf), warnings.catch_warnings(), own_interrupt(), telling_slowness(what, tell):
        if remote is not None and starts_jvm:  # the JVM starts with the settings that the session warns it can't set
            warnings.filterwarnings("ignore", message="Failed to set ")
        try:
            if starts_jvm:
                on_this_machine = remote is None and is_local_master(str(here))
                start_jvm({"spark.master": str(here), **options}, archive_flags if on_this_machine else None)
            session = builder.getOrCreate()
            quiet_accumulators(session)
            check_version(session.version, "The Spark server")  # the first call that a Connect server must answer
            return session
        except ZonalError:
            raise
        except Exception as error:
            raise _not_started(what, error) from error


def _not_started(what: str, error: Exception) -> ZonalError:
    """Return an error that says why Spark did not start, by its log where that has the reason."""
    if (refused := start_refusal(log_text())) is not None:
        return ZonalError(f"{what} did not start: {refused}.")
    ended = jvm_ended() if is_broken_call(error) else None
    why = reason(error, ended=ended).rstrip(".")
    return ZonalError(f"{what} did not start: {why}.{log_tail()}")


def options_of(here: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a new session on this master: zonal's own, and the user's over them."""
    if here is None or here.startswith("sc:"):
        return {"spark.sql.session.timeZone": "UTC", **conf}
    if not is_local_master(here):
        return {**_FAR, **conf}
    memory = {"spark.driver.memory": f"{_driver_bytes() >> 20}m"}
    same_python = "spark.pyspark.python" not in conf  # another one may lack zonal
    forks = {"spark.python.daemon.module": daemon.MODULE} if same_python and daemon.is_importable() else {}
    return {**LOCAL, **memory, **forks, **conf}


@contextmanager
def _environment(here: str | None, remote: str | None, conf: Mapping[str, str]) -> Iterator[None]:
    """Let workers on this machine run this Python; elsewhere, what the user set or the cluster has.

    The setting `spark.pyspark.python` goes before: a session that no `spark-submit` starts takes it from here alone.
    `SPARK_REMOTE`, which pyspark doesn't accept beside a master, is unset while a session on a master starts.
    """
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    before = {name: os.environ.get(name) for name in (*names, "SPARK_REMOTE")}
    if remote is None:
        os.environ.pop("SPARK_REMOTE", None)
    if here is not None and is_local_master(here):
        os.environ.update(dict.fromkeys(names, sys.executable))
    elif here is not None and here.startswith("local-cluster"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if here is not None and (python := conf.get("spark.pyspark.python")):
        os.environ["PYSPARK_PYTHON"] = python
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _driver_bytes() -> int:
    """Return the JVM's share of the memory: the Python workers, which hold the rows, need the rest."""
    memory = memory_bytes(unknown=_LEAST_DRIVER_BYTES)
    return min(max(memory // 4, _LEAST_DRIVER_BYTES), _MOST_DRIVER_BYTES)
