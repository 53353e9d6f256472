"""Find columns for which Bloom filters would help: outside of the layout, and filtered by equality."""

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
"""Share of row groups that a filter keeps although they lack the value."""
_LEAST_GAIN, _LEAST_SHARE = 0.25, 0.05


def useful_blooms(
    ground: Ground, layout: Layout | None, prediction: Prediction, filtered: Sequence[Filtered]
) -> tuple[Bloom, ...]:
    """Return the columns whose filters would save their queries at least a quarter of what they read, heaviest first.

    Queries that read next to nothing with the layout alone need none. `prediction` is for the held-out queries with the
    layout. A value is assumed to be in as many row groups as it has rows on average: filters help for rare values.
    """
    groups = max(ground.rows / ground.row_group_rows, float(prediction.files), 1.0)
    # A tree names all filtered columns, also those that it hardly cuts: there, what its queries read decides.
    inside = set(layout.columns if layout is not None and layout.kind != TREE else ())
    blooms = [
        bloom
        for column in filtered
        if column.column not in inside
        and not column.partitions
        and not _is_floating(ground, column.column)
        and column.equality >= LEAST_WEIGHT
        and (column.distinct or 0) >= LEAST_DISTINCT
        and (bloom := _bloom(ground, column, prediction, groups)) is not None
    ]
    return tuple(sorted(blooms, key=lambda bloom: (-bloom.weight, bloom.column)))


def _is_floating(ground: Ground, column: str) -> bool:
    """Tell whether a column has floats: a filter hashes bits, which differ for 0.0 and -0.0, though they are equal."""
    schema = ground.snapshot.schema
    return bool(pa.types.is_floating(leaf_type(schema, find(schema, column))))


def _bloom(ground: Ground, column: Filtered, prediction: Prediction, groups: float) -> Bloom | None:
    numbers = []
    values = []
    for number, bound in enumerate(ground.measured.bounds):
        equal = [leaf for leaf in filters_of(bound) if leaf.column == column.column and is_equality(leaf)]
        if equal:
            numbers.append(number)
            values.append(min(len(getattr(leaf, "intervals", ())) for leaf in equal))
    if not numbers:
        return None
    weights = ground.measured.weights[numbers]
    before = prediction.row_group_shares[numbers]
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
    """Estimate the distinct values of the table from the sample; values that it has once stand for others."""
    seen = float(column.distinct or 1)
    if column.distinct_is_all:
        return seen
    codes = ground.sample.coded.codes[:, ground.sample.coded.columns.index(column.column)]
    once = float((np.bincount(codes[codes >= 0]) == 1).sum())
    # Charikar et al., "Towards estimation error guarantees for distinct values" (PODS 2000).
    scaled: float = (ground.rows / max(len(codes), 1)) ** 0.5
    return min(seen - once + once * scaled, float(max(ground.rows, 1)))
