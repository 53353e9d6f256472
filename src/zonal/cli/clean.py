"""The command `zonal clean`: its options, and where its result goes."""

from typing import Annotated

import typer
from rich.console import Console

from zonal.cleaning.retention import SAFE_AGE
from zonal.cli.options import (
    Catalog,
    OutputAs,
    OutputFormat,
    StorageOptions,
    TableName,
    done_already,
    pairs,
    printing,
)
from zonal.report.terminal.progress import step_bar


def clean(
    table: TableName,
    expire: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Also versions that are older, as in 7d, and files that only they need.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it: move files to the quarantine, or --purge it.")] = False,
    undo: Annotated[
        str | None, typer.Option(metavar="RUN", help="Bring the files of a run back.", show_default=False)
    ] = None,
    purge: Annotated[bool, typer.Option("--purge", help="Delete what is in quarantine for good.")] = False,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Age of leftovers, and of a quarantine that is deleted.")
    ] = SAFE_AGE,
    ignore_retention: Annotated[
        bool,
        typer.Option("--ignore-retention", help="Let expire what the table promises to keep; allow ages below a day."),
    ] = False,
    catalog: Catalog = None,
    storage_option: StorageOptions = None,
    output: OutputAs = OutputFormat.text,
) -> None:
    """Find files that no version of a table needs; with --yes, move them to a quarantine in its folder."""
    from zonal.report.cleaning import cleaning_blocks, done_text  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.report.machine.json_form import to_json  # noqa: PLC0415
    from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
    from zonal.verbs.clean import clean as tidy  # noqa: PLC0415

    with step_bar() as progress:
        done = tidy(
            table, expire=expire, yes=yes, undo=undo, purge=purge, older_than=older_than,
            ignore_retention=ignore_retention, catalog=catalog,
            storage_options=pairs("--storage-option", storage_option), progress=progress,
        )  # fmt: skip
    with done_already(done_text(done)), printing():
        typer.echo(to_json(done)) if output is OutputFormat.json else print_blocks(Console(), cleaning_blocks(done))
