"""Rewrite with Delta's statements on Spark: `OPTIMIZE … ZORDER BY`, and `OPTIMIZE … FULL` of a liquid table."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.rewriters.copies import table_folder
from benchmarks.rewriters.job import Job, Rewrite
from benchmarks.rewriters.spark_session import codec_settings, session


def zorder(job: Job) -> Rewrite:
    """Order along Delta's Z-order curve."""
    spark = _rewriting(job)
    statement = f"OPTIMIZE delta.`{table_folder(job.folder)}` ZORDER BY ({', '.join(job.columns)})"
    return lambda: spark.sql(statement).collect()


def liquid(job: Job) -> Rewrite:
    """Declare the clustering columns, which is not measured, then cluster all files (along Hilbert's curve)."""
    spark = _rewriting(job)
    table = f"delta.`{table_folder(job.folder)}`"
    spark.sql(f"ALTER TABLE {table} CLUSTER BY ({', '.join(job.columns)})")
    return lambda: spark.sql(f"OPTIMIZE {table} FULL").collect()


def delta_session(folder: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session that knows Delta tables."""
    own = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    return session(folder, engine="delta", settings={**own, **(settings or {})})


def _rewriting(job: Job) -> SparkSession:
    sizes = {
        "spark.databricks.delta.optimize.maxFileSize": str(job.target),
        "spark.databricks.delta.optimize.minFileSize": str(job.target),
    }
    return delta_session(job.folder, sizes | codec_settings(job))
