"""Commit a rewrite as one `replace` snapshot, validated and retried until it succeeds or can't.

PyIceberg's own transactions validate from the wrong snapshot, and bring deleted rows back in two cases; here every
attempt starts from the newest version and checks all that happened since the snapshot that was read.
"""

import random
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
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

from zonal.errors import CommitUnknownError, ConflictError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Rewrite
from zonal.storage.durability import flush_folders
from zonal.tables.iceberg.conflicts import IcebergReplacement, partitions_of, replaced
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.field_ids import (
    ADDED_FILES,
    DATA,
    DATA_FILE,
    DELETES,
    EXISTING_FILES,
    FILE_SEQUENCE,
    FIRST_ROW_ID,
    MANIFEST_PATH,
    PARTITION,
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    SPEC_ID,
    STATUS,
    Fields,
)
from zonal.tables.iceberg.manifest_writers import (
    ADDED,
    DELETED,
    EXISTING,
    commit_updates,
    write_manifest,
    write_manifest_list,
)
from zonal.tables.iceberg.manifests import Contents, KnownEntries, ManifestEntry, counted, read_contents
from zonal.tables.iceberg.metrics import data_file, kept_metrics
from zonal.tables.iceberg.summary import RUN, summary_of
from zonal.tables.protocol import LAYOUT_PROPERTY, Sending, unheard

ATTEMPTS = 10
LONGEST_PAUSE = 5.0
MANIFEST_FILES = 8_000
"""Entries of one manifest: some 8 MB, which is what Java aims at."""


@dataclass(frozen=True, eq=False)
class Target:
    """A branch of a table, and how its newest version is loaded."""

    name: str
    branch: str
    load: Callable[[], Table]


def commit_rewrite(target: Target, rewrite: Rewrite, *, schema: Schema, sending: Sending = unheard) -> int:
    """Replace files in one snapshot and return its id; `schema` is the one that the rows were read with.

    The snapshot's id is chosen once, so that an attempt whose answer got lost is recognized by the next one: by the id,
    or by its files, for another writer may have expired the snapshot and carried its manifests over. Nothing that an
    attempt wrote is removed before the newest metadata has shown that no snapshot has it.
    """
    if not len(rewrite.removed):
        raise TableError(f"The rewrite of {quoted(target.name)} replaces no files.")
    snapshot_id = uuid.uuid4().int >> 65 or 1
    known: KnownEntries = {}
    failed: list[_Attempt] = []
    for attempt in range(ATTEMPTS + 1):
        table = target.load() if not failed else _settled(target, snapshot_id, rewrite, failed)
        if table is None:
            return snapshot_id
        if attempt == ATTEMPTS:
            break
        replacement = replaced(
            target.name, table.metadata, table.io, branch=target.branch, rewrite=rewrite, schema=schema, known=known
        )
        work = _Attempt(table, target.branch, snapshot_id, rewrite, schema, replacement)
        asked = prepared(target.name, work.updates, work.clean, sending)
        try:
            commit_updates(table, *asked)
            return snapshot_id
        except Exception as error:
            if not isinstance(error, CommitFailedException) and not is_retried(error):
                return _looked_up(target, snapshot_id, error)
            failed.append(work)  # perhaps: a client that repeats requests can report the failure of the second
        time.sleep(min(0.05 * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5))  # noqa: S311 - only a pause
    raise ConflictError(
        f"{quoted(target.name)} changes faster than zonal can commit: {ATTEMPTS} attempts failed. Try again later."
    )


def _settled(target: Target, snapshot_id: int, rewrite: Rewrite, failed: list["_Attempt"]) -> Table | None:
    """Load the table after attempts that were reported as failed, and remove their files; None if one succeeded."""
    try:
        table = target.load()
        if table.metadata.snapshot_by_id(snapshot_id) is not None:
            return None
        kept = _paths_since(table, rewrite)
    except Exception as error:
        raise _unknown(target, snapshot_id, error) from error
    if any(file.path in kept for file in rewrite.added):
        return None
    for work in failed:
        work.clean(kept)
    failed.clear()
    return table


def files_since(table: Table, rewrite: Rewrite) -> set[str]:
    """Return those of a rewrite's new files that a snapshot since its base refers to."""
    return _paths_since(table, rewrite) & {file.path for file in rewrite.added}


def _paths_since(table: Table, rewrite: Rewrite) -> set[str]:
    """Return the manifest lists, manifests and files that snapshots since a rewrite's base refer to."""
    known: KnownEntries = {}
    paths: set[str] = set()
    for snapshot in _since(table, rewrite):
        paths.add(snapshot.manifest_list)
        for part in read_contents(table.io, snapshot.manifest_list, known):
            paths |= {str(part.line[MANIFEST_PATH]), *(entry.path for entry in part.entries)}
    return paths


