"""Write results as HTML fragments for notebooks: tables and rectangles without a script.

A notebook may be dark or light, whatever the reader's system is: text inherits its color, and no background is set.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.display import Shown
from zonal.errors import ZonalError
from zonal.picture.picture import Picture
from zonal.report.blocks import Block, Facts, FileChart, Lines, Paragraph, Sentences, TableBlock, Title
from zonal.report.explanation import explanation_blocks
from zonal.report.health import health_blocks
from zonal.report.notebook.rectangles import rectangles
from zonal.report.page.frame import NOTHING, Html, Row, described, element, joined, listed, name, table, text
from zonal.report.palette import NOTEBOOK_LINE
from zonal.report.terminal.append import append_plan_facts, appended_facts
from zonal.report.terminal.audit import audit_facts, audit_notes, commit_text, hindered, known_share, verdict
from zonal.report.terminal.clean import cleaning_facts
from zonal.report.terminal.cluster import clustering_facts, nothing_text, plan_facts, table_text
from zonal.report.wording import (
    Fact,
    change_facts,
    column_cells,
    cost_text,
    gain_text,
    interval_text,
    lookup_text,
    payback_text,
    share_text,
    shown_candidates,
    table_facts,
    what_text,
)
from zonal.rewriting.appended import Appended, AppendPlan
from zonal.rewriting.dry_run import ClusteringPlan
from zonal.rewriting.outcome import Clustering
from zonal.values.sizes import size_text
from zonal.verbs.clean import Cleaning
from zonal.verbs.explain import Explanation
from zonal.verbs.show import TableHealth

MOST_ROWS = 12
_LONG = 600
"""Characters of a sentence that may quote names."""

# The class stands twice for its specificity: notebooks and their exports style lists and tables by as many classes, and
# right-align, float and narrow them.
_STYLE = """
.zonal-result { overflow-x: auto; overflow-wrap: anywhere; }
.zonal-result h4 { margin: .3em 0; font-size: 1.1em; }
.zonal-result p, .zonal-result ul { margin: .4em 0; }
.zonal-result table { border-collapse: collapse; table-layout: auto; margin: .5em 0; min-width: 24em;
  font-variant-numeric: tabular-nums; }
.zonal-result caption { text-align: left; caption-side: top; padding: .2em 0; color: inherit; opacity: .8; }
.zonal-result th, .zonal-result td { text-align: left; vertical-align: top; padding: .2em .8em .2em 0;
  border-bottom: 1px solid NOTEBOOK_LINE; background: none; }
.zonal-result thead th { overflow-wrap: break-word; }
.zonal-result tbody th { min-width: 8em; }
.zonal-result td.number, .zonal-result th.number { text-align: right; }
.zonal-result td.number { white-space: nowrap; }
.zonal-result dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1em 1em; margin: .4em 0;
  width: auto; }
