"""Which files of a Delta table nobody needs: what the log itself says was removed before all versions that are kept.

Files that the log doesn't name are never touched, since a job that is running may have written them, but for those in
folders of zonal's own runs. The log stays as it is: expired versions are still listed, and can't be read any more.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import chain
from typing import Any
from urllib.parse import unquote

from zonal.cleaning.enclosure import StoredFile, inside, look, spelled, spellings
from zonal.cleaning.retention import Promise, Retention
from zonal.cleaning.run_folders import leftovers
from zonal.cleaning.spares import REMOVED, Spare, Spares
from zonal.errors import TableError, quoted
from zonal.storage import Storage
from zonal.storage.location import is_uri
from zonal.tables.delta.adds import lives
from zonal.tables.delta.listing import LogFolder
from zonal.tables.delta.log import State, actions_in, moment, replay
from zonal.tables.delta.vectors import vector_location
from zonal.tables.hive_folders import is_hidden

VECTORS = "deletion vectors of removed files"
_DELETED, _LOGGED = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
_DEFAULT = "interval 1 week"
_INTERVAL = re.compile(r"(?:interval\s+)?((?:\d{1,9}\s+(?:week|day|hour|minute|second|millisecond|microsecond)s?\s*)+)")


@dataclass(frozen=True)
class _Removed:
    """A file that a version removed: a data file, or the file of a deletion vector."""

    logged: str
    location: str
    reason: str
    size: int | None
    time: datetime | None
    """When its writer said that it was removed."""
    version: int


@dataclass
class _Version:
    """What one commit of the log names."""

    number: int
    time: datetime
    """The latest of all times that are known of it and of those before."""
    named: list[str] = field(default_factory=list)
    """Locations of everything that it adds, removes, or has as change data."""
    changes: list[str] = field(default_factory=list)
    """Those of its change data, which are never touched."""
    removed: list[_Removed] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Log:
    """All that the log of a table names."""

    storage: Storage
    state: State
    versions: tuple[_Version, ...]
    """Oldest first, as far as their commits are there."""
    elsewhere: tuple[str, ...]
    """Files of versions that can be read by a checkpoint, and that no commit tells of."""

    @classmethod
    def read(cls, folder: LogFolder, storage: Storage) -> "Log":
        """Read every commit; one that can't be read is an error, since it may name a file."""
        state = replay(folder, storage.resolve)
        versions, latest = [], datetime.min.replace(tzinfo=timezone.utc)
        numbers = sorted(number for number in folder.commits if number <= state.version)
        for number, text in zip(numbers, folder.read_all(folder.commits[n] for n in numbers), strict=True):
            info = folder.commits[number]
            version = _version(number, max(latest, info.mtime), list(actions_in(text, info.path)), storage)
            latest = version.time
            versions.append(version)
        lone = [number for number in folder.checkpoints if folder.lacks(number + 1, state.version)]
        elsewhere = chain.from_iterable(
            _live(replay(folder, storage.resolve, version=number), storage) for number in sorted(lone)
        )
        found = cls(storage, state, tuple(versions), tuple(elsewhere))
        folder.prove(state.version)
        return found

    @property
    def named(self) -> set[str]:
        """Return the spellings of every file that the log knows."""
        return spelled(chain(self.elsewhere, _live(self.state, self.storage), *(each.named for each in self.versions)))

    def current_at(self, cutoff: datetime) -> int | None:
        """Return the newest version of a moment; None where the log doesn't go back so far, or has gaps since then."""
        before = [each.number for each in self.versions if each.time <= cutoff]
        if not before:
            return None
        known = {each.number for each in self.versions}
        return before[-1] if all(n in known for n in range(before[-1] + 1, self.state.version + 1)) else None

    def needed(self, retention: Retention) -> set[str]:
        """Return the spellings of all files that the versions which are kept refer to."""
        oldest = None if retention.cutoff is None else self.current_at(retention.cutoff)
        if oldest is None:
            return self.named
        kept = (each.named for each in self.versions if each.number > oldest)
        changes = (each.changes for each in self.versions)
        return spelled(chain(_live(self.state, self.storage), *kept, *changes))


def spare_files(log: Log, retention: Retention, name: str) -> Spares:
    """Return what nobody needs, and what is left although nobody may need it."""
    retention.hold(name, promises(log.state.metadata.configuration))
    left, notes = leftovers(log.storage, log.storage.root, retention, lambda: log.named)
    expired, more = _expired(log, retention)
    return Spares((*left, *expired), notes=(*notes, *more))


def promises(configuration: Mapping[str, str]) -> tuple[Promise, ...]:
    """Return how long a table keeps removed files; its default for the log promises no files."""
    deleted = configuration.get(_DELETED)
    found = [Promise(f"the default of {_DELETED}" if deleted is None else _DELETED, _interval(deleted or _DEFAULT))]
    if (logged := configuration.get(_LOGGED)) is not None:
        found.append(Promise(_LOGGED, _interval(logged)))
    return tuple(found)


