"""Decide whether the best candidate is worth its cost, with a sentence that says why."""

from collections.abc import Sequence
from dataclasses import dataclass

from zonal.advising.advice import Candidate, Reads, Verdict
from zonal.advising.amounts import days_text, price_text
from zonal.values.sizes import size_text

LEAST_GAIN = 0.15
"""Least share of what is read today that a layout has to save."""
LONGEST_PAYBACK = 365.0
"""Days: in a year a table changes so much that the advice no longer holds."""


@dataclass(frozen=True)
class Decision:
    """The advised candidate, and why."""

    best: Candidate
    verdict: Verdict
    reason: str


def first_layout(ranked: Sequence[Candidate]) -> Candidate | None:
    """Return the best candidate with a layout, which `cluster` can do."""
    return next((each for each in ranked if each.layout is not None), None)


def decide(ranked: Sequence[Candidate], now: Reads) -> Decision:
    """Take the best layout, unless it saves too little or never pays."""
    leave = next(each for each in ranked if each.kind == "leave")
    best = first_layout(ranked)
    if best is None:
        return Decision(leave, "leave", "Leave it: no query filters a column that the rows could be ordered by.")
    reads = f"queries read {now.bytes:.1%} of the table now, and would read {best.reads.bytes:.1%} with {best.text}"
    if best.gain < LEAST_GAIN:
        saved = f"{best.gain:.0%} less" if best.gain > 0 else "no less"
        return Decision(leave, "leave", f"Leave it: {reads}, {saved}. Below {LEAST_GAIN:.0%} a rewrite isn't worth it.")
    cost = best.cost
    if cost.payback_days is None:
        return Decision(leave, "leave", f"Leave it: {reads}, but at these prices and runs a day it saves nothing.")
    price = f"costs {price_text(cost.price)} and saves {price_text(cost.saved_price_per_day)} a day"
    if cost.payback_days > LONGEST_PAYBACK:
        return Decision(
            leave,
            "leave",
            f"Leave it: {reads}, but a rewrite {price}, so that it takes {cost.payback_days:,.0f} days to pay back.",
        )
    return Decision(
        best,
        "cluster",
        f"Cluster it: {reads}. The rewrite of {size_text(cost.bytes)} {price}: it has paid back after "
        f"{days_text(cost.payback_days)}.",
    )
