"""Measure the peak memory of making keys and order, as a multiple of the key columns' bytes."""

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.table import Table
from rich.text import Text

from benchmarks.measure import mark
from zonal.layouts.batch import SAMPLE_ROWS
from zonal.layouts.keys import key_words
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.layouts.sort import stable_order

MOST = 3.0
LEAST_ROWS = 1_000_000
"""Fewer rows take less memory than the warm-up before them, so that the peak doesn't grow."""

UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes per unit of ru_maxrss."""

CASES = (
    ("zorder(id)", 2**40),
    ("zorder(id, ts)", 2**40),
    ("hilbert(id, ts)", 2**40),
    ("zorder(id, ts, bits=32)", 2**40),
    ("zorder(id, ts, bits=32)", 5),
)
"""Layouts, and the number of distinct values per column."""


@dataclass(frozen=True)
class Memory:
    """How far the peak grew while keys and order were made."""

    layout: str
    rows: int
    distinct: int
    column_bytes: int
    extra_bytes: int

    @property
    def ratio(self) -> float:
        """Return the extra memory as a multiple of the key columns."""
        return self.extra_bytes / self.column_bytes

    @property
    def met(self) -> bool | None:
        """Tell whether the target is met; None where the rows are too few to tell."""
        return self.ratio <= MOST if self.rows >= LEAST_ROWS else None

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return asdict(self) | {"ratio": self.ratio, "target": f"≤ {MOST:g}", "met": self.met}


def memory(rows: int) -> list[Memory]:
    """Measure each case in its own process.

    Call it while this process is small: on Linux a child's ru_maxrss begins at its parent's.
    """
    results = []
    for layout, distinct in CASES:
        command = [sys.executable, "-m", __name__, str(rows), layout, str(distinct)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        results.append(Memory(**json.loads(done.stdout)))
    return results


def table_of(title: str, results: Sequence[Memory]) -> Table:
    """Draw the results, one line each."""
    table = Table(title=title, title_justify="left")
    for name in ("layout", "values per column", "key columns MB", "extra MB", "extra / columns", "target"):
        table.add_column(name, justify="left" if name in ("layout", "target") else "right")
    for result in results:
        table.add_row(
            Text(result.layout),
            f"{min(result.distinct, result.rows):,}",
            f"{result.column_bytes / 1e6:.1f}",
            f"{result.extra_bytes / 1e6:.1f}",
            f"{result.ratio:.2f}",
            mark(f"≤ {MOST:g}", result.met),
        )
    return table


def _measure(rows: int, text: str, distinct: int) -> Memory:
    """Fit and warm up on few rows, then make the input, so that nothing before has a higher peak than the input."""
    layout = Layout.parse(text)
    few = _input(SAMPLE_ROWS, layout, distinct)
    ranks = Ranks.fit(few, layout.columns)
    stable_order(key_words(few, layout, ranks))
    data = _input(rows, layout, distinct)
    before = _peak()
    words = key_words(data, layout, ranks)
    order = stable_order(words)
    extra = _peak() - before
    assert len(order) == rows
    return Memory(text, rows, distinct, data.nbytes, extra)


def _input(rows: int, layout: Layout, distinct: int) -> pa.Table:
    """Make the key columns without temporary arrays."""
    rng = np.random.default_rng(3)
    kinds = {"id": pa.int64(), "ts": pa.timestamp("us")}
    return pa.table({name: pa.array(rng.integers(0, distinct, rows)).cast(kinds[name]) for name in layout.columns})


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


if __name__ == "__main__":
    pa.set_cpu_count(1)
    print(json.dumps(asdict(_measure(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))))
