"""Run one peer's rewrite of a fresh table in a process of its own, and measure it."""

import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rewriters import copies, usage
from benchmarks.rewriters.job import Job
from benchmarks.rewriters.peers import Peer


@dataclass(frozen=True)
class Rewritten:
    """What a rewrite cost: itself, and the whole process with the start of its engine."""

    cpu_seconds: float
    wall_seconds: float
    process: usage.Usage


def rewritten(peer: Peer, job: Job, files: Sequence[Path], *, timeout: float) -> Rewritten:
    """Copy the files into a fresh table below the job's folder, and let the peer rewrite it."""
    copies.copy(peer.format, files, job.folder)
    answer, log = job.folder / "answer", job.folder / "log.txt"
    command = [sys.executable, "-m", "benchmarks.rewriters.perform", peer.name, job.to_json(), str(answer)]
    used = usage.run(command, log=log, timeout=timeout)
    if used.status or not answer.exists():
        raise RuntimeError(f"{peer.name} failed with status {used.status}:\n{log.read_text()[-3000:]}")
    start, end = pickle.loads(answer.read_bytes())  # noqa: S301 - of a process that this one started
    return Rewritten(used.between(start, end), end.time - start.time, used)
