"""Create Iceberg tables for `--into`: one commit makes the table together with its first snapshot."""

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction, StagedTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import AddSnapshotUpdate, AddSortOrderUpdate, SetSnapshotRefUpdate, TableUpdate
from pyiceberg.transforms import IdentityTransform

from zonal.errors import CommitUnknownError, ConflictError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Writing, Written
from zonal.storage.durability import flush_folders
from zonal.tables.iceberg.arrow_schema import reading_schema
from zonal.tables.iceberg.catalogs import find_catalog, split_catalog
from zonal.tables.iceberg.commit import prepared
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.field_ids import (
    DATA,
    DATA_FILE,
    FILE_SEQUENCE,
    RECORDS,
    SEQUENCE_NUMBER,
    SIZE,
    SNAPSHOT_ID,
    STATUS,
    Fields,
)
from zonal.tables.iceberg.manifest_writers import (
    ADDED,
    commit_creation,
    staged_table,
    write_manifest,
    write_manifest_list,
)
from zonal.tables.iceberg.metrics import data_file, kept_metrics, plain
from zonal.tables.iceberg.new_snapshot import MANIFEST_FILES, sort_fields
from zonal.tables.iceberg.schema import new_schema
from zonal.tables.iceberg.settings import codec_property, writing_of
from zonal.tables.iceberg.summary import RUN
from zonal.tables.protocol import LAYOUT_PROPERTY, Sending, unheard
from zonal.values.columns import find

