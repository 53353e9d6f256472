"""Tell which queries bounds can't help, why, and how to change them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zonal.advising.decidable import REASON, float_columns
from zonal.advising.queries import BoundQueries
from zonal.errors import quoted
from zonal.predicates.bound import All, Anything, Bound, Nulls, Ranges, Some
from zonal.predicates.fold import fold
from zonal.skipping.files import points_of
from zonal.snapshot import UNKNOWN, Bounds, Files, Snapshot
from zonal.values.arrays import Float64Array

_MOST = 3
"""Hindrances that are listed per query."""
_REMEDIES = (
    ("parameter", "Log the values that {column} is compared with."),
    ("plan", "Log the query's text, too: Spark's plan leaves out what {column} is compared with."),
    ("has no bounds", "Filter another column, too: one of numbers, times or text."),
    ("wildcard", "Begin the pattern with text: LIKE 'abc%' is a range of {column}."),
    ("subquery", "Give the smallest and the largest value of {column} in the query, too."),
    ("column", "Compare {column} itself with a value or a range, too."),
)
"""Remedies by a word of the reason; the first that occurs counts."""


@dataclass(frozen=True)
class _Hindrance:
    reason: str
    remedy: str


_NO_FILTER = _Hindrance("it has no filter", "Filter a column that the table is ordered by, or could be.")
_Hindrances = tuple[_Hindrance, ...]


def is_hopeless(bound: Bound) -> bool:
    """Tell whether no layout and no statistics could help: there is no filter, or none that bounds can decide."""

    def leaf(node: Bound) -> bool:
        return isinstance(node, Anything)

    def join(node: All | Some, parts: Sequence[bool]) -> bool:
        return all(parts) if isinstance(node, All) else any(parts)

    return fold(bound, leaf, join)


def helpable(asked: BoundQueries) -> Float64Array:
    """Return the weights of the queries that some layout could help, and 0 for others."""
    hopeless = np.array([is_hopeless(bound) for bound in asked.bounds], np.bool_)
    return np.where(hopeless, 0.0, asked.weights)


def hindrance_of(bound: Bound, snapshot: Snapshot) -> tuple[str, str]:
    """Return why bounds can't help a query and what would; both are empty where a layout can help it.

    A conjunction is hindered where every part is, a disjunction where one is.
    """

    def leaf(node: Bound) -> _Hindrances:
        return _leaf(node, snapshot)

    def join(node: All | Some, parts: Sequence[_Hindrances]) -> _Hindrances:
        if isinstance(node, All) and not parts:
            return (_NO_FILTER,)
        helped = isinstance(node, All) and not all(parts)
        return () if helped else tuple(each for part in parts for each in part)

    hindrances: _Hindrances = fold(bound, leaf, join)
    listed = list(dict.fromkeys(hindrances))[:_MOST]
    remedies = dict.fromkeys(each.remedy for each in listed)
    return "; ".join(each.reason for each in listed), " ".join(remedies)


def _leaf(node: Bound, snapshot: Snapshot) -> _Hindrances:
    if isinstance(node, Anything):
        return (_hidden(node),)
    if not isinstance(node, Ranges | Nulls) or not len(snapshot.files):
        return ()
    name = node.column
    if not _is_told(node, snapshot):
        counts = "counts of nulls" if isinstance(node, Nulls) else "bounds"
        return (_Hindrance(f"no file has {counts} of {quoted(name)}", snapshot.traits.bounds_advice(name)),)
    if isinstance(node, Ranges) and node.nan and float_columns(snapshot, [name]):
        return (_Hindrance(f"{quoted(name)} has no upper limit: {REASON}", f"Give {quoted(name)} an upper limit."),)
    return ()


def _hidden(node: Anything) -> _Hindrance:
    names = ", ".join(quoted(name) for name in node.columns)
    remedy = next((text for word, text in _REMEDIES if word in node.reason), "")
    if not remedy:
        remedy = "Compare {column} itself: with a range instead of a function or an expression of it."
    reason = f"bounds of {names} can't decide it: {node.reason}" if names else f"bounds can't decide it: {node.reason}"
    return _Hindrance(reason, remedy.replace("{column}", names or "the column"))


def _is_told(node: Ranges | Nulls, snapshot: Snapshot) -> bool:
    """Tell whether any file's bounds, partition values or buckets can decide a leaf."""
    files = snapshot.files
    both = [bounds[node.column] for bounds in (files.bounds, files.partition_bounds) if node.column in bounds]
    if isinstance(node, Nulls):
        return any((bounds.nulls != UNKNOWN).any() for bounds in both)
    if any(_has_bounds(bounds, files) for bounds in both):
        return True
    return (
        any(buckets.column == node.column for buckets in files.buckets) and points_of(node, snapshot.schema) is not None
    )


def _has_bounds(bounds: Bounds, files: Files) -> bool:
    known = min(bounds.lower.null_count, bounds.upper.null_count) < len(files)
    return known or bool(np.any((bounds.nulls >= files.rows) & (bounds.nulls != UNKNOWN) & (files.rows != UNKNOWN)))
