"""An advice as blocks of a report: the verdict first, then what it rests on."""

import math
from collections.abc import Iterator
from dataclasses import replace

from zonal.advising.advice import Advice, Candidate, Cost, Filtered, Reads
from zonal.advising.amounts import days_text, price_text
from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    Command,
    Facts,
    FileChart,
    Heading,
    Lines,
    ReadsChart,
    Remarks,
    Sentences,
    TableBlock,
    TableRow,
    Title,
)
from zonal.report.command import CommandOptions, cluster_command
from zonal.report.wording import MOST_CHARACTERS, Fact, asked_text, clipped, plural, share_text
from zonal.values.sizes import size_text

_MOST_CANDIDATES = 8
_MOST_COLUMNS = 10
"""Columns that a terminal prints."""
_LONGEST_DAYS = 3650.0

_LEVELS = (
    Heading("when", kind="text"),
    Heading("share of the bytes"),
    Heading("9 of 10 times"),
    Heading("with row groups skipped"),
)
_CANDIDATES = (
    Heading("what", kind="text"),
    Heading("reads"),
    Heading("9 of 10 times"),
    Heading("than now", on_terminal=False),
    Heading("files"),
    Heading("cost"),
    Heading("paid back"),
)
_FILTERED = (
    Heading("column", "filtered column", kind="text"),
    Heading("queries' weight", "by queries' weight"),
    Heading("by ="),
    Heading("distinct"),
    Heading("skipped by", kind="text"),
)


def advice_blocks(advice: Advice, given: CommandOptions | None = None) -> Iterator[Block]:
    """Yield an advice, the verdict first; `given` names what the command to run is made of."""
    yield Title("Advice for ", advice.table.name)
    yield Sentences([advice.reason], "good" if advice.verdict == "cluster" else "other")
    if command := cluster_command(advice, given or CommandOptions(advice.table.name)):
        yield Command(command)
    yield Facts([*_table_facts(advice), *_change_facts(advice)], drawn=("now", "after"))
    yield from _compared(advice)
    yield from _candidates(advice)
    yield FileChart(advice.picture, "The files now")
    yield ReadsChart(advice.picture, "What each query reads now")
    yield from _regressions(advice)
    yield _blooms(advice)
    yield Lines("Warnings", [warning.text for warning in advice.warnings])
    yield from _workload(advice)
    yield Lines("What this rests on", list(_basis(advice)))
    yield Colophon("Made by zonal advise. Shares are of the table's bytes, over the queries' weight.")


# --- Tables ----------------------------------------------------------------------------------------------------------


def _compared(advice: Advice) -> Iterator[Block]:
    """Compare what queries read by partitions alone, now, and with the best layout; on a terminal, facts say it."""
    if not advice.candidates:
        return
    best = advice.best
    levels = [("partitions alone", advice.partition_only)] if advice.table.partitioning else []
    levels += [("now", advice.now)]
    if best is not None and best.layout is not None:
        levels += [(f"after: {what_text(best)}", best.reads)]
    most = _scale([reads for _, reads in levels])
    yield TableBlock(
        "Now and after",
        f"What a query reads in the mean. Bars go from 0 to {share_text(most)} of the table's bytes.",
        _LEVELS,
        [TableRow(what, [*_reads_cells(reads, most), Cell(_groups(reads))]) for what, reads in levels],
        on_terminal="nothing",
    )


def _candidates(advice: Advice) -> Iterator[Block]:
    shown = _shown_candidates(advice)
    most = _scale([each.reads for each in shown])
    more = len(advice.candidates) - len(shown)
    yield TableBlock(
        "Candidates",
        f"Best first. Bars go from 0 to {share_text(most)} of the table's bytes; the line is where the mean lies nine "
        "of ten times.",
        _CANDIDATES,
        [_candidate(each, most, is_best=each == advice.best) for each in shown],
        f"And {plural(more, 'other candidate')}." if more else "",
    )
    yield Remarks([f"{what_text(each)}: {note}" for each in shown for note in _notes(each)])


def _candidate(each: Candidate, most: float, *, is_best: bool) -> TableRow:
    cells = [
        *_reads_cells(each.reads, most),
        *map(Cell, (_gain_text(each), f"{each.files:,}", _cost_text(each.cost), _payback_text(each.cost))),
    ]
    mark = "← advised" if is_best else ""
    return TableRow(what_text(each), cells, list(_notes(each)), mark, "good" if is_best else "other")


def _notes(candidate: Candidate) -> Iterator[str]:
    if candidate.extrapolated:
        yield "Carried over from a prediction for fewer files."
    if candidate.note:
        yield candidate.note


def _reads_cells(reads: Reads, most: float) -> list[Cell]:
    """Return a share with its bar, and its interval, which is one word: a column of a terminal may be narrow."""
    share = Cell(share_text(reads.bytes), reads.bytes, span=(reads.low, reads.high), scale=most)
    return [share, Cell(_interval_text(reads, "\N{EN DASH}"))]


