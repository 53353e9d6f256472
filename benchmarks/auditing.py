"""Measure how fast a log's queries are matched against a large table's files.

`python -m benchmarks.auditing [--files 187000] [--queries 1000]`. Each line is one process on one core, and its memory
the peak of that process, the table's metadata included. The first way is all that `audit --metadata-only` does once
metadata and logs are read; the others get bound queries. The reference is a loop over `FileIndex.prune`; all must count
the same files and bytes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from zonal.auditing.replay import replay
from zonal.display import Display
from zonal.predicates.bind import bind
from zonal.predicates.bound import Bound
from zonal.skipping.files import FileIndex
from zonal.snapshot import Bounds, Commit, Files, Snapshot
from zonal.study.audited_version import Auditing
from zonal.study.sampling import Sampling
from zonal.trials.today import standing
from zonal.values.arrays import Int64Array
from zonal.verbs.audit import auditor_of
from zonal.workload.query import Workload

KINDS = {
    "id": pa.int64(), "ts": pa.timestamp("us", "UTC"), "amount": pa.int64(),
    "price": pa.float64(), "day": pa.date32(), "name": pa.string(),
}  # fmt: skip
START = datetime(2024, 1, 1, tzinfo=timezone.utc)
SPAN = 900_000
"""Number of values of every column, seconds for `ts`; a thousand of them make a day."""
COMMITS = 300
TABLES = {"ordered": 2_000, "partitioned": 2_000, "unordered": 800_000}
"""Greatest width of files in all columns but `amount`."""


@dataclass(frozen=True)
class Measured:
    """The measurements of one process."""

    files: int
    bytes: int
    seconds: float
    wall: float
    megabytes: float


def side_of(name: str, numbers: Int64Array) -> pa.Array:
    """Convert numbers to values of a column."""
    if name == "name":
        return pa.array([b"user-%09d" % number for number in numbers.tolist()], pa.large_binary())
    if name == "day":
        return pa.array((19_723 + numbers // 1000).astype(np.int32)).cast(KINDS[name])
    if name == "ts":
        return pa.array((int(START.timestamp()) + numbers) * 1_000_000).cast(KINDS[name])
    return pa.array(numbers).cast(KINDS[name])


def snapshot_of(table: str, count: int) -> Snapshot:
    """Make a table's metadata; the partitioned table has one partition per day."""
    rng = np.random.default_rng(0)
    zeros = np.zeros(count, np.int64)
    bounds, days = {}, zeros
    for name in KINDS:
        low = rng.integers(0, SPAN // (9 if table == "unordered" else 1), count)
        high = low + rng.integers(0, SPAN if name == "amount" else TABLES[table], count)
        if name == "day" and table == "partitioned":
            high, days = low, low // 1000
        bounds[name] = Bounds(side_of(name, low), side_of(name, high), zeros, zeros)
    files = Files(
        paths=pa.array([f"part-{number}.parquet" for number in range(count)]),
        sizes=rng.integers(1 << 20, 1 << 28, count), rows=np.full(count, 100_000), deleted=zeros, delete_files=zeros,
        added_by=np.arange(count) % COMMITS, layout_ids=pa.nulls(count, pa.string()), partition=days,
        partitions=tuple(f"day={number}" for number in range(int(days.max()) + 1)), bounds=bounds,
        partition_bounds={"day": bounds["day"]} if table == "partitioned" else {},
    )  # fmt: skip
    commits = {number: Commit(number, START, "append", {}, kind="append", only_adds=True) for number in range(COMMITS)}
    return Snapshot("made", "iceberg", "/made", 1, None, pa.schema(KINDS), (), files, {}, commits=commits)


@dataclass(frozen=True, eq=False)
class BoundQueries:
    """Queries, parsed and bound before anything is measured."""

    workload: Workload
    bounds: tuple[Bound, ...]
    weights: npt.NDArray[np.float64]


def queries(count: int) -> BoundQueries:
    """Make queries that look up, scan ranges of one or two columns, and join them with OR and IN."""
    rng = np.random.default_rng(1)
    texts = []
    for number in range(count):
        n = int(rng.integers(0, SPAN))
        at, day = START + timedelta(seconds=n), (START + timedelta(days=n // 1000)).date()
        texts.append([
            f"id = {n}",
            f"ts >= TIMESTAMP '{at:%F %T}' AND ts < TIMESTAMP '{at + timedelta(hours=2):%F %T}' AND amount = {n}",
            f"day = DATE '{day}' AND price < {n / 2}",
            f"name = 'user-{n:09d}' OR id IN ({n}, {n + 7}, {n + 99})",
            f"amount BETWEEN {n} AND {n + 10} AND name LIKE 'user-{n // 1000:06d}%' AND day >= DATE '{day}'",
        ][number % 5])  # fmt: skip
    workload = Workload.of(texts, dialect="spark")
    bounds = tuple(bind(query.predicate, pa.schema(KINDS), dialect="spark") for query in workload.queries)
    return BoundQueries(workload, bounds, np.full(count, 1 / count))


@dataclass
class Made:
    """A table of metadata only."""

    made: Snapshot
    name: str = "made"

    def snapshot(self) -> Snapshot:
        return self.made

    def open_file(self, path: str) -> pa.NativeFile:
        raise FileNotFoundError(path)


def by_audit(snapshot: Snapshot, bound: BoundQueries) -> tuple[int, int]:
    how = Auditing(Sampling(queries=len(bound.bounds), look=False), display=Display(picture=False))
    audit = auditor_of(Made(snapshot), bound.workload, how).now()
    return sum(query.reads.files for query in audit.asked), sum(query.reads.bytes for query in audit.asked)


def by_replay(snapshot: Snapshot, bound: BoundQueries) -> tuple[int, int]:
    replayed = replay(snapshot, bound.bounds, bound.weights)
    return int(replayed.files.sum()), int(replayed.bytes.sum())


def by_replay_without_excess(snapshot: Snapshot, bound: BoundQueries) -> tuple[int, int]:
    replayed = replay(snapshot, bound.bounds, bound.weights, excess=False)
    return int(replayed.files.sum()), int(replayed.bytes.sum())


def by_standing(snapshot: Snapshot, bound: BoundQueries) -> tuple[int, int]:
    today = standing(snapshot, bound.bounds, bound.weights)
    return -1, round(float(today.current.shares.sum()) * int(snapshot.files.sizes.sum()))


def by_loop(snapshot: Snapshot, bound: BoundQueries) -> tuple[int, int]:
    """Count with one `FileIndex.prune` per query."""
    files, index = snapshot.files, FileIndex(snapshot)
    counts = np.zeros((4, len(bound.bounds)), np.int64)
    in_partition = np.zeros((int(files.partition.max()) + 1, len(bound.bounds)), np.bool_)
    for query, predicate in enumerate(bound.bounds):
        pruned = index.prune(predicate)
        counts[0, query], counts[1, query] = pruned.kept.sum(), files.sizes[pruned.kept].sum()
        counts[2, query], counts[3, query] = pruned.in_partitions.sum(), files.sizes[pruned.in_partitions].sum()
        in_partition[files.partition[pruned.in_partitions], query] = True
    return int(counts[0].sum()), int(counts[1].sum())


WAYS: dict[str, Callable[[Snapshot, BoundQueries], tuple[int, int]]] = {
    "audit, metadata only": by_audit,
    "replay": by_replay,
    "replay without excess": by_replay_without_excess,
    "standing (advise)": by_standing,
    "loop over FileIndex.prune": by_loop,
}


def measure(way: str, table: str, files: int, count: int) -> Measured:
    """Run one way in this process."""
    snapshot, bound = snapshot_of(table, files), queries(count)
    cpu, wall = time.process_time(), time.perf_counter()
    kept, taken = WAYS[way](snapshot, bound)
    seconds, passed = time.process_time() - cpu, time.perf_counter() - wall
    return Measured(kept, taken, seconds, passed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def measured(way: str, table: str, files: int, count: int) -> Measured:
    """Run one way in a new process, on one thread."""
    command = [sys.executable, "-m", "benchmarks.auditing", "--files", str(files), "--queries", str(count)]
    one = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run([*command, "--only", way, table], capture_output=True, text=True, check=True, env=one)
    return Measured(*json.loads(result.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=187_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        result = measure(options.only[0], options.only[1], options.files, options.queries)
        print(json.dumps([result.files, result.bytes, result.seconds, result.wall, result.megabytes]))
        return
    title = f"{options.queries:,} queries on {options.files:,} files, {len(KINDS)} columns"
    shown = Table("table", "files kept", "way", "CPU-seconds", "wall", "peak MB", title=title)
    for table in TABLES:
        results = {way: measured(way, table, options.files, options.queries) for way in WAYS}
        reference = results["loop over FileIndex.prune"]
        for way, result in results.items():
            assert result.files in (-1, reference.files), f"{way} counts other files than the loop"
            assert abs(result.bytes - reference.bytes) <= reference.bytes * 1e-9, (
                f"{way} counts other bytes than the loop"
            )
            kept = f"{reference.files / options.files / options.queries:.1%}"
            shown.add_row(table, kept, way, f"{result.seconds:.2f}", f"{result.wall:.2f}", f"{result.megabytes:,.0f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
