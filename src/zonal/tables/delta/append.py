"""Append files to a Delta table: what the table asks of new rows, and the actions of the commit."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from zonal.errors import ConflictError, TableError, quoted
from zonal.plan.append import Appending, PartitionField, PartitionValues, Transaction, TransactionSeenError
from zonal.plan.rewrite import Writing
from zonal.tables.delta.additions import Additions, added_actions, commit_info, parsed_schema, with_properties
from zonal.tables.delta.adds import RUN_TAG
from zonal.tables.delta.commit import Action
from zonal.tables.delta.features import blockers_of
from zonal.tables.delta.log import Metadata, State
from zonal.tables.delta.partition_values import partition_text
from zonal.tables.delta.scan import Columns
from zonal.tables.hive_folders import hive_folders
from zonal.tables.protocol import LAYOUT_PROPERTY

CODEC = "zstd"
"""Of new files, where the table's properties name none."""
_CONSTRAINT = "delta.constraints."
_DEFAULT = "CURRENT_DEFAULT"
_ASKED = {
    "delta.invariants": "the invariant of column {}",
    "delta.generationExpression": "the generated column {}",
    "delta.identity.start": "the identity column {}",
    "__CHAR_VARCHAR_TYPE_STRING": "the length of the texts in column {}",
}
"""What the metadata of a field asks of every new row, and only an engine with SQL can give."""


def refuse_unfit(metadata: Metadata, blockers: Sequence[str], name: str) -> None:
    """Raise one error that names everything for which rows can't be appended here."""
    reasons = [*blockers, *_demands(metadata)]
    if reasons:
        raise TableError(
            f"Rows can't be appended to {quoted(name, limit=300)}: zonal can't keep its {', '.join(reasons)}. Append "
            "with an engine that can, and let `cluster` put the new files in order."
        )


def _demands(metadata: Metadata) -> Iterator[str]:
    """Name what the table checks or computes in SQL for every new row."""
    for key in sorted(metadata.configuration):
        if key.startswith(_CONSTRAINT):
            yield f"CHECK constraint {quoted(key[len(_CONSTRAINT) :])}"
    try:
        fields = list(_fields(json.loads(metadata.schema), ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TableError(f"The table's schema can't be read: {type(error).__name__} {error}") from None
    for path, field in fields:
        told = field.get("metadata") or {}
        yield from (text.format(quoted(path)) for key, text in _ASKED.items() if key in told)
        if field["type"] == "variant":
            yield f"variant column {quoted(path)}"


def _fields(kind: Any, above: str) -> Iterator[tuple[str, Mapping[str, Any]]]:  # noqa: ANN401 - whatever JSON has
    """Yield all fields with their dotted paths, those inside of arrays and maps included."""
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", ()):
        yield f"{above}{field['name']}", field
        yield from _fields(field["type"], f"{above}{field['name']}.")
    for part in ("elementType", "keyType", "valueType"):
        yield from _fields(kind.get(part), above)


def appending_of(state: State, schema: pa.Schema, writing: Writing) -> Appending:
    """Return how rows become files; `writing` is that of a rewrite, whose files may have columns that track rows."""
    columns = Columns.of(state.metadata)
    reading = columns.reading_of(columns.in_files)
    return Appending(
        schema=schema,
        partitioning=tuple(PartitionField((schema.names.index(name),)) for name in columns.partitioning),
        in_files=tuple(schema.names.index(name) for name in columns.in_files),
        reading=reading,
        columns=columns.paths(columns.in_files),
        writing=replace(
            writing,
            schema=reading.schema,
            compression=writing.compression or CODEC,
            subfolders=(),
            properties=(),
        ),
        unfillable={
            path: f"its default, {quoted(field['metadata'][_DEFAULT])}, is SQL, which zonal doesn't compute"
            for path, field in _fields(json.loads(state.metadata.schema), "")
            if _DEFAULT in (field.get("metadata") or {})
        },
    )


def values_of(metadata: Metadata, partitions: Sequence[PartitionValues]) -> list[dict[str, str | None]]:
    """Return the values of each partition as the log has them, by physical name."""
    fields = Columns.of(metadata).fields
    return [
        {
            fields[name].name: partition_text(value, name)
            for name, value in zip(metadata.partitioning, values, strict=True)
        }
        for values in partitions
    ]


def folders_of(metadata: Metadata, partitions: Sequence[PartitionValues]) -> tuple[str, ...]:
    """Return the folder of each partition, as a rewrite names it; none where the table isn't partitioned."""
    if not metadata.partitioning:
        return ()
    return tuple(hive_folders(values, empty="", plain_keys=True) or "" for values in values_of(metadata, partitions))


@dataclass(frozen=True, eq=False, kw_only=True)
class DeltaAppend(Additions):
    """The files that a commit adds, with the batch that they are."""

    transaction: Transaction | None

    def actions(self, current: State) -> Iterator[Action]:
        """Yield the actions of the version after `current`; see `LogChange`."""
        self.same_table(current)
        refuse_seen(current, self.transaction, self.root)
        if _shape(current.metadata) != _shape(self.base.metadata):
            raise ConflictError(
                f"The schema or the partitioning of {quoted(self.root, limit=300)} was changed while rows were "
                f"appended that fit version {self.base.version}. Append them again."
            )
        refuse_unfit(current.metadata, blockers_of(current.protocol, current.metadata), self.root)
        return self._lines(current)

    def _lines(self, current: State) -> Iterator[Action]:
        now = time.time_ns() // 1_000_000
        yield {"commitInfo": self._info(current, now)}
        if self.transaction is not None:
            named = {"appId": self.transaction.application, "version": self.transaction.version, "lastUpdated": now}
            yield {"txn": named}
        if LAYOUT_PROPERTY not in current.metadata.configuration:
            yield {"metaData": with_properties(current.metadata, self.layout).action}
        columns = Columns.of(current.metadata)
        schema = columns.reading_of(columns.in_files).schema
        yield from added_actions(self, current, schema, now, data_change=True)

    def _info(self, current: State, now: int) -> Action:
        metrics = {
            "numFiles": len(self.added),
            "numOutputRows": sum(file.rows for file in self.added),
            "numOutputBytes": sum(file.size for file in self.added),
        }
        return commit_info(
            current,
            now,
            operation="WRITE",
            operationParameters={
                "mode": "Append",
                "partitionBy": json.dumps(current.metadata.partitioning),
                LAYOUT_PROPERTY: self.layout.to_json(),
                RUN_TAG: self.run,
            },
            isolationLevel="WriteSerializable",
            isBlindAppend=True,
            operationMetrics={name: str(number) for name, number in metrics.items()},
        )


def refuse_seen(state: State, transaction: Transaction | None, name: str) -> None:
    """Raise an error where the table has a transaction already ("Transaction Identifiers")."""
    last = None if transaction is None else state.transactions.get(transaction.application)
    if transaction is not None and last is not None and last >= transaction.version:
        raise TransactionSeenError(
            f"{quoted(name, limit=300)} has version {last} of {quoted(transaction.application)} already."
        )


def _shape(metadata: Metadata) -> object:
    """Return what the files of an append depend on: the schema with its names in files, and the partitioning."""
    return parsed_schema(metadata), metadata.partitioning, metadata.configuration.get("delta.columnMapping.mode")
