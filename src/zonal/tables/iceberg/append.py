"""Append files to an Iceberg table: how its rows are partitioned, and the snapshot that adds their files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import AssertDefaultSpecId, TableRequirement
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import StructType

from zonal.errors import ConflictError, TableError, ZonalError, quoted
from zonal.plan.append import Append, Appending, PartitionField, Transaction, TransactionSeenError
from zonal.plan.append import Transform as Computed
from zonal.plan.rewrite import Reading, Writing, Written
from zonal.tables.iceberg.arrow_schema import reading_schema, writing_schema
from zonal.tables.iceberg.bounds import fields
from zonal.tables.iceberg.commit import Target, committed
from zonal.tables.iceberg.conflicts import ancestors
from zonal.tables.iceberg.field_ids import Fields
from zonal.tables.iceberg.manifests import counted, read_lines
from zonal.tables.iceberg.metrics import plain
from zonal.tables.iceberg.new_snapshot import NewSnapshot, has_files
from zonal.tables.iceberg.scan import scalar
from zonal.tables.iceberg.summary import added_counts, totals
from zonal.tables.protocol import LAYOUT_PROPERTY, Sending

TRANSACTION = "zonal.transaction"
"""Key of a summary: the application and the version of the batch that the snapshot added, as JSON."""
_COMPUTED: Sequence[tuple[type[Transform[Any, Any]], Computed]] = (
    (IdentityTransform, "identity"),
    (VoidTransform, "void"),
    (YearTransform, "year"),
    (MonthTransform, "month"),
    (DayTransform, "day"),
    (HourTransform, "hour"),
    (BucketTransform, "bucket"),
    (TruncateTransform, "truncate"),
)


def appending_of(name: str, table: Table, schema: Schema, writing: Writing) -> Appending:
    """Return how rows become files; `writing` is that of a rewrite, whose files may have columns that track rows."""
    arrow = reading_schema(schema)
    return Appending(
        schema=arrow,
        partitioning=tuple(_partitioning(name, table.metadata.spec(), schema)),
        in_files=tuple(range(len(arrow))),
        reading=Reading(arrow, by_id=True),
        columns={path: path for path in fields(schema)},
        writing=replace(writing, schema=writing_schema(schema), properties=()),
        defaults={
            field.name: scalar(field.write_default, field.field_type)
            for field in schema.fields
            if field.write_default is not None
        },
    )


def _partitioning(name: str, spec: PartitionSpec, schema: Schema) -> Iterator[PartitionField]:
    for field in spec.fields:
        transform = field.transform
        computed = next((word for kind, word in _COMPUTED if isinstance(transform, kind)), None)
        column = _position(schema.as_struct(), field.source_id)
        if isinstance(transform, VoidTransform):
            yield PartitionField(column or (0,), "void")
        elif computed is None or column is None:
            raise TableError(
                f"Rows can't be appended to {quoted(name)}: zonal can't compute its partition field "
                f"{quoted(field.name)}, which is {quoted(str(transform))}."
            )
        else:
            width = getattr(transform, "num_buckets", 0) or getattr(transform, "width", 0)
            yield PartitionField(column, computed, width)


def _position(struct: StructType, field_id: int) -> tuple[int, ...] | None:
    """Return the positions from the top down to a field; None for one that isn't there, or is in a list or a map."""
    for at, field in enumerate(struct.fields):
        if field.field_id == field_id:
            return (at,)
        below = _position(field.field_type, field_id) if isinstance(field.field_type, StructType) else None
        if below is not None:
            return (at, *below)
    return None


def last_transaction(metadata: TableMetadata, branch: str, head: Snapshot | None, application: str) -> int | None:
    """Return the last version of an application that a branch has.

    The summaries of the head and its ancestors tell. Where the snapshot of the last batch is expired, the table's
    property does; one that is there, but no ancestor, was rolled back, and its rows with it.
    """
    seen = [_transaction(entry) for entry in ancestors(head, metadata)]
    versions = [one.version for one in seen if one is not None and one.application == application]
    held = _read(metadata.properties.get(_property(branch, application)))
    if held is not None and metadata.snapshot_by_id(held[1]) is None:
        versions.append(held[0])
    return max(versions, default=None)


def _transaction(snapshot: Snapshot) -> Transaction | None:
    text = (snapshot.summary.additional_properties if snapshot.summary else {}).get(TRANSACTION)
    try:
        return None if text is None else Transaction(*json.loads(text))
    except (ValueError, TypeError, ZonalError):  # what others wrote there names no batch of ours
        return None


