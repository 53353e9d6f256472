"""Write sorted rows as Parquet files with row groups cut at cells, statistics, a page index and field ids."""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from zonal.layouts.cuts import key_cuts
from zonal.layouts.keys import exact_words
from zonal.layouts.layout import Layout
from zonal.layouts.sort import stable_order
from zonal.plan.pack import DICTIONARY, PLAIN, Packing
from zonal.plan.rewrite import Writing, Written
from zonal.storage.durability import flush_file
from zonal.values.arrays import UInt64Array
from zonal.values.checksum import MODULUS, row_checksum
from zonal.values.columns import find, with_dictionaries
from zonal.values.selection import take_rows
from zonal.worker.problem import naming
from zonal.worker.write.inner_order import sorted_inside
from zonal.worker.write.leaves import Odd
from zonal.worker.write.metrics import FileMetrics, refuse_hidden_nans

ROLL_AT, SMALLEST = 1.4, 0.6
"""A file is closed above the first share of the target size, if the rows left make a file above the second."""
WRITES_BLOOM_FILTERS = int(pa.__version__.partition(".")[0]) >= 26
DICTIONARY_ROWS = 8192
"""A column's first rows, of which the distinct values are counted to decide whether it gets a dictionary."""
PAYING_SHARE, CHOSEN_SHARE = 0.5, 0.75
"""Most of those that may be distinct: without a trial, and where a dictionary was smallest in a trial."""


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Sorted rows, and where their row groups begin."""

    data: pa.Table
    starts: Sequence[int]

    def __iter__(self) -> Iterator[pa.Table]:
        for start, end in zip(self.starts, [*self.starts[1:], self.data.num_rows], strict=True):
            yield self.data.slice(start, end - start)


def sort_piece(
    words: Sequence[UInt64Array], data: pa.Table, layout: Layout, packing: Packing | None = None
) -> RowGroups:
    """Sort rows by their key, or by their exact values where the layout is linear, and cut them at cells.

    Inside of each row group, the rows have the order of the `packing`, where it has one.
    """
    linear = layout.kind == "linear"
    order = stable_order(exact_words(data, layout.columns) if linear else words)
    keys = [np.sort(words[0])] if linear else [word[order] for word in words]
    starts = key_cuts(layout.kind, keys, layout.row_group_rows).tolist()
    if packing is not None and packing.order:
        order = sorted_inside(order, starts, data, packing.order)
    return RowGroups(take_rows(data, order), starts)


def trial_sizes(groups: RowGroups, writing: Writing, layout: Layout) -> tuple[int, dict[str, int]]:
    """Return how many bytes a file of these rows has, and each of its leaves; write it to memory only."""
    sink = pa.BufferOutputStream()
    footers: list[pq.FileMetaData] = []
    schema = with_dictionaries(writing.schema, groups.data.columns)
    options = _options(writing, layout, groups.data)
    with pq.ParquetWriter(sink, schema, metadata_collector=footers, **options) as writer:
        for group in groups:
            writer.write_table(renamed(group, schema), row_group_size=max(group.num_rows, 1))
    (footer,) = footers
    sizes: dict[str, int] = defaultdict(int)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for leaf in range(group.num_columns):
            sizes[group.column(leaf).path_in_schema] += group.column(leaf).total_compressed_size
    return int(sink.tell()), sizes


class FileWriter:
    """Writes one planned file: its pieces in order, into one Parquet file, or more where it grows too large.

    Of the leaves in `odd`, those with a NaN get no statistics, and those with a negative zero no dictionary.
    """

    def __init__(
        self, writing: Writing, layout: Layout, partition: int, rows: int, odd: Odd, *, verify: bool = False
    ) -> None:
        self._writing, self._layout, self._partition, self._verify = writing, layout, partition, verify
        self._left, self._odd = rows, odd
        self._file: _OpenFile | None = None
        self.done: list[Written] = []

    def write(self, groups: RowGroups) -> None:
        """Write the rows of a piece."""
        for group in groups:
            if self._file is None:
                self._file = _OpenFile(self._writing, self._layout, self._partition, group, self._odd)
            self._file.write(group)
            if self._verify:
                self._file.add_to_checksum(group)
            self._left -= group.num_rows
            size, target = self._file.size, self._layout.file_bytes
            if size > ROLL_AT * target and size / self._file.rows * self._left > SMALLEST * target:
                self.close()

    def close(self) -> None:
        """Finish the file that is open."""
        if self._file is not None:
            self.done.append(self._file.close())
            self._file = None

    def abandon(self) -> None:
        """Give up the file that is open; what is written of it belongs to no table."""
        if self._file is not None:
            self._file.abandon()
            self._file = None


class _OpenFile:
    def __init__(self, writing: Writing, layout: Layout, partition: int, first: pa.Table, odd: Odd) -> None:
        # pyarrow stores dictionary-encoded columns as plain ones.
        self._schema, self._partition = with_dictionaries(writing.schema, first.columns), partition
        inside = writing.subfolders[partition] if writing.subfolders else ""
        folder = f"{writing.folder}/{inside}".rstrip("/")
        # A new name for every attempt: an attempt that Spark repeats never meets the files of an earlier one.
        self._path = f"{folder}/{uuid.uuid4().hex}.parquet"
        filesystem, inner = writing.storage.locate(self._path)
        self._metrics = FileMetrics(writing.schema, uncounted=odd.nans)
        self._footers: list[pq.FileMetaData] = []
        options = _options(writing, layout, first, odd)
        with naming(self._path, doing="write"):
            if isinstance(filesystem, pa.fs.LocalFileSystem):
                filesystem.create_dir(inner.rpartition("/")[0], recursive=True)
            self._sink = filesystem.open_output_stream(inner)
            self._writer = pq.ParquetWriter(self._sink, self._schema, metadata_collector=self._footers, **options)
        if writing.footer:
            self._writer.add_key_value_metadata(dict(writing.footer))
        self.rows = self._checksum = 0

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def write(self, rows: pa.Table) -> None:
        named = renamed(rows, self._schema)
        with naming(self._path, doing="write"):
            self._writer.write_table(named, row_group_size=max(rows.num_rows, 1))
        self._metrics.add(named)
        self.rows += rows.num_rows

    def add_to_checksum(self, rows: pa.Table) -> None:
        self._checksum = (self._checksum + row_checksum(rows, self._partition)) % MODULUS

    def close(self) -> Written:
        """Finish the file and flush it to disk, before a commit names it."""
        with naming(self._path, doing="write"):
            self._writer.close()
            size = self.size
            self._sink.close()
            flush_file(self._path)
        (footer,) = self._footers
        columns = self._metrics.columns(footer)
        refuse_hidden_nans(self._path, footer, columns)
        return Written(self._path, size, self.rows, self._partition, columns, self._checksum)

    def abandon(self) -> None:
        for closed in (self._writer, self._sink):
            with suppress(Exception):  # closing writes, too; its error must not hide why the file is given up
                closed.close()


def renamed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give columns the names, ids and nullability of the file's schema; nested columns are cast to its types."""
    columns = [
        column if column.type.equals(field.type, check_metadata=True) else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _options(writing: Writing, layout: Layout, first: pa.Table, odd: Odd = Odd()) -> dict[str, Any]:  # noqa: B008 - frozen
    paths = leaf_paths(writing.schema)
    with_nan, with_zero = ({paths[number].path for number in leaves} for leaves in (odd.nans, odd.zeros))
    chosen = writing.packing.encodings if writing.packing is not None else {}
    options: dict[str, Any] = {
        "write_statistics": [leaf.path for leaf in paths if leaf.path not in with_nan] if with_nan else True,
        "compression": writing.compression or "zstd",
        "compression_level": writing.compression_level,
        "use_dictionary": [
            leaf.path
            for leaf in paths
            if leaf.path not in with_zero
            and (encoding := chosen.get(leaf.path)) in (None, DICTIONARY)
            and _pays(first.column(leaf.column), CHOSEN_SHARE if encoding else PAYING_SHARE)
        ],
        "store_schema": False,
        "store_decimal_as_integer": True,
        "write_page_index": True,
    }
    if encodings := {path: encoding for path, encoding in chosen.items() if encoding not in (DICTIONARY, PLAIN)}:
        options["column_encoding"] = encodings
    if layout.kind == "linear":
        at = {leaf.path: number for number, leaf in enumerate(paths)}
        options["sorting_columns"] = [
            pq.SortingColumn(at[_dotted(writing.schema, first.schema, name)], nulls_first=True)
            for name in layout.columns
        ]
    if writing.bloom_columns:
        options["bloom_filter_options"] = {column: {"ndv": max(first.num_rows, 1)} for column in writing.bloom_columns}
    return options


def _dotted(schema: pa.Schema, read: pa.Schema, name: str) -> str:
    """Return the path in the file of a column that has this name in the schema it was read with."""
    position, *rest = find(read, name)
    field = schema.field(position)
    names = [field.name]
    for child in rest:
        field = field.type.field(child)
        names.append(field.name)
    return ".".join(names)


class LeafPath(NamedTuple):
    """A leaf of a Parquet file."""

    path: str
    """As in the file's footer."""
    column: int
    """Number of the top-level column that the leaf belongs to."""


@lru_cache(maxsize=8)
def leaf_paths(schema: pa.Schema) -> tuple[LeafPath, ...]:
    """Return the path that Parquet gives each leaf, in order."""
    footers: list[pq.FileMetaData] = []
    paths: list[LeafPath] = []
    for number, field in enumerate(schema):
        footers.clear()
        pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field]), metadata_collector=footers).close()
        leaves = footers[0].schema
        paths += (LeafPath(leaves.column(leaf).path, number) for leaf in range(len(leaves)))
    return tuple(paths)


def _pays(column: pa.ChunkedArray, share: float) -> bool:
    """Tell whether a dictionary saves space: at most this share of the column's first values are distinct."""
    values = column.slice(0, DICTIONARY_ROWS)
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.cast(values.type.storage_type)
    if not len(values):
        return True
    try:
        distinct: int = pc.count_distinct(values).as_py()
    except pa.ArrowNotImplementedError:  # nested types, dictionaries, views
        return True
    return distinct <= len(values) * share
