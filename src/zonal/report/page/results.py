"""Write the results of `show`, `explain` and `cluster` as pages: the verdict first, then charts, then the numbers."""

from collections.abc import Iterator, Sequence

from zonal.report.page.audit import audit_page
from zonal.report.page.charts import charted, scripts_of
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
from zonal.report.page.share_charts import losers_text, reads_chart
from zonal.report.terminal.cluster import clustering_facts, nothing_text, predicted_text, table_text
from zonal.report.terminal.text import health_facts, layout_text
from zonal.report.wording import Fact, lookup_text, plural, share_text
from zonal.rewriting.outcome import Clustering, KeyDepth
from zonal.values.sizes import size_text
from zonal.verbs.explain import Explanation, Level, ReadFile
from zonal.verbs.show import ColumnHealth, TableHealth

__all__ = ["audit_page", "clustering_page", "explanation_page", "health_page"]

_LONG = 600
_MOST_FILES = 1000
"""Files that are listed by name."""


def _facts(facts: Iterator[Fact]) -> Html:
    return described((text(label), text(fact, _LONG)) for label, fact in facts)


def _verdict(sentences: Sequence[str], kind: str = "verdict") -> Html:
    return element("div", *(element("p", text(each, 2 * _LONG)) for each in sentences if each), class_=kind)


def _lines(heading: str, lines: Sequence[str]) -> Html:
    return section(heading, listed(text(line, _LONG) for line in lines)) if lines else NOTHING


# --- show ------------------------------------------------------------------------------------------------------------


def health_page(health: TableHealth) -> str:
    """Return the page of what `show` found."""
    files = files_chart(health.picture)
    measured = () if health.picture is None else [column.depth for column in health.columns]
    depths = depth_chart([("now", health.table.files, measured)])
    ordered = sorted(health.columns, key=lambda column: column.depth.lookup_files)
    parts = [
        element("h1", text("Health of "), name(health.table.name)),
        _verdict(_health_verdict(ordered, health), "verdict other" if health.problems else "verdict"),
        _facts(health_facts(health)),
        _health_columns(ordered, health),
        charted("The files", files),
        charted("How deep files lie", depths),
        _lines("Not to be rewritten", health.blockers),
        _lines("Problems", health.problems),
        element("footer", text("Made by zonal show from the table's metadata alone.")),
    ]
    return page(f"zonal show: {health.table.name}", joined(parts), scripts_of([files, depths]))


def _health_verdict(ordered: Sequence[ColumnHealth], health: TableHealth) -> list[str]:
    if not ordered:
        return [f"No column has bounds: every filter reads all {plural(health.table.files, 'file')}."]
    columns = [column for column in ordered if not column.holds_nulls_alone] or ordered[:1]
    best, worst = _sentence(columns[0].verdict), _sentence(columns[-1].verdict)
    return [best] if len(columns) == 1 else [f"Best: {best}", f"Worst: {worst}"]


def _sentence(words: str) -> str:
    return f"{words}." if words else ""


def _health_columns(ordered: Sequence[ColumnHealth], health: TableHealth) -> Html:
    if not ordered:
        return NOTHING
    heads = ("column", "a look-up reads", "with bounds", "distinct", "depth", "overlaps", "constant files")
    rows = [Row(name(column.depth.column), _health_cells(column)) for column in ordered]
    caption = "Columns that skip best first. A look-up asks for one value; its share is of the files, in the mean."
    left = health.columns_left_out
    more = element("p", text(f"{plural(left, 'more column has', 'more columns have')} bounds."), class_="soft")
    return section("Columns", table(caption, heads, rows, plain=heads[1:2]), more if left else NOTHING)


def _health_cells(column: ColumnHealth) -> list[Html]:
    depth, files = column.depth, max(column.files, 1)
    return [
        share_bar(depth.lookup_files / files, share_text(depth.lookup_files / files)),
        text(f"{depth.files_with_bounds / files:.0%}"),
        text(f"≥ {depth.distinct_at_least:,}"),
        text(f"{depth.average_depth:,.1f}"),
        text(f"{depth.average_overlaps:,.1f}"),
        text(f"{depth.constant_files:,}"),
    ]


# --- explain ---------------------------------------------------------------------------------------------------------


def explanation_page(explanation: Explanation) -> str:
    """Return the page of what a query reads."""
    files = files_chart(explanation.picture)
    parts = [
        element("h1", text("What a query reads of "), name(explanation.table)),
        element("pre", element("code", text(explanation.predicate, 20_000))),
        _verdict([_read_text(explanation)]),
        _facts(iter([("table", _named(explanation))])),
        _levels(explanation),
        charted("The files", files),
        _skipped(explanation),
        _lines("No statistics help with", explanation.unknown),
        _read_files(explanation.files),
        _lines("Notes", explanation.notes),
        element("footer", text("Made by zonal explain. The query wasn't run: statistics tell what must be read.")),
    ]
    return page(f"zonal explain: {explanation.table}", joined(parts), scripts_of([files]))


def _named(explanation: Explanation) -> str:
    version = "" if explanation.version is None else f", version {explanation.version}"
    return f"{explanation.table} ({explanation.format}{version})"


