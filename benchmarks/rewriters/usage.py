"""What a command and all its descendants use: CPU time and memory (Linux).

A JVM starts Python workers, and either may outlive the process that started it. So this process adopts orphans
(`PR_SET_CHILD_SUBREAPER`) and waits for every one: the kernel's own totals are then complete for the whole tree.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 0.2
GRACE = 60.0
"""Seconds that descendants have to end by themselves after the command has."""

_PR_SET_CHILD_SUBREAPER = 36
_TICK = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """Resources of a command with all that it started."""

    status: int
    cpu_seconds: float
    wall_seconds: float
    tree_bytes: int
    """Greatest sum of the processes' proportional memory: pages that several share count once."""
    worker_bytes: int
    """Greatest resident memory of one Python worker of Spark, or 0 where there was none."""


@dataclass(frozen=True)
class Process:
    """A line of /proc: a process, its parent, its CPU time, and that of the children it has waited for."""

    pid: int
    parent: int
    own_seconds: float
    waited_seconds: float


def cpu_seconds_below(root: int) -> float:
    """Return the CPU time so far of all descendants of a process, also of those that it has waited for.

    Of a process that adopts orphans, nothing is missing.
    """
    found = tree(root)
    own = sum(process.own_seconds for process in found if process.pid != root)
    return own + sum(process.waited_seconds for process in found)


def tree(root: int) -> list[Process]:
    """Return a process that lives, and its descendants."""
    children = defaultdict(list)
    waiting = []
    for process in _processes():
        children[process.parent].append(process)
        if process.pid == root:
            waiting.append(process)
    found = []
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1].pid]
    return found


def _processes() -> Iterator[Process]:
    for entry in os.listdir(_PROC):
        if entry.isdecimal():
            try:
                text = (_PROC / entry / "stat").read_text()
            except OSError:  # it has ended
                continue
            # proc_pid_stat(5): the name, in parentheses, may hold anything; field 3 follows it.
            fields = text[text.rindex(")") + 2 :].split()
            own, waited = (sum(map(int, fields[at : at + 2])) / _TICK for at in (11, 13))
            yield Process(int(entry), int(fields[1]), own, waited)


def run(command: Sequence[str], *, environment: dict[str, str], log: Path, timeout: float) -> Usage:
    """Run a command to its end, with its output in a file; descendants that don't end are killed, one by one."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    watch = _Watch(process.pid)
    try:
        wall = _until_all_ended(watch, start, timeout)
    finally:
        watch.kill()  # what is left when this process is interrupted
    process.returncode = watch.status  # Popen must not wait for a process that was waited for
    return Usage(watch.status or 0, watch.cpu_seconds, wall, watch.tree_bytes, watch.worker_bytes)


def _until_all_ended(watch: "_Watch", start: float, timeout: float) -> float:
    """Return the seconds until the command itself had ended."""
    wall = None
    while watch.reap():
        watch.look()
        elapsed = time.monotonic() - start
        if watch.status is not None and wall is None:
            wall = elapsed
        if elapsed > timeout or (wall is not None and elapsed > wall + GRACE):
            watch.kill()
        time.sleep(INTERVAL)
    return time.monotonic() - start if wall is None else wall


class _Watch:
    """Totals of one command, gathered while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.cpu_seconds = 0.0
        self.tree_bytes = 0
        self.worker_bytes = 0

    def reap(self) -> bool:
        """Wait for what has ended, and tell whether anything is left."""
        try:
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                self.cpu_seconds += used.ru_utime + used.ru_stime
                if pid == self.pid:
                    self.status = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False

    def look(self) -> None:
        total = 0
        for process in tree(os.getpid()):
            if process.pid != os.getpid():
                total += _memory(process.pid, "smaps_rollup", "Pss:")
                if _is_worker(process.pid):
                    self.worker_bytes = max(self.worker_bytes, _memory(process.pid, "status", "VmHWM:"))
        self.tree_bytes = max(self.tree_bytes, total)

    def kill(self) -> None:
        for process in tree(os.getpid()):
            if process.pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)


def _memory(pid: int, file: str, field: str) -> int:
    try:
        lines = (_PROC / str(pid) / file).read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _is_worker(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False
