"""The policy that keeps a growing table clustered: what to merge now, decided from a snapshot alone.

Rows that arrived wait until they are worth some files, and are then clustered as a run. Runs merge in tiers: four of
about one size become one, up to as many levels as the bound on rewritten bytes allows, and where queries are known
only if these soon pay for it. docs/decisions.md has the measurements.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from zonal.layouts.layout import TREE, Layout
from zonal.predicates.bound import Bound
from zonal.snapshot import Bounds, Snapshot
from zonal.upkeep.account import Account
from zonal.upkeep.boxes import bounds_of, boxes_of
from zonal.upkeep.forecast import Forecast
from zonal.upkeep.merges import Merge, MergeChoice, MergeTerms, Reason
from zonal.upkeep.questions import asked, guessed
from zonal.upkeep.runs import Runs, runs_of
from zonal.values.arrays import Int64Array
from zonal.values.sizes import size_text

TIER = 4
"""Runs of a level that become one of the next."""
_ONE_FILE = 1.4
"""A partition of up to so many files' worth becomes one file."""
_NEARLY = 0.75
"""Rows are clustered once they are this share of what they wait for: they arrive in parts."""
_SMALL = 0.5
"""A file below this share of the target size is joined with others on the way."""

WeighedBound = tuple[Bound, float]
"""A predicate bound to the table's schema, and its weight."""


def choose_merges(
    snapshot: Snapshot, layout: Layout, terms: MergeTerms, account: Account, queries: Sequence[WeighedBound] = ()
) -> MergeChoice:
    """Decide what to merge in each partition; the same snapshot always gives the same answer."""
    runs = runs_of(snapshot, layout)
    bounds = bounds_of(snapshot, layout.curve_columns)
    found: list[Merge] = []
    for number, files in _partitions(snapshot):
        part = _Partition(snapshot, layout, runs, bounds, number, files, terms, queries)
        found += part.merges()
    return _within(found, terms, account)


def _partitions(snapshot: Snapshot) -> Iterator[tuple[int, Int64Array]]:
    partition = snapshot.files.partition
    order = np.argsort(partition, kind="stable")
    starts = np.flatnonzero(np.diff(partition[order], prepend=-1))
    for files in np.split(order, starts[1:]) if len(order) else ():
        yield int(partition[files[0]]), np.sort(files)


def _within(found: Iterable[Merge], terms: MergeTerms, account: Account) -> MergeChoice:
    """Take merges, the best first, while the bytes rewritten stay within the bound; a first clustering always is."""
    chosen, left = [], []
    room = account.room(terms.amplification)
    for merge in sorted(found, key=_rank):
        if merge.chosen and merge.reason != "first" and merge.bytes > room:
            with_it = terms.amplification + (merge.bytes - room) / account.arrived
            bound = f"{with_it:.2f} bytes per byte that arrived, of at most {terms.amplification:g}"
            left.append(replace(merge, why_not=f"with it, too much would be rewritten: {bound}"))
        elif merge.chosen:
            chosen.append(merge)
            room -= merge.bytes
        else:
            left.append(merge)
    return MergeChoice(tuple(chosen), tuple(left))


def _rank(merge: Merge) -> tuple[bool, float]:
    """Order merges: rows that arrived first, then what saves most per byte."""
    return merge.reason not in ("first", "arrived"), -(merge.saving or 0.0) / max(merge.bytes, 1)


