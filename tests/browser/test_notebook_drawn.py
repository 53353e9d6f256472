"""Results of a notebook in a browser, also where its export brings rules of its own."""

import pytest

from support import picture_values as made
from support.browser_pages import WORDS
from zonal.report.notebook.results import html_of

pytestmark = pytest.mark.browser


def test_headings_in_a_notebook_are_not_broken_within_words(open_page):
    results = [made.audit(40, 8), made.health(40), made.clustering(40, 8)]
    page = open_page("<!doctype html><body style='width: 420px'>" + "".join(map(html_of, results)))
    broken = page.tab.evaluate(
        """() => Array.from(document.querySelectorAll("thead th")).flatMap((head) => {
          const node = head.firstChild, found = [];
          for (const word of node.data.matchAll(/[^ -]+/g)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            if (new Set(Array.from(range.getClientRects()).map((box) => box.top)).size > 1) found.push(word[0]);
          }
          return found;
        })"""
    )
    assert broken == []
    assert page.tab.evaluate(WORDS.replace(".plot", "svg").replace(".main-svg text", "text").replace(
        "plot.closest('figure').dataset.chart", "''")) == []  # fmt: skip


EXPORTED = """
.out dl { width: 100%; overflow: hidden; } .out dt { font-weight: bold; float: left; width: 20%; }
.out dd { float: left; width: 80%; } .out table { table-layout: fixed; margin: 0 auto; }
:not(.other).out td, :not(.other).out th { text-align: right; white-space: normal; max-width: none; }
"""
"""Rules such as those of nbconvert's templates."""


@pytest.mark.parametrize("width", [900, 420])
def test_labels_in_an_exported_notebook_stand_in_one_line_beside_their_facts(open_page, width):
    results = "".join(map(html_of, [made.audit(40, 8), made.health(40), made.clustering(40, 8)]))
    page = open_page(f"<!doctype html><style>{EXPORTED}</style><body><div class=out>{results}</div>", width)
    lines = page.tab.evaluate(
        """() => Array.from(document.querySelectorAll("dt, td.number")).map((label) => {
          const texts = document.createTreeWalker(label, NodeFilter.SHOW_TEXT);
          const counts = [];
          for (let text = texts.nextNode(); text; text = texts.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(text);
            counts.push(new Set(Array.from(range.getClientRects()).map((box) => box.top)).size);
          }
          return [label.innerText, Math.max(...counts)];
        })"""
    )
    assert len(lines) > 20
    assert [label for label, count in lines if count > 1] == []
    align = "() => Array.from(document.querySelectorAll('tbody th')).map((head) => getComputedStyle(head).textAlign)"
    assert set(page.tab.evaluate(align)) == {"left"}
