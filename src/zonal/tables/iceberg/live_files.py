"""Read the live data files of a snapshot into arrays, with their metrics and the deletes that apply to them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyiceberg.io import FileIO

from zonal.snapshot import UNKNOWN
from zonal.tables.iceberg.deletes import Delete, DeleteIndex, HashedPartition
from zonal.tables.iceberg.field_ids import (
    FORMAT,
    KEY_METADATA,
    LOWER_BOUNDS,
    MANIFEST_KEY,
    NAN_COUNTS,
    NULL_COUNTS,
    SIZE,
    UPPER_BOUNDS,
    Fields,
)
from zonal.tables.iceberg.manifests import Contents, ManifestEntry, identity, naming, read_lines, stream_contents
from zonal.values.arrays import Int64Array

PartitionKey = tuple[int, Mapping[int, Any]]
"""Id of a partition spec, and the values of its fields by partition field id."""
MOST_KEPT = 100_000
"""Files whose manifests a cache keeps; some 45 MB beside what a snapshot keeps of them."""


@dataclass(frozen=True, eq=False)
class Metrics:
    """Column metrics of `count` files by field id, as the manifest stores them."""

    count: int
    lower: Mapping[int, pa.Array]
    upper: Mapping[int, pa.Array]
    nulls: Mapping[int, Int64Array]
    nans: Mapping[int, Int64Array]


@dataclass(frozen=True, eq=False)
class LiveFiles:
    """The live data files of a snapshot, in the order of its manifests."""

    paths: pa.Array
    formats: Mapping[str, int]
    """Files of each format."""
    sizes: Int64Array
    rows: Int64Array
    added_by: Int64Array
    sequences: Int64Array
    """Data sequence number of each file."""
    first_row_ids: Int64Array
    """Id of each file's first row, or UNKNOWN."""
    partition: Int64Array
    """Number of each file's key in `keys`."""
    keys: tuple[HashedPartition, ...]
    deletes: DeleteIndex
    metrics: tuple[Metrics, ...]
    encrypted: bool

    @cached_property
    def partitions(self) -> tuple[PartitionKey, ...]:
        """Return the partition of each number in `partition`."""
        return tuple((int(key[0]), dict(key[1:])) for key in self.keys)  # type: ignore[call-overload, arg-type]


def read_live(
    io: FileIO,
    manifest_list: str | None,
    *,
    global_specs: set[int],
    columns: set[int],
    cache: "ManifestCache | None" = None,
) -> LiveFiles:
    """Read all manifests of a snapshot that the cache doesn't have; metrics are kept for the field ids in `columns`.

    `global_specs` as in `DeleteIndex`. A file that can't be read is a `TableError` that names it.
    """
    cache = ManifestCache() if cache is None else cache
    parts = cache.read(io, read_lines(io, manifest_list), columns)
    rows = [row for part in parts for row in part.files]
    numbers: dict[HashedPartition, int] = {}
    partition = _ints(numbers.setdefault(row.key, len(numbers)) for row in rows)
    return LiveFiles(
        paths=pa.array([row.path for row in rows], pa.string()),
        formats=Counter(row.format for row in rows),
        sizes=_ints(row.size for row in rows),
        rows=_ints(row.rows for row in rows),
        added_by=_ints(row.snapshot_id for row in rows),
        sequences=_ints(row.sequence for row in rows),
        first_row_ids=_ints(row.first_row_id for row in rows),
        partition=partition,
        keys=tuple(numbers),
        deletes=DeleteIndex([delete for part in parts for delete in part.deletes], global_specs),
        metrics=tuple(part.metrics for part in parts if part.metrics.count),
        encrypted=any(part.encrypted for part in parts) or any(row.encrypted for row in rows),
    )


class AppliedDeletes(NamedTuple):
    """Deletes of each data file."""

    files: Int64Array
    """Delete files and deletion vectors."""
    rows: Int64Array
    """Rows that they delete; UNKNOWN where only the delete files know."""


