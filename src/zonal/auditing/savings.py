"""Estimate what clustering could save of what queries read: whether a high ratio can be helped."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from zonal.advising.queries import BoundQueries
from zonal.auditing.profit import helpable, is_hopeless
from zonal.auditing.replay import Replay
from zonal.snapshot import Snapshot
from zonal.values.arrays import BoolArray, Float64Array

WORTH = 0.1
"""Share of the bytes read that must be saved for a rewrite to be worth it."""


@dataclass(frozen=True)
class Saving:
    """Shares of the bytes read now, by queries that a layout can help, that could be saved; None where unknown."""

    anew: float | None = None
    """By clustering the whole table anew, as predicted from a sample of its rows."""
    outside: float | None = None
    """By clustering the files outside of the table's layout, if they are then read as the others are now."""

    @property
    def most(self) -> float | None:
        """Return the larger known share."""
        known = [each for each in (self.anew, self.outside) if each is not None]
        return max(known) if known else None

    @property
    def is_worth_it(self) -> bool:
        """Tell whether clustering saves enough, or whether that isn't known."""
        return self.most is None or self.most >= WORTH


def saving_of(snapshot: Snapshot, asked: BoundQueries, replayed: Replay, fresh: Float64Array | None) -> Saving:
    """Estimate what could be saved; `fresh` is the share that each query would read after clustering anew."""
    return Saving(_anew(snapshot, asked, replayed, fresh), _outside(snapshot, asked, replayed))


def _anew(snapshot: Snapshot, asked: BoundQueries, replayed: Replay, fresh: Float64Array | None) -> float | None:
    weights = helpable(asked)
    now = float(weights @ replayed.bytes) / max(int(snapshot.files.sizes.sum()), 1)
    return None if fresh is None or now <= 0 else max(1 - float(weights @ fresh) / now, 0.0)


def _outside(snapshot: Snapshot, asked: BoundQueries, replayed: Replay) -> float | None:
    """Compare what is read of the files in the layout with what is read of all; None where none is in it."""
    inside = in_layout(snapshot)
    if inside is None or not inside.any():
        return None
    sizes = snapshot.files.sizes.astype(np.float64)
    everything = sum(
        weight for bound, weight in zip(asked.bounds, asked.weights.tolist(), strict=True) if is_hopeless(bound)
    )
    read = np.maximum(replayed.read - everything, 0.0) * sizes  # queries that no layout can help read every file
    whole = float(read.sum())
    if whole <= 0:
        return 0.0
    return max(1 - float(read[inside].sum()) / float(sizes[inside].sum()) * float(sizes.sum()) / whole, 0.0)


def in_layout(snapshot: Snapshot) -> BoolArray | None:
    """Tell which files are in the layout that the table records; None where it records none."""
    if snapshot.layout is None:
        return None
    inside: BoolArray = pc.fill_null(pc.equal(snapshot.files.layout_ids, snapshot.layout.id), False).to_numpy(
        zero_copy_only=False
    )
    return inside
