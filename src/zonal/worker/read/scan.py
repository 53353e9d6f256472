"""Run the step that reads a table's rows for a user's own Spark job."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from zonal.plan.rewrite import Reading
from zonal.storage import Storage
from zonal.worker.archives import forget_archives
from zonal.worker.read.reader import Reader
from zonal.worker.splits import read_split
from zonal.worker.write.writer import renamed

BATCH_ROWS = 16_384
"""Rows that go to Spark at a time."""

Batches = Iterable[pa.RecordBatch]


def scan_step(reading: Reading, storage: Storage, schema: pa.Schema) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the step from splits (one JSON text per row) to live rows with the names of `schema`."""

    def scan(batches: Batches) -> Iterator[pa.RecordBatch]:
        forget_archives()
        reader = Reader(reading, storage)
        for batch in batches:
            for text in batch.column(0).to_pylist():
                for share in read_split(text):
                    for rows in reader.shared_rows(share):
                        yield from renamed(rows.data, schema).to_batches(max_chunksize=BATCH_ROWS)

    return scan
