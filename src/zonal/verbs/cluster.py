"""`cluster`: rewrite a table's files in the order of a layout, on Spark, and commit them atomically."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from zonal.errors import CommitUnknownError, TableError, ZonalError, ZonalNotice, option, quoted
from zonal.history.opened import Database
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.parquet.codecs import asked_codec
from zonal.plan.choice import still_there
from zonal.plan.run import new_run
from zonal.rewriting.arguments import check_arguments
from zonal.rewriting.copy import plan_copy, run_copy
from zonal.rewriting.division import cost_text, divide
from zonal.rewriting.dry_run import ClusteringPlan, plan_clustering
from zonal.rewriting.in_place import Done, Rewriter, Runner
from zonal.rewriting.learned import Learned, Queries, learned_for
from zonal.rewriting.on_spark import spark_runner
from zonal.rewriting.outcome import Clustering, RunAccount, left, result_of
from zonal.rewriting.request import (
    Job,
    chosen_layout,
    refuse_columns,
    refuse_unwritable,
    rewritable,
    size_of,
    too_small,
)
from zonal.snapshot import Snapshot
from zonal.tables.names import takes_catalog_options
from zonal.tables.protocol import Destination, Table, is_readable
from zonal.tables.registry import open_destination, read_snapshot, table_of
from zonal.values.arrays import Int64Array

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[["Step"], None]


@dataclass(frozen=True)
class Step:
    """How far a rewrite is: the commit, what it does, and how many of its tasks are done."""

    name: str
    commit: int = 1
    commits: int = 1
    done: int = 0
    total: int = 0
    rows: int = 0
    """Rows and bytes of the files that the commit replaces."""
    bytes: int = 0
    notice: str = ""
    """What the user should know meanwhile: what a run costs, or that Spark takes long, and what it waits for."""


@overload
def cluster(
    table: Table | str,
    *,
    by: str | Sequence[str] | None = None,
    layout: str | Layout | None = None,
    target_file_size: int | str | None = None,
    where: str | None = None,
    full: bool = False,
    into: str | None = None,
    max_bytes: int | str | None = None,
    commit_every: int | str | None = None,
    queries: Queries | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    runner: Runner | None = None,
    picture: bool | None = None,
    hide_literals: bool = False,
    keep_properties: bool = False,
    compression: str | None = None,
    verify: bool = False,
    dry_run: Literal[False] = False,
    database: Database = None,
    progress: Progress | None = None,
) -> Clustering: ...
@overload
def cluster(
    table: Table | str,
    *,
    dry_run: Literal[True],
    by: str | Sequence[str] | None = None,
    layout: str | Layout | None = None,
    target_file_size: int | str | None = None,
    where: str | None = None,
    full: bool = False,
    into: str | None = None,
    max_bytes: int | str | None = None,
    commit_every: int | str | None = None,
    queries: Queries | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    keep_properties: bool = False,
    compression: str | None = None,
) -> ClusteringPlan: ...
def cluster(
    table: Table | str,
    *,
    by: str | Sequence[str] | None = None,
    layout: str | Layout | None = None,
    target_file_size: int | str | None = None,
    where: str | None = None,
    full: bool = False,
    into: str | None = None,
    max_bytes: int | str | None = None,
    commit_every: int | str | None = None,
    queries: Queries | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    runner: Runner | None = None,
    picture: bool | None = None,
    hide_literals: bool = False,
    keep_properties: bool = False,
    compression: str | None = None,
    verify: bool = False,
    dry_run: bool = False,
    database: Database = None,
    progress: Progress | None = None,
) -> Clustering | ClusteringPlan:
    """Rewrite the files that aren't in the layout yet, so that queries on its columns skip most of them.

    Rows stay in their partition. All new files appear in one commit, or in several with `commit_every`; a run that
    fails leaves the table as it was. Before every commit rows are counted.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        by: the columns; with a curve's name in `layout`, or for `zorder`.
        layout: a curve's name, a whole layout such as `zorder(ts, id)`, or `tree` or `auto`, which are learned from
            `queries`; without it and `by`, the one that the table records.
        target_file_size: of the new files, in bytes or as in `128MB`.
        where: rewrite only files that might hold a matching row.
        full: rewrite files that are in the layout already, too.
        into: write a copy to `delta:…`, `parquet:…` or `iceberg:…`, and leave the table as it is.
        max_bytes: rewrite at most this much in one run.
        commit_every: commit after about this much.
        queries: paths of logs, `Logs`, or a workload: to learn from, and to compare predicted and actual reads.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        spark: the session to run in; by default, the one that runs, or a new one.
        master, remote, conf: the Spark master or Spark Connect server of a new session, and its settings.
        runner: runs the work elsewhere than on Spark.
        picture: draw the files before and after, for a page or a notebook; by default, of tables with up to 500 files.
        hide_literals: let the picture show no values that queries compare with.
        keep_properties: leave a Delta table's properties alone that keep readers from using a key's statistics;
            without, the commit changes them.
        compression: the codec of new files: zstd, snappy, gzip, lz4, brotli or none; without, the table's own, and
            for a copy zstd.
        verify: also compare a checksum of all rows, taken where they are read and where they are written.
        dry_run: change nothing, start no Spark, and return the plan.
        database: the history to which the run is added: a URL, an open `History`, or None for nowhere.
        progress: hears each step.

    Example:
        >>> plan = zonal.cluster("orders", by=["id", "day"], dry_run=True)
        >>> plan.layout, plan.files, plan.rows
        ('zorder(id, day)', 4, 40)
        >>> zonal.cluster("orders", by=["id", "day"]).added_files  # doctest: +SKIP
        1
    """
    check_arguments(locals())
    if dry_run:
        _refuse_copy(into)
        return plan_clustering(
            table, by=by, layout=layout, target_file_size=target_file_size, where=where, full=full, max_bytes=max_bytes,
            commit_every=commit_every, queries=queries, keep_properties=keep_properties, compression=compression,
            catalog=catalog, storage_options=storage_options,
        )  # fmt: skip
    codec = asked_codec(compression)
    account = RunAccount(time.monotonic(), picture, hide_literals, database)
    account.check()
    report = progress or _silent
    named = partial(table_of, catalog=catalog, storage_options=storage_options)
    source = named(table, catalog_options=into is not None and takes_catalog_options(into))
    report(Step("reading the table's metadata"))
    file_bytes = size_of(target_file_size, "target_file_size")
    destination = None
    if into is not None:
        _refuse_parts(where=where, full=full or None, max_bytes=max_bytes, commit_every=commit_every)
        _refuse_properties(keep=keep_properties)
        destination = open_destination(into, catalog=catalog, storage_options=storage_options)
    snapshot = read_snapshot(source)
    if into is None:
        rewritable(source, snapshot)

    def told(name: str, done: int, total: int) -> None:
        report(Step(name, done=done, total=total))

    learned = learned_for(source, snapshot, by, layout, file_bytes, queries, told)
    if learned is not None and learned.layout is None:
        return left(snapshot, learned, account)
    by, layout = (by, layout) if learned is None else (None, learned.layout)
    tell = partial(_tell_notice, report)
    running = nullcontext(runner) if runner is not None else spark_runner(spark, master, remote, conf, tell)
    if into is not None and destination is not None:
        again = partial(named, into, catalog_options=True)
        return _copied(
            source, snapshot, by, layout, file_bytes, destination, again, running, report, account, learned, codec,
            verify=verify,
        )  # fmt: skip
    job = Job.of(
        source, snapshot, by, layout, file_bytes, where=where, full=full, max_bytes=max_bytes, compression=codec
    )
    groups = job.groups(size_of(commit_every, "commit_every"))
    run = new_run()
    commits: list[Done] = []
    after = job.snapshot
    if groups:
        if small := too_small(job.snapshot, [path for paths in groups for path in paths], job.layout):
            report(Step("planning", notice=small))
        refuse_unwritable(job.table.writing(job.snapshot, layout=job.layout, run=run, compression=codec), run)
        ranks = _ranks(job, groups, size_of(commit_every, "commit_every"), run, codec, report)
        report(Step("starting Spark"))
        rewriter = partial(
            Rewriter, job.table, job.layout, run, choose=job.choose, tell=commits.append,
            keep_properties=keep_properties, compression=codec, verify=verify,
        )  # fmt: skip
        try:
            with running as run_steps:
                _rewrite(job, groups, ranks, partial(rewriter, runner=run_steps), report)
            report(Step("reading the table's metadata"))
            after = job.table.newest().snapshot()
        except (ZonalError, KeyboardInterrupt) as error:
            _tell_commits(error, commits)
            account.remember_part(job, run, sum(commits, Done()))
            raise
    return account.remembered(result_of(job.snapshot, after, job.layout, run, sum(commits, Done()), account, learned))


def _ranks(
    job: Job, groups: Sequence[Sequence[str]], every: int | None, run: str, codec: str | None, report: Progress
) -> Sequence[Ranks | None]:
    """Plan several commits of a run together: fit the ranks of each, and say what look-ups pay for them."""
    if len(groups) < 2:
        return [None] * len(groups)
    report(Step("planning the commits"))
    files = [still_there(job.snapshot, paths) for paths in groups]
    writing = job.table.writing(job.snapshot, layout=job.layout, run=run, compression=codec)
    division = divide(job.table, job.snapshot, files, job.layout, writing, by=job.divided_by(every))
    report(Step("planning the commits", notice=cost_text(division.lookups, len(groups))))
    return division.ranks


def _refuse_copy(into: str | None) -> None:
    if into is not None:
        raise ZonalError(f"{option('dry_run')} tells what a rewrite in place would do: leave out {option('into')}.")


def _refuse_properties(*, keep: bool) -> None:
    if keep:
        what = option("keep_properties")
        raise ZonalError(f"{what} is for a rewrite in place: a new table has no properties to keep.")


def _refuse_parts(**given: object) -> None:
    """Refuse options that select files: a copy is of the whole table."""
    options = [option(name) for name, value in given.items() if value is not None]
    if options:
        raise ZonalError(f"{option('into')} copies the whole table at once: leave out {', '.join(options)}.")


def _rewrite(
    job: Job,
    groups: Sequence[Sequence[str]],
    ranks: Sequence[Ranks | None],
    rewriter: Callable[..., Rewriter],
    report: Progress,
) -> None:
    """Rewrite the files of each commit, one commit after the other, each from the table's newest version."""
    for number, (paths, shared) in enumerate(zip(groups, ranks, strict=True)):
        snapshot = job.snapshot
        if number:
            snapshot = job.table.newest().snapshot()
            job.check(snapshot)
        files = still_there(snapshot, paths)
        steps = partial(_tell, report, _sized(snapshot, files, number + 1, len(groups)))
        rewriter(report=steps, ranks=shared).rewrite(snapshot, files, number)


