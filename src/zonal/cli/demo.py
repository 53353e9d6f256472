"""The command `zonal demo`: its options, and where its result goes."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from zonal.cli.options import check_report, key_columns, names_in
from zonal.errors import quoted


def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="Parquet file or folder to use instead of the made telemetry.", show_default=False),
    ] = None,
    by: Annotated[str | None, key_columns("what a log of queries says")] = None,
    rows: Annotated[int, typer.Option(min=1_000, max=20_000_000, help="Rows of telemetry to make.")] = 1_000_000,
    files: Annotated[int, typer.Option(min=2, max=10_000, help="Files of a table before it is clustered.")] = 240,
    table_format: Annotated[
        Literal["delta", "iceberg", "both"] | None,
        typer.Option("--format", help="Format of the tables.", show_default="both; delta for --data"),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="New folder that keeps tables, log and history.", show_default="they are removed"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Where the page goes; of two tables, two pages: FILE-delta.html and FILE-iceberg.html.",
            show_default="report.html in the folder of --into, or a temporary file",
        ),
    ] = None,
) -> None:
    """Tell the story of a table, measured: as it arrives, clustered, spoiled by another tool, caught, and repaired."""
    from zonal.demo.story import OWN_FORMAT, DemoRequest  # noqa: PLC0415
    from zonal.demo.terminal import run  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.demo.writers import WRITERS  # noqa: PLC0415

    check_report(report)
    columns = names_in(by)
    chosen = table_format or ("both" if data is None else OWN_FORMAT)
    formats = ("delta", "iceberg") if chosen == "both" else (chosen,)
    for name in formats:
        WRITERS[name].check()
    request = DemoRequest(rows, files, formats, data, None if columns is None else tuple(columns), into, report)
    try:
        run(Console(), request)
    except KeyboardInterrupt:  # one from inside a rewrite knows only of that rewrite
        raise KeyboardInterrupt(_left(into)) from None


def _left(into: Path | None) -> str:
    """Say what a stopped demonstration leaves: all of its tables if the story had ended, else nothing."""
    if into is not None and into.is_dir() and any(into.iterdir()):
        return f"The tables in {quoted(str(into), limit=300)} are complete."
    return "What it made is removed. Nothing else was changed."