def _since(table: Table, rewrite: Rewrite) -> list[Snapshot]:
    """List the snapshots that were committed after a rewrite's base; all of them where the base is gone."""
    base = table.metadata.snapshot_by_id(rewrite.base.version) if rewrite.base.version is not None else None
    if base is None or not base.sequence_number:  # version 1 has no sequence numbers
        return list(table.metadata.snapshots)
    return [entry for entry in table.metadata.snapshots if (entry.sequence_number or 0) > (base.sequence_number or 0)]


Updates = TypeVar("Updates")


def prepared(name: str, write: Callable[[], Updates], clean: Callable[[], None], sending: Sending) -> Updates:
    """Write the metadata files of a snapshot and announce the commit; where that fails, none of them is left."""
    try:
        updates = write()
        sending()
    except Exception as error:  # object stores raise errors of their own
        clean()
        if isinstance(error, TableError):
            raise
        raise TableError(f"Can't write the new metadata of {quoted(name)}: {what_of(error)}") from error
    return updates


def is_retried(error: Exception) -> bool:
    """Tell whether nothing was committed: another commit took our numbers first, or SQLite was locked."""
    text = str(error)
    numbers = isinstance(error, ValueError) and ("sequence number" in text or "first row id" in text)
    return numbers or "database is locked" in text or "database table is locked" in text


def _looked_up(target: Target, snapshot_id: int, error: Exception) -> int:
    with suppress(TableError):  # the catalog can't be asked either
        if target.load().metadata.snapshot_by_id(snapshot_id) is not None:
            return snapshot_id
    raise _unknown(target, snapshot_id, error) from error


def _unknown(target: Target, snapshot_id: int, error: Exception) -> CommitUnknownError:
    return CommitUnknownError(
        f"The catalog didn't say whether the commit to {quoted(target.name)} succeeded "
        f"({what_of(error)}). The new files stay; see whether the table has a "
        f"snapshot {snapshot_id} before you try again."
    )


