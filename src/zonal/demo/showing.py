"""The demonstration on a terminal: a spinner while it runs, a table for each format, and commands to go on with."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from zonal.demo.making import CATALOG, IDENTIFIER, catalog_uri
from zonal.demo.story import Outcome, Request, tell
from zonal.demo.telemetry import CONDITIONS
from zonal.report.text import printable
from zonal.sizes import size_text
from zonal.verbs.rewriting import Runner
from zonal.verbs.show import TableHealth


def run(console: Console, request: Request, *, runner: Runner | None = None) -> list[Outcome]:
    """Run the demonstration and print each table's outcome as soon as it is there."""
    outcomes: list[Outcome] = []
    steps = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    with steps:
        task = steps.add_task("", total=None)

        def report(what: str, done: int = 0, total: int = 0) -> None:
            steps.update(task, description=what + (f", {done} of {total}" if total else ""))

        def told(outcome: Outcome) -> None:
            outcomes.append(outcome)
            print_outcome(console, outcome)

        tell(request, told, report, runner=runner)
    if request.into is not None:
        _line(console, "The tables are kept. Go on with:")
        for command in _commands(request, request.into, outcomes):
            _line(console, f"  {command}")
    return outcomes


def print_outcome(console: Console, outcome: Outcome) -> None:
    """Print what a table was like, what became of it, and what queries read before and after."""
    before, after, done = outcome.before, outcome.after, outcome.clustering
    _line(console, f"{before.format}: {_size(before)}, {before.rows:,} rows as they arrived", style="bold")
    for column in before.columns:
        _line(console, f"· {column.verdict}")
    _line(console, f"{done.layout}: {_size(after)}, rewritten in {done.seconds:,.1f} s", style="bold")
    for column in after.columns:
        _line(console, f"· {column.verdict}")
    table = Table()
    table.add_column("query", overflow="fold")
    table.add_column("files read", justify="right", no_wrap=True)
    table.add_column("share of bytes", justify="right", no_wrap=True)
    for question, then, now in zip(outcome.questions, outcome.reads_before, outcome.reads_after, strict=True):
        files = f"{then.files:,.0f} → {now.files:,.0f}"
        table.add_row(Text(printable(question.text)), files, f"{then.share:.1%} → {now.share:.1%}")
    console.print(table)
    for sentence in _verdicts(outcome):
        _line(console, sentence)
    console.print()


def _verdicts(outcome: Outcome) -> Iterator[str]:
    before, after = outcome.shares
    mean = f"On average a query read {before:.1%} of the bytes before and reads {after:.1%} now"
    if after >= before:
        yield f"{mean}: this layout doesn't help these queries."
        return
    yield f"{mean}: {before / after:.1f} times less, by the min/max values in the table's own metadata."
    pairs = zip(outcome.questions, outcome.reads_before, outcome.reads_after, strict=True)
    for text in [question.text for question, then, now in pairs if now.share > then.share]:
        yield f"More than before reads {text}: the order in which the rows arrived suited it better."


def _size(health: TableHealth) -> str:
    return f"{health.files:,} files, {size_text(health.bytes)}"


def _commands(request: Request, into: Path, outcomes: Iterable[Outcome]) -> Iterator[str]:
    where = "" if request.data is not None else f' --where "{CONDITIONS[0]}"'
    for outcome in outcomes:
        folder = into / outcome.before.format
        if outcome.before.format == "delta":
            now, then, rest = str(folder), f"delta:{folder}@{outcome.before.version}", ""
        else:
            now = f"iceberg:{IDENTIFIER}"
            then = f"{now}@{outcome.before.version}"
            rest = f" --catalog {CATALOG} --storage-option " + shlex.quote(f"uri={catalog_uri(folder)}")
        yield f"zonal show {shlex.quote(now)}{rest}"
        if where:
            yield f"zonal explain {shlex.quote(now)}{where}{rest}"
            yield f"zonal explain {shlex.quote(then)}{where}{rest}"


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text), style=style), soft_wrap=True)
