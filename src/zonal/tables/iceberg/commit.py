"""Commit a change as one snapshot, validated and retried until it succeeds or can't.

PyIceberg's own transactions validate from the wrong snapshot, and bring deleted rows back in two cases; here every
attempt starts from the newest version and checks all that happened since the snapshot that was read.
"""

import random
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from zonal.errors import CommitUnknownError, ConflictError, TableError, quoted
from zonal.plan.rewrite import Rewrite, Written
from zonal.snapshot import Snapshot as BaseSnapshot
from zonal.tables.iceberg.conflicts import replaced
from zonal.tables.iceberg.deletes import DeleteIndex
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.field_ids import MANIFEST_PATH
from zonal.tables.iceberg.manifest_writers import commit_updates
from zonal.tables.iceberg.manifests import KnownEntries, read_contents
from zonal.tables.iceberg.new_snapshot import NewSnapshot, ReplacingSnapshot
from zonal.tables.protocol import Sending, unheard

ATTEMPTS = 10
LONGEST_PAUSE = 5.0


@dataclass(frozen=True, eq=False)
class Target:
    """A branch of a table, and how its newest version is loaded."""

    name: str
    branch: str
    load: Callable[[], Table]


class TableChange(Protocol):
    """What a commit does: new files on the ground of a version that was read."""

    @property
    def base(self) -> BaseSnapshot:
        """Return the version that was read."""

    @property
    def added(self) -> Sequence[Written]:
        """Return the new files."""


def commit_rewrite(
    target: Target, rewrite: Rewrite, *, schema: Schema, carried: DeleteIndex | None = None, sending: Sending = unheard
) -> int:
    """Replace files in one snapshot and return its id; `schema` and `carried` as in `conflicts.replaced`."""
    if not len(rewrite.removed):
        raise TableError(f"The rewrite of {quoted(target.name)} replaces no files.")
    known: KnownEntries = {}

    def attempt(table: Table, snapshot_id: int) -> NewSnapshot:
        replacement = replaced(
            target.name, table.metadata, table.io,
            branch=target.branch, rewrite=rewrite, schema=schema, known=known, carried=carried,
        )  # fmt: skip
        return ReplacingSnapshot(table, target.branch, snapshot_id, rewrite, schema, replacement)

    return committed(target, rewrite, attempt, sending=sending)


def committed(
    target: Target,
    change: TableChange,
    attempted: Callable[[Table, int], NewSnapshot],
    *,
    sending: Sending = unheard,
) -> int:
    """Commit a snapshot and return its id; `attempted` checks the change against the newest version, each time.

    The snapshot's id is chosen once, so that an attempt whose answer got lost is recognized by the next one: by the id,
    or by its files, for another writer may have expired the snapshot and carried its manifests over. Nothing that an
    attempt wrote is removed before the newest metadata has shown that no snapshot has it.
    """
    snapshot_id = uuid.uuid4().int >> 65 or 1
    failed: list[NewSnapshot] = []
    last: Exception | None = None
    for attempt in range(ATTEMPTS + 1):
        table = target.load() if not failed else _settled(target, snapshot_id, change, failed)
        if table is None:
            return snapshot_id
        if attempt == ATTEMPTS:
            break
        work = attempted(table, snapshot_id)
        asked = prepared(target.name, work.updates, work.clean, sending)
        try:
            commit_updates(table, *asked)
            return snapshot_id
        except Exception as error:
            if not isinstance(error, CommitFailedException) and not is_retried(error):
                return _looked_up(target, snapshot_id, error)
            last = error
            failed.append(work)  # perhaps: a client that repeats requests can report the failure of the second
        time.sleep(min(0.05 * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5))  # noqa: S311 - only a pause
    raise _exhausted(target.name, last)


def _exhausted(name: str, last: Exception | None) -> TableError:
    """Say why no attempt succeeded: others were faster, or a job keeps the lock of a Hive metastore.

    The latter is no conflict: files that are written again would wait for the same lock.
    """
    if "acquire lock" in str(last):
        return TableError(
            f"Another job holds the lock of {quoted(name)} in the metastore: {ATTEMPTS} attempts waited for it. Wait "
            "until that job ends; if it has died, the metastore releases the lock after hive.txn.timeout. SHOW LOCKS "
            "in Hive tells whose it is."
        )
    return ConflictError(
        f"{quoted(name)} changes faster than zonal can commit: {ATTEMPTS} attempts failed. Try again later."
    )


def _settled(target: Target, snapshot_id: int, change: TableChange, failed: list[NewSnapshot]) -> Table | None:
    """Load the table after attempts that were reported as failed, and remove their files; None if one succeeded."""
    try:
        table = target.load()
        if table.metadata.snapshot_by_id(snapshot_id) is not None:
            return None
        kept = _paths_since(table, change)
    except Exception as error:
        raise _unknown(target, snapshot_id, error) from error
    if any(file.path in kept for file in change.added):
        return None
    for work in failed:
        work.clean(kept)
    failed.clear()
    return table


def files_since(table: Table, change: TableChange) -> set[str]:
    """Return those of a change's new files that a snapshot since its base refers to.

    With them are delete files in the same folder, the run's own, whatever version of the change they were written for.
    """
    folders = {file.path.rpartition("/")[0] for file in change.added}
    return {path for path in _paths_since(table, change) if path.rpartition("/")[0] in folders}


def _paths_since(table: Table, change: TableChange) -> set[str]:
    """Return the manifest lists, manifests and files that snapshots since a change's base refer to."""
    known: KnownEntries = {}
    paths: set[str] = set()
    for snapshot in _since(table, change):
        paths.add(snapshot.manifest_list)
        for part in read_contents(table.io, snapshot.manifest_list, known):
            paths |= {str(part.line[MANIFEST_PATH]), *(entry.path for entry in part.entries)}
    return paths


def _since(table: Table, change: TableChange) -> list[Snapshot]:
    """List the snapshots that were committed after a change's base; all of them where the base is gone."""
    base = table.metadata.snapshot_by_id(change.base.version) if change.base.version is not None else None
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
