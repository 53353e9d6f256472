"""Which commits added the files that queries read, whether they made them wider, and who is to blame.

A commit is held against the files that it replaced, as the versions around it tell them, or against the table's other
files where it replaced none. Older versions are read for the few commits that matter most.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zonal.auditing.audit import CommitAudit, Width
from zonal.auditing.authors import kind_of, plain, writer_of
from zonal.auditing.blaming import Deed, appends_sentence, sentence_of
from zonal.auditing.culprits import culprits_of
from zonal.auditing.replaced import At, Replaced, replaced_by
from zonal.auditing.replay import Replay
from zonal.auditing.widths import Widths
from zonal.files import UNKNOWN, Commit, Ints, Snapshot

MOST_COMMITS = 50
"""Commits that are told one by one."""
LOOKED_AT = 5
"""Commits whose versions before and after are read."""
MOST_VERSIONS = 16
"""Versions that are read for them in all."""
STEPS_BACK = 3
"""Commits that are followed back from one that rewrote files as they were."""
WIDER = 2.0
"""Times by which files must have become wider to be called so."""


@dataclass(frozen=True)
class Commits:
    """What a table's commits did."""

    told: tuple[CommitAudit, ...] = ()
    """The culprits first, then those that cause most of what is read for nothing."""
    culprits: tuple[CommitAudit, ...] = ()
    """The worst first; several appends may be one of them."""


@dataclass(frozen=True, eq=False)
class _Group:
    """The live files that one commit added."""

    id: int | None
    commit: Commit | None
    """None where the history doesn't have it any more."""
    files: Ints
    bytes: int
    read: float
    read_files: float
    excess: float

    @property
    def part(self) -> float:
        """Return how much it matters."""
        return max(self.read, self.read_files, self.excess)


def commits_of(snapshot: Snapshot, replayed: Replay, weights: Mapping[str, float], at: At) -> Commits:
    """Tell what each commit's live files cost, and who made them so.

    `weights` are the queries' by the columns that they filter, and `at` returns a version of the table, or None where
    it is gone; it is asked for the versions around the few commits that matter most, and not for more than 16 in all.
    Of more than 50 commits, those that matter least are joined in the last row.
    """
    groups = sorted(_groups(snapshot, replayed), key=lambda group: (-group.part, -group.excess))
    shown = groups if len(groups) <= MOST_COMMITS else groups[: MOST_COMMITS - 1]
    widths, past = Widths(snapshot, list(weights)), _Past(at)
    found = [
        _audited(group, snapshot, widths, past if number < LOOKED_AT else None) for number, group in enumerate(shown)
    ]
    appends = _appends(groups, found, snapshot, widths)
    culprits = culprits_of(found, appends, weights)
    found.sort(key=lambda each: (-each.excess_share, -each.read_share, -each.bytes, each.id or 0))
    innocent = [each for each in found if each not in culprits]
    rest = groups[len(shown) :]
    told = (*(each for each in culprits if each in found), *innocent, *([_joined(rest)] if rest else []))
    return Commits(told, culprits)


class _Past:
    """Older versions, some at a time: a large table's takes seconds to read, and much memory."""

    def __init__(self, at: At) -> None:
        self._at = at
        self._left = MOST_VERSIONS
        self._kept: dict[int, Snapshot | None] = {}

    def __call__(self, version: int) -> Snapshot | None:
        """Return a version; None where it is gone, or where too many have been read already."""
        if version not in self._kept:
            if self._left <= 0:
                return None
            self._left -= 1
            found = self._at(version)
            self._kept = {**dict(list(self._kept.items())[-1:]), version: found}
        return self._kept[version]


def _groups(snapshot: Snapshot, replayed: Replay) -> list[_Group]:
    files = snapshot.files
    sizes = files.sizes.astype(np.float64)
    read, read_files = _parts(sizes * replayed.read), _parts(replayed.read)
    excess = _parts(sizes * replayed.excess)
    order = np.argsort(files.added_by, kind="stable")
    starts = np.flatnonzero(np.diff(files.added_by[order], prepend=np.iinfo(np.int64).min))
    found = []
    for chosen in np.split(order, starts[1:]) if len(order) else []:
        number = int(files.added_by[chosen[0]])
        group = _Group(
            id=None if number == UNKNOWN else number,
            commit=snapshot.commits.get(number),
            files=np.sort(chosen),
            bytes=int(files.sizes[chosen].sum()),
            read=float(read[chosen].sum()),
            read_files=float(read_files[chosen].sum()),
            excess=float(excess[chosen].sum()),
        )
        found.append(group)
    return found


def _parts(amounts: "np.typing.NDArray[np.float64]") -> "np.typing.NDArray[np.float64]":
    total = float(amounts.sum())
    return amounts / total if total > 0 else np.zeros(len(amounts))


