"""Plan all commits of a run together, and predict what look-ups read after several commits instead of one."""

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
"""Bits per code when the ranges of files are compared."""
WORTH_TELLING = 1.25
"""Factor of additional reads from which a sentence tells of it."""


@dataclass(frozen=True)
class KeyLookups:
    """The share of the new files that a look-up of one value of a key column is predicted to read."""

    column: str
    at_once: float
    """After one commit that rewrites all files."""
    in_commits: float
    """After as many commits as are planned."""

    @property
    def factor(self) -> float:
        """Reads after several commits as a multiple of those after one."""
        return self.in_commits / self.at_once if self.at_once else 1.0


@dataclass(frozen=True, eq=False)
class Division:
    """What is known of a run before its first commit."""

    survey: Survey
    """Of all files, with partitions numbered per commit."""
    ranks: tuple[Ranks, ...]
    """One per commit, by which it orders its rows."""
    files: int
    """Number of new files, estimated from the sample."""
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
    """Plan the commits that rewrite these groups of files, ranges of the column `by`; only a sample is read.

    All commits share one sample and, mostly, its ranks: with ranks of its own, each would cut its range of `by`
    again as finely as the other columns, and look-ups of those would read more with every further commit.
    """
    scan = table.scan(snapshot, np.sort(np.concatenate(groups)))
    refuse_wrong_sizes(scan)
    commit_of = {file: number for number, files in enumerate(groups) for file in files.tolist()}
    partitions = int(snapshot.files.partition.max(initial=0)) + 1
    sources = tuple(
        replace(source, partition=commit_of[source.number] * partitions + source.partition) for source in scan.sources
    )
    surveyed = survey(replace(scan, sources=sources), writing, physical(layout, scan))
    commit = surveyed.sample.partition // partitions
    shared = (surveyed.ranks,) * len(groups)
    if len(groups) == 1:
        return Division(surveyed, shared, surveyed.placement().files, ())
    once = _files(_at_once(surveyed, partitions), np.zeros_like(commit), shared[:1], partitions)
    ways = [shared]
    if by is not None and by in layout.curve_columns and len({*snapshot.files.partition[[*commit_of]].tolist()}) == 1:
        ways.append(_slotted(surveyed, commit, len(groups), physical(layout, scan).columns[layout.columns.index(by)]))
    placed = [_files(surveyed, commit, way, partitions) for way in ways]
    wanted = _lookups(surveyed, once)
    lookups = [tuple(map(KeyLookups, layout.columns, wanted, _lookups(surveyed, files))) for files in placed]
    best = min(range(len(ways)), key=lambda way: max(each.factor for each in lookups[way]))
    return Division(surveyed, ways[best], int(placed[best].max(initial=-1)) + 1, lookups[best])


def _slotted(surveyed: Survey, commit: Int64Array, commits: int, column: str) -> tuple[Ranks, ...]:
    """Map each commit's range of a column to its own cells of the curve.

    Boundaries of commits are then boundaries of cells, wherever they lie among the rows.
    """
    slots = min(1 << (commits - 1).bit_length(), 1 << (surveyed.layout.bits_per_column // 2))
    ranks = []
    for number in range(commits):
        mine = Ranks.fit(take_rows(surveyed.sample.data, np.flatnonzero(commit == number)), [column])
        ranks.append(Ranks({**surveyed.ranks, column: mine[column].within(number * slots // commits, slots)}))
    return tuple(ranks)


def _at_once(surveyed: Survey, partitions: int) -> Survey:
    """Return the survey that the same sample gives for a run of one commit."""
    rows: dict[int, int] = {}
    for part, count in surveyed.sizes.rows.items():
        rows[part % partitions] = rows.get(part % partitions, 0) + count
    sample = Sample(surveyed.sample.data, surveyed.sample.partition % partitions)
    return replace(surveyed, sample=sample, sizes=replace(surveyed.sizes, rows=rows))


def _files(surveyed: Survey, commit: Int64Array, ranks: Sequence[Ranks], partitions: int) -> Int64Array:
    """Return the new file of each row of the sample; files are numbered commit by commit."""
    file = np.zeros(surveyed.sample.data.num_rows, np.int64)
    made = 0
    for number, each in enumerate(ranks):
        rows = np.flatnonzero(commit == number)
        sample = Sample(take_rows(surveyed.sample.data, rows), surveyed.sample.partition[rows])
        sizes = {
            part: count
            for part, count in surveyed.sizes.rows.items()
            if len(ranks) == 1 or part // partitions == number
        }
        mine = replace(surveyed, ranks=each, sample=sample, sizes=replace(surveyed.sizes, rows=sizes))
        placement = mine.placement()
        for part in sizes:
            at = np.flatnonzero(sample.partition == part)
            _, pieces = placement.place(take_rows(sample.data, at), part, at, 0)
            file[rows[at]] = made + placement.file_of_piece[pieces]
        made += placement.files
    return file


def _lookups(surveyed: Survey, file: Int64Array) -> list[float]:
    """Return for each key column the mean share of files whose range holds a sampled row's value."""
    ranks = Ranks.fit(surveyed.sample.data, surveyed.layout.columns)
    return [_read(ranks.codes(surveyed.sample.data, name, _BITS), file) for name in surveyed.layout.columns]


def _read(codes: np.ndarray[tuple[int, ...], np.dtype[np.uint32]], file: Int64Array) -> float:
    """Return the share of non-empty files whose range holds a row's code, as the mean over all rows."""
    order = np.argsort(file, kind="stable")
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    if not len(starts):
        return 0.0
    low, high = np.minimum.reduceat(codes[order], starts), np.maximum.reduceat(codes[order], starts)
    cover = np.searchsorted(np.sort(low), codes, "right") - np.searchsorted(np.sort(high), codes, "left")
    return float(cover.mean() / len(starts))


def cost_text(lookups: Sequence[KeyLookups], commits: int) -> str:
    """Say what several commits cost look-ups; empty where they cost nothing."""
    worse = [each for each in lookups if each.factor > WORTH_TELLING]
    if not worse:
        return ""
    read = ", ".join(f"{each.in_commits:.1%} of the files for one {each.column} ({each.at_once:.1%})" for each in worse)
    return (
        f"After {commits:,} commits look-ups are predicted to read {read}; in brackets, after one commit. A commit "
        "replaces whole files, and the ranges of these overlap. Leave out --commit-every, or raise it, to read less."
    )
