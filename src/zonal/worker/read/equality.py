"""Apply Iceberg's equality deletes: delete rows that equal a row of a delete file in its columns; null equals null."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from zonal.errors import TableError, quoted
from zonal.plan.rewrite import EqualityDelete, Reading, Source
from zonal.storage import Storage
from zonal.values.arrays import BoolArray, Int64Array
from zonal.values.cache import Cache
from zonal.values.columns import leaf
from zonal.worker.problem import FileError
from zonal.worker.read.data_file import open_parquet
from zonal.worker.read.nulls import empty
from zonal.worker.read.projection import field_id, project

_CACHED_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class _Keys:
    """Deleted keys, encoded for look-ups.

    Each distinct value of a column has a code. A key of several columns is encoded from left to right: the code of its
    prefix and that of the next value are combined to one code, which is looked up among those of the deleted keys.
    """

    values: tuple[pa.Array, ...]
    """Distinct values of each column, null included."""
    pairs: tuple[Int64Array, ...]
    """For each column from the second on, the distinct combined codes of the deleted keys up to it, ascending."""

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (*self.values, *self.pairs))


class EqualityDeletes:
    """Finds rows that equality deletes remove; caches the keys that it read, within a limit."""

    def __init__(self, reading: Reading, storage: Storage) -> None:
        self._reading = reading
        self._storage = storage
        self._keys: Cache[tuple[tuple[int, ...], tuple[str, ...]], _Keys] = Cache(_CACHED_BYTES, lambda k: k.nbytes)

    def columns(self, source: Source) -> list[str]:
        """Return the top-level columns that must be read to find the deleted rows of a file."""
        ids = {number for delete in source.equality_deletes for number in delete.field_ids}
        for delete in source.equality_deletes:
            self._check(delete)
        return [field.name for field in self._reading.schema if _paths([field], ids)]

    def deleted(self, source: Source, data: pa.Table) -> BoolArray | None:
        """Tell for each row whether it is deleted; None if the file has no equality deletes."""
        together: dict[tuple[int, ...], list[str]] = {}
        for delete in source.equality_deletes:
            together.setdefault(tuple(sorted(set(delete.field_ids))), []).append(delete.location)
        deleted: BoolArray | None = None
        for ids, locations in together.items():
            # Streaming writers leave thousands of small delete files: one look-up serves them all.
            keys = self._keys.get((ids, tuple(locations)), partial(self._read, ids, locations))
            matching = _is_among(keys, _key_columns(data, ids))
            deleted = matching if deleted is None else deleted | matching
        return deleted

    def _check(self, delete: EqualityDelete) -> None:
        known = _paths(list(self._reading.schema), set(delete.field_ids))
        unknown = sorted(set(delete.field_ids) - set(known))
        if unknown or not delete.field_ids:
            what = f"the field ids {unknown}, which are no columns of the table" if unknown else "no columns"
            raise TableError(f"The equality deletes in {quoted(delete.location, limit=300)} go by {what}.")

    def _read(self, ids: tuple[int, ...], locations: Sequence[str]) -> _Keys:
        wanted = pa.schema([field for whole in self._reading.schema if (field := _pruned(whole, set(ids)))])
        parts = [self._read_file(location, wanted, ids) for location in locations]
        columns = [
            pa.chunked_array([chunk for column in same for chunk in column.chunks], same[0].type)
            for same in zip(*parts, strict=True)
        ]
        return _encoded(columns)

    def _read_file(self, location: str, wanted: pa.Schema, ids: tuple[int, ...]) -> list[pa.ChunkedArray]:
        with open_parquet(self._storage, location) as file:
            projection = project(wanted, file.schema, self._reading, complete=True)
            groups = [
                projection.apply(file.read(number, projection.sources), rows)
                for number, rows in enumerate(file.group_rows)
            ]
            return _key_columns(pa.concat_tables([empty(wanted), *groups]), ids)


def _paths(fields: Sequence[pa.Field], ids: set[int], before: tuple[int, ...] = ()) -> dict[int, tuple[int, ...]]:
    """Return the path of positions to each id of a column or a struct's field; list elements can't be keys."""
    paths: dict[int, tuple[int, ...]] = {}
    for position, field in enumerate(fields):
        path = (*before, position)
        if (number := field_id(field)) in ids and number is not None:
            paths[number] = path
        if types.is_struct(field.type):
            paths |= _paths(list(field.type), ids, path)
    return paths


def _pruned(field: pa.Field, ids: set[int]) -> pa.Field | None:
    """Return the field with only the struct fields that are or hold one of the ids."""
    if field_id(field) in ids:
        return field
    if not types.is_struct(field.type):
        return None
    children = [child for whole in field.type if (child := _pruned(whole, ids))]
    return field.with_type(pa.struct(children)) if children else None


def _key_columns(data: pa.Table, ids: Sequence[int]) -> list[pa.ChunkedArray]:
    paths = _paths(list(data.schema), set(ids))
    return [_comparable(leaf(data, paths[number]), number) for number in ids]


def _comparable(column: pa.ChunkedArray, number: int) -> pa.ChunkedArray:
    """Return values of a type that can be looked up, which are equal iff Iceberg treats the originals as equal.

    Java compares floating-point numbers with `Float.compare`: NaN equals NaN, -0.0 doesn't equal 0.0.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _comparable(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type), number)
    if types.is_nested(kind):
        raise FileError(f"equality deletes go by the field id {number}, but {kind} can't be compared")
    if types.is_floating(kind):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
        nan = np.array(np.nan, kind.to_pandas_dtype())
        chunks = []
        for chunk in column.chunks:
            values = chunk.fill_null(0).to_numpy(zero_copy_only=False)
            plain = np.where(np.isnan(values), nan, values).view(bits.to_pandas_dtype())
            chunks.append(pa.array(plain, bits, mask=chunk.is_null().to_numpy(zero_copy_only=False)))
        return pa.chunked_array(chunks, bits)
    if types.is_decimal32(kind) or types.is_decimal64(kind):
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return column.cast(pa.large_string() if types.is_string_view(kind) else pa.large_binary())
    return column


def _encoded(columns: Sequence[pa.ChunkedArray]) -> _Keys:
    values = [pc.unique(column) for column in columns]
    code = _codes(columns[0], values[0])
    pairs = []
    for column, distinct in zip(columns[1:], values[1:], strict=True):
        joined = code * len(distinct) + _codes(column, distinct)
        known, code = np.unique(joined, return_inverse=True)
        pairs.append(known)
    return _Keys(tuple(values), tuple(pairs))


def _is_among(keys: _Keys, columns: Sequence[pa.ChunkedArray]) -> BoolArray:
    """Tell for each row whether its key is one of the deleted keys."""
    code = _codes(columns[0], keys.values[0])
    for column, distinct, known in zip(columns[1:], keys.values[1:], keys.pairs, strict=True):
        right = _codes(column, distinct)
        joined = np.where((code < 0) | (right < 0), -1, code * len(distinct) + right)
        at = np.searchsorted(known, joined)
        hit = at < len(known)
        hit[hit] = known[at[hit]] == joined[hit]
        code = np.where(hit, at, -1)
    return code >= 0


def _codes(column: pa.ChunkedArray, distinct: pa.Array) -> Int64Array:
    """Return the code of each value, or -1 if it has none; null is looked up like a value."""
    codes = pc.index_in(column, value_set=distinct).fill_null(-1)
    return np.asarray(codes, np.int64)
