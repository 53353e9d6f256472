"""The figure of growing tables: what upkeep cost and what queries read, and how that went from append to append."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH, HEIGHT, TOP, LEFT, GAP, ROW = 400, 300, 50, 60, 90, 22
COLORS = {
    "always": "#868e96",
    "never": "#212529",
    "zonal-delta-2": "#d9480f",
    "zonal-delta-3": "#f59f00",
    "zonal-iceberg-2": "#862e9c",
    "zonal-iceberg-3": "#e64980",
    "liquid": "#1864ab",
    "liquid-small": "#4dabf7",
    "rewrite": "#2b8a3e",
    "rewrite-all": "#82c91e",
}
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 14px }
  .frame { fill: #ffffff; stroke: #ced4da }
  .grid { stroke: #e9ecef }
  .course { fill: none; stroke-width: 1.8 }
  .late { fill: #ffffff; stroke-width: 2 }
"""
COSTS = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 300.0)
Marks = Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Line:
    """One policy's course."""

    name: str
    title: str
    late: float
    cost: float
    appends: Sequence[int]
    over: Sequence[float]
    """Share read as a multiple of a fresh clustering's."""

    @property
    def mean(self) -> float:
        """Return the mean of all looks."""
        return float(np.mean(self.over))


@dataclass(frozen=True)
class Panel:
    """A frame with the scales of its axes, both from 0 to 1."""

    left: float
    title: str
    below: str

    def x(self, share: float) -> float:
        """Return where a share of the width is."""
        return self.left + WIDTH * share

    def y(self, share: float) -> float:
        """Return where a share of the height is."""
        return TOP + HEIGHT * (1 - share)

    def frame(self, across: Marks, upward: Marks) -> Iterator[str]:
        """Draw the frame, its grid and the marks of both axes."""
        yield f'<rect class="frame" x="{self.left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>'
        yield f'<text class="title" x="{self.left}" y="{TOP - 16}">{escape(self.title)}</text>'
        yield f'<text x="{self.x(0.5):.1f}" y="{TOP + HEIGHT + 40}" text-anchor="middle">{escape(self.below)}</text>'
        for at, text in across:
            yield f'<path class="grid" d="M{self.x(at):.1f} {TOP}V{TOP + HEIGHT}"/>'
            yield f'<text x="{self.x(at):.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{text}</text>'
        for at, text in upward:
            yield f'<path class="grid" d="M{self.left} {self.y(at):.1f}H{self.left + WIDTH}"/>'
            yield f'<text x="{self.left - 8}" y="{self.y(at) + 4:.1f}" text-anchor="end">{text}</text>'


def draw(lines: Sequence[Line]) -> str:
    """Draw costs against shares on the left, shares over appends without late rows on the right, and a legend."""
    punctual = [line for line in lines if line.late == 0]
    low, high = np.floor(min(min(line.over) for line in lines) * 5) / 5, max(max(line.over) for line in lines)
    upward = [((share - low) / (high * 1.03 - low), f"{share:.1f}") for share in np.arange(low, high, 0.2)]
    costs = Panel(LEFT, "share read, of fresh (hollow: with late rows)", "bytes rewritten per byte appended")
    times = Panel(LEFT + WIDTH + GAP, "share read, of fresh, as the table grows", "appends")
    dearest = max(line.cost for line in lines) * 1.15
    across = [(_place(cost, dearest), f"{cost:g}") for cost in COSTS if cost < dearest]
    last = punctual[0].appends[-1]
    body = [*costs.frame(across, upward)]
    body += [_dot(costs, line, _place(line.cost, dearest), (line.mean - low) / (high * 1.03 - low)) for line in lines]
    body += times.frame([(at / 4, f"{last * at / 4:.0f}") for at in range(5)], upward)
    body += [_course(times, line, last, (np.array(line.over) - low) / (high * 1.03 - low)) for line in punctual]
    body += _legend(punctual, lines)
    height = TOP + HEIGHT + 60 + ROW * (len(punctual) + 1)
    size = f'viewBox="0 0 {LEFT + 2 * WIDTH + GAP + 20} {height}"'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', f"<style>{STYLE}</style>", *body, "</svg>", ""]
    )


def _place(cost: float, dearest: float) -> float:
    """Return the place of a cost between 0 and the dearest: nearly even at first, then by its logarithm."""
    return float(np.log1p(cost) / np.log1p(dearest))


def _dot(panel: Panel, line: Line, x: float, y: float) -> str:
    color, kind = COLORS[line.name], ' class="late"' if line.late else ""
    fill = "" if line.late else f' fill="{color}"'
    return f'<circle{kind} cx="{panel.x(x):.1f}" cy="{panel.y(y):.1f}" r="5" stroke="{color}"{fill}/>'


def _course(panel: Panel, line: Line, last: int, heights: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> str:
    points = zip(line.appends, heights.tolist(), strict=True)
    path = " ".join(f"{panel.x(at / last):.1f},{panel.y(height):.1f}" for at, height in points)
    return f'<polyline class="course" stroke="{COLORS[line.name]}" points="{path}"/>'


def _legend(punctual: Sequence[Line], lines: Sequence[Line]) -> Iterator[str]:
    """Yield one line per policy with its numbers, and with late rows after them."""
    top = TOP + HEIGHT + 72
    columns = (LEFT + 20, LEFT + 400, LEFT + 560, LEFT + 720)
    headings = "", "bytes per byte", "share, of fresh", "with late rows"
    for x, text in zip(columns, headings, strict=True):
        yield f'<text class="title" x="{x}" y="{top}">{text}</text>'
    for row, line in enumerate(punctual, 1):
        late = [f"{other.cost:.2f}; {other.mean:.2f}" for other in lines if other.name == line.name and other.late]
        y = top + ROW * row
        yield f'<circle cx="{LEFT + 6}" cy="{y - 4}" r="5" fill="{COLORS[line.name]}"/>'
        for x, text in zip(columns, (line.title, f"{line.cost:.2f}", f"{line.mean:.2f}", *late[:1]), strict=False):
            yield f'<text x="{x}" y="{y}">{escape(text)}</text>'
