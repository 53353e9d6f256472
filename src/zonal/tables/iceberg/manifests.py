"""Iceberg manifests as arrays: the live data files of a snapshot, their metrics, and the deletes that apply to them.

Manifests are decoded here instead of by PyIceberg: its compiled decoder reads beyond the end of a damaged file, its
scan planning fails on equality deletes, and it leaves out the fields of format version 3.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyiceberg.io import FileIO

from zonal.errors import TableError, quoted
from zonal.snapshot import UNKNOWN
from zonal.storage import refuse_special
from zonal.storage.causes import store_in, told
from zonal.tables.iceberg.avro import records
from zonal.values.arrays import Int64Array

PartitionKey = tuple[int, Mapping[int, Any]]
"""Id of a partition spec, and the values of its fields by partition field id."""

READERS = 8
"""Manifests that are fetched at the same time; object stores answer slowly, but many at once."""

# Field ids, from the tables of "Manifests" and "Snapshots" in the specification.
STATUS, SNAPSHOT_ID, DATA_FILE, SEQUENCE_NUMBER = 0, 1, 2, 3
CONTENT, PATH, FORMAT, PARTITION, RECORDS, SIZE = 134, 100, 101, 102, 103, 104
NULL_COUNTS, NAN_COUNTS, LOWER_BOUNDS, UPPER_BOUNDS, KEY_METADATA, REFERENCED = 110, 137, 125, 128, 131, 143
MANIFEST_PATH, SPEC_ID, MANIFEST_CONTENT, MANIFEST_SEQUENCE, ADDED_BY, MANIFEST_KEY = 500, 502, 517, 515, 503, 519
DELETED_ENTRY = 2
DATA, POSITION_DELETES = 0, 1
DELETE_PATH = 2147483546
"""The column `file_path` of a position delete file."""


class Manifest(NamedTuple):
    """A line of the manifest list; what entries inherit from it."""

    path: str
    spec_id: int
    sequence: int
    snapshot_id: int | None
    encrypted: bool


@dataclass(frozen=True, eq=False)
class Metrics:
    """Column metrics of `count` files by field id, as the manifest stores them."""

    count: int
    lower: Mapping[int, pa.Array]
    upper: Mapping[int, pa.Array]
    nulls: Mapping[int, Int64Array]
    nans: Mapping[int, Int64Array]


class Delete(NamedTuple):
    """A delete file or a deletion vector."""

    kind: Literal["vector", "position", "equality"]
    sequence: int
    rows: int
    key: tuple[object, ...]
    target: str | None
    """The only data file it is about, where that is known."""
    paths: tuple[bytes, bytes] | None
    """Bounds of the paths of the data files it is about."""


@dataclass(frozen=True, eq=False)
class LiveFiles:
    """The live data files of a snapshot, in the order of its manifests."""

    paths: pa.Array
    formats: Mapping[str, int]
    """Files of each format."""
    sizes: Int64Array
    rows: Int64Array
    added_by: Int64Array
    partition: Int64Array
    """Number of each file's key in `keys`."""
    keys: tuple[PartitionKey, ...]
    delete_files: Int64Array
    deleted: Int64Array
    metrics: tuple[Metrics, ...]
    encrypted: bool


def read_live(io: FileIO, manifest_list: str | None, *, global_specs: set[int], columns: set[int]) -> LiveFiles:
    """Read all manifests of a snapshot; metrics are kept for the field ids in `columns`.

    `global_specs` are the partition specs without fields: equality deletes of such a spec apply to every partition. A
    file that can't be read is a `TableError` that names it.
    """
    manifests = _read_list(io, manifest_list) if manifest_list is not None else []
    contents = fetched(io, [manifest.path for manifest in manifests])
    parts = [_read_manifest(data, manifest, columns) for data, manifest in zip(contents, manifests, strict=True)]
    rows = [row for part in parts for row in part.files]
    numbers: dict[tuple[object, ...], int] = {}
    partition = _ints(numbers.setdefault(row.key, len(numbers)) for row in rows)
    sizes, counts = _ints(row.size for row in rows), _ints(row.rows for row in rows)
    sequences = _ints(row.sequence for row in rows)
    paths = [row.path for row in rows]
    deletes = [delete for part in parts for delete in part.deletes]
    applied = _apply(deletes, _Targets(paths, sequences, partition, numbers), global_specs)
    formats: dict[str, int] = defaultdict(int)
    for row in rows:
        formats[row.format] += 1
    return LiveFiles(
        paths=pa.array(paths, pa.string()),
        formats=formats,
        sizes=sizes,
        rows=counts,
        added_by=_ints(row.snapshot_id for row in rows),
        partition=partition,
        keys=tuple((int(key[0]), dict(key[1:])) for key in numbers),  # type: ignore[call-overload, arg-type]
        delete_files=applied.count,
        deleted=np.where(applied.unknown, UNKNOWN, np.minimum(applied.rows, counts)),
        metrics=tuple(part.metrics for part in parts if part.metrics.count),
        encrypted=any(manifest.encrypted for manifest in manifests) or any(row.encrypted for row in rows),
    )


