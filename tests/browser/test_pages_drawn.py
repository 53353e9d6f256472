"""Pages in a browser: that they draw, ask nobody, answer their controls, and run nothing that a name brought."""

import dataclasses
import json
import os
import re
import shutil
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support import picture_values as made
from support.advice_values import advice
from support.grouped import changed
from support.pages import advice_page, audit_page, clustering_page, explanation_page, health_page
from zonal.picture.picture import picture_of
from zonal.report.machine.json_form import to_json
from zonal.report.notebook.results import html_of
from zonal.report.wording import share_text

pytestmark = pytest.mark.browser

HOSTILE = (
    "</script><script>alert(1)</script>",
    '<img src=x onerror="alert(2)">',
    '<a href="javascript:alert(3)">%{x}</a><b>$x$',
    "\u202e\u2028&lt;i&gt;\x00" + "long" * 200,
)


# --- the browser: Debian's Chromium, driven by Playwright, which needs no download then ---


@pytest.fixture(scope="session")
def chromium():
    """The browser, started by the first test that asks for it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright isn't installed: make browser")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no chromium is on the PATH")
    with playwright.sync_playwright() as found:
        # The sandbox asks for rights that containers don't give; the pages are our own.
        browser = found.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page in the browser, with everything that it complained about or asked the network for."""

    def __init__(self, tab):
        self.tab = tab
        self.complaints, self.requests = [], []
        tab.on("console", lambda message: self.complaints.append(message.text))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))

    def choose(self, name, value, chart="files"):
        """Choose an option above a chart."""
        self.tab.select_option(f"figure[data-chart={chart}] select[data-choice={name}]", value)

    def said(self, chart="files"):
        """What is said below the fields of a chart."""
        return self.tab.locator(f"figure[data-chart={chart}] .said").all_inner_texts()

    def drawn(self, chart="files", field=0):
        """What plotly was given to draw: its traces and its layout."""
        return self.tab.evaluate(
            "([chart, field]) => { const plot = document.querySelectorAll(`figure[data-chart=${chart}] .plot`)[field];"
            " return {traces: plot.data, layout: plot.layout}; }",
            [chart, field],
        )


