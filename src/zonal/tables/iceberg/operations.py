"""What kind of commit an Iceberg snapshot is, and who made it, by its summary.

Engines that run on Iceberg's Java library leave `engine-name` there; PyIceberg leaves no name, and nobody is guessed.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timezone

from pyiceberg.table.snapshots import Snapshot as PyIcebergSnapshot

from zonal.snapshot import Commit, CommitKind
from zonal.tables.engines import RUN_MARK, marked_engine
from zonal.tables.iceberg.summary import DELETE_BYTES

_KINDS: Mapping[str, CommitKind] = {
    "append": "append",
    "replace": "compaction",
    "overwrite": "overwrite",
    "delete": "delete",
}
_NAMES = {"spark": "Spark", "flink": "Flink", "trino": "Trino", "presto": "Presto", "hive": "Hive", "zonal": "zonal"}


def commit_of(snapshot: PyIcebergSnapshot) -> Commit:
    """Describe a snapshot as an entry of the table's history."""
    summary = snapshot.summary
    operation = summary.operation.value if summary else "unknown"
    details = dict(summary.additional_properties) if summary else {}
    kind = kind_of(operation, details)
    return Commit(
        snapshot.snapshot_id,
        time_of(snapshot.timestamp_ms),
        operation,
        details,
        parent=snapshot.parent_snapshot_id,
        kind=kind,
        writer=writer_of(details),
        only_adds=kind == "append",  # by the specification's "Snapshots"
        added_bytes=_data_bytes(details),
        added_rows=_number(details.get("added-records")),
        is_first=_is_first(snapshot, details),
        run=details.get(RUN_MARK, ""),
    )


def _is_first(snapshot: PyIcebergSnapshot, details: Mapping[str, str]) -> bool:
    """Tell whether a snapshot is a table's first: without a parent it need not be, for expiry may take that away.

    In version 1, where snapshots have no numbers, the first has no files but those that it added.
    """
    if snapshot.parent_snapshot_id is not None:
        return False
    files, added = (_number(details.get(name)) for name in ("total-data-files", "added-data-files"))
    return snapshot.sequence_number == 1 or (not snapshot.sequence_number and files is not None and files == added)


def _data_bytes(details: Mapping[str, str]) -> int | None:
    """Return the size of a snapshot's new data files; None where only that of delete files and data files is known."""
    every, deletes = (_number(details.get(name, "0")) for name in ("added-files-size", DELETE_BYTES))
    if not _number(details.get("added-delete-files")):
        return every
    if not _number(details.get("added-data-files")):
        return 0
    return every - deletes if every and deletes and every > deletes else None


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,18}", text, re.ASCII) else None


def time_of(milliseconds: int) -> datetime | None:
    """Return a moment of the metadata; None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None


def kind_of(operation: str, details: Mapping[str, str]) -> CommitKind:
    """Tell the kind of a snapshot.

    Iceberg tells copy-on-write deletes from other overwrites by their operation no more than PyIceberg does, so they
    are overwrites, too. Of zonal's own, an append is one like those of others: it brings rows.
    """
    kind = _KINDS.get(operation.lower(), "unknown")
    return "zonal" if RUN_MARK in details and kind != "append" else kind


def writer_of(details: Mapping[str, str]) -> str:
    """Return the engine with its version, as far as the summary tells; an empty text where it doesn't.

    >>> writer_of({"engine-name": "spark", "engine-version": "4.1.4"})
    'Spark 4.1.4'
    """
    engine = details.get("engine-name")
    if RUN_MARK in details or not engine:
        return marked_engine(details)
    version = details.get("engine-version")
    return _NAMES.get(engine.lower(), engine) + (f" {version}" if version else "")