def _interval(text: str) -> timedelta:
    """Read a calendar interval.

    >>> _interval("interval 1 week 2 days"), _interval("12 hours")
    (datetime.timedelta(days=9), datetime.timedelta(seconds=43200))
    """
    match = _INTERVAL.fullmatch(text.strip().lower())
    if match is None:
        raise TableError(f"The table's retention {quoted(text)} can't be read: write it as 'interval 7 days'.")
    words = match[1].split()
    parts = zip(words[::2], words[1::2], strict=True)
    try:
        return sum((timedelta(**{f"{unit.rstrip('s')}s": int(number)}) for number, unit in parts), timedelta())
    except OverflowError:
        return timedelta.max


# --- the log ---------------------------------------------------------------------------------------------------------


def _version(number: int, time: datetime, actions: Iterable[Mapping[str, Any]], storage: Storage) -> _Version:
    version = _Version(number, time)
    kind = ""
    try:
        for kind, body in chain.from_iterable(action.items() for action in actions):
            if kind == "commitInfo" and body:
                known = (moment(body.get(name)) for name in ("inCommitTimestamp", "timestamp"))
                version.time = max([version.time, *(each for each in known if each is not None)])
            elif kind in ("add", "remove", "cdc") and body:
                _name(version, kind, body, storage)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TableError(
            f"The {quoted(kind)} action of version {number} can't be read ({error}), so nobody can tell which files it "
            "needs."
        ) from None
    return version


def _name(version: _Version, kind: str, body: Mapping[str, Any], storage: Storage) -> None:
    logged, descriptor = str(body["path"]), body.get("deletionVector")
    files = [(logged, storage.resolve(logged), REMOVED, body.get("size"))]
    if descriptor and (vector := vector_location(descriptor, storage.root, storage.resolve)) is not None:
        files.append((descriptor["pathOrInlineDv"] if descriptor["storageType"] == "p" else "", vector, VECTORS, None))
    version.named += [location for _, location, _, _ in files]
    if kind == "cdc":
        version.changes += version.named[-1:]
    elif kind == "remove":
        time = moment(body.get("deletionTimestamp"))
        version.removed += [_Removed(*file, time, version.number) for file in files]


def _live(state: State, storage: Storage) -> Iterator[str]:
    """Yield the locations of a version's files and of their deletion vectors."""
    for source in state.adds:
        for file in lives(source.rows):
            yield file.path
            if file.vector and (vector := vector_location(file.vector, storage.root, storage.resolve)) is not None:
                yield vector


# --- what has expired ------------------------------------------------------------------------------------------------


def _expired(log: Log, retention: Retention) -> tuple[list[Spare], list[str]]:
    """Return the files that were removed before all versions that are kept."""
    if retention.cutoff is None:
        return [], []
    if (oldest := log.current_at(retention.cutoff)) is None:
        return [], [f"The log has no version of before {retention.cutoff:%Y-%m-%d %H:%M} UTC, so nothing expires."]
    needed = log.needed(retention)
    candidates: dict[str, _Removed] = {}
    outside = 0
    for removed in (each for version in log.versions if version.number <= oldest for each in version.removed):
        if not needed.isdisjoint(spellings(removed.location)):
            continue
        relative = _own(log.storage.root, removed)
        if relative is None:
            outside += 1
        else:
            candidates[relative] = removed
    found, notes = _examined(log, candidates, retention.cutoff, oldest)
    if outside:
        notes.append(
            f"{outside:,} removed files stay: by their paths in the log they lie outside of the table's folder, as "
            "those of a shallow clone do, or in a hidden one."
        )
    return found, notes


def _own(root: str, removed: _Removed) -> str | None:
    """Return the path of a removed file from the table's folder on; None where it may be another table's."""
    if unquote(removed.logged).startswith("/") or is_uri(removed.logged):
        return None
    relative = inside(root, removed.location)
    return None if relative is None or is_hidden(relative) else relative


def _examined(
    log: Log, candidates: Mapping[str, _Removed], cutoff: datetime, oldest: int
) -> tuple[list[Spare], list[str]]:
    """Keep the files that are there as the log knew them, and were written and removed before the cutoff."""
    found, notes = [], []
    for (relative, removed), seen in zip(candidates.items(), look(log.storage, list(candidates)), strict=True):
        if seen is None:
            continue
        problem = seen if isinstance(seen, str) else _problem(removed, seen, cutoff)
        if isinstance(seen, StoredFile) and problem is None:
            why = f"Version {removed.version} removed it, and versions from {oldest} on, which are kept, don't have it."
            found.append(Spare(relative, seen.size, removed.reason, why))
        else:
            notes.append(f"{quoted(relative, limit=300)} stays: {problem}.")
    return found, notes


def _problem(removed: _Removed, seen: StoredFile, cutoff: datetime) -> str | None:
    if removed.size is not None and removed.size != seen.size:
        return f"it has {seen.size:,} bytes, and the log says {removed.size:,}"
    if seen.time > cutoff:
        return "it was written after the time that everything is kept from"
    if removed.time is not None and removed.time > cutoff:
        return "its writer says that it was removed after the time that everything is kept from"
    return None
