"""Values of a rewrite: what workers need to read and write files, what they wrote, and what a commit replaces."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from zonal.layouts.layout import Encodings, Layout
from zonal.plan.pack import Packing
from zonal.snapshot import Snapshot
from zonal.storage import Storage
from zonal.values.arrays import Int64Array

FIELD_ID = b"PARQUET:field_id"
"""Key of a field's id in the metadata of Arrow fields, as pyarrow reads and writes it."""


@dataclass(frozen=True)
class Vector:
    """A deletion vector: magic number and 64-bit roaring bitmap, as Delta and Iceberg both store it.

    In a file it is framed by four bytes of length (big-endian) before it and its CRC-32 (big-endian) after it, all of
    which `size` counts; `inline` holds the bytes without a frame.
    """

    rows: int
    """Positions in it."""
    location: str | None = None
    offset: int = 0
    size: int = 0
    inline: bytes | None = None


@dataclass(frozen=True)
class DeleteFile:
    """A Parquet file with `file_path` and `pos` of the deleted rows of one data file: Iceberg's position deletes."""

    location: str
    size: int
    rows: int
    """Positions in it."""


@dataclass(frozen=True)
class EqualityDelete:
    """A Parquet file whose rows delete the rows that are equal to them in some columns; null equals null."""

    location: str
    field_ids: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """A data file to read, and its deletes."""

    number: int
    """The file's position in the snapshot's files."""
    path: str
    size: int
    rows: int
    """Rows in the file, deleted ones included, or UNKNOWN."""
    partition: int
    """Number of its partition in the snapshot."""
    vector: Vector | None = None
    position_deletes: tuple[str, ...] = ()
    """Parquet files with `file_path` and `pos`; only the rows whose `file_path` is this file's path count."""
    equality_deletes: tuple[EqualityDelete, ...] = ()
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    """Values of top-level columns that the metadata gives, whatever the file holds, by name in the reading schema."""
    first_row_id: int | None = None
    """Id of the file's first row, for rows whose id the file doesn't hold."""
    row_version: int | None = None
    """Sequence number or version of rows for which the file doesn't hold one."""


@dataclass(frozen=True)
class Reading:
    """How rows are read from the files of one table, whatever schema each file was written with."""

    schema: pa.Schema
    """The schema of the rows that are read; with `by_id` every field, at every level, has its id in the metadata."""
    by_id: bool = False
    """Find columns by field id; else by name."""
    aliases: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names of each field id in files without ids (Iceberg's name mapping)."""
    defaults: Mapping[int, pa.Scalar] = field(default_factory=dict)
    """Value of a field, by id, in files that lack it; null where there is none."""
    row_id: str | None = None
    """Name of the schema's column of row ids, where the table tracks rows."""
    row_version: str | None = None
    """Name of the schema's column with the version in which each row changed last."""


@dataclass(frozen=True)
class Property:
    """A table property that a commit sets, and what it was before."""

    name: str
    value: str
    before: str | None = None


@dataclass(frozen=True)
class Writing:
    """How new files are written."""

    folder: str
    """Location of the run's own folder; nothing is written outside of it."""
    storage: Storage
    schema: pa.Schema
    """The reading schema's columns in the same order; names, nullability and field ids may differ."""
    compression: str | None = "zstd"
    """A name of `zonal.parquet.codecs.CODECS`, or None for the codec of the files that are replaced."""
    compression_level: int | None = None
    subfolders: tuple[str, ...] = ()
    """Folder of each partition below `folder`; empty where all files are in `folder` itself."""
    bloom_columns: tuple[str, ...] = ()
    """Dotted paths in the schema."""
    footer: Mapping[str, str] = field(default_factory=dict)
    """Key-value metadata of every file."""
    properties: tuple[Property, ...] = ()
    """Properties that the commit sets so that readers use the key columns' statistics."""
    encodings: Encodings = "plain"
    """Encodings that readers of the new files know."""
    packing: Packing | None = None
    """Order and encodings inside of row groups; None: the key's order, and dictionaries where they pay."""
    log: str | None = None
    """Folder to which a commit adds a file whose name must be free; None where a catalog or a rename commits."""


@dataclass(frozen=True, eq=False)
class Scan:
    """Everything that workers need to read some files of a table."""

    sources: tuple[Source, ...]
    reading: Reading
    columns: Mapping[str, str]
    """Dotted path in the reading schema of each leaf column of the table's own schema."""
    storage: Storage


@dataclass(frozen=True)
class ColumnMetrics:
    """Statistics of one leaf column in a new file."""

    path: str
    """Parquet's path in the schema, such as `geo.lat` or `tags.list.element`."""
    size: int
    values: int
    """Values, nulls included."""
    nulls: int
    nans: int
    lower: pa.Scalar | None
    """Least value that is neither null nor NaN, exact; None where there is none or the type has no order."""
    upper: pa.Scalar | None


@dataclass(frozen=True, eq=False)
class Written:
    """A new file."""

    path: str
    size: int
    rows: int
    partition: int
    """Number of its partition in the snapshot."""
    columns: tuple[ColumnMetrics, ...]
    """In the order of the schema's leaves."""
    checksum: int = 0
    """Of its rows, with their partition; see `zonal.values.checksum`."""


@dataclass(frozen=True)
class ReadTally:
    """What a worker read of one file, or of a part of it."""

    source: int
    """The file's position in the snapshot's files."""
    read: int
    """Rows read, deleted ones included."""
    live: int
    """Rows passed on."""
    checksum: int = 0
    """Of all rows that the task passed on, with their partitions, in one of its tallies; else 0."""


@dataclass(frozen=True)
class NewDeletes:
    """How deletes of new files are stored."""

    kind: Literal["vectors", "positions"]
    """Deletion vectors, all in one file, or one file of positions per data file."""
    location: str
    """The file of the vectors, or the folder of the files of positions."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Deletes that other writers added to replaced files meanwhile, as deletes of rows of the new files."""

    seen: Snapshot
    """The version whose deletes of the replaced files are carried; a commit on a later one must find the same."""
    positions: Mapping[str, Int64Array]
    """Deleted positions of new files, ascending, by path."""
    stored: Mapping[str, Vector | DeleteFile]
    """Where they are stored, by path of the new file."""

    @property
    def rows(self) -> int:
        """Return how many rows they delete."""
        return sum(map(len, self.positions.values()))

    @property
    def vectors(self) -> dict[str, Vector]:
        """Return those that are deletion vectors."""
        return {path: each for path, each in self.stored.items() if isinstance(each, Vector)}

    @property
    def files(self) -> dict[str, DeleteFile]:
        """Return those that are files of positions."""
        return {path: each for path, each in self.stored.items() if isinstance(each, DeleteFile)}

    def of(self, paths: Collection[str]) -> "Carried":
        """Return the deletes of these new files alone."""
        positions = {path: each for path, each in self.positions.items() if path in paths}
        return Carried(self.seen, positions, {path: self.stored[path] for path in positions})


@dataclass(frozen=True, eq=False)
class Rewrite:
    """What one commit does: files of `base` out, new files with the same rows in."""

    base: Snapshot
    removed: Int64Array
    """Positions in the files of `base`."""
    added: tuple[Written, ...]
    layout: Layout
    run: str
    properties: tuple[Property, ...] = ()
    """Properties that the commit sets: `Writing.properties`, or none."""
    carried: Carried | None = None
    """Deletes that the new files begin with; None where the replaced files must be as in `base`."""
