"""The runs of a table: which files were clustered together, which have no order, which are heavy with deletes."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from zonal.layouts.layout import Layout
from zonal.plan.run import RUN_FOLDER
from zonal.snapshot import UNKNOWN, Files, Snapshot
from zonal.values.arrays import BoolArray, Int64Array

HEAVY_SHARE = 0.3
"""Share of deleted rows from which a file is rewritten to drop them."""
HEAVY_FILES = 16
"""Number of delete files from which one is, where only the delete files know how many rows they delete."""
NO_RUN = -1


@dataclass(frozen=True, eq=False)
class Runs:
    """How every file of a snapshot stands to one layout."""

    in_layout: BoolArray
    """Files that zonal clustered in this layout; those that others compacted since are no longer marked."""
    in_another: BoolArray
    """Files that zonal clustered in a different layout."""
    heavy: BoolArray
    """Files of which many rows are deleted."""
    run: Int64Array
    """The run of each file in the layout, numbered from 0, the newest last; `NO_RUN` for all others."""

    @property
    def raw(self) -> BoolArray:
        """Files without any order, as they arrived or as other engines compacted them."""
        return ~self.in_layout & ~self.in_another

    @property
    def count(self) -> int:
        """Count the runs."""
        return int(self.run.max(initial=NO_RUN)) + 1


def runs_of(snapshot: Snapshot, layout: Layout) -> Runs:
    """Tell the runs of a snapshot apart: by the folder of the run, else by the commit that added the file.

    Names of folders survive checkpoints, expired snapshots and rewritten manifests.
    """
    files = snapshot.files
    known = pc.is_valid(files.layout_ids).to_numpy(zero_copy_only=False)
    in_layout = pc.fill_null(pc.equal(files.layout_ids, layout.id), False).to_numpy(zero_copy_only=False)
    paths, added_by = files.paths.to_pylist(), files.added_by.tolist()
    names = {
        file: match["run"] if (match := RUN_FOLDER.search(paths[file])) else f"commit {added_by[file]}"
        for file in np.flatnonzero(in_layout).tolist()
    }
    numbers = {name: number for number, name in enumerate(sorted(set(names.values())))}
    run = np.full(len(files), NO_RUN, np.int64)
    run[list(names)] = [numbers[name] for name in names.values()]
    return Runs(in_layout, known & ~in_layout, heavy_files(files), run)


def heavy_files(files: Files) -> BoolArray:
    """Return the files whose deletes cost readers more than a rewrite is worth."""
    counted = (files.deleted != UNKNOWN) & (files.rows != UNKNOWN)
    many = files.deleted >= HEAVY_SHARE * np.maximum(files.rows, 1)
    return np.where(counted, many & (files.deleted > 0), files.delete_files >= HEAVY_FILES)
