"""What a query reads of a table as blocks of a report."""

from collections.abc import Iterator

from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    Facts,
    FileChart,
    Heading,
    Lines,
    Listing,
    Paragraph,
    Sentences,
    TableBlock,
    TableRow,
    Title,
)
from zonal.report.wording import plural, share_text
from zonal.values.sizes import size_text
from zonal.verbs.explain import Explanation, Level, ReadFile

_LEVELS = (
    Heading("level", kind="text"),
    Heading("share of the bytes", "share"),
    Heading("read"),
    Heading("of"),
    Heading("bytes read"),
    Heading("of the bytes", "of"),
)


def explanation_blocks(explanation: Explanation, *, files: bool = False) -> Iterator[Block]:
    """Yield what a query reads; with `files`, a terminal lists the files, too."""
    version = "" if explanation.version is None else f", version {explanation.version}"
    yield Title("What a query reads of ", explanation.table)
    yield Paragraph(explanation.predicate, is_code=True)
    yield Sentences([_read_text(explanation)])
    yield Facts([("table", f"{explanation.table} ({explanation.format}{version})")], 7)
    whole = max(explanation.levels[0].total_bytes, 1)
    yield TableBlock(
        "What is read",
        "Each level skips a part of what the level above it has left.",
        _LEVELS,
        [TableRow(level.name, _level_cells(level, whole)) for level in explanation.levels],
    )
    yield FileChart(explanation.picture)
    skipped = sorted(explanation.skipped_by.items(), key=lambda item: -item[1])
    yield TableBlock(
        "What skipped files",
        "Files by the first column that excludes them.",
        (Heading("by", kind="text"), Heading("files", "files skipped")),
        [TableRow(column, [Cell(f"{count:,}")]) for column, count in skipped],
        on_terminal="lines",
    )
    yield Lines("No statistics help with", explanation.unknown)
    yield _listing(explanation, is_asked=files)
    yield Lines("Notes", explanation.notes)
    yield Colophon("Made by zonal explain. The query wasn't run: statistics tell what must be read.")


def _read_text(explanation: Explanation) -> str:
    files = next((level for level in explanation.levels if level.name == "files"), explanation.levels[-1])
    share = share_text(files.kept_bytes / max(explanation.levels[0].total_bytes, 1))
    read = f"The query reads {files.kept:,} of {plural(files.total, 'file')}: {share} of the table's bytes"
    finest = explanation.levels[-1]
    if finest is files:
        return f"{read}."
    return f"{read}, or {share_text(explanation.share_of_bytes)} by {finest.name}."


def _level_cells(level: Level, whole: int) -> list[Cell]:
    share = level.kept_bytes / whole
    counts = f"{level.kept:,}", f"{level.total:,}", size_text(level.kept_bytes), size_text(level.total_bytes)
    return [Cell(share_text(share), share=share), *map(Cell, counts)]


def _listing(explanation: Explanation, *, is_asked: bool) -> Listing:
    files = explanation.files
    grid = TableBlock(
        "Files that are read",
        "Files that are read.",
        (Heading("file", kind="text"), Heading("size"), Heading("rows"), Heading("row groups read")),
        [TableRow(file.path, _file_cells(file)) for file in files],
    )
    return Listing(grid, plural(len(files), "file"), [_file_text(file) for file in files] if is_asked else ())


def _file_cells(file: ReadFile) -> list[Cell]:
    rows = "-" if file.rows is None else f"{file.rows:,}"
    groups = "-" if file.row_groups is None else f"{file.row_groups:,} of {file.total_row_groups:,}"
    return [Cell(size_text(file.size)), Cell(rows), Cell(groups)]


def _file_text(file: ReadFile) -> str:
    inside = "" if file.row_groups is None else f", {file.row_groups} of {file.total_row_groups} row groups"
    return f"{file.path} ({size_text(file.size)}{inside})"
