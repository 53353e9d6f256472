"""The health of a table's layout as blocks of a report."""

from collections.abc import Iterator, Sequence

from zonal.errors import option
from zonal.layouts.layout import short_text
from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    DepthChart,
    Facts,
    FileChart,
    Heading,
    Lines,
    Remarks,
    Sentences,
    TableBlock,
    TableRow,
    Title,
)
from zonal.report.wording import Fact, condition_facts, plural, share_text
from zonal.values.sizes import size_text
from zonal.verbs.show import ColumnHealth, TableHealth

_COLUMNS = (
    Heading("column", kind="text"),
    Heading("a look-up reads", "look-up"),
    Heading("with bounds", "bounds"),
    Heading("distinct"),
    Heading("depth"),
    Heading("overlaps"),
    Heading("constant files", "constant"),
)


def health_blocks(health: TableHealth) -> Iterator[Block]:
    """Yield what `show` found: the verdict first, then facts, then columns."""
    ordered = sorted(health.columns, key=lambda column: column.depth.lookup_files)
    yield Title("Health of ", health.table.name)
    yield Sentences(_verdict(ordered, health), "other" if health.problems else "good")
    yield Facts(list(health_facts(health)), 12)
    yield TableBlock(
        "Columns",
        "Columns that skip best first. A look-up asks for one value; its share is of the files, in the mean.",
        _COLUMNS,
        [TableRow(column.depth.column, _cells(column)) for column in ordered],
        _left_out(health.columns_left_out),
    )
    yield Remarks([f"{column.verdict}{_by_depth(column)}" for column in ordered])
    yield FileChart(health.picture)
    yield DepthChart([("now", health.table.files, [] if health.picture is None else [c.depth for c in health.columns])])
    yield Lines("Not to be rewritten", health.blockers)
    yield Lines("Problems", health.problems)
    yield Colophon("Made by zonal show from the table's metadata alone.")


def health_facts(health: TableHealth) -> Iterator[Fact]:
    """Say what a table is: its version, files, sizes, partitions, layout and deletes."""
    table, sizes, deletes = health.table, health.sizes, health.deletes
    version = "" if table.version is None else f", version {table.version}"
    moment = f", {table.time:%Y-%m-%d %H:%M:%S}" if table.time else ""
    yield "table", f"{table.name} ({table.format}{version}{moment})"
    rows = "rows not known" if table.rows is None else plural(table.rows, "row")
    yield "files", f"{plural(table.files, 'file')}, {rows}, {size_text(table.bytes)}"
    if table.files:
        each = (sizes.smallest_file, sizes.median_file, sizes.largest_file)
        yield "file sizes", " / ".join(map(size_text, each)) + " (smallest / median / largest)"
    if table.partitioning:
        yield "partitions", f"{health.partitions:,} by {', '.join(table.partitioning)}"
    if table.layout:
        inside = f"{health.files_in_layout:,} of {plural(table.files, 'file')}"
        yield "layout", f"{short_text(table.layout)}, {inside}"
    if health.condition is not None:
        yield from condition_facts(health.condition)
    if deletes.delete_files:
        rows = "" if deletes.deleted_rows is None else f", {plural(deletes.deleted_rows, 'row')}"
        yield "deletes", f"{plural(deletes.delete_files, 'delete file applies', 'delete files apply')}{rows}"


def _verdict(ordered: Sequence[ColumnHealth], health: TableHealth) -> list[str]:
    """Say what a look-up reads by the best column and by the worst."""
    if not ordered:
        return [f"No column has bounds: every filter reads all {plural(health.table.files, 'file')}."]
    columns = [column for column in ordered if not column.holds_nulls_alone] or ordered[:1]
    best, worst = f"{columns[0].verdict}.", f"{columns[-1].verdict}."
    return [best] if len(columns) == 1 else [f"Best: {best}", f"Worst: {worst}"]


def _cells(column: ColumnHealth) -> list[Cell]:
    depth, files = column.depth, max(column.files, 1)
    read = depth.lookup_files / files
    return [
        Cell(share_text(read), share=read),
        Cell(f"{depth.files_with_bounds / files:.0%}"),
        Cell(f"≥ {depth.distinct_at_least:,}"),
        Cell(f"{depth.average_depth:,.1f}"),
        Cell(f"{depth.average_overlaps:,.1f}"),
        Cell(f"{depth.constant_files:,}"),
    ]


def _left_out(count: int) -> str:
    if not count:
        return ""
    return f"{plural(count, 'more column has', 'more columns have')} bounds: name them with {option('columns')}."


def _by_depth(column: ColumnHealth) -> str:
    """Count the files by depth; empty where all have the same."""
    classes = column.depth.histogram
    if len(classes) < 2:
        return ""
    return "; files by depth: " + ", ".join(f"≤ {end}: {count:,}" for end, count in classes.items())
