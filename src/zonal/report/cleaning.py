"""What a clean-up did or would do, as blocks of a report."""

from collections.abc import Iterator

from zonal.errors import option
from zonal.report.blocks import Block, Cell, Facts, Heading, Lines, Paragraph, TableBlock, TableRow, Title
from zonal.report.wording import Fact, plural
from zonal.values.sizes import size_text
from zonal.verbs.clean import Cleaning

_DONE = {
    "plan": "nobody needs",
    "clean": "moved to quarantine",
    "undo": "brought back",
    "purge": "deleted for good",
}


def cleaning_blocks(done: Cleaning) -> Iterator[Block]:
    """Yield what `clean` did, or would do."""
    yield Title("Clean-up of ", done.table)
    yield Facts(list(_facts(done)), 22)
    yield TableBlock(
        "Reasons",
        "By the reason why nobody needs them.",
        (Heading("reason", kind="text"), Heading("files"), Heading("bytes")),
        [TableRow(each.reason, [Cell(f"{each.files:,}"), Cell(size_text(each.bytes))]) for each in done.totals],
    )
    yield Lines("Left", done.notes)
    if text := _next_text(done):
        yield Paragraph(text)


def _facts(done: Cleaning) -> Iterator[Fact]:
    """Say what files there are, and how large, by the reason why nobody needs them."""
    yield "table", done.table
    if done.snapshots:
        yield "expired snapshots", f"{len(done.snapshots):,}"
    yield _DONE[done.action], f"{plural(len(done.files), 'file')}, {size_text(done.bytes)}"
    if done.run is not None:
        yield "run", done.run


def done_text(done: Cleaning) -> str:
    """Say in a sentence what was done."""
    if done.action == "plan" or not (done.files or done.snapshots):
        return "Nothing was changed."
    snapshots = f"{plural(len(done.snapshots), 'snapshot')} expired; " if done.snapshots else ""
    return f"It was done before: {snapshots}{plural(len(done.files), 'file')} {_DONE[done.action]}."


def _next_text(done: Cleaning) -> str:
    """Say what can be done next."""
    if done.action == "plan":
        is_due = done.files or done.snapshots
        return f"Nothing was changed: add {option('yes')} to do it." if is_due else "There is nothing to do."
    if done.action == "clean" and done.run is not None:
        later = f"{option('purge')} deletes them, once they are old enough"
        return f"{option('undo', done.run)} brings the files back; {later}."
    return ""
