"""A request for advice on a table, and the sample of it on which layouts are tried."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from zonal.advising.advice import Advice, Prices
from zonal.advising.conclusion import Terms, conclude, nothing_known, terms_of
from zonal.advising.ground import Ground
from zonal.advising.queries import BoundQueries, Fit, bind_queries, chosen_queries, filter_weights, named_columns
from zonal.errors import TableError
from zonal.picture.picture import Picture
from zonal.plan.file_size import FileSize, file_size
from zonal.snapshot import Snapshot, table_names
from zonal.study.drawing import compared
from zonal.study.look import fit_columns, look_at
from zonal.study.sampling import Sampling
from zonal.study.trial_ground import ground_of
from zonal.tables.protocol import Table, is_readable
from zonal.trials.parameters import has_parameters
from zonal.trials.today import standing
from zonal.trials.trial import MAX_COLUMNS
from zonal.values.arrays import Float64Array
from zonal.values.columns import leaves
from zonal.values.progress import Progress, Step, only_notices
from zonal.values.sizes import size_of
from zonal.workload.logs import Queries, workload_of
from zonal.workload.query import Workload


def request_of(
    table: Table,
    snapshot: Snapshot,
    queries: Queries,
    *,
    target_file_size: int | str | None = None,
    prices: Prices | None = None,
    per_day: float | None = None,
    hide_literals: bool = False,
    sampling: Sampling | None = None,
    progress: Progress | None = None,
) -> "AdviceRequest":
    """Read the logs, and return a request for advice."""
    report = progress or only_notices
    workload = workload_of(queries, table_names(snapshot), snapshot.schema.names, report)
    terms = terms_of(workload, prices or Prices(), per_day, hide=hide_literals)
    given = size_of(target_file_size, "target_file_size")
    size = file_size(snapshot, given)
    return AdviceRequest(table, snapshot, terms, workload, size, sampling or Sampling(), report)


@dataclass(frozen=True, eq=False)
class AdviceRequest:
    """A table, its workload, and the terms of the advice."""

    table: Table
    snapshot: Snapshot
    terms: Terms
    workload: Workload
    size: FileSize
    sampling: Sampling
    report: Progress

    def advice(self, *, picture: bool = False) -> Advice:
        """Return the advice; it says so where the table or the workload tells too little."""
        ground = self.ground()
        if isinstance(ground, str):
            return nothing_known(self.snapshot, self.terms, self.size.bytes, ground)
        self.report(Step("trying layouts"))
        advice = conclude(ground, self.terms)
        return replace(advice, picture=self._drawn(ground)) if picture else advice

    def _drawn(self, ground: Ground) -> Picture | None:
        """Draw the files over the columns that queries filter, then those of the layout."""
        return compared(self.snapshot, self.snapshot, (), ground.asked, hide=self.terms.hide)

    def ground(self, columns: Sequence[str] = (), *, parted: bool = True) -> Ground | str:
        """Sample what candidate layouts are tried on, or return why that can't be done.

        `columns` are sampled, too; `parted` as for `ground_of`.
        """
        if problem := self._problem():
            return problem
        snapshot = self.snapshot
        chosen, runs, left_out = chosen_queries(self.workload, self.sampling.seed)
        asked, fit = self._bound(chosen, runs, None)
        if not len(asked):
            return f"No query fits its columns. {'' if self.terms.hide else fit.unknown[0]}".rstrip()
        names = sampled_columns(snapshot, [*columns, *filter_weights(asked)[0], *named_columns(asked.bounds)])
        if not names:
            return "It has no column that rows could be ordered by."
        self.report(Step("asking the table's files"))
        stands = standing(snapshot, asked.bounds, asked.weights)
        self.report(Step("sampling"))
        try:
            looked = look_at(self.table, snapshot, names, stands.in_partition, self.sampling.rows)  # type: ignore[arg-type]
        except TableError as error:
            return f"Its rows can't be read. {error}"
        if not looked.rows.data.num_rows:
            return "It has no rows."
        if any(has_parameters(query.predicate) for query in asked.queries):
            asked, fit = self._bound(chosen, runs, looked.rows.data)
            stands = standing(snapshot, asked.bounds, asked.weights)
        return ground_of(
            self.table,
            snapshot,
            asked,
            replace(fit, left_out=left_out),
            stands,
            looked,
            target_file_bytes=self.size.bytes,
            size_asked=self.size.asked,
            seed=self.sampling.seed,
            parted=parted,
        )

    def _problem(self) -> str:
        if not self.workload.queries:
            return self.workload.summary.nobody_asks(hide=self.terms.hide)
        if not len(self.snapshot.files):
            return "It has no files."
        return "" if is_readable(self.table) else "Its rows can't be read."

    def _bound(self, workload: Workload, runs: Float64Array, data: pa.Table | None) -> tuple[BoundQueries, Fit]:
        zone, seed = self.workload.timezone, self.sampling.seed
        return bind_queries(workload, runs, self.snapshot.schema, data=data, timezone=zone, seed=seed)


def sampled_columns(snapshot: Snapshot, named: Sequence[str]) -> list[str]:
    """Return the columns to sample: those that queries name first, or any one where they name none."""
    ordered = fit_columns(snapshot, list(dict.fromkeys(named)))
    return ordered[:MAX_COLUMNS] or fit_columns(snapshot, leaves(snapshot.schema))[:1]
