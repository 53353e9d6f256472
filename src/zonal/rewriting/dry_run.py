"""Plan what `cluster` would do, without changing the table and without Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from zonal.display import Shown
from zonal.history.records import LedgerRecord
from zonal.plan.choice import still_there
from zonal.plan.file_size import size_reason
from zonal.plan.rewrite import Property
from zonal.plan.run import new_run
from zonal.rewriting.division import Division, KeyLookups, divide
from zonal.rewriting.learned import Learned, learned_for, settled
from zonal.rewriting.request import Job, Request, rewritable, too_small
from zonal.rewriting.units import units_of
from zonal.snapshot import Snapshot
from zonal.study.sample import OVERHEAD
from zonal.tables.protocol import Table
from zonal.tables.registry import read_snapshot
from zonal.values.arrays import Int64Array
from zonal.values.progress import Progress, only_notices
from zonal.worker.machine import processors

START_SECONDS = 11.0
"""Measured time to start the JVM, the Python workers and the first job, whatever the table's size."""


@dataclass(frozen=True)
class PlannedFiles:
    """What a rewrite would take from the table and give to it."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    partitions: int = 0
    commits: int = 0
    new_files: int = 0
    new_bytes: int = 0
    file_size: int = 0
    """Size of a file that new ones would be made for."""
    file_size_reason: str = ""


@dataclass(frozen=True)
class EstimatedTime:
    """How long a rewrite would take."""

    seconds: float = 0.0
    """Estimated from rows that were sorted and written on trial, for `cores` with nothing else to do."""
    cores: int = 1
    """Cores that this process may use."""


@dataclass(frozen=True)
class PlannedReads:
    """What the queries of a log read now, and would read."""

    queries: int = 0
    """Distinct queries of the log over which the shares are means."""
    share_before: float | None = None
    """Mean share of the table's bytes that the given queries read now; None without queries."""
    share_predicted: float | None = None
    """Mean share that they are predicted to read of the whole table in the layout; None without queries."""

    @classmethod
    def of(cls, learned: Learned | None) -> "PlannedReads":
        """Return what a log's queries read, if there is a log."""
        return cls() if learned is None else cls(len(learned.asked), learned.before, learned.predicted)


@dataclass(frozen=True)
class PlannedMerges:
    """What would be merged in a table that grows; empty where the request itself names the files."""

    merges: tuple[str, ...] = ()
    """What would be merged, and why."""
    not_taken: tuple[str, ...] = ()
    """What would not be merged, and why not."""


@dataclass(frozen=True)
class ClusteringPlan(Shown):
    """What a rewrite would do."""

    table: str
    format: str
    layout: str
    change: PlannedFiles = field(default_factory=PlannedFiles)
    time: EstimatedTime = field(default_factory=EstimatedTime)
    reads: PlannedReads = field(default_factory=PlannedReads)
    merging: PlannedMerges = field(default_factory=PlannedMerges)
    lookups: tuple[KeyLookups, ...] = ()
    """For several commits: what a look-up of each key column reads after them, and after a single one."""
    note: str = ""
    """Why nothing would be done, where queries say so, or why there is little to gain."""
    properties: tuple[Property, ...] = ()
    """Table properties that would be set, so that readers use the key columns' statistics."""
    layout_recorded: bool = False
    """Whether the layout would be recorded for rows that arrive, and no file rewritten."""


def plan_clustering(
    source: Table,
    request: Request,
    progress: Progress = only_notices,
    ledger_of: Callable[[str], Sequence[LedgerRecord]] = lambda _: (),
) -> ClusteringPlan:
    """Tell what `cluster` would do; nothing is written, and no Spark is started.

    `ledger_of` returns the ledger of a table by its location.
    """
    snapshot = read_snapshot(source)
    rewritable(source, snapshot)
    learned = learned_for(source, snapshot, request, progress)
    if learned is not None and learned.layout is None:
        recorded = "" if snapshot.layout is None else str(snapshot.layout)
        return ClusteringPlan(snapshot.name, snapshot.format, recorded, note=learned.reason)
    job = Job.of(source, snapshot, settled(request, learned), ledger_of(snapshot.location))
    units, choice = units_of(job, job.snapshot)
    merging = PlannedMerges(*(tuple(merge.text for merge in each) for each in (choice.chosen, choice.left)))
    groups = [still_there(job.snapshot, paths) for unit in units for paths in unit.commits]
    expected = PlannedFiles(file_size=job.layout.file_bytes, file_size_reason=size_reason(job.layout, snapshot))
    if not groups:
        return ClusteringPlan(
            snapshot.name, snapshot.format, str(job.layout), expected, merging=merging, note=choice.why_nothing,
            layout_recorded=job.changes_layout,
        )  # fmt: skip
    by, writing = units[0].by if len(units) == 1 else None, job.writing(new_run())
    division = divide(job.table, job.snapshot, groups, job.layout, writing, by=by)
    sizes, chosen = division.survey.sizes, np.concatenate(groups)
    change = _change(job.snapshot, chosen, len(groups), division, expected)
    return ClusteringPlan(
        table=job.snapshot.name,
        format=job.snapshot.format,
        layout=str(job.layout),
        change=change,
        time=EstimatedTime(START_SECONDS + change.rows * sizes.row_seconds * OVERHEAD / processors(), processors()),
        reads=PlannedReads.of(learned),
        merging=merging,
        lookups=division.lookups if len(units) == 1 else (),
        note=too_small(job.snapshot, job.snapshot.files.paths.take(pa.array(chosen)).to_pylist(), job.layout),
        properties=() if job.files.keep_properties else writing.properties,
    )


def _change(
    snapshot: Snapshot, chosen: Int64Array, commits: int, division: Division, expected: PlannedFiles
) -> PlannedFiles:
    """Add what would be rewritten, and into what, to the size that new files would have."""
    rows = sum(division.survey.sizes.rows.values())
    return replace(
        expected,
        files=len(chosen),
        bytes=int(snapshot.files.sizes[chosen].sum()),
        rows=rows,
        partitions=len({*snapshot.files.partition[chosen].tolist()}),
        commits=commits,
        new_files=division.files,
        new_bytes=round(rows * division.survey.sizes.row_bytes),
    )
