"""The program `zonal`: its commands with their examples, its errors, and its exit codes."""

import io
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer
from rich.markup import escape

from zonal import __version__
from zonal.cli.advise import advise
from zonal.cli.append import append
from zonal.cli.audit import ALERT, FAILED, audit
from zonal.cli.clean import clean
from zonal.cli.cluster import cluster
from zonal.cli.demo import demo
from zonal.cli.explain import explain
from zonal.cli.options import say
from zonal.cli.show import show
from zonal.cli.tables import tables
from zonal.cli.verb import AuditVerb, Verb, Verbs
from zonal.errors import ZonalError

MISUSED = 64

app = typer.Typer(
    name="zonal",
    cls=Verbs,
    rich_markup_mode="rich",
    help="Make lakehouse tables skippable: cluster Iceberg, Delta and Parquet data over many columns at once.",
    epilog="Exit codes: 0 done, 1 an error that the message explains, 2 an audit with an alert, 64 a command that "
    "can't be understood, 130 stopped.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zonal {__version__}")
        raise typer.Exit


@app.callback()
def zonal(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Make lakehouse tables skippable: cluster Iceberg, Delta and Parquet data over many columns at once."""


_EXAMPLES: dict[Callable[..., None], tuple[type[Verb], tuple[str, ...]]] = {
    demo: (Verb, ("zonal demo --rows 100000 --files 30 --format delta --into build/demo",)),
    tables: (Verb, ("zonal tables", "zonal tables lake --output json")),
    show: (Verb, ("zonal show lake/events --columns ts,payload_id",)),
    explain: (
        Verb,
        (
            """zonal explain lake/events --where "payload_id = 1234 AND ts >= TIMESTAMP '2026-01-20'" --files""",
            'zonal explain lake/events --sql "SELECT * FROM t WHERE id = 7" --dialect spark --output json',
        ),
    ),
    advise: (Verb, ("zonal advise lake/events --queries logs/ --name events --report advice.html",)),
    cluster: (
        Verb,
        (
            "zonal cluster lake/events --by payload_id,ts --dry-run",
            "zonal cluster lake/events --layout 'hilbert(ts, status)' --into delta:lake/by-status",
            "zonal cluster iceberg:shop.orders --layout auto --queries logs/",
        ),
    ),
    append: (
        Verb,
        (
            "zonal append delta:lake/orders new/2026-01-18.parquet",
            "zonal append iceberg:shop.orders new/ --by customer,ts --transaction nightly:20260118 --output json",
        ),
    ),
    audit: (
        AuditVerb,
        (
            "zonal audit lake/events --queries logs/ --since 7d --report audit.html",
            "zonal audit --config zonal.toml",
        ),
    ),
    clean: (
        Verb,
        (
            "zonal clean lake/events --expire 30d",
            "zonal clean lake/events --expire 30d --yes",
            "zonal clean lake/events --undo 20260131-120000-0123abcd",
            "zonal clean lake/events --purge --older-than 14d --yes",
        ),
    ),
}
"""The commands, each with its class and its examples, which `tests/cli/test_flags.py` parses."""

for command, (kind, examples) in _EXAMPLES.items():
    shown = [f"  {escape(example)}" for example in examples]
    app.command(cls=kind, epilog="\n\n".join(["Example:" if len(shown) == 1 else "Examples:", *shown]))(command)


def main() -> None:
    """Run the command line; a `ZonalError` becomes a message and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that can't show a character shows a substitute
    try:
        app(prog_name="zonal")  # also as `python -m zonal`, whose name no shell could complete
    except SystemExit as stop:
        # An alert and a misspelled option both end with 2 in here: only the first is raised by a command.
        if stop.code == ALERT and not isinstance(stop.__context__, typer.Exit):
            sys.exit(MISUSED)
        raise
    except ZonalError as error:
        _fail(str(error))
    except (OSError, UnicodeError) as error:  # of a disk, a network or a name, not a bug
        _fail(f"{type(error).__name__}: {error}")


def _fail(message: str) -> NoReturn:
    say(f"Error: {message}", "bold red")
    sys.exit(FAILED)
