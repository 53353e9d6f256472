"""Read the deleted positions of data files from deletion vectors and Iceberg's position delete files."""

import zlib
from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zonal.errors import TableError, quoted
from zonal.plan.rewrite import FIELD_ID, DeleteFile, Reading, Source, Vector
from zonal.storage import Storage, local_path, open_regular
from zonal.values.arrays import Int64Array
from zonal.values.cache import Cache
from zonal.worker.problem import FileError, naming
from zonal.worker.read import roaring
from zonal.worker.read.data_file import DataFile, open_parquet
from zonal.worker.read.projection import field_id, project

MAGIC = 1681511377
_FRAME = 8
"""Bytes around a vector in a file: its length before it and its checksum after it."""
_CACHED_BYTES = 64 << 20

# Ids of the columns of a position delete file: "Reserved Field IDs" of the Iceberg specification.
_PATH, _POSITION = 2147483546, 2147483545
POSITION_COLUMNS = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={FIELD_ID: str(_PATH)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={FIELD_ID: str(_POSITION)}),
    ]
)

_ByPath = Mapping[str, Int64Array]


class PositionDeletes:
    """Finds the deleted positions of data files; caches what it read of shared delete files, within a limit."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._of_sources: Cache[object, Int64Array] = Cache(_CACHED_BYTES, lambda positions: positions.nbytes + 1000)
        self._in_files: Cache[tuple[str, int], _ByPath] = Cache(_CACHED_BYTES, _weight)
        self._bounds: Cache[str, list[tuple[bytes, bytes] | None]] = Cache(10_000, lambda bounds: len(bounds) + 1)

    def of(self, source: Source, rows: int) -> Int64Array:
        """Return the deleted positions of a file with `rows` rows, ascending, without those of equality deletes."""
        key = (source.path, source.vector, source.position_deletes)
        return self._of_sources.get(key, lambda: self._find(source, rows))

    def _find(self, source: Source, rows: int) -> Int64Array:
        parts = []
        if source.vector is not None:
            with naming(source.vector.location or source.path):
                positions = read_vector(source.vector, self._storage, rows)
            parts.append(_within(positions, rows, source.path, source.vector.location or "the log"))
        parts += [
            _within(self._from_file(location, source.path), rows, source.path, location)
            for location in source.position_deletes
        ]
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate([np.empty(0, np.int64), *parts]))

    def _from_file(self, location: str, path: str) -> Int64Array:
        bounds = self._bounds.get(location, lambda: self._read_bounds(location))
        groups = [number for number, known in enumerate(bounds) if known is None or _might_hold(known, path)]
        parts = [
            self._in_files.get((location, number), partial(self._read_group, location, number)) for number in groups
        ]
        name = plain_path(path)
        return np.unique(np.concatenate([np.empty(0, np.int64), *(part[name] for part in parts if name in part)]))

    def _read_bounds(self, location: str) -> list[tuple[bytes, bytes] | None]:
        with open_parquet(self._storage, location) as file:
            leaf = _leaf_of_paths(file)
            return [_path_bounds(file.footer.row_group(i), leaf) for i in range(file.footer.num_row_groups)]

    def _read_group(self, location: str, number: int) -> _ByPath:
        with open_parquet(self._storage, location) as file:
            projection = project(POSITION_COLUMNS, file.schema, _reading(file), complete=True)
            data = projection.apply(file.read(number, projection.sources), file.group_rows[number])
            return _grouped(data)


def read_stored(stored: Vector | DeleteFile, path: str, storage: Storage, rows: int) -> Int64Array:
    """Return the deleted positions of a file with `rows` rows, as they are stored for it alone, ascending."""
    if isinstance(stored, Vector):
        return read_vector(stored, storage, rows)
    deleted = Source(-1, path, 0, rows, 0, position_deletes=(stored.location,))
    return PositionDeletes(storage).of(deleted, rows)


def read_vector(vector: Vector, storage: Storage, rows: int) -> Int64Array:
    """Return the positions in the deletion vector of a file with `rows` rows, ascending."""
    if not 0 <= vector.rows <= rows:
        raise FileError(f"its deletion vector has {vector.rows:,} positions for a file of {rows:,} rows")
    data = vector.inline
    if data is None:
        data = _framed(vector, storage)
    if len(data) < 4 or int.from_bytes(data[:4], "little") != MAGIC:
        raise FileError(f"its deletion vector doesn't begin with the number {MAGIC}")
    return roaring.positions(data[4:], count=vector.rows)


def plain_path(path: str) -> str:
    """Return a path's spelling for comparisons: writers use any of `file:/x`, `file:///x`, `file://localhost/x`, `/x`.

    >>> plain_path("file:///x"), plain_path("file://localhost/x"), plain_path("s3://b//x")
    ('/x', '/x', 's3://b//x')
    """
    return local_path(path) or path


def _framed(vector: Vector, storage: Storage) -> bytes:
    """Read a vector from its file and check its length and its checksum."""
    if vector.location is None:
        raise FileError("its deletion vector has neither a location nor bytes")
    filesystem, inside = storage.locate(vector.location)
    with open_regular(filesystem, inside) as file:
        if vector.offset < 0 or vector.size < _FRAME or vector.offset + vector.size > file.size():
            raise FileError(
                f"a deletion vector of {vector.size:,} bytes at {vector.offset:,} is beyond its {file.size():,} bytes"
            )
        framed = file.read_at(vector.size, vector.offset)
    data = framed[4:-4]
    if len(framed) != vector.size or int.from_bytes(framed[:4], "big") != len(data):
        raise FileError(f"the deletion vector at {vector.offset:,} has another length than the metadata says")
    if int.from_bytes(framed[-4:], "big") != zlib.crc32(data):
        raise FileError(f"the deletion vector at {vector.offset:,} is damaged: its checksum is another")
    return bytes(data)


def _within(positions: Int64Array, rows: int, path: str, deletes: str) -> Int64Array:
    """Refuse deletes of rows that the file doesn't have: they were made for another file of this name."""
    if len(positions) and (positions[0] < 0 or positions[-1] >= rows):
        wrong = positions[0] if positions[0] < 0 else positions[-1]
        raise TableError(
            f"{quoted(deletes, limit=300)} deletes row {wrong:,} of {quoted(path, limit=300)}, which has {rows:,} rows."
        )
    return positions


