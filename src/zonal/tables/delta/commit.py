"""Commit a rewrite to a Delta log as one new version that replaces files by others with the same rows.

Every attempt reads the log up to its newest version and checks the rewrite against it; the new version's file then
appears whole or not at all, and only if no other writer wrote that version. So a concurrent append survives, and a
concurrent change of a file that would be replaced is a conflict.
"""

import errno
import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow.fs

from zonal.errors import CommitUnknownError, ConflictError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Property, Written
from zonal.storage import Storage
from zonal.storage.durability import flush_folder
from zonal.tables.delta.actions import add_action, has_bounds, remove_action, stats_json
from zonal.tables.delta.adds import LAYOUT_TAG, RUN_TAG, LiveFile
from zonal.tables.delta.indexed import indexed
from zonal.tables.delta.listing import Mark
from zonal.tables.delta.log import Metadata, State
from zonal.tables.delta.scan import Columns, is_true, tracks_rows
from zonal.tables.protocol import LAYOUT_PROPERTY, Sending, unheard

Action = dict[str, Any]

ATTEMPTS = 20
_LONGEST_WAIT = 1.0
_ROW_IDS = "delta.rowTracking"
_REFUSED = frozenset(
    getattr(errno, name)
    for name in ("EACCES", "EDQUOT", "EMLINK", "ENOENT", "ENOSPC", "ENOSYS", "EOPNOTSUPP", "EPERM", "EROFS", "EXDEV")
    if hasattr(errno, name)
)
"""Errors that say that a link wasn't made; after others, such as a timeout, it may have been."""
_LINKLESS = frozenset(
    getattr(errno, name) for name in ("EMLINK", "ENOSYS", "EOPNOTSUPP", "EPERM", "EXDEV") if hasattr(errno, name)
)
"""Errors of a file system without hard links."""


@dataclass(frozen=True, eq=False)
class DeltaReplacement:
    """The files that a commit removes and adds, and the properties that it sets."""

    root: str
    base: State
    """The version that the rewrite read."""
    removed: Sequence[LiveFile]
    added: Sequence[Written]
    values: Mapping[int, Mapping[str, str | None]]
    """Partition values by partition number."""
    layout: Layout
    run: str
    properties: Sequence[Property] = ()


def log_folder(storage: Storage) -> str:
    """Return the path of the log's folder, or refuse a storage on which a commit can't be atomic."""
    filesystem, path = storage.locate(f"{storage.root}/_delta_log")
    if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
        raise TableError(
            f"{quoted(storage.root, limit=300)} can't be rewritten: zonal commits to Delta tables on local and mounted "
            "file systems; on an object store a commit needs a conditional write, which pyarrow's file systems lack."
        )
    return str(path)


def commit(
    replacement: DeltaReplacement, newest: Callable[[State | None], State], folder: str, *, sending: Sending = unheard
) -> int:
    """Commit and return the new version; `sending` as in `Rewritable.commit`.

    `newest` reads the log up to its newest version, from an older state on where one is given. A rewrite that
    doesn't fit that version is a `ConflictError`. Only a `CommitUnknownError` leaves open whether the table has it.
    """
    state: State | None = None
    for attempt in range(ATTEMPTS):
        state = newest(state)
        removed = still_live(replacement, state)
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in actions(replacement, removed, state))
        with suppress(_MadeAnewError):
            if put_if_absent(
                f"{folder}/{state.version + 1:020d}.json", lines, sending=partial(_send, state.mark, sending)
            ):
                return state.version + 1
        # Another writer was faster. Waits of random length keep two losers from meeting again.
        time.sleep(random.uniform(0, min(_LONGEST_WAIT, 0.01 * 2**attempt)))  # noqa: S311 - no secret
    raise TableError(
        f"Other writers were faster than zonal {ATTEMPTS} times in a row, so this rewrite of "
        f"{quoted(replacement.root, limit=300)} was given up. Run it again when fewer writers are busy."
    )


class _MadeAnewError(Exception):
    """The log is another one than was read: the table was created anew."""


def _send(mark: Mark, sending: Sending) -> None:
    """Announce a commit, and check that the log still is the one that was read.

    A commit is checked only by its version number, which means another version in a table that was created anew.
    """
    sending()
    if not mark.stands:
        raise _MadeAnewError


# --- conflicts -------------------------------------------------------------------------------------------------------


