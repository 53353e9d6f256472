"""Start and end the JVM of this process, with its output in a log and its files in a temporary folder."""

import atexit
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseServer
from threading import Event, Thread, current_thread, main_thread
from typing import Any

from zonal.errors import option
from zonal.spark.java import Java, use_java

SLOW_SECONDS = 15.0
"""Time until the first notice of a slow start; each further one comes after twice the time."""

_TAIL_LINES = 12
_END_SECONDS = 10.0
_OUT_OF_MEMORY = 52
"""Exit code of Spark's JVM when it ran out of memory."""
_NO_NEWS = r"^\t|^Caused by:|NativeCodeLoader|SPARK_LOCAL_IP|loopback address|incubator modules|log4j|[lL]og ?[lL]evel"
"""Lines of the log that say nothing about a slow start: those of stack traces, and those that every start has."""
_folders: list[Path] = []
"""Folders for the log and the temporary files of this process's JVM, which serves all sessions."""


def start_jvm(options: Mapping[str, str], flags: Callable[[Java], Sequence[str]] | None = None) -> None:
    """Start the JVM of this process with its output in a log file, unless it runs already.

    `flags` says what the JVM itself is told besides, unless the user tells it otherwise. Only `launch_gateway` takes a
    target for the JVM's output; redirecting this process's own output meanwhile would swallow what other threads print,
    such as a progress bar.
    """
    from pyspark import SparkContext  # noqa: PLC0415

    if SparkContext._gateway is not None:
        return
    java = use_java()
    folder = Path(tempfile.mkdtemp(prefix="zonal-spark-"))
    _folders.append(folder)
    processes: list[subprocess.Popen[bytes]] = []
    atexit.register(_end, folder, processes)
    with _told([f"-Djava.io.tmpdir={folder}", *(flags(java) if flags else ())]), (folder / "log").open("wb") as log:
        gateway = _launched(options, log.fileno())
    processes.append(gateway.proc)
    SparkContext._ensure_initialized(gateway=gateway)


def end_jvm(seconds: float) -> bool:
    """End the JVM of this process, which no session uses any more; tell whether it ended in that time."""
    from pyspark import SparkContext  # noqa: PLC0415

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return True
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
    return process.poll() is not None


def jvm_ended() -> str | None:
    """Say how the JVM of this process ended; None where it runs or never did."""
    from pyspark import SparkContext  # noqa: PLC0415

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(timeout=1)  # a call breaks a moment before the process is gone
    except subprocess.TimeoutExpired:
        return None
    return ending(code, log_text())


def ending(code: int, log: str) -> str:
    """Say in words how a JVM ended.

    >>> ending(143, "")
    'signal SIGTERM ended it'
    """
    if code == _OUT_OF_MEMORY or "java.lang.OutOfMemoryError" in log:
        return f"it ran out of memory: give it more, such as spark.driver.memory=8g in {option('conf')}"
    number = -code if code < 0 else code - 128
    with suppress(ValueError):
        name = signal.Signals(number).name
        if name == "SIGKILL":
            return "signal SIGKILL ended it, as the system does where memory runs out"
        return f"signal {name} ended it"
    return f"exit code {code}"


def log_text() -> str:
    """Return the end of what the JVM of this process printed."""
    if not _folders:
        return ""
    with suppress(OSError), (_folders[-1] / "log").open("rb") as log:
        log.seek(max(log.seek(0, os.SEEK_END) - 200_000, 0))
        return log.read().decode(errors="replace")
    return ""


def log_tail() -> str:
    """Return the last lines of the log, without those of stack traces."""
    lines = [line for line in log_text().splitlines() if line and not line.startswith("\t")][-_TAIL_LINES:]
    return "\nThe last lines of its log:\n" + "\n".join(f"  {line[:300]}" for line in lines) if lines else ""


@contextmanager
def quiet_calls() -> Iterator[None]:
    """Keep py4j from logging tracebacks of broken calls: the errors say what happened."""
    only_others = _OnlyOthers()
    root = logging.getLogger()  # the one that py4j logs to
    root.addFilter(only_others)
    try:
        yield
    finally:
        root.removeFilter(only_others)


class _OnlyOthers(logging.Filter):
    """Drops what py4j logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"


def quiet_accumulators(session: object) -> None:
    """Keep the server of a session's accumulators from printing a traceback where the JVM, its only client, ends."""
    # A Connect session has neither.
    server = getattr(getattr(session, "_sc", None), "_accumulatorServer", None)
    if not isinstance(server, BaseServer):
        return
    told = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver has them
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            told(request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]


@contextmanager
def own_interrupt() -> Iterator[None]:
    """Restore the handler of Ctrl-C: pyspark installs one that calls the JVM in the middle of other calls."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:  # None: a handler that wasn't installed by Python
            signal.signal(signal.SIGINT, before)


@contextmanager
def telling_slowness(what: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Tell at growing intervals that the start takes long, and what the log says."""
    over = Event()

    def run() -> None:
        seconds = pause = SLOW_SECONDS
        while not over.wait(pause):
            lines = [line for line in log_text().splitlines() if line and not re.search(_NO_NEWS, line)]
            last = f" Its log says: {lines[-1][:300]}" if lines else ""
            tell(f"{what} has been starting for {seconds:.0f} s. Ctrl-C ends it.{last}")
            pause = seconds
            seconds *= 2

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=2)


def _launched(options: Mapping[str, str], output: int) -> Any:  # noqa: ANN401 - py4j has no types
    """Launch the JVM in another thread, so that Ctrl-C meanwhile ends a JVM that nothing refers to yet."""
    from pyspark import SparkConf  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    done: list[Any] = []
    over = Event()  # an interrupted `join` would take the thread for ended

    def launch() -> None:
        try:
            settings = SparkConf(loadDefaults=False).setAll(list(options.items()))
            done.append(launch_gateway(settings, {"stdout": output, "stderr": output}))  # type: ignore[no-untyped-call]
        except Exception as error:
            done.append(error)
        finally:
            over.set()

    try:
        Thread(target=launch, daemon=True).start()
        over.wait()
    except BaseException:
        over.wait(_END_SECONDS)
        if done and not isinstance(done[0], Exception):
            done[0].proc.kill()
            done[0].proc.wait()
        raise
    (outcome,) = done
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@contextmanager
def _told(flags: Sequence[str]) -> Iterator[None]:
    """Give flags to a JVM that starts meanwhile."""
    name = "SPARK_SUBMIT_OPTS"
    before = os.environ.get(name)
    os.environ[name] = " ".join([*map(_quoted, flags), before or ""]).rstrip()  # the last flag wins: the user's
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _quoted(flag: str) -> str:
    """Quote a flag as Spark's launcher reads it."""
    escaped = flag.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _end(folder: Path, processes: "Sequence[subprocess.Popen[bytes]]") -> None:
    """End the JVM by closing its input, and remove its folder.

    The process ends, too: threads that still wait for the JVM, and objects in it that are let go of, are no news.
    """
    if processes:
        logging.getLogger().addFilter(_OnlyOthers())
    for process in processes:
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(timeout=_END_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)
