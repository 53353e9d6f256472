"""The command line: `zonal VERB …`. Verbs live in their own modules; here they get their options and their errors."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from datetime import timezone as zones
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from zonal import __version__
from zonal.errors import ZonalError, quoted

if TYPE_CHECKING:
    from zonal.tables.table import Table
    from zonal.verbs.cluster import Step

UTC = zones.utc

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
    rows: Annotated[int, typer.Option(min=1_000, max=20_000_000, help="Rows of telemetry to make.")] = 3_000_000,
    files: Annotated[int, typer.Option(min=2, max=10_000, help="Files of a table before it is clustered.")] = 240,
    table_format: Annotated[
        Literal["delta", "iceberg", "both"] | None,
        typer.Option("--format", help="Format of the tables.", show_default="both; delta for --data"),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="New folder that keeps the tables; by default they are removed.")
    ] = None,
) -> None:
    """Make tables as data arrives, cluster them on Spark, and show what queries read before and after."""
    from zonal.demo.showing import run  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.demo.story import Request  # noqa: PLC0415

    columns = _names(by)
    chosen = table_format or ("both" if data is None else "delta")
    formats = ("delta", "iceberg") if chosen == "both" else (chosen,)
    run(Console(), Request(rows, files, formats, data, None if columns is None else tuple(columns), into))


class Output(str, Enum):
    """What results are printed as."""

    text = "text"
    json = "json"


TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A path, parquet:PATH, delta:PATH[@VERSION], iceberg:NAMESPACE.TABLE[@SNAPSHOT], or ….metadata.json.",
        show_default=False,
    ),
]  # fmt: skip
Catalog = Annotated[str | None, typer.Option(help="PyIceberg catalog of an iceberg: table.", show_default=False)]
Storage = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option", metavar="KEY=VALUE", help="Option of the storage; may be repeated.", show_default=False
    ),
]
OutputAs = Annotated[Output, typer.Option("--output", help="What to print.")]


@app.command()
def show(
    table: TableName,
    columns: Annotated[
        str | None, typer.Option(help="Columns to look at, separated by commas.", show_default=False)
    ] = None,
    catalog: Catalog = None,
    storage_option: Storage = None,
    output: OutputAs = Output.text,
) -> None:
    """Show the health of a table's layout: files, sizes, and how well each column skips."""
    from zonal.report.jsonform import to_json  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.report.text import print_health  # noqa: PLC0415
    from zonal.verbs.show import show as measure  # noqa: PLC0415

    with _progress("reading the table's metadata") as step:
        health = measure(_open(table, catalog, storage_option), columns=_names(columns), progress=step)
    if output is Output.json:
        typer.echo(to_json(health))
    else:
        print_health(Console(), health)


@app.command()
def explain(
    table: TableName,
    where: Annotated[str | None, typer.Option(help="A condition, as behind WHERE.", show_default=False)] = None,
    sql: Annotated[str | None, typer.Option(help="A whole SELECT.", show_default=False)] = None,
    read_as: Annotated[
        str | None, typer.Option("--as", help="The table's name in a query that reads several.", show_default=False)
    ] = None,
    dialect: Annotated[str | None, typer.Option(help="SQL dialect: spark, trino, duckdb …", show_default=False)] = None,
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
    storage_option: Storage = None,
    output: OutputAs = Output.text,
) -> None:  # fmt: skip
    """Tell which partitions, files, row groups and pages a query reads, and what skipped the rest."""
    from zonal.report.jsonform import to_json  # noqa: PLC0415
    from zonal.report.text import print_explanation  # noqa: PLC0415
    from zonal.verbs.explain import explain as look  # noqa: PLC0415 - `zonal --help` stays fast

    with _progress("reading the table's metadata") as step:
        found = look(
            _open(table, catalog, storage_option), where=where, sql=sql, read_as=read_as, dialect=dialect,
            timezone=timezone, now=None if now is None else now.replace(tzinfo=UTC), footers=footers, bloom=bloom,
            progress=step,
        )  # fmt: skip
    if output is Output.json:
        typer.echo(to_json(found))
    else:
        print_explanation(Console(), found, files=files)


