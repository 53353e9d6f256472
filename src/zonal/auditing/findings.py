"""Turn a replay of queries into an audit: means, ratios, what each column skips, and the worst files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from zonal.advising.queries import BoundQueries, filter_weights
from zonal.auditing.audit import (
    Audit,
    AuditedQueries,
    Before,
    Blame,
    Circumstances,
    ColumnAudit,
    Excess,
    FileAudit,
    Fresh,
    Judgment,
    MeanReads,
    PartitionAudit,
    QueryAudit,
    QueryReads,
)
from zonal.auditing.blame.authors import writer_of
from zonal.auditing.blame.commits import Commits
from zonal.auditing.drift import Drift
from zonal.auditing.profit import helpable, hindrance_of
from zonal.auditing.replay import Replay
from zonal.auditing.savings import in_layout
from zonal.predicates.bound import conjuncts
from zonal.predicates.expressions import Constant, Predicate
from zonal.predicates.wording import EVERYTHING, describe
from zonal.skipping.files import bucket_label
from zonal.skipping.index import columns_of, label_of
from zonal.skipping.shares import is_worse
from zonal.snapshot import UNKNOWN, Files, Snapshot, TableVersion
from zonal.trials.prediction import Prediction
from zonal.trials.today import Standing
from zonal.values.arrays import Float64Array, Int64Array
from zonal.workload.query import Summary

MOST_FILES, MOST_PARTITIONS = 10, 10


@dataclass(frozen=True, eq=False)
class Seen:
    """What sampled rows and footers add: shares, one number per query."""

    row_groups: Float64Array | None = None
    selectivity: Float64Array | None = None
    fresh: Fresh | None = None
    fresh_shares: Float64Array | None = None


@dataclass(frozen=True, eq=False)
class Earlier:
    """What queries read of an older version: one share per query."""

    version: int | None
    shares: Float64Array


def standing_of(replayed: Replay, snapshot: Snapshot, weights: Float64Array) -> Standing:
    """Return a replay as the standing with which predictions are compared."""
    total = _bytes(snapshot)
    read, inside = replayed.bytes / total, replayed.partition_bytes / total
    count = len(snapshot.files)
    return Standing(
        Prediction.of(count, read, read, weights), Prediction.of(count, inside, inside, weights), replayed.in_partition
    )


def ratio_of(replayed: Replay, asked: BoundQueries) -> float | None:
    """Return files read / files in matching partitions, over the queries that a layout could help."""
    return _ratio(replayed.files, replayed.partition_files, helpable(asked))


def findings(
    snapshot: Snapshot,
    asked: BoundQueries,
    replayed: Replay,
    seen: Seen,
    made: Circumstances,
    *,
    summary: Summary,
    commits: Commits,
    earlier: Earlier | None = None,
    drift: Drift | None = None,
    hide: bool = False,
) -> Audit:
    """Put an audit together from its parts; with `hide`, it holds no value that queries compare with."""
    return Audit(
        table=TableVersion.of(snapshot, cuts=not hide),
        workload=AuditedQueries(
            queries=len(asked),
            hindered=float(asked.weights.sum() - helpable(asked).sum()),
            summary=replace(summary, examples=()) if hide else summary,
            hidden=hide,
        ),
        judgment=_judgment(snapshot, drift),
        reads=_reads(snapshot, asked, replayed, seen),
        fresh=seen.fresh,
        excess=_excess(snapshot, asked, replayed),
        blame=Blame(
            commits=commits.told,
            culprits=commits.culprits,
            before=None if earlier is None else _before(earlier, replayed.bytes / _bytes(snapshot), asked.weights),
            operation=_operation(snapshot),
        ),
        columns=_columns(snapshot, asked, replayed),
        asked=_queries(snapshot, asked, replayed, seen, earlier, hide=hide),
        made=made,
    )


def _judgment(snapshot: Snapshot, drift: Drift | None) -> Judgment:
    inside = in_layout(snapshot)
    judged = Judgment() if drift is None else Judgment(drift.alerts, drift.tolerated, drift.saving.most)
    if inside is None:
        return judged
    clustered = pc.is_valid(snapshot.files.layout_ids).to_numpy(zero_copy_only=False)
    return replace(judged, outside=int((~inside).sum()), in_others=int((clustered & ~inside).sum()))


def _reads(snapshot: Snapshot, asked: BoundQueries, replayed: Replay, seen: Seen) -> MeanReads:
    count, total = max(len(snapshot.files), 1), _bytes(snapshot)
    weights, helped = asked.weights, helpable(asked)
    return MeanReads(
        ratio=_ratio(replayed.files, replayed.partition_files, helped),
        byte_ratio=_ratio(replayed.bytes, replayed.partition_bytes, helped),
        file_share=_share(weights, replayed.files, count),
        byte_share=_share(weights, replayed.bytes, total),
        partition_file_share=_share(weights, replayed.partition_files, count),
        partition_byte_share=_share(weights, replayed.partition_bytes, total),
        row_group_share=_mean(seen.row_groups, weights),
        selectivity=_mean(seen.selectivity, weights),
    )


def _excess(snapshot: Snapshot, asked: BoundQueries, replayed: Replay) -> Excess:
    read = float(asked.weights @ replayed.bytes)
    return Excess(
        float(asked.weights @ replayed.excess_bytes) / read if read > 0 else 0.0,
        _worst_files(snapshot, replayed),
        _worst_partitions(snapshot, replayed),
    )


def _bytes(snapshot: Snapshot) -> int:
    """Return the size of all files, as a divisor."""
    return max(int(snapshot.files.sizes.sum()), 1)


def _operation(snapshot: Snapshot) -> str:
    commit = None if snapshot.version is None else snapshot.commits.get(snapshot.version)
    if commit is None:
        return ""
    writer = writer_of(commit)
    return f"{commit.operation} by {writer}" if writer else commit.operation


def asked_text(predicate: Predicate, *, hide: bool = False) -> str:
    """Describe a query's predicate; one that is always true matches everything."""
    if isinstance(predicate, Constant) and predicate.value:
        return EVERYTHING
    return describe(predicate, hide=hide)


