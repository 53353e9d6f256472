"""Measure how much each part of a layout skips, by the mean share of the rows in files that bounds can't exclude.

`python -m benchmarks.skipping [--rows 1000000] [--files 200]`. All layouts order the same rows into about the same
number of files; a third of the queries each filters one column, the other, and both, by ranges of 1 to 5 % of the rows.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from zonal import Layout, Ranks
from zonal.demo.telemetry import telemetry
from zonal.layouts.curves import encode
from zonal.layouts.cuts import cell_cuts
from zonal.layouts.keys import key_words
from zonal.layouts.sort import stable_order

Matrix = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Cutter = Callable[[Keys, int], npt.NDArray[np.int64]]


def data_sets(rows: int) -> Iterator[tuple[str, Matrix]]:
    rng = np.random.default_rng(0)
    yield "uniform", rng.integers(0, 2**40, (rows, 2))
    skewed = [rng.lognormal(8, 2.5, rows), rng.choice(7, rows, p=[0.6, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])]
    yield "skewed x seven values", np.stack(skewed, axis=1).astype(np.int64)
    table = telemetry(rows)
    yield "telemetry", np.stack([table["ts"].cast(pa.int64()).to_numpy(), table["payload_id"].to_numpy()], axis=1)


def queries(values: Matrix, count: int = 300) -> list[tuple[Matrix, Matrix]]:
    """Return the bounds of each query on each column; a column without a filter has the widest."""
    rng = np.random.default_rng(1)
    ordered = np.sort(values[rng.integers(0, len(values), 20_000)], axis=0)
    bounds = []
    for number in range(count):
        low, high = ordered[0].copy(), ordered[-1].copy()
        low[:], high[:] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        for column in [(0,), (1,), (0, 1)][number % 3]:
            width = int(len(ordered) * rng.uniform(0.01, 0.05))
            start = int(rng.integers(0, len(ordered) - width))
            low[column], high[column] = ordered[start, column], ordered[start + width, column]
        bounds.append((low, high))
    return bounds


def scanned(values: Matrix, starts: npt.NDArray[np.int64], bounds: list[tuple[Matrix, Matrix]]) -> float:
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    sizes = np.diff(np.append(starts, len(values))) / len(values)
    reads = [((low <= q_high) & (high >= q_low)).all(axis=1) @ sizes for q_low, q_high in bounds]
    return float(np.mean(reads))


def raw_bytes(values: Matrix) -> Keys:
    """Interleave the values' own bits, most significant first, as peers without ranks do."""
    words = [column.view(np.uint64) ^ np.uint64(1 << 63) for column in np.ascontiguousarray(values.T)]
    codes = [(word >> np.uint64(shift)) & np.uint64(0xFFFFFFFF) for shift in (32, 0) for word in words]
    high, low = (encode("zorder", codes[place : place + 2], 32)[0] for place in (0, 2))
    _, dense = np.unique(np.stack([high, low], axis=1), axis=0, return_inverse=True)
    return dense.astype(np.uint64)


def range_ids(values: Matrix) -> Keys:
    """Interleave the ids of 1,000 sampled ranges without scaling them to the full width."""
    codes = []
    for column in values.T:
        borders = np.unique(np.quantile(column[::50], np.linspace(0, 1, 1001)[1:-1]))
        codes.append(np.searchsorted(borders, column).astype(np.uint32))
    return encode("zorder", codes, 10)[0]


def equal_cuts(key: Keys, files: int) -> npt.NDArray[np.int64]:
    return np.arange(files) * len(key) // files


def aligned_cuts(key: Keys, files: int) -> npt.NDArray[np.int64]:
    return cell_cuts([key], len(key) / files)


def layouts(values: Matrix) -> Iterator[tuple[str, Keys, Cutter]]:
    table = pa.table({"a": values[:, 0], "b": values[:, 1]})
    ranks = Ranks.fit(table.slice(0, 0) if not len(values) else table.take(np.arange(0, len(values), 5)), ["a", "b"])
    yield "as it arrives", np.arange(len(values), dtype=np.uint64), equal_cuts
    yield "sorted by the first column", key_words(table, Layout("linear", ("a", "b")), ranks)[0], equal_cuts
    yield "Z-order, raw bytes", raw_bytes(values), equal_cuts
    yield "Z-order, range ids", range_ids(values), equal_cuts
    for kind in ("zorder", "hilbert"):
        key = key_words(table, Layout(kind, ("a", "b")), ranks)[0]
        yield f"zonal {kind}, equal cuts", key, equal_cuts
        yield f"zonal {kind}, cell cuts", key, aligned_cuts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=200)
    options = parser.parse_args()
    results: dict[str, list[str]] = {}
    names = []
    for name, values in data_sets(options.rows):
        names.append(name)
        bounds = queries(values)
        for layout, key, cut in layouts(values):
            order = stable_order([key])
            starts = cut(key[order], options.files)
            share = scanned(values[order], starts, bounds)
            results.setdefault(layout, []).append(f"{share:.3f} ({len(starts)})")
    table = Table("layout", *names, title="Mean share of the rows read (number of files)")
    for layout, shares in results.items():
        table.add_row(layout, *shares)
    Console().print(table)


if __name__ == "__main__":
    main()
