"""The command `zonal append`: its options, and where its result goes."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from zonal.cli.options import (
    Catalog,
    DatabaseUrl,
    NoDatabase,
    OutputAs,
    OutputFormat,
    SparkConf,
    SparkRemote,
    StorageOptions,
    TableName,
    done_already,
    history,
    key_columns,
    names_in,
    pairs,
    printing,
    spark_master,
)
from zonal.errors import ZonalError, quoted
from zonal.report.terminal.progress import rewrite_bar

if TYPE_CHECKING:
    from zonal.verbs.append import AppendOptions


def append(
    table: TableName,
    files: Annotated[
        list[str], typer.Argument(metavar="FILES…", help="Parquet files, folders of them, or other tables.")
    ],
    by: Annotated[str | None, key_columns("those of the recorded layout; needed where there is none")] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="zorder, hilbert or linear, or a whole layout, where the table records none.", show_default="zorder"
        ),
    ] = None,
    transaction: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:NUMBER",
            help="Append nothing if the table has this number of the name, or a higher one, already.",
            show_default=False,
        ),
    ] = None,
    master: Annotated[str | None, spark_master("here")] = None,
    remote: SparkRemote = None,
    conf: SparkConf = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the rows, print what would be written, and change nothing.")
    ] = False,
    catalog: Catalog = None,
    storage_option: StorageOptions = None,
    database: DatabaseUrl = None,
    no_database: NoDatabase = False,
    output: OutputAs = OutputFormat.text,
) -> None:
    """Append rows to a Delta or Iceberg table in one atomic commit; their files are in the table's layout already."""
    from zonal.report.appended import append_plan_blocks, appended_blocks, appended_text  # noqa: PLC0415
    from zonal.report.machine.json_form import to_json  # noqa: PLC0415
    from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
    from zonal.spark.place import Spark  # noqa: PLC0415
    from zonal.verbs.append import append as add  # noqa: PLC0415

    on_spark = Spark(master, remote, pairs("--conf", conf)) if master or remote or conf else None
    batch = None if transaction is None else _batch(transaction)
    with history(database, none=no_database) as kept, rewrite_bar() as progress:
        options: AppendOptions = {
            "by": names_in(by), "layout": layout, "transaction": batch, "spark": on_spark, "catalog": catalog,
            "storage_options": pairs("--storage-option", storage_option), "database": kept, "progress": progress,
        }  # fmt: skip
        planned = add(table, files, **options, dry_run=True) if dry_run else None
        done = None if dry_run else add(table, files, **options)
    if planned is not None:
        is_json = output is OutputFormat.json
        typer.echo(to_json(planned)) if is_json else print_blocks(Console(), append_plan_blocks(planned))
    if done is None:
        return
    with done_already(appended_text(done)), printing():
        typer.echo(to_json(done)) if output is OutputFormat.json else print_blocks(Console(), appended_blocks(done))


def _batch(text: str) -> tuple[str, int]:
    """Read the name and the number of a batch; a name may have colons itself."""
    name, _, number = text.rpartition(":")
    if not name or not (number.isascii() and number.isdecimal()):
        raise ZonalError(f"--transaction {quoted(text)} is not a name and a number, as in nightly:20260118.")
    return name, int(number)
