"""Compare layouts on held-out queries, by the mean share of the rows in files that bounds can't exclude.

python -m benchmarks.layouts [--rows N] [--files 200] [--only mixed,flights] [--json F]

Every layout is chosen with training queries and a sample of 60,000 rows, applied to all rows, and measured with
held-out queries. The peers' columns are chosen by simulation. zonal's linear order and curve are the best that `advise`
finds for the table and a log of the queries; the tree and `auto` are what `cluster` learns from them. A curve may make
more files than requested, as in a rewrite: their number is shown. Data sets whose package is missing are left out.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.emulated import MOST_COLUMNS, Ground, Keys, best_columns, equal_cuts, order_by, range_ids, raw_bytes
from benchmarks.layout_data import CASES, Case
from benchmarks.measure import mark
from benchmarks.predicting import ROW_BYTES, apply_layout
from zonal.advising.advice import Advice, Candidate
from zonal.predicates.bind import bind
from zonal.predicates.bound import Bound
from zonal.rewriting.lessons import learn
from zonal.sql.where import parse_where
from zonal.study.sampling import SAMPLE_ROWS
from zonal.tables.registry import open_table, read_snapshot
from zonal.trials.boxes import boxes_of, code, literal_columns, meets, units_of
from zonal.values.arrays import Int64Array
from zonal.verbs.advise import advise
from zonal.workload.reader import read_workload

NAMES = ("mixed", "repetitive", "flights", "tpch", "telemetry")
ROWS = {"mixed": 1_000_000, "tpch": 600_000, "telemetry": 1_000_000}
FILES = 200
LIQUID = ("Delta's liquid, most filtered columns", "Delta's liquid, best columns")
TREE = "zonal's tree"


@dataclass(frozen=True)
class Goal:
    """The share that the tree has to reach, of all rows or of what liquid clustering reads."""

    most: float
    of_liquid: bool

    def __str__(self) -> str:
        return f"≤ {self.most:g}{' of liquid' if self.of_liquid else ''}"


GOALS = {
    "mixed": Goal(0.6, of_liquid=True),
    "repetitive": Goal(0.4, of_liquid=True),
    "flights": Goal(0.10, of_liquid=False),
    "tpch": Goal(0.22, of_liquid=False),
    "telemetry": Goal(0.6, of_liquid=True),
}


@dataclass(frozen=True)
class Measured:
    """What the held-out queries read under one layout."""

    case: str
    layout: str
    columns: str
    """The columns of the layout, or its text."""
    files: int
    share: float
    of_liquid: float = 1.0


def main() -> None:
    """Measure all layouts on all data sets, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="of data sets that are made; by default as many as the goals are for")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(NAMES))
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if unknown := sorted(set(options.only) - set(CASES)):
        parser.error(f"There are no data sets {', '.join(unknown)}; there are {', '.join(CASES)}.")
    console = Console()
    results: list[Measured] = []
    for name in options.only:
        began = time.monotonic()
        try:
            case = CASES[name](options.rows or ROWS.get(name, 500_000), options.seed)
        except ModuleNotFoundError as error:
            console.print(f"{name} is left out: {error}")
            continue
        measured = _with_ratios(list(_measure(name, case, options.files)))
        console.print(f"{name}: {case[0].num_rows:,} rows, {time.monotonic() - began:.0f} s")
        for each in measured:
            console.print(f"  {each.layout}: {each.columns}", highlight=False, soft_wrap=True)
        results += measured
    console.print(_table(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in results], indent=1) + "\n")


def _with_ratios(results: list[Measured]) -> list[Measured]:
    liquid = min(each.share for each in results if each.layout in LIQUID)
    return [replace(each, of_liquid=each.share / liquid) for each in results]


