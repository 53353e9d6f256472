"""A table's audits and rewrites over time, and audits of its versions, as blocks of a report."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from zonal.auditing.audit import Audit
from zonal.history.records import AuditRecord, RunRecord
from zonal.layouts.layout import short_text
from zonal.report.blocks import Block, Cell, Heading, Paragraph, Remarks, Sentences, TableBlock, TableHeading, TableRow
from zonal.report.sparkline import sparkline
from zonal.report.wording import clipped, known_share, plural, share_text

MOST_LINES = 30
"""Audits and rewrites that are printed, the last ones of both together."""
_MOST_POINTS = 60

_COLUMNS = (
    Heading("time (UTC)", "UTC", "whole"),
    Heading("what happened", "what", "text"),
    Heading("version", kind="digits"),
    Heading("files read of those in matching partitions", "ratio"),
    Heading("of the bytes", "bytes read"),
    Heading("for nothing", on_terminal=False),
    Heading("clustered anew, predicted", "predicted"),
)
_VERSIONS = (
    Heading("version", kind="digits"),
    Heading("made by", kind="text"),
    Heading("UTC", kind="whole"),
    Heading("files"),
    Heading("ratio"),
    Heading("files read"),
    Heading("bytes read"),
)


def trend_blocks(
    location_name: str, audits: Sequence[AuditRecord], runs: Sequence[RunRecord], limit_ratio: float | None
) -> Iterator[Block]:
    """Yield how the ratio went, and the last audits and rewrites in the order of time."""
    yield TableHeading(location_name)
    if not audits and not runs:
        yield Paragraph("No audit and no rewrite of this table is in the database yet.")
        return
    if audits:
        yield Paragraph(_course(audits, limit_ratio))
    if len(audits) + len(runs) > MOST_LINES:
        yield Paragraph(f"The last {MOST_LINES} of {len(audits) + len(runs)}:")
    yield trend_table(audits, runs, MOST_LINES)
    for line in (*_legend(), *_layouts(runs)):
        yield Paragraph(line)
    yield Remarks(list(_found(audits)))


def trend_table(audits: Sequence[AuditRecord], runs: Sequence[RunRecord], most: int = 0) -> TableBlock:
    """Return the last audits and rewrites in the order of time, or all of them."""
    rows = [*((each.audited, _audit_row(each)) for each in audits), *((each.finished, _run_row(each)) for each in runs)]
    ordered = [row for _, row in sorted(rows, key=lambda row: row[0])]
    return TableBlock("Trend", "Audits and rewrites.", _COLUMNS, ordered[-most:])


def versions_blocks(audits: Sequence[Audit]) -> Iterator[Block]:
    """Yield the audits of past versions, oldest first."""
    yield Sentences([f"ratio by version  {sparkline([each.reads.ratio for each in audits])}"])
    yield TableBlock("Versions", "The same queries on each version.", _VERSIONS, [_version(each) for each in audits])


def _version(audit: Audit) -> TableRow:
    texts = (
        clipped(audit.blame.operation, 60),
        "" if audit.table.time is None else f"{audit.table.time:%m-%d %H:%M}",
        f"{audit.table.files:,}",
        "-" if audit.reads.ratio is None else f"{audit.reads.ratio:.3f}",
        share_text(audit.reads.file_share),
        share_text(audit.reads.byte_share),
    )
    return TableRow(str(audit.table.version), [Cell(text) for text in texts])


def _course(audits: Sequence[AuditRecord], limit: float | None) -> str:
    """Draw the ratios, and say which one the line's top is."""
    ratios = [record.ratio for record in audits][-_MOST_POINTS:]
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return f"ratio  {sparkline(ratios)}  not known: no query could be helped"
    alert = "" if limit is None else f"; alert above {share_text(limit)}"
    went = share_text(known[-1]) if len(known) == 1 else f"{share_text(known[0])} → {share_text(known[-1])}"
    return f"ratio  {sparkline(ratios)}  {went} (from 0 to {share_text(max(known))}{alert})"


def _audit_row(record: AuditRecord) -> TableRow:
    alert = ", ALERT" if record.alerts else ""
    what = f"audit, {plural(record.queries, 'query', 'queries')}{alert}"
    shares = record.ratio, record.byte_share, record.excess_share, record.fresh_share
    cells = [
        Cell(what, note=" ".join(map(clipped, record.alerts))),
        *map(Cell, (_whole(record.version), *map(known_share, shares))),
    ]
    return TableRow(_time(record.audited), cells, mood="bad" if record.alerts else "other")


def _run_row(record: RunRecord) -> TableRow:
    """Say what a rewrite did; what its queries read before stands beside what they read after it."""
    new = plural(record.added_files, "file")
    is_append = not record.removed_files and record.predicted_files is None
    files = f"append, {new}" if is_append else f"cluster, {record.removed_files:,} → {new}"
    expected = "" if record.predicted_files is None else f" ({record.predicted_files:,} predicted)"
    after = known_share(record.share_after)
    read = after if record.share_before is None else f"{share_text(record.share_before)} → {after}"
    cells = [
        Cell(f"{files}{expected}", note=f"by {clipped(short_text(record.layout))}"),
        *map(Cell, (_whole(record.version), "", read, "", known_share(record.share_predicted))),
    ]
    return TableRow(_time(record.finished), cells)


def _legend() -> Iterator[str]:
    yield "ratio: files read, of those in partitions that might match"
    yield "predicted: bytes read of the table, freshly clustered; of a rewrite, as it was expected to become"


def _layouts(runs: Sequence[RunRecord]) -> Iterator[str]:
    """Name the layouts of the last rewrites and since when each holds; they are too long for the table."""
    layouts: list[tuple[datetime, str]] = []
    for record in runs[-MOST_LINES:]:
        if not layouts or layouts[-1][1] != record.layout:
            layouts.append((record.finished, record.layout))
    for when, layout in layouts:
        since = f" since {_time(when)}" if len(layouts) > 1 else ""
        yield f"layout{since}: {clipped(short_text(layout))}"


def _found(audits: Sequence[AuditRecord]) -> Iterator[str]:
    """Say what the last audit found."""
    if audits:
        last = audits[-1]
        yield from (clipped(alert) for alert in last.alerts[:20])
        if last.culprit:
            yield clipped(last.culprit)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _whole(number: int | None) -> str:
    return "-" if number is None else str(number)
