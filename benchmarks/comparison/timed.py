"""Time real queries: `python -m benchmarks.comparison.timed ENGINE REQUEST ANSWER` runs them in a process of its own.

CPU and bytes are of the process with all its descendants: a JVM is one. Bytes are those that read calls returned
(`rchar` in /proc), of files in the system's cache, too. The table is opened and some queries are run before anything
is measured.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.comparison.engines import ENGINES, Answer, Place
from benchmarks.rewriters import usage

TIMED = 50
"""Queries that are timed by default."""
WARM_UP = 5
"""Queries that are run before."""


@dataclass(frozen=True)
class Pass:
    """All queries once: totals."""

    cpu_seconds: float
    wall_seconds: float
    bytes: int

    def __sub__(self, before: "Pass") -> "Pass":
        cpu, wall = self.cpu_seconds - before.cpu_seconds, self.wall_seconds - before.wall_seconds
        return Pass(cpu, wall, self.bytes - before.bytes)


@dataclass(frozen=True)
class Timed:
    """What an engine answered, and what it cost, pass by pass."""

    answers: tuple[Answer, ...]
    passes: tuple[Pass, ...]


def timed(engine: str, place: Place, statements: Sequence[str], *, passes: int, timeout: float) -> Timed:
    """Run the statements in a process of their own."""
    request, answer, log = (place.folder / f"{engine}-{name}" for name in ("request", "answer", "log"))
    values = {"place": {name: str(value) for name, value in asdict(place).items()}}
    request.write_text(json.dumps(values | {"statements": list(statements), "passes": passes}))
    command = [sys.executable, "-m", "benchmarks.comparison.timed", engine, str(request), str(answer)]
    used = usage.run(command, log=log, timeout=timeout)
    if used.status or not answer.exists():
        raise RuntimeError(f"{engine} failed with status {used.status}:\n{log.read_text()[-2000:]}")
    read = json.loads(answer.read_text())
    return Timed(tuple(map(tuple, read["answers"])), tuple(Pass(**each) for each in read["passes"]))


def main() -> None:
    """Answer a request."""
    engine, request, answer = sys.argv[1:]
    asked = json.loads(Path(request).read_text())
    where = asked["place"]
    ask = ENGINES[engine](Place(where["format"], Path(where["folder"]), Path(where["live"])))
    statements = asked["statements"]
    for statement in statements[:WARM_UP]:
        ask(statement)
    passes = []
    answers: list[Answer] = []
    for _ in range(asked["passes"]):
        before = _spent()
        answers = [ask(statement) for statement in statements]
        passes.append(_spent() - before)
    Path(answer).write_text(json.dumps({"answers": answers, "passes": [asdict(each) for each in passes]}))


def _spent() -> Pass:
    """Return CPU-seconds, the time and the bytes read so far."""
    others = [process for process in usage.tree(os.getpid()) if process.pid != os.getpid()]
    cpu = time.process_time() + sum(process.own_seconds + process.waited_seconds for process in others)
    read = sum(map(_bytes_read, (os.getpid(), *(process.pid for process in others))))
    return Pass(cpu, time.monotonic(), read)


def _bytes_read(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


if __name__ == "__main__":
    main()
