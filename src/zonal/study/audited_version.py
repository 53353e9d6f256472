"""One version of a table with queries bound to it: what they read, and what a sample of its rows adds."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from zonal.advising.ground import Ground
from zonal.advising.queries import BoundQueries, Fit, bind_queries, chosen_queries, filter_weights, named_columns
from zonal.auditing.audit import Fresh
from zonal.auditing.drift import Alerts
from zonal.auditing.findings import Seen, standing_of
from zonal.auditing.replay import Replay, replay
from zonal.display import Display
from zonal.errors import TableError, quoted
from zonal.layouts.layout import Layout
from zonal.snapshot import Snapshot
from zonal.study.advice_request import sampled_columns
from zonal.study.look import look_at
from zonal.study.sampling import Sampling
from zonal.study.trial_ground import ground_of
from zonal.tables.protocol import Table, is_readable
from zonal.trials.boxes import boxes_of
from zonal.trials.parameters import has_parameters
from zonal.values.arrays import Float64Array
from zonal.values.columns import leaves
from zonal.values.progress import Progress, Step
from zonal.workload.query import Workload

_MOST_KEYS = 3
"""Key columns of the layout that a table without one is compared with."""


@dataclass(frozen=True)
class Auditing:
    """How to audit; the same for every version and every table."""

    sampling: Sampling = field(default_factory=Sampling)
    alerts: Alerts = field(default_factory=Alerts)
    display: Display = field(default_factory=Display)

    def check(self) -> None:
        """Raise an error for numbers out of range."""
        self.sampling.check()
        self.alerts.check()


@dataclass(frozen=True, eq=False)
class AuditedVersion:
    """One version with the queries bound to it, what they read, and what a sample of its rows adds."""

    snapshot: Snapshot
    asked: BoundQueries
    replayed: Replay
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()
    """What is left out, and what isn't known."""

    def noted(self, note: str) -> "AuditedVersion":
        """Return the same with one more note."""
        return replace(self, notes=(*self.notes, note))


def audited_version(
    table: Table, snapshot: Snapshot, workload: Workload, how: Auditing, report: Progress, *, look: bool
) -> AuditedVersion:
    """Bind queries to a version and count what they read; with `look`, sample its rows and footers, too."""
    choice = _Choice.of(workload, how.sampling)
    asked, fit = choice.bound(snapshot)
    if not len(asked):
        reason = "" if how.display.hide_literals or not fit.unknown else f" {fit.unknown[0]}"
        raise TableError(f"No query fits the columns of {quoted(snapshot.name, limit=200)}.{reason}")
    report(Step("asking the table's files"))
    replayed = replay(snapshot, asked.bounds, asked.weights)
    notes = tuple(_left_out(choice.left_out, fit, hide=how.display.hide_literals))
    version = AuditedVersion(snapshot, asked, replayed, notes=notes)
    return _looked(table, version, choice, fit, report) if look else version


@dataclass(frozen=True, eq=False)
class _Choice:
    """The queries of a log that are replayed, and how they are bound."""

    workload: Workload
    runs: Float64Array
    left_out: int
    timezone: str
    sampling: Sampling

    @classmethod
    def of(cls, workload: Workload, sampling: Sampling) -> "_Choice":
        return cls(*chosen_queries(workload, sampling.seed, sampling.queries), workload.timezone, sampling)

    def bound(self, snapshot: Snapshot, data: pa.Table | None = None) -> tuple[BoundQueries, Fit]:
        """Bind the queries to a version's columns; with `data`, its values stand for parameters."""
        zone, seed = self.timezone, self.sampling.seed
        return bind_queries(self.workload, self.runs, snapshot.schema, data=data, timezone=zone, seed=seed)


def _left_out(queries: int, fit: Fit, *, hide: bool) -> Iterator[str]:
    """Say which queries of the log are left out."""
    if queries:
        yield f"{queries:,} light queries are left out: others of the sample stand for them."
    if fit.unbound:
        why = "" if hide else f" {fit.unknown[0]}"
        yield f"Left out, since they don't fit the table's columns: {fit.unbound:,} of all queries.{why}"


def _looked(table: Table, version: AuditedVersion, choice: _Choice, fit: Fit, report: Progress) -> AuditedVersion:
    """Add what sampled rows and footers tell; a note says where they can't be read."""
    if not is_readable(table):
        return version.noted("Its rows can't be read: what matches, and what a fresh layout brings, is not known.")
    snapshot = version.snapshot
    names = _sampled(version)
    report(Step("sampling"))
    try:
        looked = look_at(table, snapshot, names, version.replayed.in_partition, choice.sampling.rows)
    except TableError as error:
        return version.noted(f"Its rows can't be read: {error}")
    if any(has_parameters(query.predicate) for query in version.asked.queries):
        asked, fit = choice.bound(snapshot, looked.rows.data)
        version = replace(version, asked=asked, replayed=replay(snapshot, asked.bounds, asked.weights))
        version = version.noted(f"{fit.drawn:,} queries have parameters: values of sampled rows stand for them.")
    asked = version.asked
    stands = standing_of(version.replayed, snapshot, asked.weights)
    report(Step("trying a fresh layout"))
    ground = ground_of(
        table, snapshot, asked, fit, stands, looked,
        target_file_bytes=_file_bytes(snapshot), seed=choice.sampling.seed, parted=False,
    )  # fmt: skip
    matching = replace(ground.sample, boxes=boxes_of(asked.bounds, ground.sample.coded)).floor
    if snapshot.layout is not None and (missing := _missing(snapshot.layout, ground)):
        version = version.noted(f"The recorded layout can't be tried: the table has no column {quoted(missing)} now.")
    return replace(version, seen=Seen(ground.groups_today, matching, *_fresh(ground)))


def _sampled(version: AuditedVersion) -> list[str]:
    """Return the columns to sample: the keys of the recorded layout, then those of the queries."""
    layout, there = version.snapshot.layout, set(leaves(version.snapshot.schema))
    keys = [name for name in (layout.columns if layout else ()) if name in there]
    named = [*filter_weights(version.asked)[0], *named_columns(version.asked.bounds)]
    return sampled_columns(version.snapshot, [*keys, *named])


def _file_bytes(snapshot: Snapshot) -> int:
    """Return the size of fresh files: the layout's, or today's mean, lest their number explain a gain."""
    layout, sizes = snapshot.layout, snapshot.files.sizes
    return layout.file_bytes if layout is not None else max(int(sizes.sum()) // len(sizes), 1)


def _fresh(ground: Ground) -> tuple[Fresh | None, Float64Array | None]:
    """Predict what queries would read after clustering anew, by the recorded layout or the filtered columns."""
    layout = ground.snapshot.layout
    is_recorded = layout is not None and _missing(layout, ground) is None
    if layout is None or not is_recorded:
        if not ground.columns:
            return None, None
        layout = ground.layout("zorder", ground.columns[:_MOST_KEYS])
    prediction = ground.predicted(layout)
    now = ground.standing.current.mean
    gain = 1 - prediction.mean / now if now > 0 else 0.0
    return Fresh(layout.short, is_recorded, prediction.mean, gain), prediction.shares


def _missing(layout: Layout, ground: Ground) -> str | None:
    known = set(ground.sample.coded.columns)
    return next((name for name in layout.columns if name not in known), None)
