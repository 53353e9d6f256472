"""Tell whether an alert is due: compare an audit's ratio with its limit, and with the best of past audits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zonal.arguments import check_arguments
from zonal.auditing.audit import Alert
from zonal.auditing.savings import Saving
from zonal.errors import ZonalError, in_python, option

_LEAST = 0.01
"""Least difference to the best ratio that counts: small ratios differ by chance, and cost little."""
_TINY = 1e-12


@dataclass(frozen=True)
class Alerts:
    """When an alert is due; None switches it off.

    Arguments:
        ratio: alert above this ratio of files read to files in the matching partitions.
        worse: alert above the best ratio of the last audits by more than this share of it: 0.5 is half as much again.
        window: how many of the last audits to compare with.

    Example:
        >>> strict = zonal.Alerts(ratio=0.1, worse=None)
        >>> [alert.kind for alert in zonal.audit("events", queries=["queries.sql"], alerts=strict).judgment.alerts]
        []
    """

    ratio: float | None = 0.3
    worse: float | None = 0.5
    window: int = 10

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))

    def check(self) -> None:
        """Refuse limits that could never be crossed, or that mean nothing."""
        off = in_python(", or none")
        if self.ratio is not None and not 0 <= self.ratio <= 1:
            raise ZonalError(f"{option('alert_ratio', self.ratio)} is no limit: give a number from 0 to 1{off}.")
        if self.worse is not None and not 0 <= self.worse < math.inf:
            raise ZonalError(f"{option('alert_worse', self.worse)} is no limit: give a number from 0 on{off}.")
        if self.window < 1:
            raise ZonalError(f"{option('alert_window', self.window)} leaves no audit to compare with: give 1 or more.")


@dataclass(frozen=True)
class Drift:
    """Whether an alert is due."""

    alerts: tuple[Alert, ...]
    tolerated: Alert | None
    """The limit of the ratio, crossed where clustering would save too little for an alert."""
    saving: Saving


def drift_of(ratio: float | None, past: Sequence[float | None], limits: Alerts, saving: Saving) -> Drift:
    """Return the limits that a ratio crosses; `past` are the ratios of audits before it, oldest first.

    Audits without a ratio are ignored. A ratio above its limit is an alert only where something can be saved, or that
    isn't known; one that has become worse always is. A higher ratio never has fewer alerts.
    """
    limits.check()
    known = [each for each in past if each is not None]
    for each in (*known, *([] if ratio is None else [ratio])):
        if not 0 <= each < math.inf:
            raise ZonalError(f"{each} is not a ratio of files: it is a number from 0 on.")
    if ratio is None:
        return Drift((), None, saving)
    above, worse = _above(ratio, limits), _worse(ratio, known[-limits.window :], limits)
    alerts = (above if saving.is_worth_it else None, worse)
    tolerated = None if saving.is_worth_it else above
    return Drift(tuple(alert for alert in alerts if alert is not None), tolerated, saving)


def _above(ratio: float, limits: Alerts) -> Alert | None:
    if limits.ratio is None or ratio <= limits.ratio:
        return None
    text = f"{_reads(ratio)}: more than the limit of {_percent(limits.ratio)}."
    return Alert("ratio", ratio, limits.ratio, text)


def _worse(ratio: float, past: Sequence[float], limits: Alerts) -> Alert | None:
    if limits.worse is None or not past:
        return None
    best = min(past)
    limit = best * (1 + limits.worse)
    if ratio <= limit or ratio - best < _LEAST - _TINY:
        return None
    times = f"{ratio / best:.3g} times as much" if best > 0 else "and not nothing"
    audits = "the last audit" if len(past) == 1 else f"the best of the last {len(past)} audits"
    text = f"{_reads(ratio)}: {times} as in {audits} ({_percent(best)})."
    return Alert("worse", ratio, limit, text)


def _reads(ratio: float) -> str:
    return f"Queries read {_percent(ratio)} of the files in partitions that might match"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
