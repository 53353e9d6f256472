"""Replay of a Delta table's log: which files, which schema and which protocol one version has.

The log is read here and not by `deltalake`, which refuses tables whose features change nothing about what is read here.
Section names in comments are those of Delta's PROTOCOL.md. Nothing is written here.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import accumulate, islice
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from zonal.errors import TableError, quoted
from zonal.files import UNKNOWN, Commit
from zonal.tables.deltaadds import ADDS, Adds, Key, Live, Rows, lives, vector_id
from zonal.tables.deltacheckpoint import read_checkpoint_file

Json = Any
"""What `json.loads` returns."""
Info = Mapping[str, Any]
"""A commit's `commitInfo`."""

HISTORY_BYTES = 64 * 1024**2
"""Commits from before the checkpoint are read up to this size: they tell only who added a file, and the history."""

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json)")


@dataclass(frozen=True)
class Protocol:
    """What a reader and a writer of the table must understand."""

    reader: int
    writer: int
    reader_features: tuple[str, ...]
    writer_features: tuple[str, ...]

    @property
    def comparable(self) -> object:
        """The same for equal protocols; the order of features means nothing."""
        return self.reader, self.writer, frozenset(self.reader_features), frozenset(self.writer_features)


@dataclass(frozen=True)
class Metadata:
    """The table's schema and settings, as the log has them."""

    schema: str
    partitioning: tuple[str, ...]
    configuration: Mapping[str, str]
    action: Mapping[str, Any]
    """The whole `metaData` action, for commits that change one setting."""


@dataclass(frozen=True, eq=False)
class State:
    """One version of the table, as the log tells it."""

    version: int
    time: datetime | None
    protocol: Protocol
    metadata: Metadata
    adds: tuple[Adds, ...]
    commits: Mapping[int, Commit]
    domains: Mapping[str, str]
    """Configuration by domain, of those that weren't removed ("Domain Metadata")."""
    infos: Mapping[int, Info]

    def find(self, paths: Iterable[str]) -> list[Live]:
        """Return the files at the given locations, as far as they are live."""
        rows = pa.concat_tables([ADDS.empty_table(), *(source.rows for source in self.adds)])
        return lives(rows.filter(pc.is_in(rows["path"], value_set=pa.array(paths, pa.string()))))


@dataclass(frozen=True, eq=False)
class Log:
    """The files of a `_delta_log` folder.

    The listing is the authority: `_last_checkpoint` is only a hint in the protocol, may be stale or broken, and a
    listing is needed anyway to see the newest commit, so it isn't read.
    """

    filesystem: pa.fs.FileSystem
    folder: str
    commits: Mapping[int, pa.fs.FileInfo]
    checkpoints: Mapping[int, tuple[pa.fs.FileInfo, ...]]
    """Complete checkpoints only, by version."""

    @classmethod
    def of(cls, filesystem: pa.fs.FileSystem, folder: str) -> "Log":
        """List the folder; a folder that doesn't exist or has no log raises a `TableError`."""
        try:
            infos = filesystem.get_file_info(pa.fs.FileSelector(folder))
        except OSError as error:
            raise TableError(
                f"Can't list {quoted(folder, limit=300)}, so there is no Delta table to read: {error}"
            ) from None
        commits = {int(match[1]): info for info in infos if (match := _COMMIT.fullmatch(info.base_name))}
        checkpoints = _complete_checkpoints(infos)
        if not commits and not checkpoints:
            raise TableError(
                f"{quoted(folder, limit=300)} has no commit and no checkpoint: it is not the log of a Delta table."
            )
        return cls(filesystem, folder, commits, checkpoints)

    def plan(self, version: int | None) -> tuple[int, int]:
        """Return the checkpoint to start from (-1 for none) and the version to read, or say what is missing."""
        newest = max([*self.commits, *self.checkpoints])
        oldest = 0 if 0 in self.commits else min(self.checkpoints, default=0)
        wanted = newest if version is None else version
        if not oldest <= wanted <= newest:
            raise TableError(
                f"Version {wanted} of {quoted(self.folder, limit=300)} is not there: it has {oldest} to {newest}."
            )
        start = max((number for number in self.checkpoints if number <= wanted), default=-1)
        if gaps := self.lacks(start + 1, wanted):
            raise TableError(
                f"The log {quoted(self.folder, limit=300)} has a gap: the commit of version {gaps[0]} is missing, "
                f"so version {wanted} can't be told. Restore the file, or read a version below {gaps[0]}."
            )
        return start, wanted

    def lacks(self, first: int, last: int) -> list[int]:
        """Return the versions from `first` to `last` whose commits aren't there."""
        return [number for number in range(first, last + 1) if number not in self.commits]

    def replayable(self, last: int) -> list[int]:
        """Return the versions up to `last` that can be told and whose commits are there, oldest first."""
        found: list[int] = []
        told = -1
        for number in sorted({*self.commits, *self.checkpoints}):
            if number <= last and (number in self.checkpoints or told == number - 1):
                told = number
                found += [number] if number in self.commits else []
        return found

    def read(self, info: pa.fs.FileInfo) -> str:
        """Return the text of one of the log's JSON files."""
        try:
            with self.filesystem.open_input_stream(info.path) as source:
                data: bytes = source.read()
                return data.decode()
        except (OSError, UnicodeDecodeError) as error:
            raise TableError(f"Can't read {quoted(info.path, limit=300)}: {error}") from None

    def read_all(self, infos: Iterable[pa.fs.FileInfo]) -> Iterator[str]:
        """Yield the texts in order, a few requests at a time: on an object store, waiting takes all the time."""
        rest = iter(infos)
        with ThreadPoolExecutor(8) as pool:
            while batch := list(islice(rest, 32)):
                yield from pool.map(self.read, batch)


