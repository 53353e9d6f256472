"""Prediction of what queries would read: the sample is cut into files as a rewrite does, and queries are matched.

A file's sampled rows span less than all its rows. Boxes are therefore widened (`boxes.units_of`), and the remaining
error is estimated by repeating the simulation on half of the rows: with m sampled rows per file, the share that
queries read is share(∞) - c·m^-a, so the step from m/2 to m gives the rest. Measured: docs/decisions.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zonal.layouts.cuts import LARGEST, file_cuts
from zonal.layouts.keys import key_words, tie_columns, tie_word
from zonal.layouts.layout import TREE, Layout
from zonal.layouts.ranks import Ranks
from zonal.layouts.sort import heaviest_key, stable_order
from zonal.layouts.tree import tree_of
from zonal.trials.boxes import Coded, meets, units_of
from zonal.trials.trial import Trial
from zonal.values.arrays import Float32Array, Float64Array, Int64Array, UInt64Array

LEAST_ROWS = 30
"""Sampled rows per file; below this, simulate fewer files and extrapolate."""
_GROWTH = 0.62
"""The exponent a in share(∞) - c·m^-a."""
_SIZES = 4
"""Numbers of files that an extrapolation is fitted to, each half of the one before."""
_DRAWS = 200


@dataclass(frozen=True, eq=False)
class Prediction:
    """What each query reads, as a share of the table's bytes."""

    files: int
    shares: Float64Array
    """Where whole files are skipped."""
    row_group_shares: Float64Array
    """Where row groups are skipped as well."""
    mean: float
    """The mean of `shares`, by the queries' weights."""
    low: float
    """Lower end of the mean's 90 % interval, by bootstrap over the queries."""
    high: float
    """Upper end of that interval."""
    extrapolated: bool = False
    """Whether the sample was too small to simulate this many files."""

    @classmethod
    def of(
        cls,
        files: int,
        shares: Float64Array,
        row_group_shares: Float64Array,
        weights: Float64Array,
        *,
        extrapolated: bool = False,
        seed: int = 0,
    ) -> "Prediction":
        """Add the mean and its interval, by a bootstrap over the queries."""
        weights = weights / max(float(weights.sum()), 1e-300)
        mean = float(shares @ weights)
        low = high = mean
        if len(shares) > 1:
            drawn = np.random.default_rng(seed).integers(0, len(shares), (_DRAWS, len(shares)))
            of_draw = weights[drawn]
            means = (shares[drawn] * of_draw).sum(axis=1) / np.maximum(of_draw.sum(axis=1), 1e-300)
            low, high = (float(limit) for limit in np.quantile(means, (0.05, 0.95)))
        return cls(files, shares, row_group_shares, mean, min(low, mean), max(high, mean), extrapolated)


def predict(trial: Trial, layout: Layout, *, seed: int = 0) -> Prediction:
    """Predict what the trial's queries read of the table under a layout."""
    keys = _Keys.of(trial, layout, seed)
    files = trial.files_of(layout)
    shares, count, extrapolated = _shares_at(trial, keys, files, seed)
    groups = {
        part: max(files[part], round(rows / layout.row_group_rows)) for part, rows in trial.partition_rows.items()
    }
    inside = shares
    if sum(groups.values()) > sum(files.values()):
        inside = np.minimum(shares, _shares_at(trial, keys, groups, seed)[0])
    return Prediction.of(count, shares, inside, trial.weights, extrapolated=extrapolated, seed=seed)


@dataclass(frozen=True, eq=False)
class _Keys:
    """The sample in the order of a layout's keys, partition by partition."""

    layout: Layout
    order: Int64Array
    words: tuple[UInt64Array, ...]
    """The keys, in that order."""
    starts: Mapping[int, tuple[int, int]]
    """Where each partition begins and ends in that order."""

    @classmethod
    def of(cls, trial: Trial, layout: Layout, seed: int) -> "_Keys":
        data, partition = trial.rows.data, trial.rows.partition
        ranks = Ranks({name: trial.ranks[name] for name in layout.curve_columns if name in trial.ranks})
        if missing := [name for name in layout.curve_columns if name not in ranks]:
            ranks = Ranks({**ranks, **Ranks.fit(data, missing)})
        words = key_words(data, layout, ranks)
        parts = () if not len(partition) or partition.min() == partition.max() else (partition.astype(np.uint64),)
        order = stable_order((*parts, *words))
        if _is_heavy(trial, layout, [word[order] for word in (*parts, *words)]):
            row_hash = np.random.default_rng(seed).integers(0, 2**32, len(partition), np.uint32)
            words = (*words, tie_word(data, Ranks.fit(data, tie_columns(data.schema, layout)), row_hash))
            order = stable_order((*parts, *words))
        numbers, firsts = np.unique(partition[order], return_index=True)
        ends = np.append(firsts, len(order))[1:]
        places = {int(part): (int(a), int(b)) for part, a, b in zip(numbers, firsts, ends, strict=True)}
        return cls(layout, order, tuple(word[order] for word in words), places)

    def cut(self, files: Mapping[int, int]) -> Int64Array:
        """Return where each file begins, cut as a rewrite cuts."""
        starts: list[Int64Array] = []
        for part, (start, end) in self.starts.items():
            if files.get(part, 1) <= 1:
                starts.append(np.array([start], np.int64))
                continue
            words = [word[start:end] for word in self.words]
            starts.append(start + file_cuts(self.layout, words, files[part]))
        return np.concatenate([np.zeros(0, np.int64), *starts])

    def clip(self, starts: Int64Array, coded: Coded) -> tuple[Float32Array | None, Float32Array | None]:
        """Return the limits that the cuts of a tree set to each file's box."""
        if self.layout.kind != TREE or not len(starts):
            return None, None
        path = self.words[0]
        last = np.append(starts[1:], len(path)) - 1
        return tree_of(self.layout).clip(path[starts], path[last], coded.columns, coded.points)