def _groups(reads: Reads) -> str:
    return "not known" if reads.row_groups is None else share_text(reads.row_groups)


def _scale(reads: list[Reads]) -> float:
    """Return the end of the bars' scale: the largest share, rounded up to a tenth of a power of ten."""
    most = max((share for each in reads for share in (each.bytes, each.high) if math.isfinite(share)), default=1.0)
    if most <= 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(most))
    return min(1.0, math.ceil(round(most / step, 6)) * step)


def _regressions(advice: Advice) -> Iterator[Block]:
    best = advice.best
    if best is None or best.layout is None:
        return
    heading, said = "Queries that lose", _regressions_text(best)
    if not best.worse:
        yield Lines(heading, [said])
        return
    yield TableBlock(
        heading,
        said,
        (Heading("query", kind="text"), Heading("now"), Heading("after")),
        [
            TableRow(each.query, _change_cells(each.before, each.after), [asked_text(each.source, each.count)])
            for each in best.worse
        ],
        on_terminal="lines",
    )


def _blooms(advice: Advice) -> TableBlock:
    return TableBlock(
        "Bloom filters",
        "Bloom filters would help, too: what queries for single values read with the best layout, without and with "
        "them.",
        (Heading("column", kind="text"), Heading("queries' weight"), Heading("without"), Heading("with")),
        [
            TableRow(each.column, [Cell(f"{each.weight:.0%}"), *_change_cells(each.before, each.after)], [each.text])
            for each in advice.blooms
        ],
        on_terminal="lines",
    )


def _change_cells(before: float, after: float) -> list[Cell]:
    return [Cell(share_text(before)), Cell(share_text(after))]


def _workload(advice: Advice) -> Iterator[Block]:
    yield Facts(list(_workload_facts(advice)), heading="The queries")
    yield Lines("The first that can't be read", _unread(advice))
    yield TableBlock(
        "Filtered columns",
        "The columns that queries filter.",
        _FILTERED,
        [TableRow(column.column, _column_cells(column)) for column in advice.workload.filtered],
        most=_MOST_COLUMNS,
    )


def _shown_candidates(advice: Advice) -> list[Candidate]:
    """Return the best candidates, in their order; the advised one and `leave` are always among them."""
    first, others = advice.candidates[:_MOST_CANDIDATES], advice.candidates[_MOST_CANDIDATES:]
    return [*first, *(each for each in others if each == advice.best or each.kind == "leave")]


def _column_cells(column: Filtered) -> list[Cell]:
    """Return how much a column is filtered, how much by equality, its distinct values, and what helps with it."""
    at_least = "" if column.distinct_is_all else "≥ "
    distinct = "-" if column.distinct is None else f"{at_least}{column.distinct:,}"
    helps = ["partitions"] * column.partitions + ["file bounds"] * column.has_statistics
    texts = f"{column.weight:.0%}", f"{column.equality:.0%}", distinct, ", ".join(helps) or "nothing"
    return [Cell(text) for text in texts]


def _unread(advice: Advice) -> tuple[str, ...]:
    """Return the first statements that can't be read, and why; none with hidden values: the reasons quote SQL."""
    return () if advice.workload.hidden else advice.workload.summary.examples


# --- Facts -----------------------------------------------------------------------------------------------------------


def _table_facts(advice: Advice) -> Iterator[Fact]:
    """Say what the table is."""
    version = "" if advice.table.version is None else f", version {advice.table.version}"
    rows = "" if advice.table.rows is None else f", {advice.table.rows:,} rows"
    yield (
        "table",
        f"{clipped(advice.table.name)} ({advice.table.format}{version}): {plural(advice.table.files, 'file')}, "
        f"{size_text(advice.table.bytes)}{rows}",
    )
    if advice.table.partitioning:
        yield "partitions", f"by {', '.join(clipped(name) for name in advice.table.partitioning)}"
    if advice.table.layout:
        yield "layout", clipped(advice.table.layout)


def _change_facts(advice: Advice) -> Iterator[Fact]:
    """Say what queries read now, what they would read, and what that costs and saves."""
    if not advice.candidates:
        return
    apart = f"; partitions alone: {share_text(advice.partition_only.bytes)}" if advice.table.partitioning else ""
    yield "now", f"queries read {_reads(advice.now)}{apart}"
    best = advice.best
    if best is None or best.layout is None:
        return
    yield (
        "after",
        f"{_reads(best.reads)} with {what_text(best)}: {_gain_text(best)}, in about {plural(best.files, 'file')}",
    )
    cost = best.cost
    yield (
        "cost",
        f"{_money_text(cost.price)} for rewriting {size_text(cost.bytes)}: {_core_text(cost.core_seconds)} "
        f"({_money_text(cost.rewrite_price)}), old files kept for {advice.basis.prices.keep_days:g} days "
        f"({_money_text(cost.storage_price)})",
    )
    yield (
        "saves",
        f"{size_text(max(cost.saved_bytes_per_day, 0.0))} and {_money_text(max(cost.saved_price_per_day, 0.0))} a day, "
        f"at {advice.workload.per_day:,.4g} scans a day; paid back: {_payback_text(cost)}",
    )


