"""What programs and terminals get of audits: metrics, a webhook, and the trend."""

import io
import json
import math
import re
import socket
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from support.audit_values import ALERT, AUDIT, NOON, RECORD, RUN
from support.grouped import changed
from support.pages import overview_page
from support.webhook_server import listening
from zonal.auditing.audit import Fresh
from zonal.errors import ZonalError
from zonal.layouts.layout import Layout
from zonal.report.machine import webhook
from zonal.report.machine.prometheus import metrics_text
from zonal.report.machine.webhook import check_url, post
from zonal.report.many_audits import Overview, summary_blocks
from zonal.report.sparkline import sparkline
from zonal.report.terminal.blocks import print_blocks
from zonal.report.trend import MOST_LINES, trend_blocks, versions_blocks

VALUE = r'(?:[^"\\\n]|\\["\\n])*'
SAMPLE = re.compile(rf'(?P<name>[a-zA-Z_:][\w:]*)\{{(?P<labels>(?:[a-z]+="{VALUE}",?)*)\}} (?P<value>\S+)', re.ASCII)
LABEL = re.compile(rf'([a-z]+)="({VALUE})"')


def unescaped(value):
    return re.sub(r"\\(.)", lambda escape: {"n": "\n"}.get(escape[1], escape[1]), value)


def parsed(text):
    """Read the text format by its rules: HELP and TYPE once, before the metric's samples, which stand together."""
    assert text == "" or text.endswith("\n"), "the last line has an end, too"
    found, kinds, helped, name = {}, {}, set(), None
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in helped
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, typed, kind = line.split(" ")
            assert typed == name
            assert typed not in kinds
            kinds[typed] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match["name"] == name, "samples of a metric stand together, behind their TYPE"
            labels = {name: unescaped(value) for name, value in LABEL.findall(match["labels"])}
            key = match["name"], tuple(sorted(labels.items()))
            assert key not in found, "a series has one value"
            found[key] = float(match["value"])
    assert set(kinds.values()) <= {"gauge"}
    assert helped == set(kinds)
    return found


def values_of(text):
    return {name.removeprefix("zonal_audit_"): value for (name, _), value in parsed(text).items()}


def test_an_audits_numbers_are_gauges_and_what_is_not_known_is_left_out():
    assert values_of(metrics_text([AUDIT])) == {
        "ratio": 0.125, "byte_ratio": 0.1, "file_share": 1e-5, "byte_share": 0.02, "partition_file_share": 0.3,
        "partition_byte_share": 0.2, "excess_share": 0.9, "hindered_share": 0.25, "files": 187_000, "bytes": 2**44,
        "queries": 7, "alert": 0, "version": 12, "timestamp_seconds": NOON.timestamp(), "duration_seconds": 1.5,
    }  # fmt: skip


def test_what_is_known_is_there():
    known = changed(AUDIT, rows=5, selectivity=0.0, row_group_share=0.01, fresh=Fresh("zorder(ts)", True, 0.03, 0.5))
    found = values_of(metrics_text([changed(known, alerts=(ALERT,))]))
    assert {
        "rows": 5,
        "selectivity": 0,
        "row_group_share": 0.01,
        "fresh_share": 0.03,
        "alert": 1,
    }.items() <= found.items()


def test_a_metric_of_many_tables_is_explained_once():
    text = metrics_text([AUDIT, changed(AUDIT, name="other", ratio=None), changed(AUDIT, format="iceberg")])
    assert text.count("# TYPE zonal_audit_ratio gauge\n") == 1
    ratios = {key[1] for key in parsed(text) if key[0] == "zonal_audit_ratio"}
    assert ratios == {
        (("format", "delta"), ("location", "/lake/events"), ("table", "delta:/lake/events")),
        (("format", "iceberg"), ("location", "/lake/events"), ("table", "delta:/lake/events")),
    }


def test_tables_of_one_name_in_two_catalogs_are_told_apart():
    both = [changed(AUDIT, location=f"s3://{catalog}/events", ratio=0.25) for catalog in ("prod", "test")]
    found = {dict(labels)["location"] for name, labels in parsed(metrics_text(both)) if name == "zonal_audit_ratio"}
    assert found == {"s3://prod/events", "s3://test/events"}


