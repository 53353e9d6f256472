"""Carry over deletes that other writers added to files while they were rewritten.

Only the rows that were deleted meanwhile are read again. For each of them a row of the new files that is equal in all
columns is deleted: which of several equal rows is deleted makes no difference to a table. Where that can't be proved
for a partition, it is given up, and its work is done again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import ZonalError
from zonal.plan.rewrite import Carried, Rewrite, Scan, Source, Writing
from zonal.snapshot import UNKNOWN, Snapshot
from zonal.storage import Storage
from zonal.storage.causes import STORAGE_ERRORS
from zonal.tables.protocol import CarriesDeletes, Rewritable, carries_deletes
from zonal.upkeep.runs import HEAVY_SHARE
from zonal.values.arrays import Int64Array
from zonal.values.selection import take_rows
from zonal.worker.read.deletes import PositionDeletes
from zonal.worker.read.reader import Reader
from zonal.worker.read.twins import find_twins
from zonal.worker.write.deletes import write_deletes

CARRIES = 5
"""Times that deletes are carried over for one commit: other writers may delete again before each."""
MOST_ROWS, MOST_SHARE, ALWAYS = 100_000, 0.01, 1_000
"""Rows that are carried over at most, and the share of a rewrite's rows, but for a few rows, which always are."""
MOST_BYTES = 256 * 1024**2
"""Bytes of deleted rows that are held in memory."""


def carry_over(
    table: Rewritable, rewrite: Rewrite, writing: Writing, parts: Collection[int]
) -> tuple[Rewrite, set[int]]:
    """Carry over all deletes of the rewrite's files that the newest version has, and its base hasn't.

    `parts` are partitions that the rewrite in its present form can't be committed for. Returned are the rewrite with
    what is carried, and partitions for which that can't be done.
    """
    if not carries_deletes(table):
        return rewrite, set(parts)
    try:
        return _carried(table, rewrite, writing) or (rewrite, set(parts))
    except (ZonalError, *STORAGE_ERRORS):  # the work is done again, which will tell what is wrong
        return rewrite, set(parts)


def _carried(table: CarriesDeletes, rewrite: Rewrite, writing: Writing) -> tuple[Rewrite, set[int]] | None:
    newest = table.newest().snapshot()
    form = table.new_deletes(newest, writing)
    if form is None:
        return None
    scan = table.scan(rewrite.base, rewrite.removed)
    grown, lost = _grown(table, rewrite, newest, scan)
    if not _is_few(rewrite, grown):
        return None
    keys = [
        scan.columns[name] for name in rewrite.layout.columns if scan.columns.get(name) in scan.reading.schema.names
    ]
    deleted: dict[str, Int64Array] = {}
    for part in sorted({each.source.partition for each in grown}):
        reader = Reader(scan.reading, scan.storage)
        rows = _rows(reader, [each for each in grown if each.source.partition == part])
        files = [file for file in rewrite.added if file.partition == part]
        found = None if rows is None else find_twins(reader, rows, files, keys)
        if found is None or any(len(found.get(file.path, ())) >= HEAVY_SHARE * file.rows for file in files):
            lost.add(part)
        else:
            deleted |= found
    stored = write_deletes(form, writing, deleted) if deleted else {}
    return replace(rewrite, carried=Carried(newest, deleted, stored)), lost


# --- what was deleted meanwhile --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Grown:
    """A file that has more deleted rows than when it was rewritten."""

    source: Source
    """As it was rewritten."""
    positions: Int64Array
    """Deleted since then."""


def _grown(table: CarriesDeletes, rewrite: Rewrite, newest: Snapshot, scan: Scan) -> tuple[list[_Grown], set[int]]:
    """Return the files with more deletes than before, and partitions of files that changed in any other way."""
    paths = pa.array([source.path for source in scan.sources], pa.string())
    there = np.flatnonzero(pc.is_in(newest.files.paths, paths).to_numpy(zero_copy_only=False))
    now = table.scan(newest, there).sources
    by_path = {source.path: source for source in now}
    twice = len(by_path) < len(now)  # then it can't be said what a path is
    grown: list[_Grown] = []
    lost: set[int] = set()
    for source in scan.sources:
        other = None if twice else by_path.get(source.path)
        label = rewrite.base.files.partitions[source.partition]
        positions = None
        if other is not None and newest.files.partitions[other.partition] == label:
            positions = _more_deleted(source, other, scan.storage)
        if positions is None:
            lost.add(source.partition)
        elif len(positions):
            grown.append(_Grown(source, positions))
    return [each for each in grown if each.source.partition not in lost], lost


def _more_deleted(before: Source, now: Source, storage: Storage) -> Int64Array | None:
    """Return the positions that were deleted since; None where that isn't all that changed, or it can't be known."""
    bare = [replace(each, number=0, partition=0, vector=None, position_deletes=()) for each in (before, now)]
    if (before.vector, before.position_deletes) == (now.vector, now.position_deletes):
        # New equality deletes apply to new files by their sequence numbers, and a commit sees to all else.
        same = replace(bare[0], equality_deletes=()) == replace(bare[1], equality_deletes=())
        return np.empty(0, np.int64) if same else None
    if bare[0] != bare[1] or before.rows == UNKNOWN:
        return None
    deletes = PositionDeletes(storage)
    old, new = (deletes.of(source, source.rows) for source in (before, now))
    return None if len(np.setdiff1d(old, new)) else np.setdiff1d(new, old)  # a row may be back that was deleted


def _is_few(rewrite: Rewrite, grown: Sequence[_Grown]) -> bool:
    rows = sum(file.rows for file in rewrite.added)
    return sum(len(each.positions) for each in grown) <= min(MOST_ROWS, max(ALWAYS, int(MOST_SHARE * rows)))


def _rows(reader: Reader, grown: Sequence[_Grown]) -> pa.Table | None:
    """Read the rows that were deleted since, as the rewrite read them; None where they are too large."""
    found: list[pa.Table] = []
    size = 0
    for each in grown:
        ends = np.cumsum([group.rows for group in reader.row_groups(each.source)])
        groups = np.unique(np.searchsorted(ends, each.positions, side="right")).tolist()
        for live in reader.rows(each.source, groups):
            part = take_rows(live.data, np.flatnonzero(np.isin(live.positions, each.positions)))
            size += part.nbytes
            if size > MOST_BYTES:
                return None
            found.append(part)
    rows = pa.concat_tables(found)
    return rows if rows.num_rows == sum(len(each.positions) for each in grown) else None
