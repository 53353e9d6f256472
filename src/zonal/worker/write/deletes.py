"""Write the deletes of new files, as the table stores them: deletion vectors, or files of positions."""

import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from zonal.plan.rewrite import DeleteFile, NewDeletes, Vector, Writing
from zonal.storage.durability import flush_file
from zonal.values.arrays import Int64Array
from zonal.worker.problem import naming
from zonal.worker.read.deletes import POSITION_COLUMNS
from zonal.worker.write.vectors import write_vectors

WRITERS = 8
"""Files of positions that are written at the same time: on an object store, waiting takes all the time."""
_KIND = {"delete-type": "position"}
"""What Iceberg's own writers say in the footer of such a file."""


def write_deletes(
    form: NewDeletes, writing: Writing, positions: Mapping[str, Int64Array]
) -> Mapping[str, Vector | DeleteFile]:
    """Write ascending positions of new files, by path, and return where those of each are."""
    if form.kind == "vectors":
        return write_vectors(writing.storage, form.location, positions)
    locations = [f"{form.location}/deletes-{uuid.uuid4().hex}.parquet" for _ in positions]
    with ThreadPoolExecutor(WRITERS) as pool:
        files = pool.map(lambda location, each: _write(writing, location, *each), locations, positions.items())
        return dict(zip(positions, files, strict=True))


def _write(writing: Writing, location: str, path: str, positions: Int64Array) -> DeleteFile:
    """Write the positions of one data file: one path throughout, and positions in order."""
    paths = pa.repeat(pa.scalar(path, pa.string()), len(positions))
    rows = pa.Table.from_arrays([paths, pa.array(positions, pa.int64())], schema=POSITION_COLUMNS)
    filesystem, inside = writing.storage.locate(location)
    with naming(location, doing="write"):
        if isinstance(filesystem, pyarrow.fs.LocalFileSystem):
            filesystem.create_dir(inside.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(inside) as sink:
            compression = {"compression": writing.compression or "zstd", "compression_level": writing.compression_level}
            with pq.ParquetWriter(sink, rows.schema, store_schema=False, **compression) as writer:
                writer.write_table(rows)
                writer.add_key_value_metadata(_KIND)
            size = int(sink.tell())
        flush_file(location)
    return DeleteFile(location, size, len(positions))
