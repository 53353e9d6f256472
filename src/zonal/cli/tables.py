"""The command `zonal tables`: its options, and where its result goes."""

import json
from typing import Annotated

import typer

from zonal.cli.options import OutputAs, OutputFormat, StorageOptions, pairs, printing


def tables(
    catalog: Annotated[
        str | None,
        typer.Argument(
            metavar="[CATALOG]",
            help="The catalog, as PyIceberg is configured for it; by default, its default.",
            show_default=False,
        ),
    ] = None,
    storage_option: StorageOptions = None,
    output: OutputAs = OutputFormat.text,
) -> None:
    """List the Iceberg tables of a catalog, by the names that the other commands take."""
    from zonal.report.terminal.text import printable  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.verbs.tables import list_tables  # noqa: PLC0415

    found = list_tables(catalog, storage_options=pairs("--storage-option", storage_option))
    with printing():
        if output is OutputFormat.json:
            typer.echo(json.dumps(found))
        for name in found if output is OutputFormat.text else ():
            typer.echo(printable(name))
