"""The command line: `zonal VERB …`. Verbs live in their own modules; here they get their options and their errors."""

import sys
from datetime import datetime
from datetime import timezone as zones
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from zonal import __version__
from zonal.errors import ZonalError, quoted
from zonal.report.bars import footer_bar, rewrite_bar, step_bar

if TYPE_CHECKING:
    from zonal.tables.table import Table

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
Dialect = Annotated[str | None, typer.Option(help="SQL dialect: spark, trino, duckdb …", show_default=False)]
LogDialect = Annotated[
    str | None, typer.Option("--dialect", help="SQL dialect of the logs.", show_default="the one that reads most")
]
LogTimezone = Annotated[str, typer.Option("--timezone", help="Time zone of the sessions that ran the queries.")]
LogViews = Annotated[
    list[str] | None,
    typer.Option(
        "--view", metavar="NAME=FILE.sql", help="A view that queries read; may be repeated.", show_default=False
    ),
]
LogHalfLife = Annotated[
    float | None,
    typer.Option(
        "--half-life", metavar="DAYS", help="Days after which a query counts half.", show_default="all count the same"
    ),
]
LogCap = Annotated[float, typer.Option("--cap", metavar="SHARE", help="The most that one query may weigh of all.")]
LogNames = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Name of the table in the logs, besides its own; may be repeated.",
        show_default=False,
    ),
]
MOST_VIEW_BYTES = 2_000_000
LOGS = "A log of queries (.sql, .jsonl, .csv, .parquet, Spark event log) or a folder of them; may be repeated."


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

    with footer_bar("reading the table's metadata") as step:
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
    dialect: Dialect = None,
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

    with footer_bar("reading the table's metadata") as step:
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
def advise(
    table: TableName,
    queries: Annotated[list[str], typer.Option("--queries", metavar="LOG", help=LOGS, show_default=False)],
    name: LogNames = None,
    dialect: LogDialect = None,
    timezone: LogTimezone = "UTC",
    view: LogViews = None,
    target_file_size: Annotated[
        str | None, typer.Option(help="Size of the new files, such as 128MB.", show_default="128MiB")
    ] = None,
    half_life: LogHalfLife = None,
    cap: LogCap = 0.2,
    scan_price: Annotated[float, typer.Option(metavar="DOLLARS", help="Price of a TB that queries read.")] = 5.0,
    core_hour_price: Annotated[float, typer.Option(metavar="DOLLARS", help="Price of a core-hour.")] = 0.05,
    storage_price: Annotated[float, typer.Option(metavar="DOLLARS", help="Price of a GB stored for a month.")] = 0.023,
    keep_days: Annotated[float, typer.Option(metavar="DAYS", help="Days for which replaced files are kept.")] = 7.0,
    per_day: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Scans of the table a day.", show_default="as in the logs")
    ] = None,
    hide_literals: Annotated[
        bool, typer.Option("--hide-literals", help="Print no values that queries compare with.")
    ] = False,
    sample_rows: Annotated[int, typer.Option(metavar="NUMBER", help="Rows to look at.")] = 60_000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    catalog: Catalog = None,
    storage_option: Storage = None,
    output: OutputAs = Output.text,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page, too.", show_default=False)
    ] = None,
) -> None:
    """Say which layout lets the queries of a log read least, what it costs, and whether it is worth it."""
    from zonal.report.advice import print_advice  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.report.command import Given  # noqa: PLC0415
    from zonal.report.html import advice_page  # noqa: PLC0415
    from zonal.report.jsonform import to_json  # noqa: PLC0415
    from zonal.verbs.advise import advise as learn  # noqa: PLC0415
    from zonal.workload.logs import Logs  # noqa: PLC0415

    _check_report(report)
    logs = Logs(queries, name or (), dialect, timezone, _views(view), half_life, cap)
    options = _pairs("--storage-option", storage_option)
    with step_bar() as progress:
        advice = learn(
            table, queries=logs, target_file_size=target_file_size, scan_price=scan_price,
            core_hour_price=core_hour_price, storage_price=storage_price, keep_days=keep_days, per_day=per_day,
            hide_literals=hide_literals, sample_rows=sample_rows, seed=seed, catalog=catalog, storage_options=options,
            progress=progress,
        )  # fmt: skip
    given = Given(table, logs, tuple(view or ()), catalog, tuple(options))
    if report is not None:
        _write_report(report, advice_page(advice, given))
    typer.echo(to_json(advice)) if output is Output.json else print_advice(Console(), advice, given)
    if advice.verdict == "unknown":
        raise typer.Exit(1)


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
            help="zorder, hilbert or linear; a whole layout, as in 'zorder(ts, id)'; or, learned from --queries, tree "
            "or auto (what advise says).",
            show_default="zorder",
        ),
    ] = None,
    queries: Annotated[
        list[str] | None, typer.Option("--queries", metavar="LOG", help=LOGS, show_default=False)
    ] = None,
    name: LogNames = None,
    dialect: LogDialect = None,
    timezone: LogTimezone = "UTC",
    view: LogViews = None,
    half_life: LogHalfLife = None,
    cap: LogCap = 0.2,
    hide_literals: Annotated[
        bool,
        typer.Option("--hide-literals", help="Print no cuts of a tree: they are values that queries compare with."),
    ] = False,
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
    from zonal.report.jsonform import to_json, without_cuts  # noqa: PLC0415
    from zonal.verbs import cluster as verb  # noqa: PLC0415
    from zonal.workload.logs import Logs  # noqa: PLC0415

    if (name or view or dialect is not None) and not queries:
        raise ZonalError("--name, --view and --dialect tell how to read --queries: give a log, or leave them out.")
    logs = Logs(queries, name or (), dialect, timezone, _views(view), half_life, cap) if queries else None
    options: dict[str, Any] = {
        "by": _names(by), "layout": layout, "target_file_size": target_file_size, "where": where, "full": full,
        "max_bytes": max_bytes, "commit_every": commit_every, "queries": logs, "catalog": catalog,
        "storage_options": _pairs("--storage-option", storage_option),
    }  # fmt: skip
    if dry_run:
        if into is not None:
            raise ZonalError("--dry-run tells what a rewrite in place would do: leave out --into.")
        plan = verb.plan_clustering(table, **options)
        typer.echo(to_json(without_cuts(plan) if hide_literals else plan)) if output is Output.json else print_plan(
            Console(), plan
        )
        return
    with rewrite_bar() as progress:
        done = verb.cluster(
            table, **options, into=into, master=master, remote=remote, conf=_pairs("--conf", conf), progress=progress
        )
    typer.echo(to_json(without_cuts(done) if hide_literals else done)) if output is Output.json else print_clustering(
        Console(), done
    )


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