def _is_heavy(trial: Trial, layout: Layout, words: Sequence[UInt64Array]) -> bool:
    """Tell whether a sorted key has more rows than a file: a rewrite then orders its rows by other columns."""
    files = trial.total_rows * trial.row_bytes / layout.file_bytes
    return bool(heaviest_key(words) * files > LARGEST * len(words[0]))


def _shares_at(trial: Trial, keys: _Keys, files: Mapping[int, int], seed: int) -> tuple[Float64Array, int, bool]:
    """Return each query's share, the number of files, and whether they were too many to simulate."""
    wanted, sampled = sum(files.values()), len(keys.order)
    most = max(sampled // LEAST_ROWS, 1)
    if wanted <= most or all(count == 1 for count in files.values()):
        shares, count = _simulated(trial, keys, files, seed)
        return shares, count, False
    tried: list[tuple[int, Float64Array]] = []
    for halvings in range(_SIZES):
        scale = most / wanted / 2**halvings
        fewer = {part: max(1, round(count * scale)) for part, count in files.items()}
        tried.append(_simulated(trial, keys, fewer, seed)[::-1])
        if max(fewer.values()) == 1:
            break
    return _extrapolated(trial, tried, wanted), wanted, True


def _extrapolated(trial: Trial, tried: Sequence[tuple[int, Float64Array]], files: int) -> Float64Array:
    """Extrapolate share(n) = floor + c·n^-a to a larger number of files n; the floor is what a query matches.

    Each query has its own a: more files don't help one that filters no column of the layout.
    """
    count, shares = tried[0]
    floor = np.minimum(trial.floor, shares)
    sizes = np.log([float(number) for number, _ in tried])
    sizes -= sizes.mean()
    above = np.log([np.maximum(each - floor, 1e-9) for _, each in tried])
    slopes = np.clip(sizes @ above / max(float(sizes @ sizes), 1e-9), -1.0, 0.0)
    return np.asarray(floor + (shares - floor) * (files / count) ** slopes, np.float64)


def _simulated(trial: Trial, keys: _Keys, files: Mapping[int, int], seed: int) -> tuple[Float64Array, int]:
    """Return each query's share of the bytes with this many files, corrected for the rows that were not sampled."""
    starts = keys.cut(files)
    if not len(starts):
        return np.ones(trial.boxes.queries), sum(files.values())
    sizes = np.diff(starts, append=len(keys.order))
    weight = np.add.reduceat(trial.row_weights[keys.order], starts)
    weight /= max(float(weight.sum()), 1e-300)
    limits = keys.clip(starts, trial.coded)
    partition = trial.rows.partition[keys.order[starts]]

    def share(order: Int64Array, begins: Int64Array) -> Float64Array:
        unseen = 1.0 - len(order) / max(trial.total_rows, len(order))
        units = units_of(trial.coded, order, begins, widen=unseen, clip_low=limits[0], clip_high=limits[1])
        met = meets(units, trial.boxes)
        if trial.in_partition is not None:
            met = met & trial.in_partition[partition]
        return np.asarray(weight @ met, np.float64)

    whole = share(keys.order, starts)
    seen = len(keys.order) / max(trial.total_rows, len(keys.order))
    if seen == 1.0:
        return whole, len(starts)
    half = np.mean([share(*each) for each in _halves(keys.order, starts, sizes, seed)], axis=0)
    step = 2.0**-_GROWTH
    missing = (whole - half) * step / (1 - step) * (1 - seen**_GROWTH)
    return np.clip(whole + missing, np.minimum(trial.floor, whole), 1.0), len(starts)


def _halves(order: Int64Array, starts: Int64Array, sizes: Int64Array, seed: int) -> list[tuple[Int64Array, Int64Array]]:
    """Split the rows of each file into two random halves; the only row of a file goes to both."""
    file = np.repeat(np.arange(len(starts)), sizes)
    mixed = order[np.lexsort((np.random.default_rng(seed).random(len(order)), file))]
    place = np.arange(len(order)) - starts[file]
    halves = []
    for half in range(2):
        kept = (place % 2 == half) | (sizes[file] == 1)
        halves.append(
            (mixed[kept], np.concatenate([[0], np.cumsum(np.add.reduceat(kept.astype(np.int64), starts))[:-1]]))
        )
    return halves
