"""Phrases that reports of several results share."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zonal.values.sizes import size_text

if TYPE_CHECKING:
    from zonal.upkeep.condition import Condition

MOST_CHARACTERS = 300

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


def known_share(share: float | None) -> str:
    """Print a share, or a dash where it isn't known."""
    return "-" if share is None else share_text(share)


def condition_facts(condition: "Condition") -> Iterator[Fact]:
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


def asked_text(source: str, count: int) -> str:
    """Say where in the logs a query is, and how often it was run."""
    times = "once" if count == 1 else f"{count:,} times"
    return f"{clipped(source)}, asked {times}" if source else f"asked {times}"
