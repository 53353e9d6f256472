"""The rows that a growing table receives part by part, and the queries that it is asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.predicates.expressions import And, Column, Compare, Predicate, Value

QUERIES = 300
DAY = 86_400
NAMES = ("ts", "payload", "kind")
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
WIDEST = 2**40
Numbers = npt.NDArray[np.int64]
Columns = dict[str, Numbers]


def telemetry(rows: int, seed: int) -> Columns:
    """Make events of thirty days with skewed payloads and kinds."""
    rng = np.random.default_rng(seed)
    skew = 1 / np.arange(1, 401) ** 1.1
    payload = rng.choice(400, rows, p=skew / skew.sum())
    kind = (rng.choice(12, rows, p=np.arange(12, 0, -1) / 78) * 5 + payload) % 12
    return {"ts": np.sort(rng.integers(0, 30 * DAY, rows)), "payload": payload, "kind": kind}


def questions(now: int, seed: int) -> tuple[Numbers, Numbers]:
    """Make queries of six kinds: a range of the time so far, a payload, both, a kind with either, and all."""
    rng = np.random.default_rng(seed)
    low, high = np.full((QUERIES, 3), -1), np.full((QUERIES, 3), WIDEST)
    for query in range(QUERIES):
        width = int(rng.choice([3600, 21_600, DAY, 3 * DAY]))
        start = int(rng.random() * max(now - width, 1))
        values = (start, start + width), (int(rng.integers(0, 400)),) * 2, (int(rng.integers(0, 12)),) * 2
        for column in ((0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2))[query % 6]:
            low[query, column], high[query, column] = values[column]
    return low, high


def arrivals(rows: int, appends: int, late: float, seed: int) -> Iterator[Numbers]:
    """Yield the rows of the first half, then those of each append; late rows come up to ten appends later."""
    rng = np.random.default_rng(seed)
    when = np.arange(rows) * 2 * appends // rows
    delayed = np.minimum(when + rng.integers(1, 11, rows), 2 * appends - 1)
    when = np.where(rng.random(rows) < late, delayed, when)
    yield np.flatnonzero(when < appends)
    for append in range(appends, 2 * appends):
        yield np.flatnonzero(when == append)


@dataclass(frozen=True)
class Stream:
    """The rows of a table in the order of time: the columns of the layout, and readings that don't compress."""

    rows: int
    seed: int = 3

    @cached_property
    def columns(self) -> Columns:
        """Return the layout's columns, times in seconds since the start."""
        return telemetry(self.rows, self.seed)

    @cached_property
    def table(self) -> pa.Table:
        """Return all rows with the types of a real table."""
        rng = np.random.default_rng(self.seed + 2)
        times = (self.columns["ts"] + int(START.timestamp())) * 1_000_000
        readings = {name: rng.random(self.rows) for name in ("temperature", "pressure")}
        keys = {name: self.columns[name] for name in NAMES[1:]}
        return pa.table({"ts": pa.array(times, pa.timestamp("us", tz="UTC")), **keys, **readings})

    def part(self, rows: Numbers) -> pa.Table:
        """Return the rows of a part."""
        return self.table.take(pa.array(rows))

    def asked(self, newest: int) -> list[Predicate]:
        """Return the queries of a table whose newest row has this number."""
        low, high = questions(int(self.columns["ts"][newest]), self.seed + 1)
        return [_predicate(*box) for box in zip(low.tolist(), high.tolist(), strict=True)]


def _predicate(low: list[int], high: list[int]) -> Predicate:
    parts: list[Predicate] = []
    for name, least, most in zip(NAMES, low, high, strict=True):
        if most < WIDEST:
            column = Column(name)
            parts += [Compare(column, ">=", _value(name, least)), Compare(column, "<=", _value(name, most))]
    return And(tuple(parts))


def _value(name: str, number: int) -> Value:
    return START + timedelta(seconds=number) if name == "ts" else number
