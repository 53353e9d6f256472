"""The course of a comparison: systems take turns, repetition by repetition, and what a results file has is left out."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.comparison import machine
from benchmarks.comparison.data_sets import DataSet, Scales, arrived
from benchmarks.comparison.engines import FORMATS, Answer, Place
from benchmarks.comparison.results import Failure, Record, Results, Rewrite, Table
from benchmarks.comparison.timed import timed
from benchmarks.comparison.trial import Ground, statements_of, try_system
from benchmarks.comparison.workloads import QUERIES, Workload, make_workload
from benchmarks.rewriters.inputs import Input
from benchmarks.rewriters.peers import Peer

PLACES = ("--docs", "--folder", "--json")


@dataclass(frozen=True)
class Plan:
    """What is compared."""

    sets: Sequence[DataSet]
    systems: Sequence[Peer]
    engines: Sequence[str]
    scales: Scales
    files: int
    repeat: int
    queries: int
    passes: int
    timeout: float
    cache: Path


def compare(plan: Plan, results: Results) -> Iterator[tuple[Results, Record]]:
    """Measure what the results don't have yet, and yield them after each new record."""
    for data_set in plan.sets:
        table, input_, workload = _prepared(plan, data_set)
        known = [each for each in results.tables if each.set == data_set.name]
        if known and known[0] != table:
            raise SystemExit(
                f"The results have {data_set.name} with other settings ({known[0]}): remove them, or name another file "
                "with --json."
            )
        results = results.with_(table)
        due = list(_due(plan, data_set, results))
        if not due:
            continue
        with tempfile.TemporaryDirectory(dir=plan.cache, prefix="tables-") as scratch:
            ground = _ground(plan, data_set, input_, workload, Path(scratch))
            for repetition, system in due:
                for record in _trial(plan, ground, system, repetition, results):
                    # A table that is made again for its queries' sake doesn't replace the rewrite that was measured.
                    if not (isinstance(record, Rewrite) and results.has("rewrites", *record.key)):
                        results = results.with_(record)
                    yield results, record


def _prepared(plan: Plan, data_set: DataSet) -> tuple[Table, Input, Workload]:
    scale = plan.scales.of(data_set.name)
    input_ = arrived(data_set, scale=scale, files=plan.files, cache=plan.cache)
    workload = make_workload(input_, QUERIES)
    size = sum(file.stat().st_size for file in input_.files)
    halves = len(workload.training), len(workload.held_out)
    timed_ = len(workload.timed(plan.queries))
    return Table(data_set.name, scale, input_.rows, plan.files, size, input_.columns, *halves, timed_), input_, workload


def _due(plan: Plan, data_set: DataSet, results: Results) -> Iterator[tuple[int, Peer]]:
    for repetition in range(plan.repeat):
        for system in plan.systems:
            key = data_set.name, system.name
            is_looked_at = results.has("reads", *key) and not _missing(plan, data_set, system, results)
            if not results.has("rewrites", *key, repetition) or (repetition == 0 and not is_looked_at):
                yield repetition, system


def _missing(plan: Plan, data_set: DataSet, system: Peer, results: Results) -> list[str]:
    """Return the engines that can read a system's table and were not timed on it yet."""
    able = [engine for engine in plan.engines if system.format in FORMATS.get(engine, (system.format,))]
    return [engine for engine in able if not results.has("queries", data_set.name, system.name, engine)]


def _ground(plan: Plan, data_set: DataSet, input_: Input, workload: Workload, scratch: Path) -> Ground:
    statements = statements_of(data_set, workload, plan.queries)
    expected = _expected(input_, statements, scratch, plan.timeout)
    return Ground(data_set, input_, workload, statements, expected, scratch, plan.timeout, plan.passes)


def _expected(input_: Input, statements: tuple[str, ...], scratch: Path, timeout: float) -> tuple[Answer, ...]:
    """Let DuckDB answer the queries on the rows as they arrived."""
    place = Place("parquet", scratch, input_.folder)
    return timed("duckdb", place, statements, passes=1, timeout=timeout).answers


def _trial(plan: Plan, ground: Ground, system: Peer, repetition: int, results: Results) -> Iterator[Record]:
    name = ground.data_set.name
    engines = None if repetition else _missing(plan, ground.data_set, system, results)
    target = results.target_of(name, system.name)
    try:
        yield from try_system(ground, system, repetition, target=target, engines=engines)
    except RuntimeError as error:
        yield Failure(name, system.name, "rewrite", str(error)[-1000:])


def signed(results: Results, *, spark: bool) -> Results:
    """Add the machine, the versions, the command and the day to results."""
    command = " ".join(["python -m benchmarks.comparison", *_without_places(sys.argv[1:])])
    commands = dict.fromkeys((*results.commands, command))
    day = datetime.now(timezone.utc).date().isoformat()
    known = results.versions | machine.versions(spark=spark)
    return Results(
        machine.machine(), known, tuple(commands), day, results.tables, results.rewrites, results.reads,
        results.queries, results.failures,
    )  # fmt: skip


def _without_places(arguments: Sequence[str]) -> list[str]:
    """Leave out where a machine keeps its files."""
    kept = []
    for at, argument in enumerate(arguments):
        before = arguments[at - 1] if at else ""
        if argument.partition("=")[0] not in PLACES and before not in PLACES:
            kept.append(argument)
    return kept
