"""Open Iceberg tables from a catalog or a metadata file, with PyIceberg's catalogs and file access."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot as PyIcebergSnapshot

from zonal.cleaning.retention import Retention
from zonal.cleaning.spares import Spares
from zonal.errors import TableError, quoted, suggestion
from zonal.layouts.layout import Layout
from zonal.plan.append import Append, Appending, PartitionValues
from zonal.plan.rewrite import NewDeletes, Rewrite, Scan, Writing
from zonal.snapshot import Commit, Physical, Snapshot, refuse_impossible
from zonal.storage import Storage, refuse_special
from zonal.storage.options import for_pyiceberg
from zonal.tables.iceberg.append import appending_of, commit_append, last_transaction
from zonal.tables.iceberg.arrow_schema import arrow_schema
from zonal.tables.iceberg.bounds import fields, leaves
from zonal.tables.iceberg.catalogs import LOADING, find_catalog, in_time, nearest, split_catalog
from zonal.tables.iceberg.commit import Target, commit_rewrite, files_since
from zonal.tables.iceberg.conflicts import TAKES_POSITIONS
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.expiry import expire
from zonal.tables.iceberg.files import blockers_of, field_text, files_of, set_fields
from zonal.tables.iceberg.io import lend, opened_by_storage
from zonal.tables.iceberg.layout_commit import record
from zonal.tables.iceberg.live_files import LiveFiles, ManifestCache, read_live
from zonal.tables.iceberg.operations import commit_of, time_of
from zonal.tables.iceberg.scan import global_specs, scan
from zonal.tables.iceberg.settings import storage_of, writing_of
from zonal.tables.iceberg.spare_files import needed_files, spare_files
from zonal.tables.iceberg.traits import traits_of
from zonal.tables.protocol import Sending, recorded_layout, unheard
from zonal.values.arrays import Int64Array


@dataclass(frozen=True, eq=False)
class _Source:
    """What a snapshot was read from: its rows are read with the schema of that moment, whatever came later."""

    table: PyIcebergTable
    schema: Schema
    live: LiveFiles


class IcebergTable:
    """An Iceberg table as it was when it was loaded.

    Versions are snapshot ids, or names of branches and tags. Commits go to the main branch, or to the branch that the
    version names.
    """

    def __init__(self, name: str, table: PyIcebergTable, *, version: int | str | None = None) -> None:
        self.name = name
        self.table = table
        self._version = version
        self._snapshot, self._schema = _resolve(table, version)
        self._manifests = ManifestCache()
        if not isinstance(table, StaticTable):
            lend(table, self._load)

    @classmethod
    def from_catalog(
        cls,
        identifier: str,
        *,
        catalog: str | None = None,
        catalog_properties: Mapping[str, str] | None = None,
        version: int | str | None = None,
    ) -> "IcebergTable":
        """Load `namespace.table` from a catalog of PyIceberg's configuration, or from the one in `~/.zonal`."""
        identifier, catalog = split_catalog(identifier, catalog)
        opened = find_catalog(catalog, catalog_properties or {})
        try:
            table = in_time(opened.properties, LOADING, lambda: opened.load_table(identifier))
        except (NoSuchTableError, NoSuchNamespaceError):
            raise TableError(
                f"There is no table {quoted(identifier)} in the catalog {quoted(opened.name)}. "
                f"{nearest(opened, identifier)}"
            ) from None
        except Exception as error:  # every catalog brings the errors of its own client
            raise TableError(
                f"Can't load the table {quoted(identifier)} from the catalog {quoted(opened.name)}: {what_of(error)}"
            ) from error
        return cls(identifier, table, version=version)

    @classmethod
    def from_metadata(
        cls, location: str, *, version: int | str | None = None, properties: Mapping[str, str] | None = None
    ) -> "IcebergTable":
        """Load the table that a `…metadata.json` file describes; `properties` are those of PyIceberg's file access."""
        try:
            table = StaticTable.from_metadata(location, opened_by_storage(for_pyiceberg(properties or {})))
        except FileNotFoundError:
            raise TableError(f"There is no metadata file {quoted(location, limit=300)}.") from None
        except Exception as error:  # damaged metadata goes wrong in any way
            raise TableError(f"Can't read the metadata file {quoted(location, limit=300)}: {what_of(error)}") from error
        return cls(location, table, version=version)

    def snapshot(self) -> Snapshot:
        """Read the manifests of the version; a file that can't be read is a `TableError` that names it."""
        metadata = self.table.metadata
        _refuse_host(metadata.location)
        live = self._read_live(set(leaves(self._schema)))
        commits = {entry.snapshot_id: commit_of(entry) for entry in metadata.snapshots}
        files = files_of(live, metadata, self._schema, commits)
        refuse_impossible(files, self.name, fewest_rows=0)
        layout, problems = recorded_layout(metadata.properties)
        schema = arrow_schema(self._schema)
        return Snapshot(
            name=self.name,
            format="iceberg",
            location=metadata.location,
            version=self._snapshot.snapshot_id if self._snapshot else None,
            time=time_of(self._snapshot.timestamp_ms) if self._snapshot else None,
            schema=schema,
            partitioning=tuple(field_text(field, self._schema) for field in set_fields(metadata.spec())),
            files=files,
            physical={name: Physical(name, field.field_id) for name, field in fields(self._schema).items()},
            layout=layout,
            properties=dict(metadata.properties),
            commits=commits,
            traits=traits_of(self.name, schema, metadata.properties),
            blockers=tuple(blockers_of(metadata, self._schema, live)),
            problems=problems,
            source=_Source(self.table, self._schema, live),
        )

    def _read_live(self, columns: set[int]) -> LiveFiles:
        manifest_list = self._snapshot.manifest_list if self._snapshot else None
        specs = global_specs(self.table.metadata.specs())
        return read_live(self.table.io, manifest_list, global_specs=specs, columns=columns, cache=self._manifests)

    def newest(self) -> "IcebergTable":
        """Load the table again; a branch stays the branch, and a tag or a snapshot becomes the main branch."""
        branch = self._version if isinstance(self._version, str) and self._branch() is not None else None
        if isinstance(self.table, StaticTable):
            return self if self._version is None else self._with(self.table, None)
        return self._with(self._load(), branch)

    @property
    def pinned(self) -> bool:
        """Whether a snapshot, a tag or a branch was asked for; see `Versioned`."""
        return self._version is not None

    def at(self, version: int) -> "IcebergTable":
        """Return the table pinned to a snapshot, with the schema that it was written with; see `Versioned`."""
        return self._with(self.table, version)

    def _with(self, table: PyIcebergTable, version: int | str | None) -> "IcebergTable":
        """Return another version of the table, which shares the manifests that were read."""
        other = IcebergTable(self.name, table, version=version)
        other._manifests = self._manifests
        return other

    def versions(self) -> tuple[Commit, ...]:
        """Return the snapshot and its ancestors, as far as they haven't expired; see `Versioned`.

        What was rolled back, and what other branches did, is not among them.
        """
        known = {entry.snapshot_id: entry for entry in self.table.metadata.snapshots}
        line, entry = dict[int, Commit](), self._snapshot
        while entry is not None and entry.snapshot_id not in line:  # damaged metadata may go round in circles
            line[entry.snapshot_id] = commit_of(entry)
            entry = known.get(entry.parent_snapshot_id) if entry.parent_snapshot_id is not None else None
        return tuple(reversed(line.values()))

    def scan(self, snapshot: Snapshot, files: Int64Array, *, columns: Sequence[str] | None = None) -> Scan:
        """Return what workers need to read the rows of these files; see `Rewritable.scan`."""
        source = self._source(snapshot)
        return scan(
            source.table.metadata,
            source.schema,
            source.live,
            snapshot,
            files,
            columns=columns,
            storage=storage_of(source.table),
        )

    def writing(self, snapshot: Snapshot, *, layout: Layout, run: str, compression: str | None = None) -> Writing:
        """Return how files that replace others are written; see `Rewritable.writing`."""
        self._committed_to()
        source = self._source(snapshot)
        return writing_of(self.name, source.table, source.schema, layout=layout, run=run, compression=compression)

    def commit(self, rewrite: Rewrite, *, sending: Sending = unheard) -> int:
        """Replace files in one `replace` snapshot and return its id; see `Rewritable.commit`."""
        target = Target(self.name, self._committed_to(), self._load)
        carried = None if rewrite.carried is None else self._source(rewrite.carried.seen).live.deletes
        schema = self._source(rewrite.base).schema
        return commit_rewrite(target, rewrite, schema=schema, carried=carried, sending=sending)

    def new_deletes(self, snapshot: Snapshot, writing: Writing) -> NewDeletes | None:
        """Return where position deletes of new files go; see `CarriesDeletes`."""
        allowed = self._source(snapshot).table.metadata.format_version == TAKES_POSITIONS
        return NewDeletes("positions", writing.folder) if allowed else None

    def record(self, layout: Layout, base: Snapshot) -> None:
        """Record a layout in the table's properties; see `Rewritable`."""
        self._committed_to()
        record(self.name, self._load, self._source(base).table.metadata, layout)

    def appending(self, snapshot: Snapshot, *, layout: Layout, run: str, compression: str | None = None) -> Appending:
        """Return how rows become files of the table; see `Appendable`."""
        if snapshot.blockers:
            raise TableError(f"Rows can't be appended to {quoted(self.name)}: {' '.join(snapshot.blockers)}")
        writing = self.writing(snapshot, layout=layout, run=run, compression=compression)
        source = self._source(snapshot)
        return appending_of(self.name, source.table, source.schema, writing)

    def folders(self, snapshot: Snapshot, partitions: Sequence[PartitionValues]) -> tuple[str, ...]:  # noqa: ARG002
        """Return nothing: new files lie in the run's own folder; see `Appendable`."""
        return ()

    def append(self, append: Append, *, sending: Sending = unheard) -> int:
        """Add files in one `append` snapshot and return its id; see `Appendable`."""
        target, source = Target(self.name, self._committed_to(), self._load), self._source(append.base)
        return commit_append(target, append, table=source.table, schema=source.schema, sending=sending)

    def last_transaction(self, snapshot: Snapshot, application: str) -> int | None:
        """Return the last version of an application in the snapshot's ancestry; see `Appendable`."""
        metadata = self._source(snapshot).table.metadata
        head = None if snapshot.version is None else metadata.snapshot_by_id(snapshot.version)
        return last_transaction(metadata, self._committed_to(), head, application)

    def refers_to(self, change: Rewrite | Append) -> set[str]:
        """Return those of a change's new files that a snapshot since its base has; see `Rewritable.refers_to`."""
        return files_since(self._load(), change)

    def place(self) -> Storage:
        """Return the table's folder; see `Cleanable`."""
        return storage_of(self.table)

    def spare(self, retention: Retention) -> Spares:
        """Return the files that no snapshot needs which is kept; see `Cleanable`."""
        self._committed_to()
        return spare_files(self._load(), retention, self.name)

    def needed(self, retention: Retention) -> set[str]:
        """Return the files that the snapshots need which are kept; see `Cleanable`."""
        return needed_files(self._load(), retention)

    def expire(self, retention: Retention) -> tuple[int, ...]:
        """Remove expired snapshots from the metadata; see `Expirable`."""
        self._committed_to()
        return expire(self.name, self._load, retention)

    def _branch(self) -> str | None:
        """Return the branch that the version names; None for a tag or a snapshot."""
        if self._version is None:
            return MAIN_BRANCH
        ref = self.table.metadata.refs.get(self._version) if isinstance(self._version, str) else None
        return str(self._version) if ref and ref.snapshot_ref_type == SnapshotRefType.BRANCH else None

    def _committed_to(self) -> str:
        if isinstance(self.table, StaticTable):
            raise TableError(
                f"{quoted(self.name, limit=300)} is a metadata file, to which nothing can be committed. Name the table "
                "in its catalog, as in iceberg:namespace.table."
            )
        branch = self._branch()
        if branch is None:
            raise TableError(
                f"{quoted(str(self._version))} of {quoted(self.name)} is a tag or a snapshot, which never change. "
                "Leave it out to rewrite the table, or name a branch."
            )
        return branch

    def _load(self) -> PyIcebergTable:
        try:
            catalog = self.table.catalog
            return in_time(catalog.properties, LOADING, lambda: catalog.load_table(self.table.name()))
        except (NoSuchTableError, NoSuchNamespaceError):
            raise TableError(f"The table {quoted(self.name)} has been dropped.") from None
        except Exception as error:
            raise TableError(f"Can't load the table {quoted(self.name)} again: {what_of(error)}") from error

    def _source(self, snapshot: Snapshot) -> _Source:
        """Return what a snapshot of this table was read from, or an equal one."""
        if isinstance(snapshot.source, _Source) and snapshot.name == self.name:
            return snapshot.source
        current = self._snapshot.snapshot_id if self._snapshot else None
        if current != snapshot.version or not arrow_schema(self._schema).equals(snapshot.schema):
            raise TableError(f"The snapshot {snapshot.version} was not read from this {quoted(self.name)}.")
        return _Source(self.table, self._schema, self._read_live(set()))

    def open_file(self, path: str) -> pa.NativeFile:
        """Open a file through the table's own file access, with the credentials that the catalog gave it."""
        try:
            refuse_special(path)
            stream = self.table.io.new_input(path).open()
        except FileNotFoundError:
            raise TableError(f"The file {quoted(path, limit=300)} of {quoted(self.name)} doesn't exist.") from None
        except Exception as error:  # object stores raise errors of their own
            raise TableError(f"Can't open the file {quoted(path, limit=300)}: {what_of(error)}") from error
        return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")


