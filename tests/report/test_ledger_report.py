"""The ledger on terminals, on pages, in notebooks and in JSON: the same numbers, and no name that does anything."""

import io
import json
from datetime import timedelta

import pytest
from rich.console import Console

from support.history_records import AUDIT, NOON, RUN
from support.hostile_names import HOSTILE
from support.html_reader import Page
from support.pages import trend_page
from zonal.report.ledger import ledger_blocks
from zonal.report.machine.json_form import to_json
from zonal.report.notebook.results import html_of
from zonal.report.terminal.blocks import print_blocks
from zonal.verbs.trend import Trend, TrendPoint

POINTS = (
    TrendPoint(NOON, "first", 1, 1000, 900, 0.9, 1.0),
    TrendPoint(NOON + timedelta(days=1), "audit", 1, queries=1.25),
    TrendPoint(NOON + timedelta(days=2), "merge", 3, 200, 1500, 2.0, 1.125),
)


def trend(name="plain", points=POINTS, *, known=True):
    return Trend(name, "delta", name, 7, 1234, 2400, 1.945, 34, known, points, (AUDIT,), (RUN,))


def printed(given, width=140):
    out = io.StringIO()
    print_blocks(Console(file=out, width=width), ledger_blocks(given))
    return out.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_adds_nothing_to_any_output(name):
    hostile = trend(name, tuple(TrendPoint(each.time, name, 1, 1, 1, 1.0) for each in POINTS))
    plain = trend("plain", tuple(TrendPoint(each.time, "plain", 1, 1, 1, 1.0) for each in POINTS))
    assert Page(trend_page(hostile)).tags == Page(trend_page(plain)).tags
    assert Page(html_of(hostile)).tags == Page(html_of(plain)).tags
    assert all(char.isprintable() or char == "\n" for char in printed(hostile))
    assert json.loads(to_json(hostile))["table"] == name


def test_the_same_numbers_are_everywhere():
    said, page, notebook = printed(trend()), Page(trend_page(trend())).text, Page(html_of(trend())).text
    for each in ("first clustering", "0.90", "2.00", "1.12", "1.25", "1.95 bytes were rewritten per byte that arrived"):
        assert each in said
        assert each in page
        assert each in notebook
    assert "▄█  0.90 → 2.00 bytes per byte that arrived" in said
    assert "as far as the table's log" not in said
    assert "as far as the table's log" in printed(trend(known=False))


def lines_of(page):
    data = json.loads(page.partition('id="zonal-data"')[2].partition(">")[2].partition("</script>")[0])
    return data["ledger"]["lines"]


def test_a_page_draws_each_course_that_has_points():
    page = trend_page(trend())
    assert [line["values"] for line in lines_of(page)] == [[0.9, 2.0], [1.0, 1.125], [1.25]]
    without = lines_of(trend_page(trend(points=POINTS[::2])))
    assert [line["values"] for line in without] == [[0.9, 2.0], [1.0, 1.125]], "no query was asked"
    assert 'data-chart="ledger"' not in trend_page(trend(points=POINTS[:1])), "one point is no course"


def test_a_trend_is_one_flat_object():
    document = json.loads(to_json(trend()))
    assert " ".join(sorted(document)) == (
        "all_known amplification arrived_bytes audits format location points rewritten_bytes runs table version "
        "waiting_bytes"
    )
    assert document["points"][0]["amplification"] == 0.9
    assert document["points"][1]["arrived_bytes"] is None


def test_a_ledger_without_entries_says_so():
    said = printed(Trend("t", "delta", "t", 0, 0, 0, 0.0, 0, True, (), (), ()))
    assert "No run and no audit" in said


def test_a_long_ledger_is_cut():
    points = tuple(TrendPoint(NOON + timedelta(hours=n), "append", n, n, 0, 0.5) for n in range(70))
    said = printed(trend(points=points))
    assert "The last 30 of 70 runs and audits." in said
    assert said.count("append") == 30
