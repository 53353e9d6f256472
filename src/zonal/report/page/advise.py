"""Write an advice as a page to keep, send and print."""

import math

from zonal.advising.advice import Advice, Candidate, Reads
from zonal.report.command import CommandOptions, cluster_command
from zonal.report.page.charts import charted, scripts_of
from zonal.report.page.file_charts import files_chart
from zonal.report.page.frame import (
    NOTHING,
    Html,
    Row,
    bar,
    described,
    element,
    joined,
    listed,
    name,
    page,
    section,
    table,
    text,
)
from zonal.report.page.share_charts import reads_chart
from zonal.report.wording import (
    asked_text,
    basis,
    change_facts,
    column_cells,
    cost_text,
    gain_text,
    interval_text,
    payback_text,
    plural,
    regressions_heading,
    share_text,
    shown_candidates,
    table_facts,
    unread,
    what_text,
    workload_facts,
)

_LONG = 600
"""Characters of a sentence that may quote names."""


def advice_page(advice: Advice, given: CommandOptions | None = None) -> str:
    """Return the page of an advice; `given` names what the command to run is made of."""
    files, reads = files_chart(advice.picture), reads_chart(advice.picture)
    parts = [
        element("h1", text("Advice for "), name(advice.table.name)),
        described((text(label), text(fact, _LONG)) for label, fact in table_facts(advice)),
        _verdict(advice, given or CommandOptions(advice.table.name)),
        _change(advice),
        _candidates(advice),
        charted("The files now", files),
        charted("What each query reads now", reads),
        _regressions(advice),
        _blooms(advice),
        _warnings(advice),
        _workload(advice),
        section("What this rests on", listed(text(line, _LONG) for line in basis(advice))),
        element("footer", text("Made by zonal advise. Shares are of the table's bytes, over the queries' weight.")),
    ]
    return page(f"zonal advise: {advice.table.name}", joined(parts), scripts_of([files, reads]))


def _verdict(advice: Advice, given: CommandOptions) -> Html:
    command = cluster_command(advice, given)
    run = NOTHING if command is None else element("pre", element("code", text(command, 20_000)))
    kind = "verdict" if advice.verdict == "cluster" else "verdict other"
    return element("div", element("p", text(advice.reason, 2 * _LONG)), run, class_=kind)


def _change(advice: Advice) -> Html:
    if not advice.candidates:
        return NOTHING
    best = advice.best
    levels = [("partitions alone", advice.partition_only)] if advice.table.partitioning else []
    levels += [("now", advice.now)]
    if best is not None and best.layout is not None:
        levels += [(f"after: {what_text(best)}", best.reads)]
    most = _scale([reads for _, reads in levels])
    rows = [
        Row(name(what), [_drawn(reads, most), text(interval_text(reads)), text(_groups(reads))])
        for what, reads in levels
    ]
    shares = table(
        f"What a query reads in the mean. Bars go from 0 to {share_text(most)} of the table's bytes.",
        ("when", "share of the bytes", "9 of 10 times", "with row groups skipped"),
        rows,
        plain=("share of the bytes",),
    )
    account = [(label, fact) for label, fact in change_facts(advice) if label in ("cost", "saves")]
    return section("Now and after", shares, described((text(label), text(fact, _LONG)) for label, fact in account))


def _groups(reads: Reads) -> str:
    return "not known" if reads.row_groups is None else share_text(reads.row_groups)


def _scale(reads: list[Reads]) -> float:
    """Return the end of the bars' scale: the largest share, rounded up to a tenth of a power of ten."""
    most = max((share for each in reads for share in (each.bytes, each.high) if math.isfinite(share)), default=1.0)
    if most <= 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(most))
    return min(1.0, math.ceil(round(most / step, 6)) * step)


def _drawn(reads: Reads, most: float) -> Html:
    share = element("span", text(share_text(reads.bytes)))
    return element("span", share, bar(reads.bytes, (reads.low, reads.high), most), class_="share")


def _candidates(advice: Advice) -> Html:
    shown = shown_candidates(advice)
    if not shown:
        return NOTHING
    most = _scale([each.reads for each in shown])
    columns = ("what", "reads", "9 of 10 times", "than now", "files", "cost", "paid back")
    listing = table(
        f"Best first. Bars go from 0 to {share_text(most)} of the table's bytes; the line is where the mean lies nine "
        "of ten times.",
        columns,
        [_candidate(each, most, is_best=each == advice.best) for each in shown],
        plain=("reads",),
    )
    more = len(advice.candidates) - len(shown)
    other = element("p", text(f"And {plural(more, 'other candidate')}."), class_="soft") if more else NOTHING
    return section("Candidates", listing, other)


def _candidate(each: Candidate, most: float, *, is_best: bool) -> Row:
    head = [name(what_text(each))]
    if is_best:
        head.append(element("span", text(" ← advised"), class_="mark"))
    if each.extrapolated:
        head.append(element("small", text("Carried over from a prediction for fewer files.")))
    if each.note:
        head.append(element("small", text(each.note, _LONG)))
    cells = [
        _drawn(each.reads, most),
        *map(text, (interval_text(each.reads), gain_text(each), f"{each.files:,}")),
        *map(text, (cost_text(each.cost), payback_text(each.cost))),
    ]
    return Row(Html("".join(head)), cells, is_best)


def _regressions(advice: Advice) -> Html:
    best = advice.best
    if best is None or best.layout is None:
        return NOTHING
    heading = regressions_heading(best)
    if not best.worse:
        return section("Queries that lose", element("p", text(heading, _LONG)))
    rows = [
        Row(
            Html(name(query.query) + element("small", text(asked_text(query)))),
            [text(share_text(query.before)), text(share_text(query.after))],
        )
        for query in best.worse
    ]
    return section("Queries that lose", table(heading, ("query", "now", "after"), rows))


def _blooms(advice: Advice) -> Html:
    if not advice.blooms:
        return NOTHING
    rows = [
        Row(
            Html(name(bloom.column) + element("small", text(bloom.text, _LONG))),
            [text(f"{bloom.weight:.0%}"), text(share_text(bloom.before)), text(share_text(bloom.after))],
        )
        for bloom in advice.blooms
    ]
    caption = "What queries for single values read with the best layout, without and with filters."
    return section("Bloom filters", table(caption, ("column", "queries' weight", "without", "with"), rows))


def _warnings(advice: Advice) -> Html:
    if not advice.warnings:
        return NOTHING
    return section("Warnings", listed(text(warning.text, _LONG) for warning in advice.warnings))


def _workload(advice: Advice) -> Html:
    account = described((text(label), text(fact, _LONG)) for label, fact in workload_facts(advice))
    examples = listed(text(line) for line in unread(advice))
    first = element("p", text("The first that can't be read:")) if examples else NOTHING
    rows = [
        Row(name(column.column), [text(cell) for cell in column_cells(column)]) for column in advice.workload.filtered
    ]
    columns = ("column", "queries' weight", "by =", "distinct", "skipped by")
    filtered = table("The columns that queries filter.", columns, rows, plain=columns[-1:]) if rows else NOTHING
    return section("The queries", account, first, examples, filtered)
