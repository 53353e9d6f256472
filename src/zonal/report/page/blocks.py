"""Write the blocks of a report as a page, with charts where they can be drawn."""

from collections.abc import Iterable

from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    DepthChart,
    Facts,
    FileChart,
    LedgerChart,
    Lines,
    Listing,
    Paragraph,
    ReadsChart,
    Sentences,
    TableBlock,
    Title,
)
from zonal.report.page.charts import Chart, charted, scripts_of
from zonal.report.page.file_charts import depth_chart, files_chart
from zonal.report.page.frame import (
    NOTHING,
    Html,
    Row,
    described,
    element,
    joined,
    listed,
    name,
    page,
    section,
    share_bar,
    table,
    text,
)
from zonal.report.page.ledger_chart import ledger_chart
from zonal.report.page.share_charts import reads_chart

_LONG = 600
_MOST_LISTED = 1000
"""Rows of a folded table."""
_MOODS = {"good": "verdict", "other": "verdict other", "bad": "verdict bad"}


def blocks_page(title: str, blocks: Iterable[Block]) -> str:
    """Return a page of blocks."""
    parts: list[Html] = []
    charts: list[Chart | None] = []
    for block in blocks:
        chart = chart_of(block)
        charts.append(chart[1] if chart else None)
        parts.append(charted(*chart) if chart else html_of_block(block))
    return page(title, joined(parts), scripts_of(charts))


def chart_of(block: Block) -> tuple[str, Chart | None] | None:
    """Return the chart of a block with its heading; None where the block is no chart."""
    match block:
        case FileChart(picture, heading):
            return heading, files_chart(picture)
        case ReadsChart(picture):
            return "What each query reads", reads_chart(picture)
        case DepthChart(versions):
            return "How deep files lie", depth_chart(versions)
        case LedgerChart(points):
            return "The course", ledger_chart(points)
    return None


def html_of_block(block: Block) -> Html:
    """Write a block that is no chart."""
    match block:
        case Title(what, of):
            return element("h1", text(what), name(of))
        case Sentences(sentences, mood):
            said = (element("p", text(each, 2 * _LONG)) for each in sentences if each)
            return element("div", *said, class_=_MOODS[mood])
        case Facts(facts):
            return described((text(label), text(fact, _LONG)) for label, fact in facts)
        case Paragraph(words, is_code):
            return element("pre", element("code", text(words, 20_000))) if is_code else element("p", text(words, _LONG))
        case Lines(heading, lines):
            return section(heading, listed(text(line, _LONG) for line in lines)) if lines else NOTHING
        case TableBlock():
            return section(block.heading, written_grid(block), _remark(block)) if block.rows else NOTHING
        case Listing(grid, summary):
            return _folded(grid, summary) if grid.rows else NOTHING
        case Colophon(words):
            return element("footer", text(words))
    return NOTHING


def written_grid(grid: TableBlock, most: int | None = None) -> Html:
    """Write the first rows of a table, bars included."""
    heads = [column.heading for column in grid.columns]
    plain = [column.heading for column in grid.columns if not column.is_number]
    bars = {at for _, cells in grid.rows for at, cell in enumerate(cells, 1) if cell.share is not None}
    rows = [Row(name(head), [_cell(cell) for cell in cells]) for head, cells in grid.rows[:most]]
    return table(grid.caption, heads, rows, plain=[*plain, *(heads[at] for at in sorted(bars))])


def _cell(cell: Cell) -> Html:
    return text(cell.text) if cell.share is None else share_bar(cell.share, cell.text, cell.note)


def _remark(grid: TableBlock) -> Html:
    return element("p", text(grid.remark), class_="soft") if grid.remark else NOTHING


def _folded(grid: TableBlock, summary: str) -> Html:
    listing = element("div", written_grid(grid, _MOST_LISTED), class_="scroll")
    more = len(grid.rows) - _MOST_LISTED
    rest = element("p", text(f"And {more:,} more."), class_="soft") if more > 0 else NOTHING
    return section(grid.heading, element("details", element("summary", text(summary)), listing, rest))
