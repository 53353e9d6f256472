"""The queries of each table, of a few realistic kinds, half of them for training and half held out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.conditions import Draw, Sorted, among, between, equal, halves, in_order, top
from benchmarks.rewriters.inputs import Input
from benchmarks.rewriters.judge import Query

QUERIES = 300
"""Of both halves together."""
SEED = 17


@dataclass(frozen=True)
class Workload:
    """Queries to learn from, and queries to measure with."""

    training: tuple[Query, ...]
    held_out: tuple[Query, ...]

    def timed(self, count: int) -> list[Query]:
        """Return so many held-out queries, the first ones of each kind in turn."""
        places: dict[str, int] = {}
        turns = []
        for query in self.held_out:
            places[query.kind] = places.get(query.kind, 0) + 1
            turns.append(places[query.kind])
        order = sorted(range(len(turns)), key=lambda at: turns[at])
        return [self.held_out[at] for at in order[:count]]


@dataclass(frozen=True)
class Values:
    """A table's values, from which literals are drawn."""

    data: pa.Table
    rng: Draw
    _ordered: Sorted = field(default_factory=dict)
    """Columns that were sorted already."""

    def range(self, name: str, least: float, most: float, *, recent: bool = False) -> str:
        """Make a range with a share of the rows."""
        return between(name, self._in_order(name), self.rng, least, most, recent=recent)

    def top(self, name: str, least: float, most: float) -> str:
        """Make a range of the largest values."""
        return top(name, self._in_order(name), self.rng, least, most)

    def _in_order(self, name: str) -> Sorted:
        if name not in self._ordered:
            self._ordered.update(in_order(self.data, [name]))
        return self._ordered

    def one(self, name: str) -> str:
        """Make a look-up."""
        return equal(name, self.data, self.rng)

    def some(self, name: str, most: int) -> str:
        """Make a list of two values or more."""
        return among(name, self.data, self.rng, int(self.rng.integers(2, most + 1)))


Kind = tuple[float, Callable[[Values], list[str]]]
"""How often a kind of query is asked, and its conditions, all of which must hold."""

LINEITEM: Mapping[str, Kind] = {
    "a part": (0.20, lambda v: [v.one("l_partkey")]),
    "days": (0.25, lambda v: [v.range("l_shipdate", 0.002, 0.02)]),
    "days and parts": (0.25, lambda v: [v.range("l_shipdate", 0.01, 0.1), v.range("l_partkey", 0.01, 0.05)]),
    "a list of parts": (0.10, lambda v: [v.some("l_partkey", 6)]),
    "an order": (0.10, lambda v: [v.one("l_orderkey")]),
    "a supplier's days": (0.10, lambda v: [v.one("l_suppkey"), v.range("l_shipdate", 0.02, 0.1)]),
}
WIDE: Mapping[str, Kind] = {
    "an account": (0.25, lambda v: [v.one("account_id")]),
    "recent times": (0.25, lambda v: [v.range("created_at", 0.003, 0.03, recent=True)]),
    "accounts and times": (0.25, lambda v: [v.range("account_id", 0.01, 0.1), v.range("created_at", 0.01, 0.1)]),
    "a list of accounts": (0.15, lambda v: [v.some("account_id", 6)]),
    "a code": (0.10, lambda v: [v.one("code_2")]),
}
FLIGHTS: Mapping[str, Kind] = {
    "a destination's days": (0.25, lambda v: [v.one("dest"), v.range("time", 0.01, 0.05, recent=True)]),
    "a carrier's days": (0.20, lambda v: [v.one("carrier"), v.range("time", 0.01, 0.05, recent=True)]),
    "days": (0.15, lambda v: [v.range("time", 0.002, 0.01, recent=True)]),
    "a list of destinations": (0.10, lambda v: [v.some("dest", 4), v.range("time", 0.05, 0.2)]),
    "a route of a carrier": (0.10, lambda v: [v.one("dest"), v.one("carrier")]),
    "long delays": (0.10, lambda v: [v.top("dep_delay", 0.002, 0.02)]),
    "a plane": (0.10, lambda v: [v.one("tailnum")]),
}
STORE_SALES: Mapping[str, Kind] = {
    "days": (0.25, lambda v: [v.range("ss_sold_date_sk", 0.003, 0.03)]),
    "an item": (0.20, lambda v: [v.one("ss_item_sk")]),
    "a store's days": (0.20, lambda v: [v.one("ss_store_sk"), v.range("ss_sold_date_sk", 0.01, 0.05)]),
    "items and days": (0.15, lambda v: [v.range("ss_item_sk", 0.01, 0.1), v.range("ss_sold_date_sk", 0.02, 0.1)]),
    "a list of items": (0.10, lambda v: [v.some("ss_item_sk", 6)]),
    "a customer": (0.10, lambda v: [v.one("ss_customer_sk")]),
}
CHANGES: Mapping[str, Kind] = {
    "an entity": (0.25, lambda v: [v.one("entity_id")]),
    "a change": (0.15, lambda v: [v.one("change_id")]),
    "recent times": (0.20, lambda v: [v.range("event_time", 0.001, 0.02, recent=True)]),
    "an entity's times": (0.15, lambda v: [v.one("entity_id"), v.range("event_time", 0.05, 0.3, recent=True)]),
    "a list of entities": (0.15, lambda v: [v.some("entity_id", 8)]),
    "a list of changes": (0.10, lambda v: [v.some("change_id", 5)]),
}
KINDS = {"lineitem": LINEITEM, "wide": WIDE, "flights": FLIGHTS, "store_sales": STORE_SALES, "changes": CHANGES}


def make_workload(input_: Input, count: int = QUERIES) -> Workload:
    """Make the queries, the same ones for the same rows; every kind is in both halves."""
    kinds, rng = KINDS[input_.name], np.random.default_rng(SEED)
    values = Values(pq.read_table(input_.files), rng)
    training: list[Query] = []
    held_out: list[Query] = []
    for kind, (often, conditions) in kinds.items():
        half = max(2, round(count * often))
        queries = [Query(kind, " AND ".join(conditions(values))) for _ in range(half)]
        for target, some in zip((training, held_out), halves(queries, rng), strict=True):
            target += some
    shuffled = (tuple(half[at] for at in rng.permutation(len(half))) for half in (training, held_out))
    return Workload(*shuffled)
