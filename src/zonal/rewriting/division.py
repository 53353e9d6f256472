"""One plan for all commits of a run, and what look-ups read of the files of several commits, against those of one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.plan.rewrite import Writing
from zonal.rewriting.in_place import physical
from zonal.snapshot import Snapshot
from zonal.study.sample import Survey, survey
from zonal.tables.protocol import Rewritable
from zonal.values.arrays import Int64Array
from zonal.values.sample import Sample
from zonal.values.selection import take_rows
from zonal.worker.splits import refuse_wrong_sizes

_BITS = 16
"""Of the codes in which files' ranges are compared."""
WORTH_TELLING = 1.25
"""Look-ups that read so many times as much are worth a sentence."""


@dataclass(frozen=True)
class KeyLookups:
    """The share of the new files that a look-up of one value of a key column is predicted to read."""

    column: str
    at_once: float
    """If one commit rewrites all files …"""
    in_commits: float
    """… and if as many do as are planned."""

    @property
    def factor(self) -> float:
        """How many times as much is read after several commits."""
        return self.in_commits / self.at_once if self.at_once else 1.0


@dataclass(frozen=True, eq=False)
class Division:
    """What is known of a run before its first commit."""

    survey: Survey
    """Of all files; its partitions are those of each commit."""
    ranks: tuple[Ranks, ...]
    """By which each commit orders its rows."""
    files: int
    """New files, as far as the sample tells."""
    lookups: tuple[KeyLookups, ...]
    """Empty for a run of one commit."""


def divide(
    table: Rewritable,
    snapshot: Snapshot,
    groups: Sequence[Int64Array],
    layout: Layout,
    writing: Writing,
    *,
    by: str | None = None,
) -> Division:
    """Plan the commits that rewrite these groups of files, ranges of the column `by`; no data is read but a sample.

    All commits share one sample and, mostly, its ranks: with ranks of its own, each would cut its range of the column
    anew, and leave the other columns to the number of commits.
    """
    scan = table.scan(snapshot, np.sort(np.concatenate(groups)))
    refuse_wrong_sizes(scan)
    commit_of = {file: number for number, files in enumerate(groups) for file in files.tolist()}
    partitions = int(snapshot.files.partition.max(initial=0)) + 1
    sources = tuple(
        replace(source, partition=commit_of[source.number] * partitions + source.partition) for source in scan.sources
    )
    found = survey(replace(scan, sources=sources), writing, physical(layout, scan))
    commit = found.sample.partition // partitions
    shared = (found.ranks,) * len(groups)
    if len(groups) == 1:
        return Division(found, shared, found.placement().files, ())
    once = _files(_at_once(found, partitions), np.zeros_like(commit), shared[:1], partitions)
    ways = [shared]
    if by is not None and by in layout.curve_columns and len({*snapshot.files.partition[[*commit_of]].tolist()}) == 1:
        ways.append(_slotted(found, commit, len(groups), physical(layout, scan).columns[layout.columns.index(by)]))
    made = [_files(found, commit, way, partitions) for way in ways]
    wanted = _lookups(found, once)
    told = [tuple(map(KeyLookups, layout.columns, wanted, _lookups(found, files))) for files in made]
    best = min(range(len(ways)), key=lambda way: max(each.factor for each in told[way]))
    return Division(found, ways[best], int(made[best].max(initial=-1)) + 1, told[best])


def _slotted(found: Survey, commit: Int64Array, commits: int, column: str) -> tuple[Ranks, ...]:
    """Give each commit the ranks of its own range of a column, in a cell of its own.

    Borders between commits are then borders between cells of the curve, wherever they lie among the rows.
    """
    slots = min(1 << (commits - 1).bit_length(), 1 << (found.layout.bits_per_column // 2))
    ranks = []
    for number in range(commits):
        mine = Ranks.fit(take_rows(found.sample.data, np.flatnonzero(commit == number)), [column])
        ranks.append(Ranks({**found.ranks, column: mine[column].within(number * slots // commits, slots)}))
    return tuple(ranks)


def _at_once(found: Survey, partitions: int) -> Survey:
    """Return what the same sample tells of a run of one commit."""
    rows: dict[int, int] = {}
    for part, count in found.sizes.rows.items():
        rows[part % partitions] = rows.get(part % partitions, 0) + count
    sample = Sample(found.sample.data, found.sample.partition % partitions)
    return replace(found, sample=sample, sizes=replace(found.sizes, rows=rows))


def _files(found: Survey, commit: Int64Array, ranks: Sequence[Ranks], partitions: int) -> Int64Array:
    """Return the new file that each row of the sample would go to, one commit after the other."""
    file = np.zeros(found.sample.data.num_rows, np.int64)
    made = 0
    for number, each in enumerate(ranks):
        rows = np.flatnonzero(commit == number)
        sample = Sample(take_rows(found.sample.data, rows), found.sample.partition[rows])
        sizes = {
            part: count for part, count in found.sizes.rows.items() if len(ranks) == 1 or part // partitions == number
        }
        mine = replace(found, ranks=each, sample=sample, sizes=replace(found.sizes, rows=sizes))
        placement = mine.placement()
        for part in sizes:
            at = np.flatnonzero(sample.partition == part)
            _, pieces = placement.place(take_rows(sample.data, at), part, at, 0)
            file[rows[at]] = made + placement.file_of_piece[pieces]
        made += placement.files
    return file


def _lookups(found: Survey, file: Int64Array) -> list[float]:
    """Return for each key column the share of the files whose range holds the value of a row, on average."""
    ranks = Ranks.fit(found.sample.data, found.layout.columns)
    return [_read(ranks.codes(found.sample.data, name, _BITS), file) for name in found.layout.columns]


def _read(codes: np.ndarray[tuple[int, ...], np.dtype[np.uint32]], file: Int64Array) -> float:
    """Return the share of the files that have rows whose range holds a row's code, on average over the rows."""
    order = np.argsort(file, kind="stable")
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    if not len(starts):
        return 0.0
    low, high = np.minimum.reduceat(codes[order], starts), np.maximum.reduceat(codes[order], starts)
    cover = np.searchsorted(np.sort(low), codes, "right") - np.searchsorted(np.sort(high), codes, "left")
    return float(cover.mean() / len(starts))


def cost_text(lookups: Sequence[KeyLookups], commits: int) -> str:
    """Say what several commits cost those who look rows up; empty where they cost nothing."""
    worse = [each for each in lookups if each.factor > WORTH_TELLING]
    if not worse:
        return ""
    told = ", ".join(f"{each.in_commits:.1%} of the files for one {each.column} ({each.at_once:.1%})" for each in worse)
    return (
        f"After {commits:,} commits look-ups are predicted to read {told}; in brackets, after one commit. A commit "
        "replaces whole files, and the ranges of these overlap. Leave out --commit-every, or raise it, to read less."
    )
