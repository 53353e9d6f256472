"""Phrases that the terminal, pages and notebooks share, most of them of an advice."""

import math
from collections.abc import Iterator
from dataclasses import replace

from zonal.advising.advice import Advice, Candidate, Cost, Filtered, Reads, Regression
from zonal.advising.amounts import days_text, price_text
from zonal.upkeep.condition import Condition
from zonal.values.sizes import size_text

MOST_CANDIDATES = 8
MOST_CHARACTERS = 300
_LONGEST_DAYS = 3650.0

Fact = tuple[str, str]


def clipped(text: str, limit: int = MOST_CHARACTERS) -> str:
    """Cut an untrusted text to at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def share_text(share: float) -> str:
    """Print a share; a small one is never rounded to nothing.

    >>> share_text(0.3781), share_text(0.00043), share_text(1e-9), share_text(0)
    ('37.8%', '0.04%', '<0.01%', '0.0%')
    """
    if not math.isfinite(share):
        return "not known"
    if 0 < share < 0.0001:
        return "<0.01%"
    return f"{share:.2%}" if 0 < share < 0.001 else f"{share:.1%}"


def interval_text(reads: Reads) -> str:
    """Print the interval of the mean."""
    low, high = share_text(reads.low), share_text(reads.high)
    return high if low == high else f"{low} to {high}"


def what_text(candidate: Candidate, limit: int = MOST_CHARACTERS) -> str:
    """Name a candidate without the size of its files, which is the same for all."""
    if candidate.layout is None:
        return clipped(candidate.text, limit)
    return clipped(replace(candidate.layout, target_file_bytes=None).short, limit)


def money_text(price: float) -> str:
    """Print a price to the cent.

    >>> money_text(12.345), money_text(0.0001), money_text(0)
    ('$12.35', '<$0.01', '$0.00')
    """
    return "<$0.01" if 0 < price < 0.01 else price_text(price)


def gain_text(candidate: Candidate) -> str:
    """Print how much less, or more, is read than now."""
    if abs(candidate.gain) < 0.005:
        return "the same"
    return f"{abs(candidate.gain):.0%} {'less' if candidate.gain > 0 else 'more'}"


def cost_text(cost: Cost) -> str:
    """Print what a rewrite costs."""
    return money_text(cost.price) if cost.bytes else "-"


def payback_text(cost: Cost) -> str:
    """Print when a rewrite has paid for itself."""
    if not cost.bytes:
        return "-"
    if cost.payback_days is None:
        return "never"
    if cost.payback_days < 1:
        return "<1 day"
    return ">10 years" if cost.payback_days > _LONGEST_DAYS else days_text(cost.payback_days)


def core_text(seconds: float) -> str:
    """Print core-seconds.

    >>> core_text(0.4), core_text(12.3), core_text(600), core_text(90_000)
    ('1 core-second', '12 core-seconds', '10 core-minutes', '25.0 core-hours')
    """
    if seconds < 120:
        return plural(max(round(seconds), 1), "core-second")
    return f"{seconds / 60:,.0f} core-minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} core-hours"


def condition_facts(condition: Condition) -> Iterator[Fact]:
    """Say how a growing table stands to its layout, and what a run of `cluster` would do now."""
    shares = [f"{share_text(condition.share_in_layout)} in the layout"]
    if condition.share_in_others:
        shares.append(f"{share_text(condition.share_in_others)} in earlier layouts")
    if condition.share_unclustered:
        shares.append(f"{share_text(condition.share_unclustered)} not clustered")
    yield "bytes", ", ".join(shares)
    yield "runs", f"{condition.runs:,}, of which {condition.overlapping_runs:,} overlap others"
    amounts = f"{size_text(condition.rewritten_bytes)} of {size_text(condition.arrived_bytes)}"
    known = "" if condition.all_known else "; as far as the table's log and the history tell"
    yield "rewritten", f"{condition.amplification:.2f} bytes per byte that arrived so far ({amounts}){known}"
    for text in condition.due:
        yield "due", text
    for text in condition.not_due:
        yield "not due", text


def plural(count: int, one: str, many: str = "") -> str:
    """Print a number of things."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def shown_candidates(advice: Advice) -> list[Candidate]:
    """Return the best candidates, in their order; the advised one and `leave` are always among them."""
    first = list(advice.candidates[:MOST_CANDIDATES])
    return first + [each for each in advice.candidates[MOST_CANDIDATES:] if each == advice.best or each.kind == "leave"]


