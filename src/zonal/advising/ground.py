"""Hold what all candidates are measured with: the sample, training and held-out queries, and what they read today."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from zonal.advising.queries import BoundQueries, Fit
from zonal.layouts.layout import DEFAULT_ROW_GROUP_ROWS, Layout
from zonal.predicates.bound import Bound
from zonal.snapshot import Snapshot
from zonal.trials.boxes import boxes_of
from zonal.trials.prediction import Prediction, predict
from zonal.trials.today import Standing
from zonal.trials.trial import Trial
from zonal.values.arrays import Float64Array, Int64Array
from zonal.values.sample import Sample

_SCREEN_ROWS, _SCREEN_FILES, _SCREEN_QUERIES = 12_000, 250, 250


@dataclass(frozen=True, eq=False)
class Ground:
    """A table and its queries, ready to measure any number of candidates."""

    snapshot: Snapshot
    asked: BoundQueries
    decided: tuple[Bound, ...]
    """The queries' predicates as far as files can decide them, for predictions; trees are learned from `asked`."""
    fit: Fit
    standing: Standing
    """What all the queries read today."""
    groups_today: Float64Array | None
    """What all the queries read if row groups are skipped, too, where that is known."""
    sample: Trial
    """The sample with all the queries; its partitions are those that were sampled."""
    learn: Int64Array
    """Numbers of the training queries, with which candidates are made and chosen."""
    held: Int64Array
    """Numbers of the held-out queries, with which they are measured."""
    columns: tuple[str, ...]
    """The columns that rows may be ordered by, those of the most weight first."""
    target_file_bytes: int
    rows: int
    """Approximate rows of the whole table."""
    row_seconds: float
    """Core-seconds per row of a rewrite."""
    seed: int = 0
    row_group_rows: int = DEFAULT_ROW_GROUP_ROWS
    size_asked: bool = True
    """Whether somebody asked for this size of files; else it suits the table, and no layout insists on it."""

    @property
    def bytes(self) -> int:
        """Return the bytes of the table's files."""
        return int(self.snapshot.files.sizes.sum())

    @property
    def is_whole(self) -> bool:
        """Tell whether every partition was sampled."""
        return len(self.sample.partition_rows) >= len(np.unique(self.snapshot.files.partition))

    @cached_property
    def measured(self) -> BoundQueries:
        """Return the held-out queries."""
        return self._half(self.held)

    @cached_property
    def learning(self) -> Trial:
        """Return the sample with the training queries."""
        return self._with(self.learn)

    @cached_property
    def measuring(self) -> Trial:
        """Return the sample with the held-out queries."""
        return self._with(self.held)

    @cached_property
    def screening(self) -> Trial:
        """Return some of the sample's rows with the heaviest training queries: enough to compare candidates."""
        heaviest = np.argsort(-self.asked.weights[self.learn], kind="stable")[:_SCREEN_QUERIES]
        trial = self._with(np.sort(self.learn[heaviest]))
        rows = len(trial.coded)
        if rows <= _SCREEN_ROWS:
            return trial
        drawn = np.sort(np.random.default_rng(self.seed).choice(rows, _SCREEN_ROWS, replace=False))
        fewer = Sample(trial.rows.data.take(drawn), trial.rows.partition[drawn])
        return replace(trial, rows=fewer, coded=trial.coded.some(drawn))

    def unparted(self) -> "Ground":
        """Return the same with all queries on both sides: what they read under a layout that is decided."""
        every = np.arange(len(self.asked))
        return replace(self, learn=every, held=every)

    def _with(self, queries: Int64Array) -> Trial:
        half, known = self._half(queries), self.sample.in_partition
        return replace(
            self.sample,
            boxes=boxes_of([self.decided[query] for query in queries], self.sample.coded),
            weights=half.weights,
            in_partition=None if known is None else known[:, queries],
        )

    def _half(self, queries: Int64Array) -> BoundQueries:
        """Return the training or the held-out queries; those that are in both have half of their runs here."""
        both = np.isin(queries, self.learn) & np.isin(queries, self.held)
        return self.asked.some(queries, np.where(both, 0.5, 1.0))

    def layout(self, kind: str, columns: tuple[str, ...]) -> Layout:
        """Return a layout with the ground's sizes of files and row groups."""
        return self.sized(Layout(kind, columns, row_group_rows=self.row_group_rows))

    def sized(self, layout: Layout) -> Layout:
        """Return a layout with the ground's size of files."""
        if self.size_asked:
            return replace(layout, target_file_bytes=self.target_file_bytes)
        return replace(layout, target_file_bytes=None, fitted_file_bytes=self.target_file_bytes)

    def screened(self, layout: Layout) -> float:
        """Estimate what the training queries read under a layout, with fewer files than it would have."""
        trial = self.screening
        whole = trial.total_rows * trial.row_bytes
        size = max(layout.file_bytes, round(whole / _SCREEN_FILES))
        rough = replace(layout, target_file_bytes=size, row_group_rows=2**62)
        return predict(trial, rough, seed=self.seed).mean

    def predicted(self, layout: Layout, trial: Trial | None = None) -> Prediction:
        """Return what the held-out queries would read."""
        prediction = predict(trial or self.measuring, layout, seed=self.seed)
        return prediction if trial is not None or self.is_whole else self._of_all_partitions(prediction)

    def _of_all_partitions(self, sampled: Prediction) -> Prediction:
        """Extrapolate a prediction from the sampled partitions to all.

        What partition values skip is known for all of them; inside the others, the layout is assumed to skip as much as
        in the sampled partitions.
        """
        exact = self.standing.partition_only.shares[self.held]
        needed = _partition_shares(self.measuring)
        inside = np.divide(sampled.shares, needed, out=np.full_like(needed, np.nan), where=needed > 0)
        groups = np.divide(sampled.row_group_shares, needed, out=np.full_like(needed, np.nan), where=needed > 0)
        usual, usual_groups = (float(np.nanmean(part)) if np.isfinite(part).any() else 1.0 for part in (inside, groups))
        scale = self.rows / max(self.sample.total_rows, 1)
        return Prediction.of(
            max(len(np.unique(self.snapshot.files.partition)), round(sampled.files * scale)),
            np.clip(exact * np.where(np.isnan(inside), usual, inside), 0.0, 1.0),
            np.clip(exact * np.where(np.isnan(groups), usual_groups, groups), 0.0, 1.0),
            self.measured.weights,
            extrapolated=True,
            seed=self.seed,
        )


def _partition_shares(trial: Trial) -> Float64Array:
    """Return the share of the rows in partitions that each query needs."""
    if trial.in_partition is None:
        return np.ones(trial.boxes.queries)
    parts = np.array(list(trial.partition_rows), np.int64)
    rows = np.array([trial.partition_rows[part] for part in parts.tolist()], np.float64)
    shares: Float64Array = rows @ trial.in_partition[parts] / max(float(rows.sum()), 1e-300)
    return shares
