"""Measure CPU time and memory of a command with all its descendants (Linux).

A JVM starts Python workers, and either may outlive the process that started it. So this process adopts orphans
(`PR_SET_CHILD_SUBREAPER`) and waits for every one: the kernel adds up the time of all that were waited for. The daemon
that forks Spark's Python workers ignores SIGCHLD, so no process waits for those, and the kernel forgets their time
(wait(2), notes): for such processes the last time seen in /proc counts.
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
"""Seconds that descendants have to end after the command has ended."""

_PR_SET_CHILD_SUBREAPER = 36
_TICK = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A line of /proc: a process, its parent, its CPU time, and that of the children it has waited for."""

    pid: int
    started: int
    """Clock ticks; unique together with the process id."""
    parent: int
    own_seconds: float
    waited_seconds: float

    @property
    def identity(self) -> str:
        """Return a name that no other process has."""
        return f"{self.pid}@{self.started}"


@dataclass(frozen=True)
class Moment:
    """CPU time of all descendants of a process so far, without `Forgotten` ones, and the living processes."""

    time: float
    cpu_seconds: float
    alive: frozenset[str]


@dataclass(frozen=True)
class Forgotten:
    """A process that has ended without a wait for it."""

    identity: str
    first_seen: float
    cpu_seconds: float


@dataclass(frozen=True)
class Usage:
    """Resources of a command with all its descendants."""

    status: int
    cpu_seconds: float
    wall_seconds: float
    tree_bytes: int
    """Greatest sum of the processes' proportional memory: pages that several share count once."""
    worker_bytes: int
    """Greatest resident memory of one Python worker of Spark, or 0 where there was none."""
    forgotten: tuple[Forgotten, ...]

    def between(self, start: Moment, end: Moment) -> float:
        """Return the CPU-seconds between two moments."""
        lost = [
            process.cpu_seconds
            for process in self.forgotten
            if process.identity not in end.alive
            and (process.identity in start.alive or start.time < process.first_seen < end.time)
        ]
        return end.cpu_seconds - start.cpu_seconds + sum(lost)


def moment(root: int) -> Moment:
    """Return the usage of all descendants of a process, ended ones that were waited for included."""
    processes = tree(root)
    own = sum(process.own_seconds for process in processes if process.pid != root)
    waited = sum(process.waited_seconds for process in processes)
    return Moment(time.monotonic(), own + waited, frozenset(process.identity for process in processes))


def tree(root: int) -> list[Process]:
    """Return a living process and its descendants."""
    children = defaultdict(list)
    waiting = []
    for process in _processes():
        children[process.parent].append(process)
        if process.pid == root:
            waiting.append(process)
    processes = []
    while waiting:
        processes.append(waiting.pop())
        waiting += children[processes[-1].pid]
    return processes


def _processes() -> Iterator[Process]:
    for entry in os.listdir(_PROC):
        if entry.isdecimal() and (text := _read(int(entry), "stat")):
            # proc_pid_stat(5): the name, in parentheses, may hold anything; field 3 follows it.
            fields = text[text.rindex(")") + 2 :].split()
            own, waited = (sum(map(int, fields[at : at + 2])) / _TICK for at in (11, 13))
            yield Process(int(entry), int(fields[19]), int(fields[1]), own, waited)


def run(command: Sequence[str], *, log: Path, timeout: float) -> Usage:
    """Run a command to its end, with its output in a file; descendants that don't end are killed, one by one."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    watch = _Watch(process.pid)
    try:
        wall = _until_all_ended(watch, start, timeout)
    finally:
        watch.kill()  # what is left when this process is interrupted
    process.returncode = watch.status  # Popen must not wait for a process that was waited for
    return Usage(
        status=watch.status or 0,
        cpu_seconds=watch.cpu_seconds + sum(process.cpu_seconds for process in watch.forgotten),
        wall_seconds=wall,
        tree_bytes=watch.tree_bytes,
        worker_bytes=watch.worker_bytes,
        forgotten=tuple(watch.forgotten),
    )


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
    watch.look()
    return time.monotonic() - start if wall is None else wall


class _Watch:
    """Totals of one command, gathered while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.cpu_seconds = 0.0
        self.tree_bytes = 0
        self.worker_bytes = 0
        self.forgotten: list[Forgotten] = []
        self._reaped: set[int] = set()
        self._unwaited: dict[str, tuple[int, Forgotten]] = {}
        """Living processes whose parent doesn't wait for them."""

    def reap(self) -> bool:
        """Wait for processes that have ended, and tell whether any is left."""
        try:
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                self._reaped.add(pid)
                self.cpu_seconds += used.ru_utime + used.ru_stime
                if pid == self.pid:
                    self.status = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False

    def look(self) -> None:
        """Record the memory of all processes, and the time of those that no process will wait for."""
        processes = [process for process in tree(os.getpid()) if process.pid != os.getpid()]
        self.tree_bytes = max(
            self.tree_bytes, sum(_memory(process.pid, "smaps_rollup", "Pss:") for process in processes)
        )
        for process in processes:
            if "spark.daemon" in _read(process.pid, "cmdline"):
                self.worker_bytes = max(self.worker_bytes, _memory(process.pid, "status", "VmHWM:"))
        self._note_unwaited(processes)

    def _note_unwaited(self, processes: Sequence[Process]) -> None:
        before, self._unwaited = self._unwaited, {}
        ignoring = {process.pid for process in processes if _ignores_children(process.pid)}
        alive = {process.identity for process in processes}
        for process in processes:
            if process.parent in ignoring:
                first = before[process.identity][1].first_seen if process.identity in before else time.monotonic()
                spent = Forgotten(process.identity, first, process.own_seconds + process.waited_seconds)
                self._unwaited[process.identity] = process.pid, spent
        # An orphan comes to this process, which waits for it as for any child.
        ended = [known for name, known in before.items() if name not in alive]
        self.forgotten += [spent for pid, spent in ended if pid not in self._reaped]

    def kill(self) -> None:
        """Kill every process that the command left."""
        for process in tree(os.getpid()):
            if process.pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)


def _ignores_children(pid: int) -> bool:
    masks = [line.split()[1] for line in _read(pid, "status").splitlines() if line.startswith("SigIgn:")]
    return bool(masks) and bool(int(masks[0], 16) >> (signal.SIGCHLD - 1) & 1)


def _memory(pid: int, file: str, field: str) -> int:
    lines = _read(pid, file).splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _read(pid: int, file: str) -> str:
    """Return a file of a process; it is empty if the process has ended."""
    try:
        return (_PROC / str(pid) / file).read_text(errors="replace")
    except OSError:
        return ""
