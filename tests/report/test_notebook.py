"""What a notebook shows of a result: fragments that stand alone, say what was found, and turn no name into a tag."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zonal
from support.advice_values import HIDDEN, TREE, advice, unknown
from support.grouped import changed
from support.hostile_names import HOSTILE
from support.html_reader import Page
from support.result_values import (
    append_plan,
    appended,
    audit,
    clustering,
    drawing,
    explanation,
    health,
    hostile_advice,
    picture,
    plan,
)
from zonal.display import Shown
from zonal.errors import ZonalError
from zonal.picture.picture import Drawing, Picture
from zonal.report.notebook.rectangles import MOST_RECTANGLES, rectangles
from zonal.report.notebook.results import MOST_ROWS, html_of
from zonal.report.palette import NOTEBOOK_READ, NOTEBOOK_UNREAD
from zonal.skipping.depth import Depth
from zonal.verbs.show import ColumnHealth

RESULTS = {
    "TableHealth": health,
    "Explanation": explanation,
    "Advice": hostile_advice,
    "Clustering": clustering,
    "ClusteringPlan": plan,
    "Appended": appended,
    "AppendPlan": append_plan,
    "Audit": audit,
}


def words(result):
    return " ".join(Page(result._repr_html_()).text.split())


# --- every result ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_every_result_shows_itself_without_a_script_or_a_reference(make):
    html = make()._repr_html_()
    assert html == html_of(make())
    page = Page(html)
    assert page.tags[0] == "div", "a fragment, and not a page"
    assert not {"script", "link", "img", "iframe", "object", "form", "a", "html", "body"} & set(page.tags)
    for tag, name, content in page.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "href", "srcset", "action", "xlink:href"), (tag, name)
        assert "://" not in (content or "")
    assert "url(" not in html
    assert "@import" not in html


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_and_never_tags(make, name):
    plain, page = make()._repr_html_(), make(name)._repr_html_()
    assert Page(page).tags == Page(plain).tags, "a name adds no element"
    assert [each[:2] for each in Page(page).attributes] == [each[:2] for each in Page(plain).attributes]
    assert "<script" not in page
    assert all(char.isprintable() or char == "\n" for char in page)
    assert len(page) < 60_000, "long names are cut"
    page.encode()


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(), min_size=1, max_size=20).filter(lambda name: name != "y"))  # the other column's
def test_any_name_leaves_the_elements_as_they_are(make, name):
    assert Page(make(name)._repr_html_()).tags == Page(make()._repr_html_()).tags


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_styles_reach_nothing_else_of_the_notebook(make):
    style = make()._repr_html_().partition("<style>")[2].partition("</style>")[0]
    selectors = [each for rule in style.split("}")[:-1] for each in rule.partition("{")[0].split(",")]
    assert selectors
    assert all(each.strip().startswith(".zonal-result") for each in selectors), selectors


def test_something_else_is_refused():
    with pytest.raises(ZonalError, match="Shown is not a result that can be drawn"):
        html_of(Shown())


# --- what they say ---------------------------------------------------------------------------------------------------


def test_a_health_tells_how_well_columns_skip():
    said = words(health("ts"))
    for part in ("delta, version 7,", "5 files, 4,000 rows", "2 by ts", "zorder(ts, y), 3 of 5 files", "80%", "≥ 17",
                 "2.5", "3.5", "30.0%", "9 more columns", "2 delete files apply"):  # fmt: skip
        assert part in said, part


def test_an_explanation_tells_the_levels_and_the_share():
    said = words(explanation("ts"))
    for part in (
        "2 of 8 files: 25.0% of the table's bytes",
        "(iceberg, version 9)",
        "partitions",
        "500 B",
        "by files ts 6",
    ):
        assert part in said, part


def test_an_advice_says_what_to_do():
    said = words(advice())
    for part in ("Cluster it: queries read 37.8%", "zorder(ts, payload_id)", "5.6%\N{EN DASH}6.9%", "$5.47", "84% less",
                 "One value of 'status' has 40% of the rows."):  # fmt: skip
        assert part in said, part
    assert "No query asks for it." in words(unknown())
    assert "nan" not in words(unknown())


def test_a_clustering_tells_before_and_after():
    said = words(clustering("ts"))
    for part in ("8 files, 1.0 MB → 5 files, 900.0 KB, 4,000 rows", "version 5, 2 commits", "6 files, 1.1 MB",
                 "read 90.0% of the bytes before, 25.0% now; 30.0% were predicted", "12.5 s"):  # fmt: skip
        assert part in said, part
    nothing = changed(clustering(), added_files=0, layout="", note="Leave it: nothing helps.", picture=None)
    assert "Nothing to do. Leave it: nothing helps." in words(nothing)


def test_a_plan_tells_what_would_be_done():
    said = words(plan("ts"))
    for part in ("8 files, 1.0 MB, 4,000 rows", "about 5 files", "read 90.0% of the bytes now",
                 "Nothing was changed: leave out dry_run"):  # fmt: skip
        assert part in said, part
    assert "Nothing to do." in words(changed(plan(), files=0, note=""))


def test_an_audit_names_its_alerts_its_ratio_and_the_commit_that_did_it():
    said = words(audit("ts"))
    for part in ("Alert: ts", "0.450 by files", "52.0% of the bytes", "ts widened it 9 times", "90.0%", "41.0%",
                 "ts (partitions)"):  # fmt: skip
        assert part in said, part


def test_the_cuts_of_a_tree_are_never_shown():
    for make in (clustering, plan, health, audit):
        html = changed(make(), layout=str(TREE))._repr_html_()
        assert HIDDEN not in html
        assert "tree(ts, payload_id; 214 leaves)" in html


def test_of_many_rows_the_first_are_shown_and_the_rest_counted():
    columns = tuple(ColumnHealth(Depth(f"column {n}", 4, 1.0, 1.0, 0, {}, 1.0, 2), 5) for n in range(MOST_ROWS + 30))
    said = words(changed(health(), columns=columns, problems=tuple(f"problem {n}" for n in range(500)), picture=None))
    assert f"column {MOST_ROWS - 1}" in said
    assert f"column {MOST_ROWS} " not in said
    assert "and 30 more" in said
    assert f"and {500 - MOST_ROWS} more" in said


# --- rectangles ------------------------------------------------------------------------------------------------------


def rects(html, color=""):
    """Return x, y, width and height of the files of a color."""
    groups = html.split("<g ")[1:]
    mine = next((group.partition("</g>")[0] for group in groups if f'fill="{color}' in group), "")
    attributes = [value for tag, name, value in Page(f"<g {mine}</g>").attributes if tag == "rect"]
    return np.array(attributes, float).reshape(-1, 4) if attributes else np.zeros((0, 4))


BLUE, ORANGE = NOTEBOOK_UNREAD, NOTEBOOK_READ


def test_files_lie_where_their_bounds_are():
    low = {"x": np.array([0, 32768], np.uint16), "y": np.array([0, 65535], np.uint16)}
    high = {"x": np.array([32767, 65535], np.uint16), "y": np.array([65535, 65535], np.uint16)}
    two = Drawing("now", 1, 2, 10, np.arange(2), low, high, np.zeros(2, np.int64), ())
    html = rectangles(Picture(picture().axes, (two,), ()))
    left, right = rects(html, BLUE)
    assert left == pytest.approx([34, 6, 160, 320], abs=0.2), "the left half, over all of y"
    assert right == pytest.approx([194, 6, 160, 1], abs=0.2), "the right half at the top: y grows upward"


def test_files_that_a_query_reads_have_another_color():
    html = rectangles(picture(files=5))
    assert (len(rects(html, BLUE)), len(rects(html, ORANGE))) == (3, 2)
    assert "x = 1" in Page(html).text
    assert "reads 2 (25.0% of the bytes)" in Page(html).text
    assert html.count('stroke-width="1.5"') == 2, "a box a range"


def paint_of(html, color):
    """How a group of files is painted, and where it stands in the drawing."""
    (found,) = re.finditer(rf'<g fill="{color}" ([^>]*)>', html)
    return {
        name: float(value)
        for name, value in re.findall(r'(fill-opacity|stroke-opacity|stroke-width)="([\d.]+)"', found[1])
    }, found.start()


@pytest.mark.parametrize("files", [5, 60, 2000])
def test_files_that_are_read_are_seen_above_any_number_of_others(files):
    html = rectangles(picture(files=files))
    (unread, below), (read, above) = paint_of(html, BLUE), paint_of(html, ORANGE)
    assert below < above, "what comes later is drawn above"
    assert read["stroke-opacity"] == 1
    assert read["stroke-width"] > unread["stroke-width"]
    shade = np.array([255.0, 255.0, 255.0])
    for color, opacity in [(BLUE, unread["fill-opacity"])] * files + [(ORANGE, read["fill-opacity"])]:
        shade = (1 - opacity) * shade + opacity * np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)])
    assert shade[0] > shade[2] + 40, "more orange than blue, where all of them lie under it"


def test_a_query_whose_values_are_hidden_has_no_box():
    one = picture()
    hidden = replace(one, questions=tuple(replace(each, boxes={}) for each in one.questions))
    assert 'stroke-width="1.5"' not in rectangles(hidden)
    assert len(rects(rectangles(hidden), ORANGE)) == 2


def test_versions_stand_side_by_side():
    html = rectangles(picture(versions=2))
    assert Page(html).tags.count("svg") == Page(html).tags.count("figcaption") == 2
    assert [value for tag, name, value in Page(html).attributes if (tag, name) == ("svg", "role")] == ["img", "img"]


def test_of_many_files_some_are_drawn_and_the_caption_says_so():
    html = rectangles(picture(files=9000, versions=2))
    assert html.count("<rect") <= MOST_RECTANGLES + 10
    assert "9,000 files, 1,000 of them drawn" in Page(html).text
    assert len(html) < 300_000


def test_files_without_values_are_not_drawn():
    one = drawing(files=2)
    one.low["x"][0], one.high["x"][0] = 65535, 0
    assert len(rects(rectangles(Picture(picture().axes, (one,), ())), BLUE)) == 1


def test_a_single_column_gives_each_file_a_line():
    one = Picture(picture().axes[:1], (drawing(files=4),), ())
    found = rects(rectangles(one), BLUE)
    assert sorted(found[:, 1]) == pytest.approx([6, 86, 166, 246])
    assert found[:, 3] == pytest.approx(80)
    assert "one file below another" in Page(rectangles(one)).text


def test_a_name_stands_beside_the_values_of_its_axis():
    html = rectangles(picture())
    lines = {}
    for attributes, label in re.findall(r"<text ([^>]*)>([^<]*)</text>", html):
        side = "x" if "rotate" in attributes else "y"
        lines.setdefault(side, {}).setdefault(re.search(rf' {side}="([^"]*)"', f" {attributes}")[1], []).append(label)
    assert sorted(lines["x"].values()) == [["0", "9"], ["y"]], "what is turned has two lines beside each other"
    assert [float(x) for x in lines["x"]] == [15, 29], "the name, and then the values"
    assert len(lines["y"]) == 2


def test_values_at_the_ends_of_an_axis_are_told_apart():
    ticks = ((0, "some/rather/long/0001"), (65535, "some/rather/long/0017"))
    axes = (replace(picture().axes[0], ticks=ticks), picture().axes[1])
    said = Page(rectangles(replace(picture(), axes=axes))).text
    assert "…/0001" in said
    assert "…/0017" in said


def test_a_query_without_a_filter_is_told_in_words():
    one = picture()
    all_of_it = replace(one, questions=tuple(replace(each, text="TRUE", boxes={}) for each in one.questions))
    assert "everything: it has no filter" in Page(rectangles(all_of_it)).text


def test_what_is_around_a_result_does_not_style_it():
    """Exported notebooks style `dt` by a class, and cells by two: each rule here has two, and comes later."""
    style = re.search(r"<style>(.*?)</style>", health()._repr_html_(), re.DOTALL)[1]
    selectors = [each.strip() for rule in re.findall(r"([^{}]+)\{", style) for each in rule.split(",")]
    assert selectors
    assert [each for each in selectors if not each.startswith(".zonal-result.zonal-result")] == []
    labels = "".join(re.findall(r"\.zonal-result dt[^{]*\{([^}]*)\}", style))
    assert "float: none" in labels
    assert "width: auto" in labels
    assert "white-space: nowrap" in labels


def test_a_picture_without_axes_is_not_drawn():
    assert rectangles(Picture((), (drawing(),), ())) == ""


@pytest.mark.parametrize("name", HOSTILE[:4])
def test_a_table_with_hostile_columns_is_drawn_from_end_to_end(tmp_path, name):
    for number in range(3):
        rows = pa.table({name: [f"{name}{number}"] * 4, "y": range(number, number + 4)})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    for result in (
        zonal.show(str(tmp_path), display=zonal.Display(picture=True)),
        zonal.explain(str(tmp_path), where="y = 0", display=zonal.Display(picture=True)),
    ):
        page = Page(result._repr_html_())
        assert "svg" in page.tags
        assert not {"script", "img", "b"} & set(page.tags)
