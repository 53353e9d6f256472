"""Rewrite with delta-rs, the `deltalake` package: `optimize.z_order`, in one process without Spark."""

from deltalake import DeltaTable

from benchmarks.rewriters.copies import table_folder
from benchmarks.rewriters.job import Job, Rewrite


def zorder(job: Job) -> Rewrite:
    """Order along its Z-order curve."""
    table = DeltaTable(table_folder(job.folder))
    return lambda: table.optimize.z_order(list(job.columns), target_size=job.target)
