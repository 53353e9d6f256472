"""Plan what `cluster` would do, without changing the table and without Spark."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zonal.display import Shown
from zonal.layouts.layout import Layout
from zonal.parquet.codecs import asked_codec
from zonal.plan.choice import still_there
from zonal.plan.rewrite import Property
from zonal.plan.run import new_run
from zonal.rewriting.arguments import check_arguments
from zonal.rewriting.division import KeyLookups, divide
from zonal.rewriting.learned import Queries, learned_for
from zonal.rewriting.request import Job, rewritable, size_of, too_small
from zonal.study.advice_request import silent
from zonal.study.sample import OVERHEAD
from zonal.tables.protocol import Table
from zonal.tables.registry import read_snapshot, table_of

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


def plan_clustering(
    table: Table | str,
    *,
    by: str | Sequence[str] | None = None,
    layout: str | Layout | None = None,
    target_file_size: int | str | None = None,
    where: str | None = None,
    full: bool = False,
    max_bytes: int | str | None = None,
    commit_every: int | str | None = None,
    queries: Queries | None = None,
    keep_properties: bool = False,
    compression: str | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> ClusteringPlan:
    """Tell what `cluster` would do with the same arguments; nothing is written, and no Spark is started."""
    check_arguments(locals())
    codec = asked_codec(compression)
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    snapshot = read_snapshot(source)
    rewritable(source, snapshot)
    file_bytes = size_of(target_file_size, "target_file_size")
    learned = learned_for(source, snapshot, by, layout, file_bytes, queries, silent)
    if learned is not None and learned.layout is None:
        recorded = "" if snapshot.layout is None else str(snapshot.layout)
        return ClusteringPlan(snapshot.name, snapshot.format, recorded, 0, 0, 0, 0, 0, 0, 0, 0.0, note=learned.reason)
    by, layout = (by, layout) if learned is None else (None, learned.layout)
    job = Job.of(
        source, snapshot, by, layout, file_bytes, where=where, full=full, max_bytes=max_bytes, compression=codec
    )
    groups = [still_there(job.snapshot, paths) for paths in job.groups(size_of(commit_every, "commit_every"))]
    writing = job.table.writing(job.snapshot, layout=job.layout, run=new_run(), compression=codec)
    if not groups:
        return ClusteringPlan(snapshot.name, snapshot.format, str(job.layout), 0, 0, 0, 0, 0, 0, 0, 0.0)
    by = job.divided_by(size_of(commit_every, "commit_every"))
    division = divide(job.table, job.snapshot, groups, job.layout, writing, by=by)
    sizes = division.survey.sizes
    rows = sum(sizes.rows.values())
    chosen = np.concatenate(groups)
    return ClusteringPlan(
        table=job.snapshot.name,
        format=job.snapshot.format,
        layout=str(job.layout),
        files=len(chosen),
        bytes=int(job.snapshot.files.sizes[chosen].sum()),
        rows=rows,
        partitions=len({*job.snapshot.files.partition[chosen].tolist()}),
        commits=len(groups),
        new_files=division.files,
        new_bytes=round(rows * sizes.row_bytes),
        seconds=START_SECONDS + rows * sizes.row_seconds * OVERHEAD / _cores(),
        cores=_cores(),
        queries=0 if learned is None else len(learned.asked),
        share_before=None if learned is None else learned.before,
        share_predicted=None if learned is None else learned.predicted,
        properties=() if keep_properties else writing.properties,
        lookups=division.lookups,
        note=too_small(job.snapshot, job.snapshot.files.paths.take(pa.array(chosen)).to_pylist(), job.layout),
    )


def _cores() -> int:
    """Count the cores that this process may use; a container may have fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
