"""Write a new snapshot's manifests and manifest list, and tell the catalog what to check and to do."""

import time
import uuid
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Protocol

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.transforms import IdentityTransform

from zonal.errors import TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Rewrite, Written
from zonal.storage.durability import flush_folders
from zonal.tables.iceberg.conflicts import IcebergReplacement, partitions_of
from zonal.tables.iceberg.field_ids import (
    ADDED_FILES,
    DATA,
    DATA_FILE,
    DELETES,
    EXISTING_FILES,
    FILE_SEQUENCE,
    FIRST_ROW_ID,
    PARTITION,
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    SPEC_ID,
    STATUS,
    Fields,
)
from zonal.tables.iceberg.manifest_writers import ADDED, DELETED, EXISTING, write_manifest, write_manifest_list
from zonal.tables.iceberg.manifests import ManifestEntry, counted
from zonal.tables.iceberg.metrics import data_file, delete_file, kept_metrics
from zonal.tables.iceberg.summary import RUN, summary_of
from zonal.tables.protocol import LAYOUT_PROPERTY

MANIFEST_FILES = 8_000
"""Entries of one manifest: some 8 MB, which is what Java aims at."""


class NewFilesOf(Protocol):
    """What a snapshot tells of the change that made its files."""

    @property
    def layout(self) -> Layout:
        """Return the layout of the new files."""

    @property
    def run(self) -> str:
        """Return the name of the run."""

    @property
    def added(self) -> Sequence[Written]:
        """Return the new files."""