def _ratio(read: Int64Array, of: Int64Array, weights: Float64Array) -> float | None:
    whole = float(weights @ of)
    return float(weights @ read) / whole if whole > 0 else None


def _share(weights: Float64Array, amounts: Int64Array, whole: int) -> float:
    """Return the mean share; rounded weights don't make it more than 1."""
    return min(float(weights @ amounts) / whole, 1.0)


def _mean(shares: Float64Array | None, weights: Float64Array) -> float | None:
    return None if shares is None else float(shares @ weights)


def _before(earlier: Earlier, now: Float64Array, weights: Float64Array) -> Before:
    worse = sum(map(is_worse, earlier.shares.tolist(), now.tolist()))
    return Before(earlier.version, float(weights @ earlier.shares), worse)


def _queries(
    snapshot: Snapshot, asked: BoundQueries, replayed: Replay, seen: Seen, earlier: Earlier | None, *, hide: bool
) -> tuple[QueryAudit, ...]:
    count, total = max(len(snapshot.files), 1), _bytes(snapshot)
    audits = []
    for at in np.argsort(-(asked.weights * replayed.bytes), kind="stable").tolist():
        query, inside = asked.queries[at], int(replayed.partition_files[at])
        hindrance, remedy = hindrance_of(asked.bounds[at], snapshot)
        audits.append(
            QueryAudit(
                query=asked_text(query.predicate, hide=hide),
                source=query.source,
                count=round(asked.runs[at]),
                weight=float(asked.weights[at]),
                reads=QueryReads(
                    files=int(replayed.files[at]),
                    bytes=int(replayed.bytes[at]),
                    partition_files=inside,
                    partition_bytes=int(replayed.partition_bytes[at]),
                    file_share=int(replayed.files[at]) / count,
                    byte_share=int(replayed.bytes[at]) / total,
                    ratio=int(replayed.files[at]) / inside if inside else None,
                    row_group_share=_at(seen.row_groups, at),
                    excess_files=float(replayed.excess_files[at]),
                    excess_bytes=float(replayed.excess_bytes[at]),
                ),
                selectivity=_at(seen.selectivity, at),
                fresh_share=_at(seen.fresh_shares, at),
                before_share=_at(None if earlier is None else earlier.shares, at),
                hindrance=hindrance,
                remedy=remedy,
            )
        )
    return tuple(audits)