def _reads(reads: Reads) -> str:
    share, interval = share_text(reads.bytes), _interval_text(reads)
    groups = share if reads.row_groups is None else share_text(reads.row_groups)
    more = [interval] if interval != share else []
    more += [f"{groups} where row groups are skipped"] if groups != share else []
    return f"{share} of the bytes" + (f" ({', '.join(more)})" if more else "")


def _workload_facts(advice: Advice) -> Iterator[Fact]:
    """Say what became of the logs' statements."""
    summary = advice.workload.summary
    span = "" if summary.days is None else f" over {days_text(summary.days)}"
    yield "statements", f"{summary.statements:,}{span}: {summary.parsed:,} read, {summary.unparsable:,} can't be read"
    yield "of this table", f"{summary.matched:,}; {summary.other_tables:,} ask other tables, or nothing"
    if summary.full_scans:
        yield "full scans", f"{summary.full_scans:,} of these: no filter that statistics could use"
    if advice.workload.queries:
        apart = (
            "measured on all of them"
            if advice.workload.held_out >= advice.workload.queries
            else f"measured on {advice.workload.held_out:,}"
        )
        yield "filters", f"{advice.workload.queries:,} different, {apart}"
    yield "dialect", summary.dialect or "standard SQL"
    if advice.workload.joins:
        yield "joined by", ", ".join(clipped(name) for name in advice.workload.joins)


def _basis(advice: Advice) -> Iterator[str]:
    """Say what the numbers rest on."""
    of = advice.basis
    yield from of.assumptions
    if of.sample_rows:
        size = size_text(of.target_file_bytes)
        yield f"Predicted from a sample of {of.sample_rows:,} rows, for files of {size}, with seed {of.seed}."
    if advice.workload.hidden:
        yield "Values that queries compare with are hidden."


# --- Phrases ---------------------------------------------------------------------------------------------------------


def _regressions_text(candidate: Candidate) -> str:
    """Introduce the queries that read more, or say that there are none."""
    if not candidate.worse_count:
        return f"No query that was measured reads more with {what_text(candidate)} than now."
    reads = "query reads" if candidate.worse_count == 1 else "queries read"
    shown = len(candidate.worse)
    some = f" (the {shown} that lose most)" if shown < candidate.worse_count else ""
    return f"{candidate.worse_count:,} {reads} more with {what_text(candidate)} than now{some}:"


def what_text(candidate: Candidate, limit: int = MOST_CHARACTERS) -> str:
    """Name a candidate without the size of its files, which is the same for all."""
    if candidate.layout is None:
        return clipped(candidate.text, limit)
    return clipped(replace(candidate.layout, target_file_bytes=None).short, limit)


def _interval_text(reads: Reads, to: str = " to ") -> str:
    """Print the interval of the mean."""
    low, high = share_text(reads.low), share_text(reads.high)
    return high if low == high else f"{low}{to}{high}"


def _money_text(price: float) -> str:
    """Print a price to the cent.

    >>> _money_text(12.345), _money_text(0.0001), _money_text(0)
    ('$12.35', '<$0.01', '$0.00')
    """
    return "<$0.01" if 0 < price < 0.01 else price_text(price)


def _gain_text(candidate: Candidate) -> str:
    """Print how much less, or more, is read than now."""
    if abs(candidate.gain) < 0.005:
        return "the same"
    return f"{abs(candidate.gain):.0%} {'less' if candidate.gain > 0 else 'more'}"


def _cost_text(cost: Cost) -> str:
    """Print what a rewrite costs."""
    return _money_text(cost.price) if cost.bytes else "-"


def _payback_text(cost: Cost) -> str:
    """Print when a rewrite has paid for itself."""
    if not cost.bytes:
        return "-"
    if cost.payback_days is None:
        return "never"
    if cost.payback_days < 1:
        return "<1 day"
    return ">10 years" if cost.payback_days > _LONGEST_DAYS else days_text(cost.payback_days)


def _core_text(seconds: float) -> str:
    """Print core-seconds.

    >>> _core_text(0.4), _core_text(12.3), _core_text(600), _core_text(90_000)
    ('1 core-second', '12 core-seconds', '10 core-minutes', '25.0 core-hours')
    """
    if seconds < 120:
        return plural(max(round(seconds), 1), "core-second")
    return f"{seconds / 60:,.0f} core-minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} core-hours"
