"""Pages in a browser: that they draw, ask nobody, answer their controls, and run nothing that a name brought."""

import dataclasses
import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support import picture_values as made
from support.browser_pages import PAGES, page_of
from support.pages import audit_page, clustering_page, health_page
from zonal.picture.picture import picture_of
from zonal.report.machine.json_form import to_json
from zonal.report.wording import share_text

pytestmark = pytest.mark.browser


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


def test_files_of_nulls_alone_are_counted(open_page):
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    for nulls, said in ((1, "1 file holds nulls alone, and has no place here."),
                        (2, "2 files hold nulls alone, and have no place here.")):  # fmt: skip
        pairs = [(None, None)] * nulls + [(at, at + 5) for at in range(4 - nulls)]
        table = made.snapshot({"x": pairs, "y": pairs}, schema, nulls=[1000] * nulls + [0] * (4 - nulls))
        page = open_page(page_of(picture_of([("now", table)], ["x", "y"])))
        assert page.said() == [said]
