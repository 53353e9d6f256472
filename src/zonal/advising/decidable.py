"""What files can decide: a range without an upper limit keeps every file that might hold NaN, the largest float."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from zonal.columns import find, leaf_type
from zonal.files import Snapshot
from zonal.predicates.bound import All, Anything, Bound, Ranges, Some
from zonal.words import family_of

REASON = "NaN is above every limit, and the files don't tell whether they hold it"


def float_columns(snapshot: Snapshot, names: Sequence[str]) -> set[str]:
    """Return the columns that may hold NaN without the files telling so: floats, but in Iceberg, which counts NaN."""
    if snapshot.format == "iceberg":
        return set()
    schema = snapshot.schema
    return {name for name in names if family_of(leaf_type(schema, find(schema, name))) == "float"}


def decidable(bound: Bound, floats: Collection[str]) -> Bound:
    """Replace the ranges that no file can exclude by `Anything`; on a list, as predicates may be thousands deep."""
    done: dict[int, Bound] = {}
    waiting = [bound]
    while waiting:
        node = waiting[-1]
        if isinstance(node, All | Some):
            if missing := [part for part in node.parts if id(part) not in done]:
                waiting.extend(missing)
                continue
            done[id(node)] = replace(node, parts=tuple(done[id(part)] for part in node.parts))
        elif isinstance(node, Ranges) and node.nan and node.column in floats:
            done[id(node)] = Anything(REASON, (node.column,))
        else:
            done[id(node)] = node
        waiting.pop()
    return done[id(bound)]
