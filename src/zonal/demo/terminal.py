"""The demonstration on a terminal: a spinner while it runs, each chapter as it ends, and commands to go on with."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from zonal.demo.chapters import Chapter, Outcome
from zonal.demo.query_log import NAME
from zonal.demo.story import LOG, DemoRequest, history_url, tell
from zonal.demo.telemetry import CONDITIONS
from zonal.demo.text import print_chapter
from zonal.demo.writers import WRITERS
from zonal.report.terminal.text import print_line, print_whole
from zonal.rewriting.in_place import Runner
from zonal.values.progress import Step
from zonal.verbs.show import TableHealth


def run(console: Console, request: DemoRequest, *, runner: Runner | None = None) -> list[Outcome]:
    """Run the demonstration and print each chapter as soon as it is over."""
    steps = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    with steps:
        task = steps.add_task("", total=None)

        def report(step: Step) -> None:
            steps.update(task, description=step.name + (f", {step.done} of {step.total}" if step.total else ""))

        outcomes = tell(request, partial(print_chapter, console), report, runner=runner)
    if request.into is not None:
        print_line(console, "The tables, their log and their history are kept. Go on with:")
        for outcome in outcomes:
            for command in _commands(request, request.into, outcome):
                print_whole(console, f"  {command}")
        console.print()
    print_line(console, "The audit as a page, with its trend, the commits, and the files before and after:", "bold")
    for outcome in outcomes:
        print_whole(console, f"  {outcome.page}")
    return outcomes


def _commands(request: DemoRequest, into: Path, outcome: Outcome) -> Iterator[str]:
    address = WRITERS[outcome.format].address(into / outcome.format, _version(outcome.chapters))
    now, then = shlex.quote(address.now), shlex.quote(address.then)
    rest = "".join(f" {shlex.quote(word)}" for word in address.options)
    yield f"zonal show {now}{rest}"
    history = f" --database {shlex.quote(history_url(into))}{rest}"
    if request.by is None:
        yield f'zonal explain {now} --where "{CONDITIONS[0]}"{rest}'
        yield f'zonal explain {then} --where "{CONDITIONS[0]}"{rest}'
        yield f"zonal audit {now} --queries {shlex.quote(str(into / LOG))} --name {NAME}{history}"
    yield f"zonal audit {now} --trend{history}"


def _version(chapters: Sequence[Chapter]) -> int | None:
    return next(each.result.table.version for each in chapters if isinstance(each.result, TableHealth))
