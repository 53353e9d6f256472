"""Compose the advice on a table: measure the candidates, decide, and add Bloom filters and cautions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zonal.advising.advice import Advice, AdvisedQueries, Basis, Candidate, Filtered, Prices, Reads
from zonal.advising.blooms import useful_blooms
from zonal.advising.candidates import CandidateAccount, all_candidates, ranked, reads_of
from zonal.advising.ground import Ground
from zonal.advising.missing_bounds import has_statistics
from zonal.advising.queries import filter_weights
from zonal.advising.rules import Evidence, cautions
from zonal.advising.verdict import decide, first_layout
from zonal.errors import option
from zonal.snapshot import Snapshot, TableVersion
from zonal.trials.boxes import NULL
from zonal.trials.prediction import Prediction
from zonal.trials.today import standing
from zonal.values.arrays import Float64Array
from zonal.workload.query import Summary, Workload

_TRANSFORM = re.compile(r"\w+\((?:\d+, ?)?(?P<column>[^()]+?)(?:, ?\d+)?\)")
"""The text of a partition field that is a function of a column: `day(ts)`, `bucket(16, id)`."""
_ALL_SEEN = 0.9
_NOTHING = Reads(1.0, 1.0, None, 1.0, 1.0)


@dataclass(frozen=True)
class Terms:
    """Prices, scans per day and facts about the logs, which the costs are computed with."""

    summary: Summary
    joins: tuple[str, ...]
    prices: Prices
    per_day: float
    assumptions: tuple[str, ...]
    hide: bool


def terms_of(workload: Workload, prices: Prices, per_day: float | None, *, hide: bool) -> Terms:
    """Return the terms of the costs; scans per day come from the log's times, unless they are given."""
    scans = sum(query.count for query in workload.queries)
    days = workload.summary.days
    assumptions: list[str] = []
    if per_day is not None:
        assumptions.append(f"The table is scanned {per_day:,.6g} times a day, as given.")
    elif days is not None and days >= 1:
        per_day = scans / days
        assumptions.append(
            f"The table is scanned {per_day:,.3g} times a day: {scans:,} scans in the log's {days:,.3g} days."
        )
    else:
        per_day = float(scans)
        why = "knows no times" if days is None else "spans less than a day"
        assumptions.append(
            f"The log is one day: it {why}, so that its {scans:,} scans count as a day's. Say how many there are a "
            f"day ({option('per_day')}) if not."
        )
    if all(query.bytes is None for query in workload.queries):
        assumptions.append("A query reads all columns of the files that it can't skip: the log doesn't tell its bytes.")
    assumptions.append(
        f"Prices: ${prices.scan:g} a TB scanned, ${prices.core_hour:g} a core-hour, ${prices.storage:g} a GB and "
        f"month; replaced files are kept for {prices.keep_days:g} days."
    )
    return Terms(
        summary=replace(workload.summary, examples=()) if hide else workload.summary,
        joins=_joins(workload),
        prices=prices,
        per_day=per_day,
        assumptions=tuple(assumptions),
        hide=hide,
    )


def _joins(workload: Workload) -> tuple[str, ...]:
    weights: dict[str, float] = {}
    for query in workload.queries:
        for name in query.joins:
            weights[name] = weights.get(name, 0.0) + query.weight
    return tuple(sorted(weights, key=lambda name: (-weights[name], name)))


def nothing_known(snapshot: Snapshot, terms: Terms, target_file_bytes: int, reason: str) -> Advice:
    """Return the advice for a table of which too little is known."""
    return Advice(
        table=TableVersion.of(snapshot, cuts=False),
        workload=AdvisedQueries(
            summary=terms.summary,
            queries=0,
            held_out=0,
            per_day=terms.per_day,
            filtered=(),
            joins=terms.joins,
            hidden=terms.hide,
        ),
        basis=Basis(target_file_bytes, terms.prices, sample_rows=0, assumptions=terms.assumptions),
        now=_NOTHING,
        partition_only=_NOTHING,
        candidates=(),
        best=None,
        verdict="unknown",
        reason=reason,
    )


def conclude(ground: Ground, terms: Terms) -> Advice:
    """Measure the candidates, and decide what to do."""
    account = CandidateAccount(ground, terms.prices, terms.per_day, hide=terms.hide)
    now = _reads(ground, account.now)
    candidates = ranked(list(all_candidates(account, now)))
    decision = decide(candidates, now)
    likely = first_layout(candidates) or decision.best
    filtered = filtered_columns(ground)
    layout = likely.layout
    after = account.predictions[layout] if layout is not None else account.now
    advice = nothing_known(ground.snapshot, terms, ground.target_file_bytes, decision.reason)
    asked = replace(advice.workload, queries=len(ground.asked), held_out=len(ground.held), filtered=filtered)
    return replace(
        advice,
        workload=asked,
        basis=replace(advice.basis, sample_rows=len(ground.sample.coded), seed=ground.seed),
        now=now,
        partition_only=_mean(ground, ground.standing.partition_only.shares),
        candidates=tuple(_best_first(candidates, decision.best)),
        best=decision.best,
        verdict=decision.verdict,
        blooms=useful_blooms(ground, layout, after, filtered),
        warnings=cautions(Evidence(ground, terms.summary, filtered, likely, terms.hide)),
    )


def _best_first(candidates: Sequence[Candidate], best: Candidate) -> list[Candidate]:
    return [best, *(each for each in candidates if each is not best)]


def _mean(ground: Ground, shares: Float64Array) -> Reads:
    """Return the mean over the held-out queries of shares that are known for all queries."""
    held, weights = shares[ground.held], ground.measured.weights
    return replace(reads_of(Prediction.of(0, held, held, weights, seed=ground.seed), weights), row_groups=None)


def _reads(ground: Ground, today: Prediction) -> Reads:
    """Return what is read today; the share of files is counted separately, as today's files may have any size."""
    files, reads = ground.snapshot.files, reads_of(today, ground.measured.weights)
    if ground.groups_today is None:
        reads = replace(reads, row_groups=None)
    if (files.sizes == files.sizes[0]).all():
        return reads
    alike = replace(ground.snapshot, files=replace(files, sizes=np.ones(len(files), np.int64)))
    counted = standing(alike, ground.measured.bounds, ground.measured.weights).current
    return replace(reads, files=min(counted.mean, 1.0))


def filtered_columns(ground: Ground) -> tuple[Filtered, ...]:
    """Describe the columns that queries filter, those of the most weight first."""
    weights, equal = filter_weights(ground.asked)
    coded, snapshot = ground.sample.coded, ground.snapshot
    columns = []
    for name, weight in weights.items():
        distinct: int | None = None
        is_all = False
        if name in coded.columns:
            codes = coded.codes[:, coded.columns.index(name)]
            counts = np.bincount(codes[codes != NULL])
            distinct = int((counts > 0).sum())
            # Good and Turing: the share of values seen once estimates the chance that the next value is new.
            is_all = float((counts == 1).sum()) <= (1 - _ALL_SEEN) * max(distinct, 1)
        columns.append(
            Filtered(
                column=name,
                weight=min(weight, 1.0),
                equality=min(equal.get(name, 0.0), 1.0),
                distinct=distinct,
                distinct_is_all=is_all,
                has_statistics=has_statistics(snapshot, name),
                partitions=_partitions_by(snapshot, name),
            )
        )
    return tuple(columns)


def _partitions_by(snapshot: Snapshot, name: str) -> bool:
    for field in snapshot.partitioning:
        of = _TRANSFORM.fullmatch(field)
        if name in (field, of["column"] if of else field):
            return True
    return False