class NewSnapshot(ABC):
    """A snapshot on top of a branch's head, not committed yet."""

    operation: ClassVar[Operation]

    def __init__(self, table: Table, branch: str, snapshot_id: int, change: NewFilesOf, schema: Schema) -> None:
        self._table, self._metadata = table, table.metadata
        self._branch, self._snapshot_id, self._change, self._schema = branch, snapshot_id, change, schema
        self._id = uuid.uuid4()
        self._sequence = self._metadata.next_sequence_number()
        self._paths: list[str] = []

    # --- what each operation decides ---

    @property
    @abstractmethod
    def head(self) -> Snapshot | None:
        """Return the snapshot that this one follows."""

    @property
    @abstractmethod
    def data_sequence(self) -> int | None:
        """Return the data sequence number of new files; None for the snapshot's own."""

    @abstractmethod
    def place(self, written: Written) -> tuple[int, Mapping[int, object]]:
        """Return the partition spec of a new file, and its partition values by field id."""

    @abstractmethod
    def carried_over(self) -> Iterator[Fields]:
        """Yield the lines of manifests that stay, which may be written again."""

    @abstractmethod
    def details(self, added: Sequence[Fields]) -> dict[str, str]:
        """Return the summary, but for the layout and the run."""

    @abstractmethod
    def properties(self) -> dict[str, str]:
        """Return the table properties that the commit sets."""

    def new_deletes(self) -> Sequence[tuple[int, Fields]]:
        """Describe new delete files, with their partition specs; they have the snapshot's own sequence number."""
        return ()

    def requirements(self) -> list[TableRequirement]:
        """Return what the catalog must check."""
        head = None if self.head is None else self.head.snapshot_id
        return [
            AssertTableUUID(uuid=self._metadata.table_uuid),
            AssertCurrentSchemaId.model_validate({"current-schema-id": self._metadata.current_schema_id}),
            AssertRefSnapshotId.model_validate({"ref": self._branch, "snapshot-id": head}),
        ]

    # --- updates ---

    def updates(self) -> tuple[list[TableRequirement], list[TableUpdate]]:
        """Write the metadata files of the new snapshot, and return what the catalog must check and do."""
        order, updates = self._sort_order()
        added = self._added(order)
        lines = [
            *self._write(added, DATA, self.data_sequence),
            *self._write(self.new_deletes(), DELETES, None),
            *self.carried_over(),
        ]
        snapshot = self._snapshot(lines, [file for _, file in added])
        flush_folders(self._paths, self._metadata.location)
        if properties := self.properties():
            updates.append(SetPropertiesUpdate(updates=properties))
        updates += [
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate.model_validate(
                {**self._ref(), "snapshot-id": self._snapshot_id, "ref-name": self._branch}
            ),
        ]
        return self.requirements(), updates

    def clean(self, kept: Collection[str] = ()) -> None:
        """Remove what the attempt wrote, except for what the table refers to."""
        for path in self._paths:
            if path not in kept:
                with suppress(Exception):  # an orphan file does no harm
                    self._table.io.delete(path)

    def _ref(self) -> dict[str, object]:
        """Return the branch with its own retention settings; a table without snapshots has none yet."""
        ref = self._metadata.refs.get(self._branch)
        return {"type": SnapshotRefType.BRANCH} if ref is None else ref.model_dump(by_alias=True, exclude_none=True)

    # --- entries ---

    def _sort_order(self) -> tuple[int | None, list[TableUpdate]]:
        fields = sort_fields(self._change.layout, self._schema)
        if not fields:
            return None, []
        orders = self._metadata.sort_orders
        known = next((order.order_id for order in orders if list(order.fields) == fields), None)
        if known is not None:
            return known, []
        order = SortOrder(*fields, order_id=max((order.order_id for order in orders), default=0) + 1)
        return order.order_id, [AddSortOrderUpdate.model_validate({"sort-order": order})]

    def _added(self, order: int | None) -> list[tuple[int, Fields]]:
        """Describe the new files, with their partition specs."""
        kept = kept_metrics(self._schema, self._metadata.properties, self._change.layout.columns)
        added = []
        for written in self._change.added:
            spec_id, partition = self.place(written)
            added.append((spec_id, data_file(written, kept, partition=partition, sort_order_id=order)))
        return added

    def _write(self, added: Sequence[tuple[int, Fields]], content: int, sequence: int | None) -> Iterator[Fields]:
        by_spec: dict[int, list[Fields]] = defaultdict(list)
        for spec_id, file in added:
            by_spec[spec_id].append(
                {
                    STATUS: ADDED,
                    SNAPSHOT_ID: self._snapshot_id,
                    SEQUENCE_NUMBER: sequence,
                    FILE_SEQUENCE: None,
                    DATA_FILE: file,
                }
            )
        for spec_id, entries in by_spec.items():
            for start in range(0, len(entries), MANIFEST_FILES):
                yield self._manifest(entries[start : start + MANIFEST_FILES], spec_id, content)

    def _manifest(self, entries: Sequence[Fields], spec_id: int, content: int) -> Fields:
        path = self._location(f"{self._id}-m{len(self._paths)}.avro")
        return write_manifest(
            self._table.io,
            path,
            entries,
            metadata=self._metadata,
            spec_id=spec_id,
            content=content,
            snapshot_id=self._snapshot_id,
            sequence=self._sequence,
        )

    def _location(self, name: str) -> str:
        path = self._table.location_provider().new_metadata_location(name)
        self._paths.append(path)
        return path

    # --- snapshot ---

    def _snapshot(self, lines: Sequence[Fields], added: Sequence[Fields]) -> Snapshot:
        metadata, head = self._metadata, self.head
        next_row_id = next_row_id_of(metadata)
        path = self._location(f"snap-{self._snapshot_id}-0-{self._id}.avro")
        assigned = write_manifest_list(
            self._table.io,
            path,
            lines,
            version=metadata.format_version,
            snapshot_id=self._snapshot_id,
            parent_id=None if head is None else head.snapshot_id,
            sequence=self._sequence,
            next_row_id=next_row_id,
        )
        details = {LAYOUT_PROPERTY: self._change.layout.to_json(), RUN: self._change.run, **self.details(added)}
        # "Snapshots": times don't go backwards, even where the clocks of writers differ.
        times = [int(time.time() * 1000), metadata.last_updated_ms, 0 if head is None else head.timestamp_ms]
        return Snapshot.model_validate(
            {
                "snapshot-id": self._snapshot_id,
                "parent-snapshot-id": None if head is None else head.snapshot_id,
                "sequence-number": self._sequence,
                "timestamp-ms": max(times),
                "manifest-list": path,
                "summary": Summary(operation=self.operation, **details),
                "schema-id": metadata.current_schema_id,
                "first-row-id": next_row_id,
                "added-rows": assigned if next_row_id is not None else None,
            }
        )


