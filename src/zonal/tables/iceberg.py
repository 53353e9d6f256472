"""Iceberg tables, from a catalog or from a metadata file, by way of PyIceberg's tables and file access."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot as PyIcebergSnapshot
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)
from pyiceberg.utils.config import Config

from zonal.errors import LayoutError, TableError, quoted, suggestion
from zonal.files import Commit, Files, Physical, Snapshot
from zonal.layout import Layout
from zonal.tables.icebergbounds import arrow_schema, buckets, column_bounds, fields, leaves, partition_bounds
from zonal.tables.icebergmanifests import Live, PartitionKey, read_live
from zonal.tables.table import LAYOUT_PROPERTY, recorded_layout

EMBEDDED_CATALOG = "zonal"
"""Name of the SQLite catalog in `~/.zonal`, which stands in where PyIceberg has no catalog configured."""

NEWEST_FORMAT = 3
_NOT_REWRITTEN = (GeometryType, GeographyType, UnknownType, TimestampNanoType, TimestamptzNanoType)
_HOW_TO_CONFIGURE = (
    "Name a catalog in ~/.pyiceberg.yaml, or set PYICEBERG_CATALOG__{name}__URI, "
    "or give the path of a …metadata.json file."
)


class IcebergTable:
    """An Iceberg table as it was when it was loaded; nothing here writes.

    Versions are snapshot ids, or names of branches and tags.
    """

    def __init__(self, name: str, table: PyIcebergTable, *, version: int | str | None = None) -> None:
        self.name = name
        self.table = table
        self._snapshot, self._schema = _resolve(table, version)

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
        found = _catalog(catalog, catalog_properties or {})
        try:
            table = found.load_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise TableError(
                f"There is no table {quoted(identifier)} in the catalog {quoted(found.name)}. "
                f"{_nearest(found, identifier)}"
            ) from None
        except Exception as error:  # every catalog brings the errors of its own client
            raise TableError(
                f"Can't load the table {quoted(identifier)} from the catalog {quoted(found.name)}: {_what(error)}"
            ) from error
        return cls(identifier, table, version=version)

    @classmethod
    def from_metadata(
        cls, location: str, *, version: int | str | None = None, properties: Mapping[str, str] | None = None
    ) -> "IcebergTable":
        """Load the table that a `…metadata.json` file describes; `properties` are those of PyIceberg's file access."""
        try:
            table = StaticTable.from_metadata(location, dict(properties or {}))
        except FileNotFoundError:
            raise TableError(f"There is no metadata file {quoted(location, limit=300)}.") from None
        except Exception as error:  # damaged metadata goes wrong in any way
            raise TableError(f"Can't read the metadata file {quoted(location, limit=300)}: {_what(error)}") from error
        return cls(location, table, version=version)

    def snapshot(self) -> Snapshot:
        """Read the manifests of the version; a file that can't be read is a `TableError` that names it."""
        metadata, specs = self.table.metadata, self.table.specs()
        live = read_live(
            self.table.io,
            self._snapshot.manifest_list if self._snapshot else None,
            global_specs={spec.spec_id for spec in specs.values() if not _set_fields(spec)},
            columns=set(leaves(self._schema)),
        )
        commits = {entry.snapshot_id: _commit(entry) for entry in metadata.snapshots}
        layout, problems = recorded_layout(metadata.properties)
        return Snapshot(
            name=self.name,
            format="iceberg",
            location=metadata.location,
            version=self._snapshot.snapshot_id if self._snapshot else None,
            time=_time(self._snapshot.timestamp_ms) if self._snapshot else None,
            schema=arrow_schema(self._schema),
            partitioning=tuple(_field_text(field, self._schema) for field in _set_fields(metadata.spec())),
            files=_files(live, specs, self._schema, commits),
            physical={name: Physical(name, field.field_id) for name, field in fields(self._schema).items()},
            layout=layout,
            properties=dict(metadata.properties),
            commits=commits,
            blockers=tuple(_blockers(self.table, self._schema, live)),
            problems=problems,
        )

    def open_file(self, path: str) -> pa.NativeFile:
        """Open a file through the table's own file access, with the credentials that the catalog gave it."""
        try:
            stream = self.table.io.new_input(path).open()
        except FileNotFoundError:
            raise TableError(f"The file {quoted(path, limit=300)} of {quoted(self.name)} doesn't exist.") from None
        except Exception as error:  # object stores raise errors of their own
            raise TableError(f"Can't open the file {quoted(path, limit=300)}: {_what(error)}") from error
        return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")


# --- catalogs ------------------------------------------------------------------------------------------------------


def _catalog(name: str | None, properties: Mapping[str, str]) -> Catalog:
    try:
        config = Config()  # read now: PyIceberg's own copy is from when it was imported
        name = name or (config.get_default_catalog_name() if properties or not _embedded(config) else None)
        if name is None:
            return _embedded_catalog()
        configured = {**(config.get_catalog_config(name) or {}), **properties}
        if not configured:
            raise TableError(
                f"Unknown catalog {quoted(name)}. {suggestion(name, config.get_known_catalogs())} "
                + _HOW_TO_CONFIGURE.format(name=name.upper())
            )
        return _open_catalog(name, {key: str(value) for key, value in configured.items()})
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"Can't open the catalog {quoted(name or 'default')}: {_what(error)}") from error


