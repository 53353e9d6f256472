"""Turn errors of Spark, the JVM and Python workers into sentences without stack traces."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from zonal.errors import ZonalError, quoted
from zonal.spark.jvm import jvm_ended

_KINDS = r"^(?:[\w.$]+\.)?(\w+(?:Error|Exception|Interrupt)): (.+)$"
LACKS = "the Python of a Spark worker, "
"""How the error of a worker begins that lacks an imported package (`zonal.spark.shipment`)."""
_SHELLS = ("SparkException", "PythonException", "Py4JJavaError", "ExecutionException")
"""Errors that only wrap others."""
_OURS = ("TableError", "FileError", "ZonalError")
_BROKEN = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError", "Py4JError")
_NEEDS = (
    f"Set PYSPARK_PYTHON, or spark.pyspark.python, to a Python {sys.version_info[0]}.{sys.version_info[1]} with numpy "
    "and pyarrow that all workers have, before Spark starts"
)


@contextmanager
def told_in_words(what: str, *, elsewhere: bool = False) -> Iterator[None]:
    """Turn errors of a query into a `ZonalError`, and a call that Ctrl-C broke into a `KeyboardInterrupt`.

    `elsewhere`: workers have another environment than this process.
    """
    try:
        yield
    except ZonalError:
        raise
    except Exception as error:
        # Where Ctrl-C interrupts a call to the JVM, pyspark raises the error of the broken call instead.
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        ended = jvm_ended() if is_broken_call(error) else None
        raise ZonalError(f"{what}: {reason(error, ended=ended, elsewhere=elsewhere)}") from error


def reason(error: BaseException, *, ended: str | None = None, elsewhere: bool = False) -> str:
    """Return the last error of a worker's Python, else Spark's, in one sentence without its full stop.

    `ended` says how the JVM of this process ended, if it did; `elsewhere` is as in `told_in_words`.
    """
    if ended is not None:
        return f"the JVM of Spark's driver ended: {ended}"
    text = str(error)
    if (python := _python_problem(text)) is not None:
        return python
    errors = [(kind, message) for kind, message in re.findall(_KINDS, text, re.MULTILINE) if kind not in _SHELLS]
    if errors:
        kind, message = errors[-1]
        if kind in _OURS:
            return f"{message}{_whose(message) if elsewhere else ''}"
        return message if message.startswith(LACKS) else f"{kind}: {message}"
    if (failure := re.search(r"most recent failure: .*?\): (.+)", text)) is not None:
        return failure[1]
    causes = re.findall(r"^(?:Caused by: |: )?[\w.$]+(?:Exception|Error): (.+)$", text, re.MULTILINE)
    causes = [line for line in causes if not line.startswith("Exception thrown in awaitResult")]
    return causes[-1] if causes else text.partition("\n")[0] or type(error).__name__


def missing_python(program: str, problem: str, where: str = "") -> str:
    """Say which Python the workers can't start, and what to set."""
    return f"the workers{where} can't start Python as {quoted(program, limit=200)}: {problem}. {_NEEDS}"


def _was_interrupted(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_broken_call(error: BaseException | None) -> bool:
    """Tell whether the call to the JVM itself broke, so that the JVM may have ended."""
    while error is not None:
        if type(error).__name__ in _BROKEN:
            return True
        error = error.__cause__ or error.__context__
    return False


def start_refusal(log: str) -> str | None:
    """Return why Spark refused to start, by its log; None where that doesn't say."""
    if "All masters are unresponsive" in log:
        return (
            "something answers there, but not as a Spark master. See that the port is the master's own, 7077 unless "
            "it was given another, and not that of its web page, and that the master's Spark has the same version"
        )
    if java := re.search(r"^(.+)\nError: Could not create the Java Virtual Machine", log, re.MULTILINE):
        return java[1].rstrip(".")
    errors = re.findall(r'^(?:Exception in thread "main" [\w.$]+: |Error: )(.+)$', log, re.MULTILINE)
    return errors[-1].rstrip(".") if errors else None


def _whose(message: str) -> str:
    """Say, where workers elsewhere can't use a store, that what there is to check is theirs and not this process's."""
    if "Check the " not in message:
        return ""
    return (
        " This is about Spark's workers: the environment and the profiles of the machine that zonal runs on don't "
        "reach them, but storage options go with the job"
    )


def _python_problem(text: str) -> str | None:
    """Say which worker's Python can't be started, where that is what failed."""
    host = re.findall(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \((\S+) executor", text)
    where = f" on {host[-1]}" if host else ""
    if missing := re.search(r'Cannot run program "([^"\n]+)"[^:\n]*: (?:error=\d+, )?(.+)', text):
        return missing_python(missing[1], missing[2], where)
    if "spark.daemon's stdout" in text or "Error from python worker" in text:
        line = re.search(r"Error from python worker:\s*\n\s*(.+)", text)
        said = f" ({line[1].strip()[:200]})" if line else ""
        return f"what the workers{where} start as Python isn't one, or can't run Spark's code{said}. {_NEEDS}"
    return None