def replay(log: Log, resolve: Callable[[str], str], *, version: int | None = None, after: State | None = None) -> State:
    """Return the state of the newest version, or of `version`.

    `resolve` turns an action's path into a full location, and `after` is an older state of the same table to go on
    from, where there is one. Every gap and every line that can't be read is an error: a
    state that might lack a file or keep a removed one is never returned.
    """
    start, wanted = log.plan(version)
    replayed = _Replay(resolve)
    if after is not None and after.version <= wanted and not log.lacks(after.version + 1, wanted):
        start, sources, infos, added = after.version, list(after.adds), after.infos, dict[Key, int]()
        replayed.go_on(after)
    else:
        sources = [] if start < 0 else _read_checkpoint(log, log.checkpoints[start], replayed)
        infos, added = _history(log, start, resolve)
    numbers = range(start + 1, wanted + 1)
    for number, text in zip(numbers, log.read_all(log.commits[n] for n in numbers), strict=True):
        replayed.apply(_actions(text, log.commits[number].path), number)
    if replayed.protocol is None or replayed.metadata is None:
        what = "protocol" if replayed.protocol is None else "metaData"
        raise TableError(f"The log {quoted(log.folder, limit=300)} has no {what} action up to version {wanted}.")
    sources = [*(replayed.without_touched(source) for source in sources), replayed.added()]
    infos = {n: info for n, info in sorted({**infos, **replayed.infos}.items()) if n in log.commits}
    commits = {n: _commit(n, info, log.commits[n]) for n, info in infos.items()}
    newest = log.commits[wanted] if wanted in log.commits else log.checkpoints[wanted][0]
    return State(
        version=wanted,
        time=commits[wanted].time if wanted in commits else newest.mtime,
        protocol=replayed.protocol,
        metadata=replayed.metadata,
        adds=tuple(_dated(source, added) for source in sources if source.rows.num_rows),
        commits=commits,
        domains=replayed.domains,
        infos=infos,
    )


def named_in(log: Log, versions: Iterable[int], resolve: Callable[[str], str]) -> set[str]:
    """Return the locations of all files that these commits add."""
    infos = [log.commits[number] for number in versions]
    found: set[str] = set()
    for info, text in zip(infos, log.read_all(infos), strict=True):
        adds = (action.get("add") for action in _actions(text, info.path))
        found |= {resolve(str(add["path"])) for add in adds if isinstance(add, dict) and "path" in add}
    return found