def _tell_commits(error: ZonalError | KeyboardInterrupt, commits: Sequence[Done]) -> None:
    """Add to an error what was committed before it, and stays: only the caller of all commits knows."""
    versions = [version for done in commits for version in done.versions]
    if versions:
        many = f"{len(versions)} commits" if len(versions) > 1 else "1 commit"
        outcome = f"Before this, {many} of the run succeeded (up to {versions[-1]}); the next run goes on from there."
    elif isinstance(error, CommitUnknownError) or (isinstance(error, KeyboardInterrupt) and error.args):
        return
    else:
        outcome = "Nothing was committed."
    message = str(error)
    stop = "" if not message or message.endswith((".", "?", "!")) else "."
    error.args = (f"{message}{stop} {outcome}".lstrip(), *error.args[1:])


def _copied(
    source: Table,
    snapshot: Snapshot,
    by: str | Sequence[str] | None,
    layout: str | Layout | None,
    file_bytes: int | None,
    destination: Destination,
    copied: Callable[[], Table],
    running: AbstractContextManager[Runner],
    report: Progress,
    account: RunAccount,
    learned: Learned | None,
    compression: str | None,
    *,
    verify: bool,
) -> Clustering:
    if not is_readable(source):
        raise TableError(f"{quoted(source.name, limit=300)} can't be read by workers.")
    chosen = chosen_layout(snapshot, by, layout, file_bytes)
    refuse_columns(snapshot.schema, chosen)
    run = new_run()
    copy = plan_copy(source, snapshot, destination, chosen, run, compression)
    refuse_unwritable(copy.writing, run)
    report(Step("starting Spark"))
    told = partial(_tell, report, _sized(snapshot, np.arange(len(snapshot.files)), 1, 1))
    with running as run_steps:
        done = run_copy(copy, destination, run_steps, told, verify=verify)
    return account.remembered(result_of(snapshot, copied().snapshot(), chosen, run, done, account, learned))


def _silent(step: Step) -> None:
    """Tell nobody of a step, and of what makes it wait in a warning."""
    if step.notice:
        warnings.warn(step.notice, ZonalNotice, stacklevel=2)


def _sized(snapshot: Snapshot, files: Int64Array, commit: int, commits: int) -> Step:
    rows, sizes = snapshot.files.rows[files], snapshot.files.sizes[files]
    return Step("", commit, commits, rows=int(rows[rows > 0].sum()), bytes=int(sizes.sum()))


def _tell_notice(report: Progress, notice: str) -> None:
    report(Step("starting Spark", notice=notice))


def _tell(report: Progress, where: Step, name: str, done: int = 0, total: int = 0, notice: str = "") -> None:
    report(replace(where, name=name, done=done, total=total, notice=notice))
