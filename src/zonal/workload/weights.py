"""Weights of queries: by runs, bytes and age, with a cap for the heaviest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from zonal.errors import in_python, option
from zonal.workload.query import LogError, Query

if TYPE_CHECKING:
    from zonal.sql.ask import TableRead

_DAY = 86_400.0
_LEAST = 1e-12
"""The least weight, as a share of the heaviest: queries older than 40 half-lives still count."""


@dataclass
class RunTotals:
    """The totals of one query's runs."""

    scan: "TableRead"
    source: str
    count: int = 0
    bytes: int = 0
    runs_with_bytes: int = 0
    last: datetime | None = None
    faded: float = 0.0
    """The number of runs, each halved for every half-life between it and the last one."""

    def add(self, *, count: int, size: int | None, time: datetime | None, half_life_days: float | None) -> None:
        """Add runs of the query at a time; `size` is the bytes that each of them read."""
        self.count += count
        if size is not None:
            self.bytes += size * count
            self.runs_with_bytes += count
        if time is None:
            self.faded += count
        elif self.last is None or time >= self.last:
            self.faded = self.faded * (fade(self.last, time, half_life_days) if self.last else 1.0) + count
            self.last = time
        else:
            self.faded += count * fade(time, self.last, half_life_days)


@dataclass(frozen=True)
class Weighting:
    """How much a query counts."""

    half_life_days: float | None = None
    """Days after which a query counts half."""
    cap: float | None = 0.2
    """The most that one query may weigh of all."""

    def check(self) -> None:
        """Raise an error for numbers out of range."""
        days, cap = self.half_life_days, self.cap
        if days is not None and not days > 0:
            raise LogError(
                f"{option('half_life_days', days)} is no half-life. Give days above 0{in_python(', or None')}."
            )
        if cap is not None and not 0 < cap <= 1:
            raise LogError(
                f"{option('cap', cap)} is no share: give a number above 0 and up to 1{in_python(', or None')}."
            )


def fade(then: datetime, now: datetime, half_life_days: float | None) -> float:
    """Return the factor by which a weight has decayed between two times."""
    if half_life_days is None:
        return 1.0
    return math.pow(2.0, -min((now - then).total_seconds() / _DAY / half_life_days, 1000.0))


def weigh(tallies: Sequence[RunTotals], weighting: Weighting) -> tuple[Query, ...]:
    """Return the queries with their weights, heaviest first.

    A weight is runs times bytes (the mean of all queries where the log has no bytes), halved for every half-life before
    the log's last run; none is above the cap's share of the sum, so that one dashboard doesn't decide alone.
    """
    newest = max((tally.last for tally in tallies if tally.last), default=None)
    runs = sum(tally.runs_with_bytes for tally in tallies)
    usual = sum(tally.bytes for tally in tallies) / runs if runs else 1.0
    weights = []
    for tally in tallies:
        size = tally.bytes / tally.runs_with_bytes if tally.runs_with_bytes else usual
        age = fade(tally.last, newest, weighting.half_life_days) if tally.last and newest else 1.0
        weights.append(max(size, 1.0) * tally.faded * age)
    least = max(weights, default=1.0) * _LEAST
    capped = limited([max(weight, least) for weight in weights], weighting.cap)
    queries = [_query(tally, weight) for tally, weight in zip(tallies, capped, strict=True)]
    return tuple(sorted(queries, key=lambda query: -query.weight))


def _query(tally: RunTotals, weight: float) -> Query:
    size = round(tally.bytes / tally.runs_with_bytes) if tally.runs_with_bytes else None
    scan = tally.scan
    return Query(scan.predicate, weight, tally.count, size, tally.last, tally.source, scan.joins)


def limited(weights: Sequence[float], cap: float | None) -> list[float]:
    """Lower the largest weights so that none is above `cap` of their sum; few weights become equal.

    >>> limited([90.0, 5.0, 5.0, 5.0, 5.0, 5.0], 0.2)
    [6.25, 5.0, 5.0, 5.0, 5.0, 5.0]
    """
    if cap is None or not weights:
        return list(weights)
    if cap * len(weights) <= 1:
        return [min(weights)] * len(weights)
    ascending = sorted(weights)
    rests = list(accumulate(ascending))[::-1]
    most = ascending[0]
    for number, (weight, rest) in enumerate(zip(reversed(ascending), rests, strict=True)):
        if number * cap >= 1:
            break
        # With the `number` heaviest at the limit t, t = cap * (number * t + rest).
        most = cap * rest / (1 - number * cap)
        if weight <= most:
            break
    return [min(weight, most) for weight in weights]