def _read_text(explanation: Explanation) -> str:
    files = next((level for level in explanation.levels if level.name == "files"), explanation.levels[-1])
    share = share_text(files.kept_bytes / max(explanation.levels[0].total_bytes, 1))
    read = f"The query reads {files.kept:,} of {plural(files.total, 'file')}: {share} of the table's bytes."
    finest = explanation.levels[-1]
    if finest is files:
        return read
    return f"{read} Of these, {finest.name} leave {share_text(explanation.share_of_bytes)}."


def _levels(explanation: Explanation) -> Html:
    whole = max(explanation.levels[0].total_bytes, 1)
    heads = ("level", "share of the bytes", "read", "of", "bytes read", "of the bytes")
    rows = [Row(text(level.name), _level_cells(level, whole)) for level in explanation.levels]
    caption = "Each level skips a part of what the level above it has left."
    return section("What is read", table(caption, heads, rows, plain=heads[1:2]))


def _level_cells(level: Level, whole: int) -> list[Html]:
    sizes = text(size_text(level.kept_bytes)), text(size_text(level.total_bytes))
    share = level.kept_bytes / whole
    return [share_bar(share, share_text(share)), text(f"{level.kept:,}"), text(f"{level.total:,}"), *sizes]


def _skipped(explanation: Explanation) -> Html:
    if not explanation.skipped_by:
        return NOTHING
    ordered = sorted(explanation.skipped_by.items(), key=lambda item: -item[1])
    rows = [Row(name(column), [text(f"{count:,}")]) for column, count in ordered]
    return section("What skipped files", table("Files by the first column that excludes them.", ("by", "files"), rows))


def _read_files(files: Sequence[ReadFile]) -> Html:
    if not files:
        return NOTHING
    rows = [Row(name(file.path), [text(cell) for cell in _file_cells(file)]) for file in files[:_MOST_FILES]]
    more = f", the first {_MOST_FILES:,}" if len(files) > _MOST_FILES else ""
    heads = ("file", "size", "rows", "row groups read")
    listing = element("div", table(f"Files that are read{more}.", heads, rows), class_="scroll")
    return section(
        "Files that are read", element("details", element("summary", text(plural(len(files), "file"))), listing)
    )


def _file_cells(file: ReadFile) -> tuple[str, str, str]:
    rows = "-" if file.rows is None else f"{file.rows:,}"
    groups = "-" if file.row_groups is None else f"{file.row_groups:,} of {file.total_row_groups:,}"
    return size_text(file.size), rows, groups


# --- cluster ---------------------------------------------------------------------------------------------------------


def clustering_page(done: Clustering) -> str:
    """Return the page of what a rewrite did."""
    files, reads = files_chart(done.picture), reads_chart(done.picture)
    drawings = () if done.picture is None else done.picture.drawings
    depths = depth_chart([(drawing.label, drawing.files, drawing.depths) for drawing in drawings])
    parts = [
        element("h1", text("Clustering of "), name(done.table)),
        _verdict(_done(done), "verdict" if done.change.added_files else "verdict other"),
        _facts(iter([("table", table_text(done)), *clustering_facts(done, lookups=False)])),
        _lookups(done),
        charted("The files, before and after" if len(drawings) > 1 else "The files", files),
        charted("What each query reads", reads),
        charted("How deep files lie", depths),
        element("footer", text("Made by zonal cluster. Old files stay until the table's own clean-up removes them.")),
    ]
    return page(f"zonal cluster: {done.table}", joined(parts), scripts_of([files, reads, depths]))


def _done(done: Clustering) -> list[str]:
    if not done.change.added_files:
        return ["Nothing was changed.", nothing_text(done)]
    sentences = []
    if done.predicted is not None:
        sentences.append(f"{predicted_text(done.predicted)}.")
    if done.lookups.depths:
        best = max(done.lookups.depths, key=lambda depth: _shares(depth, done)[0] / max(_shares(depth, done)[1], 1e-9))
        before = lookup_text(best.before, done.lookups.files_before, best.share_before)
        after = lookup_text(best.after, done.lookups.files_after, best.share_after)
        sentences.append(f"A look-up of one {best.column} read {before} before, and reads {after} now.")
    sentences = sentences or [
        f"{plural(done.change.added_files, 'file')} written in the order of {layout_text(done.layout)}."
    ]
    return [*sentences, losers_text(done.picture)]


def _lookups(done: Clustering) -> Html:
    if not done.lookups.depths:
        return NOTHING
    rows = [
        Row(
            name(depth.column),
            [
                _lookup(depth.before, done.lookups.files_before, _shares(depth, done)[0]),
                _lookup(depth.after, done.lookups.files_after, _shares(depth, done)[1]),
            ],
        )
        for depth in done.lookups.depths
    ]
    heads = ("column", "before", "now")
    caption = "What a look-up of one value reads of the table's bytes, in the mean over all rows."
    return section("Look-ups", table(caption, heads, rows, plain=heads[1:]))


def _shares(depth: KeyDepth, done: Clustering) -> tuple[float, float]:
    """Return what a look-up read before and reads now: of the bytes or, where they aren't known, of the files."""
    before, after = depth.before / max(done.lookups.files_before, 1), depth.after / max(done.lookups.files_after, 1)
    return (
        before if depth.share_before is None else depth.share_before,
        after if depth.share_after is None else depth.share_after,
    )


def _lookup(read: float, files: int, share: float) -> Html:
    return share_bar(share, share_text(share), f"{max(1, round(read)):,} of {plural(files, 'file')}")
