"""Find the columns of a Delta table whose statistics readers use, by the table properties that decide it.

Spark, delta-rs, polars and pyarrow build the schema of statistics from these properties, and ignore statistics of all
other columns, even where files have them: Delta's `StatisticsCollection.getIndexedColumns`, and `StatsColumnFilter`
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
from zonal.tables.delta.schema import Steps

STATS_COLUMNS = "delta.dataSkippingStatsColumns"
INDEXED_COUNT = "delta.dataSkippingNumIndexedCols"
INDEXED_COLUMNS = 32
"""Leaf columns with statistics, where the table doesn't say otherwise."""
MOST_MORE = 32
"""How many columns may get statistics in every new file only because they come before a key."""

_ORDERED = frozenset(("byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz"))
_SIZED = re.compile(r"string|(var)?char\(\d+\)|decimal(\(.*\))?")


@dataclass(frozen=True)
class LeafPlace:
    """A leaf column as the properties count it: every field that isn't a struct, lists, maps and variants included."""

    names: Steps
    """Logical names, which the properties use ("Column Mapping")."""
    steps: Steps
    """Physical names, which statistics use."""
    bounded: bool
    """Whether its type has bounds; Spark refuses a property that names a top-level column of another type."""

    @property
    def nameable(self) -> bool:
        """Whether `delta.dataSkippingStatsColumns` may name it; below a struct, every type may be named."""
        return self.bounded or len(self.names) > 1


def indexed(metadata: Metadata, keys: Collection[str] = ()) -> frozenset[Steps]:
    """Return the physical steps of the leaves whose statistics readers use, and of `keys`, given as dotted names."""
    places = _places(metadata)
    own = _steps_of(metadata, keys)
    return frozenset(place.steps for place in places if place.steps in own) | frozenset(_used(metadata, places))


def is_indexed(steps: Steps, chosen: Collection[Steps]) -> bool:
    """Tell whether a leaf is among the chosen ones, or a part of one, as the two leaves of a variant are."""
    return any(steps[:depth] in chosen for depth in range(1, len(steps) + 1))


def covering(metadata: Metadata, keys: Collection[str]) -> tuple[Property, ...]:
    """Return the change of a property that makes readers use the statistics of `keys`, too; often none is needed.

    Readers and writers keep using all columns that they used before. To a list of columns, the keys are appended. A
    number of columns is raised, which leaves no column out and stays right when the schema changes; only where that
    would make every writer collect statistics of many more columns is it replaced by a list, and only if that list may
    name all of them.
    """
    configuration, places = metadata.configuration, _places(metadata)
    if not (missing := _left_out(metadata, places, keys)):
        return ()
    if (listed := configuration.get(STATS_COLUMNS)) is not None:
        if column_list(listed) is None:  # an appended name wouldn't be read either
            return ()
        more = ",".join(map(_written, missing))
        return (Property(STATS_COLUMNS, f"{listed},{more}" if listed.strip() else more, listed),)
    limit, needed = _limit(configuration), places.index(missing[-1]) + 1
    if needed - limit > MOST_MORE and all(place.nameable for place in places[:limit]):
        return (Property(STATS_COLUMNS, ",".join(map(_written, [*places[:limit], *missing]))),)
    return (Property(INDEXED_COUNT, str(needed), configuration.get(INDEXED_COUNT)),)


def unused(metadata: Metadata, keys: Sequence[str]) -> tuple[str, ...]:
    """Return one sentence per column on why readers can't skip by it, although files may have its statistics."""
    name = STATS_COLUMNS if STATS_COLUMNS in metadata.configuration else INDEXED_COUNT
    why = f"the table property {name} is {quoted(metadata.configuration.get(name, str(INDEXED_COLUMNS)))}"
    columns = [".".join(place.names) for place in _left_out(metadata, _places(metadata), keys)]
    return tuple(f"Readers don't use statistics of {quoted(column)}: {why} and leaves it out." for column in columns)


def column_list(text: str) -> list[Steps] | None:
    """Parse a list of names in SQL: commas between, dots inside, odd ones in backticks; None where it is no list.

    >>> column_list("a, b.`c d`, `x``,y`")
    [('a',), ('b', 'c d'), ('x`,y',)]
    """
    if not text.strip():
        return []
    columns, parts, at = list[Steps](), list[str](), 0
    while match := _PART.match(text, at):
        ticked, plain, separator = match.groups()
        parts.append(plain if ticked is None else ticked.replace("``", "`"))
        if separator != ".":
            columns.append(tuple(parts))
            parts = []
        if not separator:
            return columns
        at = match.end()
    return None


_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`.,]+))\s*([.,]|\Z)")


def _left_out(metadata: Metadata, places: Sequence[LeafPlace], keys: Collection[str]) -> list[LeafPlace]:
    """Return the keys whose statistics could be used, but aren't."""
    used, own = set(_used(metadata, places)), _steps_of(metadata, keys)
    return [place for place in places if place.bounded and place.steps in own and place.steps not in used]


def _used(metadata: Metadata, places: Sequence[LeafPlace]) -> Iterator[Steps]:
    listed = metadata.configuration.get(STATS_COLUMNS)
    names = None if listed is None else column_list(listed)
    if names is None:
        limit = _limit(metadata.configuration)
        yield from (place.steps for place in places[:limit])
        return
    wanted = {tuple(part.lower() for part in name) for name in names}
    for place in places:
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


def _written(place: LeafPlace) -> str:
    return ".".join(
        name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name.replace('`', '``')}`" for name in place.names
    )


def _places(metadata: Metadata) -> list[LeafPlace]:
    """Return the leaves in order, as Spark counts them: without partition columns, with columns of type void."""
    mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    fields = [member for member in json.loads(metadata.schema)["fields"] if member["name"] not in metadata.partitioning]
    return list(_below(fields, mapped, (), ()))


def _below(fields: Sequence[Mapping[str, Any]], mapped: bool, names: Steps, steps: Steps) -> Iterator[LeafPlace]:
    for member in fields:
        kind, metadata = member["type"], member.get("metadata") or {}
        name = member["name"]
        physical = metadata.get("delta.columnMapping.physicalName", name) if mapped else name
        path, place = (*names, name), (*steps, physical)
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _below(kind["fields"], mapped, path, place)
        else:
            ordered = isinstance(kind, str) and (kind in _ORDERED or _SIZED.fullmatch(kind) is not None)
            yield LeafPlace(path, place, ordered and "__COLLATIONS" not in metadata)
