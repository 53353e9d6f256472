"""Replay of a Delta table's log: which files, which schema and which protocol one version has.

The log is read here and not by `deltalake`, which refuses tables whose features change nothing about what is read here.
Section names in comments are those of Delta's PROTOCOL.md. Nothing is written here.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileInfo

from zonal.errors import TableError, quoted
from zonal.snapshot import UNKNOWN, Commit
from zonal.storage import Storage
from zonal.tables.delta.adds import ADDS, RUN_TAG, AddedFiles, Adds, Key, LiveFile, lives, vector_id
from zonal.tables.delta.checkpoint import read_checkpoint_file
from zonal.tables.delta.listing import LogFolder, Mark
from zonal.tables.delta.operations import ENGINE, kind_of, writer_of
from zonal.tables.delta.vectors import located

Json = Any
"""What `json.loads` returns."""
Info = Mapping[str, Any]
"""A commit's `commitInfo`."""

HISTORY_BYTES = 64 * 1024**2
"""Commits from before the checkpoint are read up to this size: they tell only who added a file, and the history."""


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
    written: Mapping[int, int]
    """Bytes of the files that each commit wrote."""
    transactions: Mapping[str, int]
    """The last version of each application that named its writes ("Transaction Identifiers")."""
    mark: Mark
    """The file of the version, by which a table that was made anew in the same place is told from this one."""
    listed: Mapping[int, FileInfo]
    """The commits up to the version, as they were listed: one that was replaced since makes the state void."""
    problems: tuple[str, ...] = ()
    """Checkpoints that couldn't be read and weren't needed."""

    def find(self, paths: Iterable[str]) -> list[LiveFile]:
        """Return the files at the given locations, as far as they are live."""
        rows = pa.concat_tables([ADDS.empty_table(), *(source.rows for source in self.adds)])
        return lives(rows.filter(pc.is_in(rows["path"], value_set=pa.array(paths, pa.string()))))


def replay(
    log: LogFolder, resolve: Callable[[str], str], *, version: int | None = None, after: State | None = None
) -> State:
    """Return the state of the newest version, or of `version`.

    `resolve` turns an action's path into a full location, and `after` is an older state to go on from, as long as the
    table is still the one that it is of. Every gap and every line that can't be read is an error: a state that might
    lack a file or keep a removed one is never returned.
    """
    start, wanted = log.plan(version)
    mark = log.mark(wanted)
    if after is not None and start <= after.version <= wanted and log.has(after.version, after.mark, after.listed):
        begun = _Begun.from_state(after, resolve)
    else:
        begun = _begin(log, wanted, resolve)
    replayed, numbers = begun.replayed, range(begun.version + 1, wanted + 1)
    for number, text in zip(numbers, log.read_all(log.commits[n] for n in numbers), strict=True):
        replayed.apply(actions_in(text, log.commits[number].path), number)
    if replayed.protocol is None or replayed.metadata is None:
        what = "protocol" if replayed.protocol is None else "metaData"
        raise TableError(f"The log {quoted(log.folder, limit=300)} has no {what} action up to version {wanted}.")
    log.prove(wanted)
    sources = [*(replayed.without_touched(source) for source in begun.sources), replayed.added()]
    infos = {n: info for n, info in sorted({**begun.infos, **replayed.infos}.items()) if n in log.commits}
    written = {**begun.written, **replayed.written}
    commits = {n: _commit(n, info, log.commits[n], written.get(n)) for n, info in infos.items()}
    newest = log.commits[wanted] if wanted in log.commits else log.checkpoints[wanted][0]
    return State(
        version=wanted,
        time=commits[wanted].time if wanted in commits else newest.mtime,
        protocol=replayed.protocol,
        metadata=replayed.metadata,
        adds=tuple(_dated(source, begun.added) for source in sources if source.rows.num_rows),
        commits=commits,
        domains=replayed.domains,
        infos=infos,
        written=written,
        transactions=replayed.transactions,
        mark=mark,
        listed={number: info for number, info in log.commits.items() if number <= wanted},
        problems=begun.problems,
    )


def named_in(log: LogFolder, versions: Iterable[int], storage: Storage) -> set[str]:
    """Return the locations of all files that these commits add, and of their deletion vectors."""
    infos = [log.commits[number] for number in versions]
    found: set[str] = set()
    for info, text in zip(infos, log.read_all(infos), strict=True):
        for add in (action.get("add") for action in actions_in(text, info.path)):
            if isinstance(add, dict) and "path" in add:
                found |= located(storage.resolve(str(add["path"])), add.get("deletionVector"), storage)
    return found


