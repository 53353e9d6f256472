"""Write the tables of a report: names escaped, bars beside shares, and rows that stand out."""

import math
from collections.abc import Sequence

from zonal.report.blocks import Cell, Heading, TableBlock, TableRow
from zonal.report.page.frame import Html, element, joined, name, text

_LONG = 600
"""Characters of a sentence that may quote names."""


def written_grid(grid: TableBlock, most: int | None = None, *, bars: bool = True) -> Html:
    """Write the first rows of a table, whose first column heads them, with bars where that is wanted.

    On narrow screens a row becomes a card; browsers then drop the elements' own roles, so each has an explicit one.
    """
    drawn = {at for row in grid.rows for at, cell in enumerate(row.cells, 1) if bars and cell.share is not None}
    kinds = ["number" if column.is_number and 0 < at not in drawn else "" for at, column in enumerate(grid.columns)]
    heads = [
        element("th", text(column.heading), scope="col", role="columnheader", class_=kind)
        for column, kind in zip(grid.columns, kinds, strict=True)
    ]
    rows = [_row(row, grid.columns[1:], kinds[1:], bars=bars) for row in grid.rows[:most]]
    return element(
        "table",
        element("caption", text(grid.caption, _LONG)),
        element("thead", element("tr", *heads, role="row"), role="rowgroup"),
        element("tbody", joined(rows), role="rowgroup"),
        role="table",
    )


def _row(row: TableRow, columns: Sequence[Heading], kinds: Sequence[str], *, bars: bool) -> Html:
    head = element("code", name(row.name)) if row.is_code else name(row.name)
    parts = [element("a", head, href=f"#{row.place}") if row.place else head]
    if row.mark:
        parts.append(element("span", text(f" {row.mark}"), class_="bad-text" if row.mood == "bad" else "mark"))
    parts += [element("small", text(note, _LONG)) for note in row.notes if note]
    cells = [
        element("td", element("span", _cell(cell, bars=bars)), role="cell", class_=kind, data_label=column.heading)
        for cell, column, kind in zip(row.cells, columns, kinds, strict=True)
    ]
    named = element("th", *parts, scope="row", role="rowheader")
    return element("tr", named, *cells, role="row", class_="" if row.mood == "other" else "chosen")


def _cell(cell: Cell, *, bars: bool) -> Html:
    said = text(cell.text, _LONG)
    if bars and cell.share is not None:
        drawn = bar(cell.share, cell.span, cell.scale)
        said = element("span", element("span", said), drawn, class_="share")
    return joined([said, element("small", text(cell.note, _LONG))]) if cell.note else said


def bar(value: float, span: tuple[float, float] | None = None, most: float = 1.0) -> Html:
    """Draw a share, and its interval, on a scale from 0 to `most`; the numbers stand beside it as text."""
    interval = ""
    if span is not None:
        low, high = (100 * _part(end, most) for end in span)
        interval = f'<path class="span" d="M{low:.2f} 5H{high:.2f}M{low:.2f} 2V8M{high:.2f} 2V8" fill="none"></path>'
    return Html(
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="back" width="100" height="10"></rect>'
        f'<rect class="bar" width="{100 * _part(value, most):.2f}" height="10"></rect>{interval}</svg>'
    )


def _part(number: float, most: float) -> float:
    return min(max(number / most, 0.0), 1.0) if math.isfinite(number) and most > 0 else 0.0