.zonal-result dt, .zonal-result dd { float: none; width: auto; margin: 0; padding: 0; }
.zonal-result dt { font-weight: normal; opacity: .8; overflow-wrap: normal; white-space: nowrap; }
.zonal-result figure { margin: 0 1em .5em 0; display: inline-block; vertical-align: top; }
""".replace(".zonal-result", ".zonal-result.zonal-result").replace("NOTEBOOK_LINE", NOTEBOOK_LINE)

Item = TypeVar("Item")


def html_of(result: Shown) -> str:
    """Return a result as HTML for a notebook: it holds no script, loads nothing, and has its names escaped."""
    for kind, write in _WRITERS:
        if isinstance(result, kind):
            style = element("style", Html(_STYLE))
            return element("div", style, joined(write(result)), class_="zonal-result")
    raise ZonalError(f"{type(result).__name__} is not a result that can be drawn.")


# --- Parts -----------------------------------------------------------------------------------------------------------


def _heading(what: str, of: str) -> Html:
    return element("h4", text(what), name(of))


def _facts(facts: Iterable[Fact]) -> Html:
    return described((text(label), text(fact, _LONG)) for label, fact in facts)


def _lines(heading: str, lines: Sequence[str]) -> Html:
    """List the first sentences under a heading; nothing where there are none."""
    if not lines:
        return NOTHING
    shown = [text(line, _LONG) for line in lines[:MOST_ROWS]]
    return joined([element("p", text(heading)), listed([*shown, *_more(len(lines))])])


def _table(
    caption: str, columns: Sequence[str], items: Sequence[Item], row: Callable[[Item], Row], plain: Sequence[str] = ()
) -> Html:
    """Write the first items as a table, and how many more there are; nothing where there are none."""
    if not items:
        return NOTHING
    rows = table(caption, columns, [row(item) for item in items[:MOST_ROWS]], plain=plain)
    return joined([rows, *(element("p", more) for more in _more(len(items)))])


def _more(count: int) -> list[Html]:
    return [text(f"and {count - MOST_ROWS:,} more")] if count > MOST_ROWS else []


def _row(head: str, *cells: str) -> Row:
    return Row(name(head), [text(cell) for cell in cells])


def _drawn(picture: Picture | None) -> Html:
    return NOTHING if picture is None else rectangles(picture)


def _blocks(blocks: Iterable[Block]) -> Iterator[Html]:
    """Write the blocks that a notebook shows; charts need a script, so that of these only the files are drawn."""
    for block in blocks:
        match block:
            case Title(what, of):
                yield _heading(what, of)
            case Sentences(sentences):
                yield from (element("p", element("strong", text(each, 2 * _LONG))) for each in sentences if each)
            case Facts(facts):
                yield _facts(facts)
            case Paragraph(words, is_code):
                yield element("p", element("code", text(words, _LONG)) if is_code else text(words, _LONG))
            case Lines(heading, lines):
                yield _lines(f"{heading}:", lines)
            case TableBlock():
                yield _grid(block)
            case FileChart(picture):
                yield _drawn(picture)


def _grid(grid: TableBlock) -> Html:
    """Write the first rows of a table, and what is left to say of it."""
    names = [column.heading for column in grid.columns]
    plain = [column.heading for column in grid.columns if not column.is_number]
    rows = _table(
        grid.caption, names, grid.rows, lambda row: _row(row[0], *(cell.text for cell in row[1])), plain=plain
    )
    return joined([rows, element("p", text(grid.remark)) if grid.remark else NOTHING])


# --- Results ---------------------------------------------------------------------------------------------------------


def _health(health: TableHealth) -> Iterator[Html]:
    return _blocks(health_blocks(health))


def _explanation(explanation: Explanation) -> Iterator[Html]:
    return _blocks(explanation_blocks(explanation))


def _advice(advice: Advice) -> Iterator[Html]:
    yield _heading("Advice for ", advice.table.name)
    yield element("p", element("strong", text(advice.reason, 2 * _LONG)))
    yield _facts([*table_facts(advice), *change_facts(advice)])
    yield _table(
        "Candidates, best first; shares are of the table's bytes.",
        ("what", "reads", "9 of 10 times", "than now", "files", "cost", "paid back"),
        shown_candidates(advice),
        lambda each: _row(
            what_text(each),
            share_text(each.reads.bytes),
            interval_text(each.reads),
            gain_text(each),
            f"{each.files:,}",
            cost_text(each.cost),
            payback_text(each.cost),
        ),
    )
    columns = ("column", "queries' weight", "by =", "distinct", "skipped by")
    yield _table(
        "The columns that queries filter.",
        columns,
        advice.workload.filtered,
        lambda column: _row(column.column, *column_cells(column)),
        plain=columns[-1:],
    )
    yield _drawn(advice.picture)
    yield _lines("Warnings:", [warning.text for warning in advice.warnings])


def _nothing(result: Clustering | ClusteringPlan) -> str:
    """Say that no file is rewritten, and why."""
    return nothing_text(result) if result.layout_recorded else f"Nothing to do. {nothing_text(result)}"


def _clustering(done: Clustering) -> Iterator[Html]:
    yield _heading("", table_text(done))
    if not done.change.added_files:
        yield element("p", text(_nothing(done), _LONG))
    yield _facts(clustering_facts(done, lookups=False))
    yield _table(
        "What a look-up of one value reads.",
        ("column", "before", "after"),
        done.lookups.depths,
        lambda depth: _row(
            depth.column,
            lookup_text(depth.before, done.lookups.files_before, depth.share_before),
            lookup_text(depth.after, done.lookups.files_after, depth.share_after),
        ),
    )
    yield _drawn(done.picture)


def _appended(done: Appended) -> Iterator[Html]:
    yield _heading("Rows for ", done.table)
    yield _facts(appended_facts(done))


def _append_plan(plan: AppendPlan) -> Iterator[Html]:
    yield _heading("Plan for rows of ", plan.table)
    yield _facts(append_plan_facts(plan))
    yield element("p", text("Nothing was changed."))


def _plan(plan: ClusteringPlan) -> Iterator[Html]:
    yield _heading("Plan for ", plan.table)
    if not plan.files:
        yield element("p", text(_nothing(plan), _LONG))
        return
    yield _facts(plan_facts(plan))
    yield element("p", text("Nothing was changed."))


def _cleaning(done: Cleaning) -> Iterator[Html]:
    yield _heading("Clean-up of ", done.table)
    yield _facts(fact for fact in cleaning_facts(done) if fact[0] not in ("", "table"))
    yield _table(
        "By the reason why nobody needs them.",
        ("reason", "files", "bytes"),
        done.totals,
        lambda total: _row(total.reason, f"{total.files:,}", size_text(total.bytes)),
    )
    yield _lines("Left:", done.notes)
    if done.action == "plan":
        yield element("p", text("Nothing was changed."))


def _audit(audit: Audit) -> Iterator[Html]:
    yield _heading("Audit of ", audit.table.name)
    for sentence in verdict(audit):
        yield element("p", element("strong", text(sentence, 2 * _LONG)))
    yield _facts(audit_facts(audit))
    yield _table(
        "Queries that read most, by weight, first; shares are of the table's bytes.",
        ("query", "weight", "files", "bytes", "rows matching", "clustered anew"),
        audit.asked,
        lambda each: _row(
            each.query,
            f"{each.weight:.1%}",
            f"{each.reads.files:,}",
            *map(known_share, (each.reads.byte_share, each.selectivity, each.fresh_share)),
        ),
    )
    yield _table(
        "What each column skips.",
        ("column", "queries' weight", "of the files", "of the bytes"),
        audit.columns,
        lambda column: _row(
            f"{column.column} (partitions)" if column.partitions else column.column,
            f"{column.weight:.0%}",
            share_text(column.skipped_files),
            share_text(column.skipped_bytes),
        ),
    )
    yield _table(
        "Commits, those that did harm first, then those that cause most of what is read for nothing.",
        ("files added by", "files", "of what is read", "of that for nothing"),
        audit.blame.commits,
        lambda each: _row(
            each.sentence or commit_text(each),
            f"{each.files:,}",
            share_text(each.read_share),
            share_text(each.excess_share),
        ),
    )
    yield _drawn(audit.picture)
    yield _lines("Queries that statistics can't help:", list(hindered(audit)))
    yield _lines("Notes:", list(audit_notes(audit)))


_WRITERS: tuple[tuple[type[Shown], Callable[..., Iterator[Html]]], ...] = (
    (TableHealth, _health),
    (Explanation, _explanation),
    (Advice, _advice),
    (Clustering, _clustering),
    (ClusteringPlan, _plan),
    (Appended, _appended),
    (AppendPlan, _append_plan),
    (Audit, _audit),
    (Cleaning, _cleaning),
)
