"""Measure how fast metadata is read: many queries on a large index, and `show` of tables of many files.

`python -m benchmarks.reading [--files 187000] [--queries 1000]`. CPU-seconds of one core; the memory is the growth of
the process. PyIceberg's evaluator answers the same queries on some of the files, and its time is scaled to all of them.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType
from rich.console import Console
from rich.table import Table

from zonal.predicates.bind import bind
from zonal.skipping.index import Index
from zonal.snapshot import Bounds
from zonal.sql.where import parse_where

KINDS = {
    "id": pa.int64(), "ts": pa.int64(), "part": pa.int64(),
    "price": pa.float64(), "day": pa.date32(), "name": pa.string(),
}  # fmt: skip
EPOCH = date(2024, 1, 1)


@dataclass(frozen=True)
class Row:
    """One line of the result."""

    what: str
    seconds: float
    megabytes: float | None
    target: str
    met: bool


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bounds_of(files: int) -> dict[str, Bounds]:
    """Make the bounds of a table that is clustered by some columns and not by others."""
    rng = np.random.default_rng(0)
    counts = np.zeros(files, np.int64)
    bounds = {}
    for name, kind in KINDS.items():
        low = rng.integers(0, 900_000, files)
        high = low + rng.integers(0, 2_000 if name != "part" else 900_000, files)
        if kind == pa.string():
            pair = [pa.array([b"user-%09d" % n for n in side.tolist()], pa.large_binary()) for side in (low, high)]
        elif kind == pa.date32():
            pair = [pa.array((19_700 + side // 1000).astype(np.int32)).cast(kind) for side in (low, high)]
        else:
            pair = [pa.array(side).cast(kind) for side in (low, high)]
        bounds[name] = Bounds(pair[0], pair[1], counts, counts)
    return bounds


def queries(count: int) -> list[str]:
    rng = np.random.default_rng(1)
    texts = []
    for number in range(count):
        n = int(rng.integers(0, 900_000))
        day = EPOCH + timedelta(days=n // 1000)
        texts.append(
            [
                f"id = {n}",
                f"ts >= {n} AND ts < {n + 5000} AND part = {n}",
                f"day = DATE '{day}' AND price < {n / 2}",
                f"name = 'user-{n:09d}' OR id IN ({n}, {n + 7}, {n + 99})",
                f"part BETWEEN {n} AND {n + 10} AND name LIKE 'user-{n // 10**6:03d}%' AND ts > {n}",
            ][number % 5]
        )
    return texts


def index_rows(files: int, count: int) -> Iterator[Row]:
    before = peak_megabytes()
    bounds = bounds_of(files)
    schema = pa.schema(KINDS)
    texts = queries(count)
    bound = [bind(parse_where(text, dialect="spark"), schema) for text in texts]
    start = time.process_time()
    index = Index(np.full(files, 1000), bounds)
    kept = sum(int(index.might_match(predicate).sum()) for predicate in bound)
    seconds = time.process_time() - start
    grown = peak_megabytes() - before
    what = f"{count:,} queries on {files:,} files, 6 columns ({kept / count / files:.1%} kept)"
    yield Row(what, seconds, grown, "< 2 s, < 1000 MB", seconds < 2 and grown < 1000)
    theirs = pyiceberg_seconds(bounds, count, texts, files)
    yield Row(
        "the same by PyIceberg's evaluator, scaled",
        theirs,
        None,
        f"{theirs / seconds:,.0f} times ours, ≥ 100",
        theirs >= 100 * seconds,
    )


def pyiceberg_seconds(bounds: dict[str, Bounds], count: int, texts: list[str], files: int) -> float:
    """Measure PyIceberg on 200 files and 20 of the queries that it can read."""
    types = {"price": DoubleType(), "day": DateType(), "name": StringType()}
    fields = [NestedField(i + 1, name, types.get(name, LongType())) for i, name in enumerate(KINDS)]
    schema = Schema(*fields)
    some = [data_file(bounds, fields, row) for row in range(200)]
    chosen = [text.replace("DATE ", "") for text in texts if "LIKE" not in text][:20]
    start = time.process_time()
    for text in chosen:
        from pyiceberg.expressions.parser import parse  # noqa: PLC0415 - only this measurement needs it

        evaluate = _InclusiveMetricsEvaluator(schema, parse(text)).eval
        for file in some:
            evaluate(file)
    return (time.process_time() - start) / len(chosen) / len(some) * count * files


def data_file(bounds: dict[str, Bounds], fields: list[NestedField], row: int) -> DataFile:
    def encoded(field: NestedField, side: str) -> bytes:
        value = getattr(bounds[field.name], side)[row].as_py()
        return value if isinstance(value, bytes) else to_bytes(field.field_type, value)  # type: ignore[arg-type]

    return DataFile.from_args(
        record_count=1000,
        value_counts={field.field_id: 1000 for field in fields},
        null_value_counts={field.field_id: 0 for field in fields},
        lower_bounds={field.field_id: encoded(field, "lower") for field in fields},
        upper_bounds={field.field_id: encoded(field, "upper") for field in fields},
    )


SHOW = """
import json, resource, sys, time
from zonal import open_table, show
start = time.process_time()
health = show(open_table(sys.argv[1]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([health.table.files, time.process_time() - start, peak]))
"""


def show_rows() -> Iterator[Row]:
    """Measure `show` in its own process; the tests' helpers make the tables' metadata."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.delta_tables import synthetic_table  # type: ignore[import-not-found]  # noqa: PLC0415
    from support.iceberg_tables import many_files  # type: ignore[import-not-found]  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        synthetic_table(Path(folder) / "delta", 100_000)
        metadata = many_files(Path(folder), files=20_000)
        for what, name in (("a Delta", f"{folder}/delta"), ("an Iceberg", metadata)):
            result = subprocess.run([sys.executable, "-c", SHOW, name], capture_output=True, text=True, check=True)
            files, seconds, peak = json.loads(result.stdout)
            met = seconds < 5 and peak < 1500
            yield Row(f"show of {what} table of {files:,} files", seconds, peak, "< 5 s, < 1500 MB", met)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=187_000)
    parser.add_argument("--queries", type=int, default=1_000)
    options = parser.parse_args()
    table = Table("what", "CPU-seconds", "MB", "target", "")
    for row in (*index_rows(options.files, options.queries), *show_rows()):
        memory = "" if row.megabytes is None else f"{row.megabytes:,.0f}"
        table.add_row(row.what, f"{row.seconds:,.2f}", memory, row.target, "✓" if row.met else "✗")
    Console().print(table)


if __name__ == "__main__":
    main()
