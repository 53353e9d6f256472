"""What an append did or would do, as blocks of a report."""

from collections.abc import Iterator

from zonal.errors import option
from zonal.layouts.layout import short_text
from zonal.report.blocks import Block, Facts, Paragraph, Title
from zonal.report.wording import Fact, plural
from zonal.rewriting.appended import Appended, AppendPlan
from zonal.values.sizes import format_size, size_text


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


def append_plan_blocks(plan: AppendPlan) -> Iterator[Block]:
    """Yield what `append` would do."""
    yield Title("Plan for ", plan.table)
    yield Facts(list(_plan_facts(plan)))
    if plan.rows:
        yield Paragraph(f"Nothing was changed: leave out {option('dry_run')} to do it.")


def _plan_facts(plan: AppendPlan) -> Iterator[Fact]:
    """Say what would be added, or why nothing would."""
    yield "table", f"{plan.table} ({plan.format})"
    if not plan.rows:
        yield "nothing to do", plan.note
        return
    yield "layout", short_text(plan.layout)
    yield "to append", f"{plural(plan.rows, 'row')} to {plural(plan.partitions, 'partition')}"
    yield "new files", f"about {plan.files:,}, {size_text(plan.bytes)}, for files of {format_size(plan.file_size)}"


def appended_text(done: Appended) -> str:
    """Say in a sentence what was committed."""
    if done.version is None:
        return "Nothing was changed."
    rows = plural(done.rows, "row")
    return f"The append was done before: {done.table} has {rows} more, committed as version {done.version}."