FORMAT_VERSION = "2"
"""What every engine reads."""


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the commit will say, fixed before any file is written."""

    catalog: Catalog
    creation: CreateTableTransaction
    table: StagedTable
    partitions: tuple[Mapping[int, Any], ...]
    """Values by partition field id."""
    layout: Layout
    run: str


class IcebergDestination:
    """An Iceberg table that doesn't exist yet, as `namespace.table` in a catalog."""

    def __init__(
        self, identifier: str, *, catalog: str | None = None, catalog_properties: Mapping[str, str] | None = None
    ) -> None:
        self.name, self._catalog_name = split_catalog(identifier, catalog)
        self._properties = dict(catalog_properties or {})
        self._plan: _Plan | None = None

    def file_columns(self, schema: pa.Schema, partitioning: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Return all columns: Iceberg keeps those that partition in the files as well."""
        return list(schema.names)

    def writing(
        self,
        schema: pa.Schema,
        partitioning: Sequence[str],
        partitions: Sequence[Mapping[str, pa.Scalar]],
        *,
        layout: Layout,
        run: str,
        compression: str | None = None,
    ) -> Writing:
        """Return how the table's files are written, or refuse what Iceberg can't hold or a name that is taken.

        The namespace is created where it is missing, and nothing else.
        """
        wanted = new_schema(schema)
        for name in (*layout.columns, *layout.bloom_columns):
            find(schema, name)
        namespace, _, table_name = self.name.rpartition(".")
        if not namespace or not table_name:
            raise TableError(f"{quoted(self.name)} is not the name of a table: name it as namespace.table.")
        catalog = find_catalog(self._catalog_name, self._properties, create=True)
        try:
            if catalog.table_exists(self.name):
                raise TableError(f"The table {quoted(self.name)} exists. Give the new table another name.")
            _make_namespace(catalog, namespace)
            creation = catalog.create_table_transaction(
                self.name,
                wanted,
                partition_spec=_spec(wanted, partitioning),
                properties={
                    "format-version": FORMAT_VERSION,
                    LAYOUT_PROPERTY: layout.to_json(),
                    **codec_property(compression),
                },
            )
        except TableError:
            raise
        except Exception as error:  # every catalog brings the errors of its own client
            raise TableError(f"Can't create the table {quoted(self.name)}: {what_of(error)}") from error
        table = staged_table(creation)
        values = tuple(_values(table, partitioning, partition) for partition in partitions)
        self._plan = _Plan(catalog, creation, table, values, layout, run)
        return writing_of(self.name, table, table.schema(), layout=layout, run=run, compression=compression)

    def publish(self, added: Sequence[Written], *, sending: Sending = unheard) -> int | None:
        """Create the table with all files and return its snapshot; a table that appeared meanwhile is a conflict.

        Whatever the catalog answers, the table is asked for by its id: a client that repeats a request which succeeded
        reports that the table exists already.
        """
        if self._plan is None:
            raise TableError(f"No files were written for {quoted(self.name)}.")
        snapshot_id = uuid.uuid4().int >> 65 or 1
        first = _First(self._plan, snapshot_id, added)
        updates = prepared(self.name, first.updates, first.clean, sending)
        try:
            commit_creation(self._plan.creation, updates)
        except Exception as error:
            refused = isinstance(error, (CommitFailedException, TableAlreadyExistsError))
            existing = self._existing(self._plan, error)
            if existing is None and not refused:
                raise self._unknown(error) from error
            if existing is None or existing.table_uuid != self._plan.table.metadata.table_uuid:
                first.clean()
                raise ConflictError(f"Another writer made the table {quoted(self.name)} meanwhile.") from None
        return snapshot_id if added else None

    def _existing(self, plan: _Plan, error: Exception) -> TableMetadata | None:
        """Return what the catalog has by the table's name; an error where it can't be asked."""
        try:
            return plan.catalog.load_table(self.name).metadata
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception:
            raise self._unknown(error) from error

    def _unknown(self, error: Exception) -> CommitUnknownError:
        return CommitUnknownError(
            f"The catalog didn't say whether it created {quoted(self.name)} ({what_of(error)}). The new files "
            "stay; see whether the table is there before you try again."
        )

    def refers_to(self, added: Sequence[Written]) -> set[str]:
        """Return all written files if the table is there, and is this one; see `Destination`."""
        if self._plan is None:
            return set()
        existing = self._existing(self._plan, TableError("it was asked again"))
        ours = existing is not None and existing.table_uuid == self._plan.table.metadata.table_uuid
        return {file.path for file in added} if ours else set()


def _make_namespace(catalog: Catalog, namespace: str) -> None:
    parts = namespace.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        if not catalog.namespace_exists(name):
            try:
                catalog.create_namespace(name)
            except NamespaceAlreadyExistsError:
                continue


def _spec(schema: Schema, partitioning: Sequence[str]) -> PartitionSpec:
    return PartitionSpec(
        *(
            PartitionField(
                source_id=schema.find_field(name).field_id,
                field_id=1000 + number,
                transform=IdentityTransform(),
                name=name,
            )
            for number, name in enumerate(partitioning)
        )
    )


def _values(table: StagedTable, partitioning: Sequence[str], partition: Mapping[str, pa.Scalar]) -> Mapping[int, Any]:
    """Convert the values of a partition to what a manifest stores."""
    columns = {field.name: field for field in reading_schema(table.schema())}
    by_name = {field.name: field.field_id for field in table.spec().fields}
    values = {}
    for name in partitioning:
        scalar = partition[name]
        values[by_name[name]] = plain(_stored(scalar, columns[name].type)) if scalar.is_valid else None
    return values


def _stored(scalar: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    while isinstance(scalar, (pa.ExtensionScalar, pa.DictionaryScalar)):
        scalar = scalar.value
    return scalar.cast(kind)


class _First:
    """The first snapshot of a new table."""

    def __init__(self, plan: _Plan, snapshot_id: int, added: Sequence[Written]) -> None:
        self._plan, self._table, self._metadata = plan, plan.table, plan.table.metadata
        self._snapshot_id, self._added = snapshot_id, added
        self._id = uuid.uuid4()
        self._paths: list[str] = []

    def clean(self) -> None:
        """Remove the metadata files of a snapshot that was not committed."""
        for path in self._paths:
            with suppress(Exception):  # an orphan file does no harm
                self._table.io.delete(path)

    def updates(self) -> list[TableUpdate]:
        if not self._added:
            return []
        fields = sort_fields(self._plan.layout, self._table.schema())
        orders: list[TableUpdate] = []
        if fields:
            orders = [AddSortOrderUpdate.model_validate({"sort-order": SortOrder(*fields, order_id=1)})]
        files = self._files(1 if fields else None)
        snapshot = self._snapshot(files)
        flush_folders(self._paths, self._metadata.location)
        ref = {"snapshot-id": self._snapshot_id, "ref-name": MAIN_BRANCH, "type": "branch"}
        return [*orders, AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate.model_validate(ref)]

    def _files(self, order: int | None) -> list[Fields]:
        kept = kept_metrics(self._table.schema(), self._metadata.properties, self._plan.layout.columns)
        return [
            data_file(written, kept, partition=self._partition(written), sort_order_id=order) for written in self._added
        ]

    def _partition(self, written: Written) -> Mapping[int, Any]:
        return self._plan.partitions[written.partition] if self._table.spec().fields else {}

    def _manifests(self, files: Sequence[Fields]) -> list[Fields]:
        entries = [
            {
                STATUS: ADDED,
                SNAPSHOT_ID: self._snapshot_id,
                SEQUENCE_NUMBER: None,
                FILE_SEQUENCE: None,
                DATA_FILE: file,
            }
            for file in files
        ]
        return [
            write_manifest(
                self._table.io,
                self._location(f"{self._id}-m{start // MANIFEST_FILES}.avro"),
                entries[start : start + MANIFEST_FILES],
                metadata=self._metadata,
                spec_id=self._table.spec().spec_id,
                content=DATA,
                snapshot_id=self._snapshot_id,
                sequence=1,
            )
            for start in range(0, len(entries), MANIFEST_FILES)
        ]

    def _location(self, name: str) -> str:
        path = self._table.location_provider().new_metadata_location(name)
        self._paths.append(path)
        return path

    def _snapshot(self, files: Sequence[Fields]) -> Snapshot:
        path = self._location(f"snap-{self._snapshot_id}-0-{self._id}.avro")
        write_manifest_list(
            self._table.io,
            path,
            self._manifests(files),
            version=self._metadata.format_version,
            snapshot_id=self._snapshot_id,
            parent_id=None,
            sequence=1,
        )
        rows, size = (sum(file[field] for file in files) for field in (RECORDS, SIZE))
        details = {
            LAYOUT_PROPERTY: self._plan.layout.to_json(),
            RUN: self._plan.run,
            **{f"{what}-data-files": str(len(files)) for what in ("added", "total")},
            **{f"{what}-records": str(rows) for what in ("added", "total")},
            **{f"{what}-files-size": str(size) for what in ("added", "total")},
            **{f"total-{what}": "0" for what in ("delete-files", "position-deletes", "equality-deletes")},
        }
        return Snapshot.model_validate(
            {
                "snapshot-id": self._snapshot_id,
                "sequence-number": 1,
                "timestamp-ms": max(int(time.time() * 1000), self._metadata.last_updated_ms),
                "manifest-list": path,
                "summary": Summary(operation=Operation.APPEND, **details),
                "schema-id": self._metadata.current_schema_id,
            }
        )
