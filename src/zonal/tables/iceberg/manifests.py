"""Read manifest lists and manifests entry by entry, with what each file inherits.

Manifests are decoded here instead of by PyIceberg: its compiled decoder reads beyond the end of a damaged file, its
scan planning fails on equality deletes, and it leaves out the fields of format version 3. Files are mappings by Iceberg
field id, as they are stored; `live_files` puts what a snapshot keeps of them into arrays.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from pyiceberg.io import FileIO

from zonal.errors import TableError, quoted
from zonal.storage import refuse_special
from zonal.storage.causes import store_in, told
from zonal.tables.iceberg.avro import records
from zonal.tables.iceberg.deletes import Delete, HashedPartition, delete_of, partition_key
from zonal.tables.iceberg.field_ids import (
    ADDED_BY,
    ADDED_FILES,
    ADDED_ROWS,
    CONTENT,
    CONTENT_SIZE,
    DATA,
    DATA_FILE,
    DELETED_ENTRY,
    DELETED_FILES,
    DELETED_ROWS,
    EXISTING_FILES,
    EXISTING_ROWS,
    FILE_SEQUENCE,
    FIRST_ROW_ID,
    FORMAT,
    MANIFEST_CONTENT,
    MANIFEST_FIRST_ROW_ID,
    MANIFEST_KEY,
    MANIFEST_PATH,
    MANIFEST_SEQUENCE,
    PATH,
    RECORDS,
    SEQUENCE_NUMBER,
    SIZE,
    SNAPSHOT_ID,
    SPEC_ID,
    STATUS,
    Fields,
)
from zonal.tables.iceberg.io import read_whole

READERS = 8
"""Manifests that are fetched at the same time; object stores answer slowly, but many at once."""
_COUNTS = {ADDED_FILES: ADDED_ROWS, EXISTING_FILES: EXISTING_ROWS, DELETED_FILES: DELETED_ROWS}


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
    def key(self) -> HashedPartition:
        """Return its partition spec and partition values, hashable."""
        return partition_key(self.spec_id, self.file)

    @property
    def is_data(self) -> bool:
        """Tell whether it is a data file; else it is a delete file or a deletion vector."""
        return self.file.get(CONTENT) in (None, DATA)

    @property
    def delete(self) -> Delete:
        """Return what it deletes, if it is a delete file or a deletion vector."""
        return delete_of(self.file, self.spec_id, self.sequence)


class Contents(NamedTuple):
    """A manifest: its line in the manifest list, and its live files."""

    line: Fields
    entries: Sequence[ManifestEntry]

    @property
    def path(self) -> str:
        """Return the location of the manifest as it is stored."""
        return str(self.line[MANIFEST_PATH])

    @property
    def holds_data(self) -> bool:
        """Tell whether it lists data files; else it lists delete files."""
        return self.line.get(MANIFEST_CONTENT) in (None, DATA)


KnownEntries = dict[tuple[object, ...], Sequence[ManifestEntry]]
"""Entries of manifests that were read, by `identity`."""


def identity(line: Fields) -> tuple[object, ...]:
    """Return what a manifest's entries are known by: its path, since it never changes, and what they inherit.

    The first row id is given to a manifest only when a table of format version 3 is committed to.
    """
    inherited = (SPEC_ID, MANIFEST_SEQUENCE, ADDED_BY, MANIFEST_FIRST_ROW_ID, MANIFEST_KEY)
    return (line[MANIFEST_PATH], *map(line.get, inherited))


def read_contents(io: FileIO, manifest_list: str | None, known: KnownEntries | None = None) -> list[Contents]:
    """Read all manifests of a snapshot, in order; `known` keeps those that were read.

    A file that can't be read is a `TableError` that names it.
    """
    lines = read_lines(io, manifest_list)
    known = {} if known is None else known
    missing = [line for line in lines if identity(line) not in known]
    for contents in stream_contents(io, missing):
        known[identity(contents.line)] = contents.entries
    return [Contents(line, known[identity(line)]) for line in lines]


def stream_contents(io: FileIO, lines: Sequence[Fields]) -> Iterator[Contents]:
    """Yield manifests in order, each of which may be forgotten before the next one is decoded."""
    paths = [str(line[MANIFEST_PATH]) for line in lines]
    for data, line in zip(_fetched(io, paths), lines, strict=True):
        yield Contents(line, _entries(data, line))


def read_lines(io: FileIO, manifest_list: str | None) -> list[Fields]:
    """Read a manifest list: one line per manifest."""
    if manifest_list is None:
        return []
    with naming(manifest_list):
        lines = list(records(_fetch(io, manifest_list)))
        for line in lines:
            _check_texts(line, MANIFEST_PATH)
            int(line[SPEC_ID])
    return lines


def _fetched(io: FileIO, paths: Sequence[str]) -> Iterator[bytes]:
    """Fetch files in order, some at once; decoding them in threads as well would only be slower."""
    with ThreadPoolExecutor(READERS) as pool:
        for start in range(0, len(paths), READERS):
            yield from pool.map(partial(_fetch, io), paths[start : start + READERS])


def _fetch(io: FileIO, path: str) -> bytes:
    with naming(path):
        refuse_special(path)
        return read_whole(io, path)


def _entries(data: bytes, line: Fields) -> list[ManifestEntry]:
    with naming(str(line[MANIFEST_PATH])):
        return list(_decoded(data, line))


def _decoded(data: bytes, line: Fields) -> Iterator[ManifestEntry]:
    """Decode live entries; "Sequence Number Inheritance" and "First Row ID Inheritance" of the specification."""
    # Manifests of version 1 have no sequence number and count as 0.
    spec_id, sequence, snapshot_id = int(line[SPEC_ID]), line.get(MANIFEST_SEQUENCE) or 0, line.get(ADDED_BY)
    next_row_id = line.get(MANIFEST_FIRST_ROW_ID)
    for record in records(data):
        if record[STATUS] == DELETED_ENTRY:
            continue
        file = record[DATA_FILE]
        _check_texts(file, PATH, FORMAT)
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


def _check_texts(record: Fields, *fields: int) -> None:
    for field in fields:
        if not isinstance(record[field], str):
            raise TypeError(f"{record[field]!r} stands where a text should")


def data_entries(contents: Sequence[Contents]) -> list[ManifestEntry]:
    """List the data files."""
    return [entry for part in contents for entry in part.entries if entry.is_data]


def delete_entries(contents: Sequence[Contents]) -> list[ManifestEntry]:
    """List the delete files and deletion vectors."""
    return [entry for part in contents for entry in part.entries if not entry.is_data]


def counted(io: FileIO, line: Fields) -> Fields:
    """Add the counts of files and rows that lines of version 1 may lack and later versions ask for."""
    if all(line.get(field) is not None for field in (*_COUNTS, *_COUNTS.values())):
        return line
    path = str(line[MANIFEST_PATH])
    counts = dict.fromkeys((*_COUNTS, *_COUNTS.values()), 0)
    with naming(path):
        for record in records(_fetch(io, path)):
            field = (EXISTING_FILES, ADDED_FILES, DELETED_FILES)[record[STATUS]]
            counts[field] += 1
            counts[_COUNTS[field]] += record[DATA_FILE][RECORDS]
    return {**line, **counts}


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
