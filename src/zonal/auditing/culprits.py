"""Which commits spoiled a table: much is read of their files, which are wider than before where queries filter.

Excess tells little of it: larger files nearly always hold a match, so a compaction that mixes them makes it smaller.
"""

import math
from collections.abc import Mapping, Sequence

from zonal.auditing.audit import CommitAudit

_MUCH, _WIDER, _WIDER_IN_ALL = 0.1, 2.0, 1.25
"""From which part of what is read, times in one column, and times in the mean over columns a commit can be blamed."""
_MOST = 3


def culprits_of(
    commits: Sequence[CommitAudit], appends: CommitAudit | None, weights: Mapping[str, float]
) -> tuple[CommitAudit, ...]:
    """Return those that did harm, the worst first, and not more than three.

    `weights` are the queries' by the columns that they filter. Of several appends each may be small, so `appends` are
    judged together, and none of them alone.
    """
    single = [each for each in commits if appends is None or each.kind != "append"]
    judged = [(harm_of(each, weights), each) for each in [*single, *([appends] if appends else [])]]
    worst = sorted((pair for pair in judged if pair[0] > 0), key=lambda pair: -pair[0])
    return tuple(each for _, each in worst[:_MOST])


def harm_of(commit: CommitAudit, weights: Mapping[str, float]) -> float:
    """Return how much a commit costs: its part of what is read, by files or bytes, times how much wider its files are.

    That is a logarithm, in the mean over what queries filter: a commit that widened one column and narrowed another,
    which queries filter as much, did no harm. 0 where little is read of its files, or they are hardly wider.
    """
    read = max(commit.read_share, commit.read_files_share)
    known = [(weights.get(each.column, 0.0), each.times) for each in commit.widths]
    wider = [(weight, times) for weight, times in known if weight > 0 and times is not None]
    if read < _MUCH or max((times for _, times in wider), default=0.0) < _WIDER:
        return 0.0
    mean = sum(weight * math.log(max(times, 1e-6)) for weight, times in wider) / sum(weight for weight, _ in wider)
    return read * mean if mean >= math.log(_WIDER_IN_ALL) else 0.0