def table_facts(advice: Advice) -> Iterator[Fact]:
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


def change_facts(advice: Advice) -> Iterator[Fact]:
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
        f"{_reads(best.reads)} with {what_text(best)}: {gain_text(best)}, in about {plural(best.files, 'file')}",
    )
    cost = best.cost
    yield (
        "cost",
        f"{money_text(cost.price)} for rewriting {size_text(cost.bytes)}: {core_text(cost.core_seconds)} "
        f"({money_text(cost.rewrite_price)}), old files kept for {advice.basis.prices.keep_days:g} days "
        f"({money_text(cost.storage_price)})",
    )
    yield (
        "saves",
        f"{size_text(max(cost.saved_bytes_per_day, 0.0))} and {money_text(max(cost.saved_price_per_day, 0.0))} a day, "
        f"at {advice.workload.per_day:,.4g} scans a day; paid back: {payback_text(cost)}",
    )


def _reads(reads: Reads) -> str:
    share, interval = share_text(reads.bytes), interval_text(reads)
    groups = share if reads.row_groups is None else share_text(reads.row_groups)
    more = [interval] if interval != share else []
    more += [f"{groups} where row groups are skipped"] if groups != share else []
    return f"{share} of the bytes" + (f" ({', '.join(more)})" if more else "")


def regressions_heading(candidate: Candidate) -> str:
    """Introduce the queries that read more, or say that there are none."""
    if not candidate.worse_count:
        return f"No query that was measured reads more with {what_text(candidate)} than now."
    reads = "query reads" if candidate.worse_count == 1 else "queries read"
    shown = len(candidate.worse)
    some = f" (the {shown} that lose most)" if shown < candidate.worse_count else ""
    return f"{candidate.worse_count:,} {reads} more with {what_text(candidate)} than now{some}:"


def asked_text(query: Regression) -> str:
    """Say where in the logs a query is, and how often it was run."""
    times = "once" if query.count == 1 else f"{query.count:,} times"
    return f"{clipped(query.source)}, asked {times}" if query.source else f"asked {times}"


def workload_facts(advice: Advice) -> Iterator[Fact]:
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


def unread(advice: Advice) -> tuple[str, ...]:
    """Return the first statements that can't be read, and why; none with hidden values: the reasons quote SQL."""
    return () if advice.workload.hidden else advice.workload.summary.examples


def column_cells(column: Filtered) -> tuple[str, str, str, str]:
    """Return how much a column is filtered, how much by equality, its distinct values, and what helps with it."""
    at_least = "" if column.distinct_is_all else "≥ "
    distinct = "-" if column.distinct is None else f"{at_least}{column.distinct:,}"
    helps = ["partitions"] * column.partitions + ["file bounds"] * column.has_statistics
    return f"{column.weight:.0%}", f"{column.equality:.0%}", distinct, ", ".join(helps) or "nothing"


def basis(advice: Advice) -> Iterator[str]:
    """Say what the numbers rest on."""
    of = advice.basis
    yield from of.assumptions
    if of.sample_rows:
        size = size_text(of.target_file_bytes)
        yield f"Predicted from a sample of {of.sample_rows:,} rows, for files of {size}, with seed {of.seed}."
    if advice.workload.hidden:
        yield "Values that queries compare with are hidden."


def lookup_text(read: float, files: int, share: float | None) -> str:
    """Say what a look-up of one value reads, in files and in bytes: fewer, larger files may be more bytes.

    >>> lookup_text(4.2, 14, 0.286), lookup_text(1, 1, None)
    ('4 of 14 files (28.6% of the bytes)', '1 of 1 file')
    """
    of_bytes = "" if share is None else f" ({share_text(share)} of the bytes)"
    return f"{max(1, round(read)):,} of {plural(files, 'file')}{of_bytes}"


def duration_text(seconds: float) -> str:
    """Print an estimated duration as a range, from the estimate to twice as long.

    >>> duration_text(11.2), duration_text(47), duration_text(400)
    ('10 to 20 s', '45 to 95 s', '7 to 13 min')
    """
    if seconds <= 100:
        low, high = (5 * max(1, round(end / 5)) for end in (seconds, 2 * seconds))
        return f"{low:,} to {high:,} s"
    low, high = (max(1, round(end / 60)) for end in (seconds, 2 * seconds))
    return f"{low:,} to {high:,} min"
