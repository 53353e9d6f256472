"""The command `zonal show`: its options, and where its result goes."""

from typing import Annotated

import typer
from rich.console import Console

from zonal.cli.options import (
    Catalog,
    DatabaseUrl,
    NoDatabase,
    OutputAs,
    OutputFormat,
    ReportTo,
    StorageOptions,
    TableName,
    check_report,
    history_if_any,
    names_in,
    pairs,
    printing,
    write_report,
)
from zonal.display import Display
from zonal.report.terminal.progress import step_bar


def show(
    table: TableName,
    columns: Annotated[
        str | None, typer.Option(help="Columns to look at, separated by commas.", show_default=False)
    ] = None,
    catalog: Catalog = None,
    storage_option: StorageOptions = None,
    database: DatabaseUrl = None,
    no_database: NoDatabase = False,
    output: OutputAs = OutputFormat.text,
    report: ReportTo = None,
) -> None:
    """Show the health of a table's layout: files, sizes, and how well each column skips."""
    from zonal.report.health import health_blocks  # noqa: PLC0415
    from zonal.report.machine.json_form import to_json  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
    from zonal.verbs.show import show as measure  # noqa: PLC0415

    check_report(report)
    with history_if_any(database, none=no_database) as kept, step_bar() as progress:
        health = measure(
            table, columns=names_in(columns), display=Display(picture=report is not None), database=kept,
            catalog=catalog, storage_options=pairs("--storage-option", storage_option), progress=progress,
        )  # fmt: skip
    with printing():
        if output is OutputFormat.json:
            typer.echo(to_json(health))
        else:
            print_blocks(Console(), health_blocks(health))
    if report is not None:
        from zonal.report.page.blocks import blocks_page  # noqa: PLC0415

        write_report(report, blocks_page(health_blocks(health)))
