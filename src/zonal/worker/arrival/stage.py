"""Stage rows: write them, checked and divided into partitions, to files from which they are sorted afterwards.

So rows are taken from their source exactly once, whatever that is: a stream, a query that would give other rows the
next time, or more than fits into memory.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from zonal.plan.append import Appending, PartitionField, PartitionValues
from zonal.storage import Storage
from zonal.values.arrays import Int64Array
from zonal.values.selection import take_rows
from zonal.worker.archives import forget_archives
from zonal.worker.arrival.conversion import Conversion
from zonal.worker.arrival.transforms import partition_values
from zonal.worker.problem import naming
from zonal.worker.tasks import CHUNK_BYTES

COLUMNS = "path string, size long, rows long, key binary"
"""Spark's schema of a staged file."""
SCHEMA = pa.schema({"path": pa.string(), "size": pa.int64(), "rows": pa.int64(), "key": pa.binary()})
GROUP_ROWS = 128 * 1024
"""Rows of a row group: what is read at a time to sample and to sort."""

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, eq=False)
class Staged:
    """A staged file: rows of one partition."""

    path: str
    size: int
    rows: int
    key: bytes
    """The same for files of the same partition."""

    @property
    def partition(self) -> PartitionValues:
        """Return the values of its partition."""
        return _unpacked(self.key)


def stage_step(table: str, appending: Appending) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the step from rows to staged files, one record per file with the columns of `SCHEMA`."""

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        forget_archives()
        conversion: Conversion | None = None
        for chunk in _chunks(batches):
            # Spark's batches may differ from its schema, by a zone.
            conversion = conversion or Conversion.of(table, chunk.schema, appending)
            rows = conversion.rows(chunk)
            for values, mine in _partitions(rows, appending.partitioning):
                kept = rows if mine is None else take_rows(rows, mine)
                stored = _named(kept.select(list(appending.in_files)), appending.reading.schema)
                # A new name for every attempt: an attempt that Spark repeats never meets the files of an earlier one.
                path = f"{staging_folder(appending)}/{uuid.uuid4().hex}.parquet"
                size = _write(appending.writing.storage, path, stored)
                record = {"path": path, "size": size, "rows": kept.num_rows, "key": _packed(values)}
                yield pa.RecordBatch.from_pylist([record], schema=SCHEMA)

    return stage


def staging_folder(appending: Appending) -> str:
    """Return where staged files lie: in the run's own folder, of which only the table's new files stay."""
    return f"{appending.writing.folder}/staged"


def read_staged(records: pa.Table | pa.RecordBatch) -> list[Staged]:
    """Read what `stage_step` returned."""
    return [Staged(**record) for record in records.to_pylist()]


def _chunks(batches: Batches) -> Iterator[pa.Table]:
    """Gather rows up to about `CHUNK_BYTES`; batches without rows are left out, and larger ones are cut."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        step = max(1, int(batch.num_rows * CHUNK_BYTES / max(batch.nbytes, 1)))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            held.append(part)
            size += part.nbytes
            if size >= CHUNK_BYTES:
                yield pa.Table.from_batches(held)
                held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _named(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give columns and the fields below them other names, by their positions; a cast would go by names."""
    batches = rows.combine_chunks().to_batches()
    return pa.Table.from_batches([pa.ipc.read_record_batch(batch.serialize(), schema) for batch in batches], schema)


def _partitions(
    rows: pa.Table, partitioning: tuple[PartitionField, ...]
) -> Iterator[tuple[PartitionValues, Int64Array | None]]:
    """Yield the values of each partition with the positions of its rows, None for all of them."""
    if not partitioning:
        yield (), None
        return
    columns = [_comparable(partition_values(rows, field)) for field in partitioning]
    codes = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + numbers, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for mine in np.split(order, starts[1:]):
        yield tuple(column[int(mine[0])] for column in columns), np.sort(mine)


def _comparable(column: pa.Array) -> pa.Array:
    """Return values of which equal ones are in the same partition; -0.0 and 0.0 are equal, and so are all NaN."""
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0.0, column.type))
    return column


def _write(storage: Storage, path: str, rows: pa.Table) -> int:
    filesystem, inner = storage.locate(path)
    with naming(path, doing="write"):
        if isinstance(filesystem, pa.fs.LocalFileSystem):
            filesystem.create_dir(inner.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(inner) as sink:
            pq.write_table(
                rows, sink, row_group_size=GROUP_ROWS, compression="lz4", store_schema=False, write_page_checksum=True
            )
            return int(sink.tell())


def _packed(values: PartitionValues) -> bytes:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([value], value.type) for value in values], [str(at) for at in range(len(values))]
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _unpacked(data: bytes) -> PartitionValues:
    batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
    return tuple(column[0] for column in batch.columns)
