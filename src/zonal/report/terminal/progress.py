"""Show progress on stderr while something long runs, on a terminal only."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from zonal.report.terminal.text import printable

if TYPE_CHECKING:
    from zonal.values.progress import Step


def step_bar() -> "AbstractContextManager[Callable[[Step], None]]":
    """Show which step runs, how far it is, and for how long."""
    return _bar(TimeElapsedColumn())


def rewrite_bar() -> "AbstractContextManager[Callable[[Step], None]]":
    """Show a bar of the steps of a rewrite, with the time that is left."""
    return _bar(TimeRemainingColumn())


@contextmanager
def _bar(time: ProgressColumn) -> "Iterator[Callable[[Step], None]]":
    """Show a bar of steps with a time; notices are printed, terminal or not."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: _note(console, step)
        return
    from zonal.values.sizes import size_text  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), time)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(step: "Step") -> None:
            _note(console, step)
            where = f"commit {step.commit} of {step.commits}: " if step.commits > 1 else ""
            what = f" {step.rows:,} rows, {size_text(step.bytes)}" if step.rows else ""
            _update(bar, task, where + step.name + what, step.done, step.total)

        yield report


def _note(console: Console, step: "Step") -> None:
    """Print a step's notice, with control characters escaped."""
    if step.notice:
        console.print(printable(step.notice), style="yellow", markup=False, highlight=False, soft_wrap=True)


def _update(bar: Progress, task: TaskID, what: str, done: int, total: int) -> None:
    """Show a step; one without a total clears that of the step before, which `update` alone would keep."""
    bar.update(task, description=what, completed=done, total=total or None)
    if not total:
        bar.tasks[0].total = None
