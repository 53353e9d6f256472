"""The course of a growing table under a policy: what upkeep rewrote, and what queries read on the way."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.growth.policies import Place, Policy
from benchmarks.growth.stream import Stream, arrivals
from benchmarks.growth.tables import DeltaTable, GrowingTable
from zonal.predicates.bind import bind
from zonal.predicates.expressions import Predicate
from zonal.skipping.counts import QueryCounter

LOOKS = 20
FULL_PARTS = 40
"""Parts of the table to which one more is appended."""


@dataclass(frozen=True)
class Plan:
    """What arrives, and when upkeep runs."""

    stream: Stream
    appends: int
    every: int
    """Appends from one run of upkeep to the next."""

    def is_due(self, append: int) -> bool:
        """Whether upkeep runs after this append, the first being 1."""
        return append % self.every == 0

    def is_looked_at(self, append: int) -> bool:
        """Whether queries are asked after this append and its upkeep."""
        return append % (self.appends // LOOKS) == 0


@dataclass(frozen=True)
class Look:
    """A table after some appends."""

    appends: int
    share: float
    """Mean over the queries of the bytes in files that bounds can't exclude, as a share of all bytes."""
    files: int


@dataclass(frozen=True)
class Course:
    """How a table fared under a policy."""

    policy: str
    late: float
    appended: int
    rewritten: int
    looks: tuple[Look, ...]

    @property
    def cost(self) -> float:
        """Return the bytes rewritten per byte appended."""
        return self.rewritten / self.appended

    def over(self, fresh: "Course") -> list[float]:
        """Return the share read as a multiple of that in a fresh clustering, at each look."""
        return [own.share / other.share for own, other in zip(self.looks, fresh.looks, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Course":
        """Read what `to_dict` wrote."""
        return cls(**{**record, "looks": tuple(Look(**look) for look in record["looks"])})


def course(policy: Policy, place: Place, plan: Plan, late: float) -> Course:
    """Load half of the rows and cluster them, neither of which counts; then append the rest, with upkeep."""
    table = policy.table(place, f"late{late:.0%}".rstrip("%"))
    first, *parts = arrivals(plan.stream.rows, plan.appends, late, plan.stream.seed)
    table.append(plan.stream.part(first))
    policy.first(table, place)
    before, arrived, looks = table.written(), len(first), []
    for number, part in enumerate(parts, 1):
        table.append(plan.stream.part(part))
        arrived += len(part)
        if plan.is_due(number):
            policy.keep(table, place)
        if plan.is_looked_at(number):
            looks.append(look(table, number, arrived, plan.stream.asked(int(part.max()))))
    written = table.written() - before
    _drop(table)
    return Course(policy.name, late, written.appended, written.rewritten, tuple(looks))


def one_more(policy: Policy, place: Place, stream: Stream) -> Course:
    """Cluster forty parts at once, then append one more and run upkeep."""
    table = policy.table(place, "onemore")
    *parts, last = np.array_split(np.arange(stream.rows), FULL_PARTS + 1)
    for part in parts:
        table.append(stream.part(part))
    policy.first(table, place)
    before = table.written()
    table.append(stream.part(last))
    policy.keep(table, place)
    seen = look(table, 1, stream.rows, stream.asked(stream.rows - 1))
    written = table.written() - before
    _drop(table)
    return Course(policy.name, 0.0, written.appended, written.rewritten, (seen,))


def look(table: GrowingTable, appends: int, arrived: int, queries: Sequence[Predicate]) -> Look:
    """Ask all queries of the newest version, which must have all rows that arrived."""
    snapshot = table.opened().snapshot()
    files = snapshot.files
    if int(files.rows.sum()) != arrived:
        raise RuntimeError(f"{table.location} has {files.rows.sum():,} rows of {arrived:,}.")
    bound = [bind(query, snapshot.schema) for query in queries]
    counter = QueryCounter(snapshot, bound)
    read = [counter.ask(query).bytes for query in bound]
    return Look(appends, float(np.mean(read)) / int(files.sizes.sum()), len(files))


def _drop(table: GrowingTable) -> None:
    """Free the disk of a table that won't be looked at again."""
    if isinstance(table, DeltaTable):
        shutil.rmtree(table.folder)
