"""Which commits added the files that are read for nothing, and whether they made files wider.

A commit is held against the files that it replaced, as the versions around it tell them, or against the table's other
files where it replaced none. Older versions are read for the few commits that matter most.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zonal.auditing.audit import CommitAudit, Width
from zonal.auditing.authors import kind_of, plain, writer_of
from zonal.auditing.blaming import Deed, sentence_of
from zonal.auditing.replaced import At, Replaced, replaced_by
from zonal.auditing.replay import Replay
from zonal.auditing.widths import Measured, Total, joined, mean_width, measured, total_width
from zonal.files import UNKNOWN, Bounds, Commit, Files, Ints, LazyBounds, Snapshot

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


@dataclass(frozen=True, eq=False)
class _Group:
    """The live files that one commit added."""

    id: int | None
    commit: Commit | None
    """None where the history doesn't have it any more."""
    files: Ints
    bytes: int
    read: float
    excess: float


def commits_of(snapshot: Snapshot, replayed: Replay, columns: Sequence[str], at: At) -> tuple[CommitAudit, ...]:
    """Tell what each commit's live files cost, those that cause most of what is read for nothing first.

    `columns` are those that queries filter, and `at` returns a version of the table, or None where it is gone; it is
    asked for the versions around the first commits only, and not for more than 16 in all. Of more than 50 commits,
    those with the least excess are joined in the last row.
    """
    groups = _groups(snapshot, replayed)
    shown = groups if len(groups) <= MOST_COMMITS else groups[: MOST_COMMITS - 1]
    widths, past = _Widths(snapshot, columns), _Past(at)
    found = [
        _audited(group, snapshot, widths, past if number < LOOKED_AT else None) for number, group in enumerate(shown)
    ]
    rest = groups[len(shown) :]
    return (*found, *([_joined(rest)] if rest else []))


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
    read, excess = _parts(sizes * replayed.read), _parts(sizes * replayed.excess)
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
            excess=float(excess[chosen].sum()),
        )
        found.append(group)
    return sorted(found, key=lambda group: (-group.excess, -group.read, -group.bytes, group.id or 0))


def _parts(amounts: "np.typing.NDArray[np.float64]") -> "np.typing.NDArray[np.float64]":
    total = float(amounts.sum())
    return amounts / total if total > 0 else np.zeros(len(amounts))


def _audited(group: _Group, snapshot: Snapshot, widths: "_Widths", at: At | None) -> CommitAudit:
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
    )


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
        sentence=f"{len(groups):,} other commits, each with less of what is read for nothing, added {files:,} files",
    )


# --- how wide --------------------------------------------------------------------------------------------------------


class _Widths:
    """The filtered columns of which files have bounds, with every file's width in them."""

    def __init__(self, snapshot: Snapshot, columns: Sequence[str]) -> None:
        self._files = snapshot.files
        bounds = snapshot.files.bounds
        if isinstance(bounds, LazyBounds):
            bounds.load(columns)
        self._bounds: dict[str, Bounds] = {}
        self._own: dict[str, Measured] = {}
        self._totals: dict[str, Total] = {}
        for name in dict.fromkeys(columns):
            own = measured(bounds[name], snapshot.files.rows) if name in bounds and len(snapshot.files) else None
            if own is not None:
                self._bounds[name], self._own[name] = bounds[name], own
                self._totals[name] = total_width(own.widths, snapshot.files.sizes)

    def among(self, files: Ints) -> tuple[Width, ...]:
        """Hold files against all the others."""
        found = []
        for name, own in self._own.items():
            mine = total_width(own.widths[files], self._files.sizes[files])
            if mine.mean is not None:
                found.append(Width(name, mine.mean, self._totals[name].without(mine).mean))
        return _sorted(found)

    def unbounded(self, files: Ints) -> tuple[str, ...]:
        """Return the columns of which none of these files has bounds."""
        chosen = {name: bounds.take(files) for name, bounds in self._bounds.items()}
        return tuple(
            name
            for name, bounds in chosen.items()
            if bounds.lower.null_count == bounds.upper.null_count == len(files)
            and not np.isnan(self._own[name].widths[files]).all()
        )

    def since(self, files: Files, chosen: Ints, before: Replaced) -> tuple[Width, ...]:
        """Hold some of `files` against those that they replaced, on the line of the column as it is now."""
        return _sorted(self._since(files, chosen, before))

    def _since(self, files: Files, chosen: Ints, before: Replaced) -> Iterator[Width]:
        older = None if before.version is None else before.version.files
        if older is not None and isinstance(older.bounds, LazyBounds):
            older.bounds.load(self._bounds)
        for name, now in self._bounds.items():
            mine, theirs = files.bounds.get(name), None if older is None else older.bounds.get(name)
            if older is None or mine is None or theirs is None:
                continue
            ends = self._own[name].ends
            parts = [mine.take(chosen), theirs.take(before.files), now.take(ends)]
            if len({part.lower.type for part in parts}) > 1:
                continue  # the column had a type whose bounds today's can't hold
            rows = np.concatenate([files.rows[chosen], older.rows[before.files], self._files.rows[ends]])
            found = measured(joined(parts), rows)
            width = None if found is None else mean_width(found.widths[: len(chosen)], files.sizes[chosen])
            if found is not None and width is not None:
                past = mean_width(found.widths[len(chosen) : -len(ends)], older.sizes[before.files])
                yield Width(name, width, past)


def _sorted(widths: "Sequence[Width] | Iterator[Width]") -> tuple[Width, ...]:
    return tuple(sorted(widths, key=lambda each: (-(each.times or 0.0), -each.width)))


def _is_wider(widths: Sequence[Width]) -> bool:
    return any((each.times or 0) >= WIDER for each in widths)


# --- where wide files came from --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Origin:
    commit: Commit
    widths: tuple[Width, ...]
    """Of the files that queries read today, against those that this commit replaced."""


def _origin(before: Replaced, snapshot: Snapshot, widths: _Widths, at: At, files: Ints) -> _Origin | None:
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
            return _Origin(commit, widths.since(snapshot.files, files, earlier))
        before = earlier
    return None


def _main_author(version: Snapshot, files: Ints) -> tuple[Commit | None, Ints]:
    """Return the commit that added most bytes of these files, and its files among them."""
    authors, places = np.unique(version.files.added_by[files], return_inverse=True)
    weight: Mapping[int, float] = dict(enumerate(np.bincount(places, version.files.sizes[files])))
    most = max(weight, key=lambda place: weight[place])
    return version.commits.get(int(authors[most])), files[places == most]
