"""Measure what the size of files costs and brings, to choose it by the table's size.

`python -m benchmarks.file_sizes [--rows 1000000]`. The share of a table that queries read is measured for 4 to 16,384
files, what it takes to open and to read a file on real Parquet files of this machine. Together they give the time of a
mean query for tables of all sizes, on a local disk, and in an object store, where every file that is read costs two
requests more. One process plans, looking at the entry of every file, and sixteen cores read.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.skipping import aligned_cuts, queries, scanned
from zonal import Layout, Ranks
from zonal.demo.telemetry import telemetry
from zonal.layouts.keys import key_words
from zonal.plan.file_size import suited
from zonal.values.sizes import format_size, size_text

PLAN = 35e-6
"""Seconds to look at the entry of one file: `show` of 100,000 files takes 3.5 (docs/decisions.md)."""
REQUESTS = 0.060
"""Seconds that two requests to an object store take until they answer."""
CORES = 16
SIZES = [2**power for power in range(18, 31)]
TABLES = [10**7, 10**8, 10**9, 10**10, 10**11, 10**12, 10**13, 10**14]


def shares(rows: int) -> Callable[[float], float]:
    """Measure the share that queries read of so many files; between, and beyond, by the slope of its logarithm."""
    data = telemetry(rows)
    values = np.stack([data["ts"].cast(pa.int64()).to_numpy(), data["payload_id"].to_numpy()], axis=1)
    table = pa.table({"a": values[:, 0], "b": values[:, 1]})
    key = key_words(table, Layout("zorder", ("a", "b")), Ranks.fit(table, ["a", "b"]))[0]
    order = np.argsort(key, kind="stable")
    bounds = queries(values)
    counts = 4 ** np.arange(1, 8)
    read = [scanned(values[order], aligned_cuts(key[order], int(count)), bounds) for count in counts]
    log_counts, log_read = np.log(counts), np.log(read)
    slope = (log_read[-1] - log_read[-2]) / (log_counts[-1] - log_counts[-2])

    def share(files: float) -> float:
        at = math.log(max(files, 1.0))
        if at > log_counts[-1]:
            return float(np.exp(log_read[-1] + slope * (at - log_counts[-1])))
        return float(np.exp(np.interp(at, [0.0, *log_counts], [0.0, *log_read])))

    return share


def opening(rows: int) -> tuple[float, float, list[tuple[int, float]]]:
    """Return the seconds to open a file and to read a byte, and the bytes per row of files of each number of rows."""
    data = telemetry(rows)
    with tempfile.TemporaryDirectory() as folder:
        per_row: list[tuple[int, float]] = []
        times: list[tuple[int, float]] = []
        for count in (1, 2_000, 8_000, 32_000, 128_000, 512_000):
            path = Path(folder) / f"{count}.parquet"
            pq.write_table(data.slice(0, count), path, compression="zstd")
            size = path.stat().st_size
            per_row.append((size, size / min(count, rows)))
            took = []
            for _ in range(15):
                began = time.perf_counter()
                pq.read_table(path)
                took.append(time.perf_counter() - began)
            times.append((size, min(took)))
    (_, start), *_, (size, whole) = times
    return start, (whole - start) / size, per_row[1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    share = shares(rows)
    start, per_byte, per_row = opening(rows)
    console = Console()
    console.print(f"{start * 1000:.2f} ms to open a file, {1e-6 / per_byte:,.0f} MB/s; bytes per row by file:")
    console.print(", ".join(f"{size_text(size)} {each:.1f}" for size, each in per_row))
    console.print(", ".join(f"{4**power:,} files {share(4**power):.3f}" for power in range(1, 8)))
    for place, wait in (("local disk", 0.0), ("object store", REQUESTS)):

        def seconds(table: int, size: int, wait: float = wait) -> float:
            files = max(table / size, 1.0)
            return files * PLAN + share(files) * (files * (start + wait) + table * per_byte) / CORES

        shown = Table(title=place)
        for name in ("table", "best size", "s per query", "chosen", "files", "s per query", "at 128 MiB"):
            shown.add_column(name, justify="right")
        for table in TABLES:
            best = min(SIZES, key=lambda size: seconds(table, size))
            mine = suited(table)
            shown.add_row(
                size_text(table), format_size(best), f"{seconds(table, best):,.3f}", format_size(mine),
                f"{table / mine:,.0f}", f"{seconds(table, mine):,.3f}", f"{seconds(table, 2**27):,.3f}",
            )  # fmt: skip
        console.print(shown)


if __name__ == "__main__":
    main()