@pytest.fixture
def open_page(chromium, tmp_path):
    """Open a page's text at a width, from a file, without a network."""
    contexts = []

    def opened(text, width=1280, scheme="light", **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        found = Opened(context.new_page())

        def judge(route):
            if route.request.url.startswith("file:") and route.request.url.endswith("/page.html"):
                route.continue_()
            else:
                found.requests.append(route.request.url)
                route.abort()

        context.route("**/*", judge)
        path = Path(tmp_path) / "page.html"
        path.write_text(text, encoding="utf-8")
        found.tab.goto(path.as_uri())
        found.tab.wait_for_function("() => !document.querySelector('.plot:not(.drawn)')")
        return found

    yield opened
    for context in contexts:
        context.close()


# --- pages ------------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("which", PAGES)
def test_a_page_draws_every_chart_and_asks_nobody(open_page, which, width):
    page = open_page(PAGES[which](), width)
    plots = page.tab.locator(".plot").count()
    assert plots, "there is something to draw"
    assert page.tab.locator(".plot.drawn .main-svg").count() >= plots
    assert page.complaints == []
    assert page.requests == []
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width, "nothing reaches beyond the screen"
    shots = os.environ.get("ZONAL_SHOTS")
    if shots:
        page.tab.screenshot(path=str(Path(shots) / f"{which}-{width}.png"), full_page=True)


def test_no_name_becomes_markup(open_page):
    page = open_page(PAGES["hostile"]())
    for value in ("q0", "q1", "q2", "q3", "c0", ""):
        page.choose("marked", value)
    page.choose("up", "n")
    page.choose("across", "3")
    page.tab.locator("figure[data-chart=reads] .plot .nsewdrag").first.hover()
    page.tab.locator("figure[data-chart=commits] .plot .nsewdrag").first.hover()
    assert page.complaints == []
    assert page.tab.locator("main img, main a[href], .plot a, svg a, main b:has-text('$')").count() == 0
    names = page.tab.locator("figure[data-chart=files] .xtitle").all_text_contents()
    assert all("long" in name for name in names)
    page.choose("across", "2")
    titles = page.tab.locator("figure[data-chart=files] .xtitle").all_text_contents()
    assert titles
    assert all('<a href="javascript:alert(3)">' in title for title in titles), "a tag is shown, not made"


def test_the_policy_stops_a_script_that_is_not_the_pages_own(open_page):
    text = PAGES["clustering"]().replace("</main>", "<script>document.title = 'taken'</script></main>")
    page = open_page(text)
    assert page.tab.title() != "taken"
    assert any("Content Security Policy" in complaint for complaint in page.complaints)


def test_a_chosen_query_colors_the_files_that_it_reads(open_page):
    done = made.clustering(80, 20)
    page = open_page(clustering_page(done))
    for number in (0, 1, 7):
        page.choose("marked", f"q{number}")
        question = done.picture.questions[number]
        for field in (0, 1):
            shapes = page.drawn(field=field)["layout"]["shapes"]
            read = page.tab.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--read')").strip()
            wanted = f"rgba({int(read[1:3], 16)},{int(read[3:5], 16)},{int(read[5:], 16)},"
            colored = [shape for shape in shapes if shape["fillcolor"].startswith(wanted)]
            assert sum(shape["path"].count("Z") for shape in colored) == question.files[field]
            assert shapes[len(shapes) - len(colored) :] == colored, "above all others"
            assert {shape["line"]["color"] for shape in colored} == {f"{wanted}1)"}, "with a clear outline"
            others = [float(shape["fillcolor"].rpartition(",")[2][:-1]) for shape in shapes[: -len(colored)]]
            assert np.prod([1 - each for each in others]) > 0.5, "which leave what is above them to be seen"
            said = page.said()[field]
            assert f"reads {question.files[field]:,} of {done.picture.drawings[field].files:,} files" in said
            assert share_text(question.shares[field]) in said


def test_chosen_columns_are_drawn(open_page):
    done = made.clustering(40, 4)
    page = open_page(clustering_page(done))
    page.choose("across", "1")
    page.choose("up", "0")
    page.choose("marked", "")
    drawn = page.drawn(field=1)
    drawing = done.picture.drawings[1]
    paths = {path for shape in drawn["layout"]["shapes"] for path in shape["path"].split("Z") if path}
    sides = (drawing.low["payload_id"], drawing.low["ts"], drawing.high["payload_id"], drawing.high["ts"])
    wanted = zip(*(side.tolist() for side in sides), strict=True)
    assert paths == {f"M{left},{bottom}H{right}V{top}H{left}" for left, bottom, right, top in wanted}
    assert drawn["layout"]["xaxis"]["title"]["text"] == "payload_id"
    page.choose("up", "n")
    assert page.drawn(field=1)["layout"]["yaxis"]["title"]["text"] == "files"


def test_a_commits_files_can_be_shown(open_page):
    found = made.audit(80, 8)
    page = open_page(audit_page(found))
    page.choose("marked", "c0")
    assert page.said() == ["Added none of these files.", "Added 10 of the 80 files drawn."]


def test_the_depth_of_a_chosen_column_is_drawn(open_page):
    found = made.health(80)
    page = open_page(health_page(found))
    for number, column in enumerate(found.columns):
        page.choose("column", str(number), "depths")
        bars = page.drawn("depths")["traces"][0]
        assert bars["y"] == list(column.depth.histogram.values())
        assert f"Mean depth {column.depth.average_depth:,.1f}" in page.said("depths")[0]


def test_numbers_on_the_page_are_those_of_the_json(open_page):
    found = made.audit(80, 20)
    told = json.loads(to_json(found))
    page = open_page(audit_page(found, made.past_audits(), made.past_runs()))
    tiles = page.tab.locator(".tiles b").all_inner_texts()
    wanted = [told["ratio"], told["byte_share"], told["excess_share"], told["fresh"]["byte_share"], told["selectivity"]]
    assert tiles == [share_text(value) for value in wanted]
    bars = page.drawn("reads")["traces"][0]["y"]
    assert bars == pytest.approx(sorted((each["byte_share"] for each in told["asked"]), reverse=True), abs=1e-6)
    blamed = page.drawn("commits")["traces"][0]["x"]
    assert blamed == pytest.approx(sorted((each["read_share"] for each in told["commits"]), reverse=True))
    cells = page.tab.locator("figure[data-chart=commits] details tbody tr td:nth-child(6)").all_text_contents()
    assert cells == [share_text(each["excess_share"]) for each in told["commits"]]


def test_regressions_are_marked_and_told(open_page):
    done = made.clustering(80, 20)
    page = open_page(clustering_page(done))
    shares = sorted((question.shares for question in done.picture.questions), key=lambda pair: -pair[0])
    lost = [at for at, (before, after) in enumerate(shares) if after > before + 0.001]
    assert 0 < len(lost) < len(shares), "some lose, some don't"
    traces = page.drawn("reads")["traces"]
    alarm = next(trace for trace in traces if trace["name"] == "reads more than before")
    assert [at for at, value in enumerate(alarm["y"]) if value is not None] == lost
    assert page.said("reads")[0].startswith(f"{len(lost)} quer")
    page.tab.locator("figure[data-chart=reads] summary").click()
    assert page.tab.locator("figure[data-chart=reads] .bad-text").count() == len(lost)


def test_an_audit_marks_queries_that_read_more_than_before_the_culprit(open_page):
    found = made.audit(80, 20)
    page = open_page(audit_page(found))
    asked = sorted(found.asked, key=lambda each: -each.reads.byte_share)
    lost = [at for at, each in enumerate(asked) if each.reads.byte_share > each.before_share + 0.001]
    assert 0 < len(lost) == found.blame.before.worse
    traces = {trace["name"]: trace["y"] for trace in page.drawn("reads")["traces"]}
    assert traces["version 12, before that"] == pytest.approx([each.before_share for each in asked], abs=1e-6)
    assert [at for at, value in enumerate(traces["reads more than before"]) if value is not None] == lost
    assert page.said("reads")[0].startswith(f"{len(lost)} quer")
    color = page.drawn("commits")["traces"][0]["marker"]["color"]
    assert color[0] != color[1], "the culprit stands out"
    assert len(page.drawn("depths")["traces"]) == 2, "depths before and now"


def test_charts_follow_the_color_scheme(open_page):
    page = open_page(PAGES["clustering"]())
    light = page.drawn("depths")["layout"]["font"]["color"]
    page.tab.emulate_media(color_scheme="dark")
    page.tab.wait_for_function(
        "light => document.querySelector('figure[data-chart=depths] .plot').layout.font.color !== light", arg=light
    )
    ink = page.tab.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink')").strip()
    assert page.drawn("depths")["layout"]["font"]["color"] == ink != light


def test_paper_is_white_and_not_wider_than_a_sheet(open_page, tmp_path):
    page = open_page(PAGES["clustering"](), scheme="dark")
    page.tab.emulate_media(media="print")
    page.tab.wait_for_function("() => document.querySelector('.plot').layout.font.color === '#000000'")
    assert page.drawn("reads")["layout"]["width"] <= 680
    page.tab.pdf(path=str(tmp_path / "page.pdf"), format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    assert page.complaints == []


def contrast(one, other):
    """The contrast of two colors by the rule of WCAG 2."""

    def light(color):
        parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(open_page, scheme):
    page = open_page(PAGES["audit"](), scheme=scheme)
    found = page.tab.evaluate(
        """() => {
          const paper = getComputedStyle(document.body).backgroundColor;
          const behind = (node) => {
            for (let at = node; at; at = at.parentElement) {
              const color = getComputedStyle(at).backgroundColor;
              if (!color.endsWith(", 0)") && color !== "transparent") return color;
            }
            return paper;
          };
          const texts = Array.from(document.querySelectorAll("main *")).filter((node) =>
            Array.from(node.childNodes).some((child) => child.nodeType === 3 && child.textContent.trim()));
          return texts.map((node) => {
            const isSvg = node instanceof SVGElement;
            const style = getComputedStyle(node);
            return [isSvg ? style.fill : style.color, behind(node), node.textContent.slice(0, 40)];
          });
        }"""
    )
    assert len(found) > 100
    weak = {text: contrast(color, back) for color, back, text in found if contrast(color, back) < 4.5}
    assert not weak


def test_every_chart_has_a_name_a_caption_and_a_table(open_page):
    page = open_page(PAGES["audit"]())
    for figure in page.tab.locator("figure").all():
        assert figure.locator("figcaption").inner_text().strip()
        assert figure.locator("details table tbody tr").count() > 0
        for plot in figure.locator(".plot").all():
            assert plot.get_attribute("role") == "img"
            assert len(plot.get_attribute("aria-label")) > 10
    for select in page.tab.locator("select").all():
        assert select.evaluate("node => node.closest('label').innerText.trim().length") > 0


def many_files(count=10_000, columns=12, asked=200):
    schema = pa.schema([(f"column_{number}", pa.int64()) for number in range(columns)])
    versions = []
    for label, seed in (("before", 0), ("after", 1)):
        random = np.random.default_rng(seed)
        low = random.integers(0, 1_000_000, (columns, count))
        width = 300_000 if label == "before" else 9_000
        pairs = {name: list(zip(values.tolist(), (values + width).tolist(), strict=True))
                 for name, values in zip(schema.names, low, strict=True)}  # fmt: skip
        versions.append((label, made.snapshot(pairs, schema)))
    texts = [f"column_{at % columns} BETWEEN {at * 4000} AND {at * 4000 + 500}" for at in range(asked)]
    return picture_of(versions, schema.names, [(each, made.bound(each, schema), 1.0) for each in texts])


def test_ten_thousand_files_are_fluid_and_small(open_page):
    done = dataclasses.replace(made.clustering(40, 4), picture=many_files())
    text = clustering_page(done)
    assert len(text.encode()) < 8_000_000
    began = time.monotonic()
    page = open_page(text)
    loaded = time.monotonic() - began
    began = time.monotonic()
    page.choose("across", "5")
    page.said()
    again = time.monotonic() - began
    print(f"page of {len(text.encode()):,} bytes: drawn in {loaded:.1f} s, another column in {again:.1f} s")
    assert page.complaints == []
    assert sum(shape["path"].count("Z") for shape in page.drawn()["layout"]["shapes"]) == 10_000


# --- places and sizes -------------------------------------------------------------------------------------------------

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


def test_another_window_changes_widths_and_no_heights(open_page):
    page = open_page(PAGES["audit"]())
    first = sized(page)
    for width in (390, 1100, 844, 1280):
        found = sized(page, width)
        for before, after in zip(first, found, strict=True):
            assert after["drawn"] == [pytest.approx(after["width"], abs=1), before["drawn"][1]]
            assert after["height"] == pytest.approx(before["height"], abs=1)
            assert after["bottom"] <= after["next"] + 1, "nothing lies over what follows"
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert [each["width"] for each in found] == [each["width"] for each in first]
    assert page.complaints == []


def test_after_printing_charts_fill_their_places_again(open_page):
    page = open_page(PAGES["audit"](), scheme="dark")
    first = sized(page)
    page.tab.emulate_media(media="print")
    page.tab.wait_for_function("() => document.querySelector('.plot').layout.font.color === '#000000'")
    assert {page.drawn(chart)["layout"]["width"] for chart in ("trend", "files")} == {680, 330}
    page.tab.emulate_media(media="screen")
    page.tab.wait_for_function("() => document.querySelector('.plot').layout.font.color !== '#000000'")
    assert sized(page) == first
    page.tab.evaluate("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
    assert sized(page) == first, "the dialog was cancelled"


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


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("which", LABELED)
def test_labels_are_seen_whole_and_apart(open_page, which, width):
    for columns in ((LABELED[which], NUMBERS), (NUMBERS, LABELED[which])):
        page = open_page(page_of(two_columns(*columns)), width)
        assert page.tab.evaluate(WORDS) == []
        assert page.complaints == []
        for side in "xy":
            found = labels(page, side)
            assert len(found) >= 2, "both ends, or more"
            assert len(set(found)) == len(found)
        field = page.tab.evaluate("document.querySelector('.plot').clientWidth")
        assert page.drawn()["layout"]["margin"]["l"] <= field / 4 + 45, "labels leave room for the files"


def test_a_narrow_field_has_the_labels_that_it_has_room_for(open_page):
    picture = two_columns([("ap", "eu"), ("us", "us")], [(0, 200_000_000), (100_000_000, 1_000_000_000)])
    page = open_page(page_of(picture), 390)
    assert labels(page) == ["ap", "eu", "us"]
    page.choose("across", "1")
    narrow = labels(page)
    sized(page, 1280)
    assert 2 <= len(narrow) <= len(labels(page)), "chosen anew"


def test_long_titles_end_with_dots(open_page):
    names = ("a_column_with_a_name_that_is_much_too_long_for_any_field_of_it", "b" * 60)
    page = open_page(page_of(two_columns(LABELED["long"], NUMBERS, names)), 390)
    assert page.tab.evaluate(WORDS) == []
    titles = [page.tab.locator(f"figure[data-chart=files] .{side}title").first.text_content() for side in "xy"]
    assert re.fullmatch(r"a_column_with.*… \(by rank\)", titles[0])
    assert re.fullmatch(r"b+…", titles[1])


def test_points_can_be_seen(open_page):
    points = [(at * 10, at * 10) for at in range(5)]
    page = open_page(page_of(two_columns(points, points, questions=["first = 20 AND second = 20", "first = 10"])))
    sizes = page.tab.locator("figure[data-chart=files] .field:first-child .shapelayer path").evaluate_all(
        "nodes => nodes.map(node => node.getBBox()).map(box => [box.width, box.height])"
    )
    assert len(sizes) == 5
    assert all(2 <= side <= 5 for size in sizes for side in size)
    for number, least in ((0, (6, 6)), (1, (0, 300))):
        page.choose("marked", f"q{number}")
        line = page.tab.locator("figure[data-chart=files] .field:first-child .scatterlayer path.js-line")
        box = line.evaluate("node => { const box = node.getBBox(); return [box.width, box.height]; }")
        assert all(side >= wanted for side, wanted in zip(box, least, strict=True))
        assert box[0] < 10


# --- numbers and names ------------------------------------------------------------------------------------------------


def ticks(page, chart, side):
    return page.tab.locator(f"figure[data-chart={chart}] .{side}axislayer-above .{side}tick text").all_text_contents()


@pytest.mark.parametrize("most", [1.0, 3e-5, 4e-9])
def test_labels_of_shares_differ_however_small_they_are(open_page, most):
    found = made.audit(40, 8)
    asked = tuple(changed(each, byte_share=most / (at + 1), partition_bytes=0, before_share=most / 2,
                                      fresh_share=most / 9) for at, each in enumerate(found.asked))  # fmt: skip
    commits = tuple(dataclasses.replace(each, read_share=most * each.read_share) for each in found.blame.commits)
    past = tuple(dataclasses.replace(each, ratio=most * each.ratio) for each in made.past_audits())
    found = changed(found, asked=asked, commits=commits, ratio=most / 3)
    page = open_page(audit_page(found, past, limit=most / 4))
    for chart, side in (("reads", "y"), ("trend", "y"), ("commits", "x")):
        labels = [label for label in ticks(page, chart, side) if label]
        assert len(set(labels)) == len(labels) >= 3, (chart, labels)
        assert all(label.endswith("%") for label in labels)


def test_the_line_of_steps_reaches_over_the_outer_bars(open_page):
    page = open_page(PAGES["clustering"]())
    line = next(trace for trace in page.drawn("reads")["traces"] if trace.get("line", {}).get("shape") == "hvh")
    assert (line["x"][0], line["x"][-1]) == (1 - 0.425, 20 + 0.425)
    assert len(line["x"]) == len(line["y"]) == len(line["hovertext"]) == 22
    assert page.drawn("reads")["layout"]["bargap"] == pytest.approx(0.15)


@pytest.mark.parametrize("width", [1280, 390])
def test_rewrites_are_labeled_where_there_is_room(open_page, width):
    (run,) = made.past_runs()
    hours = [0, 1, 2, 30, 31, 200, 290]
    runs = [dataclasses.replace(run, finished=run.finished + timedelta(hours=each)) for each in hours]
    page = open_page(audit_page(made.audit(80, 20), made.past_audits(), runs), width)
    assert page.tab.evaluate(WORDS) == []
    found = page.tab.locator("figure[data-chart=trend] .annotation").all_text_contents()
    assert 2 <= found.count("clustered") < len(runs)
    assert len(page.drawn("trend")["traces"][1]["x"]) == len(runs), "each has its line"


def test_audits_within_seconds_lie_apart(open_page):
    found = made.audit(40, 8)
    past = [dataclasses.replace(each, audited=found.made.audited - timedelta(seconds=2 * at + 2))
            for at, each in enumerate(made.past_audits(4))]  # fmt: skip
    page = open_page(audit_page(found, past), 390)
    assert page.tab.evaluate(WORDS) == []
    boxes = [point.bounding_box() for point in page.tab.locator("figure[data-chart=trend] .points path").all()]
    assert max(box["x"] for box in boxes) - min(box["x"] for box in boxes) > 200


def test_a_share_beside_a_bar_is_not_cut(open_page):
    found = made.audit(80, 20)
    shares = [
        dataclasses.replace(each, read_share=part) for each, part in zip(found.blame.commits, (1.0, 1e-4), strict=True)
    ]
    page = open_page(audit_page(changed(found, commits=tuple(shares))), 390)
    assert page.tab.evaluate(WORDS) == []
    assert "100.0%" in page.tab.locator("figure[data-chart=commits] .barlayer text").all_text_contents()


def test_dollars_are_shown_and_no_formula_is_looked_for(open_page):
    names = ("$price$", "a$b$c")
    page = open_page(page_of(two_columns([("$1$", "$2$")] * 3, NUMBERS[:3], names, ["\"$price$\" = '$1$'"])))
    titles = [page.tab.locator(f"figure[data-chart=files] .{side}title").first.text_content() for side in "xy"]
    assert titles == ["$price$ (by rank)", "a$b$c"]
    assert labels(page) == ["$1$", "$2$"]
    page.tab.locator("figure[data-chart=depths] .plot .nsewdrag").first.hover()
    assert page.complaints == []


def test_what_is_told_follows_what_is_chosen(open_page):
    page = open_page(PAGES["audit"]())

    def told(chart):
        return page.tab.locator(f"figure[data-chart={chart}] .plot").last.get_attribute("aria-label")

    heading = page.tab.locator("figure[data-chart=files] h3").last.text_content()
    assert told("files") == f"{heading}: files as rectangles over ts and payload_id; files that a query reads stand out"
    page.choose("across", "2")
    page.choose("up", "n")
    page.choose("marked", "c0")
    assert told("files") == (
        f"{heading}: files as rectangles over device and their number; files that a commit added stand out"
    )
    assert told("depths") == "files by depth in ts"
    page.choose("column", "1", "depths")
    assert told("depths") == "files by depth in payload_id"


def test_files_of_nulls_alone_are_counted(open_page):
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    for nulls, said in ((1, "1 file holds nulls alone, and has no place here."),
                        (2, "2 files hold nulls alone, and have no place here.")):  # fmt: skip
        pairs = [(None, None)] * nulls + [(at, at + 5) for at in range(4 - nulls)]
        table = made.snapshot({"x": pairs, "y": pairs}, schema, nulls=[1000] * nulls + [0] * (4 - nulls))
        page = open_page(page_of(picture_of([("now", table)], ["x", "y"])))
        assert page.said() == [said]


def test_headings_in_a_notebook_are_not_broken_within_words(open_page):
    results = [made.audit(40, 8), made.health(40), made.clustering(40, 8)]
    page = open_page("<!doctype html><body style='width: 420px'>" + "".join(map(html_of, results)))
    broken = page.tab.evaluate(
        """() => Array.from(document.querySelectorAll("thead th")).flatMap((head) => {
          const node = head.firstChild, found = [];
          for (const word of node.data.matchAll(/[^ -]+/g)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            if (new Set(Array.from(range.getClientRects()).map((box) => box.top)).size > 1) found.push(word[0]);
          }
          return found;
        })"""
    )
    assert broken == []
    assert page.tab.evaluate(WORDS.replace(".plot", "svg").replace(".main-svg text", "text").replace(
        "plot.closest('figure').dataset.chart", "''")) == []  # fmt: skip


EXPORTED = """
.out dl { width: 100%; overflow: hidden; } .out dt { font-weight: bold; float: left; width: 20%; }
.out dd { float: left; width: 80%; } .out table { table-layout: fixed; margin: 0 auto; }
:not(.other).out td, :not(.other).out th { text-align: right; white-space: normal; max-width: none; }
"""
"""Rules such as those of nbconvert's templates."""


@pytest.mark.parametrize("width", [900, 420])
def test_labels_in_an_exported_notebook_stand_in_one_line_beside_their_facts(open_page, width):
    results = "".join(map(html_of, [made.audit(40, 8), made.health(40), made.clustering(40, 8)]))
    page = open_page(f"<!doctype html><style>{EXPORTED}</style><body><div class=out>{results}</div>", width)
    lines = page.tab.evaluate(
        """() => Array.from(document.querySelectorAll("dt, td.number")).map((label) => {
          const range = document.createRange();
          range.selectNodeContents(label);
          return [label.innerText, new Set(Array.from(range.getClientRects()).map((box) => box.top)).size];
        })"""
    )
    assert len(lines) > 20
    assert [label for label, count in lines if count > 1] == []
    align = "() => Array.from(document.querySelectorAll('tbody th')).map((head) => getComputedStyle(head).textAlign)"
    assert set(page.tab.evaluate(align)) == {"left"}
