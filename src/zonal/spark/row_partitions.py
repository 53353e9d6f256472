"""Put rows into exactly the partitions that they are meant for, on every Spark, classic or Connect.

`DataFrame.repartition(n, column)` puts a row into partition `hash(column) mod n`; bucketed tables rely on that hash, so
it stays. Of a 32-bit integer it is MurmurHash3 with seed 42, a bijection: for each partition there is one integer that
hashes to its number, whatever `n` is. Where an engine hashes in another way, rows of one number still stay together:
partitions are less even then, and nothing is lost.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.values.arrays import Int32Array, Int64Array
from zonal.worker.tasks import WorkerStep


def addresses(partitions: Int32Array | Int64Array) -> Int32Array:
    """Return the integers that Spark hashes to these numbers of partitions: MurmurHash3, undone step by step.

    >>> addresses(np.array([0, 1, 5000])).tolist()
    [-1693959553, -1910889132, -1774687625]
    """
    word: npt.NDArray[Any] = partitions.astype(np.uint32)
    word = (word ^ word >> 16) * _inverse(0xC2B2AE35)
    word = (word ^ word >> 13 ^ word >> 26) * _inverse(0x85EBCA6B)
    word = ((word ^ word >> 16 ^ 4) - np.uint32(0xE6546B64)) * _inverse(5)
    word = ((word >> 13 | word << 19) ^ 42) * _inverse(0x1B873593)
    word = (word >> 15 | word << 17) * _inverse(0xCC9E2D51)
    return word.view(np.int32)


def addressed(step: WorkerStep) -> WorkerStep:
    """Return the step with addresses in its first column, which holds numbers of partitions."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in step(batches):
            to = pa.array(addresses(batch.column(0).to_numpy()))
            yield batch.set_column(0, batch.schema.field(0), to)

    return run


def _inverse(factor: int) -> np.uint32:
    """Return what undoes a multiplication by an odd factor."""
    return np.uint32(pow(factor, -1, 2**32))
