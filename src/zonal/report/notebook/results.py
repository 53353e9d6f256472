"""Write results as HTML fragments for notebooks: tables and rectangles without a script.

A notebook may be dark or light, whatever the reader's system is: text inherits its color, and no background is set.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.display import Shown
from zonal.errors import ZonalError
from zonal.picture.picture import Picture
from zonal.report.advice import advice_blocks
from zonal.report.appended import appended_blocks
from zonal.report.blocks import (
    Block,
    Cell,
    Command,
    Facts,
    FileChart,
    Lines,
    Paragraph,
    Sentences,
    TableBlock,
    TableRow,
    Tiles,
    Title,
)
from zonal.report.cleaning import cleaning_blocks
from zonal.report.clustering import clustering_blocks, plan_blocks
from zonal.report.explanation import explanation_blocks
from zonal.report.health import health_blocks
from zonal.report.notebook.rectangles import rectangles
from zonal.report.page.frame import NOTHING, Html, Row, described, element, joined, listed, name, table, text
from zonal.report.palette import NOTEBOOK_LINE
from zonal.report.terminal.audit import audit_facts, audit_notes, commit_text, hindered, known_share, verdict
from zonal.report.wording import Fact, share_text
from zonal.rewriting.appended import Appended
from zonal.rewriting.dry_run import ClusteringPlan
from zonal.rewriting.outcome import Clustering
from zonal.verbs.clean import Cleaning
from zonal.verbs.explain import Explanation
from zonal.verbs.show import TableHealth

MOST_ROWS = 12
_LONG = 600
"""Characters of a sentence that may quote names."""
_MOST_CODE = 20_000

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
        if type(block) in _BLOCKS:
            yield _BLOCKS[type(block)](block)


def _sentences(block: Sentences) -> Html:
    return joined(element("p", element("strong", text(each, 2 * _LONG))) for each in block.sentences if each)


def _command(block: Command) -> Html:
    command = element("code", text(block.command, _MOST_CODE))
    return element("p", text(f"{block.intro} ", _LONG), command) if block.intro else element("p", command)


def _headed_facts(block: Facts) -> Html:
    heading = element("p", text(f"{block.heading}:")) if block.heading else NOTHING
    return joined([heading, _facts(block.undrawn)])


def _paragraph(block: Paragraph) -> Html:
    words = text(block.text, _LONG)
    return element("p", element("code", words) if block.is_code else words)


def _grid(grid: TableBlock) -> Html:
    """Write the first rows of a table, and what is left to say of it."""
    names = [column.heading for column in grid.columns]
    plain = [column.heading for column in grid.columns if not column.is_number]
    rows = _table(grid.caption, names, grid.rows, _grid_row, plain=plain)
    return joined([rows, element("p", text(grid.remark)) if grid.remark else NOTHING])


def _grid_row(row: TableRow) -> Row:
    head = name(row.name)
    parts = [element("strong", head, text(f" {row.mark}")) if row.mark else head]
    parts += [element("small", text(f" {note}", _LONG)) for note in row.notes if note]
    return Row(Html("".join(parts)), [_cell(cell) for cell in row.cells])


def _cell(cell: Cell) -> Html:
    return text(f"{cell.text} ({cell.note})" if cell.note else cell.text, _LONG)


_BLOCKS: Mapping[type[Block], Callable[..., Html]] = {
    Title: lambda block: _heading(block.what, block.name),
    Sentences: _sentences,
    Command: _command,
    Tiles: lambda block: _facts(block.tiles),
    Facts: _headed_facts,
    Paragraph: _paragraph,
    Lines: lambda block: _lines(f"{block.heading}:", block.lines),
    TableBlock: _grid,
    FileChart: lambda block: _drawn(block.picture),
}


# --- Results ---------------------------------------------------------------------------------------------------------


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
    (TableHealth, lambda health: _blocks(health_blocks(health))),
    (Explanation, lambda explanation: _blocks(explanation_blocks(explanation))),
    (Advice, lambda advice: _blocks(advice_blocks(advice))),
    (Clustering, lambda done: _blocks(clustering_blocks(done))),
    (ClusteringPlan, lambda plan: _blocks(plan_blocks(plan))),
    (Appended, lambda done: _blocks(appended_blocks(done))),
    (Audit, _audit),
    (Cleaning, lambda done: _blocks(cleaning_blocks(done))),
)
