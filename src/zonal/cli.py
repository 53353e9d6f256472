"""The command line: `zonal VERB …`. Verbs live in their own modules; here they get their options and their errors."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from zonal import __version__
from zonal.errors import ZonalError

app = typer.Typer(
    name="zonal",
    help="Make lakehouse tables skippable: cluster Iceberg, Delta and Parquet data over many columns at once.",
    epilog="Exit codes: 0 done, 1 an error that the message explains, 2 a command that can't be understood.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"zonal {__version__}")
        raise typer.Exit


@app.callback()
def zonal(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Make lakehouse tables skippable: cluster Iceberg, Delta and Parquet data over many columns at once."""


@app.command()
def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="Parquet file or folder to use instead of the made telemetry.", show_default=False),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Columns to cluster by, separated by commas.", show_default="ts,payload_id")
    ] = None,
    rows: Annotated[int, typer.Option(min=1_000, max=50_000_000, help="Rows of telemetry to make.")] = 2_000_000,
    files: Annotated[int, typer.Option(min=2, max=10_000, help="Files to write for each layout.")] = 60,
    into: Annotated[
        Path | None, typer.Option(help="New folder that keeps the files; by default they are removed.")
    ] = None,
) -> None:
    """Cluster data in several layouts, write them as Parquet, and show what their statistics let queries skip."""
    from zonal.demo import run  # noqa: PLC0415 - `zonal --help` stays fast

    columns = None if by is None else [name.strip() for name in by.split(",")]
    run(Console(), data=data, by=columns, rows=rows, files=files, into=into)


def main() -> None:
    """Run the command line; a `ZonalError` becomes a message and exit code 1."""
    try:
        app()
    except ZonalError as error:
        Console(stderr=True).print(f"Error: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
