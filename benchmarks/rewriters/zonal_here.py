"""Rewrite with zonal in threads of one process, without Spark."""

from typing import Any

from benchmarks.rewriters.copies import opened
from benchmarks.rewriters.job import Job, Rewrite
from benchmarks.rewriters.zonal_spark import clustering
from zonal.spark.place import HERE, Spark


def delta(job: Job, *, kind: str, **new_files: Any) -> Rewrite:
    """Open the table; the rewrite takes all files and commits."""
    return clustering(job, opened("delta", job.folder), kind, Spark(master=HERE), new_files)
