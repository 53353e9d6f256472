"""Files, deletion vectors and readers for tests of the worker."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from zonal.plan.rewrite import Reading, Source
from zonal.storage import Storage
from zonal.worker.read.deletes import MAGIC
from zonal.worker.read.reader import Reader


def reader(path, reading):
    return Reader(reading, Storage(str(Path(path).parent), {}))


def source(path, **more):
    return Source(0, str(path), 0, more.pop("rows", -1), 0, **more)


def live(parts):
    """The positions and values of column `n` that are left."""
    return [(p, n) for part in parts for p, n in zip(part.positions.tolist(), part.data["n"].to_pylist(), strict=True)]


def bitmap(positions):
    return MAGIC.to_bytes(4, "little") + BitMap64(positions).serialize()


def write_numbers(folder, rows=100, row_group_size=30, **columns):
    path = Path(folder) / "data.parquet"
    pq.write_table(pa.table({"n": np.arange(rows) * 7, **columns}), path, row_group_size=row_group_size)
    return path


NUMBERS = Reading(pa.schema({"n": pa.int64()}))
