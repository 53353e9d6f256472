"""The command `zonal cluster`: its options, and where its result goes."""

from typing import Annotated, Literal

import typer
from rich.console import Console

from zonal.cli.options import (
    Catalog,
    DatabaseUrl,
    HideLiterals,
    LogCap,
    LogDialect,
    LogHalfLife,
    LogNames,
    LogTimezone,
    LogViews,
    MaybeLogPaths,
    NoDatabase,
    OutputAs,
    OutputFormat,
    ReportTo,
    SparkConf,
    SparkRemote,
    StorageOptions,
    TableName,
    TargetFileSize,
    check_report,
    done_already,
    history,
    history_if_any,
    is_given,
    key_columns,
    names_in,
    pairs,
    printing,
    spark_master,
    views_in,
    write_report,
)
from zonal.display import Display
from zonal.errors import ZonalError
from zonal.report.terminal.progress import rewrite_bar


def cluster(
    context: typer.Context,
    table: TableName,
    by: Annotated[str | None, key_columns("the recorded layout's")] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="zorder, hilbert or linear; a whole layout, as in 'zorder(ts, id)'; or, learned from --queries, tree "
            "or auto (what advise says).",
            show_default="zorder",
        ),
    ] = None,
    queries: MaybeLogPaths = None,
    name: LogNames = None,
    dialect: LogDialect = None,
    timezone: LogTimezone = "UTC",
    view: LogViews = None,
    half_life: LogHalfLife = None,
    cap: LogCap = 0.2,
    hide_literals: HideLiterals = False,
    target_file_size: TargetFileSize = None,
    where: Annotated[
        str | None, typer.Option(help="Rewrite only files that might hold a matching row.", show_default=False)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Rewrite files that are in the layout already, too.")] = False,
    into: Annotated[
        str | None,
        typer.Option(help="Write a copy to delta:PATH, parquet:PATH or iceberg:NS.TABLE.", show_default=False),
    ] = None,
    keep_properties: Annotated[
        bool,
        typer.Option(
            "--keep-properties", help="Leave a Delta table's properties alone that keep readers from using statistics."
        ),
    ] = False,
    compression: Annotated[
        str | None,
        typer.Option(
            metavar="CODEC",
            help="Of the new files: zstd, snappy, gzip, lz4, brotli or none.",
            show_default="as the table has it, else zstd",
        ),
    ] = None,
    encodings: Annotated[
        Literal["plain", "modern"] | None,
        typer.Option(
            help="Encodings that readers of the new files know: modern is smaller, plain is for old readers.",
            show_default="as recorded, else modern for Delta, plain for Iceberg and Parquet",
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare a checksum of all rows before every commit, and not their number.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False,
    max_bytes: Annotated[
        str | None, typer.Option(help="Rewrite at most so much in this run, such as 10GB.", show_default=False)
    ] = None,
    commit_every: Annotated[
        str | None, typer.Option(help="Commit after about so much, such as 50GB.", show_default="once, at the end")
    ] = None,
    pays_within: Annotated[
        str | None,
        typer.Option(
            metavar="SCANS|DAYS",
            help="Merge only what queries of the log pay for within so many scans, as 20, or days, as 30d.",
            show_default="20",
        ),
    ] = None,
    max_amplification: Annotated[
        float | None, typer.Option(help="Most bytes to rewrite per byte that arrived.", show_default="3")
    ] = None,
    master: Annotated[str | None, spark_master("local[*]")] = None,
    remote: SparkRemote = None,
    conf: SparkConf = None,
    catalog: Catalog = None,
    storage_option: StorageOptions = None,
    database: DatabaseUrl = None,
    no_database: NoDatabase = False,
    output: OutputAs = OutputFormat.text,
    report: ReportTo = None,
) -> None:
    """Rewrite a table, on Spark, so that queries skip most of its files, and commit the new files atomically."""
    from zonal.report.clustering import clustering_blocks, committed_text, plan_blocks  # noqa: PLC0415
    from zonal.report.machine.json_form import to_json, without_cuts  # noqa: PLC0415
    from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
    from zonal.rewriting.new_files import NewFiles  # noqa: PLC0415
    from zonal.rewriting.scope import Scope  # noqa: PLC0415
    from zonal.spark.place import Spark  # noqa: PLC0415
    from zonal.verbs.cluster import Options  # noqa: PLC0415
    from zonal.verbs.cluster import cluster as rewrite  # noqa: PLC0415
    from zonal.workload.logs import Logs  # noqa: PLC0415

    check_report(report)
    for each in () if queries else ("name", "view", "dialect", "timezone", "half_life", "cap"):
        if is_given(context, each):
            raise ZonalError(f"--{each.replace('_', '-')} tells how to read --queries: give a log, or leave it out.")
    logs = Logs(queries, name or (), dialect, timezone, views_in(view), half_life, cap) if queries else None
    options: Options = {
        "by": names_in(by), "layout": layout, "queries": logs, "into": into,
        "files": NewFiles(target_file_size, compression, keep_properties, verify, encodings),
        "scope": Scope(where, full, max_bytes, commit_every, pays_within, max_amplification),
        "spark": Spark(master, remote, pairs("--conf", conf)),
        "display": Display(report is not None, hide_literals),
        "catalog": catalog, "storage_options": pairs("--storage-option", storage_option),
    }  # fmt: skip
    if dry_run:
        if report is not None:
            raise ZonalError("--report draws the files that a rewrite made: leave it out, or --dry-run.")
        with history_if_any(database, none=no_database) as kept:
            options["database"] = kept
            plan = rewrite(table, **options, dry_run=True)
        typer.echo(
            to_json(without_cuts(plan) if hide_literals else plan)
        ) if output is OutputFormat.json else print_blocks(Console(), plan_blocks(plan))
        return
    with history(database, none=no_database) as kept, rewrite_bar() as progress:
        options.update({"database": kept, "progress": progress})
        done = rewrite(table, **options)
    with done_already(committed_text(done)):
        with printing():
            typer.echo(
                to_json(without_cuts(done) if hide_literals else done)
            ) if output is OutputFormat.json else print_blocks(Console(), clustering_blocks(done))
        if report is not None:  # a page that can't be written must not hide what was committed
            from zonal.report.page.blocks import blocks_page  # noqa: PLC0415

            write_report(report, blocks_page(clustering_blocks(done)))
