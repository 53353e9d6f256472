"""Draw files as rectangles in SVG for notebooks, over the first two columns of a picture."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

import numpy as np
import numpy.typing as npt

from zonal.picture.picture import Axis, Drawing, DrawnQuery, Picture
from zonal.picture.ticks import apart
from zonal.report.page.frame import NOTHING, Html, element, joined, text
from zonal.report.palette import NOTEBOOK_READ, NOTEBOOK_UNREAD
from zonal.report.terminal.text import printable, query_text
from zonal.report.wording import clipped, plural, share_text
from zonal.values.arrays import Float64Array

MOST_RECTANGLES = 2000
"""Rectangles of all drawings together."""

_MOST_BOXES = 50
_MOST_NAME = 40
_MOST_TICK = 16
_SIDE = 320.0
"""Width and height of the area that files are drawn in."""
_LEFT, _BELOW, _AROUND = 34.0, 34.0, 6.0
"""Margins of that area: to the left, below, and on the other sides."""
_WHOLE = 65535
_LEAST = 1.0
"""Least width and height of a file, so that one with a single value can be seen."""
_STANDS_OUT = {
    "fill": NOTEBOOK_READ, "fill_opacity": "0.55",
    "stroke": NOTEBOOK_READ, "stroke_opacity": "1", "stroke_width": "1.6",
}  # fmt: skip
_HELD_BACK = 0.08
"""Opacity of a file that isn't read where others are."""


