"""Pages as text: what they carry, what they let a browser run, and that no name becomes markup."""

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from support import picture_values as made
from support.grouped import changed, names_of
from support.pages import audit_page, clustering_page, explanation_page, health_page
from zonal.auditing.audit import Audit
from zonal.errors import ZonalError
from zonal.picture.picture import picture_of
from zonal.report.machine.json_form import to_json
from zonal.report.page import plotly
from zonal.report.page.charts import packed, packed_bits, scripts_of
from zonal.report.page.file_charts import MOST_DATA, depth_chart, files_chart
from zonal.report.page.frame import Html, Scripts, page
from zonal.report.page.share_charts import reads_chart
from zonal.report.wording import share_text
from zonal.rewriting.outcome import Clustering
from zonal.verbs.explain import Explanation
from zonal.verbs.show import health_of

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\u2028\u202e&"
RESULTS = {
    "health": (health_page, made.health),
    "explanation": (explanation_page, made.explanation),
    "clustering": (clustering_page, made.clustering),
    "audit": (audit_page, made.audit),
}


class Read(HTMLParser):
    """A page as a browser reads it: its tags, its scripts, and its text outside of them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.scripts, self.data, self.words = [], [], [], "", []
        self.feed(text)
        self.close()
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *sorted(name for name, _ in attrs)))
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)
        if tag == "script":
            self.is_data = ("type", "application/json") in attrs
            if not self.is_data:
                self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            if self.is_data:
                self.data += data
            else:
                self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def policy_of(text):
    return re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]


# --- Scripts and policy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["health", "explanation"])
def test_a_page_without_charts_runs_nothing(which):
    write, make = RESULTS[which]
    text = write(made.without_picture(make(40)))
    assert "<script" not in text
    assert "script-src" not in policy_of(text)
    assert len(text) < 60_000


@pytest.mark.parametrize("which", RESULTS)
def test_the_policy_allows_exactly_the_scripts_of_the_page(which):
    write, make = RESULTS[which]
    text = write(make(40))
    found = Read(text)
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in found.scripts]
    allowed = re.findall(r"'sha256-([^']+)'", policy_of(text))
    assert hashes == allowed
    assert len(hashes) == 2, "plotly.js and zonal's own"
    assert policy_of(text).startswith("default-src 'none'; script-src 'sha256-")
    script_rule = policy_of(text).split("script-src ")[1].split(";")[0]
    assert "unsafe" not in script_rule
    assert "http" not in policy_of(text)


@pytest.mark.parametrize("source", ["a</SCRIPT >", "<!-- a", "'<script>'", "\0"])
def test_a_script_that_would_leave_its_element_is_refused(source):
    with pytest.raises(ValueError, match="element"):
        page("t", Html(""), Scripts((source,), "d", "{}"))
    with pytest.raises(ValueError, match="markup"):
        page("t", Html(""), Scripts((), "d", "</script>"))


def test_a_script_is_hashed_as_a_browser_reads_it():
    text = page("t", Html(""), Scripts(("one\r\ntwo\r",), "d", "{}"))
    wanted = base64.b64encode(hashlib.sha256(b"one\ntwo\n").digest()).decode()
    assert wanted in policy_of(text)
    assert "<script>one\ntwo\n</script>" in text


def test_without_plotly_the_error_says_how_to_get_it(monkeypatch):
    plotly.plotly_script.cache_clear()
    monkeypatch.setattr(plotly, "find_spec", lambda _: None)
    with pytest.raises(ZonalError, match="pip install 'plotly"):
        plotly.plotly_script()


# --- Data ------------------------------------------------------------------------------------------------------------


def test_places_and_masks_come_back_from_their_text():
    places = np.array([0, 1, 256, 65535], np.uint16)
    assert np.frombuffer(base64.b64decode(packed(places)), "<u2").tolist() == places.tolist()
    mask = np.array([True, False, True] + [False] * 9 + [True])
    bits = np.unpackbits(np.frombuffer(base64.b64decode(packed_bits(mask)), np.uint8), bitorder="little")
    assert bits[: len(mask)].astype(bool).tolist() == mask.tolist()


def test_the_data_of_a_page_is_that_of_the_picture():
    done = made.clustering(40, 8)
    found = json.loads(Read(clustering_page(done)).data)
    for number, drawing in enumerate(done.picture.drawings):
        told = found["files"]["drawings"][number]
        for at, axis in enumerate(done.picture.axes):
            low = np.frombuffer(base64.b64decode(told["low"][at]), "<u2")
            assert (low == drawing.low[axis.column]).all()
    ordered = sorted(done.picture.questions, key=lambda question: -question.shares[0])
    bars = next(each for each in found["reads"]["series"] if each["look"] == "bar")
    assert bars["values"] == pytest.approx([question.shares[1] for question in ordered], abs=1e-6)


def test_numbers_on_the_audit_page_are_those_of_the_json():
    found = made.audit(80, 20)
    told, words = json.loads(to_json(found)), Read(audit_page(found)).text
    for value in (told["ratio"], told["byte_share"], told["excess_share"], told["selectivity"]):
        assert share_text(value) in words
    for query in told["asked"][:10]:
        assert query["query"] in words
        assert share_text(query["byte_share"]) in words
    for commit in told["commits"]:
        assert commit["sentence"] in words


def test_the_verdict_comes_first():
    for which, (write, make) in RESULTS.items():
        text = write(make(40))
        body = text[text.index("<main>") :]
        assert body.index('class="verdict') < body.index("<table"), which
        assert body.index("<h1>") < body.index('class="verdict'), which


def test_many_files_columns_and_queries_stay_small():
    schema = pa.schema([(f"c{number}", pa.int64()) for number in range(12)])
    random = np.random.default_rng(0)
    table = made.snapshot(
        {name: [(low, low + 9) for low in random.integers(0, 10**6, 10_000).tolist()] for name in schema.names}, schema
    )
    asks = [(f"c{at % 12} = {at}", made.bound(f"c{at % 12} = {at}", schema), 1.0) for at in range(1000)]
    picture = picture_of([("before", table), ("after", table)], schema.names, asks)
    text = clustering_page(dataclasses.replace(made.clustering(10, 2), picture=picture))
    assert len(text.encode()) < 8_000_000
    data = json.loads(Read(text).data)["files"]
    assert len(data["axes"]) == 12
    assert len(data["questions"]) == 200
    assert "200 of 1,000 queries can be chosen" in Read(text).text
    three = dataclasses.replace(picture, drawings=picture.drawings * 3)
    three = dataclasses.replace(
        three,
        questions=tuple(
            dataclasses.replace(each, files=each.files * 3, shares=each.shares * 3, reads=each.reads * 3)
            for each in three.questions
        ),
    )
    chart = files_chart(three)
    assert len(json.dumps(chart.data)) < 1.1 * MOST_DATA
    assert "To stay small, the page holds 4 of 12 columns." in chart.caption


# --- Names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", RESULTS)
def test_no_name_becomes_markup(which):
    write, make = RESULTS[which]
    plain = Read(write(_named(make(40), "plain name")))
    found = Read(write(_named(make(40), HOSTILE)))
    assert found.tags == plain.tags, "a name adds no element and no attribute"
    assert found.scripts == plain.scripts
    assert not set(found.data) & {"<", ">", "&", "\u2028", "\u202e"}


def _named(result, name):
    """The result with a name wherever a table, a query or a log could have brought one."""
    picture = result.picture
    axes = tuple(
        dataclasses.replace(axis, ticks=tuple((place, name) for place, _ in axis.ticks)) for axis in picture.axes
    )
    drawings = tuple(dataclasses.replace(each, label=name + str(at)) for at, each in enumerate(picture.drawings))
    questions = tuple(dataclasses.replace(each, text=name) for each in picture.questions)
    values = {"picture": dataclasses.replace(picture, axes=axes, drawings=drawings, questions=questions)}
    known = names_of(result)
    values |= {field: name for field in ("name", "predicate") if field in known}
    if isinstance(result, Clustering | Explanation):
        values["table"] = name
    values |= {field: (name,) for field in ("unknown", "notes", "problems", "blockers") if field in known}
    if isinstance(result, Audit):
        values["commits"] = tuple(
            dataclasses.replace(each, kind=name, operation=name, writer=name, sentence=name)
            for each in result.blame.commits
        )
        values["asked"] = tuple(
            dataclasses.replace(each, query=name, source=name, hindrance=name, remedy=name) for each in result.asked
        )
        values["worst_files"] = tuple(dataclasses.replace(each, path=name) for each in result.excess.worst_files)
    return changed(result, **values)


# --- Charts ----------------------------------------------------------------------------------------------------------


def test_there_is_no_chart_of_nothing():
    empty = picture_of([("now", made.snapshot({"x": []}, pa.schema([("x", pa.int64())])))], ["x"])
    assert files_chart(None) is None
    assert files_chart(empty) is None
    assert depth_chart([("now", 0, ())]) is None
    assert reads_chart(None) is None
    assert reads_chart(empty) is None
    assert scripts_of(()) is None


def test_the_trend_needs_a_past():
    found = made.audit(40, 8)
    assert "<h2>Trend</h2>" not in audit_page(found)
    text = audit_page(found, made.past_audits(), made.past_runs())
    assert "<h2>Trend</h2>" in text
    data = json.loads(Read(text).data)["trend"]
    assert len(data["values"]) == len(made.past_audits()) + 1
    assert data["values"][-1] == found.reads.ratio
    assert data["limit"] == 0.3
    assert data["times"] == sorted(data["times"])
    assert [run["time"] for run in data["runs"]] == [f"{run.finished:%Y-%m-%d %H:%M:%S}" for run in made.past_runs()]


def test_the_audit_itself_is_not_drawn_twice():
    found = made.audit(40, 8)
    last = dataclasses.replace(made.past_audits()[-1], audited=found.made.audited)
    data = json.loads(Read(audit_page(found, (*made.past_audits(), last))).data)["trend"]
    assert len(data["values"]) == len(made.past_audits()) + 1


def test_queries_that_lose_are_told_in_words():
    before = made.two_versions(80, 20)
    chart = reads_chart(before)
    lost = sum(question.shares[1] > question.shares[0] + 0.001 for question in before.questions)
    assert lost > 0
    assert chart.plots[0][1].startswith(f"{lost} queries read more than before, of 20")
    assert sum(row.mark == "reads more" for row in chart.numbers.rows) == lost
    same = dataclasses.replace(before, drawings=before.drawings[:1] * 2, questions=tuple(
        dataclasses.replace(each, shares=each.shares[:1] * 2) for each in before.questions
    ))  # fmt: skip
    assert reads_chart(same).plots[0][1] == "None of 20 queries reads more than before."


def test_a_run_that_did_nothing_says_so():
    idle = changed(
        made.clustering(40, 8), added_files=0, removed_files=0, versions=(), depths=(), predicted=None,
        note="The queries read little already.",
    )  # fmt: skip
    words = Read(clustering_page(idle)).text
    assert "Nothing to do. The queries read little already." in words


# --- What is true -----------------------------------------------------------------------------------------------------


def some_nulls(files=4, alone=1):
    """Files with values of x, the first ones with nulls alone, and with nothing but nulls of n; y has no bounds."""
    schema = pa.schema([("x", pa.int64()), ("n", pa.int64()), ("y", pa.int64())])
    pairs = [(None, None) if at < alone else (at * 10, at * 10 + 5) for at in range(files)]
    table = made.snapshot({"x": pairs, "n": [(None, None)] * files, "y": [(None, None)] * files}, schema, rows=10)
    nulls = {"x": np.where(np.arange(files) < alone, 10, 0), "n": np.full(files, 10), "y": np.zeros(files, np.int64)}
    bounds = {name: dataclasses.replace(each, nulls=nulls[name]) for name, each in table.files.bounds.items()}
    return dataclasses.replace(table, files=dataclasses.replace(table.files, bounds=bounds))


def test_a_column_of_nulls_alone_is_not_the_best():
    found = health_of(some_nulls(), picture=True)
    verdicts = {column.depth.column: column.verdict for column in found.columns}
    assert verdicts == {
        "x": "a look-up of x reads 1 of 4 files",
        "n": "n holds nulls alone: a look-up of a value reads none of 4 files",
        "y": "no file has both bounds of y: a look-up reads all 4 files",
    }
    words = Read(health_page(found)).text
    assert "Best: a look-up of x reads 1 of 4 files." in words
    assert "Worst: no file has both bounds of y" in words
    only = health_of(some_nulls(), ["n"])
    assert "n holds nulls alone: a look-up of a value reads none of 4 files." in Read(health_page(only)).text


def test_one_file_is_singular():
    found = health_of(some_nulls(1, 0))
    assert [column.verdict for column in found.columns] == [
        "a look-up of x reads 1 of 1 file",
        "n holds nulls alone: a look-up of a value reads none of 1 file",
        "no file has both bounds of y: a look-up reads the only file",
    ]


def test_depths_are_of_all_files():
    words = Read(health_page(health_of(some_nulls(), picture=True))).text
    assert (
        "a look-up of one value reads 1.0 of 4 files (25.0% of the bytes). Nulls alone, without a depth: 1 file."
        in words
    )
    assert "Nulls alone" not in Read(health_page(made.health(40))).text


def test_files_without_statistics_are_told_to_cover_the_axis():
    table = made.snapshot({"x": [(0, 10), (None, None)]}, pa.schema([("x", pa.int64())]))
    said = "Files without statistics of x cover the whole axis"
    assert said in Read(health_page(health_of(table, picture=True))).text
    assert "Files without statistics" not in Read(health_page(health_of(some_nulls(), ["x"], picture=True))).text


def test_a_query_without_a_filter_has_one_name():
    done = made.clustering(40, 4)
    questions = tuple(dataclasses.replace(each, text="TRUE") for each in done.picture.questions)
    text = clustering_page(dataclasses.replace(done, picture=dataclasses.replace(done.picture, questions=questions)))
    words = Read(text).text
    assert "TRUE" not in words
    assert words.count("everything: it has no filter") == 8, "in the select, and in the table"
    assert "TRUE" not in Read(text).data


def test_partitions_alone_are_told_of_tables_that_have_some():
    found = made.audit(40, 8)
    for partitioning, is_told in ((("day(ts)",), True), ((), False)):
        words = Read(audit_page(changed(found, partitioning=partitioning))).text
        assert ("partitions alone" in words) is is_told


def test_small_shares_are_not_rounded_away():
    picture = made.two_versions(40, 4)
    questions = tuple(dataclasses.replace(each, shares=(3e-7, 1.234e-8)) for each in picture.questions)
    chart = reads_chart(dataclasses.replace(picture, questions=questions))
    assert chart.data["series"][0]["values"] == [1.234e-8] * 4
