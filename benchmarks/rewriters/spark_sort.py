"""Rewrite with Spark alone: range partitions, sorted inside, written as Parquet."""

from benchmarks.rewriters.copies import result_folder, table_folder
from benchmarks.rewriters.job import Job, Rewrite
from benchmarks.rewriters.spark_session import codec_settings, session


def linear(job: Job) -> Rewrite:
    """Sort by the columns, the first one first, into as many files as the input's bytes make."""
    spark = session(job.folder, settings=codec_settings(job))
    source = table_folder(job.folder)
    files = max(1, round(sum(file.stat().st_size for file in source.glob("*.parquet")) / job.target))

    def rewrite() -> None:
        rows = spark.read.parquet(str(source))
        ordered = rows.repartitionByRange(files, *job.columns).sortWithinPartitions(*job.columns)
        ordered.write.parquet(str(result_folder(job.folder)))

    return rewrite
