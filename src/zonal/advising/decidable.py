"""Mark ranges that no file's bounds can exclude: without an upper limit, they match NaN, the largest float."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from zonal.predicates.bound import All, Anything, Bound, Ranges, Some
from zonal.predicates.fold import fold
from zonal.snapshot import Snapshot
from zonal.values.columns import find, leaf_type
from zonal.values.words import family_of

REASON = "NaN is above every limit, and the files don't tell whether they hold it"


def float_columns(snapshot: Snapshot, names: Sequence[str]) -> set[str]:
    """Return the columns whose files don't say whether they hold NaN: floats, unless the format counts NaN."""
    if snapshot.traits.counts_nan:
        return set()
    schema = snapshot.schema
    return {name for name in names if family_of(leaf_type(schema, find(schema, name))) == "float"}


def decidable(bound: Bound, floats: Collection[str]) -> Bound:
    """Replace the ranges that no file can exclude by `Anything`."""

    def leaf(node: Bound) -> Bound:
        if isinstance(node, Ranges) and node.nan and node.column in floats:
            return Anything(REASON, (node.column,))
        return node

    def join(node: All | Some, parts: list[Bound]) -> Bound:
        return replace(node, parts=tuple(parts))

    return fold(bound, leaf, join)