class _Attempt:
    """One attempt: writes manifests and a manifest list, and gives the updates for the catalog."""

    def __init__(
        self,
        table: Table,
        branch: str,
        snapshot_id: int,
        rewrite: Rewrite,
        schema: Schema,
        replacement: IcebergReplacement,
    ) -> None:
        self._table, self._metadata = table, table.metadata
        self._branch, self._snapshot_id, self._rewrite, self._schema = branch, snapshot_id, rewrite, schema
        self._replacement = replacement
        self._id = uuid.uuid4()
        self._sequence = self._metadata.next_sequence_number()
        self._paths: list[str] = []

    def updates(self) -> tuple[list[TableRequirement], list[TableUpdate]]:
        """Write the metadata files of the new snapshot, and return what the catalog must check and do."""
        order, updates = self._sort_order()
        added = self._added(order)
        lines = [*self._write(added), *self._carried_over()]
        snapshot = self._snapshot(lines, added)
        flush_folders(self._paths, self._metadata.location)
        ref, head = self._metadata.refs[self._branch], self._replacement.head
        layout = self._rewrite.layout.to_json()
        if self._metadata.properties.get(LAYOUT_PROPERTY) != layout:
            updates.append(SetPropertiesUpdate(updates={LAYOUT_PROPERTY: layout}))
        updates += [
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate.model_validate(
                # With the branch's own retention settings.
                {
                    **ref.model_dump(by_alias=True, exclude_none=True),
                    "snapshot-id": self._snapshot_id,
                    "ref-name": self._branch,
                }
            ),
        ]
        requirements: list[TableRequirement] = [
            AssertTableUUID(uuid=self._metadata.table_uuid),
            AssertCurrentSchemaId.model_validate({"current-schema-id": self._metadata.current_schema_id}),
            AssertRefSnapshotId.model_validate({"ref": self._branch, "snapshot-id": head.snapshot_id}),
        ]
        return requirements, updates

    def clean(self, kept: Collection[str] = ()) -> None:
        """Remove what the attempt wrote, except for what the table refers to."""
        for path in self._paths:
            if path not in kept:
                with suppress(Exception):  # an orphan file does no harm
                    self._table.io.delete(path)

    # --- entries ---

    def _sort_order(self) -> tuple[int | None, list[TableUpdate]]:
        fields = sort_fields(self._rewrite.layout, self._schema)
        if not fields:
            return None, []
        orders = self._metadata.sort_orders
        known = next((order.order_id for order in orders if list(order.fields) == fields), None)
        if known is not None:
            return known, []
        order = SortOrder(*fields, order_id=max((order.order_id for order in orders), default=0) + 1)
        return order.order_id, [AddSortOrderUpdate.model_validate({"sort-order": order})]

    def _added(self, order: int | None) -> list[tuple[int, Fields]]:
        """Describe the new files; each takes over the partition of files that it replaces."""
        partitions = partitions_of(self._rewrite, self._replacement.data)
        kept = kept_metrics(self._schema, self._metadata.properties, self._rewrite.layout.columns)
        added = []
        for written in self._rewrite.added:
            if written.partition not in partitions:
                raise TableError(
                    f"The new file {quoted(written.path, limit=300)} is in a partition of which no file is replaced."
                )
            source = partitions[written.partition]
            file = data_file(written, kept, partition=source.file[PARTITION], sort_order_id=order)
            added.append((source.spec_id, file))
        return added

    def _write(self, added: Sequence[tuple[int, Fields]]) -> Iterator[Fields]:
        by_spec: dict[int, list[Fields]] = defaultdict(list)
        for spec_id, file in added:
            # With the data sequence number of the snapshot that was read, equality deletes that were committed since
            # apply to the new files as well, and older ones, which have been applied, don't.
            by_spec[spec_id].append(
                {
                    STATUS: ADDED,
                    SNAPSHOT_ID: self._snapshot_id,
                    SEQUENCE_NUMBER: self._replacement.base.sequence_number or 0,
                    FILE_SEQUENCE: None,
                    DATA_FILE: file,
                }
            )
        for spec_id, entries in by_spec.items():
            for start in range(0, len(entries), MANIFEST_FILES):
                yield self._manifest(entries[start : start + MANIFEST_FILES], spec_id, DATA)

    def _carried_over(self) -> Iterator[Fields]:
        """Keep the head's manifests; those with files that go are written again, without what went earlier."""
        gone = self._replacement.gone
        for part in self._replacement.contents:
            line = counted(self._table.io, part.line) if self._metadata.format_version > 1 else part.line
            if any(id(entry) in gone for entry in part.entries):
                entries = [self._kept(entry, is_gone=id(entry) in gone) for entry in part.entries]
                yield self._manifest(entries, int(line[SPEC_ID]), DATA if part.holds_data else DELETES)
            elif _has_files(part, line):
                yield line

    def _kept(self, entry: ManifestEntry, *, is_gone: bool) -> Fields:
        return {
            STATUS: DELETED if is_gone else EXISTING,
            SNAPSHOT_ID: self._snapshot_id if is_gone else entry.snapshot_id,
            SEQUENCE_NUMBER: entry.sequence,
            FILE_SEQUENCE: entry.file_sequence,
            DATA_FILE: {**entry.file, FIRST_ROW_ID: entry.first_row_id},
        }

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

    def _snapshot(self, lines: Sequence[Fields], added: Sequence[tuple[int, Fields]]) -> Snapshot:
        metadata, head = self._metadata, self._replacement.head
        next_row_id = next_row_id_of(metadata)
        path = self._location(f"snap-{self._snapshot_id}-0-{self._id}.avro")
        assigned = write_manifest_list(
            self._table.io,
            path,
            lines,
            version=metadata.format_version,
            snapshot_id=self._snapshot_id,
            parent_id=head.snapshot_id,
            sequence=self._sequence,
            next_row_id=next_row_id,
        )
        details: Mapping[str, str] = {
            LAYOUT_PROPERTY: self._rewrite.layout.to_json(),
            RUN: self._rewrite.run,
            **summary_of([file for _, file in added], self._replacement),
        }
        return Snapshot.model_validate(
            {
                "snapshot-id": self._snapshot_id,
                "parent-snapshot-id": head.snapshot_id,
                "sequence-number": self._sequence,
                # "Snapshots": times don't go backwards, even where the clocks of writers differ.
                "timestamp-ms": max(int(time.time() * 1000), head.timestamp_ms, metadata.last_updated_ms),
                "manifest-list": path,
                "summary": Summary(operation=Operation.REPLACE, **details),
                "schema-id": metadata.current_schema_id,
                "first-row-id": next_row_id,
                "added-rows": assigned if next_row_id is not None else None,
            }
        )


def _has_files(part: Contents, line: Fields) -> bool:
    counts = [line.get(field) for field in (ADDED_FILES, EXISTING_FILES)]
    return bool(part.entries) or any(counts)


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
