"""What zonal tells of a table, compared with what an official engine sees in it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest

import pyarrow as pa

from interop.engines import Ends, Seen
from zonal.snapshot import UNKNOWN, Bounds, Snapshot
from zonal.verbs.explain import explain, prune


@dataclass(frozen=True)
class Kept:
    """The files that zonal keeps for each condition, and those of them that it must keep."""

    wrongly_skipped: dict[str, list[str]]
    kept: int
    matching: int
    total: int


def kept_files(table, seen: Seen, *, dialect: str = "spark") -> Kept:
    """Prune by every condition, and note where a file with a matching row is not kept."""
    kept = {condition: set(prune(table, where=condition, dialect=dialect)) for condition in seen.matching}
    lost = {condition: sorted(set(files) - kept[condition]) for condition, files in seen.matching.items()}
    return Kept(
        wrongly_skipped={condition: files for condition, files in lost.items() if files},
        kept=sum(len(files) for files in kept.values()),
        matching=sum(len(files) for files in seen.matching.values()),
        total=len(kept) * len(seen.files),
    )


def row_groups_lost(table, seen: Seen, *, dialect: str = "spark") -> dict[str, list[str]]:
    """Return, by condition, the files with a matching row of which no row group is left, or which have no footer."""
    lost = {}
    for condition, files in seen.matching.items():
        explained = explain(table, where=condition, dialect=dialect, footers=True, bloom=True)
        read = {file.path for file in explained.files if file.row_groups}
        if not set(files) <= read:
            lost[condition] = sorted(set(files) - read)
    return lost


def columns_of_other_types(snapshot: Snapshot, seen: Seen) -> list[str]:
    """Return the columns whose type, or place, is not the engine's."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    expected = to_arrow_schema(StructType.fromJson(json.loads(seen.schema)))
    pairs = zip_longest(snapshot.schema, expected, fillvalue=pa.field("nothing", pa.null()))
    return [f"{one} is {other}" for one, other in pairs if one.name != other.name or not _same(one.type, other.type)]


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Compare types without the names and nullability of what lists and maps hold."""
    if pa.types.is_struct(one) and pa.types.is_struct(other) and one.names != other.names:
        return False
    if pa.types.is_nested(one) and one.id == other.id and one.num_fields == other.num_fields:
        return all(_same(one.field(at).type, other.field(at).type) for at in range(one.num_fields))
    return one == other


def values_beyond_bounds(snapshot: Snapshot, seen: Seen) -> Iterator[str]:
    """Yield a sentence for every bound and count that the engine's own values contradict."""
    paths = snapshot.files.paths.to_pylist()
    for source, columns in (("bounds", snapshot.files.bounds), ("partition", snapshot.files.partition_bounds)):
        for name in columns:
            if name in seen.ends:
                for path, told in zip(paths, _told(columns[name]), strict=True):
                    ends = seen.ends[name].get(path)
                    if ends is not None and (wrong := _contradiction(told, ends, columns[name].lower.type)):
                        yield f"{source} of {name} in {path}: {wrong}; the engine sees {ends}"


def _told(bounds: Bounds) -> Iterator[tuple[object, object, int, int]]:
    lower, upper = (_numbers(side).to_pylist() for side in (bounds.lower, bounds.upper))
    return zip(lower, upper, bounds.nulls.tolist(), bounds.nans.tolist(), strict=True)


def _numbers(values: pa.Array) -> pa.Array:
    is_time = pa.types.is_timestamp(values.type) or pa.types.is_date(values.type)
    return values.cast(pa.int64() if values.type.bit_width == 64 else pa.int32()) if is_time else values


def _contradiction(told, ends: Ends, kind: pa.DataType) -> str | None:
    lower, upper, nulls, nans = told
    least, greatest = (_value(end, kind) for end in (ends.least, ends.greatest))
    if lower is not None and least is not None and lower > least:
        return f"the lower bound is {lower!r}"
    if upper is not None and greatest is not None and upper < greatest:
        return f"the upper bound is {upper!r}"
    # Deleted rows are in the counts of the metadata, and not in those of the engine.
    if UNKNOWN < nulls < ends.nulls or UNKNOWN < nans < ends.nans:
        return f"nulls are {nulls}, NaNs {nans}"
    return None


def _value(end: str | float | None, kind: pa.DataType) -> object:
    if not isinstance(end, str):
        return end
    return Decimal(end) if pa.types.is_decimal(kind) else bytes.fromhex(end)