def _property(branch: str, application: str) -> str:
    return f"{TRANSACTION}.{application}" if branch == MAIN_BRANCH else f"{TRANSACTION}@{branch}.{application}"


def _read(text: str | None) -> tuple[int, int] | None:
    """Read a property: the version of the last batch, and the snapshot that added it."""
    try:
        version, snapshot_id = json.loads(text or "null")
        return int(version), int(snapshot_id)
    except (ValueError, TypeError):
        return None


def commit_append(target: Target, append: Append, *, table: Table, schema: Schema, sending: Sending) -> int:
    """Add files in one snapshot and return its id; the rows were checked against `table` and `schema`."""
    return committed(
        target,
        append,
        lambda newest, snapshot_id: AppendingSnapshot(
            newest, target.branch, snapshot_id, append, schema, _head(target, append, table.metadata, newest.metadata)
        ),
        sending=sending,
    )


def _head(target: Target, append: Append, before: TableMetadata, now: TableMetadata) -> Snapshot | None:
    """Return the head of the branch, or raise an error where the rows don't fit the table any more."""
    name = quoted(target.name)
    if now.table_uuid != before.table_uuid:
        raise ConflictError(f"{name} was replaced by another table meanwhile.")
    same = now.schema().as_struct() == before.schema().as_struct()
    if not same or now.spec() != before.spec() or now.format_version != before.format_version:
        raise ConflictError(
            f"The schema or the partitioning of {name} was changed while rows were appended. Append them again."
        )
    ref = now.refs.get(target.branch)
    if ref is None and (append.base.version is not None or now.current_snapshot_id is not None):
        raise ConflictError(f"The branch {quoted(target.branch)} of {name} is gone.")
    head = None if ref is None else now.snapshot_by_id(ref.snapshot_id)
    transaction = append.transaction
    if transaction is not None:
        last = last_transaction(now, target.branch, head, transaction.application)
        if last is not None and last >= transaction.version:
            raise TransactionSeenError(f"{name} has version {last} of {quoted(transaction.application)} already.")
    return head


class AppendingSnapshot(NewSnapshot):
    """An `append` snapshot: new files beside all that the head has."""

    operation = Operation.APPEND
    data_sequence = None

    def __init__(
        self, table: Table, branch: str, snapshot_id: int, append: Append, schema: Schema, head: Snapshot | None
    ) -> None:
        super().__init__(table, branch, snapshot_id, append, schema)
        self._append, self._head = append, head

    @property
    def head(self) -> Snapshot | None:
        """Return the head; None in a table without snapshots."""
        return self._head

    def place(self, written: Written) -> tuple[int, Mapping[int, object]]:
        """Return the table's present partition spec, and the values that were computed from the file's rows."""
        spec = self._metadata.spec()
        values = self._append.partitions[written.partition]
        return spec.spec_id, {field.field_id: _plain(value) for field, value in zip(spec.fields, values, strict=True)}

    def carried_over(self) -> Iterator[Fields]:
        """Keep the head's manifests, unread."""
        for line in read_lines(self._table.io, None if self._head is None else self._head.manifest_list):
            line = counted(self._table.io, line) if self._metadata.format_version > 1 else line
            if self._metadata.format_version == 1 or has_files(line):  # in version 1, lines need no counts
                yield line

    def details(self, added: Sequence[Fields]) -> dict[str, str]:
        """Count what is added, and name the batch."""
        counts = added_counts(added)
        counts["changed-partition-count"] = len({file.partition for file in self._append.added})
        transaction = self._append.transaction
        named = {} if transaction is None else {TRANSACTION: json.dumps([transaction.application, transaction.version])}
        return {name: str(count) for name, count in counts.items()} | totals(counts, self._head) | named

    def properties(self) -> dict[str, str]:
        """Record the layout where there is none, as only `cluster` changes one, and the batch."""
        layout = {LAYOUT_PROPERTY: self._append.layout.to_json()}
        transaction = self._append.transaction
        named = {}
        if transaction is not None:
            batch = json.dumps([transaction.version, self._snapshot_id])
            named = {_property(self._branch, transaction.application): batch}
        return named if LAYOUT_PROPERTY in self._metadata.properties else layout | named

    def requirements(self) -> list[TableRequirement]:
        """Let the catalog check the partition spec, too."""
        spec = AssertDefaultSpecId.model_validate({"default-spec-id": self._metadata.default_spec_id})
        return [*super().requirements(), spec]


def _plain(value: pa.Scalar) -> object:
    return plain(value) if value.is_valid else None
