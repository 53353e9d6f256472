"""Trace wide files that a commit rewrote to the commits that had made them wide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from zonal.auditing.audit import Width
from zonal.auditing.blame.authors import ZONAL, time_of
from zonal.auditing.blame.culprits import harms, is_harmful, last_harmful
from zonal.auditing.blame.replaced import At, Replaced, replaced_by
from zonal.auditing.blame.widths import Widths
from zonal.snapshot import Commit, Files, Snapshot
from zonal.values.arrays import Float64Array, Int64Array

STEPS_BACK = 10
"""Commits to trace back from one that rewrote files as wide as they were."""


@dataclass(frozen=True, eq=False)
class Origin:
    """The commits that had made files wide before another one rewrote them."""

    commits: tuple[Commit, ...]
    """One rewrite, or appends in order of time."""
    are_appends: bool
    widths: tuple[Width, ...]
    """Of the files that queries read today, against those that the rewrite replaced or those beside which appends added
    theirs."""


@dataclass(frozen=True, eq=False)
class WideAppends:
    """Appends whose files were wider than those beside them."""

    commits: tuple[Commit, ...]
    """In order of time."""
    beside: Replaced
    """The other files: those that were replaced together with theirs or, if there were none, all of the version."""


def origin_of(
    files: Int64Array,
    before: Replaced,
    snapshot: Snapshot,
    widths: Widths,
    weights: Mapping[str, float],
    at: At,
    *,
    appends: bool = True,
) -> Origin | None:
    """Trace files that a commit rewrote as wide as they were to the commits that made them wide, if there are any.

    Without `appends`, only rewrites are considered.
    """
    for _ in range(STEPS_BACK):
        version = before.version
        if version is None or not len(before.files):
            return None
        appended = appended_in(before, widths, weights) if appends else None
        if appended is not None:
            now = widths.since(snapshot.files, files, appended.beside)
            return Origin(appended.commits, True, now) if is_harmful(now, weights) else None
        commit, chosen = _main_author(version, before.files)
        earlier = None if commit is None else replaced_by(commit, version.files, chosen, version, at, widths.columns)
        if commit is None or earlier is None or not len(earlier.files):
            return None
        if is_harmful(widths.since(version.files, chosen, earlier), weights):
            now = widths.since(snapshot.files, files, earlier)
            return Origin((commit,), False, now) if is_harmful(now, weights) else None  # else they were repaired since
        before = earlier
    return None


def appended_in(replaced: Replaced, widths: Widths, weights: Mapping[str, float]) -> WideAppends | None:
    """Find those appends of the replaced files that had spoiled the version before, if there are any.

    A compaction of what a stream appended widens nothing: the files were as wide before. Yet queries read them, and
    no live file leads to the appends any more.
    """
    version = replaced.version
    if version is None:
        return None
    files = version.files
    authors = np.unique(files.added_by[replaced.files]).tolist()
    known = [commit for number in authors if (commit := version.commits.get(number)) is not None]
    commits = sorted((each for each in known if each.kind == "append"), key=time_of)
    if not commits:
        return None
    groups = [np.flatnonzero(files.added_by == commit.id) for commit in commits]
    part = _parts_of_tails(groups, files, replaced.files)
    first = last_harmful(harms(part, Widths(version, widths.columns).tails(groups), weights))
    if first is None:
        return None
    tail = np.concatenate(groups[first:])
    beside = np.setdiff1d(replaced.files, tail)
    if not len(beside):
        beside = np.setdiff1d(np.arange(len(files)), tail)
    return WideAppends(tuple(commits[first:]), replace(replaced, files=beside))


def _parts_of_tails(groups: Sequence[Int64Array], files: Files, replaced: Int64Array) -> Float64Array:
    """Return the share of the replaced bytes that each commit and all later ones had added."""
    sizes = np.zeros(len(files))
    sizes[replaced] = np.maximum(files.sizes[replaced], 1)
    added = np.array([sizes[group].sum() for group in groups])
    parts: Float64Array = np.cumsum(added[::-1])[::-1] / sizes.sum()
    return parts


def _main_author(version: Snapshot, files: Int64Array) -> tuple[Commit | None, Int64Array]:
    """Return the commit that added most bytes of these files, and its files among them.

    One of zonal comes last: its clustering is what others are compared with.
    """
    authors, places = np.unique(version.files.added_by[files], return_inverse=True)
    bytes_ = np.bincount(places, version.files.sizes[files])
    known = [version.commits.get(number) for number in authors.tolist()]
    is_zonal = [each is not None and each.kind == ZONAL for each in known]
    most = max(range(len(known)), key=lambda place: (not is_zonal[place], bytes_[place]))
    return known[most], files[places == most]
