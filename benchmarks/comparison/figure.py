"""The figures of the comparison: what rewrites cost against what queries read, and what queries cost each engine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import exp, log
from statistics import mean

from benchmarks.growth.figure import STYLE

WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y, ROW = 400, 240, 60, 50, 90, 110, 22
BAR, NAME = 18, 210
COLORS = {
    "unclustered": "#212529",
    "spark-sort": "#868e96",
    "iceberg-zorder": "#2b8a3e",
    "iceberg-hilbert": "#82c91e",
    "delta-zorder": "#4dabf7",
    "delta-liquid": "#1864ab",
    "delta-rs": "#12b886",
    "zonal-delta-zorder": "#d9480f",
    "zonal-delta-hilbert": "#f59f00",
    "zonal-iceberg-zorder": "#862e9c",
    "zonal-here": "#e64980",
    "zonal-delta-tree": "#c92a2a",
    "zonal-delta-auto": "#ff8787",
    "zonal-here-auto": "#be4bdb",
}
OTHER = "#adb5bd"
"""The color of a system that has none."""


@dataclass(frozen=True)
class Dot:
    """A system on one table."""

    system: str
    cost: float
    reads: float


@dataclass(frozen=True)
class Panel:
    """A frame at a place, with both axes from 0 to a largest value."""

    left: float
    top: float
    title: str
    right: float
    """The largest value on the horizontal axis."""
    upper: float

    def x(self, value: float) -> float:
        """Return where a value is, from left to right."""
        return self.left + WIDTH * value / self.right

    def y(self, value: float) -> float:
        """Return where a value is, from bottom to top."""
        return self.top + HEIGHT * (1 - value / self.upper)

    def frame(self, below: str) -> Iterator[str]:
        """Draw the frame, its grid and the marks of both axes."""
        bottom = self.top + HEIGHT
        yield f'<rect class="frame" x="{self.left}" y="{self.top}" width="{WIDTH}" height="{HEIGHT}"/>'
        yield f'<text class="title" x="{self.left}" y="{self.top - 12}">{escape(self.title)}</text>'
        yield f'<text x="{self.left + WIDTH / 2}" y="{bottom + 40}" text-anchor="middle">{escape(below)}</text>'
        for value in marks(self.right):
            yield f'<path class="grid" d="M{self.x(value):.1f} {self.top}V{bottom}"/>'
            yield f'<text x="{self.x(value):.1f}" y="{bottom + 20}" text-anchor="middle">{value:g}</text>'
        for value in marks(self.upper):
            yield f'<path class="grid" d="M{self.left} {self.y(value):.1f}H{self.left + WIDTH}"/>'
            yield f'<text x="{self.left - 8}" y="{self.y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'


def marks(largest: float) -> list[float]:
    """Return round values from 0 to the largest, four to ten of them.

    >>> marks(7.0), marks(120.0)
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0])
    """
    power = 10.0 ** int(f"{largest:e}".partition("e")[2])
    step = next(step for step in (0.1, 0.2, 0.5, 1.0, 2.0) if largest / (step * power) < 10) * power
    return [float(f"{at * step:.6g}") for at in range(int(largest / step + 1e-9) + 1)]


def costs_and_reads(tables: Mapping[str, Sequence[Dot]], titles: Mapping[str, str]) -> str:
    """Draw one panel per table, two in a row, with CPU-seconds to the right and megabytes read a query upward."""
    body: list[str] = []
    for number, (title, dots) in enumerate(tables.items()):
        left = LEFT + number % 2 * (WIDTH + GAP_X)
        top = TOP + number // 2 * (HEIGHT + GAP_Y)
        widest, highest = (max(values) * 1.05 for values in zip(*((dot.cost, dot.reads) for dot in dots), strict=True))
        panel = Panel(left, top, f"{title}: MB read a query", max(widest, 1e-3), max(highest, 1e-6))
        body += panel.frame("CPU-seconds of the rewrite")
        body += [_dot(panel, dot, titles) for dot in dots]
    rows = (len(tables) + 1) // 2
    top = TOP + rows * (HEIGHT + GAP_Y) - 30
    systems = list(dict.fromkeys(dot.system for dots in tables.values() for dot in dots))
    body += _legend(systems, titles, top)
    return _svg(LEFT + 2 * WIDTH + GAP_X + 20, top + ROW * ((len(systems) + 1) // 2) + 10, body)


def _dot(panel: Panel, dot: Dot, titles: Mapping[str, str]) -> str:
    said = f"{titles[dot.system]}: {dot.cost:.1f} CPU-seconds, {dot.reads:.2f} MB"
    place = f'cx="{panel.x(dot.cost):.1f}" cy="{panel.y(dot.reads):.1f}"'
    return f'<circle {place} r="6" fill="{_color(dot.system)}"><title>{escape(said)}</title></circle>'


def _legend(systems: Sequence[str], titles: Mapping[str, str], top: float) -> Iterator[str]:
    half = (len(systems) + 1) // 2
    for number, system in enumerate(systems):
        x, y = LEFT + number // half * (WIDTH + GAP_X), top + ROW * (number % half)
        yield f'<circle cx="{x + 6}" cy="{y - 4}" r="6" fill="{_color(system)}"/>'
        yield f'<text x="{x + 20}" y="{y}">{escape(titles[system])}</text>'


def query_bars(engines: Mapping[str, Mapping[str, float]], titles: Mapping[str, str]) -> str:
    """Draw for each engine a bar per system: CPU of queries as a share of what they take on the table as it arrived."""
    body: list[str] = []
    width, longest = 480, max((value for bars in engines.values() for value in bars.values()), default=1.0)
    longest = max(longest, 1.0) * 1.02
    left, top = NAME + 20, TOP
    for engine, bars in engines.items():
        title = f"{engine}: CPU, of that on the table as it arrived"
        body.append(f'<text class="title" x="{left}" y="{top - 12}">{escape(title)}</text>')
        for system, value in bars.items():
            body.append(f'<text x="{left - 8}" y="{top + 13}" text-anchor="end">{escape(titles[system])}</text>')
            length = width * value / longest
            body.append(f'<rect x="{left}" y="{top}" width="{length:.1f}" height="{BAR - 4}" fill="{_color(system)}"/>')
            body.append(f'<text x="{left + length + 6:.1f}" y="{top + 12}">{value:.2f}</text>')
            top += BAR
        one = left + width / longest
        body.append(f'<path stroke="#adb5bd" stroke-dasharray="4" d="M{one:.1f} {top - BAR * len(bars)}V{top}"/>')
        top += 50
    return _svg(left + width + 60, top, body)


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean, which suits ratios: that of 2 and 1/2 is 1."""
    return exp(mean(log(ratio) for ratio in ratios))


def _color(system: str) -> str:
    return COLORS.get(system, OTHER)


def _svg(width: float, height: float, body: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *body, "</svg>", ""])