def _reading(file: DataFile) -> Reading:
    """Return how to read a delete file: by field ids where it has them, else by names, as older writers do."""
    return Reading(POSITION_COLUMNS, by_id=any(field_id(field) == _PATH for field in file.schema.fields))


def _leaf_of_paths(file: DataFile) -> int:
    projection = project(pa.schema([POSITION_COLUMNS.field(0)]), file.schema, _reading(file), complete=True)
    return file.schema.leaves(projection.sources[0]).start


def _path_bounds(group: pq.RowGroupMetaData, leaf: int) -> tuple[bytes, bytes] | None:
    """Return the bounds of the paths in a row group, or None where the footer has none."""
    statistics = group.column(leaf).statistics
    if statistics is None or not statistics.has_min_max or statistics.physical_type != "BYTE_ARRAY":
        return None
    lower, upper = statistics.min_raw, statistics.max_raw
    return (lower, upper) if isinstance(lower, bytes) and isinstance(upper, bytes) else None


def _might_hold(bounds: tuple[bytes, bytes], path: str) -> bool:
    """Tell whether a row group can have deletes of a file, for any spelling of its path."""
    plain = plain_path(path)
    spellings = {path, plain} | ({f"{start}{plain}" for start in _LOCAL} if plain.startswith("/") else set())
    return any(bounds[0] <= spelling.encode() <= bounds[1] for spelling in spellings)


_LOCAL = ("file:", "file://", "file://localhost")


def _grouped(data: pa.Table) -> _ByPath:
    """Return the positions deleted for each path."""
    paths = pa.concat_arrays([pa.array([], pa.string()), *data.column(0).chunks]).dictionary_encode()
    codes, positions = paths.indices.to_numpy(), data.column(1).to_numpy()
    order = np.argsort(codes, kind="stable")
    borders = np.searchsorted(codes[order], np.arange(len(paths.dictionary) + 1))
    by_path: dict[str, Int64Array] = {}
    for number, path in enumerate(paths.dictionary.to_pylist()):
        name, own = plain_path(path), positions[order[borders[number] : borders[number + 1]]]
        by_path[name] = np.concatenate([by_path[name], own]) if name in by_path else own
    return by_path


def _weight(deleted: _ByPath) -> int:
    return sum(positions.nbytes + len(path) + 200 for path, positions in deleted.items()) + 1000