def _embedded(config: Config) -> bool:
    return config.get_catalog_config(config.get_default_catalog_name()) is None


def _embedded_catalog() -> Catalog:
    home = Path.home() / ".zonal"
    if not (home / "catalog.db").exists():
        raise TableError("No Iceberg catalog is configured. " + _HOW_TO_CONFIGURE.format(name="DEFAULT"))
    properties = {"uri": f"sqlite:///{home / 'catalog.db'}", "warehouse": str(home / "warehouse")}
    return _open_catalog(EMBEDDED_CATALOG, properties)


def _open_catalog(name: str, properties: dict[str, str]) -> Catalog:
    """Open a catalog without creating anything: SQLite makes a file, and PyIceberg tables in it, on first contact."""
    scheme, _, path = properties.get("uri", "").partition(":///")
    if scheme.startswith("sqlite") and path and path != ":memory:" and not Path(path).exists():
        raise TableError(f"The catalog {quoted(name)} has no database file {quoted(path, limit=300)}.")
    return load_catalog(name, **{"init_catalog_tables": "false", **properties})


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


def _commit(snapshot: PyIcebergSnapshot) -> Commit:
    summary = snapshot.summary
    return Commit(
        snapshot.snapshot_id,
        _time(snapshot.timestamp_ms),
        summary.operation.value if summary else "unknown",
        dict(summary.additional_properties) if summary else {},
    )


def _time(milliseconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None


# --- the snapshot --------------------------------------------------------------------------------------------------


def _files(live: Live, specs: Mapping[int, PartitionSpec], schema: Schema, commits: Mapping[int, Commit]) -> Files:
    columns = leaves(schema)
    types = {field_id: field.field_type for field_id, field in index_by_id(schema).items()}
    ids = {number: _layout_id(commit.details.get(LAYOUT_PROPERTY)) for number, commit in commits.items()}
    return Files(
        paths=live.paths,
        sizes=live.sizes,
        rows=live.rows,
        deleted=live.deleted,
        delete_files=live.delete_files,
        added_by=live.added_by,
        layout_ids=pa.array([ids.get(number) for number in live.added_by.tolist()], pa.string()),
        partition=live.partition,
        partitions=tuple(_partition_text(key, specs, types) for key in live.keys),
        bounds=column_bounds(live, columns),
        partition_bounds=partition_bounds(live, specs, columns),
        buckets=buckets(live, specs, columns),
    )


def _layout_id(text: str | None) -> str | None:
    """Read a summary's layout, which is its JSON or its id; what can't be read counts as no layout."""
    if text is None or re.fullmatch(r"[0-9a-f]{12}", text):
        return text
    try:
        return Layout.from_json(text).id
    except LayoutError:
        return None


def _set_fields(spec: PartitionSpec) -> list[PartitionField]:
    """List the fields that partition: in version 1, dropped ones stay behind as `void`."""
    return [field for field in spec.fields if not isinstance(field.transform, VoidTransform)]


def _field_text(field: PartitionField, schema: Schema) -> str:
    column = schema.find_column_name(field.source_id) or field.name
    return column if isinstance(field.transform, IdentityTransform) else f"{field.transform}({column})"


def _partition_text(key: PartitionKey, specs: Mapping[int, PartitionSpec], types: Mapping[int, IcebergType]) -> str:
    spec_id, values = key
    named = _set_fields(specs[spec_id]) if spec_id in specs else []
    return "/".join(f"{_escaped(field.name)}={_escaped(_value_text(field, values, types))}" for field in named)


def _value_text(field: PartitionField, values: Mapping[int, object], types: Mapping[int, IcebergType]) -> str:
    value = values.get(field.field_id)
    try:
        return field.transform.to_human_string(types.get(field.source_id, UnknownType()), value)
    except (OverflowError, TypeError, ValueError):  # a date beyond the year 9999
        return str(value)


def _escaped(text: str) -> str:
    """Escape what would make a partition's text ambiguous, and what would break a line."""
    return re.sub(r"[%/=\x00-\x1f\x7f]", lambda match: f"%{ord(match[0]):02X}", text)


def _blockers(table: PyIcebergTable, schema: Schema, live: Live) -> Iterator[str]:
    version = table.metadata.format_version
    if version > NEWEST_FORMAT:
        yield f"The table has format version {version}; zonal rewrites versions up to {NEWEST_FORMAT}."
    total = len(live.sizes)
    for name, count in sorted(live.formats.items()):
        if name != "PARQUET":
            yield f"{count} of {total} data files are {name}; zonal rewrites Parquet files only."
    if live.encrypted or any(key.startswith("encryption.") for key in table.metadata.properties):
        yield "The table is encrypted; zonal has no keys."
    odd = sorted(
        f"{schema.find_column_name(field_id)} ({field.field_type})"
        for field_id, field in index_by_id(schema).items()
        if isinstance(field.field_type, _NOT_REWRITTEN)
    )
    if odd:
        yield f"zonal can't write columns of these types: {', '.join(odd)}."


def _what(error: Exception) -> str:
    """Tell what a client's error says, without the user and password of any URL in it."""
    return quoted(re.sub(r"://[^/\s@]*@", "://…@", f"{type(error).__name__}: {error}"), limit=300)
