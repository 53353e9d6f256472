"""Advice is drawn as text, page and JSON, from values that are made by hand."""

import io
import json
import math
import shlex
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from support.advice_values import CURVE, HIDDEN, PAID, TREE, advice, candidate, hostile, left, unknown
from support.grouped import changed
from support.hostile_names import HOSTILE
from support.html_reader import Page
from support.pages import advice_page
from zonal.advising.advice import Caution
from zonal.layouts.layout import Layout
from zonal.report.advice import advice_blocks
from zonal.report.clustering import clustering_blocks, plan_blocks
from zonal.report.command import CommandOptions, cluster_command, shell_word
from zonal.report.machine.json_form import to_json, without_cuts
from zonal.report.page.frame import element, text
from zonal.report.page.grid import bar
from zonal.report.terminal.blocks import print_blocks
from zonal.rewriting.done import RewrittenFiles
from zonal.rewriting.dry_run import ClusteringPlan, PlannedFiles, PlannedReads
from zonal.rewriting.learned import Predicted
from zonal.rewriting.outcome import Clustering, LookUps, Run
from zonal.workload.logs import Logs

CLUSTERING = Clustering(
    "t", "delta", str(TREE), Run("r", (1,), 0, 1.0), RewrittenFiles(9, 1, 1, 1, 1), LookUps(1, 1, ())
)


def printed(value, given=None, width=100):
    out = io.StringIO()
    print_blocks(Console(file=out, width=width), advice_blocks(value, given))
    return out.getvalue()


# --- text ------------------------------------------------------------------------------------------------------------


def test_the_verdict_comes_first_and_then_what_to_run():
    lines = [line for line in printed(advice()).splitlines() if line]
    assert lines[0].startswith("Cluster it: queries read 37.8% of the table now")
    assert lines[1].strip() == "zonal cluster db.events --layout 'zorder(ts, payload_id)'"


def test_the_text_tells_what_changes_at_which_cost_and_for_whom():
    said = printed(advice())
    for part in (
        "db.events (iceberg, version 7): 240 files, 1.0 TB, 3,000,000 rows",
        "queries read 37.8% of the bytes (34.0% to 41.6%",
        "partitions alone: 90.0%",
        "6.2% of the bytes (5.6% to 6.9%, 3.1% where row groups are skipped) with zorder(ts, payload_id): 84% less",
        "$5.47 for rewriting 1.0 TB: 2.0 core-hours ($0.10), old files kept for 7 days ($5.37)",
        "2.5 TB and $12.50 a day, at 400 scans a day; paid back: <1 day",
        "1 query reads more with zorder(ts, payload_id) than now:",
        "trace_id = 'abc': now 3.1%, after 9.9% (log.sql:12, asked 3 times)",
        "tree(ts, payload_id; 214 leaves)",
        "trace_id: queries' weight 8%, without 50.0%, with 2.0% (Look-ups of single values.)",
        "One value of 'status' has 40% of the rows.",
        "1,204 over 30 days: 1,100 read, 104 can't be read",
        "800; 300 ask other tables, or nothing",
        "12 of these: no filter that statistics could use",
        "212 different, measured on 106",
        "log.sql:9: can't read 'secret'",
        "The log is one day.",
    ):
        assert part in said, part


def test_a_table_that_is_to_be_left_gets_no_command():
    said = printed(left())
    assert said.startswith("Leave it: nothing helps.")
    assert "zonal cluster" not in said
    assert "leave as it is" in said


def test_an_advice_that_knows_nothing_is_printed_without_numbers():
    said = printed(unknown())
    assert said.startswith("No query asks for it.")
    assert "nan" not in said
    assert "%" not in said


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_printed_as_text(name):
    said = printed(hostile(name), width=200)
    assert all(char.isprintable() or char == "\n" for char in said), "nothing moves the cursor or turns the text"
    assert len(said) < 60_000, "long names are cut"
    said.encode()


def test_the_candidates_fit_a_narrow_terminal():
    lines = printed(advice(), width=80).splitlines()
    table = [line for line in lines if line.startswith(("┃", "│")) and "paid back" in line]
    assert table, "the last column isn't cut"


