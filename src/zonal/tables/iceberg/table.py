"""Open Iceberg tables from a catalog or a metadata file, with PyIceberg's catalogs and file access."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot as PyIcebergSnapshot
from pyiceberg.utils.config import Config

from zonal.cleaning.retention import Retention
from zonal.cleaning.spares import Spares
from zonal.errors import TableError, option, quoted, suggestion
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Rewrite, Scan, Writing
from zonal.snapshot import Commit, Physical, Snapshot, refuse_impossible
from zonal.storage import Storage, refuse_special
from zonal.storage.causes import hidden
from zonal.storage.connection import PATIENCE, within
from zonal.storage.options import for_pyiceberg
from zonal.tables.iceberg.bounds import arrow_schema, fields, leaves
from zonal.tables.iceberg.commit import Target, commit_rewrite, files_since
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.expiry import expire
from zonal.tables.iceberg.files import blockers_of, field_text, files_of, set_fields
from zonal.tables.iceberg.io import opened_by_storage
from zonal.tables.iceberg.live_files import LiveFiles, ManifestCache, read_live
from zonal.tables.iceberg.operations import commit_of, time_of
from zonal.tables.iceberg.scan import global_specs, scan
from zonal.tables.iceberg.settings import storage_of, writing_of
from zonal.tables.iceberg.spare_files import needed_files, spare_files
from zonal.tables.iceberg.traits import traits_of
from zonal.tables.protocol import Sending, recorded_layout, unheard
from zonal.values.arrays import Int64Array

EMBEDDED_CATALOG = "zonal"
"""Name of the SQLite catalog in `~/.zonal`, the default where PyIceberg has no catalog configured."""

LOADING = 60.0
"""Seconds to wait for a table: its metadata may be large."""
_REMOTE = ("rest", "hive", "glue", "dynamodb", "bigquery")
Result = TypeVar("Result")

_HOW_TO_CONFIGURE = (
    "Name a catalog in ~/.pyiceberg.yaml, or set PYICEBERG_CATALOG__{name}__URI, "
    "or give the path of a …metadata.json file."
)


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
        opened = find_catalog(catalog, catalog_properties or {})
        try:
            table = _in_time(opened.properties, LOADING, lambda: opened.load_table(identifier))
        except (NoSuchTableError, NoSuchNamespaceError):
            raise TableError(
                f"There is no table {quoted(identifier)} in the catalog {quoted(opened.name)}. "
                f"{_nearest(opened, identifier)}"
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
            traits=traits_of(self.name, schema),
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
        return commit_rewrite(target, rewrite, schema=self._source(rewrite.base).schema, sending=sending)

    def refers_to(self, rewrite: Rewrite) -> set[str]:
        """Return those of a rewrite's new files that a snapshot since its base has; see `Rewritable.refers_to`."""
        return files_since(self._load(), rewrite)

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
            return _in_time(catalog.properties, LOADING, lambda: catalog.load_table(self.table.name()))
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


# --- catalogs ------------------------------------------------------------------------------------------------------


def find_catalog(name: str | None, properties: Mapping[str, str], *, create: bool = False) -> Catalog:
    """Open a catalog of PyIceberg's configuration, or the one in `~/.zonal`; `create` makes SQLite files that lack.

    Without a name it is PyIceberg's default, else the only one that is configured.
    """
    try:
        config = Config()  # read now: PyIceberg's own copy is from when it was imported
        name = name or _default(config, properties)
        if name is None or (name == EMBEDDED_CATALOG and _is_embedded(config, properties)):
            return _embedded_catalog(create=create)
        configured = {**(config.get_catalog_config(name) or {}), **for_pyiceberg(properties)}
        if not configured:
            raise TableError(
                f"Unknown catalog {quoted(name)}. {suggestion(name, config.get_known_catalogs())} "
                + _HOW_TO_CONFIGURE.format(name=name.upper())
            )
        return _open_catalog(name, {key: str(value) for key, value in configured.items()}, create=create)
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"Can't open the catalog {quoted(name or 'default')}: {what_of(error)}") from error


def _default(config: Config, properties: Mapping[str, str]) -> str | None:
    """Return the catalog that is meant where none is named; None for the one in `~/.zonal`."""
    named = config.get_default_catalog_name()
    # Properties with an address are a catalog of their own: another one's credentials must not go there.
    if "uri" in properties or config.get_catalog_config(named) is not None:
        return named
    known = config.get_known_catalogs()
    if len(known) > 1:
        shown = ", ".join(map(quoted, known[:8])) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
        raise TableError(f"Several Iceberg catalogs are configured: {shown}. Name one: {option('catalog', known[0])}.")
    return known[0] if known else named if properties else None


def _is_embedded(config: Config, properties: Mapping[str, str]) -> bool:
    """Tell whether the name of the catalog in `~/.zonal` means that one: it is there, and no other is called so."""
    return not properties and config.get_catalog_config(EMBEDDED_CATALOG) is None and _embedded_file().exists()


def _embedded_file() -> Path:
    return Path.home() / ".zonal" / "catalog.db"


def _embedded_catalog(*, create: bool) -> Catalog:
    file = _embedded_file()
    if create:
        file.parent.mkdir(exist_ok=True)
    elif not file.exists():
        raise TableError("No Iceberg catalog is configured. " + _HOW_TO_CONFIGURE.format(name="DEFAULT"))
    properties = {"uri": f"sqlite:///{file}", "warehouse": str(file.parent / "warehouse")}
    return _open_catalog(EMBEDDED_CATALOG, properties, create=create)


def _open_catalog(name: str, properties: dict[str, str], *, create: bool) -> Catalog:
    """Open a catalog without creating anything: SQLite makes a file, and PyIceberg tables in it, on first contact."""
    properties = opened_by_storage(properties)
    if create:
        return _in_time(properties, PATIENCE, lambda: load_catalog(name, **properties))
    scheme, _, path = properties.get("uri", "").partition(":///")
    if scheme.startswith("sqlite") and path and path != ":memory:" and not Path(path).exists():
        raise TableError(f"The catalog {quoted(name)} has no database file {quoted(path, limit=300)}.")
    properties = {"init_catalog_tables": "false", **properties}
    return _in_time(properties, PATIENCE, lambda: load_catalog(name, **properties))


def _in_time(properties: Mapping[str, str], seconds: float, work: Callable[[], Result]) -> Result:
    """Ask a catalog that another machine may serve; where it doesn't answer, an error says so.

    Of PyIceberg's clients, most wait forever.
    """
    uri = str(properties.get("uri", ""))
    if uri.startswith("sqlite") or not (uri or properties.get("type") in _REMOTE):
        return work()
    try:
        return within(seconds, work)
    except TimeoutError:
        at = f" at {hidden(uri)}" if uri else ""
        raise TableError(
            f"The catalog{at} didn't answer within {seconds:g} seconds. Check its property uri, and that this machine "
            "reaches it."
        ) from None


def _nearest(catalog: Catalog, identifier: str) -> str:
    """Suggest a table of the same namespace, or a namespace where that doesn't exist."""
    namespace = identifier.rpartition(".")[0]
    try:
        try:
            return suggestion(identifier, [".".join(table) for table in catalog.list_tables(namespace)])
        except NoSuchNamespaceError:
            names = [".".join(other) for other in catalog.list_namespaces()]
            return f"There is no namespace {quoted(namespace)} either. {suggestion(namespace, names)}"
    except Exception:  # the catalog won't list: the table is missing all the same
        return "Name it as namespace.table."


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