def rectangles(picture: Picture) -> Html:
    """Draw each version of a table; where there are queries, what the first of them asks for and reads."""
    if not picture.axes or not picture.drawings:
        return NOTHING
    most = max(1, MOST_RECTANGLES // len(picture.drawings))
    question = picture.questions[0] if picture.questions else None
    figures = [
        _figure(picture.axes, drawing, number, question, most) for number, drawing in enumerate(picture.drawings)
    ]
    legend = NOTHING if question is None else element("p", _legend(picture, question))
    return element("div", legend, element("div", *figures, class_="zonal-drawings"))


def _legend(picture: Picture, question: DrawnQuery) -> Html:
    which = "" if len(picture.questions) == 1 else ", the heaviest query"
    swatch = element("span", Html("&#9632;"), style=f"color: {NOTEBOOK_READ}", aria_hidden="true")
    return joined(
        [swatch, text(f"Orange: files that are read{which}:"), element("code", text(query_text(question.text)))]
    )


def _figure(axes: Sequence[Axis], drawing: Drawing, number: int, question: DrawnQuery | None, most: int) -> Html:
    shown = _some(len(drawing.drawn), most)
    across, up = axes[0], axes[1] if len(axes) > 1 else None
    left, right = _span(drawing, across.column, shown)
    bottom, top = _span(drawing, up.column, shown) if up is not None else _one_below_another(len(shown))
    filled = (left <= right) & (bottom <= top)  # a file of nulls alone lies nowhere
    reads = _reads(question, number, shown)
    files = joined(
        [
            _files(left, right, bottom, top, filled & ~reads, _unread(len(shown), is_behind=bool(reads.any()))),
            _files(left, right, bottom, top, filled & reads, _STANDS_OUT),  # above all others
            joined(_boxes(question, across, up)),
        ]
    )
    label = f"{drawing.label}: files over {across.column} and {up.column if up is not None else 'their number'}"
    edge = _LEFT + _SIDE + _AROUND
    frame = _field(_LEFT, _AROUND, _SIDE, _SIDE, fill="none", stroke="currentColor", stroke_opacity="0.4")
    drawn = element(
        "svg",
        frame,
        files,
        _scale(across, is_up=False),
        _scale(up, is_up=True),
        viewBox=f"0 0 {edge:.0f} {_SIDE + _AROUND + _BELOW:.0f}",
        width="360",
        role="img",
        aria_label=printable(clipped(label)),
        style="max-width: 100%; height: auto; font-size: 11px; color: inherit",
    )
    return element("figure", drawn, element("figcaption", text(_caption(drawing, number, question, len(shown)))))


def _caption(drawing: Drawing, number: int, question: DrawnQuery | None, shown: int) -> str:
    caption = f"{drawing.label}: {plural(drawing.files, 'file')}"
    if shown < drawing.files:
        caption += f", {shown:,} of them drawn"
    if question is not None and number < len(question.files):
        caption += f"; reads {question.files[number]:,} ({share_text(question.shares[number])} of the bytes)"
    return caption


def _some(count: int, most: int) -> npt.NDArray[np.int64]:
    """Choose rows of a drawing, evenly over all of them."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)


def _span(drawing: Drawing, column: str, shown: npt.NDArray[np.int64]) -> tuple[Float64Array, Float64Array]:
    low, high = (places[column][shown].astype(np.float64) / _WHOLE * _SIDE for places in (drawing.low, drawing.high))
    return low, high


def _one_below_another(count: int) -> tuple[Float64Array, Float64Array]:
    """Give each file its own line, where there is only one column."""
    edges = np.linspace(_SIDE, 0.0, count + 1)
    return edges[1:], edges[:-1]


def _reads(question: DrawnQuery | None, number: int, shown: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if question is None or number >= len(question.reads):
        return np.zeros(len(shown), np.bool_)
    return np.asarray(question.reads[number], np.bool_)[shown]


def _unread(count: int, *, is_behind: bool) -> Mapping[str, str]:
    """Return the paint of unread files: fainter the more there are, and faintest behind files that are read."""
    faint = min(0.6, max(0.06, 12 / max(count, 1)))
    deepest = min(faint, _HELD_BACK) if is_behind else faint
    paint = {
        "fill": NOTEBOOK_UNREAD,
        "fill_opacity": f"{deepest:.2f}",
        "stroke": NOTEBOOK_UNREAD,
        "stroke_width": "0.6",
    }
    return {**paint, "stroke_opacity": "0.6"}


def _files(
    left: Float64Array,
    right: Float64Array,
    bottom: Float64Array,
    top: Float64Array,
    which: npt.NDArray[np.bool_],
    paint: Mapping[str, str],
) -> Html:
    width, height = np.maximum(right - left, _LEAST), np.maximum(top - bottom, _LEAST)
    x, y = _LEFT + np.minimum(left, _SIDE - width), _AROUND + _SIDE - np.minimum(bottom, _SIDE - height) - height
    drawn = [
        _field(*each)
        for each in zip(
            x[which].tolist(), y[which].tolist(), width[which].tolist(), height[which].tolist(), strict=True
        )
    ]
    return element("g", *drawn, **paint) if drawn else NOTHING


def _boxes(question: DrawnQuery | None, across: Axis, up: Axis | None) -> Iterator[Html]:
    """Outline a query's boxes; they span the whole of a column without a condition."""
    columns = [axis.column for axis in (across, up) if axis is not None]
    if question is None or not any(column in question.boxes for column in columns):
        return
    spans = [question.boxes.get(column, ((0, _WHOLE),)) for column in columns] + [((0, _WHOLE),)] * (up is None)
    for (left, right), (bottom, top) in islice(product(*spans), _MOST_BOXES):
        x, y = _LEFT + left / _WHOLE * _SIDE, _AROUND + _SIDE - top / _WHOLE * _SIDE
        width, height = ((end - start) / _WHOLE * _SIDE for start, end in ((left, right), (bottom, top)))
        yield _field(
            x, y, max(width, _LEAST), max(height, _LEAST), fill="none", stroke="currentColor", stroke_width="1.5"
        )


def _field(x: float, y: float, width: float, height: float, **paint: str) -> Html:
    return element("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{height:.1f}", **paint)


def _scale(axis: Axis | None, *, is_up: bool) -> Html:
    """Write a column's name along its axis, and the labels of its first and its last tick."""
    name = "one file below another" if axis is None else clipped(axis.column, _MOST_NAME)
    labels = [_label(_SIDE / 2, name, "middle", is_up=is_up, line=1)]
    if axis is not None and len(axis.ticks) > 1:
        ends = axis.ticks[0], axis.ticks[-1]
        for (place, _), value in zip(ends, apart([value for _, value in ends], _MOST_TICK), strict=True):
            along = place / _WHOLE
            anchor = "start" if along < 0.1 else "end" if along > 0.9 else "middle"  # nothing is cut at the edges
            labels.append(_label(along * _SIDE, value, anchor, is_up=is_up, line=0))
    return joined(labels)


def _label(along: float, label: str, anchor: str, *, is_up: bool, line: int) -> Html:
    """Write a label beside an axis, at a distance along it, in the first or the second line from it."""
    away = 14 * line
    x, y = (_LEFT - 5 - away, _AROUND + _SIDE - along) if is_up else (_LEFT + along, _AROUND + _SIDE + 14 + away)
    turned = f"rotate(-90 {x:.1f} {y:.1f})" if is_up else ""
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text_anchor": anchor, "transform": turned}
    return element("text", text(label), fill="currentColor", **place)
