"""The units of a run: files that are clustered together, each unit in a commit of its own or in several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from zonal.errors import ZonalError, option
from zonal.plan.choice import choose, dividing_column, in_commits, that_fit
from zonal.rewriting.request import Job
from zonal.snapshot import Snapshot
from zonal.upkeep.account import account_of
from zonal.upkeep.merges import Merge, MergeChoice
from zonal.upkeep.policy import choose_merges
from zonal.values.arrays import Int64Array
from zonal.values.sizes import format_size


@dataclass(frozen=True, eq=False)
class Unit:
    """Files that are clustered together."""

    commits: tuple[tuple[str, ...], ...]
    """Paths of the files of each commit."""
    by: str | None = None
    """The key column whose ranges the commits are, where there are several."""
    delays: tuple[int, ...] = ()
    """As `Rewriter` takes them."""

    @property
    def paths(self) -> list[str]:
        """List all files."""
        return [path for paths in self.commits for path in paths]


def units_of(job: Job, snapshot: Snapshot) -> tuple[list[Unit], MergeChoice]:
    """Return what to rewrite now: the files that the request names, else the merges that the table needs."""
    if job.is_explicit:
        files = choose(snapshot, job.layout, where=job.where, full=job.scope.full, most_bytes=job.scope.most_bytes)
        return [_unit(job, snapshot, files)] if len(files) else [], MergeChoice()
    choice = choose_merges(snapshot, job.layout, job.terms, account_of(snapshot, job.ledger), job.queries)
    choice, first = _affordable(job, snapshot, choice)
    units = [_unit(job, snapshot, first)] if len(first) else []
    units += [_unit(job, snapshot, _joined(merges), merges[0].delays) for merges in _together(choice)]
    return units, choice


def _unit(job: Job, snapshot: Snapshot, files: Int64Array, delays: tuple[int, ...] = ()) -> Unit:
    every = job.scope.commit_bytes
    commits = in_commits(snapshot, files, job.layout, every)
    by = None if every is None else dividing_column(snapshot, files, job.layout, every)
    paths = tuple(tuple(snapshot.files.paths.take(pa.array(commit)).to_pylist()) for commit in commits)
    return Unit(paths, by, delays if len(commits) == 1 else ())


def _joined(merges: Sequence[Merge]) -> Int64Array:
    return np.sort(np.concatenate([np.zeros(0, np.int64), *(merge.files for merge in merges)]))


def _together(choice: MergeChoice) -> list[list[Merge]]:
    """Put merges of different partitions into one commit where their keys are made alike; Spark starts one job each."""
    groups: list[list[Merge]] = []
    for merge in choice.chosen:
        if merge.reason == "first":
            continue
        alike = (group for group in groups if group[0].delays == merge.delays)
        room = (group for group in alike if all(each.partition != merge.partition for each in group))
        if (group := next(room, None)) is None:
            groups.append([merge])
        else:
            group.append(merge)
    return groups


def _affordable(job: Job, snapshot: Snapshot, choice: MergeChoice) -> tuple[MergeChoice, Int64Array]:
    """Return the merges that one run may make, and the files that are clustered for the first time."""
    first = _joined([merge for merge in choice.chosen if merge.reason == "first"])
    most = job.scope.most_bytes
    if most is None:
        return choice, first
    if len(first):
        first = that_fit(snapshot, first, job.layout, most)
    left = most - int(snapshot.files.sizes[first].sum())
    chosen, rest = [], list(choice.left)
    for merge in choice.chosen:
        if merge.reason == "first" or merge.bytes <= left:
            chosen.append(merge)
            left -= merge.bytes if merge.reason != "first" else 0
        else:
            rest.append(replace(merge, why_not=f"a run may rewrite {format_size(most)} at most"))
    if choice.chosen and not chosen:
        smallest = min(merge.bytes for merge in choice.chosen)
        raise ZonalError(
            f"A run of at most {format_size(most)} can't make any merge: the smallest has {format_size(smallest)}. "
            f"Raise {option('max_bytes')}."
        )
    return MergeChoice(tuple(chosen), tuple(rest)), first
