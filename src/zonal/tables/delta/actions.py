"""Build the `add` and `remove` actions of new and of removed files, with statistics as JSON.

Statistics are exact or rounded outward, never inward: decimals keep all digits, a truncated maximum of a string is
above all strings with its prefix, a maximum of a timestamp is rounded up to the millisecond ("Per-file Statistics").
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.plan.rewrite import ColumnMetrics, Written
from zonal.tables.delta.adds import LiveFile
from zonal.tables.delta.schema import VARIANT, Steps

JsonBound = str | int | float | Decimal

PREFIX = 32
"""Characters of a string that statistics keep, as other writers do."""
_LAST = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1)


# --- actions ---------------------------------------------------------------------------------------------------------


def add_action(
    file: Written,
    *,
    root: str,
    values: Mapping[str, str | None],
    stats: str,
    tags: Mapping[str, str],
    time: int,
    data_change: bool,
) -> dict[str, Any]:
    """Return the body of an `add` action; its path is relative to the table and percent-encoded."""
    if not file.path.startswith(f"{root}/"):
        raise TableError(f"The new file {quoted(file.path, limit=300)} lies outside of {quoted(root, limit=300)}.")
    return {
        "path": quote(file.path[len(root) + 1 :], safe="/="),
        "partitionValues": dict(values),
        "size": file.size,
        "modificationTime": time,
        "dataChange": data_change,
        "stats": stats,
        "tags": dict(tags),
    }


def remove_action(file: LiveFile, *, time: int) -> dict[str, Any]:
    """Return the body of a `remove` action with all fields of the file's `add`."""
    body = {
        "path": file.logged,
        "deletionTimestamp": time,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": dict(file.values),
        "size": file.size,
        "tags": dict(file.tags) or None,
        "deletionVector": file.vector,
        "baseRowId": file.first_row_id,
        "defaultRowCommitVersion": file.row_version,
    }
    return {name: value for name, value in body.items() if value is not None}


# --- statistics ------------------------------------------------------------------------------------------------------


def stats_json(file: Written, schema: pa.Schema, chosen: Collection[Steps], *, tight: bool = True) -> str:
    """Return a new file's statistics: its rows, and the nulls and sound bounds of each chosen leaf.

    They are of all rows in the file, so with a deletion vector they aren't tight.
    """
    places = [place for field in schema for place in _places(field.type, (field.name,))]
    if len(places) != len(file.columns):
        raise TableError(
            f"The new file {quoted(file.path, limit=300)} has {len(file.columns)} columns instead of {len(places)}."
        )
    lower: dict[str, Any] = {}
    upper: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for steps, metrics in zip(places, file.columns, strict=True):
        if steps is not None and ".".join(steps) != metrics.path:
            raise TableError(
                f"The new file {quoted(file.path, limit=300)} has a column {quoted(metrics.path)} "
                f"instead of {quoted('.'.join(steps))}."
            )
        if steps in chosen and steps is not None:
            _put(nulls, steps, metrics.nulls)
            _put(lower, steps, lower_bound(metrics))
            _put(upper, steps, upper_bound(metrics))
    return _json(
        {"numRecords": file.rows, "minValues": lower, "maxValues": upper, "nullCount": nulls, "tightBounds": tight}
    )


def has_bounds(stats: str | None, leaves: Iterable[Steps]) -> bool:
    """Tell whether a file's statistics have both bounds of each of these leaves, or say that all values are null."""
    try:
        read = json.loads(stats or "{}")
        rows = read["numRecords"]
        return all(
            _get(read["nullCount"], steps) == rows
            or None not in (_get(read["minValues"], steps), _get(read["maxValues"], steps))
            for steps in leaves
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def _get(tree: Any, steps: Steps) -> object:  # noqa: ANN401 - whatever JSON has
    for step in steps:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _places(kind: pa.DataType, steps: Steps) -> Iterator[Steps | None]:
    """Yield the steps to each Parquet leaf in order; None in lists, maps and variants, which have no statistics."""
    if pa.types.is_struct(kind) and kind != VARIANT:
        for child in kind:
            yield from _places(child.type, (*steps, child.name))
    elif kind.num_fields:
        for position in range(kind.num_fields):
            yield from (None for _ in _places(kind.field(position).type, steps))
    else:
        yield steps


def _put(tree: dict[str, Any], steps: Steps, value: JsonBound | None) -> None:
    if value is not None:
        for step in steps[:-1]:
            tree = tree.setdefault(step, {})
        tree[steps[-1]] = value


def lower_bound(metrics: ColumnMetrics) -> JsonBound | None:
    """Return a value at or below all others; None where the format keeps none."""
    return _bound(metrics.lower, up=False)


def upper_bound(metrics: ColumnMetrics) -> JsonBound | None:
    """Return a value at or above all others; None where the format keeps none, or with NaN, which is the greatest."""
    return None if metrics.nans else _bound(metrics.upper, up=True)


def _bound(bound: pa.Scalar | None, *, up: bool) -> JsonBound | None:
    """Convert a bound to its form in JSON; None for types whose bounds the format doesn't keep, such as booleans."""
    if bound is None or not bound.is_valid:
        return None
    kind = bound.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _cut_above(bound.as_py()) if up else str(bound.as_py())[:PREFIX]
    if pa.types.is_timestamp(kind):
        micros = bound.cast(pa.timestamp("us", kind.tz)).value
        moment = _after_epoch(milliseconds=-(-micros // 1000) if up else micros // 1000)
        return None if moment is None else moment.isoformat(timespec="milliseconds") + ("Z" if kind.tz else "")
    if pa.types.is_date(kind):
        moment = _after_epoch(days=bound.cast(pa.date32()).value)
        return None if moment is None else moment.date().isoformat()
    if pa.types.is_floating(kind):
        return float(bound.as_py()) if math.isfinite(bound.as_py()) else None
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        number: int | Decimal = bound.as_py()
        return number
    return None


def _cut_above(text: str) -> str:
    """Truncate a long text and append the last code point, so that it is above all texts with the same prefix.

    The first character that is cut off must be below the last code point.
    """
    end = PREFIX
    while end < len(text) and text[end] == _LAST:
        end += 1
    return text if end >= len(text) else text[:end] + _LAST


def _after_epoch(**since: int) -> datetime | None:
    """Return a moment; None outside of the years 1 to 9999, which every reader supports."""
    try:
        return _EPOCH + timedelta(**since)
    except OverflowError:
        return None


def _json(value: Any) -> str:  # noqa: ANN401 - whatever JSON has
    """Serialize to JSON, with decimals as numbers with all their digits, which `json.dumps` can't do."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(part)}" for name, part in value.items()) + "}"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