def _complete_checkpoints(infos: Iterable[pa.fs.FileInfo]) -> dict[int, tuple[pa.fs.FileInfo, ...]]:
    """Choose one checkpoint a version; a multi-part one counts only with all its parts ("Multi-part checkpoint")."""
    found: dict[int, dict[tuple[int, str], dict[int, pa.fs.FileInfo]]] = {}
    for info in infos:
        if match := _CHECKPOINT.fullmatch(info.base_name):
            version, part, parts, uuid, _ = match.groups()
            group = (int(parts or 1), uuid or "")
            found.setdefault(int(version), {}).setdefault(group, {})[int(part or 1)] = info
    complete: dict[int, tuple[pa.fs.FileInfo, ...]] = {}
    for version, groups in found.items():
        for (parts, _), members in sorted(groups.items()):
            if set(members) == set(range(1, parts + 1)):
                complete.setdefault(version, tuple(members[part] for part in range(1, parts + 1)))
    return complete


_scan = json.JSONDecoder().raw_decode


def _actions(text: str, path: str) -> Iterator[dict[str, Any]]:
    # Lines end with \n only: str.splitlines would also cut at U+2028, which JSON allows inside strings.
    for number, line in enumerate(text.split("\n"), 1):
        if line := line.strip():
            try:
                action, end = _scan(line)
            except (ValueError, RecursionError) as error:
                raise TableError(f"Line {number} of {quoted(path, limit=300)} is not JSON: {error}") from None
            if end != len(line) or not isinstance(action, dict):
                raise TableError(f"Line {number} of {quoted(path, limit=300)} is not an action.")
            yield action


class _Replay:
    """The actions so far; the last one with the same key wins ("Action Reconciliation")."""

    def __init__(self, resolve: Callable[[str], str]) -> None:
        self.resolve = resolve
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.infos: dict[int, Info] = {}
        self.domains: dict[str, str] = {}
        self._rows = Rows()
        self._files: dict[Key, int] = {}
        """What JSON actions say of a file: its row, or UNKNOWN for a removed one."""

    def go_on(self, state: State) -> None:
        """Start from a state instead of from nothing; its files are dealt with as a checkpoint's."""
        self.protocol, self.metadata, self.domains = state.protocol, state.metadata, dict(state.domains)

    def apply(self, actions: Iterable[Mapping[str, Any]], version: int) -> None:
        """Take the actions of one commit, or of a checkpoint with UNKNOWN as its version."""
        if version != UNKNOWN:
            self.infos[version] = {}
        for action in actions:
            for name, body in action.items():
                if body is not None:
                    try:
                        self._take(name, body, version)
                    except (KeyError, TypeError, ValueError, AttributeError) as error:
                        place = "a checkpoint" if version == UNKNOWN else f"the commit of version {version}"
                        raise TableError(
                            f"The {quoted(name)} action in {place} can't be read: {type(error).__name__} {error}"
                        ) from None

    def _take(self, name: str, body: Json, version: int) -> None:
        if name == "add":
            path = self.resolve(body["path"])
            self._files[path, vector_id(body.get("deletionVector"))] = self._rows.append(body, path, version)
        elif name == "remove":
            self._files[self.resolve(body["path"]), vector_id(body.get("deletionVector"))] = UNKNOWN
        elif name == "metaData":
            columns, configuration = body.get("partitionColumns"), body.get("configuration")
            self.metadata = Metadata(body["schemaString"], tuple(columns or ()), dict(configuration or {}), dict(body))
        elif name == "domainMetadata":
            self.domains.pop(body["domain"], None)
            if not body.get("removed"):
                self.domains[body["domain"]] = body["configuration"]
        elif name == "protocol":
            features = (tuple(body.get(f"{side}Features") or ()) for side in ("reader", "writer"))
            self.protocol = Protocol(int(body["minReaderVersion"]), int(body["minWriterVersion"]), *features)
        elif name == "commitInfo" and version != UNKNOWN:
            self.infos[version] = dict(body)

    def without_touched(self, source: Adds) -> Adds:
        """Drop the checkpoint's files that later commits removed or added anew."""
        if not self._files:
            return source
        paths = pa.array({path for path, _ in self._files}, pa.string())
        known = pc.is_in(source.rows["path"].combine_chunks(), value_set=paths)
        suspects = np.flatnonzero(known.to_numpy(zero_copy_only=False))
        keys = _keys(source.rows.take(pa.array(suspects)))
        touched = [row for row, key in zip(suspects.tolist(), keys, strict=True) if key in self._files]
        keep = np.ones(source.rows.num_rows, bool)
        keep[touched] = False
        return Adds(source.rows.filter(keep), None if source.parsed is None else source.parsed.filter(pa.array(keep)))

    def added(self) -> Adds:
        """Return the live files of JSON actions."""
        try:
            return self._rows.take([row for row in self._files.values() if row != UNKNOWN])
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise TableError(f"An 'add' action of the log has a value of a wrong type: {error}") from None


