"""Chart a ledger: bytes rewritten per byte that arrived, and what queries read against fresh, over time."""

from collections.abc import Callable, Sequence

from zonal.report.blocks import Cell, Heading, TableBlock, TableRow
from zonal.report.ledger import kind_text, times_text
from zonal.report.page.charts import Chart, shown
from zonal.report.page.frame import element, text
from zonal.report.wording import plural
from zonal.values.sizes import size_text
from zonal.verbs.trend import TrendPoint

_MOST_DRAWN = 1000
_LINES: tuple[tuple[str, str, Callable[[TrendPoint], float | None]], ...] = (
    ("rewritten per byte that arrived", "bar", lambda point: point.amplification),
    ("look-ups, times a fresh layout (predicted)", "good", lambda point: point.lookups),
    ("queries, times a fresh layout", "old", lambda point: point.queries),
)
_FORM = "%Y-%m-%d %H:%M:%S"


def ledger_chart(points: Sequence[TrendPoint]) -> Chart | None:
    """Draw the courses; None where there are fewer than two points."""
    drawn = points[-_MOST_DRAWN:]
    if len(drawn) < 2:
        return None
    lines = [
        {
            "name": name,
            "color": color,
            "times": [f"{point.time:{_FORM}}" for point in drawn if of(point) is not None],
            "values": [float(f"{of(point):.6g}") for point in drawn if of(point) is not None],
            "texts": [shown(_text(point, name, of(point)), 300) for point in drawn if of(point) is not None],
        }
        for name, color, of in _LINES
    ]
    caption = (
        "Each point is a run or an audit. A fresh layout is one of the whole table, made now: 1 is as good as that."
    )
    return Chart(
        id="ledger",
        label=f"{plural(len(drawn), 'run or audit', 'runs and audits')} in order of time",
        caption=element("p", text(caption)),
        data={"kind": "courses", "lines": [line for line in lines if line["times"]]},
        numbers=_numbers(drawn),
        plots=[("What it costs to keep the table clustered, and what that is worth", "")],
    )


def _text(point: TrendPoint, name: str, value: float | None) -> str:
    version = "" if point.version is None else f", version {point.version}"
    moved = ""
    if point.arrived_bytes is not None and point.rewritten_bytes is not None:
        moved = f"; {size_text(point.arrived_bytes)} arrived, {size_text(point.rewritten_bytes)} rewritten"
    return f"{point.time:%Y-%m-%d %H:%M} UTC, {kind_text(point.what)}{version}: {times_text(value)} {name}{moved}"


def _numbers(points: Sequence[TrendPoint]) -> TableBlock:
    columns = [Heading("time (UTC)", kind="whole"), Heading("what", kind="text")]
    columns += [Heading(name) for name, _, _ in _LINES]
    rows = [
        TableRow(
            f"{point.time:%Y-%m-%d %H:%M}",
            [Cell(kind_text(point.what)), *(Cell(times_text(of(point))) for _, _, of in _LINES)],
        )
        for point in points
    ]
    return TableBlock("Runs and audits", "Runs and audits.", columns, rows)
