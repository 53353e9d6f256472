"""The command line: `zonal VERB …`. Verbs live in their own modules; here they get their options and their errors."""

import io
import sys
from typing import Annotated, NoReturn

import typer

from zonal import __version__
from zonal.cli.advise import advise
from zonal.cli.audit import ALERT, FAILED, audit
from zonal.cli.cluster import cluster
from zonal.cli.demo import demo
from zonal.cli.looking import explain, show
from zonal.cli.options import say
from zonal.errors import ZonalError

MISUSED = 64

app = typer.Typer(
    name="zonal",
    help="Make lakehouse tables skippable: cluster Iceberg, Delta and Parquet data over many columns at once.",
    epilog="Exit codes: 0 done, 1 an error that the message explains, 2 an audit with an alert, 64 a command that "
    "can't be understood, 130 stopped.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"zonal {__version__}")
        raise typer.Exit


@app.callback()
def zonal(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Make lakehouse tables skippable: cluster Iceberg, Delta and Parquet data over many columns at once."""


for command in (demo, show, explain, advise, cluster, audit):
    app.command()(command)


def main() -> None:
    """Run the command line; a `ZonalError` becomes a message and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that can't show a character shows another
    try:
        app()
    except SystemExit as stop:
        # An alert and a misspelled option both end with 2 in here: only the first is raised by a command.
        if stop.code == ALERT and not isinstance(stop.__context__, typer.Exit):
            sys.exit(MISUSED)
        raise
    except ZonalError as error:
        _fail(str(error))
    except (OSError, UnicodeError) as error:  # of a disk, a network, a name: no fault of the program's own
        _fail(f"{type(error).__name__}: {error}")


def _fail(message: str) -> NoReturn:
    say(f"Error: {message}", "bold red")
    sys.exit(FAILED)
