"""Say what a clean-up did or would do, and print it on a terminal."""

from collections.abc import Iterator

from rich.console import Console

from zonal.report.terminal.text import print_fact, print_line, print_list
from zonal.report.wording import Fact, plural
from zonal.values.sizes import size_text
from zonal.verbs.clean import Cleaning

_DONE = {
    "plan": "nobody needs",
    "clean": "moved to quarantine",
    "undo": "brought back",
    "purge": "deleted for good",
}


def print_cleaning(console: Console, done: Cleaning) -> None:
    """Print what `clean` did, or would do."""
    for label, fact in cleaning_facts(done):
        print_fact(console, label, fact, 22)
    print_list(console, "Left:", done.notes)
    if text := next_text(done):
        print_line(console, text)


def cleaning_facts(done: Cleaning) -> Iterator[Fact]:
    """Say what files there are, and how large, by the reason why nobody needs them."""
    yield "table", done.table
    if done.snapshots:
        yield "expired snapshots", f"{len(done.snapshots):,}"
    yield _DONE[done.action], f"{plural(len(done.files), 'file')}, {size_text(done.bytes)}"
    for total in done.totals:
        yield "", f"{total.reason}: {plural(total.files, 'file')}, {size_text(total.bytes)}"
    if done.run is not None:
        yield "run", done.run


def done_text(done: Cleaning) -> str:
    """Say in a sentence what was done."""
    if done.action == "plan" or not (done.files or done.snapshots):
        return "Nothing was changed."
    snapshots = f"{plural(len(done.snapshots), 'snapshot')} expired; " if done.snapshots else ""
    return f"It was done before: {snapshots}{plural(len(done.files), 'file')} {_DONE[done.action]}."


def next_text(done: Cleaning) -> str:
    """Say what can be done next."""
    if done.action == "plan":
        return "Nothing was changed: add --yes to do it." if done.files or done.snapshots else "There is nothing to do."
    if done.action == "clean" and done.run is not None:
        return f"--undo {done.run} brings the files back; --purge deletes them, once they are old enough."
    return ""
