"""Tell which commits added the files that queries read, whether they widened them, and which are to blame.

A commit's files are compared with those that it replaced, by the versions before and after it, or with the table's
other files where it replaced none. Older versions are read for the few commits that matter most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zonal.auditing.audit import CommitAudit
from zonal.auditing.blame.authors import ZONAL, plain, writer_of
from zonal.auditing.blame.culprits import culprits_of, is_harmful
from zonal.auditing.blame.groups import Group, groups_of
from zonal.auditing.blame.pools import Told, pools_of
from zonal.auditing.blame.replaced import At, Replaced, replaced_by
from zonal.auditing.blame.sentence import Deed, sentence_of
from zonal.auditing.blame.widths import Widths
from zonal.auditing.origins import Origin, appended_in, origin_of
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
    told = [_told(group, snapshot, widths, weights, past if group.id in looked else None) for group in shown]
    found = [each.audit for each in told]
    culprits = culprits_of([*found, *pools_of(groups, told, widths, weights)], weights)
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


def _told(group: Group, snapshot: Snapshot, widths: Widths, weights: Mapping[str, float], at: At | None) -> Told:
    commit, word = group.commit, snapshot.traits.version_word
    before = None
    if commit is not None and at is not None:
        before = replaced_by(commit, snapshot.files, group.files, snapshot, at, widths.columns)
    compared = before is not None and len(before.files) > 0
    found = widths.since(snapshot.files, group.files, before) if compared and before else widths.among(group.files)
    kind: str = "unknown" if commit is None else commit.kind
    if kind == "append" and before is not None and before.removed:
        kind = "overwrite"
    origin, appended = None, None
    did_harm = is_harmful(found, weights)
    if compared and before and at is not None:
        if not did_harm:
            origin = origin_of(group.files, before, snapshot, widths, weights, at, appends=kind != ZONAL)
        elif kind != ZONAL:
            appended = appended_in(before, widths, weights)
    deed = Deed(
        name=f"{word} {group.id}" if group.id is not None else "",
        commit=commit,
        files=len(group.files),
        others=len(snapshot.files) - len(group.files),
        widths=origin.widths if origin else found,
        replaced=None if before is None else before.removed,
        against_replaced=compared,
        unbounded=widths.unbounded(group.files),
        deleted_by=None if before is None or before.deleted_by is None else f"{word} {before.deleted_by}",
        origin=origin,
        appended=() if appended is None else appended.commits,
        did_harm=did_harm,
        word=word,
    )
    return Told(group, _audit(group, deed, kind, _since(group, before, origin)), compared, origin, word)


def _audit(group: Group, deed: Deed, kind: str, since: int | None) -> CommitAudit:
    commit = group.commit
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
        since=since,
        ids=() if group.id is None else (group.id,),
    )


def _since(group: Group, before: Replaced | None, origin: Origin | None) -> int | None:
    """Return the commit with which the harm began; an overwrite may be a delete and an append."""
    if origin is not None:
        return origin.commits[0].id
    return group.id if before is None or before.deleted_by is None else before.deleted_by


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
