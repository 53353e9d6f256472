"""Read an older version of a table under today's column names; columns are identified by field id."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from zonal.errors import ColumnError
from zonal.snapshot import Bounds, LazyBounds, Snapshot
from zonal.values.columns import find, leaf_type
from zonal.values.words import family_of


def named_as(older: Snapshot, current: Snapshot) -> Snapshot:
    """Return an older version of the same table with the names and types that the columns have in `current`.

    A predicate that is bound to the current schema can be evaluated on it. Columns are matched by field id, or by path
    in the files where the table has no ids; one that the older version lacks, or where another column had the name,
    has no bounds, and skips nothing. Partition columns of Delta tables, which no file has, are matched by name.
    """
    names = _older_names(older, current)
    files = older.files
    buckets = {name: each for each in files.buckets for name, old in names.items() if old == each.column}
    return replace(
        older,
        schema=current.schema,
        physical=current.physical,
        files=replace(
            files,
            bounds=_renamed(files.bounds, names, older.schema, current.schema),
            partition_bounds=_renamed(files.partition_bounds, names, older.schema, current.schema),
            buckets=tuple(replace(each, column=name) for name, each in buckets.items()),
        ),
    )


def _older_names(older: Snapshot, current: Snapshot) -> dict[str, str]:
    """Return the older names of columns by today's."""
    by_id = {column.field_id: name for name, column in older.physical.items() if column.field_id is not None}
    by_path = {column.path: name for name, column in older.physical.items() if column.field_id is None}
    names = {}
    for name, wanted in current.physical.items():
        old = by_path.get(wanted.path) if wanted.field_id is None else by_id.get(wanted.field_id)
        if old is not None:
            names[name] = old
    known = {*older.files.bounds, *older.files.partition_bounds}
    return names | {name: name for name in known if name not in older.physical and name not in current.physical}


def _renamed(
    bounds: Mapping[str, Bounds], names: Mapping[str, str], older: pa.Schema, current: pa.Schema
) -> Mapping[str, Bounds]:
    decoders: dict[str, Callable[[], Bounds]] = {
        name: partial(_decoded, bounds, old, _type_of(older, old), _type_of(current, name))
        for name, old in names.items()
        if old in bounds
    }

    def together(wanted: Sequence[str]) -> Mapping[str, Bounds]:
        if isinstance(bounds, LazyBounds):
            bounds.load(names[name] for name in wanted)
        return {name: decoders[name]() for name in wanted}

    return LazyBounds(decoders, together)


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    try:
        return leaf_type(schema, find(schema, name))
    except ColumnError:
        return None


def _decoded(bounds: Mapping[str, Bounds], name: str, older: pa.DataType | None, kind: pa.DataType | None) -> Bounds:
    """Return bounds in today's type; they are unknown where the older type orders values otherwise, or doesn't fit.

    A table that was overwritten may have texts where there were numbers, and '100' is less than '5'.
    """
    found = bounds[name]
    if older == kind or kind is None:
        return found
    if older is not None and _keeps_order(older, kind):
        try:
            return replace(found, lower=found.lower.cast(kind), upper=found.upper.cast(kind))
        except pa.ArrowException:
            pass  # a value that it can't hold
    nothing = pa.nulls(len(found.lower), kind)
    return replace(found, lower=nothing, upper=nothing)


def _keeps_order(older: pa.DataType, kind: pa.DataType) -> bool:
    """Tell whether a checked cast changes neither values nor their order: the promotions of table formats."""
    types = pa.types
    if types.is_integer(older):
        exact = types.is_floating(kind) and 2 * older.bit_width <= kind.bit_width
        return bool(exact or types.is_integer(kind) or types.is_decimal(kind))
    if types.is_floating(older):
        return bool(types.is_floating(kind) and older.bit_width <= kind.bit_width)
    if types.is_timestamp(kind):
        same = types.is_timestamp(older) and (older.tz is None) == (kind.tz is None)
        return bool(same or (types.is_date(older) and kind.tz is None))
    alike: tuple[Callable[[pa.DataType], bool], ...] = (types.is_decimal, types.is_date, _is_text)
    return any(test(older) and test(kind) for test in alike)


def _is_text(kind: pa.DataType) -> bool:
    return family_of(kind) == "bytes" and not pa.types.is_fixed_size_binary(kind)