@dataclass(frozen=True, eq=False)
class _Begun:
    """Where a replay begins: behind a state, behind a checkpoint, or before version 0."""

    version: int
    replayed: "_Replay"
    sources: Sequence[Adds]
    infos: Mapping[int, Info]
    written: Mapping[int, int]
    added: Mapping[Key, int]
    problems: tuple[str, ...]

    @classmethod
    def from_state(cls, state: State, resolve: Callable[[str], str]) -> "_Begun":
        """Go on from a state; its files are dealt with as a checkpoint's."""
        replayed = _Replay(resolve)
        replayed.protocol, replayed.metadata, replayed.domains = state.protocol, state.metadata, dict(state.domains)
        replayed.transactions = dict(state.transactions)
        return cls(state.version, replayed, state.adds, state.infos, state.written, {}, state.problems)


def _begin(log: LogFolder, wanted: int, resolve: Callable[[str], str]) -> _Begun:
    """Read the newest checkpoint that can be read; the commits behind an older one, or all of them, say the same."""
    problems: list[str] = []
    for start in log.starts(wanted):
        replayed = _Replay(resolve)
        try:
            sources = [] if start < 0 else _read_checkpoint(log, log.checkpoints[start], replayed)
        except TableError as error:
            problems.append(str(error))
        else:
            infos, written, added = _history(log, start, resolve)
            return _Begun(start, replayed, sources, infos, written, added, tuple(problems))
    gap = next(iter(log.lacks(0, wanted)), 0)
    raise TableError(f"{' '.join(problems)} The commit of version {gap} is missing, so nothing else tells the same.")


_scan = json.JSONDecoder().raw_decode


def actions_in(text: str, path: str) -> Iterator[dict[str, Any]]:
    """Yield the actions of a JSON file of the log; a line that is none is a `TableError`."""
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
        self.written: dict[int, int] = {}
        self.domains: dict[str, str] = {}
        self.transactions: dict[str, int] = {}
        self._rows = AddedFiles()
        self._files: dict[Key, int] = {}
        """What JSON actions say of a file: its row, or UNKNOWN for a removed one."""

    def apply(self, actions: Iterable[Mapping[str, Any]], version: int) -> None:
        """Take the actions of one commit, or of a checkpoint with UNKNOWN as its version."""
        if version != UNKNOWN:
            self.infos[version], self.written[version] = {}, 0
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
            path = self._located(body["path"])
            self._files[path, vector_id(body.get("deletionVector"))] = self._rows.append(body, path, version)
            if version != UNKNOWN:
                self.written[version] += _new_bytes(body)
        elif name == "remove":
            self._files[self._located(body["path"]), vector_id(body.get("deletionVector"))] = UNKNOWN
        elif name == "metaData":
            columns, configuration = body.get("partitionColumns"), body.get("configuration")
            self.metadata = Metadata(body["schemaString"], tuple(columns or ()), dict(configuration or {}), dict(body))
        elif name == "domainMetadata":
            self.domains.pop(body["domain"], None)
            if not body.get("removed"):
                self.domains[body["domain"]] = body["configuration"]
        elif name == "txn":
            self.transactions[str(body["appId"])] = int(body["version"])
        elif name == "protocol":
            features = (tuple(body.get(f"{side}Features") or ()) for side in ("reader", "writer"))
            self.protocol = Protocol(int(body["minReaderVersion"]), int(body["minWriterVersion"]), *features)
        elif name == "commitInfo" and version != UNKNOWN:
            self.infos[version] = dict(body)

    def _located(self, path: str) -> str:
        """Return a file's location; JSON can have halves of characters in it, which no path has."""
        location = self.resolve(path)
        if not location.isascii():
            try:
                location.encode()
            except UnicodeEncodeError:
                raise TableError(f"The log is wrong: no file can be called {quoted(path, limit=300)}.") from None
        return location

    def without_touched(self, source: Adds) -> Adds:
        """Drop the checkpoint's files that later commits removed or added anew."""
        if not self._files:
            return source
        paths = pa.array({path for path, _ in self._files}, pa.string())
        known = pc.is_in(source.rows["path"].combine_chunks(), value_set=paths)
        suspects = np.flatnonzero(known.to_numpy(zero_copy_only=False))
        keys = _keys(source.rows.take(pa.array(suspects)))
        touched = [row for row, key in zip(suspects.tolist(), keys, strict=True) if key in self._files]
        if not touched:
            return source
        keep = np.ones(source.rows.num_rows, bool)
        keep[touched] = False
        return Adds(source.rows.filter(keep), None if source.parsed is None else source.parsed.filter(pa.array(keep)))

    def added(self) -> Adds:
        """Return the live files of JSON actions."""
        try:
            return self._rows.take([row for row in self._files.values() if row != UNKNOWN])
        except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
            raise TableError(f"An 'add' action of the log has a value of a wrong type: {error}") from None


