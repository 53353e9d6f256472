"""Wrap text for terminals between words; a layout such as `zorder(ts, id)` stays on one line where it fits."""

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_WORD = re.compile(r"(\s*)((?:\w\([^()]{0,200}(?:\([^()]{0,200}\)[^()]{0,200}){0,8}\)|\S)+)")
"""Up to a space, except in brackets after a name: `zorder(ts, payload_id)` is one word."""
_LEAST_NAME = 4
"""Width that a column of names needs: below it, a name is a column of letters."""


def wrapped(text: str, width: int, *, hang: int = 0) -> list[str]:
    """Return the lines of a paragraph; all but the first begin with `hang` spaces.

    A word that is longer than a line has one of its own, whole: it may be a path to copy.

    >>> wrapped("now it is in zorder(ts, payload_id), and stays so", 26, hang=2)
    ['now it is in', '  zorder(ts, payload_id),', '  and stays so']
    >>> wrapped("in tree(ts, mission_id, payload_id; 44 leaves)", 24)
    ['in tree(ts, mission_id,', 'payload_id; 44 leaves)']
    """
    lines = [""]
    for gap, word in _words(text, width - hang):
        is_begun = lines[-1].strip(" ·") != ""
        if is_begun and cell_len(lines[-1] + gap + word) > width:
            lines.append(" " * hang + word)
        else:
            lines[-1] += gap + word
    return lines


def _words(text: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield each word with the spaces before it; split one that is longer than a line at its own spaces."""
    for match in _WORD.finditer(text):
        gap, word = match.groups()
        parts = [word] if cell_len(word) <= width else word.split()
        yield gap, parts[0]
        yield from ((" ", part) for part in parts[1:])


def can_fit(console: Console, table: Table, column: int = 0) -> bool:
    """Tell whether a console has room for every column of a table, with a little for the one that is wrapped."""
    sizes = [_sizes(console, table, number) for number in range(len(table.columns))]
    least = [min(size.minimum, _LEAST_NAME) if at == column else size.minimum for at, size in enumerate(sizes)]
    return sum(least) <= console.width - _frame(table)


def fit(console: Console, table: Table, column: int = 0) -> Table:
    """Make a table fit the console: wrap one column of names like paragraphs, and narrow the others if need be.

    The column of names keeps its longest word; the others shrink for it, down to theirs.
    """
    room = console.width - _frame(table)
    sizes = [_sizes(console, table, number) for number in range(len(table.columns))]
    widths = [size.maximum for size in sizes]
    if sum(widths) <= room:
        return table
    others = [number for number in range(len(widths)) if number != column]
    most = max(room - sum(sizes[number].minimum for number in others), 1)
    beside = room - sum(widths[number] for number in others)
    names = [cell.plain for cell in table.columns[column].cells if isinstance(cell, Text)]
    longest = max((cell_len(word) for name in names for _, word in _words(name, most)), default=0)
    widths[column] = min(max(beside, longest), most)
    _narrow(widths, [size.minimum for size in sizes], others, room)
    for number, width in enumerate(widths):
        table.columns[number].width = width
    for cell in table.columns[column].cells:
        if isinstance(cell, Text):
            cell.plain = "\n".join(wrapped(cell.plain, widths[column]))
    return table


def _sizes(console: Console, table: Table, number: int) -> Measurement:
    column = table.columns[number]
    cells = [Measurement.get(console, console.options, cell) for cell in (column.header, *column.cells)]
    most = max(cell.maximum for cell in cells)
    least = column.min_width or max(cell.minimum for cell in cells)  # a minimum width lets long words be cut
    return Measurement(most if column.no_wrap else min(least, most), most)


def _frame(table: Table) -> int:
    """Return the width of the lines and spaces around cells."""
    return 3 * len(table.columns) + 1


def _narrow(widths: list[int], least: Sequence[int], which: Sequence[int], room: int) -> None:
    """Shrink the widest of some columns until all fit, or all of them are as narrow as they can be."""
    while sum(widths) > room:
        able = [number for number in which if widths[number] > least[number]]
        if not able:
            return
        widths[max(able, key=lambda number: widths[number])] -= 1
