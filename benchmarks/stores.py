"""Measure what a rewrite costs in an object store against the same on a local disk, and which requests it makes.

`PYTHONPATH=tests python -m benchmarks.stores [--scale 0.5] [--files 48] [--only here-delta] [--repeat 3]`: TPC-H's
lineitem as a table of so many files is rewritten on the disk, and in S3 by moto, whose own CPU time isn't counted. Each
rewrite has a process of its own; CPU-seconds are those of its whole tree, once the engine runs, and the least of the
repetitions, which take turns. Requests are counted by the server.
"""

import argparse
import json
import os
import pickle
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.rewriters import inputs, usage
from benchmarks.rewriters.spark_session import session
from support.cluster_tables import Delta, Iceberg, parts_of  # type: ignore[import-not-found]
from support.s3_server import S3Server  # type: ignore[import-not-found]
from support.store_tables import StoredDelta, StoredIceberg  # type: ignore[import-not-found]
from zonal import open_table
from zonal.rewriting.new_files import NewFiles
from zonal.spark.place import HERE, Spark
from zonal.spark.session import LOCAL
from zonal.verbs.cluster import cluster

CASES = [(engine, format_) for engine in ("here", "spark") for format_ in ("delta", "iceberg")]
TARGET = 4_600_000
TIMEOUT = 1800.0
_KINDS = {
    "data": re.compile(r"\.parquet$"),
    "log": re.compile(r"/_delta_log/|/metadata/"),
}


@dataclass(frozen=True)
class Rewritten:
    """One rewrite: its cost, what it read and wrote, and what the server heard of it."""

    cpu_seconds: float
    files_read: int
    files_written: int
    requests: Counter[str]


def perform(asked: dict[str, Any], answer: Path) -> None:
    """Rewrite one table in the measured process, and record the usage before and after."""
    place: Any = Spark(master=HERE)
    if asked["engine"] == "spark":
        place = session(answer.parent, settings=LOCAL)
    table = open_table(asked["name"], **asked["opened"])
    files = NewFiles(target_file_size=TARGET)
    start = usage.moment(os.getppid())
    done = cluster(table, by=asked["columns"], layout="zorder", files=files, spark=place)
    end = usage.moment(os.getppid())
    answer.write_bytes(pickle.dumps((start, end, done.change.removed_files, done.change.added_files)))


def measure(engine: str, home: Any, columns: Iterable[str], heard: list[str]) -> Rewritten:
    """Rewrite a table in a process of its own; `heard` grows by the requests that the server gets."""
    with tempfile.TemporaryDirectory(prefix="zonal-bench-") as name:
        answer, log = Path(name) / "answer", Path(name) / "log.txt"
        asked = {"engine": engine, "name": home.name, "opened": home.options, "columns": list(columns)}
        heard.clear()
        command = [sys.executable, "-m", "benchmarks.stores", "--perform", json.dumps(asked), str(answer)]
        used = usage.run(command, log=log, timeout=TIMEOUT)
        if used.status or not answer.exists():
            raise RuntimeError(f"The rewrite failed with status {used.status}:\n{log.read_text()[-3000:]}")
        start, end, removed, added = pickle.loads(answer.read_bytes())  # noqa: S301 - of a process of this one's
    return Rewritten(used.between(start, end), removed, added, _counted(heard))


def _counted(heard: list[str]) -> Counter[str]:
    """Count requests by what they ask for: files of data that were there or are new, the log, and lists of names."""
    counts: Counter[str] = Counter()
    for request in heard:
        method, _, rest = request.partition(" ")
        path, _, query = rest.partition("?")
        kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(path)), "other")
        if kind == "data":
            kind = "new files" if "/zonal-" in path else "old files"
        if "list-type" in query:
            method, kind = "LIST", "log" if "_delta_log" in query else "other"
        counts[f"{method} {kind}"] += 1
    return counts


def homes(format_: str, parts: list[pa.Table], server: S3Server, folder: Path) -> Iterator[Any]:
    """Make the same table on the disk and in the store."""
    here, stored = (Delta, StoredDelta) if format_ == "delta" else (Iceberg, StoredIceberg)
    yield here(folder / "disk").make(parts)
    yield (stored(server) if format_ == "delta" else stored(server, folder / "stored")).make(parts)


def main() -> None:
    """Measure all cases, and print one line per case and one per kind of request."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--files", type=int, default=48)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="cases by their first words, such as here-delta")
    parser.add_argument("--folder", default=str(Path.home() / ".cache" / "zonal" / "bench"))
    parser.add_argument("--perform", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.perform:
        perform(json.loads(options.perform[0]), Path(options.perform[1]))
        return
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    given = inputs.make("lineitem", scale=options.scale, cache=Path(options.folder))
    parts = parts_of(pa.concat_tables(map(pq.read_table, given.files)), options.files)
    console, table = Console(width=120), Table()
    for name in ("rewrite", "disk, CPU s", "S3, CPU s", "ratio", "files read", "written", "per read", "per written"):
        table.add_column(name, justify="left" if name == "rewrite" else "right")
    for engine, format_ in CASES:
        if f"{engine}-{format_}".startswith(options.only):
            measured = [_both(engine, format_, given.columns, parts, options.folder) for _ in range(options.repeat)]
            disk, store = (min(ones, key=lambda one: one.cpu_seconds) for ones in zip(*measured, strict=True))
            table.add_row(f"{engine} {format_}", *_numbers(disk, store))
            console.print(f"{engine} {format_}:", dict(sorted(store.requests.items())))
    console.print(table)


def _both(
    engine: str, format_: str, columns: Iterable[str], parts: list[pa.Table], folder: str
) -> tuple[Rewritten, Rewritten]:
    """Rewrite on the disk, and then in the store."""
    server = S3Server()
    try:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            on_disk, stored = homes(format_, parts, server, Path(name))
            return measure(engine, on_disk, columns, server.heard), measure(engine, stored, columns, server.heard)
    finally:
        server.stop()


def _numbers(disk: Rewritten, store: Rewritten) -> Iterator[str]:
    reads = sum(count for kind, count in store.requests.items() if kind.endswith("old files"))
    writes = sum(count for kind, count in store.requests.items() if kind.endswith("new files"))
    yield f"{disk.cpu_seconds:.1f}"
    yield f"{store.cpu_seconds:.1f}"
    yield f"{store.cpu_seconds / disk.cpu_seconds:.2f}"
    yield f"{store.files_read}"
    yield f"{store.files_written}"
    yield f"{reads / store.files_read:.1f}"
    yield f"{writes / store.files_written:.1f}"


if __name__ == "__main__":
    main()
