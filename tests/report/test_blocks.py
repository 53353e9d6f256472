"""Blocks are drawn by three renderers: each escapes what they hold, and none leaves a table out."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from support.hostile_names import HOSTILE
from support.html_reader import Page
from support.result_values import explanation, health, picture
from zonal.report.blocks import (
    Cell,
    Chapter,
    Colophon,
    Command,
    DepthChart,
    Facts,
    FileChart,
    Heading,
    Lines,
    Listing,
    Paragraph,
    ReadsChart,
    Remarks,
    Sentences,
    TableBlock,
    TableRow,
    Tiles,
    Title,
)
from zonal.report.explanation import explanation_blocks
from zonal.report.health import health_blocks
from zonal.report.notebook.results import html_of
from zonal.report.page.blocks import blocks_page
from zonal.report.terminal.blocks import print_blocks


def blocks(name):
    columns = [Heading(name, name, kind) for kind in ("text", "number", "digits", "whole")]
    cells = [Cell("25.0%", 0.25, name, (0.2, 0.3), 0.5), Cell(name), Cell(name)]
    row = TableRow(name, cells, (name,), name, "bad", is_code=True, place="here")
    table = TableBlock(name, name, columns, [row], name)
    return [
        Title("About ", name), Chapter(name, "here"), Sentences([name, ""], "bad"), Command(name, name),
        Tiles([(name, name)]), Facts([(name, name)], heading=name), replace(table, instead=[name]),
        Facts([(name, name)]), Paragraph(name, is_code=True),
        Paragraph(name), Lines(name, [name]), Remarks([name]), table, Listing(table, name, [name]),
        FileChart(picture(name)), ReadsChart(picture(name)), DepthChart([]), Colophon(name),
    ]  # fmt: skip


def printed(given, width=100):
    out = io.StringIO()
    print_blocks(Console(file=out, width=width), given)
    return out.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_escapes_what_blocks_hold(name):
    page, plain = (blocks_page(blocks(each)) for each in (name, "plain"))
    assert Page(page).tags == Page(plain).tags, "a name adds no element"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_terminal_escapes_what_blocks_hold(name):
    said = printed(blocks(name))
    assert all(char.isprintable() or char == "\n" for char in said)


@pytest.mark.parametrize(("make", "given"), [(health, health_blocks), (explanation, explanation_blocks)])
def test_a_table_is_the_same_wherever_it_is_drawn(make, given):
    result = make("ts")
    said, page, notebook = printed(given(result), 200), Page(blocks_page(given(result))).text, html_of(result)
    tables = [each for each in given(result) if isinstance(each, TableBlock)]
    assert tables
    for table in tables:
        for row in table.rows:
            for text in (row.name, *(cell.text for cell in row.cells)):
                assert text in said or table.instead is not None
                assert text in page
                assert text in Page(notebook).text


def test_what_is_empty_is_not_drawn():
    nothing = TableBlock("Shares", "Of all.", (Heading("name"),), [])
    empty = [nothing, Lines("Notes", []), Listing(nothing, "0 files"), FileChart(None), Remarks([])]
    assert printed(empty) == ""
    assert "<section" not in blocks_page(empty)
