"""Say in a sentence what a commit did to a table's order."""

from collections.abc import Sequence
from datetime import timezone

from zonal.auditing.audit import Width
from zonal.auditing.blame.authors import in_common, plain, writer_of
from zonal.auditing.blame.deeds import Deed
from zonal.auditing.blame.widths import WIDER
from zonal.auditing.origins import Origin
from zonal.snapshot import Commit

TIMES = "\N{MULTIPLICATION SIGN}"
_MOST_COLUMNS = 3


def sentence_of(deed: Deed) -> str:
    """Say what a commit did: which columns it widened, or what it added."""
    if deed.origin is not None:
        return f"{_subject(deed)} {_rewrote(deed.origin, _listed(_wider(_changed(deed))), deed.word)}"
    without = f" without bounds of {_listed([plain(name, 60) for name in deed.unbounded])}" if deed.unbounded else ""
    if deed.is_compared:
        by = deed.deleted_by
        where = "" if by is None else f", with the delete of {deed.word} {by} right before it,"
        after = f", after {_appends(deed.appended, deed.word)} had added wider files" if deed.appended else ""
        return f"{_subject(deed)}{where} {_change(deed)}{without and f', and wrote files{without}'}{after}"
    return f"{_subject(deed)} added {_count(len(deed.group.files))}{without}{_beside(deed)}"


def appends_sentence(commits: Sequence[Commit], files: int, widths: Sequence[Width]) -> str:
    """Say what several appends, in order of time, added beside the table's other files."""
    wider = _wider([(each.column, each.times) for each in widths if each.times is not None])
    beside = f", {_listed(wider)} as wide as the others" if wider else ""
    return f"{len(commits):,} appends{_told_of(commits)} added {_count(files)}{beside}"


def rewrites_sentence(
    commits: Sequence[Commit], widths: Sequence[Width], origin: Origin | None, word: str = "version"
) -> str:
    """Say what several rewrites of one kind, in order of time, did to the files that they replaced."""
    subject = f"{len(commits):,} commits{_told_of(commits)}"
    wider = _listed(_wider([(each.column, each.times) for each in widths if each.times is not None]))
    if origin is not None:
        return f"{subject} {_rewrote(origin, wider, word)}"
    return f"{subject} widened {wider}" if wider else f"{subject} replaced files by others, about as wide as before"


def _rewrote(origin: Origin, wider: str, word: str) -> str:
    if origin.are_appends:
        return f"rewrote files that {_appends(origin.commits, word)} had added: {wider} as wide as those beside them"
    (commit,) = origin.commits
    return f"rewrote files that {_named(f'{word} {commit.id}', commit)} had widened: {wider}"


def _appends(commits: Sequence[Commit], word: str) -> str:
    """Name appends, given in order of time."""
    if len(commits) == 1:
        return _named(f"{word} {commits[0].id}", commits[0])
    return f"{len(commits):,} appends{_told_of(commits)}"


def _told_of(commits: Sequence[Commit]) -> str:
    """Say which engine made commits by which operation, where all agree, and when."""
    what = plain(in_common(commit.operation for commit in commits), 60)
    by = in_common(map(writer_of, commits))
    times = [f"{commit.time.astimezone(timezone.utc):%Y-%m-%d %H:%M}" for commit in commits if commit.time is not None]
    when = f"{' to '.join(dict.fromkeys([times[0], times[-1]]))} UTC" if times else ""
    who = " ".join(part for part in (what, f"by {plain(by, 60)}" if by else "") if part)
    told = ", ".join(part for part in (who, when) if part)
    return f" ({told})" if told else ""


def _subject(deed: Deed) -> str:
    if deed.group.id is None:
        return "commits that the table's history doesn't tell any more"
    name = f"{deed.word} {deed.group.id}"
    commit = deed.group.commit
    return f"{name}, which the history doesn't have any more," if commit is None else _named(name, commit)


def _named(name: str, commit: Commit) -> str:
    writer = writer_of(commit)
    time = "" if commit.time is None else f", {commit.time.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
    return f"{name} ({plain(commit.operation, 60)}{f' by {plain(writer, 60)}' if writer else ''}{time})"


def _change(deed: Deed) -> str:
    told = [("widened", _wider(_changed(deed))), ("narrowed", _narrower(_changed(deed)))]
    parts = [f"{verb} {_listed(columns)}" for verb, columns in (told if deed.did_harm else told[::-1]) if columns]
    if parts:
        return ", ".join(parts)
    files, removed = len(deed.group.files), 0 if deed.before is None else deed.before.removed
    what = f"replaced {_count(removed)} by {files:,}" if removed else f"marked {_count(files)} anew"
    return f"{what}, about as wide as before"


def _beside(deed: Deed) -> str:
    if not deed.others:
        return ", all that the table has"
    wider = _wider(_changed(deed))
    return f", {_listed(wider)} as wide as the others" if wider else ""


_Changes = Sequence[tuple[str, float]]
"""Columns, and how many times wider files became in them."""


def _wider(changed: _Changes) -> list[str]:
    """Name the columns that became clearly wider, by most first."""
    return [f"{plain(name, 60)} {times_text(times)}" for name, times in changed if times >= WIDER]


def _narrower(changed: _Changes) -> list[str]:
    narrow = sorted((times, name) for name, times in changed if 0 < times <= 1 / WIDER)
    return [f"{plain(name, 60)} to 1/{times_text(1 / times).removesuffix(TIMES)}" for times, name in narrow]


def _changed(deed: Deed) -> list[tuple[str, float]]:
    known = ((each.column, each.times) for each in deed.widths if each.column not in deed.unbounded)
    return [(name, times) for name, times in known if times is not None]


def _listed(names: list[str]) -> str:
    more = [f"and {len(names) - _MOST_COLUMNS} more"] if len(names) > _MOST_COLUMNS else []
    return ", ".join([*names[:_MOST_COLUMNS], *more])


def times_text(times: float) -> str:
    """Print how many times as much.

    >>> [times_text(times).rstrip(TIMES) for times in (57.3, 3.24, 2.0, 12345.6)]
    ['57', '3.2', '2', '12,346']
    """
    return (f"{times:,.0f}" if times >= 9.95 else f"{times:.1f}".removesuffix(".0")) + TIMES


def _count(files: int) -> str:
    return f"{files:,} file{'' if files == 1 else 's'}"