def test_only_the_best_candidates_are_printed_and_the_rest_counted():
    many = tuple(candidate(0.07 + 0.01 * n, Layout("linear", (f"c{n}",)), cost=PAID) for n in range(20))
    value = advice(candidates=(advice().best, *many, candidate(0.378)))
    said = printed(value)
    assert "linear(c6)" in said
    assert "linear(c7)" not in said
    assert "leave as it is" in said, "what is read now is always there to compare with"
    assert "And 13 other candidates." in said


# --- the command -----------------------------------------------------------------------------------------------------


def test_a_tree_is_learned_again_from_the_same_logs():
    best = candidate(0.05, replace(TREE, target_file_bytes=64 * 1024**2), cost=PAID)
    given = CommandOptions("iceberg:db.events", Logs(("my log.sql", "b.csv"), ("ev",), "trino"), (), "prod", ("uri",))
    command = cluster_command(advice(best=best), given)
    assert shlex.split(command) == [
        "zonal", "cluster", "iceberg:db.events", "--layout", "tree", "--queries", "my log.sql", "--queries", "b.csv",
        "--name", "ev", "--dialect", "trino", "--target-file-size", "64MiB", "--catalog", "prod",
        "--storage-option", "uri=…",
    ]  # fmt: skip
    assert HIDDEN not in command


def test_a_table_that_cannot_be_rewritten_in_place_is_copied():
    command = cluster_command(
        advice(format="parquet", warnings=(Caution("blocked", "plain Parquet"),)), CommandOptions("t")
    )
    assert shlex.split(command)[-2:] == ["--into", "parquet:…"]


@given(name=st.text(min_size=1, max_size=30).filter(lambda text: text.isprintable()))
def test_a_name_in_the_command_stays_one_word_of_the_layout(name):
    best = candidate(0.05, Layout("zorder", (name,)), cost=PAID)
    words = shlex.split(cluster_command(advice(best=best), CommandOptions(name)))
    assert words[2] == name
    assert Layout.parse(words[4]).columns == (name,)


def test_what_cannot_be_seen_is_escaped_for_the_shell():
    assert shell_word("a'\\\n\u202e") == r"$'a\'\\\n\u202e'"


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [advice(), left(), unknown()], ids=["cluster", "leave", "unknown"])
def test_the_page_stands_alone(value):
    page = Page(advice_page(value))
    assert not {"script", "link", "img", "iframe", "object", "form", "a"} & set(page.tags)
    for tag, name, content in page.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "href", "srcset", "action", "xlink:href"), (tag, name)
        assert "://" not in (content or "")
    assert "url(" not in advice_page(value)
    assert "@import" not in advice_page(value)


def test_the_page_says_what_the_text_says():
    words = " ".join(Page(advice_page(advice(), CommandOptions("t"))).text.split())
    for part in (
        "Cluster it: queries read 37.8%", "zonal cluster t --layout 'zorder(ts, payload_id)'", "37.8%",
        "5.6%\N{EN DASH}6.9%", "← advised", "tree(ts, payload_id; 214 leaves)", "$5.47", "trace_id = 'abc'", "9.9%",
        "One value of 'status' has 40% of the rows.", "1,204 over 30 days", "212 different", "log.sql:9",
    ):  # fmt: skip
        assert part in words, part


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_and_never_tags(name):
    plain, page = advice_page(hostile("plain")), advice_page(hostile(name))
    assert Page(page).tags == Page(plain).tags, "a name adds no element"
    assert [each[:2] for each in Page(page).attributes] == [each[:2] for each in Page(plain).attributes]
    assert all(char.isprintable() or char == "\n" for char in page)
    assert len(page) < 60_000, "long names are cut"
    page.encode()


@settings(max_examples=50)
@given(st.text(max_size=50))
def test_any_text_is_read_back_as_text(value):
    page = Page(element("p", text(value), title=value.replace("\x00", "")))
    assert page.tags == ["p"]
    assert page.text == "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)


