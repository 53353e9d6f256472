"""Group a table's live files by the commit that added them."""

from dataclasses import dataclass

import numpy as np

from zonal.auditing.replay import Replay
from zonal.snapshot import UNKNOWN, Commit, Snapshot
from zonal.values.arrays import Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Group:
    """The live files that one commit added."""

    id: int | None
    """None where the metadata doesn't tell which commit added the files."""
    commit: Commit | None
    """None where the history doesn't have it any more."""
    files: Int64Array
    bytes: int
    read: float
    """Its share of the bytes that queries read."""
    read_files: float
    """Its share of all reads of a file by a query."""
    excess: float
    """Its share of the bytes that are read without a matching row."""

    @property
    def part(self) -> float:
        """Return the largest of its shares: how much it matters."""
        return max(self.read, self.read_files, self.excess)


def groups_of(snapshot: Snapshot, replayed: Replay) -> list[Group]:
    """Return one group per commit, those that matter most first."""
    files = snapshot.files
    sizes = files.sizes.astype(np.float64)
    read, read_files = _parts(sizes * replayed.read), _parts(replayed.read)
    excess = _parts(sizes * replayed.excess)
    order = np.argsort(files.added_by, kind="stable")
    starts = np.flatnonzero(np.diff(files.added_by[order], prepend=np.iinfo(np.int64).min))
    groups = []
    for chosen in np.split(order, starts[1:]) if len(order) else []:
        number = int(files.added_by[chosen[0]])
        group = Group(
            id=None if number == UNKNOWN else number,
            commit=snapshot.commits.get(number),
            files=np.sort(chosen),
            bytes=int(files.sizes[chosen].sum()),
            read=float(read[chosen].sum()),
            read_files=float(read_files[chosen].sum()),
            excess=float(excess[chosen].sum()),
        )
        groups.append(group)
    return sorted(groups, key=lambda group: (-group.part, -group.excess))


def _parts(amounts: Float64Array) -> Float64Array:
    total = float(amounts.sum())
    return amounts / total if total > 0 else np.zeros(len(amounts))