def applied_deletes(live: LiveFiles) -> AppliedDeletes:
    """Count what is deleted of each file."""
    count, rows = np.zeros(len(live.sizes), np.int64), np.zeros(len(live.sizes), np.int64)
    index = live.deletes
    if not index.deletes:
        return AppliedDeletes(count, rows)
    files = zip(live.paths.to_pylist(), live.sequences.tolist(), live.partition.tolist(), strict=True)
    for at, (path, sequence, number) in enumerate(files):
        key = live.keys[number]
        positions, equality = index.positions(path, sequence, key), index.equality(sequence, key)
        deletes = [index.deletes[number] for number in positions]
        count[at] = len(positions) + len(equality)
        is_known = not equality and all(delete.target is not None for delete in deletes)
        rows[at] = min(sum(delete.rows for delete in deletes), int(live.rows[at])) if is_known else UNKNOWN
    return AppliedDeletes(count, rows)


# --- manifests -----------------------------------------------------------------------------------------------------


class _File(NamedTuple):
    path: str
    format: str
    size: int
    rows: int
    sequence: int
    first_row_id: int
    snapshot_id: int
    key: HashedPartition
    encrypted: bool


class _Part(NamedTuple):
    files: list[_File]
    deletes: list[Delete]
    metrics: Metrics
    encrypted: bool


class ManifestCache:
    """Manifests that were read, which never change: versions of a table share most of theirs.

    It keeps manifests up to `MOST_KEPT` files, whichever come first.
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[object, ...], _Part] = {}
        self._files = 0

    def read(self, io: FileIO, lines: Sequence[Fields], columns: set[int]) -> list[_Part]:
        """Return manifests in order, with the metrics of these columns."""
        keys = [(*identity(line), frozenset(columns)) for line in lines]
        known = {key: self._parts[key] for key in keys if key in self._parts}
        missing = {key: line for key, line in zip(keys, lines, strict=True) if key not in known}
        for key, contents in zip(missing, stream_contents(io, list(missing.values())), strict=True):
            known[key] = part = _read(contents, columns)
            if self._files + len(contents.entries) <= MOST_KEPT:
                self._parts[key] = part
                self._files += len(contents.entries)
        return [known[key] for key in keys]


def _read(contents: Contents, columns: set[int]) -> _Part:
    with naming(contents.path):
        data = [entry for entry in contents.entries if entry.is_data]
        return _Part(
            [_file(entry) for entry in data],
            [entry.delete for entry in contents.entries if not entry.is_data],
            _columnar([entry.file for entry in data], columns),
            contents.line.get(MANIFEST_KEY) is not None,
        )


def _file(entry: ManifestEntry) -> _File:
    return _File(
        entry.path,
        entry.file[FORMAT].upper(),
        int(entry.file[SIZE]),
        entry.rows,
        entry.sequence,
        UNKNOWN if entry.first_row_id is None else int(entry.first_row_id),
        UNKNOWN if entry.snapshot_id is None else int(entry.snapshot_id),
        entry.key,
        entry.file.get(KEY_METADATA) is not None,
    )


def _columnar(files: Sequence[Fields], columns: set[int]) -> Metrics:
    def by_id(field: int) -> Iterator[tuple[int, list[Any]]]:
        maps = [file.get(field) or {} for file in files]
        for column in columns.intersection(chain.from_iterable(maps)):
            yield column, [one.get(column) for one in maps]

    def counts(field: int) -> dict[int, Int64Array]:
        known = {column: [UNKNOWN if v is None else v for v in values] for column, values in by_id(field)}
        return {column: np.maximum(np.array(values, np.int64), UNKNOWN) for column, values in known.items()}

    def bounds(field: int) -> dict[int, pa.Array]:
        return {column: pa.array(values, pa.large_binary()) for column, values in by_id(field)}

    return Metrics(
        count=len(files),
        lower=bounds(LOWER_BOUNDS),
        upper=bounds(UPPER_BOUNDS),
        nulls=counts(NULL_COUNTS),
        nans=counts(NAN_COUNTS),
    )


def _ints(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, np.int64)
