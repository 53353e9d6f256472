"""Measure how long `advise` takes on a Delta table of many files and thirty columns, with many queries.

python -m benchmarks.advising [--files 187000] [--queries 1000] [--profile]

The files are links to a few real ones, and the log claims that each has 128 MB: the metadata of a table of 24 TB, on
the disk of a laptop. `advise` runs in its own process, so that the measured memory is its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS, KINDS = 30, 64
"""Columns of the table, and real files behind it."""
ROWS = 20_000

ADVISE = """
import cProfile, json, pstats, resource, sys, time
from zonal.verbs.advise import advise
from zonal.workload.logs import Logs
start, used = time.perf_counter(), time.process_time()
profile = cProfile.Profile()
if sys.argv[3] == "profile":
    profile.enable()
advice = advise(sys.argv[1], queries=Logs([sys.argv[2]], ["events"]), target_file_size="5MB")
profile.disable()
took = time.perf_counter() - start, time.process_time() - used
if sys.argv[3] == "profile":
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumtime").print_stats(45)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([advice.table.files, advice.workload.queries, *took, peak, advice.reason]))
"""


def main() -> None:
    """Print the seconds and the memory of one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=187_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, log = Path(folder) / "events", Path(folder) / "queries.sql"
        make_table(table, options.files)
        make_queries(log, options.queries)
        how = "profile" if options.profile else ""
        result = subprocess.run(
            [sys.executable, "-c", ADVISE, f"delta:{table}", str(log), how],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        files, queries, seconds, cpu, peak, reason = json.loads(result.stdout)
    print(f"advise on {files:,} files, {COLUMNS} columns, {queries:,} queries: {seconds:.1f} s ({cpu:.1f} of a core), "
          f"{peak:,.0f} MB. {reason}")  # fmt: skip


def make_table(folder: Path, files: int) -> None:
    """Write a Delta table whose log has statistics of all columns of every file."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.delta_tables import CHECKPOINT, LogWriter, field, metadata, protocol  # type: ignore[import-not-found]  # noqa: PLC0415

    names = [f"c{number:02d}" for number in range(COLUMNS)]
    base = [_part(folder.parent / f"base-{number}.parquet", names, number) for number in range(KINDS)]
    writer = LogWriter(folder)
    for number in range(files):
        os.link(folder.parent / f"base-{number % KINDS}.parquet", folder / f"part-{number:06d}.parquet")
    head = [protocol(), metadata(*(field(name, "long" if at % 2 else "string") for at, name in enumerate(names)))]
    rows = pa.Table.from_pylist([{key: _pairs(body) for key, body in each.items()} for each in head], CHECKPOINT)
    add = CHECKPOINT.field("add").type
    columns = {
        "path": pa.array([f"part-{number:06d}.parquet" for number in range(files)]),
        "size": pa.array(np.full(files, 128 * 1024**2)),
        "modificationTime": pa.array(np.zeros(files, np.int64)),
        "dataChange": pa.array(np.ones(files, np.bool_)),
        "stats": pa.array(base).take(pa.array(np.arange(files) % KINDS)),
        "partitionValues": pa.array([[]] * files, pa.map_(pa.string(), pa.string())),
    }
    children = [
        columns[each.name].cast(each.type) if each.name in columns else pa.nulls(files, each.type) for each in add
    ]
    adds = pa.StructArray.from_arrays(children, fields=list(add))
    whole = [adds if each.name == "add" else pa.nulls(files, each.type) for each in CHECKPOINT]
    writer.version = 0
    pq.write_table(
        pa.concat_tables([rows, pa.Table.from_arrays(whole, schema=CHECKPOINT)]),
        writer.log / f"{0:020d}.checkpoint.parquet",
    )


def _pairs(body: dict[str, object]) -> dict[str, object]:
    maps = ("partitionValues", "tags", "configuration")
    return {k: list(v.items()) if k in maps and isinstance(v, dict) else v for k, v in body.items()}


def _part(path: Path, names: list[str], seed: int) -> str:
    """Write a real file and return its statistics."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    for at, name in enumerate(names):
        numbers = (rng.beta(2, 3 + at % 5, ROWS) * 1_000_000).astype(np.int64) + seed * 1000 * (at == 1)
        columns[name] = pa.array(numbers) if at % 2 else pa.array([f"device-{n // 100:06d}" for n in numbers])
    data = pa.table(columns)
    pq.write_table(data, path)
    lower = {name: min(data[name].to_pylist()) for name in names}
    upper = {name: max(data[name].to_pylist()) for name in names}
    nulls = dict.fromkeys(names, 0)
    return json.dumps({"numRecords": ROWS, "minValues": lower, "maxValues": upper, "nullCount": nulls})


def make_queries(path: Path, count: int) -> None:
    """Write distinct statements that filter eight columns."""
    rng = np.random.default_rng(0)
    texts = []
    for _ in range(count):
        parts = []
        for at in rng.choice(8, rng.integers(1, 4), replace=False, p=np.arange(8, 0, -1) / 36):
            low = int(rng.integers(0, 900_000))
            high = low + int(rng.integers(1_000, 60_000))
            values = (str(low), str(high)) if at % 2 else (f"'device-{low // 100:06d}'", f"'device-{high // 100:06d}'")
            parts.append(f"c{at:02d} BETWEEN {values[0]} AND {values[1]}")
        texts.append(f"SELECT * FROM events WHERE {' AND '.join(parts)};")  # noqa: S608 - made here
    path.write_text("\n".join(texts))


if __name__ == "__main__":
    main()