def test_no_audits_are_no_metrics():
    assert metrics_text([]) == ""


def test_a_table_twice_is_refused():
    with pytest.raises(ZonalError, match="'delta:/lake/events' is there twice"):
        metrics_text([AUDIT, AUDIT])


def test_numbers_that_are_none_are_written_as_the_format_says():
    found = values_of(metrics_text([changed(AUDIT, ratio=math.nan, byte_share=math.inf)]))
    assert math.isnan(found["ratio"])
    assert found["byte_share"] == math.inf


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_name_survives_as_a_label(name):
    (table,) = {dict(labels)["table"] for _, labels in parsed(metrics_text([changed(AUDIT, name=name)]))}
    assert table == name


def test_half_a_character_in_a_name_is_still_text():
    text = metrics_text([changed(AUDIT, name="half \udc80")])
    assert b"half \\\\udc80" in text.encode()
    assert parsed(text)


@given(st.lists(st.one_of(st.none(), st.floats())), st.one_of(st.none(), st.floats(0, 1e6)))
def test_a_sparkline_has_a_character_a_number_and_rises_with_them(values, top):
    line = sparkline(values, top=top)
    assert len(line) == len(values)
    drawn = [(value, char) for value, char in zip(values, line, strict=True) if char != "·"]
    assert len(drawn) == sum(value is not None and math.isfinite(value) for value in values)
    in_order = [char for _, char in sorted(drawn)]
    assert in_order == sorted(in_order)


def test_a_sparkline_goes_from_zero_to_the_greatest():
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert sparkline([0.02, 0.04]) == "▅█"
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert sparkline([0.5], top=0.25) == "█"
    assert sparkline([]) == ""
    assert sparkline([None, math.nan]) == "··"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


def test_a_webhook_gets_the_body_as_json():
    body = json.dumps({"table": "événts", "ratio": 0.5}, ensure_ascii=False)
    with listening(204) as (server, host):
        post(f"http://{host}/hook/abc?key=1#part", body)
    ((path, headers, sent),) = server.heard
    assert path == "/hook/abc?key=1"
    assert headers["Content-Type"].startswith("application/json")
    assert json.loads(sent) == {"table": "événts", "ratio": 0.5}
    assert "Authorization" not in headers


def test_user_and_password_of_the_address_are_sent_as_such():
    with listening() as (server, host):
        post(f"http://me:a%40b@{host}", "{}")
    ((path, headers, _),) = server.heard
    assert path == "/"
    assert headers["Authorization"] == "Basic bWU6YUBi"
    assert headers["Host"] == host


def test_half_a_character_is_sent_as_json_escapes_it():
    with listening() as (server, host):
        post(f"http://{host}/", '{"a": "\udc80"}')
    assert server.heard[0][2] == b'{"a": "\\udc80"}'


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (404, "answered 404 (Not Found)"),
        (500, "answered 500 (Internal Server Error)"),
        (599, "answered 599: it didn't"),
    ],
)
def test_an_answer_that_is_an_error_is_told_without_the_address(code, told):
    with listening(code, {"X": "y"}, 100) as (_, host), pytest.raises(ZonalError) as caught:
        post(f"http://me:hunter2@{host}/secret/path?token=abc", "{}")
    assert f"The webhook at http://{host} {told}" in str(caught.value)
    assert not re.search("hunter2|secret|token|abc", str(caught.value))
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://{host}/other"])
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(code, target):
    with (
        listening() as (other, host),
        listening(code, {"Location": target.format(host=host)}) as (server, first),
        pytest.raises(ZonalError, match=f"answered {code}: it points elsewhere"),
    ):
        post(f"http://{first}/x", "{}")
    assert len(server.heard) == 1
    assert other.heard == []


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("file:///etc/passwd", "begins with 'file': only http and https"),
        ("ftp://host/hunter2", "begins with 'ftp'"),
        ("host/hunter2", "has no scheme"),
        ("https:///hunter2", "names no host"),
        ("https://host:hunter2/x", "can't be read"),
        ("https://[hunter2/", "can't be read"),
        ("https://host/hunter2 x", "characters that a URL can't have"),
        ("https://host/hunter2\r\nX: y", "characters that a URL can't have"),
        ("https://hóst/hunter2", "characters that a URL can't have"),
        ("", "has no scheme"),
    ],
)
def test_what_is_no_address_of_a_webhook_is_refused_without_being_shown(url, told):
    for refuse in (check_url, lambda url: post(url, "{}")):
        with pytest.raises(ZonalError, match=told) as caught:
            refuse(url)
        assert "hunter2" not in str(caught.value)


