"""Compare rewrites and real queries of zonal and its peers: `python -m benchmarks.comparison`, or `make bench-peers`.

Each system rewrites the same rows into about the same number of files, in a process of its own; systems take turns,
repetition by repetition. Then engines run held-out queries on each table, and their answers must be equal. A results
file that exists is extended: what it has isn't measured again. `--docs docs` writes the page, with figures, from it.
"""

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.comparison import data_sets, systems
from benchmarks.comparison.course import Plan, compare, signed
from benchmarks.comparison.engines import ENGINES
from benchmarks.comparison.page import write_docs
from benchmarks.comparison.results import Failure, Record, Results, Rewrite
from benchmarks.comparison.timed import TIMED

FILES = 64
"""A power of two, near which the cells of curves make whole files: so all systems can come near the same number."""


def main() -> None:
    """Measure what the results file lacks, and write the page on request."""
    options = _options()
    console = Console(width=160)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, so that no engine and no table is left
    path = Path(options.json)
    plan = _plan(options)
    if not options.only_page:
        for so_far, record in compare(plan, Results.read(path)):
            signature = signed(so_far, spark="spark" in plan.engines)
            path.write_text(signature.to_json())  # an interrupted run has what was measured
            console.print(_line(record), highlight=False, markup=False)
    results = Results.read(path)
    if not results.rewrites:
        raise SystemExit("Nothing was measured.")
    if options.docs:
        write_docs(results, Path(options.docs))
    if results.failures:
        raise SystemExit("\n".join(_line(failure) for failure in results.failures))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("--sets", help="names of data sets with commas between them")
    parser.add_argument("--systems", help="names of systems, or their first words, with commas between them")
    parser.add_argument("--engines", default=",".join(ENGINES), help="that run queries, with commas between them")
    parser.add_argument("--scale", default="1", help="of all sets, or of each: lineitem=0.3,flights=0.5")
    parser.add_argument("--files", type=int, default=FILES, help="of each table")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of rewrites")
    parser.add_argument("--queries", type=int, default=TIMED, help="held-out queries that engines run")
    parser.add_argument("--passes", type=int, default=3, help="how often engines run them")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for one process")
    parser.add_argument("--json", default="build/benchmarks.json", help="the results file")
    parser.add_argument("--docs", help="folder for the page and its figures")
    parser.add_argument("--only-page", action="store_true", help="measure nothing")
    parser.add_argument("--folder", default=str(Path.home() / ".cache" / "zonal" / "bench"))
    return parser.parse_args()


def _plan(options: argparse.Namespace) -> Plan:
    engines = [name.strip() for name in options.engines.split(",") if name.strip()]
    if unknown := [name for name in engines if name not in ENGINES]:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are: {', '.join(ENGINES)}.")
    Path(options.json).parent.mkdir(parents=True, exist_ok=True)
    return Plan(
        sets=data_sets.chosen(options.sets),
        systems=systems.chosen(options.systems),
        engines=engines,
        scales=_scales(options.scale),
        files=options.files,
        repeat=options.repeat,
        queries=options.queries,
        passes=options.passes,
        timeout=options.timeout,
        cache=Path(options.folder),
    )


def _scales(text: str) -> data_sets.Scales:
    """Read a number for all sets, or one for each."""
    if "=" not in text:
        return data_sets.Scales(float(text))
    pairs = (part.split("=") for part in text.split(","))
    return data_sets.Scales(1.0, {name.strip(): float(scale) for name, scale in pairs})


def _line(record: Record) -> str:
    if isinstance(record, Failure):
        return f"{record.set}, {record.system}: {record.what} failed: {record.message}"
    if isinstance(record, Rewrite):
        numbers = f"{record.cpu_seconds:.1f} CPU-seconds, {record.files} files"
        return f"{record.set}, {record.system}, repetition {record.repetition + 1}: {numbers}"
    return ", ".join(map(str, (type(record).__name__, *record.key)))


if __name__ == "__main__":
    main()
