"""Open Parquet data files and read single columns of single row groups, with errors that name the file."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from zonal.errors import quoted
from zonal.storage import Storage, local_path, open_regular
from zonal.storage.ranged import TAIL, RangedFile
from zonal.worker.problem import FileError, naming
from zonal.worker.read.projection import ArrowFileSchema, leaf_count


@dataclass(frozen=True)
class RowGroupSize:
    """The size of a row group, from the footer."""

    rows: int
    size: int
    """Bytes in the file, compressed."""
    codec: str
    """Compression codec of its largest column, by Arrow's name."""


BATCH_ROWS, BATCH_BYTES = 65_536, 32 * 1024**2
"""Most rows of a batch, and about the most bytes: the less, the sooner memory that is in caches is used again."""


class DataFile:
    """An open Parquet file; its parsed footer may be passed on to the next `DataFile` of the same file."""

    def __init__(self, path: str, file: pq.ParquetFile, source: pa.NativeFile, *, checked: bool = False) -> None:
        """Check the file's footer and the places of its column chunks, unless they were `checked` before."""
        self.path = path
        self.size: int = source.size()
        self.footer: pq.FileMetaData = file.metadata
        self._file, self._source = file, source
        fields = file.schema_arrow.remove_metadata()  # of the schema; the fields keep theirs
        if sum(leaf_count(field.type) for field in fields) != self.footer.num_columns:
            raise FileError("its columns can't be told apart")
        leaves = range(self.footer.num_columns)
        self.schema = ArrowFileSchema(
            fields, frozenset(leaf for leaf in leaves if _is_zoneless(file.schema.column(leaf)))
        )
        groups = [self.footer.row_group(i).num_rows for i in range(self.footer.num_row_groups)]
        if min(groups, default=0) < 0 or sum(groups) != self.footer.num_rows:
            raise FileError(f"its row groups have {sum(groups):,} rows, but its footer says {self.footer.num_rows:,}")
        self.group_rows: tuple[int, ...] = tuple(groups)
        if not checked:
            _refuse_impossible(self.footer, self.size)

    def row_groups(self) -> list[RowGroupSize]:
        """Return the size of each row group."""
        groups = [self.footer.row_group(i) for i in range(self.footer.num_row_groups)]
        return [self._row_group(group) for group in groups]

    @staticmethod
    def _row_group(group: pq.RowGroupMetaData) -> RowGroupSize:
        chunks = [(group.column(i).total_compressed_size, i) for i in range(group.num_columns)]
        codec = group.column(max(chunks)[1]).compression if chunks else ""
        return RowGroupSize(group.num_rows, sum(size for size, _ in chunks), codec)

    def read(self, row_group: int, fields: Sequence[int]) -> pa.Table:
        """Return these top-level fields of a row group, in the file's order."""
        data = self._file.reader.read_row_group(
            row_group, column_indices=self._loaded(row_group, fields), use_threads=False
        )
        self._check_rows(row_group, data.num_rows)
        return data

    def batches(self, row_group: int, fields: Sequence[int], encoded: Collection[int] = ()) -> Iterator[pa.Table]:
        """Yield the rows of a row group, in order, in parts of a bounded size.

        Of the fields in `encoded`, which are flat texts, the dictionaries and indices of the file are kept.
        """
        rows = self.group_rows[row_group]
        most = min(
            BATCH_ROWS, max(1024, BATCH_BYTES * rows // max(self.footer.row_group(row_group).total_byte_size, 1))
        )
        reader = self._file.reader
        if encoded:
            kept = [self.schema.leaves(field).start for field in encoded]
            reader = _parquet_file(self.path, self._source, self.footer, kept).reader
        leaves = self._loaded(row_group, fields)
        read = 0
        for batch in reader.iter_batches(most, row_groups=[row_group], column_indices=leaves, use_threads=False):
            read += batch.num_rows
            yield pa.Table.from_batches([batch])
        self._check_rows(row_group, read)

    def _loaded(self, row_group: int, fields: Sequence[int]) -> list[int]:
        """Return the numbers of the leaves of fields, whose column chunks are fetched where the storage is far.

        By number: the methods of `ParquetFile` go by dotted names, and a name may have dots itself.
        """
        leaves = [leaf for field in fields for leaf in self.schema.leaves(field)]
        if isinstance(self._source, RangedFile):
            group = self.footer.row_group(row_group)
            self._source.load([_place(group.column(leaf)) for leaf in leaves])
        return leaves

    def _check_rows(self, row_group: int, read: int) -> None:
        if read != self.group_rows[row_group]:
            expected = self.group_rows[row_group]
            raise FileError(f"row group {row_group} has {read:,} rows, but its footer says {expected:,}")


@dataclass(frozen=True)
class KnownFile:
    """What was read of a file when it was opened before."""

    footer: pq.FileMetaData
    size: int


@contextmanager
def open_parquet(
    storage: Storage, path: str, known: KnownFile | None = None, *, tail: int = TAIL
) -> Iterator[DataFile]:
    """Open a Parquet file for as long as the context lasts; errors inside become a `TableError` that names it.

    `tail` says how many bytes of its end will be read in any case.
    """

    def opened() -> pa.NativeFile:
        return open_regular(*storage.locate(path), size=known.size if known else None, tail=tail)

    with naming(path), storage.renewing(opened) as source:
        file = _parquet_file(path, source, known.footer if known else None)
        try:
            yield DataFile(path, file, source, checked=known is not None)
        finally:
            with suppress(OSError, pa.ArrowException):
                file.close()


def _parquet_file(
    path: str, source: pa.NativeFile, footer: pq.FileMetaData | None, encoded: Sequence[int] = ()
) -> pq.ParquetFile:
    """Open a file from its source; the leaves in `encoded` are read with their dictionaries."""
    return pq.ParquetFile(
        source,
        metadata=footer,
        read_dictionary=list(encoded) or None,
        coerce_int96_timestamp_unit="us",  # as nanoseconds, years from 2262 on overflow
        # Joins small requests to object stores; ranges are joined already.
        pre_buffer=local_path(path) is None and not isinstance(source, RangedFile),
        page_checksum_verification=True,  # else damaged values would get valid checksums in the new file
    )


def _refuse_impossible(footer: pq.FileMetaData, size: int) -> None:
    """Raise a `FileError` for a footer whose column chunks lie outside the file: it may be damaged elsewhere, too."""
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for leaf in range(group.num_columns):
            chunk = group.column(leaf)
            starts = [chunk.data_page_offset, chunk.dictionary_page_offset or 0]
            length = chunk.total_compressed_size
            if min(*starts, length, chunk.num_values) < 0 or max(starts) > size or _start(starts) + length > size:
                raise FileError(
                    f"its footer is damaged: column {quoted(chunk.path_in_schema)} of row group {number} has "
                    f"{chunk.num_values:,} values in {length:,} bytes from {_start(starts):,} on, in a file of "
                    f"{size:,} bytes"
                )


def _place(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return where a column chunk begins and ends in its file."""
    start = _start([chunk.data_page_offset, chunk.dictionary_page_offset or 0])
    return start, start + chunk.total_compressed_size


def _start(offsets: Sequence[int]) -> int:
    """Return where a chunk begins; the offset of a page that doesn't exist is 0."""
    return min((offset for offset in offsets if offset), default=0)


def _is_zoneless(column: pq.ColumnSchema) -> bool:
    """Tell whether a column holds timestamps for which the file doesn't say whether they are adjusted to UTC.

    Before the logical type TIMESTAMP came (format 2.6), writers had INT96 and the converted types.
    """
    if column.physical_type == "INT96":
        return True
    if column.physical_type != "INT64" or column.logical_type.type != "TIMESTAMP":
        return False
    return bool(json.loads(column.logical_type.to_json()).get("is_from_converted_type"))
