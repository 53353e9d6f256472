"""What an append did, as blocks of a report."""

from collections.abc import Iterator

from zonal.layouts.layout import short_text
from zonal.report.blocks import Block, Facts, Title
from zonal.report.wording import Fact, plural
from zonal.rewriting.appended import Appended
from zonal.values.sizes import size_text


def appended_blocks(done: Appended) -> Iterator[Block]:
    """Yield what `append` did."""
    yield Title("Rows for ", done.table)
    yield Facts(list(_facts(done)))


def _facts(done: Appended) -> Iterator[Fact]:
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