def _audited(group: _Group, snapshot: Snapshot, widths: Widths, at: At | None) -> CommitAudit:
    commit, name = group.commit, "version" if snapshot.format == "delta" else "snapshot"
    before = None
    if commit is not None and at is not None:
        before = replaced_by(commit, snapshot.files, group.files, snapshot, at)
    compared = before is not None and len(before.files) > 0
    found = widths.since(snapshot.files, group.files, before) if compared and before else widths.among(group.files)
    kind = "unknown" if commit is None else kind_of(commit, snapshot.format)
    if kind == "append" and before is not None and before.removed:
        kind = "overwrite"
    origin = None
    if compared and before and at is not None and not _is_wider(found):
        origin = _origin(before, snapshot, widths, at, group.files)
    deed = Deed(
        name=f"{name} {group.id}" if group.id is not None else "",
        commit=commit,
        files=len(group.files),
        others=len(snapshot.files) - len(group.files),
        widths=origin.widths if origin else found,
        replaced=None if before is None else before.removed,
        against_replaced=compared,
        unbounded=widths.unbounded(group.files),
        deleted_by=None if before is None or before.deleted_by is None else f"{name} {before.deleted_by}",
        origin=None if origin is None else (f"{name} {origin.commit.id}", origin.commit),
    )
    return CommitAudit(
        id=group.id,
        time=None if commit is None else commit.time,
        kind=kind,
        operation="" if commit is None else plain(commit.operation),
        writer="" if commit is None else writer_of(commit),
        files=len(group.files),
        bytes=group.bytes,
        read_share=group.read,
        excess_share=group.excess,
        replaced=deed.replaced,
        widths=deed.widths,
        sentence=sentence_of(deed),
        read_files_share=group.read_files,
        since=group.id if origin is None else origin.commit.id,
    )


def _appends(
    groups: Sequence[_Group], told: Sequence[CommitAudit], snapshot: Snapshot, widths: Widths
) -> CommitAudit | None:
    """Take all appends together, for each of many may be too small to be blamed; None where there are none or one."""
    replacing = {each.id for each in told if each.kind != "append"}
    found = [
        (group.commit, group)
        for group in groups
        if group.commit is not None and group.id not in replacing and kind_of(group.commit, snapshot.format) == "append"
    ]
    if len(found) < 2:
        return None
    commits = sorted((commit for commit, _ in found), key=lambda commit: (_moment(commit), commit.id))
    files = np.sort(np.concatenate([group.files for _, group in found]))
    wide = widths.among(files)
    operations = {plain(commit.operation) for commit in commits}
    writers = {writer_of(commit) for commit in commits}
    return CommitAudit(
        id=None,
        time=commits[-1].time,
        kind="appends",
        operation=operations.pop() if len(operations) == 1 else "",
        writer=writers.pop() if len(writers) == 1 else "",
        files=len(files),
        bytes=sum(group.bytes for _, group in found),
        read_share=sum(group.read for _, group in found),
        excess_share=sum(group.excess for _, group in found),
        replaced=0,
        widths=wide,
        sentence=appends_sentence(commits, len(files), wide),
        read_files_share=sum(group.read_files for _, group in found),
        since=commits[0].id,
    )


def _moment(commit: Commit) -> float:
    return -math.inf if commit.time is None else commit.time.timestamp()


def _joined(groups: Sequence[_Group]) -> CommitAudit:
    files = sum(len(group.files) for group in groups)
    return CommitAudit(
        id=None,
        time=None,
        kind="several",
        operation="",
        writer="",
        files=files,
        bytes=sum(group.bytes for group in groups),
        read_share=sum(group.read for group in groups),
        excess_share=sum(group.excess for group in groups),
        replaced=None,
        widths=(),
        sentence=f"{len(groups):,} other commits, each with less of what is read, added {files:,} files",
        read_files_share=sum(group.read_files for group in groups),
    )


def _is_wider(widths: Sequence[Width]) -> bool:
    return any((each.times or 0) >= WIDER for each in widths)


# --- where wide files came from --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Origin:
    commit: Commit
    widths: tuple[Width, ...]
    """Of the files that queries read today, against those that this commit replaced."""


def _origin(before: Replaced, snapshot: Snapshot, widths: Widths, at: At, files: Ints) -> _Origin | None:
    """Follow files that a commit rewrote as wide as they were to the commit that made them wide, if there is one."""
    for _ in range(STEPS_BACK):
        version = before.version
        if version is None or not len(before.files):
            return None
        commit, chosen = _main_author(version, before.files)
        earlier = None if commit is None else replaced_by(commit, version.files, chosen, version, at)
        if commit is None or earlier is None or not len(earlier.files):
            return None
        if _is_wider(widths.since(version.files, chosen, earlier)):
            now = widths.since(snapshot.files, files, earlier)
            return _Origin(commit, now) if _is_wider(now) else None  # else they were repaired
        before = earlier
    return None


def _main_author(version: Snapshot, files: Ints) -> tuple[Commit | None, Ints]:
    """Return the commit that added most bytes of these files, and its files among them."""
    authors, places = np.unique(version.files.added_by[files], return_inverse=True)
    weight: Mapping[int, float] = dict(enumerate(np.bincount(places, version.files.sizes[files])))
    most = max(weight, key=lambda place: weight[place])
    return version.commits.get(int(authors[most])), files[places == most]
