"""Rewrite with zonal in threads of one process, without Spark."""

from benchmarks.rewriters.copies import opened
from benchmarks.rewriters.job import Job, Rewrite
from zonal.rewriting.new_files import NewFiles
from zonal.spark.place import HERE, Spark
from zonal.verbs.cluster import cluster


def delta_zorder(job: Job) -> Rewrite:
    """Open the table; the rewrite takes all files and commits."""
    table = opened("delta", job.folder)
    files, place = NewFiles(target_file_size=job.target), Spark(master=HERE)
    return lambda: cluster(table, by=list(job.columns), layout="zorder", files=files, spark=place)
