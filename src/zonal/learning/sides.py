"""The queries that meet each side of a cut, for many cuts at once.

Bounds are stored so that one comparison serves both ends: the least value of each column, and the negative of the
greatest one. A box is met where both are at or below its limits in every column.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zonal.learning.training import FAR, TrainingQueries
from zonal.predicates.conjunctions import IS_NULL, NOT_NULL, RANGE
from zonal.trials.boxes import NULL, Coded
from zonal.values.arrays import Int32Array, Int64Array


class Sides:
    """The sample's values and the boxes' limits: a row for each end of each column, and one for its nulls."""

    def __init__(self, coded: Coded, training: TrainingQueries) -> None:
        self.training = training
        rows, limits = [], []
        self.column: list[int] = []
        """The column of each row of `values` and `limits`."""
        for number, column in enumerate(training.columns):
            null, codes = training.null[:, number], 2 * coded.codes[:, column]
            missing = coded.codes[:, column] == NULL
            value = (null == RANGE) | (null == NOT_NULL)
            low = np.clip(2 * training.low[:, number].astype(np.float64), -1, FAR)
            high = np.clip(2 * training.high[:, number].astype(np.float64), -2, 2 * FAR - 1)
            rows += [np.where(missing, 2 * FAR, codes), np.where(missing, 2, -codes)]
            # A range excludes units with nothing but nulls: their bounds are beyond every limit.
            limits += [np.where(value, high, 4 * FAR - 1), np.where(value, -low, 4 * FAR - 1)]
            if (null == IS_NULL).any():
                rows.append(np.where(missing, 0, 1))
                limits.append(np.where(null == IS_NULL, 0, 1))
            self.column += [number] * (len(rows) - len(self.column))
        self.values: Int32Array = np.array(rows, np.int32).reshape(len(rows), len(coded))
        self.limits: Int32Array = np.array(limits, np.int64).reshape(len(rows), len(training.query)).astype(np.int32)

    def open_boxes(self, rows: npt.NDArray[np.int32], boxes: Int64Array) -> "OpenBoxes":
        """Keep the boxes that the bounds of these rows meet, without those of queries that need all rows anyway."""
        if not len(boxes) or not len(rows):
            return OpenBoxes(self, boxes[:0], np.zeros((len(self.values), 1), np.int32))
        values = [each[rows] for each in self.values]
        limits = self.limits[:, boxes]
        least = np.array([each.min() for each in values])[:, None]
        most = np.array([each.max() for each in values])[:, None]
        whole = (most <= limits).all(axis=0)
        met = (least <= limits).all(axis=0)
        if whole.any():
            filled = np.zeros(len(self.training.weight), np.bool_)
            filled[self.training.query[boxes[whole]]] = True
            met &= ~filled[self.training.query[boxes]]
        return OpenBoxes(self, boxes[met], most)


@dataclass(frozen=True, eq=False)
class _Condition:
    """The limits of some boxes at one end of a column, which not all rows satisfy."""

    column: int
    values: Int32Array
    """One per row of the sample."""
    boxes: npt.NDArray[np.intp]
    """The closest limits first."""
    limits: Int32Array


def _condition(sides: Sides, row: int, boxes: npt.NDArray[np.intp], limits: Int32Array) -> _Condition:
    order = boxes[np.argsort(limits[boxes], kind="stable")]
    return _Condition(sides.column[row], sides.values[row], order, limits[order])


class OpenBoxes:
    """Boxes of queries that need some, but not all, of a part's rows: its cuts are tried against them."""

    def __init__(self, sides: Sides, boxes: Int64Array, most: Int32Array) -> None:
        training = sides.training
        self.boxes = boxes
        query = training.query[boxes]
        self._starts = np.flatnonzero(np.diff(query, prepend=-1))
        self._weight = training.weight[query[self._starts]]
        limits = sides.limits[:, boxes]
        open_conditions = most > limits
        self._conditions = [
            _condition(sides, row, np.flatnonzero(open_conditions[row]), limits[row])
            for row in np.flatnonzero(open_conditions.any(axis=1)).tolist()
        ]
        weight = dict.fromkeys((condition.column for condition in self._conditions), 0.0)
        for condition in self._conditions:
            weight[condition.column] += float(training.box_weight[boxes[condition.boxes]].sum())
        self.columns = sorted(weight, key=lambda column: (-weight[column], column))
        """The columns in which a cut can save anything, the heaviest first."""

    def best(
        self, number: int, order: npt.NDArray[np.int32], positions: npt.NDArray[np.intp]
    ) -> tuple[float, float, int, int]:
        """Return gain, imbalance, column and position of the best cut of rows in this order."""
        rows = len(order)
        starts = np.append(0, positions)
        parts = np.array([np.minimum.reduceat(each.values[order], starts) for each in self._conditions])
        left = np.minimum.accumulate(parts, axis=1)[:, :-1]
        right = np.minimum.accumulate(parts[:, ::-1], axis=1)[:, ::-1][:, 1:]
        cost = positions * self._weight_met(left) + (rows - positions) * self._weight_met(right)
        saved = rows * self._weight.sum() - cost
        balance = np.abs(positions - rows / 2)
        best = np.lexsort((balance, -np.round(saved, 9)))[0]
        return float(saved[best]), float(balance[best]), number, int(positions[best])

    def _weight_met(self, bounds: Int32Array) -> npt.NDArray[np.float64]:
        """Return the weight of the queries that meet each of the bounds."""
        met = np.ones((len(self.boxes), bounds.shape[1]), np.bool_)
        for condition, bound, widest in zip(self._conditions, bounds, bounds.max(axis=1), strict=True):
            # Where the largest bound meets a limit, all do.
            count = int(np.searchsorted(condition.limits, widest))
            if count:
                met[condition.boxes[:count]] &= bound <= condition.limits[:count, None]
        if len(self._starts) < len(self.boxes):
            met = np.logical_or.reduceat(met, self._starts, axis=0)
        weight: npt.NDArray[np.float64] = self._weight @ met
        return weight
