"""Write results as HTML fragments for notebooks: tables and rectangles without a script.

A notebook may be dark or light, whatever the reader's system is: text inherits its color, and no background is set.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.display import Shown
from zonal.errors import ZonalError
from zonal.report.advice import advice_blocks
from zonal.report.appended import append_plan_blocks, appended_blocks
from zonal.report.audit import audit_blocks
from zonal.report.blocks import (
    Block,
    Command,
    CommitsChart,
    Facts,
    FileChart,
    Lines,
    Paragraph,
    Sentences,
    TableBlock,
    Tiles,
    Title,
)
from zonal.report.cleaning import cleaning_blocks
from zonal.report.clustering import clustering_blocks, plan_blocks
from zonal.report.explanation import explanation_blocks
from zonal.report.health import health_blocks
from zonal.report.ledger import ledger_blocks
from zonal.report.notebook.rectangles import rectangles
from zonal.report.page.frame import NOTHING, Html, described, element, joined, listed, name, text
from zonal.report.page.grid import written_grid
from zonal.report.palette import NOTEBOOK_LINE
from zonal.report.wording import Fact
from zonal.rewriting.appended import Appended, AppendPlan
from zonal.rewriting.dry_run import ClusteringPlan
from zonal.rewriting.outcome import Clustering
from zonal.verbs.clean import Cleaning
from zonal.verbs.explain import Explanation
from zonal.verbs.show import TableHealth
from zonal.verbs.trend import Trend

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
.zonal-result small { display: block; opacity: .8; }
.zonal-result figure { margin: 0 1em .5em 0; display: inline-block; vertical-align: top; }
""".replace(".zonal-result", ".zonal-result.zonal-result").replace("NOTEBOOK_LINE", NOTEBOOK_LINE)


def html_of(result: Shown) -> str:
    """Return a result as HTML for a notebook: it holds no script, loads nothing, and has its names escaped."""
    for kind, blocks_of in _RESULTS:
        if isinstance(result, kind):
            return blocks_html(blocks_of(result))
    raise ZonalError(f"{type(result).__name__} is not a result that can be drawn.")


def blocks_html(blocks: Iterable[Block]) -> str:
    """Write the blocks that a notebook shows; charts need a script, so that of these only the files are drawn."""
    parts = [_WRITERS[type(block)](block) for block in blocks if type(block) in _WRITERS]
    return element("div", element("style", Html(_STYLE)), joined(parts), class_="zonal-result")


def _title(block: Title) -> Html:
    return element("h4", text(block.what), name(block.name))


def _sentences(block: Sentences) -> Html:
    return joined(element("p", element("strong", text(each, 2 * _LONG))) for each in block.sentences if each)


def _command(block: Command) -> Html:
    command = element("code", text(block.command, _MOST_CODE))
    return element("p", text(f"{block.intro} ", _LONG), command) if block.intro else element("p", command)


def _facts(facts: Iterable[Fact]) -> Html:
    return described((text(label), text(fact, _LONG)) for label, fact in facts)


def _headed_facts(block: Facts) -> Html:
    heading = element("p", text(f"{block.heading}:")) if block.heading else NOTHING
    return joined([heading, _facts(block.undrawn)])


def _paragraph(block: Paragraph) -> Html:
    words = text(block.text, _LONG)
    return element("p", element("code", words) if block.is_code else words)


def _lines(block: Lines) -> Html:
    """List the first sentences under a heading; nothing where there are none."""
    if not block.lines:
        return NOTHING
    shown = [text(line, _LONG) for line in block.lines[:MOST_ROWS]]
    return joined([element("p", text(f"{block.heading}:")), listed([*shown, *_more(len(block.lines))])])


def _grid(grid: TableBlock) -> Html:
    """Write the first rows of a table, and what is left to say of it."""
    shown = written_grid(grid, MOST_ROWS, bars=False) if grid.rows else NOTHING
    below = [*_more(len(grid.rows)), *([text(grid.remark)] if grid.remark else [])]
    return joined([shown, *(element("p", each) for each in below)])


def _more(count: int) -> list[Html]:
    return [text(f"and {count - MOST_ROWS:,} more")] if count > MOST_ROWS else []


def _files(block: FileChart) -> Html:
    return NOTHING if block.picture is None else rectangles(block.picture)


_WRITERS: Mapping[type[Block], Callable[..., Html]] = {
    Title: _title,
    Sentences: _sentences,
    Command: _command,
    Tiles: lambda block: _facts(block.tiles),
    Facts: _headed_facts,
    Paragraph: _paragraph,
    Lines: _lines,
    TableBlock: _grid,
    CommitsChart: lambda block: _grid(block.numbers),
    FileChart: _files,
}


_RESULTS: tuple[tuple[type[Shown], Callable[..., Iterator[Block]]], ...] = (
    (TableHealth, health_blocks),
    (Explanation, explanation_blocks),
    (Advice, advice_blocks),
    (Clustering, clustering_blocks),
    (ClusteringPlan, plan_blocks),
    (Appended, appended_blocks),
    (AppendPlan, append_plan_blocks),
    (Audit, audit_blocks),
    (Cleaning, cleaning_blocks),
    (Trend, ledger_blocks),
)
