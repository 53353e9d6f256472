"""Bloom filters next to a layout: for columns outside of it that queries ask for single values of."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from zonal.advising.advice import Bloom, Filtered
from zonal.advising.ground import Ground
from zonal.advising.queries import filters_of, is_equality
from zonal.errors import quoted
from zonal.layouts.layout import TREE, Layout
from zonal.trials.prediction import Prediction
from zonal.values.columns import find, leaf_type

LEAST_DISTINCT = 1000
LEAST_WEIGHT = 0.01
FALSE_POSITIVES = 0.01
"""Row groups that a filter keeps for nothing."""
_LEAST_GAIN, _LEAST_SHARE = 0.25, 0.05


def useful_blooms(
    ground: Ground, layout: Layout | None, found: Prediction, filtered: Sequence[Filtered]
) -> tuple[Bloom, ...]:
    """Return the columns whose filters would spare queries at least a quarter of what they read, heaviest first;
    queries that read next to nothing with the layout alone need none.

    `found` is what the held-out queries read with the layout. A value is taken to lie in as many row groups as it has
    rows on average: filters help for values that are rare.
    """
    groups = max(ground.rows / ground.row_group_rows, float(found.files), 1.0)
    # A tree names all filtered columns; what it doesn't cut, or hardly, is seen by what its queries read.
    inside = set(layout.columns if layout is not None and layout.kind != TREE else ())
    blooms = [
        bloom
        for column in filtered
        if column.column not in inside
        and not column.partitions
        and not _is_floating(ground, column.column)
        and column.equality >= LEAST_WEIGHT
        and (column.distinct or 0) >= LEAST_DISTINCT
        and (bloom := _bloom(ground, column, found, groups)) is not None
    ]
    return tuple(sorted(blooms, key=lambda bloom: (-bloom.weight, bloom.column)))


def _is_floating(ground: Ground, column: str) -> bool:
    """Tell columns of floats: a filter hashes bits, and 0.0 and -0.0, which are equal, have different ones."""
    schema = ground.snapshot.schema
    return bool(pa.types.is_floating(leaf_type(schema, find(schema, column))))


def _bloom(ground: Ground, column: Filtered, found: Prediction, groups: float) -> Bloom | None:
    asking = []
    values = []
    for number, bound in enumerate(ground.measured.bounds):
        equal = [leaf for leaf in filters_of(bound) if leaf.column == column.column and is_equality(leaf)]
        if equal:
            asking.append(number)
            values.append(min(len(getattr(leaf, "intervals", ())) for leaf in equal))
    if not asking:
        return None
    weights = ground.measured.weights[asking]
    before = found.row_group_shares[asking]
    distinct = _distinct_in_table(ground, column)
    lying = np.minimum(np.array(values) * (ground.rows / distinct) / groups, 1.0)
    after = np.minimum(before, before * FALSE_POSITIVES + lying)
    old, new = (float(weights @ each / max(float(weights.sum()), 1e-300)) for each in (before, after))
    if old < _LEAST_SHARE or new > (1 - _LEAST_GAIN) * old:
        return None
    text = (
        f"{column.equality:.0%} of the queries' weight asks for single values of {quoted(column.column)}, which has "
        f"about {distinct:,.0f} values that the layout doesn't part enough: with filters these queries read {new:.1%} "
        f"instead of {old:.1%}, in engines that ask Parquet's Bloom filters."
    )
    return Bloom(column.column, text, column.equality, old, new)


def _distinct_in_table(ground: Ground, column: Filtered) -> float:
    """Guess the distinct values of the table; those that the sample has once stand for more of their kind."""
    seen = float(column.distinct or 1)
    if column.distinct_is_all:
        return seen
    codes = ground.sample.coded.codes[:, ground.sample.coded.columns.index(column.column)]
    once = float((np.bincount(codes[codes >= 0]) == 1).sum())
    # Charikar et al., "Towards estimation error guarantees for distinct values" (PODS 2000).
    scaled: float = (ground.rows / max(len(codes), 1)) ** 0.5
    return min(seen - once + once * scaled, float(max(ground.rows, 1)))