def test_a_webhook_that_is_not_there_is_told():
    with listening() as (_, host):
        pass
    with pytest.raises(ZonalError, match=rf"The webhook at http://{host} can't be reached: Connection refused\. Check"):
        post(f"http://me:hunter2@{host}/x", "{}")


def test_a_webhook_that_never_answers_is_told(monkeypatch):
    monkeypatch.setattr(webhook, "_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(ZonalError, match="no answer in"),
    ):
        post(f"http://127.0.0.1:{server.getsockname()[1]}/", "{}")


def test_a_webhook_that_answers_byte_by_byte_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(webhook, "_SECONDS", 0.3)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def trickle():
            connection, _ = server.accept()
            with connection:
                while not over.wait(0.05):
                    connection.sendall(b"H")

        thread = threading.Thread(target=trickle)
        thread.start()
        with pytest.raises(ZonalError, match="gave no answer in"):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/", "{}")
        over.set()
        thread.join()


@pytest.mark.parametrize("host", ["a..b", "x" * 100])
def test_a_host_that_is_no_name_is_told(host):
    with pytest.raises(ZonalError, match="its host is not known"):
        post(f"http://{host}/", "{}")


def test_a_webhook_that_hangs_up_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close():
            connection, _ = server.accept()
            connection.recv(10_000)
            connection.close()

        thread = threading.Thread(target=close)
        thread.start()
        with pytest.raises(ZonalError, match="it closed the connection without an answer"):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/", "{}")
        thread.join()


