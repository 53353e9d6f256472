"""Tell which share of a row group's pages queries read, under one order of its rows or another."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.layouts.keys import exact_words
from zonal.layouts.sort import run_starts, stable_order
from zonal.predicates.bound import Bound
from zonal.skipping.index import Index, columns_of
from zonal.snapshot import UNKNOWN, Bounds
from zonal.values.arrays import Int64Array, UInt64Array
from zonal.values.columns import find, leaf
from zonal.values.words import decoded_array, family_of
from zonal.worker.write.writer import RowGroups

PAGE_ROWS = 20_000
"""Rows of a page, as Arrow writes it."""
MOST_QUERIES = 100
"""WeightedPredicates that are asked, those of most weight."""

PageShare = Callable[[RowGroups], float]
"""Returns the share of pages that are read of row groups that are read at all."""
WeightedPredicates = Sequence[tuple[Bound, float]]
"""Predicates, and their weights."""


def page_share(queries: WeightedPredicates, names: Mapping[str, str], keys: Sequence[str]) -> PageShare:
    """Return what queries read, or look-ups of values of the `keys` where there are none.

    `names` has the name of each of the table's columns in the rows.
    """
    if not queries:
        return partial(_by_lookups, keys)
    heaviest = sorted(queries, key=lambda query: -query[1])[:MOST_QUERIES]
    return partial(_by_queries, heaviest, names, keys)


def _by_queries(queries: WeightedPredicates, names: Mapping[str, str], keys: Sequence[str], groups: RowGroups) -> float:
    columns = {name for predicate, _ in queries for name in columns_of(predicate) if name in names}
    read = asked = 0.0
    for group in groups:
        starts = np.arange(0, group.num_rows, PAGE_ROWS)
        bounds = {name: _bounds(leaf(group, find(group.schema, names[name])), starts) for name in columns}
        index = Index(np.diff(starts, append=group.num_rows), bounds)
        for predicate, weight in queries:
            kept = float(index.might_match(predicate).mean())
            read += weight * kept
            asked += weight * (kept > 0)  # else the row group's own bounds skip it
    return read / asked if asked else _by_lookups(keys, groups)


def _bounds(column: pa.ChunkedArray, starts: Int64Array) -> Bounds:
    """Return the bounds of the pages that begin at these rows; none for types without an order."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    pages = [column.slice(start, PAGE_ROWS) for start in starts.tolist()]
    unknown = np.full(len(pages), UNKNOWN)
    if family_of(kind) in (None, "null") or isinstance(kind, pa.BaseExtensionType):
        return Bounds(pa.nulls(len(pages), kind), pa.nulls(len(pages), kind), unknown, unknown)
    both = [pc.min_max(pa.chunked_array([decoded_array(chunk) for chunk in page.chunks], kind)) for page in pages]
    texts = family_of(kind) == "bytes"
    lower, upper = (pa.array([each[end].as_py() for each in both], kind) for end in ("min", "max"))
    if texts:
        lower, upper = lower.cast(pa.large_binary()), upper.cast(pa.large_binary())
    nans = unknown if pa.types.is_floating(kind) else np.zeros(len(pages), np.int64)
    return Bounds(lower, upper, np.array([page.null_count for page in pages]), nans)


def _by_lookups(keys: Sequence[str], groups: RowGroups) -> float:
    """Return what a look-up of one value reads, on average over values and columns."""
    shares = []
    for group in groups:
        starts = np.arange(0, group.num_rows, PAGE_ROWS)
        for name in keys:
            ranks = _dense_ranks(exact_words(group, [name]))
            low, high = np.minimum.reduceat(ranks, starts), np.maximum.reduceat(ranks, starts)
            asked = np.sort(ranks)
            met = np.searchsorted(asked, high, "right") - np.searchsorted(asked, low, "left")
            shares.append(float(met.mean()) / len(asked))
    return sum(shares) / len(shares)


def _dense_ranks(words: Sequence[UInt64Array]) -> Int64Array:
    """Number values in their order, equal ones alike."""
    order = stable_order(words)
    new = np.zeros(len(order), np.int64)
    new[run_starts([word[order] for word in words])] = 1
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new)
    return ranks
