"""The condition of a growing table: how much of it is in which layout, its runs, and what a run would do now."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zonal.history.records import LedgerRecord
from zonal.layouts.layout import Layout
from zonal.snapshot import Snapshot
from zonal.upkeep.account import account_of
from zonal.upkeep.boxes import bounds_of, boxes_of
from zonal.upkeep.merges import MergeTerms
from zonal.upkeep.policy import choose_merges
from zonal.upkeep.runs import NO_RUN, Runs, runs_of


@dataclass(frozen=True)
class Condition:
    """How a table stands to its layout; shares are of its bytes."""

    share_in_layout: float
    share_in_others: float
    """In layouts that were recorded before."""
    share_unclustered: float
    runs: int
    overlapping_runs: int
    """Runs with a file that overlaps one of another run in every column of the layout."""
    amplification: float
    """Bytes rewritten per byte that arrived, as far as the table's commits and its ledger tell."""
    due: tuple[str, ...]
    """What a run would merge now, and why."""
    not_due: tuple[str, ...]
    """What it would leave, and why."""
    arrived_bytes: int = 0
    rewritten_bytes: int = 0
    all_known: bool = False
    """Whether these are all that ever arrived and were rewritten: no commit is unknown."""


def condition_of(snapshot: Snapshot, layout: Layout, ledger: Sequence[LedgerRecord] = ()) -> Condition:
    """Measure a table's condition from its metadata, and from its ledger where commits have expired."""
    runs, account = runs_of(snapshot, layout), account_of(snapshot, ledger)
    sizes = snapshot.files.sizes
    total = max(int(sizes.sum()), 1)
    choice = choose_merges(snapshot, layout, MergeTerms(), account)
    return Condition(
        share_in_layout=int(sizes[runs.in_layout].sum()) / total,
        share_in_others=int(sizes[runs.in_another].sum()) / total,
        share_unclustered=int(sizes[runs.raw].sum()) / total,
        runs=runs.count,
        overlapping_runs=_overlapping(snapshot, layout, runs),
        amplification=account.amplification,
        due=tuple(merge.text for merge in choice.chosen),
        not_due=tuple(merge.text for merge in choice.left),
        arrived_bytes=account.arrived,
        rewritten_bytes=account.rewritten,
        all_known=account.exact,
    )


def _overlapping(snapshot: Snapshot, layout: Layout, runs: Runs) -> int:
    """Count the runs that share a partition and a range of every column with another run."""
    overlapping: set[int] = set()
    bounds = bounds_of(snapshot, layout.curve_columns)
    for part in np.unique(snapshot.files.partition):
        files = np.flatnonzero((snapshot.files.partition == part) & (runs.run != NO_RUN))
        numbers, place = np.unique(runs.run[files], return_inverse=True)
        if len(numbers) < 2:
            continue
        boxes = boxes_of(snapshot.files.rows, bounds, files)
        for run in range(len(numbers)):
            mine, others = np.flatnonzero(place == run), np.flatnonzero(place != run)
            for file in mine.tolist():
                meets = (boxes.low[others] <= boxes.high[file]) & (boxes.high[others] >= boxes.low[file])
                if meets.all(axis=1).any():
                    overlapping.add(int(numbers[run]))
                    break
    return len(overlapping)
