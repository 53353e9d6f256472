"""Which snapshots of an Iceberg table have expired, and the commit that removes them.

A snapshot stays while any moment that is kept can be asked for by it: "Snapshot Retention Policy" of the specification,
and the snapshot that was current at the oldest of these moments, which Iceberg's own expiry removes.
"""

import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotsUpdate,
    TableRequirement,
    TableUpdate,
    ValidatableTableRequirement,
)

from zonal.cleaning.retention import Promise, Retention
from zonal.errors import CommitUnknownError, ConflictError, TableError, quoted
from zonal.tables.iceberg.commit import ATTEMPTS, LONGEST_PAUSE, is_retried
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.manifest_writers import commit_updates, lost_metadata

_AGE, _LEAST = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"
_GC = "gc.enabled"


def refuse_shared(name: str, metadata: TableMetadata) -> None:
    """Raise an error for a table whose files may be another one's, as those of a snapshot table are."""
    if str(metadata.properties.get(_GC, "true")).strip().lower() != "true":
        raise TableError(
            f"{quoted(name)} can't be cleaned: its property {_GC} is false, by which its files may be another table's."
        )


def promises(metadata: TableMetadata) -> tuple[Promise, ...]:
    """Return how long a table itself keeps snapshots; Iceberg's default promises nothing against an explicit time."""
    text = metadata.properties.get(_AGE)
    return () if text is None else (Promise(_AGE, timedelta(milliseconds=_number(_AGE, text))),)


def expiring(metadata: TableMetadata, retention: Retention) -> tuple[int, ...]:
    """Return the snapshots that no kept moment, branch or tag needs; oldest first."""
    if retention.cutoff is None or retention.expire is None:
        return ()
    known = {entry.snapshot_id: entry for entry in metadata.snapshots}
    cutoff = _milliseconds(retention.cutoff)
    kept = {number for number, entry in known.items() if entry.timestamp_ms > cutoff}
    for ref in _refs(metadata):
        kept.add(ref.snapshot_id)
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH:
            kept.update(_kept_of(ref, metadata, known, retention))
    moments = sorted(metadata.snapshot_log, key=lambda entry: entry.timestamp_ms)
    kept |= {entry.snapshot_id for entry in moments if entry.timestamp_ms > cutoff}
    kept |= {entry.snapshot_id for entry in [each for each in moments if each.timestamp_ms <= cutoff][-1:]}
    old = [entry for number, entry in known.items() if number not in kept]
    return tuple(entry.snapshot_id for entry in sorted(old, key=lambda entry: entry.timestamp_ms))


def _refs(metadata: TableMetadata) -> Iterator[SnapshotRef]:
    yield from metadata.refs.values()
    if MAIN_BRANCH not in metadata.refs and metadata.current_snapshot_id is not None:
        yield SnapshotRef.model_validate({"snapshot-id": metadata.current_snapshot_id, "type": SnapshotRefType.BRANCH})


def _kept_of(
    ref: SnapshotRef, metadata: TableMetadata, known: dict[int, Snapshot], retention: Retention
) -> Iterator[int]:
    """Yield the snapshots of a branch that stay: some in any case, and those of the time that is kept."""
    least = ref.min_snapshots_to_keep or _number(_LEAST, metadata.properties.get(_LEAST, "1"))
    own = timedelta(milliseconds=ref.max_snapshot_age_ms or 0)
    cutoff = _milliseconds(retention.now - max(own, retention.expire or own))
    seen: set[int] = set()
    entry, is_over = known.get(ref.snapshot_id), False
    while entry is not None and entry.snapshot_id not in seen:
        if is_over and len(seen) >= least:
            return
        seen.add(entry.snapshot_id)
        yield entry.snapshot_id
        is_over = is_over or entry.timestamp_ms <= cutoff  # it was current at the cutoff; those before weren't
        entry = known.get(entry.parent_snapshot_id) if entry.parent_snapshot_id is not None else None


def _number(name: str, text: str) -> int:
    try:
        return max(0, int(text))
    except ValueError:
        raise TableError(f"The table property {name} is {quoted(text)}, which is not a number.") from None


def _milliseconds(moment: datetime) -> float:
    return moment.timestamp() * 1000


# --- the commit ------------------------------------------------------------------------------------------------------


class _SameRefs(ValidatableTableRequirement):
    """Branches and tags are still the same: where one stands at an expired snapshot, that would take it along.

    REST catalogs are asked for each that is known; a new one between reading and committing, only the others notice.
    """

    type: str = "zonal-assert-same-refs"
    refs: dict[str, int]

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        """Refuse the commit where another one came first."""
        if base_metadata is None or _standing(base_metadata) != self.refs:
            raise CommitFailedException("Branches or tags have changed.")


def _standing(metadata: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in metadata.refs.items()}


def expire(name: str, load: Callable[[], Table], retention: Retention) -> tuple[int, ...]:
    """Remove expired snapshots from the metadata in one commit, and return their ids; see `Expirable`."""
    for attempt in range(ATTEMPTS):
        table = load()
        refuse_shared(name, table.metadata)
        retention.hold(name, promises(table.metadata))
        ids = expiring(table.metadata, retention)
        if not ids:
            return ()
        if lost := lost_metadata(table):
            raise TableError(
                f"{quoted(name)} can't be cleaned: its metadata has parts that PyIceberg would lose, such as "
                f"{quoted(lost[0])}."
            )
        try:
            commit_updates(table, *_request(table, ids))
            return ids
        except Exception as error:  # every catalog brings the errors of its own client
            if _is_done(name, load, ids, error):
                return ids
            if not isinstance(error, (CommitFailedException, ValueError)) and not is_retried(error):
                raise TableError(
                    f"No snapshot of {quoted(name)} was removed, and no file was moved: {what_of(error)}"
                ) from error
        time.sleep(min(0.05 * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5))  # noqa: S311 - only a pause
    raise ConflictError(
        f"{quoted(name)} changes faster than zonal can commit: {ATTEMPTS} attempts failed. Try again later."
    )


def _request(table: Table, ids: tuple[int, ...]) -> tuple[list[TableRequirement], list[TableUpdate]]:
    metadata = table.metadata
    requirements: list[TableRequirement] = [
        AssertTableUUID(uuid=metadata.table_uuid),
        *(
            AssertRefSnapshotId.model_validate({"ref": ref, "snapshot-id": number})
            for ref, number in _standing(metadata).items()
        ),
    ]
    if isinstance(table.catalog, MetastoreCatalog):
        requirements.append(_SameRefs(refs=_standing(metadata)))  # type: ignore[arg-type]
    updates: list[TableUpdate] = [
        RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": entry.snapshot_id})
        for entry in metadata.partition_statistics
        if entry.snapshot_id in ids
    ]
    return requirements, [*updates, RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(ids)})]


def _is_done(name: str, load: Callable[[], Table], ids: tuple[int, ...], error: Exception) -> bool:
    """Tell whether a commit that was reported as failed happened all the same; an expired snapshot never comes back."""
    try:
        metadata = load().metadata
    except TableError as problem:
        raise CommitUnknownError(
            f"The catalog didn't say whether snapshots of {quoted(name)} were removed ({what_of(error)}; {problem}). "
            "No file was moved: run it again."
        ) from error
    return not any(metadata.snapshot_by_id(number) for number in ids)
