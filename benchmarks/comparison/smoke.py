"""Measure a small table without Spark, and show its ratios beside those that were stored: `make bench-smoke`.

Rows and answers must hold; ratios are shown, and nothing depends on them, for times of a minute's work are noise.
`--store` keeps the new ones in benchmarks/smoke.json.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.comparison import data_sets
from benchmarks.comparison.course import Plan, compare
from benchmarks.comparison.results import Failure, Results
from benchmarks.comparison.summary import BY_FILES, BY_PAGES, CPU, WRITTEN, Measure, engine_measures, values_of
from benchmarks.rewriters.peers import UNTOUCHED, named

STORED = Path(__file__).parent.parent / "smoke.json"
SET, SCALE, FILES = "lineitem", 0.02, 16
OWN, PEER = "zonal-here", "delta-rs"
ENGINES = ("duckdb", "polars", "delta-rs")


def main() -> None:
    """Measure, and print old and new."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison.smoke", description=__doc__)
    parser.add_argument("--store", action="store_true", help="keep the new ratios")
    parser.add_argument("--folder", default="build/bench", help="for the rows and the tables")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, so that no table is left
    results = Results()
    for so_far, record in compare(_plan(Path(options.folder)), Results()):
        results = so_far
        if isinstance(record, Failure):
            raise SystemExit(f"{record.system}: {record.what} failed: {record.message}")
    new = dict(ratios(values_of(results, SET)))
    old = json.loads(STORED.read_text()) if STORED.exists() else {}
    Console(width=120).print(_table(old, new))
    if options.store:
        STORED.write_text(json.dumps({name: round(value, 3) for name, value in new.items()}, indent=1) + "\n")


def _plan(folder: Path) -> Plan:
    return Plan(
        sets=data_sets.chosen(SET),
        systems=[named(name) for name in (UNTOUCHED.name, PEER, OWN)],
        engines=ENGINES,
        scales=data_sets.Scales(SCALE),
        files=FILES,
        repeat=1,
        queries=20,
        passes=3,
        timeout=120.0,
        cache=folder,
    )


def ratios(values: Mapping[Measure, Mapping[str, float]]) -> Iterator[tuple[str, float]]:
    """Yield zonal's numbers as ratios to the peer's and to the table's as it arrived."""
    queries = [engine_measures(engine)[0] for engine in ENGINES]
    for measure in (CPU, WRITTEN, BY_FILES, BY_PAGES, *queries):
        found = values.get(measure, {})
        for other in (PEER,) if measure == CPU else (PEER, UNTOUCHED.name):
            if found.get(other) and OWN in found:
                yield f"{measure.name}: {OWN} / {other}", found[OWN] / found[other]


def _table(old: Mapping[str, float], new: Mapping[str, float]) -> Table:
    table = Table("ratio", title=f"{SET}, scale {SCALE:g}, {FILES} files", title_justify="left")
    for name in ("stored", "now", "now / stored"):
        table.add_column(name, justify="right")
    for name, value in new.items():
        before = old.get(name)
        change = "" if not before else f"{value / before:.2f}"
        table.add_row(name, "" if before is None else f"{before:.3f}", f"{value:.3f}", change)
    return table


if __name__ == "__main__":
    main()
