"""Which files of an Iceberg table nobody needs: those of expired snapshots that no other snapshot has.

Expired snapshots are known from older metadata files, which the table's own metadata lists, so that files which a
broken run left, or another tool's expiry, are found with the same proof as those that expire now. Metadata files stay.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from zonal.cleaning.enclosure import StoredFile, inside, look, spelled, spellings
from zonal.cleaning.retention import Retention
from zonal.cleaning.run_folders import leftovers
from zonal.cleaning.spares import Spare, Spares
from zonal.errors import TableError, quoted
from zonal.storage import Storage
from zonal.tables.hive_folders import is_hidden
from zonal.tables.iceberg.expiry import expiring, promises, refuse_shared
from zonal.tables.iceberg.field_ids import MANIFEST_PATH, Fields
from zonal.tables.iceberg.files import data_location
from zonal.tables.iceberg.manifests import READERS, Contents, identity, naming, read_lines, stream_contents
from zonal.tables.iceberg.operations import time_of
from zonal.tables.iceberg.settings import storage_of

_OF = "of expired snapshots"
DATA, DELETES, STATISTICS = f"data files {_OF}", f"delete files {_OF}", f"statistics {_OF}"
MANIFESTS, LISTS = f"manifests {_OF}", f"manifest lists {_OF}"
_ORDER = (DATA, DELETES, STATISTICS, MANIFESTS, LISTS)
"""What is moved first; what proves that a file is spare goes after it."""


def spare_files(table: Table, retention: Retention, name: str) -> Spares:
    """Return what nobody needs, as if expired snapshots were removed already, and what is left."""
    metadata = table.metadata
    refuse_shared(name, metadata)
    retention.hold(name, promises(metadata))
    found = _Look(table, storage_of(table), expiring(metadata, retention))
    expired, notes = found.expired()
    left, more = _left(found, retention)
    return Spares((*left, *expired), found.ids, notes=(*notes, *more))


def needed_files(table: Table, retention: Retention) -> set[str]:
    """Return the spellings of all files that snapshots need which are kept."""
    return _Look(table, storage_of(table), expiring(table.metadata, retention)).needed


def _left(found: "_Look", retention: Retention) -> tuple[list[Spare], list[str]]:
    data = data_location(found.metadata)
    if inside(found.storage.root, f"{data}/x") is None:
        return [], [f"Leftovers in {quoted(data, limit=300)} stay: it isn't in the table's folder."]
    root = f"{found.storage.root}/{inside(found.storage.root, f'{data}/x')}".removesuffix("/x")
    return leftovers(found.storage, root, retention, lambda: found.needed | spelled(found.past_files()))


@dataclass
class _Names:
    """Files by their kind, each with the snapshot that it is known from."""

    of: dict[str, dict[str, Snapshot]] = field(default_factory=lambda: {kind: {} for kind in _ORDER})

    def add(self, kind: str, path: str, snapshot: Snapshot) -> None:
        self.of[kind].setdefault(path, snapshot)


class _Look:
    """A table whose expired snapshots are told from the others, and what both refer to."""

    def __init__(self, table: Table, storage: Storage, ids: tuple[int, ...]) -> None:
        self.table, self.metadata, self.storage, self.ids = table, table.metadata, storage, ids
        self.notes: list[str] = []
        self._past: list[TableMetadata] | None = None
        self._gone: _Names | None = None
        self._needed: set[str] | None = None

    @property
    def needed(self) -> set[str]:
        """Return the spellings of all files that snapshots which are kept need, and the table itself."""
        if self._needed is None:
            kept = [entry for entry in self.metadata.snapshots if entry.snapshot_id not in self.ids]
            names = _Names()
            lines = _lines(kept, names, lambda path: read_lines(self.table.io, path))
            _note_files(stream_contents(self.table.io, lines), names)
            statistics = (*self.metadata.statistics, *self.metadata.partition_statistics)
            own = [self.table.metadata_location, *(entry.metadata_file for entry in self.metadata.metadata_log)]
            own += [entry.statistics_path for entry in statistics if entry.snapshot_id not in self.ids]
            self._needed = spelled(chain(own, *names.of.values()))
        return self._needed

    def past_files(self) -> Iterator[str]:
        """Yield the files of snapshots that expired, or expire now."""
        yield from chain.from_iterable(self.gone.of.values())

    @property
    def gone(self) -> _Names:
        """Return what expired snapshots refer to, as far as their metadata is still there."""
        if self._gone is None:
            names = self._gone = _Names()
            entries = self._expired_snapshots()
            lines = _lines(entries.values(), names, self._read_lines)
            _note_files(self._read_contents(lines), names)
            for metadata in [self.metadata, *self._past_metadata()]:
                for each in (*metadata.statistics, *metadata.partition_statistics):
                    if each.snapshot_id in entries:
                        names.add(STATISTICS, each.statistics_path, entries[each.snapshot_id])
        return self._gone

    def expired(self) -> tuple[list[Spare], list[str]]:
        """Return the files that only expired snapshots have, and say what stays."""
        candidates: dict[str, tuple[str, Snapshot]] = {}
        outside = 0
        for kind in _ORDER:
            for path, snapshot in self.gone.of[kind].items():
                relative = self._own(path)
                if relative is None:
                    outside += self.needed.isdisjoint(spellings(path))
                elif self.needed.isdisjoint(spellings(path)):
                    candidates.setdefault(relative, (kind, snapshot))
        found = []
        for (relative, (kind, snapshot)), seen in zip(
            candidates.items(), look(self.storage, list(candidates)), strict=True
        ):
            if isinstance(seen, StoredFile):
                found.append(Spare(relative, seen.size, kind, _why(snapshot)))
            elif seen is not None:
                self.notes.append(f"{quoted(relative, limit=300)} stays: {seen}.")
        if outside:
            self.notes.append(
                f"{outside:,} files of expired snapshots stay: they don't lie in the table's folder "
                f"{quoted(self.storage.root, limit=300)}, or in a hidden one."
            )
        return found, self.notes

    # --- expired snapshots ---

    def _expired_snapshots(self) -> dict[int, Snapshot]:
        """Return the snapshots that expire now, and those that only older metadata knows."""
        found = {entry.snapshot_id: entry for entry in self.metadata.snapshots if entry.snapshot_id in self.ids}
        current = {entry.snapshot_id for entry in self.metadata.snapshots}
        for metadata in self._past_metadata():
            for entry in metadata.snapshots:
                if entry.snapshot_id not in current:
                    found.setdefault(entry.snapshot_id, entry)
        return found

    def _past_metadata(self) -> list[TableMetadata]:
        """Read the older metadata of this table that is still there."""
        if self._past is None:
            paths = [entry.metadata_file for entry in self.metadata.metadata_log]
            there = [path for path in paths if self._is_there(path)]
            with ThreadPoolExecutor(READERS) as pool:
                found = list(pool.map(self._read_metadata, there))
            self._past = [each for each in found if each is not None]
        return self._past

    def _read_metadata(self, path: str) -> TableMetadata | None:
        try:
            with naming(path):
                metadata = FromInputFile.table_metadata(self.table.io.new_input(path))
        except TableError as error:
            self._cant_tell(error)
            return None
        return metadata if metadata.table_uuid == self.metadata.table_uuid else None

    def _read_lines(self, path: str) -> list[Fields]:
        """Read the manifest list of an expired snapshot; empty where somebody has removed it."""
        try:
            return read_lines(self.table.io, path) if self._is_there(path) else []
        except TableError as error:
            self._cant_tell(error)
            return []

    def _read_contents(self, lines: Iterable[Fields]) -> Iterator[Contents]:
        """Read manifests of expired snapshots, as far as they are there."""
        return chain.from_iterable(map(self._read_manifest, lines))

    def _read_manifest(self, line: Fields) -> list[Contents]:
        try:
            return list(stream_contents(self.table.io, [line])) if self._is_there(str(line[MANIFEST_PATH])) else []
        except TableError as error:
            self._cant_tell(error)
            return []

    def _cant_tell(self, error: TableError) -> None:
        self.notes.append(f"Files that it names stay: {error}")

    def _is_there(self, path: str) -> bool:
        relative = inside(self.storage.root, path)
        return relative is not None and isinstance(look(self.storage, [relative])[0], StoredFile)

    def _own(self, path: str) -> str | None:
        relative = inside(self.storage.root, path)
        return None if relative is None or is_hidden(relative) else relative


def _lines(snapshots: Iterable[Snapshot], names: _Names, read: Callable[[str], list[Fields]]) -> list[Fields]:
    """Return the lines of the snapshots' manifest lists, each manifest once."""
    found: dict[tuple[object, ...], Fields] = {}
    for snapshot in snapshots:
        names.add(LISTS, snapshot.manifest_list, snapshot)
        for line in read(snapshot.manifest_list):
            names.add(MANIFESTS, str(line[MANIFEST_PATH]), snapshot)
            found.setdefault(identity(line), line)
    return list(found.values())


def _note_files(parts: Iterable[Contents], names: _Names) -> None:
    """Note the files of manifests, one manifest at a time, as of the snapshot that the manifest is known from."""
    for part in parts:
        for entry in part.entries:
            names.add(DATA if entry.is_data else DELETES, entry.path, names.of[MANIFESTS][part.path])


def _why(snapshot: Snapshot) -> str:
    time = time_of(snapshot.timestamp_ms)
    return f"Only expired snapshots have it, such as {snapshot.snapshot_id} of {time:%Y-%m-%d %H:%M} UTC."
