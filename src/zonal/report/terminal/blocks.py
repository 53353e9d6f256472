"""Print the blocks of a report on a terminal; names are escaped, and never read as markup."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zonal.report.blocks import Block, Facts, Lines, Listing, Paragraph, Remarks, Sentences, TableBlock
from zonal.report.terminal.text import print_fact, print_line, print_list, print_whole, printable
from zonal.report.wrap import fit

_STYLES = {"good": "bold", "other": "bold", "bad": "bold red"}


def print_blocks(console: Console, blocks: Iterable[Block]) -> None:
    """Print the blocks that a terminal can show; titles, charts and footers are for pages."""
    for block in blocks:
        match block:
            case TableBlock() if not block.sentences:
                _print_grid(console, block)
            case TableBlock(sentences=lines) | Remarks(lines):
                _print_lines(console, [f"· {line}" for line in lines])
            case Sentences(lines, mood):
                _print_lines(console, [line for line in lines if line], _STYLES[mood])
            case Facts():
                _print_facts(console, block)
            case Lines(heading, lines):
                print_list(console, f"{heading}:", lines)
            case Paragraph(text):
                _print_whole(console, [text])
            case Listing(lines=lines):
                _print_whole(console, lines)


def _print_whole(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        print_whole(console, line)


def _print_facts(console: Console, block: Facts) -> None:
    """Print facts after their labels."""
    for label, fact in block.facts:
        print_fact(console, label, fact, block.width)


def _print_lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    for line in lines:
        print_line(console, line, style)


def _print_grid(console: Console, grid: TableBlock) -> None:
    if grid.rows:
        table = Table()
        for column in grid.columns:
            if column.is_number:
                table.add_column(column.terse, justify="right")
            else:
                table.add_column(column.terse, overflow="fold")
        for name, cells in grid.rows:
            table.add_row(Text(printable(name)), *(Text(printable(cell.text)) for cell in cells))
        console.print(fit(console, table))
    if grid.remark:
        print_line(console, grid.remark)
