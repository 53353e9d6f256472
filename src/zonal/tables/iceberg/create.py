"""Create Iceberg tables for `--into`: one commit makes the table together with its first snapshot."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
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
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform

from zonal.errors import CommitUnknownError, ConflictError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Writing, Written
from zonal.tables.iceberg.arrow_schema import reading_schema
from zonal.tables.iceberg.catalogs import find_catalog, split_catalog
from zonal.tables.iceberg.commit import prepared
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.field_ids import (
    Fields,
)
from zonal.tables.iceberg.manifest_writers import (
    commit_creation,
    staged_table,
)
from zonal.tables.iceberg.metrics import plain
from zonal.tables.iceberg.new_snapshot import NewSnapshot
from zonal.tables.iceberg.schema import new_schema
from zonal.tables.iceberg.settings import codec_property, writing_of
from zonal.tables.iceberg.summary import added_counts, totals
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
        first = _FirstSnapshot(self._plan, snapshot_id, added)
        updates = prepared(self.name, lambda: first.updates()[1] if added else [], first.clean, sending)
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


@dataclass(frozen=True)
class _FirstFiles:
    """The files that a new table begins with."""

    layout: Layout
    run: str
    added: Sequence[Written]


class _FirstSnapshot(NewSnapshot):
    """The first snapshot of a new table: an `append` on nothing."""

    operation = Operation.APPEND
    head = None
    data_sequence = None

    def __init__(self, plan: _Plan, snapshot_id: int, added: Sequence[Written]) -> None:
        files = _FirstFiles(plan.layout, plan.run, added)
        super().__init__(plan.table, MAIN_BRANCH, snapshot_id, files, plan.table.schema())
        self._partitions = plan.partitions

    def place(self, written: Written) -> tuple[int, Mapping[int, object]]:
        """Return the only partition spec, and the values of the source's partition."""
        spec = self._table.spec()
        return spec.spec_id, self._partitions[written.partition] if spec.fields else {}

    def carried_over(self) -> Iterator[Fields]:
        """Nothing was there before."""
        return iter(())

    def details(self, added: Sequence[Fields]) -> dict[str, str]:
        """Count what is added, which is all there is."""
        counts = added_counts(added)
        return {name: str(count) for name, count in counts.items()} | totals(counts, None)

    def properties(self) -> dict[str, str]:
        """Set none: the table is made with its layout."""
        return {}
