"""Time steps, and compare them with a peer and a target: CPU-seconds, rows per second, ratio."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

REPEATS = 3


def cpu_seconds(work: Callable[..., object], *args: Any, **options: Any) -> float:
    """Return the CPU time, user and system, that the fastest of three calls takes."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = work(*args, **options)
        times.append(time.process_time() - start)
        del result  # freed before the next run, so that at most one result is held
    return max(min(times), 1e-9)


@dataclass(frozen=True)
class Peer:
    """The measurement that zonal is compared with, made in the same process."""

    name: str
    rows: int
    seconds: float


@dataclass(frozen=True)
class Target:
    """A limit for one of the numbers of a result."""

    number: Literal["million_rows_per_second", "ratio", "times_faster"]
    relation: Literal["≥", "<"]
    bound: float

    def __str__(self) -> str:
        unit = {"million_rows_per_second": "M rows/s", "ratio": "of the peer", "times_faster": "x faster"}[self.number]
        return f"{self.relation} {self.bound:g} {unit}"


@dataclass(frozen=True)
class Timed:
    """CPU-seconds of one step over `rows` rows."""

    name: str
    rows: int
    seconds: float
    peer: Peer
    target: Target | None = None

    @property
    def million_rows_per_second(self) -> float:
        """Return the rate in million rows per second."""
        return self.rows / self.seconds / 1e6

    @property
    def ratio(self) -> float:
        """Return the time per row as a share of the peer's time per row."""
        return self.seconds / self.rows / (self.peer.seconds / self.peer.rows)

    @property
    def times_faster(self) -> float:
        """Return the inverse of the ratio."""
        return 1 / self.ratio

    @property
    def met(self) -> bool | None:
        """Tell whether the target is met; None where there is none."""
        if self.target is None:
            return None
        number: float = getattr(self, self.target.number)
        return number >= self.target.bound if self.target.relation == "≥" else number < self.target.bound

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return {
            "name": self.name,
            "rows": self.rows,
            "cpu_seconds": self.seconds,
            "rows_per_second": self.rows / self.seconds,
            "peer": {"name": self.peer.name, "rows": self.peer.rows, "cpu_seconds": self.peer.seconds},
            "ratio": self.ratio,
            "times_faster": self.times_faster,
            "target": None if self.target is None else str(self.target),
            "met": self.met,
        }


def mark(target: object, met: bool | None) -> str:
    """Write a target with a check mark or a cross; nothing where there is no target."""
    return "" if met is None else f"{target} {'[green]✓[/]' if met else '[red]✗[/]'}"


def table_of(title: str, results: Sequence[Timed]) -> Table:
    """Draw timed results, one line each."""
    table = Table(title=title, title_justify="left")
    for name in ("step", "rows", "CPU s", "M rows/s", "peer", "peer M rows/s", "time / peer", "x faster", "target"):
        table.add_column(name, justify="left" if name in ("step", "peer", "target") else "right")
    for result in results:
        table.add_row(
            Text(result.name),
            f"{result.rows:,}",
            f"{result.seconds:.4f}",
            f"{result.million_rows_per_second:.2f}",
            result.peer.name,
            f"{result.peer.rows / result.peer.seconds / 1e6:.3f}",
            f"{result.ratio:.4f}",
            f"{result.times_faster:.2f}",
            mark(result.target, result.met),
        )
    return table
