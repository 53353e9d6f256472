"""The command `zonal advise`: its options, and where its result goes."""

from typing import Annotated

import typer
from rich.console import Console

from zonal.cli.options import (
    Catalog,
    HideLiterals,
    LogCap,
    LogDialect,
    LogHalfLife,
    LogNames,
    LogPaths,
    LogTimezone,
    LogViews,
    OutputAs,
    OutputFormat,
    ReportTo,
    SampleRows,
    Seed,
    StorageOptions,
    TableName,
    TargetFileSize,
    check_report,
    pairs,
    printing,
    views_in,
    write_report,
)
from zonal.display import Display
from zonal.report.terminal.progress import step_bar


def advise(
    table: TableName,
    queries: LogPaths,
    name: LogNames = None,
    dialect: LogDialect = None,
    timezone: LogTimezone = "UTC",
    view: LogViews = None,
    target_file_size: TargetFileSize = None,
    half_life: LogHalfLife = None,
    cap: LogCap = 0.2,
    scan_price: Annotated[float, typer.Option(metavar="DOLLARS", help="Price of a TB that queries read.")] = 5.0,
    core_hour_price: Annotated[float, typer.Option(metavar="DOLLARS", help="Price of a core-hour.")] = 0.05,
    storage_price: Annotated[float, typer.Option(metavar="DOLLARS", help="Price of a GB stored for a month.")] = 0.023,
    keep_days: Annotated[float, typer.Option(metavar="DAYS", help="Days for which replaced files are kept.")] = 7.0,
    per_day: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Scans of the table a day.", show_default="as in the logs")
    ] = None,
    hide_literals: HideLiterals = False,
    sample_rows: SampleRows = 60_000,
    seed: Seed = 0,
    catalog: Catalog = None,
    storage_option: StorageOptions = None,
    output: OutputAs = OutputFormat.text,
    report: ReportTo = None,
) -> None:
    """Say which layout lets the queries of a log read least, what it costs, and whether it is worth it."""
    from zonal.advising.advice import Prices  # noqa: PLC0415
    from zonal.report.advice import advice_blocks  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.report.command import CommandOptions  # noqa: PLC0415
    from zonal.report.machine.json_form import to_json  # noqa: PLC0415
    from zonal.report.page.blocks import blocks_page  # noqa: PLC0415
    from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
    from zonal.study.sampling import Sampling  # noqa: PLC0415
    from zonal.verbs.advise import advise as learn  # noqa: PLC0415
    from zonal.workload.logs import Logs  # noqa: PLC0415

    check_report(report)
    logs = Logs(queries, name or (), dialect, timezone, views_in(view), half_life, cap)
    options = pairs("--storage-option", storage_option)
    with step_bar() as progress:
        advice = learn(
            table, queries=logs, target_file_size=target_file_size,
            prices=Prices(scan_price, core_hour_price, storage_price, keep_days), per_day=per_day,
            sampling=Sampling(rows=sample_rows, seed=seed), display=Display(report is not None, hide_literals),
            catalog=catalog, storage_options=options, progress=progress,
        )  # fmt: skip
    given = CommandOptions(table, logs, tuple(view or ()), catalog, tuple(options))
    blocks = list(advice_blocks(advice, given))
    with printing():
        typer.echo(to_json(advice)) if output is OutputFormat.json else print_blocks(Console(), blocks)
    if report is not None:
        write_report(report, blocks_page(blocks))
    if advice.verdict == "unknown":
        raise typer.Exit(1)
