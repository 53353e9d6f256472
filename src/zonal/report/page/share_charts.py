"""Chart what each query reads, most first, and mark queries that read more than before."""

from collections.abc import Sequence
from dataclasses import dataclass

from zonal.picture.picture import Picture
from zonal.report.blocks import Cell, Heading, TableBlock, TableRow
from zonal.report.page.charts import Chart, shown
from zonal.report.page.frame import element, text
from zonal.report.terminal.text import query_text
from zonal.report.wording import clipped, known_share, plural
from zonal.skipping.shares import is_worse

_MOST_TEXT = 160


@dataclass(frozen=True)
class Series:
    """One number per query, None where it isn't known."""

    name: str
    look: str
    """bar, line, old, mark or alarm: how the script draws it."""
    values: Sequence[float | None]


def reads_chart(picture: Picture | None) -> Chart | None:
    """Draw what each query reads before and after, or of the one version there is; None without queries."""
    if picture is None or len(picture.questions) < 2 or not picture.drawings:
        return None
    ordered = sorted(picture.questions, key=lambda question: -question.shares[0])
    labels = [drawing.label for drawing in picture.drawings]
    shares = [[question.shares[at] for question in ordered] for at in range(len(labels))]
    texts = [query_text(question.text) for question in ordered]
    if len(labels) == 1:
        series = [Series(labels[0], "bar", shares[0])]
        return share_chart(texts, series, "share of the bytes that each query reads", "")
    before, after = shares[0], shares[-1]
    series = [Series(labels[-1], "bar", after), Series(labels[0], "line", before)]
    return share_chart(
        texts,
        [*series, *worse_series(before, after)],
        "share of the bytes that each query reads, before and after",
        worse_text(before, after),
    )


def worse_series(before: Sequence[float], after: Sequence[float]) -> list[Series]:
    """Mark the queries that read more than before; nothing where none does."""
    worse = [later if is_worse(sooner, later) else None for sooner, later in zip(before, after, strict=True)]
    return [Series("reads more than before", "alarm", worse)] if any(value is not None for value in worse) else []


def worse_text(before: Sequence[float], after: Sequence[float]) -> str:
    """Say how many queries read more than before, where they are marked."""
    lost = sum(map(is_worse, before, after))
    if not lost:
        return f"None of {plural(len(after), 'query', 'queries')} reads more than before."
    return f"{plural(lost, 'query reads', 'queries read')} more than before, of {len(after):,}: marked with a triangle."


def share_chart(texts: Sequence[str], series: Sequence[Series], label: str, said: str) -> Chart:
    """Draw shares of queries that are sorted already."""
    data = {
        "kind": "shares",
        "texts": [shown(each, _MOST_TEXT) for each in texts],
        "series": [
            {"name": shown(each.name, 60), "look": each.look, "values": [_number(value) for value in each.values]}
            for each in series
        ],
        "said_values": [[known_share(value) for value in each.values] for each in series],
    }
    caption = "Queries are numbered by what they read, most first; the table has their conditions under these numbers."
    return Chart(
        id="reads",
        label=label,
        caption=element("p", text(caption)),
        data=data,
        numbers=_numbers(texts, series),
        plots=[("", said)],
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _numbers(texts: Sequence[str], series: Sequence[Series]) -> TableBlock:
    compared = [each for each in series if each.look != "alarm"]
    alarms = [each for each in series if each.look == "alarm"]
    rows = []
    for at, query in enumerate(texts):
        lost = any(each.values[at] is not None for each in alarms)
        cells = [Cell(known_share(each.values[at])) for each in compared]
        head = f"{at + 1:,}. {clipped(query, _MOST_TEXT)}"
        mark = "reads more" if lost else ""
        rows.append(TableRow(head, cells, (), mark, "bad" if lost else "other", is_code=True))
    heads = [Heading("query", kind="text"), *(Heading(shown(each.name, 60)) for each in compared)]
    return TableBlock("What each query reads", "Share of the table's bytes that each query reads.", heads, rows)
