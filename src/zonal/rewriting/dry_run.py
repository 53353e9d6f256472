"""Plan what `cluster` would do, without changing the table and without Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zonal.display import Shown
from zonal.history.records import LedgerRecord
from zonal.plan.choice import still_there
from zonal.plan.file_size import size_reason
from zonal.plan.rewrite import Property
from zonal.plan.run import new_run
from zonal.rewriting.division import KeyLookups, divide
from zonal.rewriting.learned import learned_for, settled
from zonal.rewriting.request import Job, Request, rewritable, too_small
from zonal.rewriting.units import units_of
from zonal.study.sample import OVERHEAD
from zonal.tables.protocol import Table
from zonal.tables.registry import read_snapshot
from zonal.values.progress import Progress, only_notices
from zonal.worker.machine import processors

START_SECONDS = 11.0
"""Measured time to start the JVM, the Python workers and the first job, whatever the table's size."""


@dataclass(frozen=True)
class ClusteringPlan(Shown):
    """What a rewrite would do."""

    table: str
    format: str
    layout: str
    files: int
    bytes: int
    rows: int
    partitions: int
    commits: int
    new_files: int
    new_bytes: int
    seconds: float
    """Estimated from rows that were sorted and written on trial, for `cores` with nothing else to do."""
    share_before: float | None = None
    """Mean share of the table's bytes that the given queries read now; None without queries."""
    share_predicted: float | None = None
    """Mean share that they are predicted to read of the whole table in the layout; None without queries."""
    note: str = ""
    """Why nothing would be done, where queries say so, or why there is little to gain."""
    properties: tuple[Property, ...] = ()
    """Table properties that would be set, so that readers use the key columns' statistics."""
    queries: int = 0
    """Distinct queries of the log over which the shares are means."""
    cores: int = 1
    """Cores that this process may use."""
    lookups: tuple[KeyLookups, ...] = ()
    """For several commits: what a look-up of each key column reads after them, and after a single one."""
    merges: tuple[str, ...] = ()
    """What would be merged, and why; empty where the request itself names the files."""
    not_taken: tuple[str, ...] = ()
    """What would not be merged, and why not."""
    file_size: int = 0
    """Size of a file that new ones would be made for."""
    file_size_reason: str = ""
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
        return ClusteringPlan(snapshot.name, snapshot.format, recorded, 0, 0, 0, 0, 0, 0, 0, 0.0, note=learned.reason)
    job = Job.of(source, snapshot, settled(request, learned), ledger_of(snapshot.location))
    units, choice = units_of(job, job.snapshot)
    merges, not_taken = (tuple(merge.text for merge in each) for each in (choice.chosen, choice.left))
    groups = [still_there(job.snapshot, paths) for unit in units for paths in unit.commits]
    writing = job.writing(new_run())
    if not groups:
        return ClusteringPlan(
            snapshot.name, snapshot.format, str(job.layout), 0, 0, 0, 0, 0, 0, 0, 0.0, note=choice.why_nothing,
            not_taken=not_taken, file_size=job.layout.file_bytes,
            file_size_reason=size_reason(job.layout, snapshot), layout_recorded=job.changes_layout,
        )  # fmt: skip
    by = units[0].by if len(units) == 1 else None
    division = divide(job.table, job.snapshot, groups, job.layout, writing, by=by)
    sizes = division.survey.sizes
    rows = sum(sizes.rows.values())
    chosen = np.concatenate(groups)
    return ClusteringPlan(
        table=job.snapshot.name,
        format=job.snapshot.format,
        layout=str(job.layout),
        file_size=job.layout.file_bytes,
        file_size_reason=size_reason(job.layout, snapshot),
        files=len(chosen),
        bytes=int(job.snapshot.files.sizes[chosen].sum()),
        rows=rows,
        partitions=len({*job.snapshot.files.partition[chosen].tolist()}),
        commits=len(groups),
        new_files=division.files,
        new_bytes=round(rows * sizes.row_bytes),
        seconds=START_SECONDS + rows * sizes.row_seconds * OVERHEAD / processors(),
        cores=processors(),
        queries=0 if learned is None else len(learned.asked),
        share_before=None if learned is None else learned.before,
        share_predicted=None if learned is None else learned.predicted,
        properties=() if job.files.keep_properties else writing.properties,
        lookups=division.lookups if len(units) == 1 else (),
        merges=merges,
        not_taken=not_taken,
        note=too_small(job.snapshot, job.snapshot.files.paths.take(pa.array(chosen)).to_pylist(), job.layout),
    )
