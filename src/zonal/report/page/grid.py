"""Write the tables of a report: names escaped, bars beside shares, and rows that stand out."""

from zonal.report.blocks import Cell, TableBlock, TableRow
from zonal.report.page.frame import Html, Row, bar, element, joined, name, table, text

_LONG = 600
"""Characters of a sentence that may quote names."""


def written_grid(grid: TableBlock, most: int | None = None) -> Html:
    """Write the first rows of a table, bars included."""
    heads = [column.heading for column in grid.columns]
    plain = [column.heading for column in grid.columns if not column.is_number]
    bars = {at for row in grid.rows for at, cell in enumerate(row.cells, 1) if cell.share is not None}
    rows = [_row(row) for row in grid.rows[:most]]
    return table(grid.caption, heads, rows, plain=[*plain, *(heads[at] for at in sorted(bars))])


def _row(row: TableRow) -> Row:
    head = element("code", name(row.name)) if row.is_code else name(row.name)
    parts = [element("a", head, href=f"#{row.place}") if row.place else head]
    if row.mark:
        parts.append(element("span", text(f" {row.mark}"), class_="bad-text" if row.mood == "bad" else "mark"))
    parts += [element("small", text(note, _LONG)) for note in row.notes if note]
    return Row(Html("".join(parts)), [_cell(cell) for cell in row.cells], row.mood != "other")


def _cell(cell: Cell) -> Html:
    said = text(cell.text, _LONG)
    if cell.share is not None:
        drawn = bar(cell.share, cell.span, cell.scale)
        said = element("span", element("span", said), drawn, class_="share")
    return joined([said, element("small", text(cell.note, _LONG))]) if cell.note else said
