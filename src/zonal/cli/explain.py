"""The command `zonal explain`: its options, and where its result goes."""

from datetime import datetime
from datetime import timezone as zones
from typing import Annotated

import typer
from rich.console import Console

from zonal.cli.options import (
    Catalog,
    DialectName,
    OutputAs,
    OutputFormat,
    ReportTo,
    StorageOptions,
    TableName,
    check_report,
    pairs,
    printing,
    write_report,
)
from zonal.display import Display
from zonal.report.terminal.progress import step_bar

UTC = zones.utc


def explain(
    table: TableName,
    where: Annotated[str | None, typer.Option(help="A condition, as behind WHERE.", show_default=False)] = None,
    sql: Annotated[str | None, typer.Option(help="A whole statement.", show_default=False)] = None,
    read_as: Annotated[
        str | None,
        typer.Option(
            "--as", "--name", help="The table's name in a statement that reads several.", show_default="its own"
        ),
    ] = None,
    dialect: DialectName = None,
    timezone: Annotated[str, typer.Option(help="Time zone of the session that runs the query.")] = "UTC",
    now: Annotated[datetime | None, typer.Option(help="What current_timestamp is, in UTC.", show_default="now")] = None,
    files: Annotated[bool, typer.Option("--files", help="List the files that are read.")] = False,
    footers: Annotated[
        bool | None,
        typer.Option(
            "--footers/--no-footers", help="Look into files for row groups and pages.", show_default="up to 1,000 files"
        ),
    ] = None,
    bloom: Annotated[bool, typer.Option("--bloom", help="Ask Bloom filters, too.")] = False,
    catalog: Catalog = None,
    storage_option: StorageOptions = None,
    output: OutputAs = OutputFormat.text,
    report: ReportTo = None,
) -> None:  # fmt: skip
    """Tell which partitions, files, row groups and pages a query reads, and what skipped the rest."""
    from zonal.report.explanation import explanation_blocks  # noqa: PLC0415
    from zonal.report.machine.json_form import to_json  # noqa: PLC0415
    from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
    from zonal.sql.dialect import Dialect  # noqa: PLC0415
    from zonal.verbs.explain import explain as look  # noqa: PLC0415 - `zonal --help` stays fast

    check_report(report)
    with step_bar() as progress:
        explanation = look(
            table, where=where, sql=sql, read_as=read_as,
            dialect=Dialect(dialect, timezone, None if now is None else now.replace(tzinfo=UTC)),
            footers=footers, bloom=bloom, display=Display(picture=report is not None), catalog=catalog,
            storage_options=pairs("--storage-option", storage_option), progress=progress,
        )  # fmt: skip
    with printing():
        if output is OutputFormat.json:
            typer.echo(to_json(explanation))
        else:
            print_blocks(Console(), explanation_blocks(explanation, files=files))
    if report is not None:
        from zonal.report.page.blocks import blocks_page  # noqa: PLC0415

        write_report(report, blocks_page(explanation_blocks(explanation)))
