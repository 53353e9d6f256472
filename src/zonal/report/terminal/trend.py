"""Print a table's audits and rewrites over time on a terminal."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zonal.history.records import AuditRecord, RunRecord
from zonal.layouts.layout import short_text
from zonal.report.sparkline import sparkline
from zonal.report.terminal.text import print_line, printable
from zonal.report.wording import clipped, plural, share_text
from zonal.report.wrap import fit

MOST_LINES = 30
"""Audits and rewrites that are printed, the last ones of both together."""
_MOST_POINTS = 60
_NOT_KNOWN = "-"

TrendLine = tuple[datetime, tuple[str, ...]]


def print_trend(
    console: Console,
    location_name: str,
    audits: Sequence[AuditRecord],
    runs: Sequence[RunRecord],
    limit_ratio: float | None,
) -> None:
    """Print how the ratio went, and the last audits and rewrites in the order of time."""
    console.print(Text(printable(clipped(location_name)), style="bold"), soft_wrap=True)
    if not audits and not runs:
        console.print("No audit and no rewrite of this table is in the database yet.")
        return
    if audits:
        print_line(console, _course(audits, limit_ratio))
    lines = sorted([*map(_audit_line, audits), *map(_run_line, runs)], key=lambda line: line[0])
    if len(lines) > MOST_LINES:
        console.print(f"The last {MOST_LINES} of {len(lines)}:")
    console.print(fit(console, _table(lines[-MOST_LINES:]), 1))
    for line in (*_legend(), *_layouts(runs), *_remarks(audits)):
        print_line(console, line)


def _course(audits: Sequence[AuditRecord], limit: float | None) -> str:
    """Draw the ratios, and say which one the line's top is."""
    ratios = [record.ratio for record in audits][-_MOST_POINTS:]
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return f"ratio  {sparkline(ratios)}  not known: no query could be helped"
    alert = "" if limit is None else f"; alert above {share_text(limit)}"
    went = share_text(known[-1]) if len(known) == 1 else f"{share_text(known[0])} → {share_text(known[-1])}"
    return f"ratio  {sparkline(ratios)}  {went} (from 0 to {share_text(max(known))}{alert})"


def _table(lines: Sequence[TrendLine]) -> Table:
    table = Table()
    table.add_column("UTC", no_wrap=True)
    table.add_column("what", overflow="fold")
    longest = max((len(cells[2]) for _, cells in lines), default=0)
    table.add_column("version", justify="right", overflow="fold", min_width=min(longest, 10))  # Iceberg's: 19 digits
    for heading in ("ratio", "bytes read", "predicted"):
        table.add_column(heading, justify="right")
    for _, cells in lines:
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _audit_line(record: AuditRecord) -> TrendLine:
    alert = ", ALERT" if record.alerts else ""
    what = f"audit, {plural(record.queries, 'query', 'queries')}{alert}"
    cells = (_share(record.ratio), share_text(record.byte_share), _share(record.fresh_share))
    return record.audited, (_time(record.audited), what, _whole(record.version), *cells)


def _run_line(record: RunRecord) -> TrendLine:
    """Say what a rewrite did; what its queries read before stands beside what they read after it."""
    files = f"{record.removed_files:,} → {plural(record.added_files, 'file')}"
    expected = "" if record.predicted_files is None else f" ({record.predicted_files:,} predicted)"
    what = f"cluster, {files}{expected}"
    after = _share(record.share_after)
    read = after if record.share_before is None else f"{share_text(record.share_before)} → {after}"
    cells = ("", read, _share(record.share_predicted))
    return record.finished, (_time(record.finished), what, _whole(record.version), *cells)


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


def _remarks(audits: Sequence[AuditRecord]) -> Iterator[str]:
    """Say what the last audit found."""
    if audits:
        last = audits[-1]
        yield from (f"· {clipped(alert)}" for alert in last.alerts[:20])
        if last.culprit:
            yield f"· {clipped(last.culprit)}"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _share(share: float | None) -> str:
    return _NOT_KNOWN if share is None else share_text(share)


def _whole(number: int | None) -> str:
    return _NOT_KNOWN if number is None else str(number)
