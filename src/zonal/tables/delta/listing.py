"""The files of a Delta table's log, as its folder lists them: commits, checkpoints, and what tells one from another.

Section names in comments are those of Delta's PROTOCOL.md.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.fs

from zonal.errors import TableError, quoted
from zonal.storage import open_regular
from zonal.storage.causes import STORAGE_ERRORS, told

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json)")


@dataclass(frozen=True)
class Mark:
    """What tells a version's file from the one that another table, made anew in the same place, has by that name."""

    path: str
    size: int | None
    time: int | None
    """Nanoseconds since 1970."""
    inode: int | None
    """Where the file system is local. Some mounted ones number files anew at any time, so it can't prove a change."""
    store: pa.fs.FileSystem | None = field(default=None, compare=False, repr=False)
    """Where it isn't local."""

    @property
    def replaced(self) -> bool:
        """Whether another file has its name now; a file that is gone may have been cleaned up."""
        found = self._now()
        return found is not None and not self.is_like(found)

    @property
    def stands(self) -> bool:
        """Whether it is there as it was."""
        found = self._now()
        return found is not None and self.is_like(found)

    def is_like(self, other: "Mark") -> bool:
        """Whether both are of the same file, by its size and time."""
        return (self.size, self.time) == (other.size, other.time)

    def _now(self) -> "Mark | None":
        """Return what has the name now; None where there is nothing, or it can't be seen."""
        if self.store is None or self.inode is not None:
            return _marked(self.path)
        try:
            info = self.store.get_file_info(self.path)
        except STORAGE_ERRORS:
            return None
        return Mark(self.path, info.size, info.mtime_ns, None, self.store) if info.is_file else None


def _marked(path: str) -> Mark | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Mark(path, found.st_size, found.st_mtime_ns, found.st_ino)


def _same(one: pa.fs.FileInfo, other: pa.fs.FileInfo) -> bool:
    return bool((one.path, one.size, one.mtime_ns) == (other.path, other.size, other.mtime_ns))


def _gone(info: pa.fs.FileInfo) -> TableError:
    return TableError(
        f"{quoted(info.path, limit=300)} is gone: the table was dropped, or its log was cleaned up, while it was read. "
        "Try again."
    )


@dataclass(frozen=True, eq=False)
class LogFolder:
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
    def of(cls, filesystem: pa.fs.FileSystem, folder: str) -> "LogFolder":
        """List the folder; a folder that doesn't exist or has no log raises a `TableError`."""
        try:
            infos = filesystem.get_file_info(pa.fs.FileSelector(folder))
        except FileNotFoundError:
            above, _, name = folder.rpartition("/")
            raise TableError(f"There is no Delta table in {quoted(above, limit=300)}: it has no {name}.") from None
        except STORAGE_ERRORS as error:
            raise TableError(
                f"Can't list {quoted(folder, limit=300)}, so there is no Delta table to read: {told(error)}"
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

    def starts(self, wanted: int) -> list[int]:
        """Return the checkpoints from which all commits up to a version are there, newest first, and -1 for none."""
        found = sorted((number for number in self.checkpoints if number <= wanted), reverse=True)
        return [start for start in [*found, -1] if not self.lacks(start + 1, wanted)]

    def mark(self, version: int) -> Mark:
        """Return what tells the file of a version, as it was listed, from others: of its commit, or its checkpoint."""
        info = self.commits[version] if version in self.commits else self.checkpoints[version][0]
        local = isinstance(self.filesystem, pa.fs.LocalFileSystem)
        listed = Mark(info.path, info.size, info.mtime_ns, None, None if local else self.filesystem)
        if not local:
            return listed
        if (found := _marked(info.path)) is None:
            raise _gone(info)
        if info.is_file and not listed.is_like(found):  # of a pipe, a listing tells no size
            raise self._replaced()
        return found

    def prove(self, version: int) -> None:
        """Raise an error unless everything up to a version that was read since the listing is of the table listed.

        Commits never change, so one that isn't as it was listed is another table's. Where the newest one that was read
        still is, the table wasn't dropped in between. Older ones may have been cleaned up, and checkpoints rewritten.
        """
        now = LogFolder.of(self.filesystem, self.folder)
        both = [number for number in self.commits if number <= version and number in now.commits]
        if any(not _same(self.commits[number], now.commits[number]) for number in both):
            raise self._replaced()
        if version in both:
            return
        if not any(map(_same, self.checkpoints.get(version, ()), now.checkpoints.get(version, ()))):
            raise _gone(self.commits[version] if version in self.commits else self.checkpoints[version][0])

    def _replaced(self) -> TableError:
        return TableError(
            f"{quoted(self.folder, limit=300)} was replaced by another table's log while it was read. Run it again to "
            "read the new one."
        )

    def has(self, version: int, mark: Mark, commits: Mapping[int, pa.fs.FileInfo]) -> bool:
        """Tell whether the file of a version is the one of the mark, and none of these commits was replaced."""
        listed = version in self.commits or version in self.checkpoints
        kept = all(_same(info, self.commits[n]) for n, info in commits.items() if n in self.commits)
        return listed and kept and mark.stands and self.mark(version) == mark

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
            with open_regular(self.filesystem, info.path) as source:
                data: bytes = source.read()
                return data.decode()
        except (*STORAGE_ERRORS, UnicodeDecodeError) as error:
            raise TableError(f"Can't read {quoted(info.path, limit=300)}: {told(error)}") from None

    def read_all(self, infos: Iterable[pa.fs.FileInfo]) -> Iterator[str]:
        """Yield the texts in order, a few requests at a time: on an object store, waiting takes all the time."""
        rest = iter(infos)
        with ThreadPoolExecutor(8) as pool:
            while batch := list(islice(rest, 32)):
                yield from pool.map(self.read, batch)


def _complete_checkpoints(infos: Iterable[pa.fs.FileInfo]) -> dict[int, tuple[pa.fs.FileInfo, ...]]:
    """Choose one checkpoint per version; a multi-part one counts only with all its parts ("Multi-part checkpoint")."""
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