# --- manifests -----------------------------------------------------------------------------------------------------


class _File(NamedTuple):
    path: str
    format: str
    size: int
    rows: int
    sequence: int
    snapshot_id: int
    key: tuple[object, ...]
    encrypted: bool


class _Part(NamedTuple):
    files: list[_File]
    deletes: list[Delete]
    metrics: Metrics


def _read_list(io: FileIO, path: str) -> list[Manifest]:
    with naming(path):
        return [
            Manifest(
                _text(row[MANIFEST_PATH]),
                int(row[SPEC_ID]),
                row.get(MANIFEST_SEQUENCE) or 0,  # "Sequence Number Inheritance": manifests of version 1 count as 0
                row.get(ADDED_BY),
                row.get(MANIFEST_KEY) is not None,
            )
            for row in records(fetch(io, path))
        ]


def fetched(io: FileIO, paths: Sequence[str]) -> Iterator[bytes]:
    """Fetch files in order, some at once; decoding them in threads as well would only be slower."""
    with ThreadPoolExecutor(READERS) as pool:
        for start in range(0, len(paths), READERS):
            yield from pool.map(partial(fetch, io), paths[start : start + READERS])


def fetch(io: FileIO, path: str) -> bytes:
    with naming(path):
        refuse_special(path)
        with io.new_input(path).open() as stream:
            return stream.read()


def _read_manifest(data: bytes, manifest: Manifest, columns: set[int]) -> _Part:
    files: list[_File] = []
    deletes: list[Delete] = []
    metrics: dict[int, list[Mapping[int, Any]]]
    metrics = {LOWER_BOUNDS: [], UPPER_BOUNDS: [], NULL_COUNTS: [], NAN_COUNTS: []}
    with naming(manifest.path):
        for entry in records(data):
            if entry[STATUS] == DELETED_ENTRY:
                continue
            file = entry[DATA_FILE]
            sequence = entry.get(SEQUENCE_NUMBER)
            sequence = manifest.sequence if sequence is None else sequence
            if file.get(CONTENT) in (None, DATA):
                files.append(_data_file(entry, manifest, sequence))
                for field, values in metrics.items():
                    values.append(file.get(field) or {})
            else:
                deletes.append(delete_of(file, manifest.spec_id, sequence))
        return _Part(files, deletes, _columnar(metrics, columns))


