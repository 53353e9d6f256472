"""Serialize the results that workers send to the driver: files that they wrote, and counts of rows that they read."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from zonal.plan.rewrite import ColumnMetrics, ReadTally, Written

COLUMNS = "tally binary, written binary, bounds binary"
"""Spark's schema of a result: either a tally, or a written file with the bounds of its columns."""
SCHEMA = pa.schema({"tally": pa.binary(), "written": pa.binary(), "bounds": pa.binary()})


def tally_bytes(tally: ReadTally) -> bytes:
    """Serialize a tally."""
    return json.dumps([tally.source, tally.read, tally.live, tally.checksum]).encode()


def tallies(values: Sequence[bytes]) -> pa.RecordBatch:
    """Return the results for serialized tallies."""
    return pa.RecordBatch.from_pylist([{"tally": value} for value in values], schema=SCHEMA)


def written(files: Sequence[Written]) -> pa.RecordBatch:
    """Return the results for new files."""
    return pa.RecordBatch.from_pylist(
        [{"written": _written_bytes(file), "bounds": _bounds_bytes(file.columns)} for file in files], schema=SCHEMA
    )


def _written_bytes(file: Written) -> bytes:
    columns = [[column.path, column.size, column.values, column.nulls, column.nans] for column in file.columns]
    return json.dumps([file.path, file.size, file.rows, file.partition, file.checksum, columns]).encode()


def _bounds_bytes(columns: Sequence[ColumnMetrics]) -> bytes:
    """Serialize the bounds of all columns that have them as one Arrow batch: row 0 lower bounds, row 1 upper bounds."""
    bounded = {str(at): pa.array([c.lower, c.upper]) for at, c in enumerate(columns) if c.lower is not None}
    batch = pa.record_batch(bounded or {"none": pa.nulls(2)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_results(results: pa.Table) -> tuple[list[ReadTally], list[Written]]:
    """Read the results of all workers."""
    read = [ReadTally(*json.loads(value)) for value in results["tally"].drop_null().to_pylist()]
    files = [
        _read_written(json.loads(one), bounds)
        for one, bounds in zip(results["written"].to_pylist(), results["bounds"].to_pylist(), strict=True)
        if one is not None
    ]
    return read, files


def _read_written(stored: list[Any], bounds: bytes) -> Written:
    path, size, rows, partition, checksum, columns = stored
    both = pa.ipc.open_stream(pa.py_buffer(bounds)).read_all()
    known = {int(name): tuple(both[name]) for name in both.column_names if name.isdigit()}
    metrics = (ColumnMetrics(*column, *known.get(at, (None, None))) for at, column in enumerate(columns))
    return Written(path, size, rows, partition, tuple(metrics), checksum)
