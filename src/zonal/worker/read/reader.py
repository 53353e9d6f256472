"""Read the live rows of a table's data files in the table's schema, with their positions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import TableError, quoted, suggestion
from zonal.plan.rewrite import Reading, Source
from zonal.snapshot import UNKNOWN
from zonal.storage import Storage
from zonal.storage.ranged import TAIL
from zonal.values.arrays import BoolArray, Int64Array
from zonal.values.cache import Cache
from zonal.values.selection import take_rows
from zonal.worker.problem import FileError
from zonal.worker.read.data_file import DataFile, KnownFile, RowGroupSize, open_parquet
from zonal.worker.read.deletes import PositionDeletes
from zonal.worker.read.equality import EqualityDeletes
from zonal.worker.read.nulls import empty
from zonal.worker.read.projection import ArrowFileSchema, Projection, filling, project
from zonal.worker.splits import Share, row_groups_of

_FOOTERS = 4
"""Footers that are cached: a task opens one file several times, but not many in turn."""
_PROJECTIONS = 16
_WHOLE = 8 * 1024**2
"""A file of up to so many bytes of which all is read is read by one request."""

KnownFiles: TypeAlias = Cache[str, KnownFile]
"""By the paths of their files."""


@dataclass(frozen=True, eq=False)
class LiveRows:
    """The live rows of a row group."""

    data: pa.Table
    """In the reading schema, or the requested columns of it."""
    positions: Int64Array
    """Position of each live row in its file."""
    read: int
    """Rows read, deleted ones included."""


class Reader:
    """Reads data files; one reader per worker task, as it caches footers and deletes."""

    def __init__(self, reading: Reading, storage: Storage, known: KnownFiles | None = None) -> None:
        """Read with the footers of `known` files, which readers may share."""
        self._reading = reading
        self._storage = storage
        self._positions = PositionDeletes(storage)
        self._equality = EqualityDeletes(reading, storage)
        self._files = Cache(_FOOTERS) if known is None else known
        self._projections: list[tuple[tuple[str, ...], ArrowFileSchema, Projection]] = []

    def row_groups(self, source: Source) -> list[RowGroupSize]:
        """Return the size of each row group of a file, from its footer."""
        with self._open(source) as file:
            return file.row_groups()

    def shared_rows(self, share: Share) -> Iterator[LiveRows]:
        """Yield the live rows of a file, or of the part of it that belongs to a split."""
        names = self._known(None)
        small = share.parts == 1 and share.source.size <= _WHOLE
        with self._open(share.source, tail=share.source.size if small else TAIL) as file:
            sizes = [group.size for group in file.row_groups()]
            yield from self._rows(share.source, file, row_groups_of(sizes, share.part, share.parts), names)

    def rows(
        self, source: Source, row_groups: Sequence[int] | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[LiveRows]:
        """Yield the live rows of each row group, in order: of all row groups, or of those in `row_groups`.

        With `columns` only these top-level columns are read, and those that deletes need. One row group is in memory
        at a time. The file is closed with the iterator.
        """
        names = self._known(columns)
        with self._open(source) as file:
            groups = range(len(file.group_rows)) if row_groups is None else row_groups
            yield from self._rows(source, file, groups, names)

    def _rows(self, source: Source, file: DataFile, groups: Sequence[int], names: list[str]) -> Iterator[LiveRows]:
        needed = [*names, *(name for name in self._equality.columns(source) if name not in names)]
        deleted = self._positions.of(source, file.footer.num_rows)
        starts = [0, *np.cumsum(file.group_rows).tolist()]
        for number in groups:
            if not 0 <= number < len(file.group_rows):
                raise FileError(f"it has {len(file.group_rows)} row groups, and none has the number {number}")
            live = np.ones(file.group_rows[number], np.bool_)
            low, high = np.searchsorted(deleted, starts[number : number + 2])
            live[deleted[low:high] - starts[number]] = False
            # No name for the data here: it would keep one row group in memory while the next is read.
            yield self._finished(source, self._raw(source, file, number, needed, live), names, live, starts[number])

    def _finished(self, source: Source, data: pa.Table, names: Sequence[str], live: BoolArray, start: int) -> LiveRows:
        """Drop deleted rows and columns that only deletes needed; fill in row ids and versions from the metadata."""
        if source.equality_deletes and data.num_rows:
            deleted = self._equality.deleted(source, data)
            live = live if deleted is None else live & ~deleted
        kept = data.select(names)
        if data.num_rows and not live.all():
            kept = _live_rows(kept, live)
        positions = np.flatnonzero(live) + start
        schema = pa.schema([self._reading.schema.field(name) for name in names], self._reading.schema.metadata)
        tracked = [self._tracked(source, kept.column(i), field, positions) for i, field in enumerate(schema)]
        return LiveRows(pa.Table.from_arrays(tracked, schema=schema), positions, len(live))

    def _raw(self, source: Source, file: DataFile, number: int, names: Sequence[str], live: BoolArray) -> pa.Table:
        """Return these columns of all rows of a row group, deleted ones included; no rows where none is live."""
        if not live.any():
            return empty(self._wanted(names))
        rows = file.group_rows[number]
        stored = [name for name in names if name not in source.constants]
        projection = self._projection(file.schema, stored)
        data = file.read(number, projection.sources) if projection.sources else pa.table({})
        columns = dict(zip(stored, projection.apply(data, rows).columns, strict=True))
        for name in names:
            if name in source.constants:
                field = self._reading.schema.field(name)
                columns[name] = pa.chunked_array([filling(source.constants[name], field, name)(rows)], field.type)
        return pa.Table.from_arrays([columns[name] for name in names], schema=self._wanted(names))

    def _projection(self, schema: ArrowFileSchema, names: Sequence[str]) -> Projection:
        key = tuple(names)
        for known, of, projection in self._projections:
            if known == key and of.equals(schema):
                return projection
        projection = project(self._wanted(names), schema, self._reading)
        self._projections = [(key, schema, projection), *self._projections[: _PROJECTIONS - 1]]
        return projection

    def _wanted(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of columns as read from files, in which row ids and versions may be null."""
        tracking = (self._reading.row_id, self._reading.row_version)
        fields = [self._reading.schema.field(name) for name in names]
        return pa.schema([field.with_nullable(True) if field.name in tracking else field for field in fields])

    def _tracked(
        self, source: Source, column: pa.ChunkedArray, field: pa.Field, positions: Int64Array
    ) -> pa.ChunkedArray:
        """Fill in row ids and versions where the file has none."""
        if not column.null_count or field.name not in (self._reading.row_id, self._reading.row_version):
            return column
        filled: pa.Array | None = None
        if field.name == self._reading.row_id and source.first_row_id is not None:
            filled = pa.array(positions + source.first_row_id).cast(field.type)
        if field.name == self._reading.row_version and source.row_version is not None:
            filled = pa.repeat(pa.scalar(source.row_version, field.type), len(positions))
        if filled is None:
            if not field.nullable:
                raise FileError(f"rows have no value in the required column {quoted(field.name)}")
            return column
        return pa.chunked_array([filled]) if column.null_count == len(column) else pc.coalesce(column, filled)

    def _known(self, columns: Sequence[str] | None) -> list[str]:
        known = self._reading.schema.names
        for name in columns or ():
            if name not in known:
                raise TableError(f"Unknown column {quoted(name)}. {suggestion(name, known)}")
        return list(known) if columns is None else list(dict.fromkeys(columns))

    @contextmanager
    def _open(self, source: Source, tail: int = TAIL) -> Iterator[DataFile]:
        with open_parquet(self._storage, source.path, self._files.peek(source.path), tail=tail) as file:
            if source.rows not in (UNKNOWN, file.footer.num_rows):
                raise FileError(f"it has {file.footer.num_rows:,} rows, but the table's metadata says {source.rows:,}")
            self._files.get(source.path, lambda: KnownFile(file.footer, file.size))
            yield file


def _live_rows(data: pa.Table, live: BoolArray) -> pa.Table:
    if not data.num_columns:
        return data
    try:
        return data.filter(pa.array(live))
    except pa.ArrowNotImplementedError:  # for string views, for example
        return take_rows(data, np.flatnonzero(live))
