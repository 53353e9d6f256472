"""Training queries: a bounded number of a log's queries as unions of boxes, with synthetic ones of the same shapes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from zonal.predicates.conjunctions import ANY, IS_NULL, NOT_NULL, RANGE
from zonal.trials.boxes import NULL, Boxes, Coded
from zonal.values.arrays import Int32Array, Int64Array

FAR = 2**29
"""Beyond every code. `sides` doubles codes, so that the place between two of them is a whole number as well."""
MAX_FILTERED_COLUMNS = 32
HEAVIEST, OTHERS, SYNTHETIC = 1000, 200, 100
"""Numbers of training queries: the heaviest, a sample of the others, and synthetic ones."""
MAX_BOXES = 2000


@dataclass(frozen=True, eq=False)
class TrainingQueries:
    """Queries that filter something, as unions of boxes over the columns that they filter."""

    columns: tuple[int, ...]
    """Numbers of the columns that have a condition, the heaviest first."""
    low: npt.NDArray[np.float32]
    """One row per box; codes, or halves between them."""
    high: npt.NDArray[np.float32]
    null: npt.NDArray[np.int8]
    query: Int64Array
    """The query of each box, ascending; every query has a box."""
    weight: npt.NDArray[np.float64]
    """One weight per query; they sum up to one."""

    @cached_property
    def spans(self) -> npt.NDArray[np.int64]:
        """The first code of each box and the one after its last, per column: where a cut would split it off.

        Shape (columns, 2, boxes).
        """
        begin = np.where(self.null == RANGE, np.maximum(np.ceil(self.low), 0), np.where(self.null == NOT_NULL, 0, NULL))
        end = np.where(self.null == RANGE, np.minimum(np.floor(self.high) + 1, FAR), FAR)
        end[self.null == IS_NULL] = 0
        return np.ascontiguousarray(np.stack([begin, end]).transpose(2, 0, 1)).astype(np.int64)

    @cached_property
    def box_weight(self) -> npt.NDArray[np.float64]:
        """The weight of each box: an equal share of its query's weight."""
        weight: npt.NDArray[np.float64] = (self.weight / np.bincount(self.query, minlength=len(self.weight)))[
            self.query
        ]
        return weight


def training_queries(
    coded: Coded, boxes: Boxes, weights: npt.NDArray[np.float64], synthetic: float, rng: np.random.Generator
) -> TrainingQueries:
    """Take a bounded number of the queries that filter anything, and add synthetic ones."""
    filtering = np.unique(boxes.query)
    everything = np.unique(boxes.query[(boxes.null == ANY).all(axis=1)])
    queries = np.setdiff1d(filtering, everything)
    queries = queries[weights[queries] > 0]
    queries, weight = _bounded(queries, weights[queries], rng)
    chosen = _some_boxes(boxes.query, queries)
    low, high, null = boxes.low[chosen], boxes.high[chosen], boxes.null[chosen]
    query = np.searchsorted(queries, boxes.query[chosen])
    importance = np.array([weight[np.unique(query[null[:, column] != ANY])].sum() for column in range(null.shape[1])])
    columns = [int(column) for column in np.argsort(-importance, kind="stable") if importance[column] > 0]
    columns = columns[:MAX_FILTERED_COLUMNS]
    training = TrainingQueries(tuple(columns), low[:, columns], high[:, columns], null[:, columns], query, weight)
    return _blended(coded, training, synthetic, rng) if len(queries) and synthetic > 0 and len(coded) else training


