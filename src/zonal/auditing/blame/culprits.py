"""Which commits spoiled a table: much is read of their files, which are wider than before where queries filter.

Excess tells little of it: larger files nearly always hold a match, so a compaction that mixes them makes it smaller.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from zonal.auditing.audit import CommitAudit, Width
from zonal.auditing.blame.authors import ZONAL
from zonal.values.arrays import Float64Array

_MUCH, _WIDER, _MORE = 0.1, 2.0, 1.1
"""From which part of what is read, times in one column, and times as much to read a commit can be blamed."""
_MOST = 3

Pair = tuple[Float64Array, Float64Array]
"""Widths of suspects' files, and of those that they are held against; NaN where they aren't known."""


def culprits_of(suspects: Sequence[CommitAudit], weights: Mapping[str, float]) -> tuple[CommitAudit, ...]:
    """Return those that did harm, the worst first, and not more than three.

    `weights` are the queries' by the columns that they filter. A suspect may be several commits together; of those that
    have a commit in common, the worst one counts. A clustering by zonal is blamed only where nobody after it is: the
    layout that it made is what the others are held against.
    """
    judged = sorted(((harm_of(each, weights), each) for each in suspects), key=lambda pair: -pair[0])
    guilty = [each for harm, each in judged if harm > 0]
    found: list[CommitAudit] = []
    blamed: set[int] = set()
    for each in guilty:
        if len(found) < _MOST and blamed.isdisjoint(each.ids) and not _is_followed(each, guilty):
            found.append(each)
            blamed.update(each.ids)
    return tuple(found)


def _is_followed(commit: CommitAudit, guilty: Sequence[CommitAudit]) -> bool:
    """Tell whether somebody else did harm after a clustering by zonal."""
    if commit.kind != ZONAL or commit.time is None:
        return False
    return any(each.kind != ZONAL and each.time is not None and each.time >= commit.time for each in guilty)


def harm_of(commit: CommitAudit, weights: Mapping[str, float]) -> float:
    """Return how much one suspect costs; see `harms`."""
    read = np.array([max(commit.read_share, commit.read_files_share)])
    return float(harms(read, _pairs(commit.widths), weights)[0])


def is_harmful(widths: Sequence[Width], weights: Mapping[str, float]) -> bool:
    """Tell whether files became so much wider that queries read more of them."""
    return bool(harms(np.ones(1), _pairs(widths), weights)[0] > 0)


def _pairs(widths: Sequence[Width]) -> dict[str, Pair]:
    return {
        each.column: (np.array([each.width]), np.array([np.nan if each.before is None else each.before]))
        for each in widths
    }


def last_harmful(harm: Float64Array) -> int | None:
    """Return where those begin that do most harm together with all behind them, the fewest of equal ones."""
    first = len(harm) - 1 - int(np.argmax(harm[::-1]))
    return first if harm[first] > 0 else None


def harms(read: Float64Array, widths: Mapping[str, Pair], weights: Mapping[str, float]) -> Float64Array:
    """Return how much suspects cost: their part of what is read, by files or bytes, times how much more that became.

    A look-up meets a file as often as the file is wide, so the mean width over what queries filter tells what is read:
    who halves a column that was wide, and doubles one that was narrow, did no harm. The logarithm counts; it is 0
    where little is read, where no column is much wider, or where hardly more is read in all.
    """
    known = [(weights[name], mine, others) for name, (mine, others) in widths.items() if weights.get(name, 0.0) > 0]
    if not known:
        return np.zeros(len(read))
    weight = np.array([[part] for part, _, _ in known])
    mine, others = np.array([each for _, each, _ in known]), np.array([each for _, _, each in known])
    told = ~np.isnan(mine) & ~np.isnan(others) & (others > 0)
    now, before = ((weight * np.where(told, each, 0.0)).sum(axis=0) for each in (mine, others))
    more = np.divide(now, before, out=np.ones(len(read)), where=before > 0)
    widest = np.divide(mine, others, out=np.zeros(mine.shape), where=told).max(axis=0)
    guilty = (read >= _MUCH) & (widest >= _WIDER) & (more >= _MORE)
    return np.where(guilty, read * np.log(np.maximum(more, 1.0)), 0.0)
