"""Which commits spoiled a table: much is read of their files, which are wider than before where queries filter.

Excess tells little of it: larger files nearly always hold a match, so a compaction that mixes them makes it smaller.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from zonal.auditing.audit import CommitAudit
from zonal.values.arrays import Float64Array

_MUCH, _WIDER, _WIDER_IN_ALL = 0.1, 2.0, 1.25
"""From which part of what is read, times in one column, and times in the mean over columns a commit can be blamed."""
_MOST = 3


def culprits_of(suspects: Sequence[CommitAudit], weights: Mapping[str, float]) -> tuple[CommitAudit, ...]:
    """Return those that did harm, the worst first, and not more than three.

    `weights` are the queries' by the columns that they filter. A suspect may be several commits together; of those that
    have a commit in common, the worst one counts.
    """
    judged = sorted(((harm_of(each, weights), each) for each in suspects), key=lambda pair: -pair[0])
    found: list[CommitAudit] = []
    blamed: set[int] = set()
    for harm, each in judged:
        if harm > 0 and len(found) < _MOST and blamed.isdisjoint(each.ids):
            found.append(each)
            blamed.update(each.ids)
    return tuple(found)


def harm_of(commit: CommitAudit, weights: Mapping[str, float]) -> float:
    """Return how much one suspect costs; see `harms`."""
    read = np.array([max(commit.read_share, commit.read_files_share)])
    times = {each.column: np.array([np.nan if each.times is None else each.times]) for each in commit.widths}
    return float(harms(read, times, weights)[0])


def harms(read: Float64Array, times: Mapping[str, Float64Array], weights: Mapping[str, float]) -> Float64Array:
    """Return how much suspects cost: their part of what is read, by files or bytes, times how much wider they are.

    `times` are numbers by column: how many times as wide, NaN where that isn't known. Their logarithm counts, in the
    mean over what queries filter: who widened one column and narrowed another, which queries filter as much, did no
    harm. 0 where little is read, or files are hardly wider.
    """
    known = [(weights[name], each) for name, each in times.items() if weights.get(name, 0.0) > 0]
    if not known:
        return np.zeros(len(read))
    weight = np.array([[part] for part, _ in known])
    widened = np.array([each for _, each in known], np.float64)
    told = np.where(np.isnan(widened), 0.0, weight)
    whole = told.sum(axis=0)
    logs = np.log(np.maximum(np.nan_to_num(widened, nan=1.0), 1e-6))
    mean = np.divide((told * logs).sum(axis=0), whole, out=np.zeros(len(read)), where=whole > 0)
    widest = np.nan_to_num(widened, nan=0.0).max(axis=0)
    guilty = (read >= _MUCH) & (widest >= _WIDER) & (mean >= np.log(_WIDER_IN_ALL))
    return np.where(guilty, read * mean, 0.0)
