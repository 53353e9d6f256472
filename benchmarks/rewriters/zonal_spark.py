"""Rewrite with zonal, on the same Spark with the settings of zonal's own sessions."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.rewriters.copies import opened
from benchmarks.rewriters.job import LOGGED, Job, Rewrite
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.places import Place
from zonal.spark.session import LOCAL
from zonal.tables.protocol import Table
from zonal.verbs.cluster import cluster
from zonal.workload.logs import Logs


def start(job: Job, *, format_: str, kind: str, **new_files: Any) -> Rewrite:
    """Open the table; the rewrite takes all files and commits."""
    from benchmarks.rewriters.spark_session import session  # noqa: PLC0415 - not needed without Spark

    spark = session(job.folder, settings=LOCAL)
    return clustering(job, opened(format_, job.folder), kind, spark, new_files)


delta = partial(start, format_="delta")
iceberg = partial(start, format_="iceberg")


def clustering(job: Job, table: Table, kind: str, place: Place, new_files: Mapping[str, Any]) -> Rewrite:
    """Cluster by the job's columns, or by a layout that is learned from its queries, which is a part of the work."""
    files = NewFiles(**{"target_file_size": job.target, "compression": job.codec, **new_files})
    if kind not in ("tree", "auto"):
        return lambda: cluster(table, by=list(job.columns), layout=kind, files=files, spark=place)
    assert job.queries is not None, f"{kind} is learned from queries, and the job has none"
    logs = Logs([job.queries], names=[LOGGED], dialect="spark")
    return lambda: cluster(table, layout=kind, queries=logs, files=files, spark=place)
