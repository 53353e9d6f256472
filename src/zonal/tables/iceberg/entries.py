"""Manifests entry by entry, with all that they hold: what a scan needs of some files, and what a commit carries over.

Files are mappings by Iceberg field id, as they are stored; `icebergmanifests` reads the same files into arrays.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyiceberg.io import FileIO

from zonal.errors import TableError, quoted
from zonal.tables.iceberg.avro import records
from zonal.tables.iceberg.manifests import (
    ADDED_BY,
    CONTENT,
    DATA,
    DATA_FILE,
    DELETED_ENTRY,
    MANIFEST_CONTENT,
    MANIFEST_PATH,
    MANIFEST_SEQUENCE,
    PATH,
    RECORDS,
    SEQUENCE_NUMBER,
    SIZE,
    SNAPSHOT_ID,
    SPEC_ID,
    STATUS,
    Delete,
    delete_of,
    fetch,
    fetched,
    naming,
    partition_key,
)

Fields = Mapping[int, Any]
"""A record of a manifest or a manifest list, by field id."""

# Field ids, from the tables of "Manifests" and "Manifest Lists" in the specification.
FILE_SEQUENCE, FIRST_ROW_ID, MANIFEST_FIRST_ROW_ID = 4, 142, 520
CONTENT_OFFSET, CONTENT_SIZE, EQUALITY_IDS, SORT_ORDER_ID = 144, 145, 135, 140
ADDED_FILES, EXISTING_FILES, DELETED_FILES, ADDED_ROWS, EXISTING_ROWS, DELETED_ROWS = 504, 505, 506, 512, 513, 514
DELETES = 1
"""Content of a manifest of delete files."""


class ManifestEntry(NamedTuple):
    """A live file, with what it inherits from its manifest."""

    file: Fields
    spec_id: int
    snapshot_id: int | None
    sequence: int
    """Data sequence number."""
    file_sequence: int | None
    first_row_id: int | None

    @property
    def path(self) -> str:
        """Return the location of the file as it is stored."""
        return str(self.file[PATH])

    @property
    def rows(self) -> int:
        """Return the number of its records."""
        return int(self.file[RECORDS])

    @property
    def size(self) -> int:
        """Return its size; of a deletion vector, which shares its file with others, that of the vector."""
        return int(self.file.get(CONTENT_SIZE) or self.file[SIZE])

    @property
    def key(self) -> tuple[object, ...]:
        """Return its partition spec and partition values, hashable."""
        return partition_key(self.spec_id, self.file)

    @property
    def delete(self) -> Delete:
        """Return what it deletes, if it is a delete file or a deletion vector."""
        return delete_of(self.file, self.spec_id, self.sequence)


class Contents(NamedTuple):
    """A manifest: its line in the manifest list, and its live files."""

    line: Fields
    entries: Sequence[ManifestEntry]

    @property
    def holds_data(self) -> bool:
        """Tell whether it lists data files; else it lists delete files."""
        return self.line.get(MANIFEST_CONTENT) in (None, DATA)


def read_contents(
    io: FileIO, manifest_list: str | None, known: dict[str, Sequence[ManifestEntry]] | None = None
) -> list[Contents]:
    """Read all manifests of a snapshot, in order; `known` keeps those that were read, which never change.

    A file that can't be read is a `TableError` that names it.
    """
    if manifest_list is None:
        return []
    with naming(manifest_list):
        lines = list(records(fetch(io, manifest_list)))
        paths = [str(line[MANIFEST_PATH]) for line in lines]
    known = {} if known is None else known
    missing = [(path, line) for path, line in zip(paths, lines, strict=True) if path not in known]
    for data, (path, line) in zip(fetched(io, [path for path, _ in missing]), missing, strict=True):
        with naming(path):
            known[path] = list(_entries(data, line))
    return [Contents(line, known[path]) for path, line in zip(paths, lines, strict=True)]


def _entries(data: bytes, line: Fields) -> Iterator[ManifestEntry]:
    """Decode live entries; "Sequence Number Inheritance" and "First Row ID Inheritance" of the specification."""
    spec_id, sequence, snapshot_id = int(line[SPEC_ID]), line.get(MANIFEST_SEQUENCE) or 0, line.get(ADDED_BY)
    next_row_id = line.get(MANIFEST_FIRST_ROW_ID)
    for record in records(data):
        if record[STATUS] == DELETED_ENTRY:
            continue
        file = record[DATA_FILE]
        if not isinstance(file[PATH], str):
            raise TypeError("a path is not a text")
        first_row_id = file.get(FIRST_ROW_ID)
        if first_row_id is None and next_row_id is not None and file.get(CONTENT) in (None, DATA):
            first_row_id = next_row_id
            next_row_id += file[RECORDS]
        yield ManifestEntry(
            file,
            spec_id,
            _or(record.get(SNAPSHOT_ID), snapshot_id),
            int(_or(record.get(SEQUENCE_NUMBER), sequence)),
            _or(record.get(FILE_SEQUENCE), sequence),
            first_row_id,
        )


def _or(value: Any, inherited: Any) -> Any:  # noqa: ANN401
    return inherited if value is None else value


def data_entries(contents: Sequence[Contents]) -> list[ManifestEntry]:
    """List the data files in the order of `icebergmanifests.read_live`."""
    return [entry for part in contents for entry in part.entries if entry.file.get(CONTENT) in (None, DATA)]


def delete_entries(contents: Sequence[Contents]) -> list[ManifestEntry]:
    """List the delete files and deletion vectors."""
    return [entry for part in contents for entry in part.entries if entry.file.get(CONTENT) not in (None, DATA)]


def counted(io: FileIO, line: Fields) -> Fields:
    """Add the counts of files and rows that lines of version 1 may lack and later versions ask for."""
    if all(line.get(field) is not None for field in (*_COUNTS, *_COUNTS.values())):
        return line
    path = str(line[MANIFEST_PATH])
    counts = dict.fromkeys((*_COUNTS, *_COUNTS.values()), 0)
    with naming(path):
        for record in records(fetch(io, path)):
            field = (EXISTING_FILES, ADDED_FILES, DELETED_FILES)[record[STATUS]]
            counts[field] += 1
            counts[_COUNTS[field]] += record[DATA_FILE][RECORDS]
    return {**line, **counts}


_COUNTS = {ADDED_FILES: ADDED_ROWS, EXISTING_FILES: EXISTING_ROWS, DELETED_FILES: DELETED_ROWS}


def same_files(entries: Sequence[ManifestEntry], paths: Sequence[str], name: str) -> None:
    """Check that a snapshot's files are those that were read before; they are known by their positions."""
    if len(entries) != len(paths) or any(entry.path != path for entry, path in zip(entries, paths, strict=True)):
        raise TableError(f"The snapshot of {quoted(name)} is not one of this table. Read it again.")
