"""Pages for the browser's tests, some with hostile names, and what is asked of a page that is drawn."""

import dataclasses

import pyarrow as pa

from support import picture_values as made
from support.advice_values import advice
from support.grouped import changed
from support.pages import advice_page, audit_page, clustering_page, explanation_page, health_page
from zonal.picture.picture import picture_of

HOSTILE = (
    "</script><script>alert(1)</script>",
    '<img src=x onerror="alert(2)">',
    '<a href="javascript:alert(3)">%{x}</a><b>$x$',
    "\u202e\u2028&lt;i&gt;\x00" + "long" * 200,
)


def hostile_audit():
    found = made.audit(60, 12, alert=True)
    name = HOSTILE[0]
    picture = found.picture
    axes = tuple(
        dataclasses.replace(axis, column=bad, ticks=tuple((place, bad) for place, _ in axis.ticks))
        for axis, bad in zip(picture.axes, HOSTILE, strict=True)
    )
    names = {axis.column: bad.column for axis, bad in zip(picture.axes, axes, strict=True)}

    def renamed(mapping):
        return {names[column]: value for column, value in mapping.items()}

    drawings = tuple(
        dataclasses.replace(each, label=name, low=renamed(each.low), high=renamed(each.high))
        for each in picture.drawings
    )
    questions = tuple(
        dataclasses.replace(each, text=HOSTILE[at % 4], boxes=renamed(each.boxes))
        for at, each in enumerate(picture.questions)
    )
    return changed(
        found,
        name=HOSTILE[1],
        picture=dataclasses.replace(picture, axes=axes, drawings=drawings, questions=questions),
        asked=tuple(dataclasses.replace(each, query=HOSTILE[at % 4]) for at, each in enumerate(found.asked)),
        commits=tuple(
            dataclasses.replace(each, operation=name, writer=HOSTILE[1], kind=HOSTILE[2], sentence=name)
            for each in found.blame.commits
        ),
        alerts=tuple(dataclasses.replace(each, text=HOSTILE[2]) for each in found.judgment.alerts),
    )


PAGES = {
    "advice": lambda: advice_page(dataclasses.replace(advice(), picture=made.explanation(80).picture)),
    "health": lambda: health_page(made.health(80)),
    "explanation": lambda: explanation_page(made.explanation(80)),
    "clustering": lambda: clustering_page(made.clustering(80, 20)),
    "audit": lambda: audit_page(made.audit(80, 20), made.past_audits(), made.past_runs()),
    "hostile": lambda: audit_page(hostile_audit(), made.past_audits(), made.past_runs()),
}

BOXES = """() => Array.from(document.querySelectorAll('.plot')).map((plot) => {
  const [own, svg] = [plot, plot.querySelector('.main-svg')].map((node) => node.getBoundingClientRect());
  const after = Array.from(plot.parentElement.children).slice(1 + Array.from(plot.parentElement.children).indexOf(plot))
    .concat(plot.closest('figure').querySelector('figcaption')).find((node) => node.getBoundingClientRect().height);
  return {height: own.height, width: own.width, drawn: [svg.width, svg.height], bottom: svg.bottom,
    next: after.getBoundingClientRect().top};
})"""


def sized(page, width=None):
    """The plots of a page in a window of this width, once they fill their places."""
    if width is not None:
        page.tab.set_viewport_size({"width": width, "height": 800})
    page.tab.wait_for_function(
        "() => Array.from(document.querySelectorAll('.plot')).every((plot) =>"
        " Math.abs(plot.clientWidth - plot.querySelector('.main-svg').getBoundingClientRect().width) < 1)"
    )
    return page.tab.evaluate(BOXES)


WORDS = """() => Array.from(document.querySelectorAll('.plot')).flatMap((plot) => {
  const box = plot.getBoundingClientRect();
  const found = Array.from(plot.querySelectorAll('.main-svg text')).filter((node) =>
    node.textContent.trim() && getComputedStyle(node).display !== 'none' && getComputedStyle(node).opacity !== '0');
  const texts = found.map((node) => [node.textContent, node.getBoundingClientRect()]);
  const chart = plot.closest('figure').dataset.chart;
  const faults = texts.filter(([, own]) =>
    own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1)
    .map(([text]) => `${chart}: ${text} is cut`);
  texts.forEach(([text, one], at) => texts.slice(at + 1).forEach(([other, two]) => {
    const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (wide > 1 && high > 3) faults.push(`${chart}: ${text} lies on ${other}`);
  }));
  return faults;
})"""


def labels(page, side="x", field=0):
    """The labels of an axis of the files that can be seen."""
    layer = f"figure[data-chart=files] .field:nth-child({field + 1}) .{side}axislayer-above text"
    found = page.tab.locator(layer).evaluate_all(
        "nodes => nodes.filter(node => getComputedStyle(node).display !== 'none').map(node => node.textContent)"
    )
    return [text for text in found if text.strip()]


def two_columns(one, other, names=("first", "second"), questions=()):
    """A picture of files over two columns, each given by its bounds: texts, or numbers."""
    kinds = [pa.string() if isinstance(pairs[0][0], str) else pa.int64() for pairs in (one, other)]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    table = made.snapshot(dict(zip(names, (one, other), strict=True)), schema)
    asks = [(text, made.bound(text, schema), 1.0) for text in questions]
    return picture_of([("before", table), ("after", table)], names, asks)


def page_of(picture):
    return clustering_page(dataclasses.replace(made.clustering(10, 2), picture=picture))


NUMBERS = [(at * 50, at * 50 + 49) for at in range(8)]
LABELED = {
    "short": [("ap-south", "us-west")] * 8,
    "long": [("customer-000000001", "customer-000099999")] * 8,
    "uuids": [(f"{at}f3a9c1e-4bbb-8ccc-{at:05d}", f"{at}f3a9c1e-4bbb-8ccc-{at + 1:05d}") for at in range(8)],
    "prefix": [(f"device-in-the-plant-{at:03d}", f"device-in-the-plant-{at + 1:03d}") for at in range(8)],
}
