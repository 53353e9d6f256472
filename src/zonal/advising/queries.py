"""Choose the queries that advice is based on, bind them to the table, and split them into training and held-out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from zonal.errors import PredicateError
from zonal.predicates.bind import bind
from zonal.predicates.bound import Anything, Bound, Nulls, Ranges, leaves_of
from zonal.predicates.wording import describe
from zonal.skipping.index import columns_of
from zonal.trials.parameters import draw_parameters, has_parameters
from zonal.values.arrays import Float64Array, Int64Array
from zonal.workload.query import Query, Workload

MOST_QUERIES = 1000
"""Distinct queries that are matched against all files: the heaviest, and others that stand for the rest."""
HEAVY = 0.02
"""From this share of the weight on, a query that ran repeatedly is expected to run again."""
LEAST_QUERIES = 8
"""With fewer queries, candidates are chosen and measured on the same ones."""


@dataclass(frozen=True, eq=False)
class BoundQueries:
    """Queries bound to the table's schema, with their weights."""

    queries: tuple[Query, ...]
    bounds: tuple[Bound, ...]
    weights: Float64Array
    """Their sum is 1."""
    runs: Float64Array
    """Scans of the table that each stands for."""

    def __len__(self) -> int:
        return len(self.queries)

    def some(self, numbers: Int64Array, parts: Float64Array | float = 1.0) -> "BoundQueries":
        """Return some of the queries, with a part of their runs each; the weights' sum is 1 again."""
        weights = self.weights[numbers] * parts
        return BoundQueries(
            tuple(self.queries[number] for number in numbers),
            tuple(self.bounds[number] for number in numbers),
            weights / max(float(weights.sum()), 1e-300),
            self.runs[numbers] * parts,
        )

    def heaviest(self, count: int) -> "BoundQueries":
        """Return the queries of the most weight."""
        if len(self) <= count:
            return self
        return self.some(np.sort(np.argsort(-self.weights, kind="stable")[:count]))


@dataclass(frozen=True)
class Fit:
    """How many queries could be bound to the table, and why others couldn't."""

    unknown: tuple[str, ...] = ()
    """Why queries couldn't be bound: columns that the table doesn't have."""
    unbound: int = 0
    drawn: int = 0
    """Queries with parameters, whose values were drawn from the table's rows."""
    left_out: int = 0
    """Light queries that others stand for, as there were too many."""