def _data_file(entry: Mapping[int, Any], manifest: Manifest, sequence: int) -> _File:
    file = entry[DATA_FILE]
    snapshot_id = entry.get(SNAPSHOT_ID)
    snapshot_id = manifest.snapshot_id if snapshot_id is None else snapshot_id
    return _File(
        _text(file[PATH]),
        _text(file[FORMAT]).upper(),
        int(file[SIZE]),
        int(file[RECORDS]),
        int(sequence),
        UNKNOWN if snapshot_id is None else int(snapshot_id),
        partition_key(manifest.spec_id, file),
        file.get(KEY_METADATA) is not None,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a text should")
    return value


def partition_key(spec_id: int, file: Mapping[int, Any]) -> tuple[object, ...]:
    """Make the partition hashable; one NaN object stands for all, since tuples compare by identity first."""
    values = ((name, file[PARTITION][name]) for name in sorted(file[PARTITION]))
    return (spec_id, *((name, math.nan if value != value else value) for name, value in values))  # noqa: PLR0124


def delete_of(file: Mapping[int, Any], spec_id: int, sequence: int) -> Delete:
    """Tell what a delete file or deletion vector of a manifest is about."""
    kind: Literal["vector", "position", "equality"] = "equality"
    target, paths = None, None
    if file[CONTENT] == POSITION_DELETES:
        kind = "vector" if _text(file[FORMAT]).upper() == "PUFFIN" else "position"
        target = file.get(REFERENCED)
        lower = (file.get(LOWER_BOUNDS) or {}).get(DELETE_PATH)
        upper = (file.get(UPPER_BOUNDS) or {}).get(DELETE_PATH)
        if target is None and lower is not None and upper is not None:
            # "Delete Formats": equal bounds of file_path tell of one data file, as writers before version 3 do.
            paths = (lower, upper)
            target = lower.decode() if lower == upper else None
    return Delete(kind, int(sequence), int(file[RECORDS]), partition_key(spec_id, file), target, paths)


def _columnar(metrics: Mapping[int, Sequence[Mapping[int, Any]]], columns: set[int]) -> Metrics:
    def by_id(field: int) -> Iterator[tuple[int, list[Any]]]:
        maps = metrics[field]
        for column in columns.intersection(chain.from_iterable(maps)):
            yield column, [one.get(column) for one in maps]

    def counts(field: int) -> dict[int, Int64Array]:
        known = {column: [UNKNOWN if v is None else v for v in values] for column, values in by_id(field)}
        return {column: np.maximum(np.array(values, np.int64), UNKNOWN) for column, values in known.items()}

    def bounds(field: int) -> dict[int, pa.Array]:
        return {column: pa.array(values, pa.large_binary()) for column, values in by_id(field)}

    return Metrics(
        count=len(metrics[LOWER_BOUNDS]),
        lower=bounds(LOWER_BOUNDS),
        upper=bounds(UPPER_BOUNDS),
        nulls=counts(NULL_COUNTS),
        nans=counts(NAN_COUNTS),
    )


def _ints(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, np.int64)


# --- deletes, by "Scan Planning" of the specification ---------------------------------------------------------------


class _Targets(NamedTuple):
    paths: list[str]
    sequences: Int64Array
    partition: Int64Array
    numbers: Mapping[tuple[object, ...], int]


class _Applied:
    """Deletes of each data file: how many files, how many rows, and where only the delete files know the rows."""

    def __init__(self, files: int) -> None:
        self.count = np.zeros(files, np.int64)
        self.rows = np.zeros(files, np.int64)
        self.unknown = np.zeros(files, np.bool_)
        self.vector = np.zeros(files, np.bool_)


def _apply(deletes: Sequence[Delete], files: _Targets, global_specs: set[int]) -> _Applied:
    applied = _Applied(len(files.paths))
    if deletes and files.paths:
        # A deletion vector holds the position deletes before it, which then don't apply: vectors first.
        ranks = {"vector": 0, "position": 1, "equality": 2}
        _by_file(sorted((d for d in deletes if d.target is not None), key=lambda d: ranks[d.kind]), files, applied)
        order = np.argsort(files.partition, kind="stable")
        starts = np.searchsorted(files.partition[order], np.arange(len(files.numbers) + 1))
        groups: dict[tuple[object, ...], list[Delete]] = defaultdict(list)
        for delete in deletes:
            if delete.target is None:
                everywhere = delete.kind == "equality" and delete.key[0] in global_specs
                groups[() if everywhere else delete.key].append(delete)
        for key, group in groups.items():
            number = files.numbers.get(key)
            if key == ():
                _by_sequence(group, np.arange(len(files.paths)), files, applied)
            elif number is not None:
                members = order[starts[number] : starts[number + 1]]
                _by_sequence([d for d in group if d.kind == "equality"], members, files, applied)
                _by_path([d for d in group if d.kind != "equality"], members, files, applied)
    return applied


def _by_file(deletes: Iterable[Delete], files: _Targets, applied: _Applied) -> None:
    positions = {path: position for position, path in enumerate(files.paths)}
    for delete in deletes:
        at = positions.get(delete.target or "")
        if at is None or files.sequences[at] > delete.sequence or (delete.kind == "position" and applied.vector[at]):
            continue
        applied.count[at] += 1
        applied.rows[at] += delete.rows
        applied.vector[at] |= delete.kind == "vector"


def _by_sequence(deletes: Sequence[Delete], members: Int64Array, files: _Targets, applied: _Applied) -> None:
    """Apply equality deletes: to files with a strictly lower sequence number."""
    sequences = np.sort(_ints(delete.sequence for delete in deletes))
    later = len(sequences) - np.searchsorted(sequences, files.sequences[members], side="right")
    applied.count[members] += later
    applied.unknown[members] |= later > 0


def _by_path(deletes: Sequence[Delete], members: Int64Array, files: _Targets, applied: _Applied) -> None:
    """Apply position deletes of a whole partition: to files of the same or a lower sequence number, within paths."""
    if not deletes:
        return
    members = np.array(sorted(members.tolist(), key=lambda at: files.paths[at].encode()), np.int64)
    paths = [files.paths[at].encode() for at in members]
    for delete in deletes:
        lower, upper = delete.paths or (b"", None)
        end = len(paths) if upper is None else bisect_right(paths, upper)
        reached = members[bisect_left(paths, lower) : end]
        reached = reached[(files.sequences[reached] <= delete.sequence) & ~applied.vector[reached]]
        applied.count[reached] += 1
        applied.unknown[reached] = True


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn whatever damaged metadata does to a reader into an error that names the file."""
    try:
        yield
    except TableError:
        raise
    except FileNotFoundError:
        raise TableError(f"The metadata file {quoted(path, limit=300)} doesn't exist.") from None
    except Exception as error:
        what = told(error) if store_in(error) else f"{quoted(f'{type(error).__name__}: {error}', limit=200)}."
        raise TableError(f"Can't read the metadata file {quoted(path, limit=300)}: {what}") from error
