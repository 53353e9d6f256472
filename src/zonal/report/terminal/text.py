"""Print the results of `show` and `explain` on a terminal; names are escaped, and never read as markup."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zonal.layouts.layout import short_text
from zonal.predicates.wording import EVERYTHING
from zonal.report.wording import plural
from zonal.report.wrap import wrapped
from zonal.values.sizes import size_text
from zonal.verbs.explain import Explanation
from zonal.verbs.show import ColumnHealth, TableHealth


def print_health(console: Console, health: TableHealth) -> None:
    """Print what `show` found."""
    for label, value in health_facts(health):
        print_fact(console, label, value, 12)
    if health.columns:
        console.print(_column_table(health))
        for column in sorted(health.columns, key=lambda column: column.depth.lookup_files):
            print_line(console, f"· {column.verdict}{_by_depth(column)}")
    if health.columns_left_out:
        console.print(f"{health.columns_left_out} more columns have bounds: name them with --columns.")
    print_list(console, "Not to be rewritten:", health.blockers)
    print_list(console, "Problems:", health.problems)


def health_facts(health: TableHealth) -> Iterator[tuple[str, str]]:
    """Say what a table is: its version, files, sizes, partitions, layout and deletes."""
    version = "" if health.table.version is None else f", version {health.table.version}"
    moment = f", {health.table.time:%Y-%m-%d %H:%M:%S}" if health.table.time else ""
    yield "table", f"{health.table.name} ({health.table.format}{version}{moment})"
    rows = "rows not known" if health.table.rows is None else f"{health.table.rows:,} rows"
    yield "files", f"{plural(health.table.files, 'file')}, {rows}, {size_text(health.table.bytes)}"
    if health.table.files:
        sizes = (health.sizes.smallest_file, health.sizes.median_file, health.sizes.largest_file)
        yield "file sizes", " / ".join(size_text(size) for size in sizes) + " (smallest / median / largest)"
    if health.table.partitioning:
        yield "partitions", f"{health.partitions:,} by {', '.join(health.table.partitioning)}"
    if health.table.layout:
        yield (
            "layout",
            f"{layout_text(health.table.layout)}, {health.files_in_layout:,} of {plural(health.table.files, 'file')}",
        )
    if health.deletes.delete_files:
        rows = "" if health.deletes.deleted_rows is None else f", {health.deletes.deleted_rows:,} rows"
        yield "deletes", f"{plural(health.deletes.delete_files, 'delete file applies', 'delete files apply')}{rows}"


def layout_text(layout: str) -> str:
    """Return a layout for people, without the cuts of a tree."""
    return short_text(layout)


def _column_table(health: TableHealth) -> Table:
    table = Table()
    table.add_column("column", overflow="fold")
    for heading in ("bounds", "distinct", "depth", "overlaps", "constant", "look-up"):
        table.add_column(heading, justify="right")
    for column in health.columns:
        table.add_row(Text(printable(column.depth.column)), *_cells(column))
    return table


def _cells(column: ColumnHealth) -> Iterable[str]:
    depth = column.depth
    files = max(column.files, 1)
    yield f"{depth.files_with_bounds / files:.0%}"
    yield f"≥ {depth.distinct_at_least:,}"
    yield f"{depth.average_depth:,.1f}"
    yield f"{depth.average_overlaps:,.1f}"
    yield f"{depth.constant_files:,}"
    yield f"{depth.lookup_files / files:.1%}"


def _by_depth(column: ColumnHealth) -> str:
    """Count the files by depth; empty where all have the same."""
    classes = column.depth.histogram
    if len(classes) < 2:
        return ""
    return "; files by depth: " + ", ".join(f"≤ {end}: {count:,}" for end, count in classes.items())


def print_explanation(console: Console, explanation: Explanation, *, files: bool = False) -> None:
    """Print what `explain` found, and with `files` the files that are read."""
    version = "" if explanation.version is None else f", version {explanation.version}"
    console.print(Text(printable(f"{explanation.table} ({explanation.format}{version})"), style="bold"), soft_wrap=True)
    console.print(Text(printable(explanation.predicate)), soft_wrap=True)
    table = Table("level", "read", "of", "bytes read", "of")
    for column in table.columns[1:]:
        column.justify = "right"
    for level in explanation.levels:
        sizes = size_text(level.kept_bytes), size_text(level.total_bytes)
        table.add_row(level.name, f"{level.kept:,}", f"{level.total:,}", *sizes)
    console.print(table)
    for name, count in sorted(explanation.skipped_by.items(), key=lambda item: -item[1]):
        print_line(console, f"· {name} skipped {count:,} {'file' if count == 1 else 'files'}")
    print_list(console, "No statistics help with:", explanation.unknown)
    print_list(console, "Notes:", explanation.notes)
    if files:
        for file in explanation.files:
            inside = "" if file.row_groups is None else f", {file.row_groups} of {file.total_row_groups} row groups"
            console.print(Text(printable(f"{file.path} ({size_text(file.size)}{inside})")), soft_wrap=True)


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a paragraph as it is, never as markup; on a terminal, lines end between words."""
    start = len(text) - len(text.lstrip(" ·"))
    console.print(Text(paragraph(console, text, start), style=style), soft_wrap=True)


def print_whole(console: Console, text: str, style: str = "") -> None:
    """Print a line that is to be copied, such as a command or a path: it is never cut."""
    console.print(Text(printable(text), style=style), soft_wrap=True)


def print_fact(console: Console, label: str, value: str, width: int = 14) -> None:
    """Print a paragraph after its label."""
    text = paragraph(console, f"{'':<{width}}{value}", width)
    console.print(Text(f"{label:<{width}}", style="bold") + Text(text[width:]), soft_wrap=True)


def paragraph(console: Console, text: str, hang: int = 0) -> str:
    """Wrap a text for a terminal; other outputs, which programs may read, get one line."""
    shown = printable(text)
    return "\n".join(wrapped(shown, console.width, hang=hang)) if console.is_terminal else shown


def print_list(console: Console, heading: str, lines: Iterable[str]) -> None:
    """Print lines under a heading, the first 20; nothing where there are none."""
    lines = list(lines)
    if lines:
        console.print(Text(heading, style="bold"))
        for line in lines[:20]:
            print_line(console, f"· {line}")
        if len(lines) > 20:
            console.print(f"· and {len(lines) - 20} more")


def query_text(condition: str) -> str:
    """Return a query's condition, or words for a query without a filter.

    >>> query_text("x = 1"), query_text("TRUE")
    ('x = 1', 'everything: it has no filter')
    """
    return EVERYTHING if condition == "TRUE" else condition


def printable(text: str) -> str:
    """Escape control characters: a name may hold some that move the cursor or change colors."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
