"""The choice of a table's files for a rewrite, and their division into commits."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow.compute as pc

from zonal.errors import ZonalError, option
from zonal.layouts.layout import Layout
from zonal.predicates.bound import Bound
from zonal.skipping.files import FileIndex
from zonal.skipping.index import ColumnIndex
from zonal.snapshot import Snapshot
from zonal.values.arrays import Int32Array, Int64Array
from zonal.values.sizes import format_size


def choose(
    snapshot: Snapshot,
    layout: Layout,
    *,
    where: "Bound | None" = None,
    full: bool = False,
    most_bytes: int | None = None,
) -> Int64Array:
    """Return the files to rewrite: those that aren't in the layout yet, or with `full` all.

    `where` keeps only files that might hold a matching row. `most_bytes` takes whole partitions in order as long as
    they fit; where none does, the files of the first one that do.
    """
    wanted = np.ones(len(snapshot.files), np.bool_)
    if where is not None:
        wanted &= FileIndex(snapshot).prune(where).kept
    if not full:
        in_layout = pc.fill_null(pc.equal(snapshot.files.layout_ids, layout.id), False)
        wanted &= ~in_layout.to_numpy(zero_copy_only=False)
    files = np.flatnonzero(wanted)
    if most_bytes is None or not len(files):
        return files
    return that_fit(snapshot, files, layout, most_bytes)


def that_fit(snapshot: Snapshot, files: Int64Array, layout: Layout, most_bytes: int) -> Int64Array:
    """Return whole partitions in order as long as they fit; where none does, the files of the first one that do."""
    sizes = snapshot.files.sizes
    parts = list(_by_partition(snapshot, files))
    chosen: list[Int64Array] = []
    left = most_bytes
    for part in parts:
        if sizes[part].sum() <= left:
            chosen.append(part)
            left -= int(sizes[part].sum())
    if chosen:
        return np.sort(np.concatenate(chosen))
    for part in parts:
        ordered = in_key_order(snapshot, part[sizes[part] <= most_bytes], layout, most_bytes)
        if len(ordered):
            return np.sort(ordered[np.cumsum(sizes[ordered]) <= most_bytes])
    raise ZonalError(
        f"A run of at most {format_size(most_bytes)} can't rewrite any file: the smallest has "
        f"{format_size(int(sizes[files].min()))}. Raise {option('max_bytes')}."
    )


def in_commits(snapshot: Snapshot, files: Int64Array, layout: Layout, most_bytes: int | None) -> list[Int64Array]:
    """Divide the files into commits of at most `most_bytes`: whole partitions, or ranges of a key column.

    Without a limit all files are one commit; a single file that is larger makes a commit of its own. A commit replaces
    whole files, so ranges of commits overlap where those of the files do.
    """
    if most_bytes is None:
        return [files] if len(files) else []
    sizes = snapshot.files.sizes
    units: list[Int64Array] = []
    for part in _by_partition(snapshot, files):
        whole = sizes[part].sum() <= most_bytes
        units += [part] if whole else np.split(in_key_order(snapshot, part, layout, most_bytes), len(part))
    starts = _starts(_packed(np.array([sizes[unit].sum() for unit in units], np.int64), most_bytes)).tolist()
    return [np.sort(np.concatenate(units[start:end])) for start, end in pairwise([*starts, len(units)])]


def _packed(sizes: Int64Array, most_bytes: int) -> Int64Array:
    """Number the commits of units in order: each takes as many as fit, and at least one."""
    numbers = np.zeros(len(sizes), np.int64)
    held = 0
    for at, size in enumerate(sizes.tolist()):
        full = at > 0 and held + size > most_bytes
        held = size if full else held + size
        numbers[at] = numbers[at - 1] + full if at else 0
    return numbers


def _starts(runs: Int64Array) -> Int64Array:
    """Return where each run of equal numbers begins."""
    return np.flatnonzero(np.diff(runs, prepend=-1))


def _by_partition(snapshot: Snapshot, files: Int64Array) -> Iterator[Int64Array]:
    partition = snapshot.files.partition[files]
    for number in np.unique(partition):
        yield files[partition == number]


def in_key_order(snapshot: Snapshot, files: Int64Array, layout: Layout, most_bytes: int) -> Int64Array:
    """Order files by that key column in which runs of `most_bytes` then overlap least; unknown ones last."""
    return _best_order(snapshot, files, layout, most_bytes)[1]


def dividing_column(snapshot: Snapshot, files: Int64Array, layout: Layout, most_bytes: int) -> str | None:
    """Return the key column whose ranges commits of one partition's files are; None where nothing is known of any."""
    return _best_order(snapshot, files, layout, most_bytes)[0]


def _best_order(
    snapshot: Snapshot, files: Int64Array, layout: Layout, most_bytes: int
) -> tuple[str | None, Int64Array]:
    """Try each column: a table that arrived in the order of time is divided by time, wherever the key has it."""
    column, best, least = None, files, math.inf
    for name in layout.columns:
        bounds = snapshot.files.partition_bounds.get(name) or snapshot.files.bounds.get(name)
        if bounds is not None:
            index = ColumnIndex(bounds, snapshot.files.rows)
            lower, upper = index.lower[files], index.upper[files]
            order = np.argsort(np.where(lower < 0, len(index.values), lower), kind="stable")
            runs = _packed(snapshot.files.sizes[files[order]], most_bytes)
            if (overlap := _overlap(lower[order], upper[order], runs)) < least:
                column, best, least = name, files[order], overlap
    return column, best


def _overlap(lower: Int32Array, upper: Int32Array, runs: Int64Array) -> float:
    """Return in how many runs' ranges the first value of a file lies, on average."""
    if not len(runs):
        return 0.0
    starts = _starts(runs)
    low, high = np.sort(np.minimum.reduceat(lower, starts)), np.sort(np.maximum.reduceat(upper, starts))
    return float((np.searchsorted(low, lower, "right") - np.searchsorted(high, lower, "left")).mean())


def still_there(snapshot: Snapshot, paths: Sequence[str]) -> Int64Array:
    """Return the positions of these files in a later snapshot; files that are gone are left out."""
    position = {path: number for number, path in enumerate(snapshot.files.paths.to_pylist())}
    return np.sort(np.array([position[path] for path in paths if path in position], np.int64))
