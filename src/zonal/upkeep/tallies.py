"""What arrived before each run of zonal and what the run wrote, as far as a table's commits tell.

Exact are the bytes of data files that commits wrote, compactions of other writers left out. A copy-on-write update or
delete counts with all that it wrote, since its files have lost the layout; one by deletion vectors or delete files
writes no data. What can't be known is told: commits that have expired, and those that don't tell their bytes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from zonal.plan.run import RUN
from zonal.snapshot import Commit, Snapshot


@dataclass(frozen=True)
class Tally:
    """One run, and what arrived since the run before it."""

    run: str = ""
    """Its name; a commit's number where that names none, and empty for what arrived since the last run."""
    versions: tuple[int, ...] = ()
    time: datetime | None = None
    """Of its last commit."""
    arrived_bytes: int = 0
    arrived_rows: int | None = 0
    """None where a commit doesn't tell its rows."""
    rewritten_bytes: int = 0
    brings: bool = False
    """Whether it only brought rows, as an append and a copy do: these count as arrived."""
    exact: bool = True
    """Whether every commit tells its bytes."""


@dataclass(frozen=True)
class Tallies:
    """All commits of runs that lead to a version, oldest first."""

    commits: tuple[Tally, ...] = ()
    """One per commit of a run."""
    since: Tally = field(default_factory=Tally)
    """What arrived after the last of them."""
    whole: bool = False
    """Whether the first commit of the table is among those that are known."""
    start: int | None = None
    """The commit before the first that is known, which has expired; None where there is none."""

    @cached_property
    def runs(self) -> tuple[Tally, ...]:
        """Put the commits of each run together."""
        return joined(self.commits)

    def after(self, versions: Mapping[str, int | None]) -> tuple[Tally, ...]:
        """Return what runs did after the commits that are known as the last ones of some."""
        places = {tally.versions[-1]: place for place, tally in enumerate(self.commits)}
        ends = {run: places.get(version, -1) for run, version in versions.items() if version is not None}
        return joined(tally for place, tally in enumerate(self.commits) if place > ends.get(tally.run, -1))

    def goes_back_to(self, versions: Collection[int | None]) -> bool:
        """Tell whether nothing is unknown since one of these commits, or since the table was made."""
        known = {self.start, *(tally.versions[-1] for tally in self.commits)} - {None}
        return self.whole or not known.isdisjoint(versions)


def tallies_of(snapshot: Snapshot) -> Tallies:
    """Add up the commits that led to a snapshot: no other branches, and nothing that was rolled back."""
    line = _line(snapshot)
    waiting = Tally()
    found: list[Tally] = []
    for commit in line:
        if (name := _run_of(commit)) is None:
            waiting = _arrived(waiting, commit, snapshot)
        else:
            found.append(_ran(waiting, commit, name))
            waiting = Tally()
    start = line[0].parent if line else None
    return Tallies(tuple(found), waiting, bool(line) and line[0].is_first, start)


def _line(snapshot: Snapshot) -> list[Commit]:
    """Return the commits up to a snapshot's version, oldest first."""
    line: dict[int, Commit] = {}
    number = snapshot.version
    while number is not None and number in snapshot.commits and number not in line:  # metadata may go round in circles
        line[number] = snapshot.commits[number]
        number = line[number].parent
    return list(reversed(line.values()))


def _run_of(commit: Commit) -> str | None:
    """Return the name of the run that made a commit, without the numbers of commit and attempt; None for others."""
    match = RUN.match(commit.run)
    if match is not None and commit.kind in ("zonal", "append"):
        return match[0]
    return f"commit {commit.id}" if commit.kind == "zonal" else None


def _arrived(tally: Tally, commit: Commit, snapshot: Snapshot) -> Tally:
    """Count a commit of another writer; where it doesn't tell its bytes, those of its files that are left."""
    if commit.kind == "compaction":
        return tally
    size, rows = commit.added_bytes, commit.added_rows
    if size is None:
        size = int(snapshot.files.sizes[snapshot.files.added_by == commit.id].sum())
    elif not size:
        rows = 0
    return replace(
        tally,
        arrived_bytes=tally.arrived_bytes + size,
        arrived_rows=sum_if_known(tally.arrived_rows, rows),
        exact=tally.exact and commit.added_bytes is not None,
    )


def _ran(tally: Tally, commit: Commit, name: str) -> Tally:
    """Close a tally with the commit of a run; one that made the table, a copy, brought rows as an append does."""
    brings = commit.kind == "append" or commit.is_first
    size = commit.added_bytes or 0
    return Tally(
        run=name,
        versions=(commit.id,),
        time=commit.time,
        arrived_bytes=tally.arrived_bytes + (size if brings else 0),
        arrived_rows=sum_if_known(tally.arrived_rows, commit.added_rows if brings else 0),
        rewritten_bytes=0 if brings else size,
        brings=brings,
        exact=tally.exact and commit.added_bytes is not None,
    )


def joined(commits: Iterable[Tally]) -> tuple[Tally, ...]:
    """Put the commits of each run together, between which rows may have arrived."""
    found: dict[str, Tally] = {}
    for each in commits:
        found[each.run] = _both(found[each.run], each) if each.run in found else each
    return tuple(found.values())


def sum_if_known(first: int | None, second: int | None) -> int | None:
    """Add numbers; None where one isn't known."""
    return None if first is None or second is None else first + second


def _both(first: Tally, second: Tally) -> Tally:
    return replace(
        second,
        versions=(*first.versions, *second.versions),
        arrived_bytes=first.arrived_bytes + second.arrived_bytes,
        arrived_rows=sum_if_known(first.arrived_rows, second.arrived_rows),
        rewritten_bytes=first.rewritten_bytes + second.rewritten_bytes,
        brings=first.brings and second.brings,
        exact=first.exact and second.exact,
    )
