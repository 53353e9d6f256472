"""Measure time and memory of the kernel on one core, against targets and peers: `python -m benchmarks.kernel`."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy and pyarrow are imported
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["ARROW_IO_THREADS"] = "1"

import argparse
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import zonal
from benchmarks import data, measure, memory
from benchmarks.measure import Peer, Target, Timed, cpu_seconds
from benchmarks.peers import peers
from zonal.layouts.batch import cluster_batch
from zonal.layouts.curves import encode
from zonal.layouts.cuts import cell_cuts, cuts_within
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import MAX_KNOTS, ColumnRanks, Ranks
from zonal.layouts.sort import stable_order
from zonal.values.arrays import Int64Array, UInt32Array, UInt64Array
from zonal.values.selection import take_rows

ROWS = 10_000_000
BITS = 16
NUMBERS_TARGET = Target("million_rows_per_second", "≥", 20)
STRINGS_TARGET = Target("million_rows_per_second", "≥", 3)
CURVE_TARGETS = {
    ("zorder", 2): Target("ratio", "<", 0.5),
    ("hilbert", 2): Target("ratio", "<", 2),
    ("hilbert", 3): Target("ratio", "<", 2),
}


@dataclass(frozen=True)
class Shares:
    """CPU-seconds of `cluster_batch`, and of each of its steps, called alone on the same data."""

    layout: str
    rows: int
    columns: int
    seconds: float
    steps: dict[str, float]

    @property
    def rest(self) -> float:
        """Return the seconds in no step: the search for heavy keys, and the system's time for memory.

        The latter varies between runs, and is lower where a step is repeated alone.
        """
        return self.seconds - sum(self.steps.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return asdict(self) | {"rest": self.rest, "rows_per_second": self.rows / self.seconds}


def ranks(rows: int) -> Iterator[Timed]:
    """Fit each kind of column on a sample, then rank all its rows."""
    chosen = data.sampled_rows(rows)
    for column in data.columns(rows):
        sample, plain = column.arrow.take(pa.array(chosen)), column.plain[chosen]
        peer = Peer("np.unique of the sample", len(plain), cpu_seconds(np.unique, plain, return_counts=True))
        yield Timed(f"fit {column.name}", len(plain), cpu_seconds(ColumnRanks.fit, sample), peer)
        quantiles = np.sort(plain)[np.arange(MAX_KNOTS) * len(plain) // MAX_KNOTS]
        peer = Peer("np.searchsorted, 4,096 knots", rows, cpu_seconds(np.searchsorted, quantiles, column.plain))
        target = STRINGS_TARGET if column.plain.dtype.kind == "S" else NUMBERS_TARGET
        seconds = cpu_seconds(ColumnRanks.fit(sample).codes, column.arrow, BITS)
        yield Timed(f"apply {column.name}", rows, seconds, peer, target)


def curves(rows: int) -> Iterator[Timed]:
    """Encode random codes on every curve, compared with one sort of as many integers."""
    unsorted = np.random.default_rng(4).integers(-(2**63), 2**63, rows)
    peer = Peer("np.argsort of int64", rows, cpu_seconds(np.argsort, unsorted))
    for kind in ("linear", "zorder", "hilbert"):
        for dimensions in (2, 3):
            seconds = cpu_seconds(encode, kind, data.codes(rows, dimensions, BITS), BITS)
            yield Timed(f"{kind}, {dimensions}-D", rows, seconds, peer, CURVE_TARGETS.get((kind, dimensions)))


def sorts(rows: int) -> Iterator[Timed]:
    """Order rows by random keys of two widths."""
    for bits in (32, 64):
        key = np.random.default_rng(5).integers(0, 2**bits, rows, dtype=np.uint64)
        seconds = cpu_seconds(stable_order, [key])
        for name, kind in (("np.argsort", None), ("np.argsort, stable", "stable")):
            peer = Peer(name, rows, cpu_seconds(np.argsort, key, kind=kind))
            yield Timed(f"stable_order, {bits}-bit key", rows, seconds, peer)


def batch(rows: int) -> Iterator[Shares]:
    """Cluster a table of eight columns by two of them, whole and step by step."""
    table = data.events(rows)
    for kind in ("zorder", "hilbert"):
        layout = Layout(kind, ("id", "ts"))
        fitted = _fit(table, layout)
        codes = _codes(table, layout, fitted)
        words = encode(kind, codes, layout.bits_per_column)
        order = stable_order(words)
        steps = {
            "fit": cpu_seconds(_fit, table, layout),
            "ranks": cpu_seconds(_codes, table, layout, fitted),
            "keys": cpu_seconds(encode, kind, codes, layout.bits_per_column),
            "sort": cpu_seconds(stable_order, words),
            "cuts": cpu_seconds(_cuts, table, layout, words, order),
            "take": cpu_seconds(take_rows, table, order),
        }
        seconds = cpu_seconds(cluster_batch, table, layout=layout)
        yield Shares(str(layout), rows, table.num_columns, seconds, steps)


def _fit(table: pa.Table, layout: Layout) -> Ranks:
    return Ranks.fit(data.sample(table.select(layout.columns)), layout.columns)


def _codes(table: pa.Table, layout: Layout, fitted: Ranks) -> list[UInt32Array]:
    return [fitted.codes(table, column, layout.bits_per_column) for column in layout.columns]


def _cuts(table: pa.Table, layout: Layout, words: Sequence[UInt64Array], order: Int64Array) -> list[Int64Array]:
    keys = [word[order] for word in words]
    ties = np.zeros(len(order), np.uint64)
    files = cell_cuts([*keys, ties], layout.file_bytes * table.num_rows // table.nbytes)
    return cuts_within([*keys, ties], files, layout.row_group_rows)


def shares_table(title: str, results: Sequence[Shares]) -> Table:
    """Draw the share of each step in the whole."""
    table = Table(title=title, title_justify="left")
    table.add_column("layout")
    for name in ("rows", "CPU s", "M rows/s", *results[0].steps, "rest"):
        table.add_column(name, justify="right")
    for result in results:
        parts = [*result.steps.values(), result.rest]
        table.add_row(
            result.layout,
            f"{result.rows:,}",
            f"{result.seconds:.3f}",
            f"{result.rows / result.seconds / 1e6:.2f}",
            *(f"{part:.3f} s\n{part / result.seconds:.1%}" for part in parts),
        )
    return table


def main() -> None:
    """Run every section; memory comes first, while this process is small."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    console = Console(width=160, quiet=options.output == "json")
    rows: int = options.rows
    versions = {"python": platform.python_version(), "numpy": np.__version__, "pyarrow": pa.__version__}
    versions["zonal"] = zonal.__version__
    report: dict[str, Any] = {"rows": rows, "versions": versions}
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    console.print(f"{rows:,} rows, one core, best of {measure.REPEATS}; {text}", highlight=False)

    kept = memory.memory(rows)
    report["memory"] = [result.to_dict() for result in kept]
    console.print(memory.table_of("Memory of keys and order", kept))
    for name, title, section in (
        ("ranks", "Ranks at 16 bits", ranks),
        ("curves", "Curves at 16 bits", curves),
        ("sorts", "Order", sorts),
        ("peers", "Other libraries' curves at 16 bits, by the time a row", peers),
    ):
        timed = list(section(rows))
        report[name] = [result.to_dict() for result in timed]
        console.print(measure.table_of(title, timed))
    shares = list(batch(rows))
    report["batch"] = [result.to_dict() for result in shares]
    console.print(shares_table("cluster_batch of eight columns", shares))
    if options.output == "json":
        print(json.dumps(report, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
