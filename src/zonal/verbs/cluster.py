"""`cluster`: rewrite a table's files in the order of a layout, and commit them atomically."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypedDict, overload

from zonal.arguments import check_arguments
from zonal.display import Display
from zonal.errors import ZonalError, option
from zonal.history.opened import Database, ledger_of
from zonal.layouts.layout import Layout
from zonal.plan.run import new_run
from zonal.rewriting.commits import rewrite_in_commits
from zonal.rewriting.copy import copy_table
from zonal.rewriting.dry_run import ClusteringPlan, plan_clustering
from zonal.rewriting.learned import learned_for, settled
from zonal.rewriting.ledger import LedgerEntry, kind_of_run
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.outcome import Clustering, RunAccount, left, result_of
from zonal.rewriting.places import Place, check_place, runner_at
from zonal.rewriting.request import Job, Request, rewritable
from zonal.rewriting.scope import Scope
from zonal.tables.names import takes_catalog_options
from zonal.tables.protocol import Table
from zonal.tables.registry import open_destination, read_snapshot, table_of
from zonal.values.progress import Progress, Step, only_notices
from zonal.workload.logs import Queries

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Options(TypedDict, total=False):
    """What `cluster` takes, with and without `dry_run`."""

    by: str | Sequence[str] | None
    layout: str | Layout | None
    queries: Queries | None
    scope: Scope | None
    into: str | None
    files: NewFiles | None
    spark: Place
    display: Display | None
    database: Database
    catalog: str | None
    storage_options: Mapping[str, str] | None
    progress: Progress | None


@overload
def cluster(table: Table | str, *, dry_run: Literal[False] = False, **options: "Unpack[Options]") -> Clustering: ...
@overload
def cluster(table: Table | str, *, dry_run: Literal[True], **options: "Unpack[Options]") -> ClusteringPlan: ...
def cluster(
    table: Table | str,
    *,
    by: str | Sequence[str] | None = None,
    layout: str | Layout | None = None,
    queries: Queries | None = None,
    scope: Scope | None = None,
    into: str | None = None,
    files: NewFiles | None = None,
    spark: Place = None,
    display: Display | None = None,
    database: Database = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Clustering | ClusteringPlan:
    """Rewrite the files that aren't in the layout yet, so that queries on its columns skip most of them.

    Rows stay in their partition. All new files appear in one commit, or in several with a `Scope` that says so; a run
    that fails leaves the table as it was. Before every commit rows are counted.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        by: the columns; with a curve's name in `layout`, or for `zorder`.
        layout: a curve's name, a whole layout such as `zorder(ts, id)`, or `tree` or `auto`, which are learned from
            `queries`; without it and `by`, the one that the table records.
        queries: paths of logs, `Logs`, or a workload: to learn from, and to compare predicted and actual reads.
        scope: which files the run rewrites, and what it may cost, as `Scope`; by default, those that are worth it.
        into: write a copy to `delta:…`, `parquet:…` or `iceberg:…`, and leave the table as it is.
        files: how new files are written, as `NewFiles`.
        spark: the session to run in, or a `Spark` that says where a new one runs; by default, the one that runs, or a
            new one. `Spark(master="here")` does without Spark, and a function runs the work elsewhere.
        display: what the result shows, as `Display`.
        database: the history to which the run is added: a URL, an open `History`, or None for nowhere.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        dry_run: change nothing, start no Spark, and return the plan.
        progress: hears each step.

    Example:
        >>> plan = zonal.cluster("orders", by=["id", "day"], dry_run=True)
        >>> plan.layout, plan.change.files, plan.change.rows
        ('zorder(id, day)', 4, 40)
        >>> zonal.cluster("orders", by=["id", "day"]).change.added_files  # doctest: +SKIP
        1
    """
    check_arguments(cluster, locals())
    check_place(spark)
    if dry_run and into is not None:
        raise ZonalError(f"{option('dry_run')} tells what a rewrite in place would do: leave out {option('into')}.")
    account = RunAccount(time.monotonic(), display or Display(), database)
    request = Request(by, layout, queries, scope or Scope(), into, files or NewFiles())
    request.check()
    report = progress or only_notices
    opened = partial(table_of, catalog=catalog, storage_options=storage_options)
    source = opened(table, catalog_options=into is not None and takes_catalog_options(into))
    report(Step("reading the table's metadata"))
    if dry_run:
        return plan_clustering(source, request, report, partial(ledger_of, database))
    account.check()
    destination = None if into is None else open_destination(into, catalog=catalog, storage_options=storage_options)
    snapshot = read_snapshot(source)
    if into is None:
        rewritable(source, snapshot)
    learned = learned_for(source, snapshot, request, report)
    if learned is not None and learned.layout is None:
        return left(snapshot, learned, account)
    request, run, note = settled(request, learned), new_run(), ""
    running = runner_at(spark, partial(_tell_notice, report))
    if into is not None and destination is not None:
        chosen, done = copy_table(source, snapshot, destination, request, run, running, report)
        after = opened(into, catalog_options=True).snapshot()
    else:
        job = Job.of(source, snapshot, request, ledger_of(database, snapshot.location))
        chosen = job.layout
        failed = partial(account.remember_part, job, run)
        done, after, choice = rewrite_in_commits(job, run, running, report, failed)
        note = choice.why_nothing
    result = result_of(snapshot, after, chosen, run, done, account, learned, note)
    entry = LedgerEntry(run, kind_of_run(snapshot, after, chosen), done, chosen, after, result.predicted)
    return account.remembered(result, entry)


def _tell_notice(report: Progress, notice: str) -> None:
    report(Step("starting Spark", notice=notice))
