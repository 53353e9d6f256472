"""Say what an append did, and print it on a terminal."""

from collections.abc import Iterator

from rich.console import Console

from zonal.layouts.layout import short_text
from zonal.report.terminal.text import print_fact
from zonal.report.wording import Fact, plural
from zonal.rewriting.appended import Appended
from zonal.values.sizes import size_text


def print_appended(console: Console, done: Appended) -> None:
    """Print what `append` did."""
    for label, fact in appended_facts(done):
        print_fact(console, label, fact)


def appended_facts(done: Appended) -> Iterator[Fact]:
    """Say what was added, or why nothing was."""
    version = "" if done.version is None else f", version {done.version}"
    yield "table", f"{done.table} ({done.format}{version})"
    if done.version is None:
        yield "nothing to do", done.note
        return
    yield "layout", short_text(done.layout)
    yield "appended", f"{plural(done.rows, 'row')} in {plural(done.files, 'file')}, {size_text(done.bytes)}"
    if done.note:
        yield "note", done.note
    yield "time", f"{done.seconds:,.1f} s"


def appended_text(done: Appended) -> str:
    """Say in a sentence what was committed."""
    if done.version is None:
        return "Nothing was changed."
    rows = plural(done.rows, "row")
    return f"The append was done before: {done.table} has {rows} more, committed as version {done.version}."
