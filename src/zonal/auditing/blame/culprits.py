"""Choose the commits that spoiled a table: much is read of their files, which are wider in filtered columns.

Excess tells little of that: larger files nearly always hold a match, so a compaction that mixes rows lowers it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from zonal.auditing.audit import CommitAudit, Width
from zonal.auditing.blame.authors import ZONAL
from zonal.auditing.blame.widths import WIDER
from zonal.values.arrays import Float64Array

_MUCH, _MORE = 0.1, 1.1
"""A commit can be blamed from this share of the reads, and this factor of reads in all."""
_MOST = 3

Pair = tuple[Float64Array, Float64Array]
"""Widths of suspects' files, and of those that they are compared with; NaN where unknown."""


def culprits_of(suspects: Sequence[CommitAudit], weights: Mapping[str, float]) -> tuple[CommitAudit, ...]:
    """Return the suspects that did harm, the worst first, and at most three.

    `weights` are those of the queries per filtered column. A suspect may be several commits together; of suspects
    with a commit in common, the worst counts. A clustering by zonal is blamed only where no later commit is: its
    layout is what the others are compared with.
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
    """Tell whether another engine did harm after a clustering by zonal."""
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
    """Return the last position from which all later commits together do the most harm; None where they do none."""
    first = len(harm) - 1 - int(np.argmax(harm[::-1]))
    return first if harm[first] > 0 else None


def harms(read: Float64Array, widths: Mapping[str, Pair], weights: Mapping[str, float]) -> Float64Array:
    """Return the harm of each suspect: its share of what is read, times the logarithm of the growth of that.

    A look-up meets a file in proportion to its width, so the mean width over the filtered columns tells what is read:
    halving a wide column and doubling a narrow one does no harm. The harm is 0 where little is read, where no column
    is much wider, or where hardly more is read in all.
    """
    known = [(weights[name], mine, others) for name, (mine, others) in widths.items() if weights.get(name, 0.0) > 0]
    if not known:
        return np.zeros(len(read))
    weight = np.array([[part] for part, _, _ in known])
    mine, others = np.array([each for _, each, _ in known]), np.array([each for _, _, each in known])
    comparable = ~np.isnan(mine) & ~np.isnan(others) & (others > 0)
    now, before = ((weight * np.where(comparable, each, 0.0)).sum(axis=0) for each in (mine, others))
    more = np.divide(now, before, out=np.ones(len(read)), where=before > 0)
    widest = np.divide(mine, others, out=np.zeros(mine.shape), where=comparable).max(axis=0)
    guilty = (read >= _MUCH) & (widest >= WIDER) & (more >= _MORE)
    return np.where(guilty, read * np.log(np.maximum(more, 1.0)), 0.0)
