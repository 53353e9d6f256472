"""Make the columns that the benchmarks of the kernel run on, with the same values in every run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.layouts.batch import SAMPLE_ROWS
from zonal.values.arrays import UInt32Array
from zonal.values.selection import take_rows

TEXT_BYTES = 20
PREFIX = b"https://www."
DISTINCT = 5_000
FIRST_DAY = int(np.datetime64("2026-01-01", "us").astype(np.int64))
MONTH = 30 * 86_400_000_000


@dataclass(frozen=True)
class Column:
    """One column, and the same values as a numpy array."""

    name: str
    arrow: pa.ChunkedArray
    plain: npt.NDArray[Any]


def columns(rows: int) -> Iterator[Column]:
    """Make the columns that ranks are measured on, one at a time."""
    rng = np.random.default_rng(1)
    uniform = rng.integers(-(2**62), 2**62, rows)
    yield Column("int64, uniform", pa.chunked_array([uniform]), uniform)
    skewed = rng.lognormal(12.0, 3.0, rows).astype(np.int64)
    yield Column("int64, lognormal", pa.chunked_array([skewed]), skewed)
    times = rng.integers(FIRST_DAY, FIRST_DAY + MONTH, rows)
    yield Column("timestamp[us]", pa.chunked_array([pa.array(times).cast(pa.timestamp("us"))]), times)
    texts = letters(rng, rows)
    yield Column("string, 20 random bytes", pa.chunked_array([strings(texts)]), texts)
    texts = letters(rng, rows, PREFIX)
    yield Column("string, 12 bytes in common", pa.chunked_array([strings(texts)]), texts)
    values, indices = letters(rng, DISTINCT), rng.integers(0, DISTINCT, rows, dtype=np.int32)
    encoded = pa.DictionaryArray.from_arrays(pa.array(indices), strings(values))
    yield Column("dictionary, 5,000 strings", pa.chunked_array([encoded]), values[indices])


def letters(rng: np.random.Generator, rows: int, prefix: bytes = b"") -> npt.NDArray[np.bytes_]:
    """Return byte strings of 20 lower-case letters, of which the first are a common prefix."""
    matrix = rng.integers(97, 123, (rows, TEXT_BYTES), dtype=np.uint8)
    matrix[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    return matrix.reshape(-1).view(f"S{TEXT_BYTES}")


def strings(texts: npt.NDArray[np.bytes_]) -> pa.StringArray:
    """View byte strings of one length as Arrow strings."""
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * np.int32(texts.itemsize)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(texts.view(np.uint8)))


def codes(rows: int, dimensions: int, bits: int) -> list[UInt32Array]:
    """Make random codes for each dimension of a curve."""
    rng = np.random.default_rng(dimensions)
    return [rng.integers(0, 2**bits, rows, dtype=np.uint32) for _ in range(dimensions)]


def sampled_rows(rows: int) -> npt.NDArray[np.int64]:
    """Choose the rows that ranks are fitted on."""
    chosen = np.random.default_rng(0).choice(rows, min(rows, SAMPLE_ROWS), replace=False)
    return np.sort(chosen).astype(np.int64)


def sample(table: pa.Table) -> pa.Table:
    """Return the sampled rows of a table."""
    return take_rows(table, sampled_rows(table.num_rows))


def events(rows: int) -> pa.Table:
    """Make a table with two key columns, `id` and nearly sorted `ts`, and six payload columns."""
    rng = np.random.default_rng(2)
    ts = FIRST_DAY + np.linspace(0, MONTH, rows).astype(np.int64) - rng.exponential(60e6, rows).astype(np.int64)
    regions = pa.array(["ap-south", "eu-central", "eu-west", "sa-east", "us-east", "us-west"])
    models = pa.array(rng.integers(0, DISTINCT, rows, dtype=np.int32))
    return pa.table(
        {
            "id": rng.lognormal(12.0, 3.0, rows).astype(np.int64),
            "ts": pa.array(ts).cast(pa.timestamp("us")),
            "region": regions.take(pa.array(rng.integers(0, len(regions), rows))),
            "model": pa.DictionaryArray.from_arrays(models, strings(letters(rng, DISTINCT))),
            "battery": pa.array(rng.integers(0, 101, rows, dtype=np.int8), mask=rng.random(rows) < 0.1),
            "value": rng.gamma(2.0, 15.0, rows),
            "ok": pa.array(rng.random(rows) < 0.9),
            "trace": strings(letters(rng, rows)),
        }
    )
