"""Rewrite with zonal, on the same Spark with the settings of zonal's own sessions."""

from functools import partial

from benchmarks.rewriters.copies import opened
from benchmarks.rewriters.job import Job, Rewrite
from benchmarks.rewriters.spark_session import session
from zonal.rewriting.new_files import NewFiles
from zonal.spark.session import LOCAL
from zonal.verbs.cluster import cluster


def start(job: Job, *, format_: str, kind: str) -> Rewrite:
    """Open the table; the rewrite takes all files and commits."""
    spark = session(job.folder, settings=LOCAL)
    table = opened(format_, job.folder)
    files = NewFiles(target_file_size=job.target)
    return lambda: cluster(table, by=list(job.columns), layout=kind, files=files, spark=spark)


delta_zorder = partial(start, format_="delta", kind="zorder")
delta_hilbert = partial(start, format_="delta", kind="hilbert")
iceberg_zorder = partial(start, format_="iceberg", kind="zorder")
iceberg_hilbert = partial(start, format_="iceberg", kind="hilbert")
