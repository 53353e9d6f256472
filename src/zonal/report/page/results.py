"""Write the results of `show`, `explain` and `cluster` as pages: the verdict first, then charts, then the numbers."""

from collections.abc import Iterator, Sequence

from zonal.layouts.layout import short_text
from zonal.report.explanation import explanation_blocks
from zonal.report.health import health_blocks
from zonal.report.ledger import ledger_blocks
from zonal.report.page.audit import audit_page
from zonal.report.page.blocks import blocks_page
from zonal.report.page.charts import charted, scripts_of
from zonal.report.page.file_charts import depth_chart, files_chart
from zonal.report.page.frame import (
    NOTHING,
    Html,
    Row,
    described,
    element,
    joined,
    name,
    page,
    section,
    share_bar,
    table,
    text,
)
from zonal.report.page.share_charts import losers_text, reads_chart
from zonal.report.terminal.cluster import clustering_facts, nothing_text, predicted_text, table_text
from zonal.report.wording import Fact, lookup_text, plural, share_text
from zonal.rewriting.outcome import Clustering, KeyDepth
from zonal.verbs.explain import Explanation
from zonal.verbs.show import TableHealth
from zonal.verbs.trend import Trend

__all__ = ["audit_page", "clustering_page", "explanation_page", "health_page", "trend_page"]

_LONG = 600


def health_page(health: TableHealth) -> str:
    """Return the page of what `show` found."""
    return blocks_page(f"zonal show: {health.table.name}", health_blocks(health))


def explanation_page(explanation: Explanation) -> str:
    """Return the page of what a query reads."""
    return blocks_page(f"zonal explain: {explanation.table}", explanation_blocks(explanation))


def trend_page(trend: Trend) -> str:
    """Return the page of a table's ledger."""
    return blocks_page(f"zonal audit --trend: {trend.table}", ledger_blocks(trend))


def _facts(facts: Iterator[Fact]) -> Html:
    return described((text(label), text(fact, _LONG)) for label, fact in facts)


def _verdict(sentences: Sequence[str], kind: str = "verdict") -> Html:
    return element("div", *(element("p", text(each, 2 * _LONG)) for each in sentences if each), class_=kind)


# --- cluster ---------------------------------------------------------------------------------------------------------


def clustering_page(done: Clustering) -> str:
    """Return the page of what a rewrite did."""
    files, reads = files_chart(done.picture), reads_chart(done.picture)
    drawings = () if done.picture is None else done.picture.drawings
    depths = depth_chart([(drawing.label, drawing.files, drawing.depths) for drawing in drawings])
    parts = [
        element("h1", text("Clustering of "), name(done.table)),
        _verdict(_done(done), "verdict" if done.change.added_files else "verdict other"),
        _facts(iter([("table", table_text(done)), *clustering_facts(done, lookups=False)])),
        _lookups(done),
        charted("The files, before and after" if len(drawings) > 1 else "The files", files),
        charted("What each query reads", reads),
        charted("How deep files lie", depths),
        element("footer", text("Made by zonal cluster. Old files stay until the table's own clean-up removes them.")),
    ]
    return page(f"zonal cluster: {done.table}", joined(parts), scripts_of([files, reads, depths]))


def _done(done: Clustering) -> list[str]:
    if not done.change.added_files:
        return ["No file was changed." if done.layout_recorded else "Nothing was changed.", nothing_text(done)]
    sentences = []
    if done.predicted is not None:
        sentences.append(f"{predicted_text(done.predicted)}.")
    if done.lookups.depths:
        best = max(done.lookups.depths, key=lambda depth: _shares(depth, done)[0] / max(_shares(depth, done)[1], 1e-9))
        before = lookup_text(best.before, done.lookups.files_before, best.share_before)
        after = lookup_text(best.after, done.lookups.files_after, best.share_after)
        sentences.append(f"A look-up of one {best.column} read {before} before, and reads {after} now.")
    sentences = sentences or [
        f"{plural(done.change.added_files, 'file')} written in the order of {short_text(done.layout)}."
    ]
    return [*sentences, losers_text(done.picture)]


def _lookups(done: Clustering) -> Html:
    if not done.lookups.depths:
        return NOTHING
    rows = [
        Row(
            name(depth.column),
            [
                _lookup(depth.before, done.lookups.files_before, _shares(depth, done)[0]),
                _lookup(depth.after, done.lookups.files_after, _shares(depth, done)[1]),
            ],
        )
        for depth in done.lookups.depths
    ]
    heads = ("column", "before", "now")
    caption = "What a look-up of one value reads of the table's bytes, in the mean over all rows."
    return section("Look-ups", table(caption, heads, rows, plain=heads[1:]))


def _shares(depth: KeyDepth, done: Clustering) -> tuple[float, float]:
    """Return what a look-up read before and reads now: of the bytes or, where they aren't known, of the files."""
    before, after = depth.before / max(done.lookups.files_before, 1), depth.after / max(done.lookups.files_after, 1)
    return (
        before if depth.share_before is None else depth.share_before,
        after if depth.share_after is None else depth.share_after,
    )


def _lookup(read: float, files: int, share: float) -> Html:
    return share_bar(share, share_text(share), f"{max(1, round(read)):,} of {plural(files, 'file')}")
