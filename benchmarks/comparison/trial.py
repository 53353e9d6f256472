"""One trial: a system rewrites a fresh table, its files are read by queries, and engines are timed on it."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison.data_sets import CODEC, DataSet
from benchmarks.comparison.engines import Answer, Place
from benchmarks.comparison.reads import Reads, reads_of
from benchmarks.comparison.results import Failure, QueryTime, ReadCost, Record, Rewrite
from benchmarks.comparison.timed import timed
from benchmarks.comparison.workloads import Workload
from benchmarks.rewriters.inputs import Input
from benchmarks.rewriters.job import LOGGED, Job
from benchmarks.rewriters.judge import link_live
from benchmarks.rewriters.peers import Peer
from benchmarks.rewriters.run import Rewritten, rewritten

OFF = 0.15
"""A number of files that is off the wanted one by more than this share is corrected, once."""


@dataclass(frozen=True)
class Ground:
    """What all systems get: rows, queries, bounds on time, and a folder for tables."""

    data_set: DataSet
    input: Input
    workload: Workload
    statements: tuple[str, ...]
    """The timed queries."""
    expected: tuple[Answer, ...]
    scratch: Path
    timeout: float
    passes: int

    @property
    def first_target(self) -> int:
        """Return the size of the files as they arrived."""
        sizes = [file.stat().st_size for file in self.input.files]
        return sum(sizes) // len(sizes)


def statements_of(data_set: DataSet, workload: Workload, count: int) -> tuple[str, ...]:
    """Write the timed queries as statements."""
    return tuple(f"SELECT {data_set.select} FROM t WHERE {query.where}" for query in workload.timed(count))  # noqa: S608


@dataclass(frozen=True)
class Made:
    """A rewritten table."""

    job: Job
    cost: Rewritten
    live: Path
    files: int

    def off(self, wanted: int) -> float:
        """Return how far the number of files is from the wanted one, as a share of it."""
        return abs(self.files / wanted - 1)


def try_system(
    ground: Ground, peer: Peer, repetition: int, *, target: int | None, engines: Sequence[str] | None
) -> Iterator[Record]:
    """Rewrite, once more where the number of files was too far off, and yield what was measured of the nearer one.

    A target that is given was found in an earlier repetition. With None for engines, only the rewrite is measured.
    """
    load, wanted, first = os.getloadavg()[0], len(ground.input.files), None
    with ExitStack() as stack:
        made = _made(ground, peer, target or ground.first_target, stack)
        if target is None and made.off(wanted) > OFF:
            again = _made(ground, peer, corrected(made.job.target, made.files, wanted), stack)
            first, made = made.files, min(made, again, key=lambda each: each.off(wanted))
        reads = reads_of(made.live, ground.workload.held_out if engines is not None else ())
        if reads.rows != ground.input.rows:
            raise RuntimeError(f"{peer.name} made {reads.rows:,} rows of {ground.input.rows:,}.")
        yield _rewrite(ground.data_set.name, peer.name, repetition, made, reads, first, load)
        if engines is not None:
            yield _read_cost(ground, peer, reads)
            yield from _query_times(ground, peer, Place(peer.format, made.job.folder, made.live), engines)


def _made(ground: Ground, peer: Peer, target: int, stack: ExitStack) -> Made:
    name = stack.enter_context(tempfile.TemporaryDirectory(dir=ground.scratch, prefix=f"{peer.name}-"))
    job = Job(Path(name), ground.input.columns, target, CODEC, _log(ground, Path(name)))
    cost = rewritten(peer, job, ground.input.files, timeout=ground.timeout)
    live = link_live(peer.format, job)
    return Made(job, cost, live, len(list(live.iterdir())))


def _rewrite(
    set_: str, system: str, repetition: int, made: Made, reads: Reads, first: int | None, load: float
) -> Rewrite:
    return Rewrite(
        set=set_,
        system=system,
        repetition=repetition,
        cpu_seconds=made.cost.cpu_seconds,
        wall_seconds=made.cost.wall_seconds,
        whole_cpu_seconds=made.cost.process.cpu_seconds,
        memory=made.cost.process.tree_bytes,
        target=made.job.target,
        files=reads.files,
        bytes=reads.bytes,
        corrected_from=first,
        load=load,
    )


def corrected(target: int, found: int, wanted: int) -> int:
    """Return the target size that makes the wanted number of files, if files grow as their target does."""
    return max(1, round(target * found / wanted))


def _log(ground: Ground, folder: Path) -> Path:
    """Write the training queries as a log of statements."""
    path = folder / "training.sql"
    queries = ground.workload.training
    path.write_text("".join(f"SELECT * FROM {LOGGED} WHERE {query.where};\n" for query in queries))  # noqa: S608
    return path


def _read_cost(ground: Ground, peer: Peer, reads: Reads) -> ReadCost:
    means = reads.by_files, reads.by_groups, reads.by_pages
    return ReadCost(ground.data_set.name, peer.name, *means, reads.kinds)


def _query_times(ground: Ground, peer: Peer, place: Place, engines: Sequence[str]) -> Iterator[Record]:
    name = ground.data_set.name
    for engine in engines:
        try:
            found = timed(engine, place, ground.statements, passes=ground.passes, timeout=ground.timeout)
        except RuntimeError as error:
            yield Failure(name, peer.name, engine, str(error)[-1000:])
            continue
        wrong = [at for at, (one, other) in enumerate(zip(found.answers, ground.expected, strict=True)) if one != other]
        if wrong:
            at = wrong[0]
            said = f"{found.answers[at]} instead of {ground.expected[at]}: {ground.statements[at]}"
            yield Failure(name, peer.name, engine, f"{len(wrong)} wrong answers; the first is {said}")
        else:
            yield QueryTime(name, peer.name, engine, len(ground.statements), found.passes)