def _measure(name: str, case: Case, files: int) -> Iterator[Measured]:
    data, training, held_out = case
    train, test = ([bind(parse_where(text), data.schema) for text in half] for half in (training, held_out))
    names = literal_columns(train)
    coded = code(data, list(dict.fromkeys([*names, *literal_columns(test)])))
    rng = np.random.default_rng(7)
    sample = np.sort(rng.choice(data.num_rows, min(SAMPLE_ROWS, data.num_rows), replace=False))
    ground = Ground(data, coded, sample, boxes_of(train, coded), files)
    boxes = boxes_of(test, coded)

    def ordered(layout: str, columns: Sequence[str], order: Int64Array) -> Measured:
        units = units_of(coded, order, equal_cuts(len(order), files), widen=False)
        share = float(units.rows @ meets(units, boxes).mean(axis=1)) / data.num_rows
        return Measured(name, layout, ", ".join(columns), len(units), share)

    def peer(layout: str, columns: Sequence[str], keys: Keys) -> Measured:
        return ordered(layout, columns, order_by(ground, columns, keys))

    yield ordered("arrival order", (), np.arange(data.num_rows))
    yield peer("Iceberg's Z, raw bytes, best columns", best_columns(ground, names, raw_bytes), raw_bytes)
    yield peer(LIQUID[0], names[:MOST_COLUMNS], range_ids)
    yield peer(LIQUID[1], best_columns(ground, names, range_ids), range_ids)
    yield from _learned(name, data, training, test, files)


def _learned(name: str, data: pa.Table, learned: Sequence[str], test: list[Bound], files: int) -> Iterator[Measured]:
    """Write the table and the log, and apply the layouts that `advise` and `cluster` find."""
    size = round(data.num_rows * ROW_BYTES / files)
    with tempfile.TemporaryDirectory() as folder:
        table, log = _table_of(data, files, Path(folder)), Path(folder) / "log.sql"
        log.write_text("".join(f"SELECT * FROM events WHERE {text};\n" for text in learned))  # noqa: S608 - made here
        workload = read_workload([log], tables=["events"])
        target = sum(file.stat().st_size for file in table.iterdir()) // files
        first = _first(advise(f"parquet:{table}", queries=workload, target_file_size=target), ("linear",))
        # Small files take more bytes per row than `advise` assumes: request as many files as all others make.
        target = round(target * first.files / files)
        advice = advise(f"parquet:{table}", queries=workload, target_file_size=target)
        opened = open_table(f"parquet:{table}")
        auto, tree = (
            learn(kind, opened, read_snapshot(opened), workload, target_file_bytes=target) for kind in ("auto", "tree")
        )
    layouts = {
        "zonal's best linear order": _first(advice, ("linear",)).layout,
        "zonal's best curve": _first(advice, ("zorder", "hilbert")).layout,
        TREE: tree.layout,
        "zonal's auto": auto.layout,
    }
    for text, layout in layouts.items():
        if layout is not None:
            shares, made = apply_layout(data, replace(layout, target_file_bytes=size), test)
            yield Measured(name, text, layout.short, made, float(shares.mean()))


def _table_of(data: pa.Table, files: int, folder: Path) -> Path:
    """Write the rows in their given order."""
    table = folder / "events"
    table.mkdir()
    starts = equal_cuts(data.num_rows, files)
    for number, (start, rows) in enumerate(zip(starts, np.diff(starts, append=data.num_rows), strict=True)):
        pq.write_table(data.slice(start, rows), table / f"part-{number:05d}.parquet")
    return table


def _first(advice: Advice, kinds: Sequence[str]) -> Candidate:
    """Return the candidate of these kinds under which the queries that `advise` held out would read least."""
    return min((each for each in advice.candidates if each.kind in kinds), key=lambda each: each.reads.bytes)


def _table(results: Sequence[Measured]) -> Table:
    names = list(dict.fromkeys(each.case for each in results))
    table = Table("layout", title="Mean share of the rows read (as a part of liquid's; files)", title_justify="left")
    for name in names:
        table.add_column(name, justify="right")
    for layout in dict.fromkeys(each.layout for each in results):
        cells = [next((each for each in results if (each.case, each.layout) == (name, layout)), None) for name in names]
        table.add_row(layout, *("" if cell is None else _cell(cell) for cell in cells))
    table.add_section()
    table.add_row("goal of the tree", *(_goal(name, results) for name in names))
    return table


def _cell(result: Measured) -> str:
    return f"{result.share:.3f} ({result.of_liquid:.2f}; {result.files})"


def _goal(name: str, results: Sequence[Measured]) -> str:
    tree = next((each for each in results if (each.case, each.layout) == (name, TREE)), None)
    if name not in GOALS or tree is None:
        return ""
    goal = GOALS[name]
    return mark(goal, (tree.of_liquid if goal.of_liquid else tree.share) <= goal.most)


if __name__ == "__main__":
    main()
