"""Make the rows that are rewritten, as Parquet files in arrival order."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from benchmarks.rewriters import changes, flights, store_sales

PARTS = 8
"""Files of each million-row unit of scale."""

WIDE_ROWS = 1_500_000
WORDS = ("red", "green", "blue", "black", "white", "amber", "violet", "cyan", "plum", "olive", "coral", "ivory")


@dataclass(frozen=True)
class Input:
    """A table's rows, and the columns that it is clustered by."""

    name: str
    folder: Path
    columns: tuple[str, ...]

    @property
    def files(self) -> list[Path]:
        """Return the files in their order."""
        return sorted(self.folder.glob("*.parquet"))

    @property
    def rows(self) -> int:
        """Return the number of rows, by the footers."""
        return sum(int(pq.read_metadata(file).num_rows) for file in self.files)


def make(name: str, *, scale: float, cache: Path) -> Input:
    """Return a table's files, made once per scale and kept in the cache."""
    columns, write = TABLES[name]
    folder = cache / f"{name}-{scale:g}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            write(scale, Path(scratch))
            made = Path(scratch) / "made"
            made.rename(folder)
    return Input(name, folder, columns)


def _lineitem(scale: float, scratch: Path) -> None:
    """Generate TPC-H's lineitem, and write it without its Arrow schema, whose string views some readers refuse."""
    program = shutil.which("tpchgen-cli", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise SystemExit("tpchgen-cli is missing: pip install --group bench")
    parts = max(1, round(PARTS * scale))
    command = [program, "parquet", "-s", f"{scale:g}", "--tables", "lineitem", "--parts", str(parts)]
    subprocess.run([*command, "--output-dir", str(scratch)], check=True, stdout=subprocess.DEVNULL)
    (scratch / "made").mkdir()
    generated = [*(scratch / "lineitem").glob("*.parquet"), *scratch.glob("lineitem*.parquet")]
    for number, file in enumerate(sorted(generated, key=_part)):
        table = pq.read_table(file)
        kinds = [pa.string() if column.type == pa.string_view() else column.type for column in table.schema]
        table = table.cast(pa.schema(zip(table.schema.names, kinds, strict=True)))
        pq.write_table(table, scratch / "made" / f"part-{number:05d}.parquet", store_schema=False)
        file.unlink()


def _part(file: Path) -> int:
    """Return the number in `lineitem.3.parquet`; a table of one part has none."""
    number = file.name.split(".")[1]
    return int(number) if number.isdecimal() else 0


def _wide(scale: float, scratch: Path) -> None:
    """Write sixty columns, the first two of them skewed keys: most rows have few accounts and the last weeks."""
    (scratch / "made").mkdir()
    rows = round(WIDE_ROWS * scale / PARTS)
    for number in range(PARTS):
        table = pa.table(dict(_wide_columns(np.random.default_rng(number), rows)))
        pq.write_table(table, scratch / "made" / f"part-{number:05d}.parquet", store_schema=False)


def _wide_columns(rng: np.random.Generator, rows: int) -> Iterator[tuple[str, pa.Array]]:
    newest = int(np.datetime64("2026-01-01", "us").astype(np.int64))
    age = (rng.exponential(20 * 86_400e6, rows)).astype(np.int64)
    yield "account_id", pa.array(rng.lognormal(9.0, 2.5, rows).astype(np.int64))
    yield "created_at", pa.array(newest - age).cast(pa.timestamp("us", "UTC"))
    for group in range(2, 58, 7):
        yield f"count_{group}", pa.array(rng.poisson(3 + group, rows).astype(np.int32))
        yield f"ref_{group}", pa.array(rng.zipf(1.3, rows) % 2**31, pa.int64())
        yield f"ratio_{group}", pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.05)
        yield f"color_{group}", pa.array(WORDS).take(pa.array(rng.zipf(1.5, rows) % len(WORDS)))
        yield f"code_{group}", pa.array(rng.integers(0, 50_000, rows)).cast(pa.string())
        yield (
            f"day_{group}",
            pa.array((newest - age) // 86_400_000_000 + rng.integers(0, 9, rows), pa.int32()).cast(pa.date32()),
        )
        yield f"flag_{group}", pa.array(rng.random(rows) < 0.02, mask=rng.random(rows) < 0.3)
    cents = pa.array(rng.integers(0, 10**6, rows)).cast(pa.decimal128(19, 0))
    yield "price", pa.compute.multiply(cents, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(12, 2))
    yield "trace_id", pa.array(rng.integers(0, 2**63, rows)).cast(pa.string())


TABLES: dict[str, tuple[tuple[str, ...], Callable[[float, Path], None]]] = {
    "lineitem": (("l_shipdate", "l_partkey"), _lineitem),
    "wide": (("account_id", "created_at"), _wide),
    "flights": (("time", "dest", "carrier"), flights.write),
    "store_sales": (("ss_sold_date_sk", "ss_item_sk", "ss_store_sk"), store_sales.write),
    "changes": (("entity_id", "event_time"), changes.write),
}