@app.command()
def cluster(
    table: TableName,
    by: Annotated[
        str | None,
        typer.Option(help="Columns to cluster by, separated by commas.", show_default="the recorded layout's"),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="zorder, hilbert or linear; or a whole layout, as in 'zorder(ts, id)'.", show_default="zorder"
        ),
    ] = None,
    target_file_size: Annotated[
        str | None, typer.Option(help="Size of the new files, such as 128MB.", show_default="128MiB")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="Rewrite only files that might hold a matching row.", show_default=False)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Rewrite files that are in the layout already, too.")] = False,
    into: Annotated[
        str | None,
        typer.Option(help="Write a copy to delta:PATH, parquet:PATH or iceberg:NS.TABLE.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False,
    max_bytes: Annotated[
        str | None, typer.Option(help="Rewrite at most so much in this run, such as 10GB.", show_default=False)
    ] = None,
    commit_every: Annotated[
        str | None, typer.Option(help="Commit after about so much, such as 50GB.", show_default="once, at the end")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark master.", show_default="local[*]")] = None,
    remote: Annotated[str | None, typer.Option(help="Spark Connect server, as sc://HOST.", show_default=False)] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting; may be repeated.", show_default=False),
    ] = None,
    catalog: Catalog = None,
    storage_option: Storage = None,
    output: OutputAs = Output.text,
) -> None:
    """Rewrite a table on Spark so that queries skip most of its files, and commit the new files atomically."""
    from zonal.report.clustering import print_clustering, print_plan  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.report.jsonform import to_json  # noqa: PLC0415
    from zonal.verbs import cluster as verb  # noqa: PLC0415

    options: dict[str, Any] = {
        "by": _names(by), "layout": layout, "target_file_size": target_file_size, "where": where, "full": full,
        "max_bytes": max_bytes, "commit_every": commit_every, "catalog": catalog,
        "storage_options": _pairs("--storage-option", storage_option),
    }  # fmt: skip
    if dry_run:
        if into is not None:
            raise ZonalError("--dry-run tells what a rewrite in place would do: leave out --into.")
        plan = verb.plan_clustering(table, **options)
        typer.echo(to_json(plan)) if output is Output.json else print_plan(Console(), plan)
        return
    with _steps() as progress:
        done = verb.cluster(
            table, **options, into=into, master=master, remote=remote, conf=_pairs("--conf", conf), progress=progress
        )
    typer.echo(to_json(done)) if output is Output.json else print_clustering(Console(), done)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _open(name: str, catalog: str | None, options: list[str] | None) -> "Table":
    from zonal.tables.opening import open_table  # noqa: PLC0415

    return open_table(name, catalog=catalog, storage_options=_pairs("--storage-option", options))


def _pairs(option: str, values: list[str] | None) -> dict[str, str]:
    wrong = [value for value in values or [] if "=" not in value]
    if wrong:
        raise ZonalError(f"{option} {quoted(wrong[0].partition('=')[0])} is not KEY=VALUE.")
    return dict(value.split("=", 1) for value in values or [])


@contextmanager
def _steps() -> "Iterator[Callable[[Step], None] | None]":
    """Show a bar of the steps of a rewrite, with the time that is left, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from zonal.report.text import size_text  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(step: "Step") -> None:
            where = f"commit {step.commit} of {step.commits}: " if step.commits > 1 else ""
            what = f" {step.rows:,} rows, {size_text(step.bytes)}" if step.total else ""
            bar.update(task, description=where + step.name + what, completed=step.done, total=step.total or None)

        yield report


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar while something long runs, on a terminal only and apart from the results."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, description="reading footers", completed=done, total=total)


def main() -> None:
    """Run the command line; a `ZonalError` becomes a message and exit code 1."""
    try:
        app()
    except ZonalError as error:
        Console(stderr=True).print(f"Error: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