def _refuse_host(location: str) -> None:
    """Refuse `file://localhost/x`, which is `/x` to others and `localhost/x` below the current folder to PyIceberg."""
    if location[:7].lower() == "file://" and location[7:8] != "/":
        raise TableError(
            f"PyIceberg can't find a table at {quoted(location, limit=300)}: it takes the machine's name for a folder. "
            "Give the table a location with three slashes, as in file:///path."
        )


# --- versions ------------------------------------------------------------------------------------------------------


def _resolve(table: PyIcebergTable, version: int | str | None) -> tuple[PyIcebergSnapshot | None, Schema]:
    """Find a version and its schema: a branch is read with the table's, a tag or a snapshot with its own.

    So do Iceberg's other readers; see "Table Metadata Fields" of the specification on `schema-id` of snapshots.
    """
    metadata = table.metadata
    if version is None:
        return table.current_snapshot(), table.schema()
    ref = metadata.refs.get(version) if isinstance(version, str) else None
    number = int(version) if isinstance(version, int) or re.fullmatch(r"[0-9]{1,19}", version) else None
    snapshot_id = ref.snapshot_id if ref else number
    snapshot = metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else None
    if snapshot is None:
        known = list(metadata.refs) if isinstance(version, str) and number is None else _ids(table)
        raise TableError(
            f"Unknown version {quoted(str(version))}: not a branch, a tag or a snapshot. "
            f"{suggestion(str(version), known)}"
        )
    own = metadata.schema_by_id(snapshot.schema_id) if snapshot.schema_id is not None else None
    branch = ref is not None and ref.snapshot_ref_type == SnapshotRefType.BRANCH
    return snapshot, table.schema() if branch or own is None else own


def _ids(table: PyIcebergTable) -> list[str]:
    return [str(snapshot.snapshot_id) for snapshot in reversed(table.metadata.snapshots)]