class ReplacingSnapshot(NewSnapshot):
    """A `replace` snapshot: new files with the rows of those that go."""

    operation = Operation.REPLACE

    def __init__(
        self,
        table: Table,
        branch: str,
        snapshot_id: int,
        rewrite: Rewrite,
        schema: Schema,
        replacement: IcebergReplacement,
    ) -> None:
        super().__init__(table, branch, snapshot_id, rewrite, schema)
        self._base, self._carried, self._replacement = rewrite.base, rewrite.carried, replacement
        self._partitions = partitions_of(rewrite, replacement.data)

    @property
    def head(self) -> Snapshot:
        """Return the head in which files are replaced."""
        return self._replacement.head

    @property
    def data_sequence(self) -> int:
        """Return the number of the snapshot that was read.

        With it, equality deletes that were committed since apply to the new files as well, and older ones, which have
        been applied, don't.
        """
        return self._replacement.base.sequence_number or 0

    def place(self, written: Written) -> tuple[int, Mapping[int, object]]:
        """Return the place of a file that it replaces."""
        if written.partition not in self._partitions:
            raise TableError(
                f"The new file {quoted(written.path, limit=300)} is in a partition of which no file is replaced."
            )
        source = self._partitions[written.partition]
        return source.spec_id, source.file[PARTITION]

    def new_deletes(self) -> Sequence[tuple[int, Fields]]:
        """Describe the deletes that new files begin with: a delete file is in the partition of its data file."""
        if self._carried is None:
            return ()
        positions, files = self._carried.positions, self._carried.files
        places = {written.path: self.place(written) for written in self._change.added if written.path in positions}
        return [
            (places[path][0], delete_file(files[path], path, deleted, places[path][1]))
            for path, deleted in positions.items()
        ]

    def carried_over(self) -> Iterator[Fields]:
        """Keep the head's manifests; those with files that go are written again, without what went earlier."""
        gone = self._replacement.gone
        for part in self._replacement.contents:
            line = counted(self._table.io, part.line) if self._metadata.format_version > 1 else part.line
            if any(id(entry) in gone for entry in part.entries):
                entries = [self._kept(entry, is_gone=id(entry) in gone) for entry in part.entries]
                yield self._manifest(entries, int(line[SPEC_ID]), DATA if part.holds_data else DELETES)
            elif part.entries or has_files(line):
                yield line

    def _kept(self, entry: ManifestEntry, *, is_gone: bool) -> Fields:
        return {
            STATUS: DELETED if is_gone else EXISTING,
            SNAPSHOT_ID: self._snapshot_id if is_gone else entry.snapshot_id,
            SEQUENCE_NUMBER: entry.sequence,
            FILE_SEQUENCE: entry.file_sequence,
            DATA_FILE: {**entry.file, FIRST_ROW_ID: entry.first_row_id},
        }

    def details(self, added: Sequence[Fields]) -> dict[str, str]:
        """Count what is replaced."""
        return summary_of(added, self._replacement, [file for _, file in self.new_deletes()])

    def properties(self) -> dict[str, str]:
        """Record the layout, unless the table does already, or another run has recorded one since."""
        layout, now = self._change.layout.to_json(), self._metadata.properties.get(LAYOUT_PROPERTY)
        stays = now == layout or now != self._base.properties.get(LAYOUT_PROPERTY)
        return {} if stays else {LAYOUT_PROPERTY: layout}


def has_files(line: Fields) -> bool:
    """Tell whether a manifest has live files, by its line in the manifest list."""
    return any(line.get(field) for field in (ADDED_FILES, EXISTING_FILES))


def next_row_id_of(metadata: TableMetadata) -> int | None:
    """Return the next row id of a table of version 3, None before."""
    return (getattr(metadata, "next_row_id", None) or 0) if metadata.format_version >= 3 else None


def sort_fields(layout: Layout, schema: Schema) -> list[SortField]:
    """Return the sort order that a linear layout gives; no other layout sorts by plain values."""
    if layout.kind != "linear" or layout.salt is not None:
        return []
    return [
        SortField(
            source_id=schema.find_field(column).field_id,
            transform=IdentityTransform(),
            direction=SortDirection.ASC,
            null_order=NullOrder.NULLS_FIRST,
        )
        for column in layout.columns
    ]
