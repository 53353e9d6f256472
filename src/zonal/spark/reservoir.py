"""Draw uniform samples of bounded size per partition, and merge them by the number of rows they stand for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from zonal.values.arrays import Float64Array
from zonal.values.selection import take_rows
from zonal.worker.archives import forget_archives

Batches: TypeAlias = Iterable[pa.RecordBatch]


@dataclass(frozen=True, eq=False)
class Part:
    """A sample, and how many rows it stands for."""

    rows: int
    sample: pa.Table


def draw(most: int, lanes: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return a step for `mapInArrow` that yields one sample of up to `most` rows per partition, dealt to lanes."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        forget_archives()
        from pyspark import TaskContext  # noqa: PLC0415 - known in a worker only

        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        part = reservoir(batches, most, seed=partition)
        if part is not None:
            yield _written(part, partition % lanes)

    return run


def merge(most: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return a step for `mapInArrow` that merges the samples of a lane into one of up to `most` rows."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        forget_archives()
        merged: Part | None = None
        for batch in batches:
            for part in _read(batch):
                merged = part if merged is None else merged_parts([merged, part], most)
        if merged is not None:
            yield _written(merged, 0)

    return run


def read_parts(found: pa.Table, most: int) -> pa.Table | None:
    """Merge what `merge` returned; None if there is nothing."""
    parts = [part for batch in found.to_batches() for part in _read(batch)]
    return merged_parts(parts, most).sample if parts else None


def reservoir(batches: Batches, most: int, seed: int) -> Part | None:
    """Sample up to `most` rows uniformly: those with the smallest random numbers."""
    random = np.random.default_rng(seed)
    rows, limit, held = 0, 1.0, 0
    tables: list[pa.Table] = []
    numbers: list[Float64Array] = []
    for batch in batches:
        drawn = random.random(batch.num_rows)
        kept = np.flatnonzero(drawn < limit)
        rows, held = rows + batch.num_rows, held + len(kept)
        tables.append(take_rows(pa.Table.from_batches([batch]), kept))
        numbers.append(drawn[kept])
        if held > 2 * most:
            tables, numbers = _least(tables, numbers, most)
            limit, held = float(numbers[0].max()), most
    if not tables:
        return None
    tables, _ = _least(tables, numbers, most)
    return Part(rows, tables[0])


def merged_parts(parts: Sequence[Part], most: int) -> Part:
    """Merge samples into a uniform one: each gives rows in proportion to those that it stands for."""
    total = sum(part.rows for part in parts)
    # A part that stands for many rows may be too small for its share: then all take less.
    size = min([float(most), *(part.sample.num_rows * total / part.rows for part in parts if part.rows)])
    ends = np.floor(np.cumsum([0, *(part.rows for part in parts)]) * (size / max(total, 1)) + 1e-6).astype(np.int64)
    random = np.random.default_rng([len(parts), total])
    taken = []
    for part, share in zip(parts, np.diff(ends).tolist(), strict=True):
        held = part.sample.num_rows
        chosen = np.sort(random.choice(held, min(share, held), replace=False))
        taken.append(take_rows(part.sample, chosen))
    return Part(total, pa.concat_tables(taken).combine_chunks())


def _least(
    tables: Sequence[pa.Table], numbers: Sequence[Float64Array], most: int
) -> tuple[list[pa.Table], list[Float64Array]]:
    joined, drawn = pa.concat_tables(tables), np.concatenate(numbers)
    if len(drawn) > most:
        chosen = np.sort(np.argpartition(drawn, most)[:most])
        joined, drawn = take_rows(joined, chosen), drawn[chosen]
    return [joined.combine_chunks()], [drawn]


def _written(part: Part, lane: int) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, part.sample.schema) as writer:
        writer.write_table(part.sample)
    columns = {"lane": pa.array([lane], pa.int32()), "rows": pa.array([part.rows], pa.int64())}
    return pa.record_batch({**columns, "part": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def _read(batch: pa.RecordBatch) -> Iterator[Part]:
    for rows, part in zip(batch["rows"].to_pylist(), batch["part"], strict=True):
        yield Part(rows, pa.ipc.open_stream(part.as_buffer()).read_all())
