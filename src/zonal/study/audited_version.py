"""One version of a table with queries bound to it: what they read, and what a sample of its rows adds."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from zonal.advising.ground import Ground
from zonal.advising.queries import BoundQueries, Fit, bind_queries, chosen_queries, filter_weights, named_columns
from zonal.auditing.audit import Fresh
from zonal.auditing.drift import Alerts
from zonal.auditing.findings import Seen, standing_of
from zonal.auditing.replay import replay
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


class AuditedVersion:
    """One version with the queries bound to it, what they read, and a sample of its rows on request."""

    def __init__(self, table: Table, snapshot: Snapshot, workload: Workload, how: Auditing, report: Progress) -> None:
        self.table, self.snapshot, self.workload, self.how, self.report = table, snapshot, workload, how, report
        self.chosen, self.runs, self.left_out = chosen_queries(workload, how.sampling.seed, how.sampling.queries)
        self.asked, self.fit = self._bound(None)
        self.notes = list(self._left_out())
        if not len(self.asked):
            reason = "" if how.display.hide_literals or not self.fit.unknown else f" {self.fit.unknown[0]}"
            raise TableError(f"No query fits the columns of {quoted(snapshot.name, limit=200)}.{reason}")
        report(Step("asking the table's files"))
        self.replayed = replay(snapshot, self.asked.bounds, self.asked.weights)

    def _left_out(self) -> Iterator[str]:
        """Say which queries of the log are left out."""
        if self.left_out:
            yield f"{self.left_out:,} light queries are left out: others of the sample stand for them."
        if self.fit.unbound:
            why = "" if self.how.display.hide_literals else f" {self.fit.unknown[0]}"
            yield f"{self.fit.unbound:,} different queries don't fit the table's columns, and are left out.{why}"

    def _bound(self, data: pa.Table | None) -> tuple[BoundQueries, Fit]:
        zone, seed = self.workload.timezone, self.how.sampling.seed
        return bind_queries(self.chosen, self.runs, self.snapshot.schema, data=data, timezone=zone, seed=seed)

    def look(self) -> Seen:
        """Sample rows and footers; a note says where they can't be read."""
        if not is_readable(self.table):
            self.notes.append("Its rows can't be read: what matches, and what a fresh layout brings, is not known.")
            return Seen()
        layout = self.snapshot.layout
        named = [*filter_weights(self.asked)[0], *named_columns(self.asked.bounds)]
        there = set(leaves(self.snapshot.schema))
        keys = [name for name in (layout.columns if layout else ()) if name in there]
        names = sampled_columns(self.snapshot, [*keys, *named])
        self.report(Step("sampling"))
        try:
            looked = look_at(self.table, self.snapshot, names, self.replayed.in_partition, self.how.sampling.rows)
        except TableError as error:
            self.notes.append(f"Its rows can't be read: {error}")
            return Seen()
        if any(has_parameters(query.predicate) for query in self.asked.queries):
            self.asked, self.fit = self._bound(looked.rows.data)
            self.notes.append(f"{self.fit.drawn:,} queries have parameters: values of sampled rows stand for them.")
            self.replayed = replay(self.snapshot, self.asked.bounds, self.asked.weights)
        stands = standing_of(self.replayed, self.snapshot, self.asked.weights)
        self.report(Step("trying a fresh layout"))
        ground = ground_of(
            self.table, self.snapshot, names, self.asked, self.fit, stands, looked,
            target_file_bytes=self._file_bytes(), seed=self.how.sampling.seed, parted=False,
        )  # fmt: skip
        fresh, shares = self._fresh(ground)
        matching = replace(ground.sample, boxes=boxes_of(self.asked.bounds, ground.sample.coded)).floor
        return Seen(ground.groups_today, matching, fresh, shares)

    def _file_bytes(self) -> int:
        """Return the size of fresh files: the layout's, or today's mean, lest their number explain a gain."""
        layout, sizes = self.snapshot.layout, self.snapshot.files.sizes
        return layout.target_file_bytes if layout is not None else max(int(sizes.sum()) // len(sizes), 1)

    def _fresh(self, ground: Ground) -> tuple[Fresh | None, Float64Array | None]:
        """Predict what queries would read after clustering anew, by the recorded layout or the filtered columns."""
        layout = self.snapshot.layout
        if layout is not None and (missing := _missing(layout, ground)):
            self.notes.append(f"The recorded layout can't be tried: the table has no column {quoted(missing)} now.")
            layout = None
        is_recorded = layout is not None
        if layout is None:
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