def still_live(replacement: DeltaReplacement, current: State) -> list[LiveFile]:
    """Return the files to remove as in the current state; raise a `ConflictError` if the rewrite doesn't fit it."""
    base, name = replacement.base, quoted(replacement.root, limit=300)
    if current.version < base.version or base.mark.replaced or _id(current) != _id(base):
        raise ConflictError(f"{name} was replaced by another table while it was rewritten.")
    if _comparable(current.metadata) != _comparable(base.metadata):
        raise ConflictError(f"The schema or the properties of {name} changed since version {base.version}.")
    if current.protocol.comparable != base.protocol.comparable:
        raise ConflictError(f"The Delta protocol of {name} changed since version {base.version}.")
    live = {file.key: file for file in current.find([file.path for file in replacement.removed])}
    if gone := [file.path for file in replacement.removed if file.key not in live]:
        raise ConflictError(
            f"Another writer removed or changed {len(gone)} of the files of {name} that were rewritten, such as "
            f"{quoted(min(gone), limit=300)}.",
            gone,
        )
    return [live[file.key] for file in replacement.removed]


def _id(state: State) -> object:
    return state.metadata.action.get("id")


def _comparable(metadata: Metadata) -> object:
    """Return the part of the metadata that a rewrite depends on, parsed: texts of the same schema may differ."""
    configuration = {name: value for name, value in metadata.configuration.items() if name != LAYOUT_PROPERTY}
    try:
        schema = json.loads(metadata.schema)
        for member in schema["fields"]:
            # Every append to a table with an identity column moves its mark.
            (member.get("metadata") or {}).pop("delta.identity.highWaterMark", None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        schema = metadata.schema
    return schema, metadata.partitioning, configuration


# --- actions ---------------------------------------------------------------------------------------------------------


def actions(replacement: DeltaReplacement, removed: Sequence[LiveFile], current: State) -> Iterator[Action]:
    """Yield the actions of the version after `current`; `commitInfo` comes first ("In-Commit Timestamps")."""
    now = time.time_ns() // 1_000_000
    yield {"commitInfo": _info(replacement, current, now)}
    covering = _with_properties(current.metadata, replacement.layout, replacement.properties)
    metadata = covering
    if replacement.properties and not _have_statistics(current, removed, covering):
        metadata = _with_properties(current.metadata, replacement.layout, ())
    if metadata.configuration != current.metadata.configuration:
        yield {"metaData": metadata.action}
    for file in removed:
        yield {"remove": remove_action(file, time=now)}
    adds = _adds(replacement, replace(current, metadata=covering), now)
    if tracks_rows(current.protocol, current.metadata.configuration):
        yield _assign_row_ids(adds, replacement.added, current)
    for add in adds:
        yield {"add": add}


def _adds(replacement: DeltaReplacement, current: State, now: int) -> list[Action]:
    columns = Columns.of(current.metadata)
    schema, chosen = columns.reading.schema, indexed(current.metadata, replacement.layout.columns)
    provider = {"clusteringProvider": "zonal"} if "clustering" in current.protocol.writer_features else {}
    return [
        add_action(
            file,
            root=replacement.root,
            values=replacement.values[file.partition],
            stats=stats_json(file, schema, chosen),
            tags={LAYOUT_TAG: replacement.layout.id, RUN_TAG: replacement.run},
            time=now,
            data_change=False,
        )
        | provider
        for file in replacement.added
    ]


def _assign_row_ids(adds: Sequence[Action], files: Sequence[Written], current: State) -> Action:
    """Give new files row ids that were never used before, and return the new high-water mark ("Row Tracking")."""
    mark = -1
    if stored := current.domains.get(_ROW_IDS):
        try:
            mark = int(json.loads(stored)["rowIdHighWaterMark"])
        except (ValueError, KeyError, TypeError):
            raise TableError(f"The table's domain metadata {_ROW_IDS} can't be read: {quoted(stored)}") from None
    for add, file in zip(adds, files, strict=True):
        add |= {"baseRowId": mark + 1, "defaultRowCommitVersion": current.version + 1}
        mark += file.rows
    configuration = json.dumps({"rowIdHighWaterMark": mark})
    return {"domainMetadata": {"domain": _ROW_IDS, "configuration": configuration, "removed": False}}


def _with_properties(metadata: Metadata, layout: Layout, properties: Sequence[Property]) -> Metadata:
    """Return the metadata with the layout and the other properties that a commit sets."""
    changes = {LAYOUT_PROPERTY: layout.to_json()} | {each.name: each.value for each in properties}
    configuration = {**metadata.configuration, **changes}
    kept = {name: value for name, value in metadata.action.items() if value is not None}
    action = {"format": {"provider": "parquet", "options": {}}, **kept, "configuration": configuration}
    return replace(metadata, configuration=configuration, action=action)


def _have_statistics(current: State, removed: Sequence[LiveFile], covering: Metadata) -> bool:
    """Tell whether all files that stay have statistics of the columns whose statistics readers will use.

    deltalake's reader for pyarrow skips a file whose bound is missing, and so loses its rows.
    """
    removed_keys = {file.key for file in removed}
    wanted = indexed(covering) - indexed(current.metadata)
    for source in current.adds:
        names = ("path", "vector", "stats")
        for path, vector, stats in zip(*(source.rows[name].to_pylist() for name in names), strict=True):
            if (path, vector) not in removed_keys and not has_bounds(stats, wanted):
                return False
    return True


def _info(replacement: DeltaReplacement, current: State, now: int) -> Action:
    info: Action = {}
    configuration = current.metadata.configuration
    if is_true(configuration, "delta.enableInCommitTimestamps"):
        info["inCommitTimestamp"] = max(now, _in_commit_timestamp(current) + 1)
    info |= {
        "timestamp": now,
        "operation": "OPTIMIZE",
        "operationParameters": {
            "predicate": "[]",
            "zOrderBy": json.dumps(replacement.layout.columns),
            "clusterBy": "[]",
            "auto": False,
            LAYOUT_PROPERTY: replacement.layout.to_json(),
            RUN_TAG: replacement.run,
        },
        "readVersion": current.version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": _metrics(replacement),
        "engineInfo": engine(),
        "txnId": str(uuid.uuid4()),
    }
    if is_true(configuration, "delta.enableRowTracking"):
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    return info


def engine() -> str:
    """Return zonal's name and version for a table's history."""
    try:
        return f"zonal/{version('zonal')}"
    except PackageNotFoundError:
        return "zonal"


def _in_commit_timestamp(state: State) -> int:
    timestamp = state.infos.get(state.version, {}).get("inCommitTimestamp")
    if not isinstance(timestamp, int):
        raise TableError(
            f"The table has in-commit timestamps, but the commit of version {state.version} has none, or isn't there "
            "any more. Write to the table with Delta once, and run zonal again."
        )
    return timestamp


def _metrics(replacement: DeltaReplacement) -> dict[str, str]:
    removed, added = replacement.removed, replacement.added
    numbers = {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(file.size for file in removed),
        "numAddedFiles": len(added),
        "numAddedBytes": sum(file.size for file in added),
        "numDeletionVectorsRemoved": sum(file.vector is not None for file in removed),
    }
    return {name: str(number) for name, number in numbers.items()}


# --- one file, or none -----------------------------------------------------------------------------------------------


def put_if_absent(path: str, text: str, *, sending: Sending = unheard) -> bool:
    """Create a file with all its content at once; return False if it exists already.

    The content is written to a hidden file, which readers of the log ignore, and flushed to disk; then a hard link,
    which fails where the name exists, gives it its name.
    """
    target = Path(path)
    hidden = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
    linking = False
    try:
        with hidden.open("xb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        sending()
        linking = True
        return _link(hidden, target)
    except (KeyboardInterrupt, SystemExit) as interrupt:
        # A caller that treats an interrupt as a failure would remove files that may belong to the table by now.
        if linking:
            raise _unknown(target, interrupt) from interrupt
        raise
    except OSError as error:
        links = " Delta commits need a file system with hard links." if error.errno in _LINKLESS else ""
        raise TableError(f"Can't write {quoted(path, limit=300)}: {error}.{links}") from None
    finally:
        with suppress(OSError):
            hidden.unlink()


def _link(hidden: Path, target: Path) -> bool:
    try:
        os.link(hidden, target)
    except OSError as error:
        # A network file system may repeat a request that succeeded, and report that the name exists.
        try:
            if target.exists():
                return target.samefile(hidden)
            unknown = error.errno not in _REFUSED
        except OSError:
            unknown = True
        if unknown:
            raise _unknown(target, error) from None
        raise
    with suppress(OSError):  # the version exists: an error would say that it doesn't
        flush_folder(target.parent)
    return True


def _unknown(target: Path, reason: BaseException) -> CommitUnknownError:
    return CommitUnknownError(
        f"It isn't known whether {quoted(str(target), limit=300)} was written ({type(reason).__name__} {reason}), so "
        "the new files must stay. See whether the table's newest versions have this run."
    )
