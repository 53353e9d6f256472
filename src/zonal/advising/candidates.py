"""List the candidates for a table, each measured on the held-out queries, with its cost."""

from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from zonal.advising.advice import Candidate, CandidateKind, Prices, Reads, Regression
from zonal.advising.compaction import merged
from zonal.advising.costs import cost_of, saved_bytes
from zonal.advising.ground import Ground
from zonal.advising.layout_search import finalists
from zonal.advising.partitions import best_partitioning
from zonal.layouts.layout import Layout
from zonal.predicates.wording import describe
from zonal.snapshot import Snapshot
from zonal.trials.prediction import Prediction
from zonal.trials.today import regressions, standing
from zonal.values.arrays import Float64Array

TIE, TIE_SHARE = 0.05, 0.002
"""Candidates whose shares differ by at most this factor, or this difference, are equal: the simpler one wins."""
_WORST = 5
_COMPLEXITY = {"leave": 0, "sizes": 1, "linear": 2, "zorder": 3, "hilbert": 4, "tree": 5, "partition": 6}


class CandidateAccount:
    """Turns predictions for the held-out queries into candidates."""

    def __init__(self, ground: Ground, prices: Prices, per_day: float, *, hide: bool) -> None:
        self.ground, self.prices, self.per_day, self.hide = ground, prices, per_day, hide
        today = ground.standing.current
        self.predictions: dict[Layout, Prediction] = {}
        """The prediction for each layout."""
        self.now = Prediction.of(
            today.files,
            today.shares[ground.held],
            (today.row_group_shares if ground.groups_today is None else ground.groups_today)[ground.held],
            ground.measured.weights,
            seed=ground.seed,
        )

    def candidate(
        self,
        kind: CandidateKind,
        text: str,
        prediction: Prediction,
        *,
        layout: Layout | None = None,
        reads: Reads | None = None,
        share_rewritten: float = 1.0,
        note: str = "",
    ) -> Candidate:
        """Return the candidate with its costs and with the queries that it makes worse."""
        ground = self.ground
        saved = saved_bytes(
            ground.measured, self.now.shares, prediction.shares, table_bytes=ground.bytes, per_day=self.per_day
        )
        worse = regressions(self.now, prediction)
        if layout is not None:
            self.predictions[layout] = prediction
        return Candidate(
            kind=kind,
            text=text,
            layout=layout,
            reads=reads or reads_of(prediction, ground.measured.weights),
            files=prediction.files,
            gain=1 - prediction.mean / self.now.mean if self.now.mean > 0 else 0.0,
            cost=cost_of(
                rewritten_bytes=round(ground.bytes * share_rewritten),
                rewritten_rows=ground.rows * share_rewritten,
                row_seconds=ground.row_seconds,
                saved_per_day=saved,
                prices=self.prices,
            ),
            worse=tuple(self._regression(query, prediction) for query in worse[:_WORST].tolist()),
            worse_count=len(worse),
            note=note,
            extrapolated=prediction.extrapolated,
        )

    def _regression(self, number: int, prediction: Prediction) -> Regression:
        query = self.ground.measured.queries[number]
        return Regression(
            query=describe(query.predicate, hide=self.hide),
            source=query.source,
            count=query.count,
            before=float(self.now.shares[number]),
            after=float(prediction.shares[number]),
        )


def reads_of(prediction: Prediction, weights: Float64Array) -> Reads:
    """Return the means of a prediction; new files are about equally large, so files and bytes have one share."""
    groups = float(prediction.row_group_shares @ weights)
    return Reads(
        *(min(share, 1.0) for share in (prediction.mean, prediction.mean, groups, prediction.low, prediction.high))
    )


def all_candidates(account: CandidateAccount, now: Reads) -> Iterator[Candidate]:
    """Yield every candidate; `now` is what is read today."""
    ground = account.ground
    yield account.candidate("leave", "leave as it is", account.now, reads=now, share_rewritten=0.0)
    if (compacted := _sizes(account)) is not None:
        yield compacted
    for layout in finalists(ground):
        again = "The layout that the table records, over all its files." if layout == ground.snapshot.layout else ""
        kind: CandidateKind = layout.kind  # type: ignore[assignment]
        yield account.candidate(
            kind,
            layout.short,
            ground.predicted(layout),
            layout=layout,
            share_rewritten=_outside(ground.snapshot, layout),
            note=again,
        )
    if (parts := best_partitioning(ground)) is not None:
        columns = ", ".join(parts.layout.columns)
        yield account.candidate(
            "partition",
            f"partition by {parts.by}, {parts.layout.kind}({columns}) inside",
            ground.predicted(parts.layout, parts.trial),
            note=f"zonal doesn't repartition a table in place: write it anew, with {parts.partitions:,} partitions by "
            f"{parts.by}, and cluster it with {parts.layout.short}.",
        )


def _outside(snapshot: Snapshot, layout: Layout) -> float:
    """Return the share of the bytes in files that aren't in the layout yet."""
    files = snapshot.files
    done = pc.fill_null(pc.equal(files.layout_ids, layout.id), False).to_numpy(zero_copy_only=False)
    return float(files.sizes[~done].sum() / max(int(files.sizes.sum()), 1))


def _sizes(account: CandidateAccount) -> Candidate | None:
    """Return the compaction that keeps the order, where there are many small files."""
    ground = account.ground
    columns = list(dict.fromkeys(ground.sample.coded.columns))
    after = merged(ground.snapshot, ground.target_file_bytes, columns)
    if after is None:
        return None
    prediction = standing(after.snapshot, ground.measured.bounds, ground.measured.weights).current
    files = ground.snapshot.files
    return account.candidate(
        "sizes",
        "the same order in larger files",
        prediction,
        share_rewritten=float(files.sizes[after.rewritten].sum()) / max(ground.bytes, 1),
        note="Fewer files to plan and open, but no fewer bytes: compact with the table's own tool (OPTIMIZE, "
        "rewrite_data_files), or let a clustering do it on the way.",
    )


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates by what queries read, least first; of about equal ones the simplest first."""
    waiting = sorted(candidates, key=lambda each: (each.reads.bytes, _complexity(each), each.text))
    ranking: list[Candidate] = []
    while waiting:
        least = waiting[0].reads.bytes
        tied = [each for each in waiting if each.reads.bytes <= max(least * (1 + TIE), least + TIE_SHARE)]
        simplest = min(tied, key=lambda each: (_complexity(each), each.reads.bytes))
        ranking.append(simplest)
        waiting.remove(simplest)
    return ranking


def _complexity(candidate: Candidate) -> tuple[int, int]:
    return _COMPLEXITY[candidate.kind], len(candidate.layout.columns) if candidate.layout is not None else 0
