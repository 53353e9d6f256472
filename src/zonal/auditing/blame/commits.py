"""Tell which commits added the files that queries read, whether they widened them, and which are to blame.

A commit's files are compared with those that it replaced, by the versions before and after it, or with the table's
other files where it replaced none. Older versions are read for the few commits that matter most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zonal.auditing.audit import CommitAudit
from zonal.auditing.blame.authors import plain, writer_of
from zonal.auditing.blame.culprits import culprits_of
from zonal.auditing.blame.deeds import Deed, deed_of
from zonal.auditing.blame.groups import Group, groups_of
from zonal.auditing.blame.pools import pools_of
from zonal.auditing.blame.replaced import At
from zonal.auditing.blame.sentence import sentence_of
from zonal.auditing.blame.widths import Widths
from zonal.auditing.replay import Replay
from zonal.snapshot import Snapshot

MOST_COMMITS = 50
"""Commits that are listed one by one."""
LOOKED_AT, MORE_LOOKED_AT = 5, 15
"""Commits whose versions before and after are read: of any table, and in addition of small ones."""
MANY_FILES = 20_000
"""Files up to which a table is small, and its versions are read quickly."""
VERSIONS_EACH = 3
"""Mean number of versions that may be read per commit."""


@dataclass(frozen=True)
class Commits:
    """What a table's commits did."""

    told: tuple[CommitAudit, ...] = ()
    """The culprits first, then by their share of the excess."""
    culprits: tuple[CommitAudit, ...] = ()
    """The worst first; several commits together may be one of them."""


def commits_of(snapshot: Snapshot, replayed: Replay, weights: Mapping[str, float], at: At) -> Commits:
    """Tell what each commit's live files cost, and which commits made them so.

    `weights` are those of the queries per filtered column. `at` returns a version of the table, or None where it is
    gone; it is called for the versions around the commits that matter most, for large tables around fewer. Of more
    than 50 commits, those that matter least are joined in the last row.
    """
    groups = groups_of(snapshot, replayed)
    shown = groups if len(groups) <= MOST_COMMITS else groups[: MOST_COMMITS - 1]
    looked = _looked_at(shown, snapshot)
    widths = Widths(snapshot, list(weights), replayed.read > 0)
    past = _Past(at, VERSIONS_EACH * len(looked), 2 if len(snapshot.files) > MANY_FILES else 8)
    deeds = [deed_of(group, snapshot, widths, weights, past if group.id in looked else None) for group in shown]
    found = [_audit(deed) for deed in deeds]
    culprits = culprits_of([*found, *pools_of(groups, deeds, widths, weights)], weights)
    found.sort(key=lambda each: (-each.excess_share, -each.read_share, -each.bytes, each.id or 0))
    guilty = [each for each in culprits if each in found]
    rest = groups[len(shown) :]
    innocent = [each for each in found if each not in guilty]
    return Commits((*guilty, *innocent, *([_joined(rest)] if rest else [])), culprits)


def _looked_at(groups: Sequence[Group], snapshot: Snapshot) -> set[int]:
    """Choose the commits around which versions are read: the first few, and in small tables more that rewrote files."""
    known = [(group.id, group.commit) for group in groups if group.id is not None and group.commit is not None]
    found = [number for number, _ in known[:LOOKED_AT]]
    if len(snapshot.files) <= MANY_FILES:
        rest = known[LOOKED_AT:]
        found += [number for number, commit in rest if commit.kind != "append"][:MORE_LOOKED_AT]
    return set(found)


class _Past:
    """A bounded cache of older versions: one of a large table takes seconds to read, and much memory."""

    def __init__(self, at: At, most: int, kept: int) -> None:
        """Read at most `most` versions, and keep the last `kept` in memory."""
        self._at = at
        self._left, self._most_kept = most, kept
        self._kept: dict[int, Snapshot | None] = {}

    def __call__(self, version: int) -> Snapshot | None:
        """Return a version; None where it is gone, or where too many have been read already."""
        if version not in self._kept:
            if self._left <= 0:
                return None
            self._left -= 1
            found = self._at(version)
            self._kept = {**dict(list(self._kept.items())[1 - self._most_kept :]), version: found}
        self._kept[version] = self._kept.pop(version)  # least recently used first
        return self._kept[version]


def _audit(deed: Deed) -> CommitAudit:
    group, commit = deed.group, deed.group.commit
    return CommitAudit(
        id=group.id,
        time=None if commit is None else commit.time,
        kind=deed.kind,
        operation="" if commit is None else plain(commit.operation),
        writer="" if commit is None else writer_of(commit),
        files=len(group.files),
        bytes=group.bytes,
        read_share=group.read,
        excess_share=group.excess,
        replaced=None if deed.before is None else deed.before.removed,
        widths=deed.widths,
        sentence=sentence_of(deed),
        read_files_share=group.read_files,
        since=deed.since,
        ids=() if group.id is None else (group.id,),
    )


def _joined(groups: Sequence[Group]) -> CommitAudit:
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
