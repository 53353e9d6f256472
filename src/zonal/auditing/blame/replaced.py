"""Find the files that a commit replaced, by the versions before and after it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.auditing.renames import named_as
from zonal.skipping.index import ColumnIndex
from zonal.snapshot import Bounds, Commit, Files, Snapshot
from zonal.values.arrays import BoolArray, Int64Array

At = Callable[[int], Snapshot | None]
"""Returns a version of the table as it was; None where its metadata is gone."""


@dataclass(frozen=True, eq=False)
class Replaced:
    """The files that a commit's files replaced."""

    version: Snapshot | None
    """The version that had them, with today's names; None where there was none before the commit."""
    files: Int64Array
    """Their numbers in `version`: files that the commit removed, and its own that it only marked anew."""
    removed: int
    """Number of files that the commit removed."""
    deleted_by: int | None = None
    """The commit right before, if that one removed them: PyIceberg overwrites by a delete and an append."""


def replaced_by(
    commit: Commit, added: Files, files: Int64Array, snapshot: Snapshot, at: At, columns: Sequence[str] = ()
) -> Replaced | None:
    """Find what a commit replaced by `files` of `added`; None where a version isn't there any more.

    A file with the same path before and after has been marked anew, as Delta does with deletion vectors. `columns` are
    those that tell an append from an overwrite, where a delete came right before it.
    """
    if commit.parent is None:
        # Once older versions have expired, the oldest commit may have lost its parent.
        return _NOTHING if commit.only_adds else None
    parent = snapshot.commits.get(commit.parent)
    if commit.only_adds and parent is not None and parent.kind != "delete":
        return _NOTHING
    before = at(commit.parent)  # first: going forward, a version costs only the commits in between
    after = None if before is None else snapshot if snapshot.version == commit.id else at(commit.id)
    if before is None or after is None:
        return None
    removed = ~_holds(after.files.paths, before.files.paths)
    paths = added.paths.take(pa.array(files))
    marked = _holds(paths, before.files.paths)
    if not removed.any() and not marked.any():
        deleted = _deleted_before(before, added, files, snapshot, at, columns)
        if deleted is not None:
            return deleted
    return Replaced(named_as(before, snapshot), np.flatnonzero(removed | marked), int(removed.sum()))


_NOTHING = Replaced(None, np.zeros(0, np.int64), 0)


def _deleted_before(
    before: Snapshot, added: Files, files: Int64Array, snapshot: Snapshot, at: At, columns: Sequence[str]
) -> Replaced | None:
    """Look for files that a delete right before the commit removed, from the partitions that it wrote to."""
    parent = None if before.version is None else before.commits.get(before.version)
    if parent is None or parent.parent is None or parent.kind != "delete":
        return None
    if (earlier := at(parent.parent)) is None:
        return None
    written = {added.partitions[number] for number in np.unique(added.partition[files]).tolist()}
    same = np.array([label in written for label in earlier.files.partitions], np.bool_)
    gone = ~_holds(before.files.paths, earlier.files.paths)
    chosen = np.flatnonzero(gone & same[earlier.files.partition])
    if not len(chosen):
        return None
    version = named_as(earlier, snapshot)
    if not all(_overlap(added, files, version.files, chosen, name) for name in columns):
        return None  # such as old days that are deleted before a new one is appended
    return Replaced(version, chosen, len(chosen), parent.id)


def _overlap(added: Files, files: Int64Array, older: Files, gone: Int64Array, column: str) -> bool:
    """Tell whether the ranges of both sets of files overlap in a column, as far as bounds tell."""
    both = [each.bounds[column].take(those) for each, those in ((added, files), (older, gone)) if column in each.bounds]
    unknown = any(each.lower.null_count or each.upper.null_count for each in both)
    if len(both) < 2 or unknown or both[0].lower.type != both[1].lower.type:
        return True
    index = ColumnIndex(Bounds.joined(both), np.concatenate([added.rows[files], older.rows[gone]]))
    mine, theirs = slice(0, len(files)), slice(len(files), None)
    start = max(index.lower[mine].min(), index.lower[theirs].min())
    return bool(start <= min(index.upper[mine].max(), index.upper[theirs].max()))


def _holds(paths: pa.Array, wanted: pa.Array) -> BoolArray:
    """Tell which of the wanted paths are among `paths`."""
    found: BoolArray = pc.is_in(wanted, value_set=paths).to_numpy(zero_copy_only=False)
    return found
