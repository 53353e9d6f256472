"""What is printed on a terminal: lines end between words, layouts stay whole, and what is to be copied isn't cut."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from support.advice_values import advice
from support.audit_values import RECORD, RUN
from support.result_values import audit, clustering, health
from zonal.report.advice import advice_blocks
from zonal.report.audit import audit_blocks
from zonal.report.clustering import clustering_blocks
from zonal.report.health import health_blocks
from zonal.report.terminal.blocks import print_blocks
from zonal.report.terminal.text import print_line, print_list
from zonal.report.trend import trend_blocks
from zonal.report.wrap import fit, wrapped


def printed(write, *, width=80, terminal=True):
    out = io.StringIO()
    write(Console(file=out, width=width, force_terminal=terminal, no_color=True, highlight=False))
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


@given(st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=30)), st.integers(20, 90))
def test_wrapping_keeps_all_words_in_their_order(words, width):
    lines = wrapped(" ".join(words), width, hang=3)
    assert " ".join(" ".join(lines).split()) == " ".join(words)
    for line in lines:
        assert cell_len(line) <= width or " " not in line.strip(), "only a word that is too long goes beyond"


def test_a_layout_that_fits_a_line_is_in_one():
    for layout in ("zorder(ts, payload_id)", "tree(ts, mission_id, payload_id, file_size=100KB; 44 leaves)"):
        for before in range(1, 80):
            lines = wrapped(f"{'x' * before} {layout}, which is no less.", 80)
            assert any(layout in line for line in lines)


def test_a_path_stays_behind_its_bullet_and_spaces_stay():
    path = "/lake/" + "x" * 100
    assert wrapped(f"· {path} is read", 80, hang=2) == [f"· {path}", "  is read"]
    assert wrapped("ratio  ▃█▃  12.0%", 80) == ["ratio  ▃█▃  12.0%"]


@pytest.mark.parametrize("width", [20, 40])
def test_a_table_that_is_too_wide_for_a_terminal_is_printed_as_lines_and_loses_no_column(width):
    said = printed(RESULTS["a trend"], width=width)
    words = " ".join(said.split())
    for each in ("what: cluster, ", "version ", "ratio ", "bytes read ", "predicted "):
        assert words.count(each) >= 2, each
    assert "┃" not in said


def test_an_append_is_not_called_a_rewrite():
    appended = replace(RUN, removed_files=0, added_files=3, predicted_files=None)
    said = printed(lambda console: print_blocks(console, trend_blocks("events", [], [appended], None)), width=120)
    assert "append, 3 files" in said
    assert "cluster," not in said


RESULTS = {
    "advice": lambda console: print_blocks(console, advice_blocks(advice())),
    "an audit": lambda console: print_blocks(console, audit_blocks(audit("payload_id"))),
    "a rewrite": lambda console: print_blocks(console, clustering_blocks(clustering("payload_id"))),
    "health": lambda console: print_blocks(console, health_blocks(health("payload_id"))),
    "a trend": lambda console: print_blocks(console, trend_blocks("events", [RECORD] * 2, [RUN] * 2, 0.3)),
}


@pytest.mark.parametrize("write", RESULTS.values(), ids=RESULTS)
def test_results_fit_a_terminal_of_80_columns(write):
    text = printed(write)
    commands = [line for line in text.splitlines() if "zonal cluster" in line or "zonal advise" in line]
    for line in text.splitlines():
        assert cell_len(line) <= 80 or line in commands, line
    for layout in set(re.findall(r"(?:zorder|hilbert|linear)\([^)]*\)", printed(write, width=400))):
        if len(layout) <= 28:
            assert layout in text, f"{layout} is broken"


def test_what_is_no_terminal_gets_whole_lines():
    long = "word " * 60
    for write in (lambda console: print_line(console, long), lambda console: print_list(console, "Notes:", [long])):
        assert long.strip() in printed(write, terminal=False)
        assert long.strip() not in printed(write)


def test_no_column_of_the_trend_is_cut_off():
    assert "predicted" in printed(RESULTS["a trend"]).splitlines()[3]


def test_names_take_room_from_other_columns_and_these_keep_their_words():
    table = Table("what", "share")
    table.add_row(Text("zorder(ts, payload_id)"), "from one to another")
    text = printed(lambda console: console.print(fit(console, table)), width=40)
    assert "zorder(ts, payload_id)" in text
    assert {"from", "one", "to", "another"} <= set(re.findall(r"\w+", text))