def _at(shares: Float64Array | None, number: int) -> float | None:
    return None if shares is None else float(shares[number])


def _columns(snapshot: Snapshot, asked: BoundQueries, replayed: Replay) -> tuple[ColumnAudit, ...]:
    """Say what each column skips, partition values first; columns that are filtered and skip nothing come last."""
    filtered = filter_weights(asked)[0]
    named, weights = _labels(asked)
    weights.update(filtered)
    files, constant = snapshot.files, set(snapshot.partitioning)
    parted = dict.fromkeys([*replayed.skipped_by_partition, *(name for name in filtered if name in constant)])
    audits = [
        ColumnAudit(
            name,
            weights.get(name, 0.0),
            len(files),
            *replayed.skipped_by_partition.get(name, (0.0, 0.0)),
            partitions=True,
        )
        for name in parted
    ]
    for name in dict.fromkeys([*replayed.skipped, *(name for name in filtered if name not in constant)]):
        shares = replayed.skipped.get(name, (0.0, 0.0))
        audits.append(ColumnAudit(name, weights.get(name, 0.0), _with_bounds(files, named.get(name, (name,))), *shares))
    return tuple(sorted(audits, key=lambda column: (not column.partitions, -column.skipped_bytes)))


def _labels(asked: BoundQueries) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    """Return by the label of each conjunct its columns, and the weight of the queries that have it."""
    columns: dict[str, tuple[str, ...]] = {}
    weights: dict[str, float] = {}
    for bound, weight in zip(asked.bounds, asked.weights.tolist(), strict=True):
        labels = {label_of(part): tuple(columns_of(part)) for part in conjuncts(bound)}
        labels.update({bucket_label(name): (name,) for names in tuple(labels.values()) for name in names})
        columns.update(labels)
        for label in labels:
            weights[label] = weights.get(label, 0.0) + weight
    return columns, weights


def _with_bounds(files: Files, names: Sequence[str]) -> int:
    """Count the files with bounds of all these columns."""
    known = np.ones(len(files), np.bool_)
    for name in names:
        bounds = files.bounds.get(name)
        if bounds is None:
            return 0
        known &= pc.and_(pc.is_valid(bounds.lower), pc.is_valid(bounds.upper)).to_numpy(zero_copy_only=False)
    return int(known.sum())


def _worst_files(snapshot: Snapshot, replayed: Replay) -> tuple[FileAudit, ...]:
    files = snapshot.files
    excess = replayed.excess * files.sizes
    worst = np.argsort(-excess, kind="stable")[:MOST_FILES]
    return tuple(
        FileAudit(
            path=files.paths[at].as_py(),
            partition=files.partitions[files.partition[at]],
            bytes=int(files.sizes[at]),
            read=float(replayed.read[at]),
            excess=float(replayed.excess[at]),
            added_by=None if files.added_by[at] == UNKNOWN else int(files.added_by[at]),
        )
        for at in worst.tolist()
        if excess[at] > 0
    )


def _worst_partitions(snapshot: Snapshot, replayed: Replay) -> tuple[PartitionAudit, ...]:
    files = snapshot.files
    if not snapshot.partitioning or not len(files):
        return ()
    excess = np.bincount(files.partition, replayed.excess * files.sizes, len(files.partitions))
    counts = np.bincount(files.partition, minlength=len(files.partitions))
    sizes = np.bincount(files.partition, files.sizes, len(files.partitions))
    whole = float(excess.sum())
    worst: Sequence[int] = np.argsort(-excess, kind="stable")[:MOST_PARTITIONS].tolist() if whole > 0 else []
    return tuple(
        PartitionAudit(files.partitions[at], int(counts[at]), int(sizes[at]), float(excess[at]) / whole)
        for at in worst
        if excess[at] > 0
    )
