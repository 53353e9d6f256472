"""`cluster --into`: copy a table into another layout and any format; the table itself stays as it is."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Scan, Writing, Written
from zonal.rewriting.commits import sized
from zonal.rewriting.done import Done, RewrittenFiles
from zonal.rewriting.in_place import CommitRequest, Runner, refuse_filters, settle, sweep, write_files
from zonal.rewriting.proof import check_files
from zonal.rewriting.request import Request, refuse_columns, refuse_unwritable
from zonal.snapshot import Snapshot
from zonal.storage import local_path
from zonal.tables.protocol import Destination, Readable, Table, is_readable
from zonal.values.progress import Progress, Step, within


@dataclass(frozen=True, eq=False)
class Copy:
    """How all rows of a snapshot are read and written for a copy."""

    snapshot: Snapshot
    scan: Scan
    writing: Writing
    layout: Layout


def copy_table(
    source: Table,
    snapshot: Snapshot,
    destination: Destination,
    request: Request,
    run: str,
    running: AbstractContextManager[Runner],
    report: Progress,
) -> tuple[Layout, Done]:
    """Copy a table as requested; return the copy's layout, and what was committed."""
    if not is_readable(source):
        raise TableError(f"{quoted(source.name, limit=300)} can't be read by workers.")
    layout = request.chosen(snapshot)
    refuse_columns(snapshot.schema, layout)
    copy = plan_copy(source, snapshot, destination, layout, run, request.files.codec)
    refuse_unwritable(copy.writing, run)
    steps = within(report, sized(snapshot, np.arange(len(snapshot.files))))
    with running as runner:
        return layout, run_copy(copy, destination, runner, steps, verify=request.files.verify)


def plan_copy(
    table: Readable,
    snapshot: Snapshot,
    destination: Destination,
    layout: Layout,
    run: str,
    compression: str | None = None,
) -> Copy:
    """Decide how the rows are read and written; nothing is written yet.

    Partitions by plain columns are kept. Others, such as `day(ts)`, are not: the copy is clustered as a whole.
    """
    keys = snapshot.partitioning
    kept = keys if all(name in snapshot.schema.names for name in keys) else ()
    files = np.arange(len(snapshot.files))
    partitions = _partition_values(snapshot, kept) if kept else [{}]
    columns = destination.file_columns(snapshot.schema, kept)
    writing = destination.writing(snapshot.schema, kept, partitions, layout=layout, run=run, compression=compression)
    refuse_filters(writing)
    _refuse_inside(snapshot, destination, writing)
    scan = table.scan(snapshot, files, columns=columns)
    if not kept:
        scan = replace(scan, sources=tuple(replace(source, partition=0) for source in scan.sources))
    return Copy(snapshot, scan, writing, layout)


def _refuse_inside(snapshot: Snapshot, destination: Destination, writing: Writing) -> None:
    """Raise an error for a copy inside of its source: a folder's files are its rows, and those of the copy would be."""
    folders = [path and os.path.realpath(path) for path in map(local_path, (snapshot.location, writing.folder))]
    outer, inner = (path or place for path, place in zip(folders, (snapshot.location, writing.folder), strict=True))
    if f"{inner}/".startswith(f"{outer.rstrip('/')}/"):
        raise TableError(
            f"{quoted(destination.name, limit=300)} is inside of {quoted(snapshot.name, limit=300)}, whose files are "
            "its rows. Choose a place outside of it."
        )


def run_copy(copy: Copy, destination: Destination, runner: Runner, report: Progress, *, verify: bool = False) -> Done:
    """Write the copy and publish it in one step; a failure leaves nothing of it behind."""
    files = copy.snapshot.files
    request = CommitRequest()
    try:
        written: list[Written] = []
        predicted = Done()
        if copy.scan.sources:
            written, expected = write_files(
                copy.snapshot.name, files.partitions, copy.scan, copy.writing, copy.layout, runner, report,
                verify=verify,
            )  # fmt: skip
            predicted = expected.without()
        report(Step("committing"))
        sweep(copy.writing, {file.path for file in written})
        request = CommitRequest(partial(destination.refers_to, written), partial(check_files, copy.writing, written))
        request.look()
        version = destination.publish(written, sending=request.send)
    except BaseException as error:
        settle(copy.writing, request, error)
        raise
    change = RewrittenFiles.of(written, removed_bytes=int(files.sizes.sum()))
    versions = () if version is None else (version,)
    return predicted + Done(versions, change, properties=copy.writing.properties)


def _partition_values(snapshot: Snapshot, keys: tuple[str, ...]) -> list[Mapping[str, pa.Scalar]]:
    """Return the values of each partition, as its first file has them."""
    files = snapshot.files
    _, first = np.unique(files.partition, return_index=True)
    return [{name: _value(snapshot, name, int(file)) for name in keys} for file in first]


def _value(snapshot: Snapshot, name: str, file: int) -> pa.Scalar:
    bounds = snapshot.files.partition_bounds[name]
    kind = snapshot.schema.field(name).type
    lower, upper = bounds.lower[file], bounds.upper[file]
    if not lower.is_valid and bounds.nulls[file] == snapshot.files.rows[file]:
        return pa.scalar(None, kind)
    if 0 < bounds.nans[file] == snapshot.files.rows[file]:
        path = snapshot.files.paths[file].as_py()
        raise TableError(
            f"The partition column {quoted(name)} of {quoted(path, limit=300)} is NaN, by which a copy can't be "
            "partitioned: engines don't agree on what equals it. Give these rows another value, or cluster "
            "the table in place."
        )
    if not lower.is_valid or lower != upper:
        path = snapshot.files.paths[file].as_py()
        raise TableError(f"The partition value {quoted(name)} of {quoted(path, limit=300)} can't be told exactly.")
    return pa.array([lower], lower.type).cast(kind)[0]