def chosen_queries(workload: Workload, seed: int, most: int = MOST_QUERIES) -> tuple[Workload, Float64Array, int]:
    """Limit the number of queries; return those kept, the scans that each stands for, and how many are left out.

    Light queries are drawn with probability proportional to weight, and share the weight of all light queries.
    """
    queries = workload.queries
    runs = np.array([query.count for query in queries], np.float64)
    if len(queries) <= most:
        return workload, runs, 0
    weights = np.array([query.weight for query in queries])
    order = np.argsort(-weights, kind="stable")
    heavy, light = order[: most // 2], order[most // 2 :]
    chance = weights[light] / weights[light].sum()
    drawn = np.random.default_rng(seed).choice(light, most - len(heavy), replace=False, p=chance)
    weight, count = weights[light].sum() / len(drawn), runs[light].sum() / len(drawn)
    kept = [queries[number] for number in heavy] + [replace(queries[number], weight=weight) for number in drawn]
    stands = np.concatenate([runs[heavy], np.full(len(drawn), count)])
    return replace(workload, queries=tuple(kept)), stands, len(queries) - len(kept)


def bind_queries(
    workload: Workload, runs: Float64Array, schema: pa.Schema, *, data: pa.Table | None, timezone: str, seed: int
) -> tuple[BoundQueries, Fit]:
    """Bind the queries to the table's schema; parameters get values of `data`, where it is given.

    A query with columns that the table doesn't have is left out and counted: tables change, and logs are old.
    """
    kept: list[tuple[int, Bound]] = []
    problems: list[str] = []
    drawn = 0
    for number, query in enumerate(workload.queries):
        predicate = query.predicate
        if data is not None and has_parameters(predicate):
            predicate = draw_parameters(predicate, data, seed + number)
            drawn += 1
        try:
            bound = bind(predicate, schema, dialect=workload.summary.dialect or None, timezone=timezone)
        except PredicateError as error:
            problems.append(str(error))
            continue
        kept.append((number, bound))
    numbers = [number for number, _ in kept]
    weights = np.array([workload.queries[number].weight for number in numbers], np.float64)
    bound_queries = BoundQueries(
        tuple(workload.queries[number] for number in numbers),
        tuple(bound for _, bound in kept),
        weights / max(float(weights.sum()), 1e-300),
        runs[numbers] if numbers else np.zeros(0),
    )
    return bound_queries, Fit(tuple(dict.fromkeys(problems))[:5], len(problems), drawn)


def halves(queries: BoundQueries, seed: int) -> tuple[Int64Array, Int64Array]:
    """Split the queries into training and held-out queries, stratified by kind.

    Queries that differ only in their values are of one kind. Those without a filter, from which nothing can be learned,
    are in both halves, and so are heavy ones that run repeatedly: half of their runs are in each. Fewer than
    `LEAST_QUERIES` are not split: both halves are all of them.
    """
    count = len(queries)
    if count < LEAST_QUERIES:
        return np.arange(count), np.arange(count)
    rng = np.random.default_rng(seed)
    in_both = np.array([not filters_of(bound) for bound in queries.bounds])
    in_both |= (queries.weights >= HEAVY) & (queries.runs >= 2)
    kinds: dict[str, int] = {}
    number = [kinds.setdefault(describe(query.predicate, hide=True), len(kinds)) for query in queries.queries]
    order = np.lexsort((rng.random(count), np.array(number)))
    single, both = order[~in_both[order]], order[in_both[order]]
    return np.sort(np.append(single[::2], both)), np.sort(np.append(single[1::2], both))


def filters_of(bound: Bound) -> list[Ranges | Nulls]:
    """Return the comparisons that bounds can decide, without IS NOT NULL, which excludes next to nothing."""
    return [
        leaf for leaf in leaves_of(bound) if isinstance(leaf, Ranges) or (isinstance(leaf, Nulls) and not leaf.negated)
    ]


def is_equality(leaf: Ranges | Nulls) -> bool:
    """Tell whether a comparison selects single values (=, IN)."""
    return isinstance(leaf, Ranges) and bool(leaf.intervals) and all(part.low == part.high for part in leaf.intervals)


def filter_weights(queries: BoundQueries) -> tuple[dict[str, float], dict[str, float]]:
    """Return, for each filtered column, the weight of the queries that filter it, and that filter it by equality."""
    filtered: dict[str, float] = {}
    equal: dict[str, float] = {}
    for bound, weight in zip(queries.bounds, queries.weights.tolist(), strict=True):
        leaves = filters_of(bound)
        for name in {leaf.column for leaf in leaves}:
            filtered[name] = filtered.get(name, 0.0) + weight
        for name in {leaf.column for leaf in leaves if is_equality(leaf)}:
            equal[name] = equal.get(name, 0.0) + weight
    ordered = sorted(filtered, key=lambda name: (-filtered[name], name))
    return {name: filtered[name] for name in ordered}, equal


def named_columns(bounds: Sequence[Bound]) -> list[str]:
    """Return all columns that queries filter, those that are only compared with a parameter included."""
    return list(dict.fromkeys(name for bound in bounds for name in columns_of(bound)))


def opaque_filters(queries: BoundQueries) -> dict[str, float]:
    """Return why filters can't be decided by bounds, each with the weight of its queries, heaviest first."""
    reasons: dict[str, float] = {}
    for bound, weight in zip(queries.bounds, queries.weights.tolist(), strict=True):
        for reason in {leaf.reason for leaf in leaves_of(bound) if isinstance(leaf, Anything)}:
            reasons[reason] = reasons.get(reason, 0.0) + weight
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
