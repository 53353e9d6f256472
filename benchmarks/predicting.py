"""Measure the error of predictions: apply each layout to all rows, and count what the queries read.

python -m benchmarks.predicting [--rows N] [--sample N] [--files N] [case …]
"""

import argparse
import time
from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.layout_data import CASES
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.learning import grow
from zonal.plan.placement import Sizes, has_heavy_keys, plan_placement
from zonal.predicates.bind import bind
from zonal.predicates.bound import Bound
from zonal.sql.where import parse_where
from zonal.trials.boxes import boxes_of, code, meets, units_of
from zonal.trials.prediction import predict
from zonal.trials.trial import Trial, trial_of
from zonal.values.sample import Sample

ROW_BYTES = 100.0
LEARNED, APPLIED = 7, 3
"""Seeds of the sample for trees and predictions, and of the sample that a rewrite draws."""


def main() -> None:
    """Print the error of every layout, and of all together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--sample", type=int, default=60_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=LEARNED, help="of the sample that predictions rest on")
    parser.add_argument("--kind", help="layouts of this kind alone")
    options = parser.parse_args()
    for name in options.cases:
        data, learned, tested = CASES[name](options.rows, 11)
        target = max(1, round(data.num_rows * ROW_BYTES / options.files))
        train, test = ([bind(parse_where(text), data.schema) for text in half] for half in (learned, tested))
        layouts = (each for each in _layouts(data, train, options, target) if options.kind in (None, each.kind))
        errors = [_compare(name, data, layout, test, options) for layout in layouts]
        print(f"{name}: mean {np.mean(errors):+.1%}, mean of |error| {np.mean(np.abs(errors)):.1%}, "
              f"largest {np.max(np.abs(errors)):.1%} over {len(errors)} layouts", flush=True)  # fmt: skip


def _trial(data: pa.Table, bounds: list[Bound], sample: int, seed: int) -> Trial:
    rows = Sample(_some(data, sample, seed), np.zeros(min(sample, data.num_rows), np.int64))
    ones = np.ones(len(bounds)).tolist()
    return trial_of(rows, bounds, ones, partition_rows={0: data.num_rows}, row_bytes=ROW_BYTES)


def _some(data: pa.Table, rows: int, seed: int) -> pa.Table:
    chosen = np.random.default_rng(seed).choice(data.num_rows, min(rows, data.num_rows), replace=False)
    return data.take(pa.array(np.sort(chosen)))


def _layouts(data: pa.Table, train: list[Bound], options: argparse.Namespace, target: int) -> Iterator[Layout]:
    names = data.column_names
    for kind in ("zorder", "hilbert"):
        for count in range(2, len(names) + 1):
            for columns in list(combinations(names, count))[:3]:
                yield Layout(kind, columns, target_file_bytes=target)
    for columns in list(permutations(names, 2))[:4]:
        yield Layout("linear", columns, target_file_bytes=target)
    trial = _trial(data, train, options.sample, LEARNED)
    leaf_rows = len(trial.coded) / options.files
    for synthetic in (0.0, 0.2):
        tree = grow(
            trial.coded, trial.boxes, trial.weights, schema=data.schema, leaf_rows=leaf_rows, synthetic=synthetic
        )
        yield Layout("tree", tree.columns, tree=tree.to_json(), target_file_bytes=target)


def _compare(name: str, data: pa.Table, layout: Layout, bounds: list[Bound], options: argparse.Namespace) -> float:
    exact, files = apply_layout(data, layout, bounds)
    trial = _trial(data, bounds, options.sample, options.seed)
    predict(trial, layout)
    began = time.perf_counter()
    prediction = predict(trial, layout)
    took = time.perf_counter() - began
    each = np.abs(prediction.shares - exact).mean()
    truth = float(exact.mean())
    error = prediction.mean / truth - 1
    mark = " extrapolated" if prediction.extrapolated else ""
    print(f"{name:10} {str(layout.short)[:44]:44} files {files} ({prediction.files}) read {truth:.4f} "
          f"predicted {prediction.mean:.4f} ({error:+.1%}; a query ±{each:.4f}) {1000 * took:.0f} ms{mark}",
          flush=True)  # fmt: skip
    return error


def apply_layout(data: pa.Table, layout: Layout, bounds: list[Bound]) -> tuple[npt.NDArray[np.float64], int]:
    """Place all rows as a rewrite does, by another sample, and return what each query reads."""
    sample = Sample(_some(data, 100_000, APPLIED), np.zeros(min(100_000, data.num_rows), np.int64))
    ranks = Ranks.fit(sample.data, layout.curve_columns)
    sizes = Sizes({0: data.num_rows}, ROW_BYTES, ROW_BYTES)
    ties = has_heavy_keys(layout, ranks, sample, sizes)
    placement = plan_placement(layout, ranks, sample, sizes, ties=ties)
    _, pieces = placement.place(data, 0, np.arange(data.num_rows), 0)
    file = placement.file_of_piece[pieces]
    order = np.argsort(file, kind="stable")
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    coded = code(data, data.column_names)
    units = units_of(coded, order, starts, widen=False)
    met = meets(units, boxes_of(bounds, coded))
    return np.asarray(units.rows @ met / data.num_rows, np.float64), len(units)


if __name__ == "__main__":
    main()
