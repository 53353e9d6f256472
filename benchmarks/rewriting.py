"""Measure what rewrites cost and how much they skip: zonal and its peers on the same rows, with files of one size.

`python -m benchmarks.rewriting [--table lineitem|wide] [--scale 1] [--only zonal,delta-zorder] [--target 4.6MB]`.
Each peer rewrites a fresh copy of the table in its own process, one after the other. CPU-seconds are those of the whole
process tree, of the rewrite alone (a running engine, a tiny job done) and of everything. `--scales 1,10` shows whether
zonal's cost grows linearly with the rows.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.rewriters import inputs, usage
from benchmarks.rewriters.inputs import Input
from benchmarks.rewriters.job import Job
from benchmarks.rewriters.judge import Judged, Query, judge, make_queries
from benchmarks.rewriters.peers import ZONAL, Peer, chosen
from benchmarks.rewriters.run import rewritten
from zonal.values.sizes import parse_size

TARGET = "4.6MB"
TIMEOUT = 3600.0


@dataclass(frozen=True)
class Measured:
    """One peer's rewrite."""

    peer: Peer
    rows: int
    cpu_seconds: float
    wall_seconds: float
    process: usage.Usage
    judged: Judged

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return asdict(self) | {"mean_share": self.judged.mean}


def measure(peer: Peer, input_: Input, *, target: int, queries: Sequence[Query], scratch: Path) -> Measured:
    """Rewrite a fresh copy, and check that the number of rows is the same; the copy is removed afterwards."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix=f"{peer.name}-") as name:
        folder = Path(name)
        job = Job(folder, input_.columns, target)
        done = rewritten(peer, job, input_.files, timeout=TIMEOUT)
        judged = judge(peer.format, job, queries)
        if judged.rows != input_.rows:
            raise RuntimeError(f"{peer.name} made {judged.rows:,} rows of {input_.rows:,}.")
        return Measured(peer, input_.rows, done.cpu_seconds, done.wall_seconds, done.process, judged)


def table_of(title: str, results: Sequence[Measured]) -> Table:
    """Draw one line per peer; ratios are to the first of zonal's results."""
    table = Table(title=title, title_justify="left")
    table.add_column("peer")
    kinds = list(results[0].judged.shares)
    numbers = ("files", "MB", "CPU s", "x zonal", "whole CPU s", "wall s", "mean share", *kinds)
    for name in (*numbers, "worker MB", "tree MB"):
        table.add_column(name, justify="right")
    own = next((result.cpu_seconds for result in results if result.peer.name.startswith(ZONAL)), None)
    for result in results:
        table.add_row(
            result.peer.title,
            f"{result.judged.files}",
            f"{result.judged.bytes / 1e6:.0f}",
            f"{result.cpu_seconds:.1f}",
            "" if own is None else f"{result.cpu_seconds / own:.2f}",
            f"{result.process.cpu_seconds:.1f}",
            f"{result.wall_seconds:.1f}",
            f"{result.judged.mean:.3f}",
            *(f"{result.judged.shares[kind]:.3f}" for kind in kinds),
            f"{result.process.worker_bytes / 1e6:,.0f}",
            f"{result.process.tree_bytes / 1e6:,.0f}",
        )
    return table


def scales_table(results: Sequence[tuple[float, Measured]]) -> Table:
    """Draw CPU-seconds per million rows at each scale."""
    table = Table(title="zonal's cost by the number of rows", title_justify="left")
    for name in ("scale", "layout", "rows", "CPU s", "CPU s / M rows", "worker MB", "tree MB"):
        table.add_column(name, justify="left" if name == "layout" else "right")
    for scale, result in results:
        table.add_row(
            f"{scale:g}",
            result.peer.title,
            f"{result.rows:,}",
            f"{result.cpu_seconds:.1f}",
            f"{result.cpu_seconds / result.rows * 1e6:.2f}",
            f"{result.process.worker_bytes / 1e6:,.0f}",
            f"{result.process.tree_bytes / 1e6:,.0f}",
        )
    return table


def all_results(options: argparse.Namespace, scale: float, console: Console) -> Iterator[Measured]:
    """Measure the chosen peers at one scale; one that fails is reported, and the others are still measured."""
    cache = Path(options.folder)
    input_ = inputs.make(options.table, scale=scale, cache=cache)
    queries = make_queries(input_)
    for peer in chosen(options.only):
        try:
            result = measure(peer, input_, target=parse_size(options.target), queries=queries, scratch=cache)
            console.print(f"{peer.name}: {result.cpu_seconds:.1f} CPU-seconds", highlight=False)
            yield result
        except RuntimeError as error:  # noqa: PERF203 - a rewrite takes longer
            console.print(str(error), style="red", highlight=False, markup=False)


def main() -> None:
    """Measure, and draw one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rewriting", description=__doc__)
    parser.add_argument("--table", choices=sorted(inputs.TABLES), default="lineitem")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is 6 million rows of lineitem, 1.5 million wide")
    parser.add_argument("--scales", help="several scales, for zonal only by default: CPU a million rows at each")
    parser.add_argument("--only", help="names of peers, or their first words, with commas between them")
    parser.add_argument("--target", default=TARGET, help="size of the new files")
    parser.add_argument("--folder", default=str(Path.home() / ".cache" / "zonal" / "bench"))
    parser.add_argument("--json", help="file for all numbers")
    options = parser.parse_args()
    console = Console(width=180)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, so that no engine and no copy is left
    if options.scales:
        options.only = options.only or f"{ZONAL}-delta-zorder"
    scales = [float(scale) for scale in (options.scales or str(options.scale)).split(",")]
    results: list[tuple[float, Measured]] = []
    try:
        for scale in scales:
            results.extend((scale, result) for result in all_results(options, scale, console))
    finally:  # an interrupted run shows what it has
        if results:
            show(options, results, console)
    if not results:
        raise SystemExit("Nothing was measured.")


def show(options: argparse.Namespace, results: Sequence[tuple[float, Measured]], console: Console) -> None:
    """Draw the table, and write all numbers as JSON on request."""
    if options.scales:
        console.print(scales_table(results))
    else:
        title = f"{options.table}, {results[0][1].rows:,} rows, files of {options.target}"
        console.print(table_of(title, [result for _, result in results]))
    if options.json:
        records = [{"table": options.table, "scale": scale} | result.to_dict() for scale, result in results]
        Path(options.json).write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