def _keys(rows: pa.Table) -> list[Key]:
    return list(zip(rows["path"].to_pylist(), rows["vector"].to_pylist(), strict=True))


def _history(log: Log, start: int, resolve: Callable[[str], str]) -> tuple[dict[int, Info], dict[Key, int]]:
    """Return what the commits up to a checkpoint, as far as the log still has them, tell: infos, and who added files.

    They aren't needed to read the table, so a line that can't be read leaves its files without a version.
    """
    infos: dict[int, Info] = {}
    added: dict[Key, int] = {}
    numbers = sorted((number for number in log.commits if number <= start), reverse=True)
    sizes = accumulate(log.commits[number].size or 0 for number in numbers)
    numbers = [number for number, size in zip(numbers, sizes, strict=True) if size <= HISTORY_BYTES]
    for number, text in zip(numbers, log.read_all(log.commits[n] for n in numbers), strict=True):
        infos[number] = {}
        for line in text.split("\n"):
            if line.startswith(('{"add"', '{"commitInfo"')):
                try:
                    action = json.loads(line)
                    if add := action.get("add"):
                        added.setdefault((resolve(add["path"]), vector_id(add.get("deletionVector"))), number)
                    infos[number] = dict(action.get("commitInfo") or infos[number])
                except (ValueError, TypeError, KeyError, RecursionError):
                    continue
    return infos, added


def _dated(source: Adds, added: Mapping[Key, int]) -> Adds:
    """Fill in the version that added each file of a checkpoint."""
    if not added:
        return source
    version = source.rows["version"]
    known = pa.array([added.get(key, UNKNOWN) for key in _keys(source.rows)], pa.int64())
    filled = pc.if_else(pc.equal(version, UNKNOWN), known, version)
    return Adds(source.rows.set_column(ADDS.get_field_index("version"), "version", filled), source.parsed)


# --- checkpoints -----------------------------------------------------------------------------------------------------


def _read_checkpoint(log: Log, infos: Iterable[pa.fs.FileInfo], replayed: _Replay) -> list[Adds]:
    """Return the files of a checkpoint; its other actions, and those of a JSON checkpoint, go to `replayed`."""
    sources: list[Adds] = []
    sidecars: list[str] = []
    for info in infos:
        if info.base_name.endswith(".json"):
            actions = list(_actions(log.read(info), info.path))
        else:
            actions, adds = read_checkpoint_file(log.filesystem, info.path, replayed.resolve)
            sources.append(adds)
        replayed.apply(actions, UNKNOWN)
        sidecars += [action["sidecar"]["path"] for action in actions if action.get("sidecar")]
    # "Sidecar File Information": sidecars always lie in _delta_log/_sidecars, whatever stands before the name.
    for path in sidecars:
        name = unquote(path).rpartition("/")[2]
        sources.append(read_checkpoint_file(log.filesystem, f"{log.folder}/_sidecars/{name}", replayed.resolve)[1])
    return sources


# --- history ---------------------------------------------------------------------------------------------------------


def _commit(version: int, info: Info, file: pa.fs.FileInfo) -> Commit:
    parameters = info.get("operationParameters")
    details = {str(name): _text(value) for name, value in (parameters if isinstance(parameters, dict) else {}).items()}
    if engine := info.get("engineInfo") or info.get("clientVersion"):  # older ones of delta-rs know the latter only
        details["engineInfo"] = _text(engine)
    # "In-Commit Timestamps": where a table has them, they are the version's time.
    time = _time(info.get("inCommitTimestamp")) or _time(info.get("timestamp")) or file.mtime
    parent = version - 1 if version else None
    return Commit(version, time, _text(info.get("operation", "UNKNOWN")), details, parent)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _time(milliseconds: object) -> datetime | None:
    try:
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=int(str(milliseconds)))
    except (ValueError, OverflowError):
        return None
