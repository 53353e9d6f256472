"""Print the blocks of a report on a terminal; names are escaped and cut, and never read as markup."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zonal.report.blocks import (
    Block,
    Cell,
    Command,
    CommitsChart,
    Facts,
    Heading,
    Lines,
    Listing,
    Paragraph,
    Remarks,
    Sentences,
    TableBlock,
    TableHeading,
    TableRow,
)
from zonal.report.terminal.text import print_fact, print_line, print_list, print_whole, printable
from zonal.report.wording import clipped
from zonal.report.wrap import can_fit, fit

_LONG = 600
"""Characters of a sentence that may quote names."""
_MOST_NAME = 200
_STYLES = {"good": "bold", "other": "bold", "bad": "bold red"}
_ROW_STYLES = {"good": "bold", "other": "", "bad": "bold red"}
_LEAST_DIGITS = 10


def print_blocks(console: Console, blocks: Iterable[Block]) -> None:
    """Print the blocks that a terminal can show; titles, tiles, charts and footers are for pages."""
    for block in blocks:
        if type(block) in _PRINTERS:
            _PRINTERS[type(block)](console, block)


def _print_chapter(console: Console, block: TableHeading) -> None:
    print_whole(console, clipped(block.name), "bold underline")


def _print_sentences(console: Console, block: Sentences) -> None:
    for line in block.sentences:
        if line:
            print_line(console, clipped(line, 2 * _LONG), _STYLES[block.mood])
    console.print()


def _print_command(console: Console, block: Command) -> None:
    """Print a command whole, on one line with the words before it, so that it can be copied."""
    before = f"{clipped(block.intro, _LONG)} " if block.intro else "  "
    console.print(Text(printable(before)) + Text(printable(block.command), style="green"), soft_wrap=True)
    console.print()


def _print_facts(console: Console, block: Facts) -> None:
    """Print facts after their labels."""
    if block.heading:
        print_line(console, f"{block.heading}:", "bold")
    for label, fact in block.facts:
        print_fact(console, label, clipped(fact, _LONG), block.width)


def _print_paragraph(console: Console, block: Paragraph) -> None:
    (print_whole if block.is_code else print_line)(console, block.text)


def _print_lines(console: Console, block: Lines) -> None:
    print_list(console, f"{block.heading}:", [clipped(line, _LONG) for line in block.lines])


def _print_remarks(console: Console, block: Remarks) -> None:
    for line in block.lines:
        print_line(console, f"· {clipped(line, _LONG)}")


def _print_listing(console: Console, block: Listing) -> None:
    for line in block.lines:
        print_whole(console, line)


def _print_grid(console: Console, grid: TableBlock) -> None:
    if grid.on_terminal == "lines":
        print_list(console, grid.caption, [_line(row, grid.columns[1:]) for row in grid.rows[: grid.most]])
    elif grid.on_terminal == "table" and grid.rows:
        _print_table(console, grid)
    if grid.most is not None and len(grid.rows) > grid.most and grid.on_terminal != "nothing":
        print_line(console, f"· and {len(grid.rows) - grid.most:,} more")
    if grid.remark and grid.on_terminal != "nothing":
        print_line(console, grid.remark)


def _print_table(console: Console, grid: TableBlock) -> None:
    """Print a table; where it is too wide for the terminal, one line per row, since columns would be lost."""
    table, names = _table(grid), _wrapped(grid)
    if can_fit(console, table, names):
        console.print(fit(console, table, names))
        return
    for row in grid.rows[: grid.most]:
        print_line(console, f"· {_line(row, grid.columns[1:])}", _ROW_STYLES[row.mood])


def _line(row: TableRow, columns: Sequence[Heading]) -> str:
    """Say a row in a line: its name, each cell after its heading, and its notes."""
    cells = [
        f"{column.terse}{'' if column.is_number else ':'} {cell.text}"
        for cell, column in zip(row.cells, columns, strict=True)
        if cell.text and column.on_terminal
    ]
    notes = " ".join(f"({note})" for note in row.notes if note)
    return clipped(f"{clipped(row.name)}: {', '.join(cells)} {notes}".rstrip(), _LONG)


def _table(grid: TableBlock) -> Table:
    table = Table()
    for at, column in enumerate(grid.columns):
        if column.on_terminal:
            _add_column(table, column, [len(row.name if at == 0 else row.cells[at - 1].text) for row in grid.rows])
    for row in grid.rows[: grid.most]:
        cells = [_cell(cell) for cell, column in zip(row.cells, grid.columns[1:], strict=True) if column.on_terminal]
        table.add_row(_name(row), *cells, style=_ROW_STYLES[row.mood])
    return table


def _add_column(table: Table, column: Heading, lengths: list[int]) -> None:
    heading = Text(printable(column.terse))
    if column.kind == "number":
        table.add_column(heading, justify="right")
    elif column.kind == "digits":
        least = min(max(lengths, default=0), _LEAST_DIGITS)
        table.add_column(heading, justify="right", overflow="fold", min_width=least)
    else:
        table.add_column(heading, overflow="fold", no_wrap=column.kind == "whole")


def _wrapped(grid: TableBlock) -> int:
    """Return the column that is wrapped where the table is too wide: the first of text."""
    shown = [column for column in grid.columns if column.on_terminal]
    return next((at for at, column in enumerate(shown) if column.kind == "text"), 0)


def _name(row: TableRow) -> Text:
    mark = f" {row.mark}" if row.mark else ""
    return Text(printable(clipped(row.name, _MOST_NAME) + mark))


def _cell(cell: Cell) -> Text:
    return Text(printable(clipped(cell.text, _MOST_NAME)))


_PRINTERS: Mapping[type[Block], Callable[..., None]] = {
    TableHeading: _print_chapter,
    Sentences: _print_sentences,
    Command: _print_command,
    Facts: _print_facts,
    Paragraph: _print_paragraph,
    Lines: _print_lines,
    Remarks: _print_remarks,
    TableBlock: _print_grid,
    Listing: _print_listing,
    CommitsChart: lambda console, block: _print_grid(console, block.numbers),
}
