"""The rows that are to be appended, whatever they come as: Arrow data, files, tables, or a Spark DataFrame."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from zonal.errors import TableError, ZonalError, quoted
from zonal.plan.append import Appending
from zonal.tables.protocol import is_readable
from zonal.tables.registry import read_snapshot, table_of
from zonal.values.progress import Progress, Step
from zonal.worker.arrival.conversion import Conversion
from zonal.worker.arrival.stage import Staged, read_staged, stage_step
from zonal.worker.read.scan import scan_step
from zonal.worker.splits import plan_splits, refuse_wrong_sizes, split_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows: TypeAlias = "Any"
"""A Spark DataFrame, Arrow data of any kind, or paths."""
_TAKEN = "a Spark DataFrame, Arrow data (a table, a batch, a reader, a dataset or a scanner), or paths of Parquet files"


@dataclass(frozen=True, eq=False)
class Incoming:
    """Rows of one schema."""

    schema: pa.Schema
    stage: Callable[[str, Appending, Progress], list[Staged]]
    """Takes all rows, once, and writes them to staged files of a table, which is given by name."""

    def check(self, table: str, appending: Appending) -> None:
        """Raise one error that lists everything in which the schema doesn't fit a table."""
        Conversion.of(table, self.schema, appending)


def incoming(data: Rows, storage_options: Mapping[str, str] | None) -> "tuple[Incoming, ...]":
    """Return the rows of data; nothing but metadata is read yet."""
    if is_frame(data):
        from zonal.spark.arrival import frame_schema, stage_frame  # noqa: PLC0415 - pyspark is an extra

        return (Incoming(frame_schema(data), lambda *given: stage_frame(data, *given)),)
    if isinstance(data, (str, PathLike)):
        return (_table(data, storage_options),)
    if isinstance(data, Sequence) and data and all(isinstance(each, (str, PathLike)) for each in data):
        return tuple(_table(each, storage_options) for each in data)
    return (_here(*_arrow(data)),)


def is_frame(data: object) -> "TypeGuard[DataFrame]":
    """Tell whether data is a Spark DataFrame, classic or Connect, without an import of pyspark."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def _arrow(data: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:  # noqa: ANN401 - whatever a user has
    if isinstance(data, pa.RecordBatch):
        return data.schema, [data]
    if isinstance(data, pa.Table):
        return data.schema, data.to_batches()
    if isinstance(data, pyarrow.dataset.Dataset):
        data = data.scanner()
    if isinstance(data, pyarrow.dataset.Scanner):
        data = data.to_reader()
    if not isinstance(data, pa.RecordBatchReader):
        if not hasattr(data, "__arrow_c_stream__"):
            raise ZonalError(f"Rows can't be taken from {quoted(repr(data))}: give {_TAKEN}.")
        data = pa.RecordBatchReader.from_stream(data)
    return data.schema, data


def _table(name: "str | PathLike[str]", storage_options: Mapping[str, str] | None) -> Incoming:
    """Return the live rows of Parquet files, or of any table that a path leads to."""
    table = table_of(name, storage_options=storage_options, catalog_options=True)
    if not is_readable(table):
        raise TableError(f"The rows of {quoted(table.name, limit=300)} can't be read.")
    snapshot = read_snapshot(table)
    scan = table.scan(snapshot, np.arange(len(snapshot.files)), columns=snapshot.schema.names)
    refuse_wrong_sizes(scan)
    read = scan_step(scan.reading, scan.storage, snapshot.schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for split in plan_splits(scan.sources, 1):
            yield from read(iter([pa.record_batch({"split": [split_text(split)]})]))

    return _here(snapshot.schema, batches())


def _here(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Incoming:
    def stage(table: str, appending: Appending, report: Progress) -> list[Staged]:
        taken = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal taken
            for batch in batches:
                taken += batch.num_rows
                report(Step("reading", done=taken))
                yield batch

        staged = [file for record in stage_step(table, appending)(counted()) for file in read_staged(record)]
        if (kept := sum(file.rows for file in staged)) != taken:
            raise ZonalError(f"{taken:,} rows were taken and {kept:,} kept for {quoted(table)}. Please report this.")
        return staged

    return Incoming(schema, stage)