def test_a_server_that_speaks_no_http_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.recv(10_000)
            connection.sendall(b"SSH-2.0 hunter2\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ZonalError, match="its answer is no HTTP") as caught:
            post(f"http://127.0.0.1:{server.getsockname()[1]}/", "{}")
        thread.join()
    assert "hunter2" not in str(caught.value)


def trend_of(audits=(), runs=(), limit=0.3, name="delta:/lake/events", width=120):
    console = Console(file=io.StringIO(), width=width)
    print_blocks(console, trend_blocks(name, audits, runs, limit))
    return console.file.getvalue()


def test_the_trend_shows_audits_and_rewrites_in_the_order_of_time():
    audits = [replace(RECORD, audited=NOON + timedelta(days=day), ratio=ratio) for day, ratio in ((0, 0.4), (2, 0.1))]
    text = trend_of(audits, [replace(RUN, finished=NOON + timedelta(days=1))])
    assert "ratio  █▃  40.0% → 10.0% (from 0 to 40.0%; alert above 30.0%)" in text
    rows = [line for line in text.splitlines() if "2026-11" in line]
    assert [re.search(r"audit|cluster", row)[0] for row in rows] == ["audit", "cluster", "audit"]
    assert [row.split("│")[1].strip() for row in rows] == ["2026-11-16 12:00", "2026-11-17 12:00", "2026-11-18 12:00"]
    cells = [cell.strip() for cell in rows[1].split("│")]
    assert cells[2:7] == ["cluster, 1,200 → 3 files", "13", "", "31.0% → 2.4%", "2.1%"]
    assert "layout: zorder(ts, id)" in text.splitlines()
    again = trend_of(audits, [RUN, replace(RUN, layout="hilbert(ts, id)")])
    assert re.findall(r"layout since .*: (.*)", again) == ["zorder(ts, id)", "hilbert(ts, id)"]
    cells = [cell.strip() for cell in rows[0].split("│")]
    assert cells[2:7] == ["audit, 7 queries", "12", "40.0%", "20.0%", "5.0%"]


def test_the_trend_marks_alerts_and_says_what_the_last_audit_found():
    alarmed = replace(RECORD, alerts=("Queries read 40%.",), culprit="version 12 widened id")
    text = trend_of([alarmed])
    assert "7 queries, ALERT" in text
    assert "· Queries read 40%.\n· version 12 widened id\n" in text
    assert "ALERT" not in trend_of([RECORD])


def test_a_trend_without_records_says_so():
    assert "No audit and no rewrite of this table is in the database yet." in trend_of()


def test_what_is_not_known_is_a_dash_in_the_trend():
    unknown = replace(RECORD, ratio=None, fresh_share=None, version=None)
    run = replace(RUN, share_before=None, share_predicted=None, share_after=None)
    text = trend_of([unknown], [run], None)
    assert "not known: no query could be helped" in text
    cells = [[cell.strip() for cell in line.split("│")][3:7] for line in text.splitlines() if "2026" in line]
    assert cells == [["-", "-", "20.0%", "-"], ["13", "", "-", "-"]]


def test_a_long_trend_is_cut_to_the_last_records():
    audits = [replace(RECORD, audited=NOON + timedelta(hours=hour), queries=hour) for hour in range(100)]
    text = trend_of(audits)
    assert text.count("audit, ") == MOST_LINES
    assert f"The last {MOST_LINES} of 100:" in text
    assert "audit, 99 queries" in text
    assert "audit, 69 queries" not in text


def test_cuts_of_a_tree_and_hostile_names_are_not_printed_as_they_are():
    tree = str(
        Layout("tree", ("ts",), tree=json.dumps({"leaves": 214, "points": ["4929-1234"]}, separators=(",", ":")))
    )
    hostile = "\x1b[31m[red]x[/red]" + "y" * 1000
    text = trend_of(
        [replace(RECORD, alerts=(hostile,), culprit=hostile)], [replace(RUN, layout=tree)], name=hostile, width=200
    )
    assert "4929-1234" not in text
    assert "\x1b" not in text
    assert "[red]x[/red]" in text
    assert "y" * 400 not in text
    assert "spiral(ts" in trend_of((), [replace(RUN, layout="spiral(ts")]), "a layout of another zonal"


def test_long_versions_are_shown_with_all_their_digits_on_a_narrow_terminal():
    number = 7762920168123456789
    printed = trend_of([replace(RECORD, version=number)], [replace(RUN, version=number)], width=80)
    versions = "".join(re.findall(r"│ +(\d{5,}) │", printed))
    assert versions == 2 * str(number)
    assert "cluster, " in printed
    console = Console(width=80, record=True, file=io.StringIO())
    print_blocks(console, versions_blocks([changed(AUDIT, version=number, operation="replace by zonal")]))
    assert "".join(re.findall(r"│ +(\d{5,}) │", console.export_text())) == str(number)


# --- many tables ------------------------------------------------------------------------------------------------------


def test_tables_with_an_alert_come_first_with_how_they_went():
    calm = changed(AUDIT, name="calm", location="/calm", ratio=0.2, audited=NOON)
    loud = changed(calm, name="loud", location="/loud", ratio=0.1, alerts=(ALERT,))
    none = changed(calm, name="none", location="/none", ratio=None)
    past = [replace(RECORD, ratio=ratio, audited=NOON - timedelta(days=1)) for ratio in (0.1, 0.4)]
    found = Overview([none, calm, loud], {"/loud": [*past, replace(past[0], audited=NOON)]}, [("gone", "It is gone.")])
    assert [each.table.name for each in found.ordered] == ["loud", "calm", "none"]
    assert found.sentence == "1 of 3 tables raises an alert; 1 table can't be audited."
    assert found.course(loud) == sparkline([0.1, 0.4, 0.1]), "its own record isn't there twice"
    assert found.course(calm) == ""
    console = Console(width=120, record=True, file=io.StringIO())
    print_blocks(console, summary_blocks(found))
    text = console.export_text()
    assert text.index("loud ALERT") < text.index("calm") < text.index("none")
    page = overview_page(found)
    assert page.index("loud") < page.index("calm")
    assert "It is gone." in page
    assert "script-src" not in page, "it needs no script"


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "[red]x[/red]\x1b[31m", "\u202egnp", "x" * 10_000])
def test_hostile_names_of_many_tables_stay_text(hostile):
    found = Overview([changed(AUDIT, name=hostile, notes=(hostile,))], {}, [(hostile, hostile)])
    page = overview_page(found)
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert len(page) < 20_000
    console = Console(width=100, record=True, file=io.StringIO(), color_system=None)
    print_blocks(console, summary_blocks(found))
    assert "\x1b" not in console.export_text()
