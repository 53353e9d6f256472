"""What one commit did to a table's order: its live files against those that they replaced."""

from collections.abc import Mapping
from dataclasses import dataclass

from zonal.auditing.audit import Width
from zonal.auditing.blame.authors import ZONAL
from zonal.auditing.blame.culprits import is_harmful
from zonal.auditing.blame.groups import Group
from zonal.auditing.blame.replaced import At, Replaced, replaced_by
from zonal.auditing.blame.widths import Widths
from zonal.auditing.origins import Origin, appended_in, origin_of
from zonal.snapshot import Commit, Snapshot


@dataclass(frozen=True, eq=False)
class Deed:
    """A commit's live files, and what is known of those that they replaced."""

    group: Group
    kind: str
    """append, compaction, delete, overwrite, zonal or unknown."""
    before: Replaced | None
    """What it replaced; None where that isn't known."""
    widths: tuple[Width, ...]
    unbounded: tuple[str, ...] = ()
    """Columns for which other files have bounds, but none of its own."""
    others: int = 0
    """The table's other files."""
    origin: Origin | None = None
    """The commits that had made the files wide before this one rewrote them."""
    appended: tuple[Commit, ...] = ()
    """Appends that had added wide files to those that this commit widened."""
    did_harm: bool = False
    """Whether queries read more of its files in all; else narrowed columns are named first."""
    word: str = "version"
    """What the table's format calls a commit."""

    @property
    def is_compared(self) -> bool:
        """Whether widths are compared with the replaced files, instead of the table's other files."""
        return self.before is not None and len(self.before.files) > 0

    @property
    def deleted_by(self) -> int | None:
        """Return the delete right before it that removed what it replaced."""
        return None if self.before is None else self.before.deleted_by

    @property
    def since(self) -> int | None:
        """Return the commit with which the harm began; an overwrite may be a delete and an append."""
        if self.origin is not None:
            return self.origin.commits[0].id
        return self.group.id if self.deleted_by is None else self.deleted_by


def deed_of(group: Group, snapshot: Snapshot, widths: Widths, weights: Mapping[str, float], at: At | None) -> Deed:
    """Compare a commit's files with those that it replaced, by the versions that `at` returns, or with all others."""
    commit, before = group.commit, None
    if commit is not None and at is not None:
        before = replaced_by(commit, snapshot.files, group.files, snapshot, at, widths.columns)
    compared = before if before is not None and len(before.files) else None
    found = widths.among(group.files) if compared is None else widths.since(snapshot.files, group.files, compared)
    kind: str = "unknown" if commit is None else commit.kind
    if kind == "append" and before is not None and before.removed:
        kind = "overwrite"
    origin, appended = None, None
    did_harm = is_harmful(found, weights)
    if compared is not None and at is not None:
        if not did_harm:
            origin = origin_of(group.files, compared, snapshot, widths, weights, at, appends=kind != ZONAL)
        elif kind != ZONAL:
            appended = appended_in(compared, widths, weights)
    return Deed(
        group=group,
        kind=kind,
        before=before,
        widths=origin.widths if origin else found,
        unbounded=widths.unbounded(group.files),
        others=len(snapshot.files) - len(group.files),
        origin=origin,
        appended=() if appended is None else appended.commits,
        did_harm=did_harm,
        word=snapshot.traits.version_word,
    )
