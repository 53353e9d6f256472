"""Read the live rows of a table's data files in the table's schema, with their positions."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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
from zonal.values.columns import with_dictionaries
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
    """The live rows of a row group, or of a part of it."""

    data: pa.Table
    """In the reading schema, or the requested columns of it."""
    positions: Int64Array
    """Position of each live row in its file."""
    read: int
    """Rows read, deleted ones included."""


class Reader:
    """Reads data files; one reader per worker task, as it caches footers and deletes."""

    def __init__(
        self, reading: Reading, storage: Storage, known: KnownFiles | None = None, encoded: Collection[str] = ()
    ) -> None:
        """Read with the footers of `known` files, which readers may share.

        The columns in `encoded`, flat texts, are dictionary-encoded in what `shared_rows` yields.
        """
        self._reading = reading
        self._storage = storage
        self._encoded = encoded
        self._positions = PositionDeletes(storage)
        self._equality = EqualityDeletes(reading, storage)
        self._files = Cache(_FOOTERS) if known is None else known
        self._projections: list[tuple[tuple[str, ...], ArrowFileSchema, Projection]] = []

    def row_groups(self, source: Source) -> list[RowGroupSize]:
        """Return the size of each row group of a file, from its footer."""
        with self._open(source) as file:
            return file.row_groups()

    def shared_rows(self, share: Share) -> Iterator[LiveRows]:
        """Yield the live rows of a file, or of the part of it that belongs to a split, some rows at a time."""
        source, names = share.source, self._known(None)
        small = share.parts == 1 and source.size <= _WHOLE
        with self._open(source, tail=source.size if small else TAIL) as file:
            sizes = [group.size for group in file.row_groups()]
            for rows in self._rows(source, file, row_groups_of(sizes, share.part, share.parts), names, whole=False):
                yield replace(rows, data=encoded_columns(rows.data, self._encoded)) if self._encoded else rows

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

    def parts(self, source: Source, row_group: int) -> Iterator[LiveRows]:
        """Yield the live rows of a row group, some at a time: whoever needs few reads few."""
        with self._open(source) as file:
            yield from self._rows(source, file, [row_group], self._known(None), whole=False)

    def _rows(
        self, source: Source, file: DataFile, groups: Sequence[int], names: list[str], *, whole: bool = True
    ) -> Iterator[LiveRows]:
        """Yield the live rows of these row groups, each as a `whole` or in parts."""
        needed = [*names, *(name for name in self._equality.columns(source) if name not in names)]
        deleted = self._positions.of(source, file.footer.num_rows)
        starts = [0, *np.cumsum(file.group_rows).tolist()]
        for number in groups:
            if not 0 <= number < len(file.group_rows):
                raise FileError(f"it has {len(file.group_rows)} row groups, and none has the number {number}")
            live = np.ones(file.group_rows[number], np.bool_)
            low, high = np.searchsorted(deleted, starts[number : number + 2])
            live[deleted[low:high] - starts[number]] = False
            first = 0
            for rows, loaded in self._parts(source, file, number, needed, live, whole=whole):
                end = first + rows
                # No name for the data here: it would keep one row group in memory while the next is read.
                yield self._finished(source, loaded(), names, live[first:end], starts[number] + first)
                first = end

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
        return LiveRows(pa.Table.from_arrays(tracked, schema=with_dictionaries(schema, tracked)), positions, len(live))

    def _parts(
        self, source: Source, file: DataFile, number: int, names: Sequence[str], live: BoolArray, *, whole: bool
    ) -> Iterator[tuple[int, Callable[[], pa.Table]]]:
        """Yield parts of a row group: their number of rows, and what loads these columns of all of them.

        Deleted rows are loaded as well; where no row is live, none is.
        """
        rows = len(live)
        if not live.any():
            yield rows, partial(empty, self._wanted(names))
            return
        projection = self._projection(file.schema, [name for name in names if name not in source.constants])

        def filled(read: Callable[[], pa.Table], count: int) -> pa.Table:
            return self._filled(source, projection.apply(read(), count), names, count)

        if not projection.sources:
            yield rows, partial(filled, partial(pa.table, {}), rows)
        elif whole:
            yield rows, partial(filled, partial(file.read, number, projection.sources), rows)
        else:
            # Equality deletes compare plain values.
            kept = () if source.equality_deletes else [projection.unchanged(name) for name in self._encoded]
            encoded = [position for position in kept if position is not None]
            for batch in file.batches(number, projection.sources, encoded):
                yield batch.num_rows, partial(filled, partial(_itself, batch), batch.num_rows)

    def _filled(self, source: Source, data: pa.Table, names: Sequence[str], rows: int) -> pa.Table:
        """Return all columns, with those that the metadata gives."""
        columns = dict(zip(data.schema.names, data.columns, strict=True))
        for name in names:
            if name in source.constants:
                field = self._reading.schema.field(name)
                columns[name] = pa.chunked_array([filling(source.constants[name], field, name)(rows)], field.type)
        ordered = [columns[name] for name in names]
        return pa.Table.from_arrays(ordered, schema=with_dictionaries(self._wanted(names), ordered))

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


def _itself(data: pa.Table) -> pa.Table:
    return data


def encoded_columns(rows: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the rows with these columns dictionary-encoded."""
    for at, field in enumerate(rows.schema):
        if field.name in names and not pa.types.is_dictionary(field.type):
            column = rows.column(at).dictionary_encode()
            rows = rows.set_column(at, field.with_type(column.type), column)
    return rows


def _live_rows(data: pa.Table, live: BoolArray) -> pa.Table:
    if not data.num_columns:
        return data
    try:
        return data.filter(pa.array(live))
    except pa.ArrowNotImplementedError:  # for string views, for example
        return take_rows(data, np.flatnonzero(live))
