"""Options that several commands share, and how their values are read."""

import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from zonal.errors import ZonalError, ZonalNotice, quoted

if TYPE_CHECKING:
    from zonal.history.store import History
    from zonal.tables.protocol import Table


class OutputFormat(str, Enum):
    """What results are printed as."""

    text = "text"
    json = "json"


TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help=escape(
            "A path, parquet:PATH, delta:PATH[@VERSION], iceberg:NAMESPACE.TABLE[@SNAPSHOT], or ….metadata.json."
        ),
        show_default=False,
    ),
]  # fmt: skip
Catalog = Annotated[str | None, typer.Option(help="PyIceberg catalog of an iceberg: table.", show_default=False)]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        show_default=False,
        help="Option of the storage; may be repeated. @env:NAME and @file:PATH are values that stand there.",
    ),
]
OUTPUT = typer.Option("--output", help="What to print.")
OutputAs = Annotated[OutputFormat, OUTPUT]
ReportTo = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write a page, too.", show_default=False)
]
DialectName = Annotated[str | None, typer.Option(help="SQL dialect: spark, trino, duckdb …", show_default=False)]
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
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="Database of audits and rewrites.",
        show_default="$ZONAL_DATABASE, or SQLite at home",
    ),
]
NoDatabase = Annotated[bool, typer.Option("--no-database", help="Use and keep no history.")]
_LOG = typer.Option(
    "--queries",
    metavar="LOG",
    help="A log of queries (.sql, .jsonl, .csv, .parquet, Spark event log) or a folder of them; may be repeated.",
    show_default=False,
)
LogPaths = Annotated[list[str], _LOG]
MaybeLogPaths = Annotated[list[str] | None, _LOG]
HideLiterals = Annotated[
    bool, typer.Option("--hide-literals", help="Print no values that queries compare with, as the cuts of a tree are.")
]
TargetFileSize = Annotated[
    str | None,
    typer.Option(
        "--target-file-size", help="Size of the new files, such as 128MB.", show_default="by the table's size"
    ),
]
SampleRows = Annotated[int, typer.Option("--sample-rows", metavar="NUMBER", help="Rows to look at.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
SparkRemote = Annotated[
    str | None, typer.Option("--remote", help="Spark Connect server, as sc://HOST.", show_default=False)
]
SparkConf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting; may be repeated.", show_default=False),
]


def key_columns(default: str) -> Any:  # noqa: ANN401 - typer's own type of an option
    """Return the option for key columns, with what they are by default."""
    return typer.Option("--by", help="Columns to cluster by, separated by commas.", show_default=default)


def spark_master(default: str) -> Any:  # noqa: ANN401
    """Return the option for where Spark runs, with where that is by default."""
    text = "Spark master, or here for threads of this process, without Spark."
    return typer.Option("--master", help=text, show_default=default)


STOPPED = 130
NOTHING_CHANGED = "Nothing was changed."


@contextmanager
def stoppable(stays: str = NOTHING_CHANGED) -> Iterator[None]:
    """Let SIGTERM end work as cleanly as Ctrl-C, and print what stays: the interrupt's own message, else `stays`."""

    def stop(*_: object) -> None:
        logging.disable()  # py4j logs the broken call with its traceback
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt as interrupt:
        say(f"Stopped. {str(interrupt) or stays}", "bold red")
        raise typer.Exit(STOPPED) from None
    finally:
        logging.disable(logging.NOTSET)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def plain_notices() -> Iterator[None]:
    """Print the notices of functions that were given no progress to report to, without the line that warned."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:  # noqa: ANN401
        if issubclass(category, ZonalNotice):
            say(str(message), "yellow")
        else:
            before(message, category, *rest, **named)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


@contextmanager
def done_already(what: str) -> Iterator[None]:
    """Let an interrupt say what was done before it: only printing and writing are left."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(what) from None


def is_given(context: typer.Context, name: str) -> bool:
    """Tell whether an option is given on the command line, not by its default or the environment."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def names_in(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def opened(name: str, catalog: str | None, options: list[str] | None) -> "Table":
    from zonal.tables.registry import open_table  # noqa: PLC0415

    return open_table(name, catalog=catalog, storage_options=pairs("--storage-option", options))


def pairs(option: str, values: list[str] | None) -> dict[str, str]:
    wrong = [value for value in values or [] if "=" not in value]
    if wrong:
        raise ZonalError(f"{option} {quoted(wrong[0].partition('=')[0])} is not KEY=VALUE.")
    return dict(value.split("=", 1) for value in values or [])


def views_in(values: list[str] | None) -> dict[str, str]:
    """Read the queries of views from their files."""
    from zonal.workload.view_files import read_view  # noqa: PLC0415 - `zonal --help` stays fast

    named = pairs("--view", values).items()
    return {name: read_view(Path(path), f"The view {quoted(name)}") for name, path in named}


def check_report(path: Path | None) -> None:
    """Refuse a page that can't be written before the work begins."""
    if path is None:
        return
    shown = quoted(str(path), limit=300)
    if path.suffix.casefold() not in (".html", ".htm"):
        raise ZonalError(f"--report {shown} is no name of a page: let it end in .html.")
    try:
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else "lies in a folder that doesn't exist"
            raise ZonalError(f"--report {shown} {what}.")
        existed = path.exists()
        with path.open("ab"):  # permissions don't tell: the disk may be mounted read-only
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise ZonalError(f"--report {shown} can't be written: {error.strerror}.") from None


def write_report(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ZonalError(f"{quoted(str(path), limit=300)} can't be written: {error.strerror}.") from None


@contextmanager
def printing() -> "Iterator[None]":
    """Flush what is printed; a closed pipe is no error, and any other failure is a `ZonalError`."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the first into the second
        _print_nowhere()
    except OSError as error:
        _print_nowhere()
        raise ZonalError(f"The output can't be written: {error.strerror}.") from None


def _print_nowhere() -> None:
    """Send the rest to the null device, so that Python's flush at exit raises no further error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def history(url: str | None, *, none: bool) -> "Iterator[History | None]":
    """Open the history; what can't be opened is refused before any work starts."""
    if none:
        yield None
        return
    with _open_history(url) as opened_history:
        yield opened_history


@contextmanager
def history_if_any(url: str | None, *, none: bool) -> "Iterator[History | None]":
    """Open the history for a command that can do without; one that was named is refused where it can't be opened."""
    from zonal.history.place import is_begun  # noqa: PLC0415
    from zonal.history.records import HistoryError  # noqa: PLC0415

    try:
        kept = None if none or (url is None and not is_begun()) else _open_history(url)
    except HistoryError as error:
        if url is not None:
            raise
        warn(f"It goes on without the history. {error}")
        kept = None
    with kept or nullcontext() as opened_history:
        yield opened_history


def _open_history(url: str | None) -> "History":
    from zonal.history.store import History  # noqa: PLC0415 - slow to import

    return History.open(url)


def warn(message: str) -> None:
    """Print a warning on stderr; the work goes on."""
    say(f"Warning: {message}", "yellow")


def say(message: str, style: str) -> None:
    """Print a message on stderr, with control characters escaped."""
    from zonal.report.terminal.text import paragraph  # noqa: PLC0415 - `zonal --help` stays fast

    console = Console(stderr=True)
    text = "\n".join(paragraph(console, line) for line in message.splitlines())
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
