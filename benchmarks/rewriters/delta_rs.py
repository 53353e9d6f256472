"""Rewrite with delta-rs, the `deltalake` package: `optimize.z_order`, in one process without Spark."""

from typing import Literal

from deltalake import DeltaTable, WriterProperties

from benchmarks.rewriters.copies import table_folder
from benchmarks.rewriters.job import Job, Rewrite

CODECS: dict[str, Literal["SNAPPY", "ZSTD"]] = {"snappy": "SNAPPY", "zstd": "ZSTD"}


def zorder(job: Job) -> Rewrite:
    """Order along its Z-order curve."""
    table = DeltaTable(table_folder(job.folder))
    properties = None if job.codec is None else WriterProperties(compression=CODECS[job.codec])
    return lambda: table.optimize.z_order(list(job.columns), target_size=job.target, writer_properties=properties)