def _views(values: list[str] | None) -> dict[str, str]:
    """Read the queries of views from their files."""
    found = {}
    for name, path in _pairs("--view", values).items():
        try:
            with Path(path).open("rb") as file:
                data = file.read(MOST_VIEW_BYTES + 1)
            found[name] = data.decode()
        except OSError as error:
            raise ZonalError(
                f"The view {quoted(name)} can't be read from {quoted(path, limit=300)}: {error.strerror}."
            ) from None
        except ValueError:
            raise ZonalError(f"The view {quoted(name)} is not text in UTF-8: {quoted(path, limit=300)}.") from None
        if len(data) > MOST_VIEW_BYTES:
            raise ZonalError(f"The view {quoted(name)} has more than {MOST_VIEW_BYTES:,} bytes: give its SELECT alone.")
    return found


def _check_report(path: Path | None) -> None:
    """Refuse a page that can't be written before the work begins."""
    if path is None:
        return
    if path.suffix.casefold() not in (".html", ".htm"):
        raise ZonalError(f"--report {quoted(str(path), limit=300)} is no name of a page: let it end in .html.")
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else "lies in a folder that doesn't exist"
        raise ZonalError(f"--report {quoted(str(path), limit=300)} {what}.")


def _write_report(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ZonalError(f"{quoted(str(path), limit=300)} can't be written: {error.strerror}.") from None


def main() -> None:
    """Run the command line; a `ZonalError` becomes a message and exit code 1."""
    try:
        app()
    except ZonalError as error:
        Console(stderr=True).print(f"Error: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
