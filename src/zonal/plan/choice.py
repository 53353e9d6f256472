"""Which files of a table a rewrite takes, and in which commits."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow.compute as pc

from zonal.errors import ZonalError, option
from zonal.layouts.layout import Layout
from zonal.predicates.bound import Bound
from zonal.skipping.files import FileIndex
from zonal.snapshot import Snapshot
from zonal.values.arrays import Int64Array
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

    `where` leaves the files that might hold a matching row. `most_bytes` takes whole partitions in order as long as
    they fit; where none does, those files of the first one that do.
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
    return _that_fit(snapshot, files, layout, most_bytes)


def _that_fit(snapshot: Snapshot, files: Int64Array, layout: Layout, most_bytes: int) -> Int64Array:
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
        ordered = in_key_order(snapshot, part[sizes[part] <= most_bytes], layout)
        if len(ordered):
            return np.sort(ordered[np.cumsum(sizes[ordered]) <= most_bytes])
    raise ZonalError(
        f"A run of at most {format_size(most_bytes)} can't rewrite any file: the smallest has "
        f"{format_size(int(sizes[files].min()))}. Raise {option('max_bytes')}."
    )


def in_commits(snapshot: Snapshot, files: Int64Array, layout: Layout, most_bytes: int | None) -> list[Int64Array]:
    """Divide the files into commits of at most `most_bytes`: whole partitions, or ranges of the first key column.

    Without a limit all files are one commit; a single file that is larger makes a commit of its own.
    """
    if most_bytes is None:
        return [files] if len(files) else []
    commits: list[list[int]] = []
    held = 0
    sizes = snapshot.files.sizes
    for part in _by_partition(snapshot, files):
        whole = sizes[part].sum() <= most_bytes
        for unit in [part] if whole else [np.array([file]) for file in in_key_order(snapshot, part, layout)]:
            size = int(sizes[unit].sum())
            if not commits or held + size > most_bytes:
                commits.append([])
                held = 0
            commits[-1] += unit.tolist()
            held += size
    return [np.sort(np.array(commit, np.int64)) for commit in commits]


def _by_partition(snapshot: Snapshot, files: Int64Array) -> Iterator[Int64Array]:
    partition = snapshot.files.partition[files]
    for number in np.unique(partition):
        yield files[partition == number]


def in_key_order(snapshot: Snapshot, files: Int64Array, layout: Layout) -> Int64Array:
    """Order files by the least value of the layout's first column, so that neighbors overlap; unknown ones last."""
    first = layout.columns[0]
    bounds = snapshot.files.partition_bounds.get(first) or snapshot.files.bounds.get(first)
    if bounds is None:
        return files
    lower = bounds.lower.take(files)
    try:
        order: Int64Array = pc.array_sort_indices(lower, null_placement="at_end").to_numpy().astype(np.int64)
    except NotImplementedError:
        return files
    return files[order]


def still_there(snapshot: Snapshot, paths: Sequence[str]) -> Int64Array:
    """Return the positions of these files in a later snapshot; those that are gone are left out."""
    position = {path: number for number, path in enumerate(snapshot.files.paths.to_pylist())}
    return np.sort(np.array([position[path] for path in paths if path in position], np.int64))
