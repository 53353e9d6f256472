"""A table's ledger as blocks of a report: what arrived, what was rewritten, and what queries read against fresh."""

from collections.abc import Iterator, Sequence

from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    Facts,
    Heading,
    LedgerChart,
    Sentences,
    TableBlock,
    TableRow,
    Title,
)
from zonal.report.sparkline import sparkline
from zonal.report.wording import Fact, plural
from zonal.values.sizes import size_text
from zonal.verbs.trend import Trend, TrendPoint

MOST_LINES = 30
"""Runs and audits that are listed, the last ones."""
_MOST_POINTS = 60
_KINDS = {
    "first": "first clustering",
    "merge": "merge",
    "layout": "move to another layout",
    "append": "append",
    "copy": "copy",
    "rewrite": "run of another history",
}
_COLUMNS = (
    Heading("time (UTC)", "UTC", "whole"),
    Heading("run", kind="text"),
    Heading("arrived"),
    Heading("rewritten"),
    Heading("so far, per byte that arrived", "per byte"),
    Heading("look-ups, times fresh", "look-ups"),
    Heading("queries, times fresh", "queries"),
)


def ledger_blocks(trend: Trend) -> Iterator[Block]:
    """Yield what a table's ledger and its audits tell: the sums first, then their course, then each run."""
    yield Title("Trend of ", trend.table)
    yield Sentences([_sums(trend), *_fresh(trend)])
    yield Facts(list(course_facts(trend)), 12)
    yield LedgerChart(trend.points)
    yield TableBlock(
        "Runs and audits",
        "What arrived since the run before, what each run rewrote, and what is read as a multiple of a fresh layout.",
        _COLUMNS,
        [_row(point) for point in trend.points[-MOST_LINES:]],
        _remark(trend),
    )
    yield Colophon("Made by zonal audit --trend from the history and the table's log.")


def course_facts(trend: Trend) -> Iterator[Fact]:
    """Draw each course as one line of text."""
    yield from _course("rewritten", [point.amplification for point in trend.points], "bytes per byte that arrived")
    yield from _course("look-ups", [point.lookups for point in trend.points], "times a fresh layout, predicted")
    yield from _course("queries", [point.queries for point in trend.points], "times a fresh layout")
    if trend.waiting_bytes:
        yield "waiting", f"{size_text(trend.waiting_bytes)} arrived since the last run"


def _course(label: str, values: Sequence[float | None], unit: str) -> Iterator[Fact]:
    known = [value for value in values if value is not None][-_MOST_POINTS:]
    if known:
        went = times_text(known[-1]) if len(known) == 1 else f"{times_text(known[0])} → {times_text(known[-1])}"
        yield label, f"{sparkline(known)}  {went} {unit} (from 0 to {times_text(max(known))})"


def _sums(trend: Trend) -> str:
    known = "" if trend.all_known else " This is as far as the table's log and the history tell."
    return (
        f"{times_text(trend.amplification)} bytes were rewritten per byte that arrived: "
        f"{size_text(trend.rewritten_bytes)} of {size_text(trend.arrived_bytes)}.{known}"
    )


def _fresh(trend: Trend) -> Iterator[str]:
    lookups = [point.lookups for point in trend.points if point.lookups is not None]
    if lookups:
        yield f"Look-ups are predicted to read {times_text(lookups[-1])} times what they would of a fresh layout."
    asked = [point for point in trend.points if point.queries is not None]
    if asked:
        when = "by the last audit" if asked[-1].what == "audit" else "after the last run with a log"
        yield f"Queries read {times_text(asked[-1].queries)} times what they would of a fresh layout, {when}."


def _row(point: TrendPoint) -> TableRow:
    texts = (
        kind_text(point.what),
        _size(point.arrived_bytes),
        _size(point.rewritten_bytes),
        *map(times_text, (point.amplification, point.lookups, point.queries)),
    )
    return TableRow(f"{point.time:%Y-%m-%d %H:%M}", [Cell(text) for text in texts])


def _remark(trend: Trend) -> str:
    if not trend.points:
        return "No run and no audit of this table is in the history yet."
    more = len(trend.points) - MOST_LINES
    return (
        f"The last {MOST_LINES} of {plural(len(trend.points), 'run and audit', 'runs and audits')}." if more > 0 else ""
    )


def kind_text(what: str) -> str:
    """Say what a run was for."""
    return _KINDS.get(what, what)


def times_text(times: float | None) -> str:
    """Print a multiple; a dash where it isn't known.

    >>> times_text(1.0), times_text(12.345), times_text(None)
    ('1.00', '12.35', '-')
    """
    return "-" if times is None else f"{times:,.2f}"


def _size(size: int | None) -> str:
    return "-" if size is None else size_text(size)
