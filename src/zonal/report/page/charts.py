"""Describe the charts of a page as values: data for the script that draws them, and the same numbers as a table.

A page carries the data as JSON that no browser runs; its texts are cut and printable, and the script escapes them
again for plotly, which reads some markup.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np

from zonal.report.blocks import TableBlock
from zonal.report.page.frame import NOTHING, Html, Scripts, element, joined, section, text
from zonal.report.page.grid import written_grid
from zonal.report.page.plotly import plotly_script
from zonal.report.terminal.text import printable
from zonal.report.wording import MOST_CHARACTERS, clipped
from zonal.values.arrays import BoolArray, UInt16Array

DATA_ID = "zonal-data"


@dataclass(frozen=True)
class Choice:
    """A select above a chart: its name for the script, what it chooses, and its options in groups."""

    name: str
    label: str
    groups: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    """Each group's label, empty where it needs none, and its options as value and text."""
    chosen: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart: its data, and the elements around it."""

    id: str
    label: str
    """A sentence for screen readers."""
    caption: Html
    data: Mapping[str, object]
    numbers: TableBlock
    """A table of what is drawn."""
    plots: Sequence[tuple[str, str]] = (("", ""),)
    """Plots side by side, each with its heading and the text below it until something is chosen."""
    choices: Sequence[Choice] = ()
    legend: Html = NOTHING
    numbers_label: str = "The numbers as a table"


def figure(chart: Chart) -> Html:
    """Write a chart's place on the page."""
    fields = [_field(chart, heading, said) for heading, said in chart.plots]
    controls = element("div", *map(_select, chart.choices), class_="controls") if chart.choices else NOTHING
    numbers = element("div", written_grid(chart.numbers), class_="scroll")
    folded = element("details", element("summary", text(chart.numbers_label)), numbers)
    return element(
        "figure",
        joined([
            controls,
            chart.legend,
            element("div", *fields, class_="plots"),
            element("figcaption", chart.caption),
            folded,
        ]),
        data_chart=chart.id,
    )  # fmt: skip


def _field(chart: Chart, heading: str, said: str) -> Html:
    waiting = element("p", text("The script of this page draws here; the numbers stand below."), class_="soft")
    return element(
        "div",
        element("h3", text(heading)) if heading else NOTHING,
        element("div", waiting, class_="plot", role="img", aria_label=f"{heading}: {chart.label}".lstrip(": ")),
        element("p", text(said), class_="said", aria_live="polite"),
        class_="field",
    )


def _select(choice: Choice) -> Html:
    groups = []
    for label, options in choice.groups:
        listed = joined(_option(value, shown, is_chosen=value == choice.chosen) for value, shown in options)
        groups.append(element("optgroup", listed, label=printable(label)) if label else listed)
    return element("label", element("span", text(choice.label)), element("select", *groups, data_choice=choice.name))


def _option(value: str, shown: str, *, is_chosen: bool) -> Html:
    mark = ' selected=""' if is_chosen else ""
    return Html(f'<option value="{text(value)}"{mark}>{text(shown, 120)}</option>')


def charted(heading: str, chart: Chart | None) -> Html:
    """Write a section around a chart; nothing where there is none."""
    return NOTHING if chart is None else section(heading, figure(chart))


def scripts_of(charts: Sequence[Chart | None]) -> Scripts | None:
    """Return what a page with these charts carries; None where there are none."""
    data = {chart.id: chart.data for chart in charts if chart is not None}
    return Scripts((plotly_script(), _drawing_script()), DATA_ID, _json(data)) if data else None


@lru_cache(maxsize=1)
def _drawing_script() -> str:
    return files("zonal.report.page").joinpath("charts.js").read_text(encoding="utf-8")


def _json(value: object) -> str:
    """Write JSON for a script element: it holds no markup and no line separators."""
    document = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return document.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# --- What data is made of --------------------------------------------------------------------------------------------


def shown(value: str, limit: int = MOST_CHARACTERS) -> str:
    """Cut an untrusted text and spell out its invisible characters; the script escapes its markup."""
    return printable(clipped(value, limit)).encode(errors="backslashreplace").decode()


def packed(places: UInt16Array) -> str:
    """Write places as base64 of two bytes each, the low one first."""
    return base64.b64encode(places.astype("<u2").tobytes()).decode()


def packed_bits(mask: BoolArray) -> str:
    """Write a mask as base64 of its bits, the lowest of each byte first."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode()


def swatches(*named: tuple[str, str]) -> Html:
    """Write a legend: what each color means. The names of colors are classes of the frame's style."""
    marks = [
        element("span", element("span", NOTHING, class_=f"swatch {color}", aria_hidden="true"), text(meaning))
        for color, meaning in named
    ]
    return element("p", joined(marks), class_="legend")