def _some_boxes(query: Int64Array, queries: Int64Array) -> Int64Array:
    """Return the boxes of these queries; for queries with very many, boxes at even distances stand for all."""
    chosen = np.flatnonzero(np.isin(query, queries))
    if len(chosen) <= MAX_BOXES:
        return chosen
    most = max(1, MAX_BOXES // len(queries))
    starts = np.searchsorted(query[chosen], queries)
    counts = np.diff(starts, append=len(chosen))
    kept = [
        start + np.unique((np.arange(min(count, most)) + 0.5) * count / min(count, most)).astype(np.int64)
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
    ]
    some: Int64Array = chosen[np.concatenate(kept)]
    return some


def _bounded(
    queries: Int64Array, weight: npt.NDArray[np.float64], rng: np.random.Generator
) -> tuple[Int64Array, npt.NDArray[np.float64]]:
    """Keep the heaviest queries, and a sample of the others that shares their weight; weights sum up to one."""
    if len(queries) > HEAVIEST + OTHERS:
        order = np.argsort(-weight, kind="stable")
        rest = order[HEAVIEST:]
        some = np.unique(rng.choice(rest, OTHERS, p=weight[rest] / weight[rest].sum()))
        shared = weight[some] * (weight[rest].sum() / weight[some].sum())
        kept = np.concatenate([order[:HEAVIEST], some])
        weight = np.concatenate([weight[order[:HEAVIEST]], shared])
        queries = queries[kept]
        by_number = np.argsort(queries)
        queries, weight = queries[by_number], weight[by_number]
    return queries, weight / max(weight.sum(), 1e-300)


def _blended(coded: Coded, training: TrainingQueries, share: float, rng: np.random.Generator) -> TrainingQueries:
    """Add queries of the same shapes at random places, as wide as the real ones in shares of the rows."""
    source = rng.choice(len(training.weight), SYNTHETIC, p=training.weight)
    first = np.searchsorted(training.query, source)
    count = np.searchsorted(training.query, source, side="right") - first
    box = first + (rng.random(SYNTHETIC) * count).astype(np.int64)
    low, high, null = training.low[box].copy(), training.high[box].copy(), training.null[box]
    for number, column in enumerate(training.columns):
        codes = np.sort(coded.codes[:, column])
        codes = codes[np.searchsorted(codes, 0) :]
        moved = np.flatnonzero(null[:, number] == RANGE)
        if len(codes) and len(moved):
            low[moved, number], high[moved, number] = _moved(codes, low[moved, number], high[moved, number], rng)
    extra = share / (1 - share) if share < 1 else 1e6
    weight = np.concatenate([training.weight, np.full(SYNTHETIC, extra / SYNTHETIC)])
    return TrainingQueries(
        training.columns,
        np.concatenate([training.low, low]),
        np.concatenate([training.high, high]),
        np.concatenate([training.null, null]),
        np.concatenate([training.query, len(training.weight) + np.arange(SYNTHETIC)]),
        weight / weight.sum(),
    )


def _moved(
    codes: Int32Array, low: npt.NDArray[np.float32], high: npt.NDArray[np.float32], rng: np.random.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Move ranges to random places where they hold about as many rows; a single value becomes that of a random row."""
    rows = len(codes)
    first = np.searchsorted(codes, low)
    width = np.searchsorted(codes, high, side="right") - first
    start = (rng.random(len(low)) * (rows - width + 1)).astype(np.int64)
    bounded = np.isfinite(low) & np.isfinite(high)
    stretch = np.exp2(rng.uniform(-1, 1, len(low)))  # a range without an end stays one, and gets longer or shorter
    width = np.where(bounded, width, np.minimum(width * stretch, rows).astype(np.int64))
    start = np.where(bounded, start, np.where(np.isfinite(low), rows - width, 0))
    one = bounded & (np.ceil(low) >= np.floor(high))
    value = codes[rng.integers(0, rows, len(low))]
    new_low = np.where(one, value, codes[np.clip(start, 0, rows - 1)])
    new_high = np.where(one, value, codes[np.clip(start + width - 1, 0, rows - 1)])
    return (
        np.where(np.isfinite(low), new_low, -np.inf).astype(np.float32),
        np.where(np.isfinite(high), np.maximum(new_high, new_low), np.inf).astype(np.float32),
    )
