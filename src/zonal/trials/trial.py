"""A trial: the sample of rows in code space, and the queries as boxes, on which candidate layouts are tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.predicates.bound import Bound
from zonal.trials.boxes import Boxes, Coded, Units, boxes_of, code, literal_columns, meets
from zonal.values.arrays import BoolArray, Float64Array
from zonal.values.columns import find, leaf_type, leaves
from zonal.values.sample import Sample
from zonal.values.words import family_of

MAX_COLUMNS = 32
_FLOOR_ROWS = 16_384
"""Sampled rows from which the share of rows that a query matches is estimated."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A sample and queries, prepared for any number of candidates."""

    rows: Sample
    coded: Coded
    boxes: Boxes
    weights: Float64Array
    """One weight per query; their sum is 1."""
    partition_rows: Mapping[int, int]
    """The table's rows in each partition."""
    row_bytes: float
    """Bytes that a row takes in a file."""
    in_partition: BoolArray | None = None
    """Whether partition values let each query need each partition, in the shape (partitions, queries)."""

    @property
    def total_rows(self) -> int:
        """Count the rows of the table."""
        return sum(self.partition_rows.values())

    def files_of(self, layout: Layout) -> dict[int, int]:
        """Return how many files of the layout's target size each partition has."""
        size = self.row_bytes / layout.file_bytes
        return {part: max(1, round(rows * size)) for part, rows in self.partition_rows.items()}

    @cached_property
    def ranks(self) -> Ranks:
        """The ranks of all columns, which candidates share."""
        return Ranks.fit(self.rows.data, self.coded.columns)

    @cached_property
    def floor(self) -> Float64Array:
        """The share of the rows that each query matches: under no layout can it read less."""
        count = min(_FLOOR_ROWS, len(self.coded))
        if not count:
            return np.zeros(self.boxes.queries)
        chosen = np.arange(count) * len(self.coded) // count
        codes = self.coded.codes[chosen].astype(np.float32)
        null = codes < 0
        low, high = np.where(null, np.float32(np.inf), codes), np.where(null, np.float32(-np.inf), codes)
        matches = meets(Units(low, high, null, null, np.ones(count, np.int64)), self.boxes)
        weight = self.row_weights[chosen]
        share: Float64Array = weight @ matches / weight.sum()
        return share

    @cached_property
    def row_weights(self) -> Float64Array:
        """How many of the table's rows each sampled row stands for."""
        numbers, place, sampled = np.unique(self.rows.partition, return_inverse=True, return_counts=True)
        rows = np.array([self.partition_rows.get(int(number), 0) for number in numbers], np.float64)
        weights: Float64Array = (rows / sampled)[place]
        return weights


def trial_of(
    rows: Sample,
    bounds: Sequence[Bound],
    weights: Sequence[float],
    *,
    partition_rows: Mapping[int, int],
    row_bytes: float,
    in_partition: BoolArray | None = None,
) -> Trial:
    """Prepare a sample of the table for candidates.

    It has the filtered columns that rows can be ordered by, at most 32 of them: those of the most weight.
    """
    weight = np.asarray(weights, np.float64)
    coded = code(rows.data, filtered_columns(bounds, weight, rows.data.schema)[:MAX_COLUMNS])
    total = weight.sum()
    return Trial(
        rows,
        coded,
        boxes_of(bounds, coded),
        weight / total if total > 0 else weight,
        dict(partition_rows),
        row_bytes,
        in_partition,
    )


def filtered_columns(bounds: Sequence[Bound], weights: Sequence[float] | Float64Array, schema: pa.Schema) -> list[str]:
    """Name the columns of the schema that queries filter and rows can be ordered by, those of the most weight first."""
    known = set(leaves(schema)) | set(schema.names)
    named = [name for name in literal_columns(bounds, [float(weight) for weight in weights]) if name in known]
    return [name for name in named if family_of(leaf_type(schema, find(schema, name))) not in (None, "null")]
