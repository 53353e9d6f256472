"""Write the blocks of a report as a page, with charts where they can be drawn."""

from collections.abc import Callable, Iterable, Mapping

from zonal.report.blocks import (
    Block,
    Colophon,
    Command,
    CommitsChart,
    DepthChart,
    Facts,
    FileChart,
    LedgerChart,
    Lines,
    Listing,
    Paragraph,
    QueriesChart,
    ReadsChart,
    Remarks,
    Sentences,
    TableBlock,
    TableHeading,
    Tiles,
    Title,
    TrendChart,
)
from zonal.report.page.audit_charts import commits_chart, queries_chart, trend_chart
from zonal.report.page.charts import Chart, charted, scripts_of
from zonal.report.page.file_charts import depth_chart, files_chart
from zonal.report.page.frame import NOTHING, Html, described, element, joined, listed, name, page, section, text
from zonal.report.page.grid import written_grid
from zonal.report.page.ledger_chart import ledger_chart
from zonal.report.page.share_charts import reads_chart

_LONG = 600
_MOST_CODE = 20_000
_MOST_LISTED = 1000
"""Rows of a folded table."""
_MOODS = {"good": "verdict", "other": "verdict other", "bad": "verdict bad"}


def blocks_page(blocks: Iterable[Block]) -> str:
    """Return a page of blocks, whose title is that of its first heading."""
    heading = ""
    parts: list[Html] = []
    charts: list[Chart | None] = []
    for block in blocks:
        heading = heading or (f"{block.what}{block.name}" if isinstance(block, Title) else "")
        chart = chart_of(block)
        charts.append(chart[1] if chart else None)
        parts.append(charted(*chart) if chart else html_of_block(block))
    return page(f"zonal: {heading}", joined(parts), scripts_of(charts))


def chart_of(block: Block) -> tuple[str, Chart | None] | None:
    """Return the chart of a block with its heading; None where the block is no chart."""
    match block:
        case FileChart(picture, heading, commits):
            return heading, files_chart(picture, commits)
        case ReadsChart(picture, heading):
            return heading, reads_chart(picture)
        case DepthChart(versions):
            return "How deep files lie", depth_chart(versions)
        case TrendChart(audit, audits, runs, limit):
            return "Trend", trend_chart(audit, audits, runs, limit)
        case CommitsChart(audit, numbers):
            return "Whose files are read", commits_chart(audit, numbers)
        case QueriesChart(audit):
            return "What each query reads", queries_chart(audit)
        case LedgerChart(points):
            return "The course", ledger_chart(points)
    return None


def html_of_block(block: Block) -> Html:
    """Write a block that is no chart."""
    return _WRITERS[type(block)](block)


def _title(block: Title) -> Html:
    return element("h1", text(block.what), name(block.name) if block.name else NOTHING)


def _chapter(block: TableHeading) -> Html:
    return element("h2", name(block.name), id=block.place)


def _sentences(block: Sentences) -> Html:
    said = (element("p", text(each, 2 * _LONG)) for each in block.sentences if each)
    return element("div", *said, class_=_MOODS[block.mood])


def _command(block: Command) -> Html:
    return joined([element("p", text(block.intro, _LONG)) if block.intro else NOTHING, _code(block.command)])


def _tiles(block: Tiles) -> Html:
    tiles = [element("div", element("b", text(number)), element("span", text(what))) for number, what in block.tiles]
    return element("div", *tiles, class_="tiles")


def _facts(block: Facts) -> Html:
    facts = described((text(label), text(fact, _LONG)) for label, fact in block.undrawn)
    return section(block.heading, facts) if block.heading and facts else facts


def _paragraph(block: Paragraph) -> Html:
    return _code(block.text) if block.is_code else element("p", text(block.text, _LONG))


def _lines(block: Lines) -> Html:
    lines = listed(text(line, _LONG) for line in block.lines)
    return section(block.heading, lines) if block.heading and lines else lines


def _grid(grid: TableBlock) -> Html:
    remark = element("p", text(grid.remark), class_="soft") if grid.remark else NOTHING
    return section(grid.heading, written_grid(grid), remark) if grid.rows else NOTHING


def _listing(block: Listing) -> Html:
    grid = block.grid
    if not grid.rows:
        return NOTHING
    listing = element("div", written_grid(grid, _MOST_LISTED), class_="scroll")
    more = len(grid.rows) - _MOST_LISTED
    rest = element("p", text(f"And {more:,} more."), class_="soft") if more > 0 else NOTHING
    return section(grid.heading, element("details", element("summary", text(block.summary)), listing, rest))


def _code(words: str) -> Html:
    return element("pre", element("code", text(words, _MOST_CODE)))


_WRITERS: Mapping[type[Block], Callable[..., Html]] = {
    Title: _title,
    TableHeading: _chapter,
    Sentences: _sentences,
    Command: _command,
    Tiles: _tiles,
    Facts: _facts,
    Paragraph: _paragraph,
    Lines: _lines,
    Remarks: lambda _: NOTHING,
    TableBlock: _grid,
    Listing: _listing,
    Colophon: lambda block: element("footer", text(block.text)),
}