@dataclass(frozen=True, eq=False)
class _Partition:
    """One partition, which is kept as a table of its own: queries skip others before they look at files."""

    snapshot: Snapshot
    layout: Layout
    runs: Runs
    bounds: Sequence[Bounds | None]
    number: int
    files: Int64Array
    terms: MergeTerms
    queries: Sequence[WeighedBound]

    @cached_property
    def target(self) -> float:
        return float(self.layout.file_bytes)

    @cached_property
    def total(self) -> float:
        """Size of the partition in files of the target size."""
        return self.size(self.files) / self.target

    @cached_property
    def forecast(self) -> Forecast:
        boxes = boxes_of(self.snapshot.files.rows, self.bounds, self.files)
        known = [(bound, weight) for bound, weight in self.queries if weight > 0]
        if known:
            questions = asked((each[0] for each in known), (each[1] for each in known), boxes, self.columns)
        else:
            questions = guessed(boxes)
        return Forecast(self.layout, boxes, self.snapshot.files.sizes[self.files].astype(np.float64), questions)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.layout.curve_columns

    @cached_property
    def wait(self) -> float:
        """Files' worth of rows that arrive before they are clustered: 2 in a table of 64 files, 4 in one of 256."""
        return float(np.sqrt(self.total)) / 4

    def size(self, files: Int64Array) -> int:
        return int(self.snapshot.files.sizes[files].sum())

    def at(self, files: Int64Array) -> Int64Array:
        """Return the positions of files within the partition."""
        return np.searchsorted(self.files, files)

    def merges(self) -> Iterator[Merge]:
        """Yield what could be merged."""
        kept = self.files[self.runs.in_layout[self.files] & ~self.runs.heavy[self.files]]
        heavy = self.files[self.runs.in_layout[self.files] & self.runs.heavy[self.files]]
        raw, other = self.files[self.runs.raw[self.files]], self.files[self.runs.in_another[self.files]]
        if len(other):
            moved = self._moved(other, raw)
            yield moved
            raw = raw[:0] if moved.chosen else raw
        if self.total < _ONE_FILE and len(kept):
            yield from self._one_file(kept, raw, heavy)
        elif len(raw) and self.size(raw) >= self.size(kept) + self.size(other):
            yield Merge(np.sort(np.concatenate([raw, heavy])), self.number, "first", self.size(raw) + self.size(heavy))
        else:
            yield from self._arrived(kept, raw, heavy)

    def _moved(self, other: Int64Array, raw: Int64Array) -> Merge:
        """Move files of another layout all at once, with the rows that arrived, where queries soon pay for it."""
        merge = self._merge(np.sort(np.concatenate([other, raw])), "layout")
        return merge if self.layout.kind == TREE else self._if_it_pays(merge)  # trees are learned where they pay

    def _one_file(self, kept: Int64Array, raw: Int64Array, heavy: Int64Array) -> Iterator[Merge]:
        """Make one file of a small partition, as often as the bound on rewritten bytes allows."""
        files = np.sort(np.concatenate([kept, raw, heavy]))
        new = self.size(raw) + self.size(heavy)
        if not new or (len(files) == 1 and not len(heavy)):
            return
        least = self.size(files) / self.terms.amplification
        why_not = "" if len(heavy) or new >= least else self._waits(new, least)
        yield Merge(files, self.number, "deletes" if len(heavy) else "arrived", self.size(files), why_not=why_not)

    def _arrived(self, kept: Int64Array, raw: Int64Array, heavy: Int64Array) -> Iterator[Merge]:
        """Cluster rows that arrived once they are worth it, and merge runs."""
        small = self._small_runs(kept)
        rest = np.setdiff1d(kept, small)
        new = np.sort(np.concatenate([self._unsettled(raw), small]))
        least = _NEARLY * self.wait * self.target
        due = len(new) > 0 and self.size(new) >= least
        if len(raw) and not due and self.size(new):
            yield replace(self._merge(new, "arrived"), why_not=self._waits(self.size(new), least))
        start = np.sort(np.concatenate([new, heavy])) if due else heavy
        reason: Reason = "arrived" if due else "deletes"
        yield from self._by_tiers(rest, start, reason)

    def _unsettled(self, raw: Int64Array) -> Int64Array:
        """Return rows that arrived, but for files of a good size that overlap with nobody or hold a single value."""
        if not len(raw):
            return raw
        everything = np.arange(len(self.files))
        overlaps = self.forecast.boxes.overlapping(everything)[self.at(raw)]
        return raw[overlaps | (self.snapshot.files.sizes[raw] < _SMALL * self.target)]

    def _small_runs(self, kept: Int64Array) -> Int64Array:
        """Return the files of runs that are smaller than a file, and than what rows wait for."""
        numbers, place = np.unique(self.runs.run[kept], return_inverse=True)
        if len(numbers) < 2:
            return kept[:0]
        sizes = np.bincount(place, self.snapshot.files.sizes[kept])
        return kept[(sizes < _NEARLY * min(self.wait, 1.0) * self.target)[place]]

    def _by_tiers(self, kept: Int64Array, start: Int64Array, reason: Reason) -> Iterator[Merge]:
        """Merge runs of about one size: what arrived joins three runs of its level, the result three of the next."""
        tiers = self._tiers(kept)
        level = self._level(self.size(start)) if len(start) else self._ready(tiers)
        group = start
        while level is not None:
            peers = tiers.pop(level, [])
            grown = np.sort(np.concatenate([group, *peers])) if peers else group
            if len(peers) + bool(len(group)) < TIER or self.size(grown) > self.most:
                break
            group, level = grown, max(level + 1, self._level(self.size(grown)))
        if len(group) > len(start):
            merge = self._if_it_pays(self._merge(group, "runs"), sure=not self.queries)
            yield merge
            if merge.chosen:
                return
        if len(start):
            yield self._merge(start, reason)

    @property
    def most(self) -> float:
        """Bytes up to which runs merge: one level for each byte that may be rewritten per byte that arrived."""
        return float(1.5 * self.wait * TIER ** (self.terms.amplification - 1) * self.target)

    def _ready(self, tiers: Mapping[int, Sequence[Int64Array]]) -> int | None:
        """Return the lowest level that has enough runs to merge, and few enough bytes."""
        full = (level for level, runs in tiers.items() if len(runs) >= TIER and sum(map(self.size, runs)) <= self.most)
        return min(full, default=None)

    def _tiers(self, kept: Int64Array) -> dict[int, list[Int64Array]]:
        """Return the runs of each level; files that overlap with nobody stay out of them."""
        tiers: dict[int, list[Int64Array]] = {}
        numbers = np.unique(self.runs.run[kept])
        if len(numbers) < TIER - 1:
            return tiers
        overlapping = kept[self.forecast.boxes.overlapping(self.at(kept))]
        for number in numbers:
            mine = overlapping[self.runs.run[overlapping] == number]
            if len(mine):
                whole = self.size(kept[self.runs.run[kept] == number])
                tiers.setdefault(self._level(whole), []).append(mine)
        return tiers

    def _level(self, size: int) -> int:
        """Return the level of a run: one for each factor of four above what rows wait for."""
        return 1 + max(0, round(float(np.log(max(size / (self.wait * self.target), 1e-9)) / np.log(TIER))))

    def _merge(self, files: Int64Array, reason: Reason) -> Merge:
        at = self.at(files)
        saving = self.forecast.now(at) - self.forecast.merged(at)
        delays = self.forecast.delays(at)
        return Merge(files, self.number, reason, self.size(files), saving, delays=delays if any(delays) else ())

    def _if_it_pays(self, merge: Merge, *, sure: bool = False) -> Merge:
        """Leave a merge out that queries don't pay within the scans that they have; `sure` where any gain is enough."""
        saving = merge.saving or 0.0
        if saving <= 0:
            return replace(merge, why_not="queries would not read less")
        if sure or self.terms.scans * saving >= merge.bytes:
            return merge
        scans = f"{merge.bytes / saving:,.0f} scans, not within {self.terms.scans:,.0f}"
        return replace(merge, why_not=f"it pays only within {scans}")

    def _waits(self, size: int, least: float) -> str:
        return f"{size_text(size)} wait until there are {size_text(round(least))}, or for a full run"
