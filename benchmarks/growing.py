"""Measure what keeping a growing table clustered costs and brings, in memory, with the product's own decisions.

`python -m benchmarks.growing [--rows 100000] [--files 64] [--appends 200]`, with `tests` on PYTHONPATH. Half of the
rows are loaded and clustered, the rest arrives in appends with a run after each. Cost: bytes rewritten per byte
appended, each row's first clustering included. Share: rows in files that queries can't skip, as a multiple of the same
rows clustered afresh, the mean of twenty looks.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.growth.stream import NAMES, arrivals, questions, telemetry
from support.growing_table import ROW_BYTES, GrowingTable  # type: ignore[import-not-found]
from zonal import Layout
from zonal.upkeep.merges import MergeTerms

LOOKS = 20


def grow(rows: int, files: int, appends: int, late: float, policy: str, seed: int = 3) -> tuple[float, float, float]:
    """Return the cost, the mean share and the worst share of a policy."""
    data = telemetry(rows, seed)
    layout = Layout("zorder", NAMES, target_file_bytes=rows * ROW_BYTES // files)
    table = GrowingTable(data, layout)
    terms = MergeTerms(amplification=float(policy)) if policy[0].isdigit() else MergeTerms()
    first, *rest = arrivals(rows, appends, late, seed)
    table.append(first)
    table.keep()
    written, shares = 0, []
    for number, part in enumerate(rest):
        table.append(part)
        if policy == "always":
            written += sum(len(file.rows) for file in table.files) * ROW_BYTES
        elif policy != "never":
            written += table.keep(terms)
        if number % max(appends // LOOKS, 1) == 0 or number == appends - 1:
            low, high = questions(int(data["ts"][part].max()), seed + 1)
            fresh = table.fresh()
            share = 1.0 if policy == "always" else table.share(low, high, NAMES) / fresh.share(low, high, NAMES)
            shares.append(share)
    return written / (sum(map(len, rest)) * ROW_BYTES), float(np.mean(shares)), max(shares)


def grow_by_runs(rows: int, files: int, appends: int, late: float, wait: bool, keep: bool, seed: int) -> float:
    """Return the mean share where every append is clustered as it comes, and runs of `cluster` follow or don't."""
    data = telemetry(rows, seed)
    table = GrowingTable(data, Layout("zorder", NAMES, target_file_bytes=rows * ROW_BYTES // files))
    first, *rest = arrivals(rows, appends, late, seed)
    table.append(first)
    table.keep()
    shares = []
    for part in rest:
        table.append_run(part, wait=wait)
        if keep:
            table.keep()
        low, high = questions(int(data["ts"][part].max()), seed + 1)
        shares.append(table.share(low, high, NAMES) / table.fresh().share(low, high, NAMES))
    return float(np.mean(shares))


def appended(rows: int) -> Table:
    """Compare keys of appends: ranks of their own rows alone, and with columns that wait."""
    shown = Table(
        "files", "appends", "late rows", "runs after each", "own ranks", "columns wait", title="Clustered appends"
    )
    for files, appends in ((64, 10), (256, 10), (256, 32)):
        for late, keep in ((0.0, False), (0.0, True), (0.2, False), (0.2, True)):
            own, waits = (
                np.mean([grow_by_runs(rows, files, appends, late, wait, keep, seed) for seed in (3, 4)])
                for wait in (False, True)
            )
            shown.add_row(str(files), str(appends), f"{late:.0%}", str(keep), f"{own:.3f}", f"{waits:.3f}")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("rows", 100_000), ("files", 64), ("appends", 200)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    headings = ("policy", "late rows", "rewritten per byte", "share, of fresh", "worst")
    shown = Table(*headings, title=f"{given.appends} appends")
    for late in (0.0, 0.2):
        for policy in ("never", "1", "2", "3", "4", "always"):
            cost, mean, worst = grow(given.rows, given.files, given.appends, late, policy)
            name = f"zonal, --max-amplification {policy}" if policy.isdigit() else policy
            shown.add_row(name, f"{late:.0%}", f"{cost:.2f}", f"{mean:.3f}", f"{worst:.3f}")
    Console(width=100).print(shown)
    Console(width=100).print(appended(given.rows))


if __name__ == "__main__":
    main()
