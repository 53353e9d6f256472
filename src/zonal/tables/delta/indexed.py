"""Which columns of a Delta table have statistics that readers use, and the table properties that say so.

Spark, delta-rs, polars and pyarrow build the schema of statistics from these properties, and pass over statistics of
all other columns, even where files have them: Delta's `StatisticsCollection.getIndexedColumns`, and `StatsColumnFilter`
of delta-kernel-rs.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zonal.errors import quoted
from zonal.plan.rewrite import Property
from zonal.tables.delta.log import Metadata
from zonal.tables.delta.scan import Columns

Steps = tuple[str, ...]

STATS_COLUMNS = "delta.dataSkippingStatsColumns"
INDEXED_COUNT = "delta.dataSkippingNumIndexedCols"
INDEXED_COLUMNS = 32
"""Leaf columns with statistics, where the table doesn't say otherwise."""
MOST_MORE = 32
"""Columns that may get statistics in every new file only because they stand before a key."""

_ORDERED = frozenset(("byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz"))
_SIZED = re.compile(r"string|(var)?char\(\d+\)|decimal(\(.*\))?")


@dataclass(frozen=True)
class Place:
    """A leaf column as the properties count it: whatever isn't a struct is one, also a list, a map or a variant."""

    names: Steps
    """Logical names from the root to the leaf; the properties use them ("Column Mapping")."""
    steps: Steps
    """The same physically; statistics use them."""
    bounded: bool
    """Whether it has bounds at all; of other types, Spark refuses to have a top-level column named."""

    @property
    def nameable(self) -> bool:
        """Whether `delta.dataSkippingStatsColumns` may name it; below a struct, every type may be named."""
        return self.bounded or len(self.names) > 1


def indexed(metadata: Metadata, keys: Collection[str] = ()) -> frozenset[Steps]:
    """Return the physical steps of the leaves whose statistics readers use, and of `keys`, by dotted logical names."""
    found = _places(metadata)
    own = _steps_of(metadata, keys)
    return frozenset(place.steps for place in found if place.steps in own) | frozenset(_used(metadata, found))


def is_indexed(steps: Steps, chosen: Collection[Steps]) -> bool:
    """Tell whether a leaf is among the chosen ones, or a part of one of them, as the two of a variant are."""
    return any(steps[:depth] in chosen for depth in range(1, len(steps) + 1))


def covering(metadata: Metadata, keys: Collection[str]) -> tuple[Property, ...]:
    """Return the change of a property by which readers use the statistics of `keys`, too; often there is none to make.

    All columns that readers and writers took into account before stay so. A list of columns gets the keys behind it. A
    number of columns is raised, which can't shut any out and never needs to be kept up with the schema; only where
    it would make every writer collect statistics of many more columns is it replaced by a list, and only if that list
    may name all of them.
    """
    configuration, found = metadata.configuration, _places(metadata)
    if not (missing := _left_out(metadata, found, keys)):
        return ()
    if (listed := configuration.get(STATS_COLUMNS)) is not None:
        if column_list(listed) is None:  # a name behind it wouldn't be read either
            return ()
        more = ",".join(map(_written, missing))
        return (Property(STATS_COLUMNS, f"{listed},{more}" if listed.strip() else more, listed),)
    limit, needed = _limit(configuration), found.index(missing[-1]) + 1
    if needed - limit > MOST_MORE and all(place.nameable for place in found[:limit]):
        return (Property(STATS_COLUMNS, ",".join(map(_written, [*found[:limit], *missing]))),)
    return (Property(INDEXED_COUNT, str(needed), configuration.get(INDEXED_COUNT)),)


def unused(metadata: Metadata, keys: Sequence[str]) -> tuple[str, ...]:
    """Say in a sentence each why readers can't skip by these columns, although files may have their statistics."""
    name = STATS_COLUMNS if STATS_COLUMNS in metadata.configuration else INDEXED_COUNT
    why = f"the table property {name} is {quoted(metadata.configuration.get(name, str(INDEXED_COLUMNS)))}"
    columns = [".".join(place.names) for place in _left_out(metadata, _places(metadata), keys)]
    return tuple(f"Readers don't use statistics of {quoted(column)}: {why} and leaves it out." for column in columns)


def column_list(text: str) -> list[Steps] | None:
    """Read names as SQL writes them: commas between, dots inside, backticks round odd ones; None where it is no list.

    >>> column_list("a, b.`c d`, `x``,y`")
    [('a',), ('b', 'c d'), ('x`,y',)]
    """
    if not text.strip():
        return []
    found, parts, at = list[Steps](), list[str](), 0
    while match := _PART.match(text, at):
        ticked, plain, behind = match.groups()
        parts.append(plain if ticked is None else ticked.replace("``", "`"))
        if behind != ".":
            found.append(tuple(parts))
            parts = []
        if not behind:
            return found
        at = match.end()
    return None


_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`.,]+))\s*([.,]|\Z)")


def _left_out(metadata: Metadata, found: Sequence[Place], keys: Collection[str]) -> list[Place]:
    """Return the keys whose statistics could be used, and aren't."""
    used, own = set(_used(metadata, found)), _steps_of(metadata, keys)
    return [place for place in found if place.bounded and place.steps in own and place.steps not in used]


def _used(metadata: Metadata, found: Sequence[Place]) -> Iterator[Steps]:
    listed = metadata.configuration.get(STATS_COLUMNS)
    names = None if listed is None else column_list(listed)
    if names is None:
        limit = _limit(metadata.configuration)
        yield from (place.steps for place in found[:limit])
        return
    wanted = {tuple(part.lower() for part in name) for name in names}
    for place in found:
        if is_indexed(tuple(part.lower() for part in place.names), wanted):
            yield place.steps


def _limit(configuration: Mapping[str, str]) -> int:
    """Return how many leaves have statistics; a negative number means all."""
    try:
        limit = int(configuration.get(INDEXED_COUNT, INDEXED_COLUMNS))
    except ValueError:
        limit = INDEXED_COLUMNS
    return limit if limit >= 0 else _ALL


_ALL = 2**31 - 1


def _steps_of(metadata: Metadata, keys: Collection[str]) -> set[Steps]:
    return {leaf.steps for leaf in Columns.of(metadata).leaves if leaf.name in keys} if keys else set()


def _written(place: Place) -> str:
    return ".".join(
        name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name.replace('`', '``')}`" for name in place.names
    )


def _places(metadata: Metadata) -> list[Place]:
    """Return the leaves in order, as Spark counts them: without partition columns, with those of type void."""
    mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    fields = [member for member in json.loads(metadata.schema)["fields"] if member["name"] not in metadata.partitioning]
    return list(_below(fields, mapped, (), ()))


def _below(fields: Sequence[Mapping[str, Any]], mapped: bool, names: Steps, steps: Steps) -> Iterator[Place]:
    for member in fields:
        kind, metadata = member["type"], member.get("metadata") or {}
        name = member["name"]
        physical = metadata.get("delta.columnMapping.physicalName", name) if mapped else name
        path, place = (*names, name), (*steps, physical)
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _below(kind["fields"], mapped, path, place)
        else:
            ordered = isinstance(kind, str) and (kind in _ORDERED or _SIZED.fullmatch(kind) is not None)
            yield Place(path, place, ordered and "__COLLATIONS" not in metadata)
