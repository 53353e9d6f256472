"""Labels and sizes of charts in a browser: nothing is cut, lies over another, or is drawn too small to be seen."""

import dataclasses
import re
from datetime import timedelta

import pytest

from support import picture_values as made
from support.browser_pages import LABELED, NUMBERS, PAGES, WORDS, labels, page_of, sized, two_columns
from support.grouped import changed
from support.pages import audit_page

pytestmark = pytest.mark.browser


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
