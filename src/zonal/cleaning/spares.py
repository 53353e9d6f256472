"""The files that no version of a table needs, each with what proves it."""

from collections.abc import Iterable
from dataclasses import dataclass

LEFT_BY_RUN = "left by broken runs of zonal"
REMOVED = "removed from the table"


@dataclass(frozen=True)
class Spare:
    """A file that nobody needs."""

    path: str
    """From the table's folder on."""
    size: int
    reason: str
    """What kind of a file it is; the same words for all of a kind."""
    why: str
    """What proves that nobody needs it, in a sentence."""


@dataclass(frozen=True)
class Spares:
    """What a look at a table found."""

    files: tuple[Spare, ...] = ()
    """In the order in which they may be moved: what proves that a file is spare goes after it."""
    expiring: tuple[int, ...] = ()
    """Snapshots that must be removed from the table's metadata before any of the files is moved."""
    notes: tuple[str, ...] = ()
    """What is left, and why."""


@dataclass(frozen=True)
class Total:
    """How much there is of one kind."""

    reason: str
    files: int
    bytes: int


def totals(files: Iterable[Spare]) -> tuple[Total, ...]:
    """Count files and bytes by their reason, in the order in which reasons first appear."""
    sums: dict[str, list[int]] = {}
    for file in files:
        entry = sums.setdefault(file.reason, [0, 0])
        entry[0] += 1
        entry[1] += file.size
    return tuple(Total(reason, count, size) for reason, (count, size) in sums.items())