def test_tables_have_captions_and_headings():
    page = Page(advice_page(advice()))
    assert page.tags.count("table") == page.tags.count("caption") > 3
    scopes = [content for tag, name, content in page.attributes if name == "scope"]
    assert set(scopes) == {"col", "row"}
    assert page.tags.count("th") == len(scopes)
    assert ("html", "lang", "en") in page.attributes


def test_bars_show_the_share_and_its_interval():
    drawn = bar(0.25, (0.2, 0.3), 0.5)
    assert 'class="bar" width="50.00"' in drawn
    assert "M40.00 5H60.00" in drawn
    assert 'class="bar" width="0.00"' in bar(math.nan, (math.nan, math.inf), 0.5)
    assert 'class="bar" width="100.00"' in bar(7.0, (0.0, 9.0), 1.0)


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_the_json_has_the_same_numbers():
    value = advice()
    found = json.loads(to_json(value))
    best = found["best"]
    assert best["reads"] == {"files": 0.0623, "bytes": 0.0623, "row_groups": 0.0623 / 2, "low": 0.0623 * 0.9,
                             "high": 0.0623 * 1.1}  # fmt: skip
    assert best["cost"]["payback_days"] == PAID.payback_days
    assert best["worse"][0]["after"] == 0.099
    assert found["candidates"][0] == best
    assert [each["reads"]["bytes"] for each in found["candidates"]] == [each.reads.bytes for each in value.candidates]
    assert found["summary"]["unparsable"] == 104
    assert [Layout.parse(each["layout"]) for each in found["candidates"][:2]] == [CURVE, TREE]


def test_unknown_numbers_are_null():
    found = json.loads(to_json(unknown()))
    assert found["now"]["bytes"] is None
    assert found["best"] is None


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_come_through_json(name):
    assert json.loads(to_json(hostile(name)).encode())["table"] == name


def test_hidden_values_are_in_no_output():
    hidden = advice(hidden=True, best=candidate(0.05, TREE, cost=PAID), candidates=(candidate(0.05, TREE, cost=PAID),))
    for said in (printed(hidden), advice_page(hidden), to_json(hidden)):
        assert HIDDEN not in said
        assert "secret" not in said
        assert "214 leaves" in said


# --- predicted against real ------------------------------------------------------------------------------------------


def test_a_clustering_without_cuts_tells_its_leaves():
    assert HIDDEN in to_json(CLUSTERING)
    assert json.loads(to_json(without_cuts(CLUSTERING)))["layout"] == "tree(ts, payload_id; 214 leaves)"
    assert HIDDEN not in described(clustering_blocks(CLUSTERING))


def described(blocks):
    out = io.StringIO()
    print_blocks(Console(file=out, width=100), blocks)
    return out.getvalue()


def test_a_clustering_holds_what_was_predicted_against_what_came_out():
    done = replace(CLUSTERING, predicted=Predicted(212, 0.378, 0.0612, 0.0623))
    said = described(clustering_blocks(done))
    assert "212 queries read 37.8% of the bytes before, 6.2% now; 6.1% were predicted" in said
    assert "queries" not in described(clustering_blocks(CLUSTERING))
    assert json.loads(to_json(done))["predicted"]["share_after"] == 0.0623


def test_a_plan_tells_what_is_predicted():
    plan = ClusteringPlan("t", "delta", str(TREE), PlannedFiles(files=9), reads=PlannedReads(7, 0.5, 0.05))
    said = described(plan_blocks(plan))
    assert "7 queries read 50.0% of the bytes now, and 5.0% afterwards, as predicted" in said
    assert HIDDEN not in said


@pytest.mark.parametrize("layout", ["", str(TREE)])
def test_a_table_that_its_queries_say_to_leave_is_left_with_the_reason(layout):
    done = changed(CLUSTERING, layout=layout, added_files=0, note="Leave it: nothing helps.")
    plan = ClusteringPlan("t", "delta", layout, note="Leave it: nothing helps.")
    for said in (described(clustering_blocks(done)), described(plan_blocks(plan))):
        assert "Nothing to do.\nLeave it: nothing helps." in said
    assert HIDDEN not in to_json(without_cuts(done))
