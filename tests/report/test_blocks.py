"""Blocks are drawn by three renderers: each escapes what they hold, and none leaves a table out."""

import io
from dataclasses import replace
from typing import get_args

import pytest
from rich.console import Console

from support.audit_values import NOON, RECORD, RUN
from support.hostile_names import HOSTILE
from support.html_reader import Page
from support.result_values import (
    append_plan,
    appended,
    audit,
    clustering,
    explanation,
    health,
    hostile_advice,
    picture,
    plan,
)
from zonal.report.advice import advice_blocks
from zonal.report.appended import append_plan_blocks, appended_blocks
from zonal.report.audit import audit_blocks
from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    Command,
    CommitsChart,
    DepthChart,
    Facts,
    FileChart,
    Heading,
    LedgerChart,
    Lines,
    Listing,
    Paragraph,
    QueriesChart,
    ReadsChart,
    Remarks,
    Sentences,
    TableBlock,
    TableHeading,
    TableRow,
    Tiles,
    Title,
    TrendChart,
)
from zonal.report.clustering import clustering_blocks, plan_blocks
from zonal.report.explanation import explanation_blocks
from zonal.report.health import health_blocks
from zonal.report.notebook.results import blocks_html
from zonal.report.page.blocks import blocks_page
from zonal.report.terminal.blocks import print_blocks
from zonal.skipping.depth import Depth
from zonal.verbs.trend import TrendPoint

RESULTS = {
    "health": (health, health_blocks),
    "explanation": (explanation, explanation_blocks),
    "advice": (hostile_advice, advice_blocks),
    "clustering": (clustering, clustering_blocks),
    "plan": (plan, plan_blocks),
    "appended": (appended, appended_blocks),
    "append plan": (append_plan, append_plan_blocks),
    "audit": (audit, audit_blocks),
}


def blocks(name):
    """Every kind of block, with a name wherever one can stand."""
    columns = [Heading(name, name, kind) for kind in ("text", "number", "digits", "whole")]
    cells = [Cell("25.0%", 0.25, name, (0.2, 0.3), 0.5), Cell(name), Cell(name, note=name)]
    row = TableRow(name, cells, (name,), name, "bad", is_code=True, place="here")
    table = TableBlock(name, name, columns, [row], name)
    one = audit(name)
    record, run = replace(RECORD, alerts=(name,), culprit=name), replace(RUN, layout=name)
    return [
        Title("About ", name), TableHeading(name, "here"), Sentences([name, ""], "bad"), Command(name, name),
        Tiles([(name, name)]), Facts([(name, name)], heading=name), Facts([(name, name)]), Paragraph(name),
        Paragraph(name, is_code=True), Lines(name, [name]), Remarks([name]), table, replace(table, on_terminal="lines"),
        Listing(table, name, [name]), FileChart(picture(name), name, [(0, name)]), ReadsChart(picture(name), name),
        DepthChart([(name, 5, [Depth(name, 4, 2.5, 3.5, 0, {2: 4}, 1.5, 17)])]), TrendChart(one, [record], [run], 0.3),
        CommitsChart(one, table), QueriesChart(replace(one, asked=one.asked * 2)),
        LedgerChart([TrendPoint(NOON, name, version, 1, 1, 1.0, 1.0, 1.0) for version in (1, 2)]), Colophon(name),
    ]  # fmt: skip


def test_every_kind_of_block_is_drawn_here():
    assert {type(block) for block in blocks("plain")} == set(get_args(Block))


def printed(given, width=100):
    out = io.StringIO()
    print_blocks(Console(file=out, width=width), given)
    return out.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_escapes_what_blocks_hold(name):
    page, plain = (blocks_page(blocks(each)) for each in (name, "plain"))
    assert Page(page).tags == Page(plain).tags, "a name adds no element"
    main = page[page.index("<main>") : page.index("</main>")]
    assert all(char.isprintable() or char == "\n" for char in main)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_terminal_escapes_what_blocks_hold(name):
    said = printed(blocks(name))
    assert all(char.isprintable() or char == "\n" for char in said)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_notebook_escapes_what_blocks_hold(name):
    html, plain = (blocks_html(blocks(each)) for each in (name, "plain"))
    assert Page(html).tags == Page(plain).tags, "a name adds no element"
    assert all(char.isprintable() or char == "\n" for char in html)


@pytest.mark.parametrize(("make", "given"), RESULTS.values(), ids=RESULTS)
def test_a_table_is_the_same_wherever_it_is_drawn(make, given):
    found = list(given(make("user")))
    said, page, notebook = printed(found, 400), Page(blocks_page(found)).text, Page(blocks_html(found)).text
    for table in (each.numbers if isinstance(each, CommitsChart) else each for each in found):
        for row in table.rows if isinstance(table, TableBlock) else ():
            for text, column in zip((row.name, *(cell.text for cell in row.cells)), table.columns, strict=True):
                assert text in said or table.on_terminal == "nothing" or not column.on_terminal
                assert text in page
                assert text in notebook


@pytest.mark.parametrize(("make", "given"), RESULTS.values(), ids=RESULTS)
def test_facts_are_the_same_wherever_they_are_drawn(make, given):
    found = list(given(make("user")))
    said, page, notebook = printed(found, 400), Page(blocks_page(found)).text, Page(blocks_html(found)).text
    facts = [each for each in found if isinstance(each, Facts)]
    assert facts
    for block in facts:
        for label, fact in block.facts:
            assert f"{label:<{block.width}}{fact}" in said
        for _, fact in block.undrawn:
            assert fact in page
            assert fact in notebook


def test_what_is_empty_is_not_drawn():
    nothing = TableBlock("Shares", "Of all.", (Heading("name"),), [])
    empty = [nothing, Lines("Notes", []), Listing(nothing, "0 files"), FileChart(None), Remarks([])]
    assert printed(empty) == ""
    assert "<section" not in blocks_page(empty)
