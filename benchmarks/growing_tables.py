"""Measure what keeping real growing tables clustered costs and brings: zonal and its peers on the same appends.

`python -m benchmarks.growing_tables [--rows 400000] [--files 64] [--appends 200] [--every 10] [--only zonal]`, in the
environment of the official engines. Half of the rows are loaded and clustered, the rest arrives in appends, and upkeep
runs after every tenth. Cost: bytes of the files that upkeep added, by the table's own log, per byte appended; each
row's first clustering is in it. Share: bytes in files that queries can't skip, by zonal's reading of the metadata, as a
multiple of the same rows clustered afresh, the mean of twenty looks. `--docs docs` puts the results into the docs;
`--read docs/growing.json` takes those of an earlier run, and measures only what `--only` names.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from benchmarks.growth.course import LOOKS, Plan, course, one_more
from benchmarks.growth.policies import ALL, Place, Policy
from benchmarks.growth.results import Results, console_tables, write_docs
from benchmarks.growth.stream import Stream

SETTINGS = {"rows": 400_000, "files": 64, "appends": 200, "every": 10}
LATE = 0.2
ROW_BYTES = 19
"""Of the rows as they are stored, about: the target size follows from the number of files."""


def chosen(names: str | None) -> list[Policy]:
    """Return the policies whose name begins with one of a list with commas; all by default."""
    wanted = [name.strip() for name in (names or "").split(",")]
    unknown = [name for name in wanted if not any(policy.name.startswith(name) for policy in ALL)]
    if unknown:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are: {', '.join(policy.name for policy in ALL)}.")
    return [policy for policy in ALL if any(policy.name.startswith(name) for name in wanted)]


def measure(options: argparse.Namespace, folder: Path, console: Console) -> Iterator[Results]:
    """Let every policy keep its own tables, one after the other, and yield each result."""
    place = Place(folder, options.rows * ROW_BYTES // options.files)
    plan = Plan(Stream(options.rows), options.appends, options.every)
    settings = {name: getattr(options, name) for name in SETTINGS}
    try:
        for policy in chosen(options.only):
            yield Results(settings, one_more=(one_more(policy, place, Stream(options.rows, seed=5)),))
            for late in (0.0, LATE):
                done = course(policy, place, plan, late)
                console.print(f"{policy.name}, {late:.0%} late: {done.cost:.2f} bytes per byte", highlight=False)
                yield Results(settings, (done,))
    finally:
        place.stop()


def main() -> None:
    """Measure or read results, and show them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growing_tables", description=__doc__)
    for name, value in SETTINGS.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--only", help="names of policies, or how they begin, with commas between them")
    parser.add_argument("--folder", help="where the tables are made; by default, a temporary folder")
    parser.add_argument("--json", help="file for all numbers")
    parser.add_argument("--read", help="file of an earlier run, to which what `--only` names is added")
    parser.add_argument("--docs", help="folder of growing.md, whose tables, figure and numbers are replaced")
    options = parser.parse_args()
    if options.appends % (LOOKS * options.every):
        parser.error(f"--appends must be a multiple of {LOOKS} times --every: looks follow upkeep.")
    console = Console(width=120)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, so that no engine and no table is left
    results = Results.from_json(Path(options.read).read_text()) if options.read else Results()
    if options.only or not options.read:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for measured in measure(options, Path(folder), console):
                results = results.with_(measured)
                if options.json:  # an interrupted run has what was measured
                    Path(options.json).write_text(json.dumps(results.to_dict(), indent=1))
    if not results.has_yardstick:
        raise SystemExit("Shares are multiples of a fresh clustering's: measure `always`, too.")
    for table in console_tables(results):
        console.print(table)
    if options.docs:
        write_docs(results, Path(options.docs))


if __name__ == "__main__":
    main()