def _keys(rows: pa.Table) -> list[Key]:
    return list(zip(rows["path"].to_pylist(), rows["vector"].to_pylist(), strict=True))


def _new_bytes(add: Mapping[str, Any]) -> int:
    """Return the size of a file that a commit wrote.

    One with a deletion vector was there before, but for a new one of zonal's that deletes are carried over to.
    """
    is_carried = add.get("dataChange") is False and RUN_TAG in (add.get("tags") or {})
    return int(add["size"]) if is_carried or not add.get("deletionVector") else 0


def _history(
    log: LogFolder, start: int, resolve: Callable[[str], str]
) -> tuple[dict[int, Info], dict[int, int], dict[Key, int]]:
    """Return what the commits up to a checkpoint, as far as the log still has them, tell: infos, and who added files.

    They aren't needed to read the table, so a line that can't be read leaves its files without a version.
    """
    infos: dict[int, Info] = {}
    written: dict[int, int] = {}
    added: dict[Key, int] = {}
    damaged: set[int] = set()
    numbers = sorted((number for number in log.commits if number <= start), reverse=True)
    sizes = accumulate(log.commits[number].size or 0 for number in numbers)
    numbers = [number for number, size in zip(numbers, sizes, strict=True) if size <= HISTORY_BYTES]
    for number, text in zip(numbers, log.read_all(log.commits[n] for n in numbers), strict=True):
        infos[number], written[number] = {}, 0
        for line in text.split("\n"):
            if line.startswith(('{"add"', '{"commitInfo"')):
                try:
                    action = json.loads(line)
                    if add := action.get("add"):
                        added.setdefault((resolve(add["path"]), vector_id(add.get("deletionVector"))), number)
                        written[number] += _new_bytes(add)
                    infos[number] = dict(action.get("commitInfo") or infos[number])
                except (ValueError, TypeError, KeyError, RecursionError, TableError):
                    damaged.add(number)
    return infos, {number: size for number, size in written.items() if number not in damaged}, added


def _dated(source: Adds, added: Mapping[Key, int]) -> Adds:
    """Fill in the version that added each file of a checkpoint."""
    if not added:
        return source
    version = source.rows["version"]
    known = pa.array([added.get(key, UNKNOWN) for key in _keys(source.rows)], pa.int64())
    filled = pc.if_else(pc.equal(version, UNKNOWN), known, version)
    return Adds(source.rows.set_column(ADDS.get_field_index("version"), "version", filled), source.parsed)


# --- checkpoints -----------------------------------------------------------------------------------------------------


def _read_checkpoint(log: LogFolder, infos: Iterable[pa.fs.FileInfo], replayed: _Replay) -> list[Adds]:
    """Return the files of a checkpoint; its other actions, and those of a JSON checkpoint, go to `replayed`."""
    sources: list[Adds] = []
    sidecars: list[str] = []
    for info in infos:
        if info.base_name.endswith(".json"):
            actions = list(actions_in(log.read(info), info.path))
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


def _commit(version: int, info: Info, file: pa.fs.FileInfo, written: int | None) -> Commit:
    parameters = info.get("operationParameters")
    details = {str(name): _text(value) for name, value in (parameters if isinstance(parameters, dict) else {}).items()}
    if engine := info.get("engineInfo") or info.get("clientVersion"):  # older ones of delta-rs know the latter only
        details[ENGINE] = _text(engine)
    # "In-Commit Timestamps": where a table has them, they are the version's time.
    time = moment(info.get("inCommitTimestamp")) or moment(info.get("timestamp")) or file.mtime
    operation = _text(info.get("operation", "UNKNOWN"))
    return Commit(
        version,
        time,
        operation,
        details,
        parent=version - 1 if version else None,
        kind=kind_of(operation, details),
        writer=writer_of(details),
        only_adds=not version,  # there is nothing before the first version that it could remove
        added_bytes=0 if operation == "RESTORE" else written,  # which brings files back
        added_rows=_metric(info, "numOutputRows", "num_added_rows"),
        is_first=not version,
        run=details.get(RUN_TAG, ""),
    )


def _metric(info: Info, *names: str) -> int | None:
    """Return the first of these metrics that a commit has; writers give them as texts, or not at all."""
    metrics = info.get("operationMetrics")
    texts = (str(metrics.get(name)) for name in names) if isinstance(metrics, dict) else ()
    return next((int(text) for text in texts if re.fullmatch(r"\d{1,18}", text, re.ASCII)), None)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def moment(milliseconds: object) -> datetime | None:
    """Return a time of the log, which is in milliseconds since 1970; None where it is none."""
    try:
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=int(str(milliseconds)))
    except (ValueError, OverflowError):
        return None
