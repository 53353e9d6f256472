"""Rewrite with Iceberg's procedure on Spark, `rewrite_data_files`."""

from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.rewriters.copies import CATALOG, TABLE
from benchmarks.rewriters.job import Job, Rewrite
from benchmarks.rewriters.spark_session import session


def iceberg_session(folder: Path) -> SparkSession:
    """Start a session that knows the catalog of the table in a folder."""
    prefix = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{prefix}.uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": f"file://{folder / 'warehouse'}",
    }
    return session(folder, engine="iceberg", settings=settings)


def start(job: Job, *, curve: str) -> Rewrite:
    """Open the catalog; the rewrite takes all files, as one that changes the order must."""
    spark = iceberg_session(job.folder)
    if job.codec is not None:
        codec = f"'write.parquet.compression-codec' = '{job.codec}'"
        spark.sql(f"ALTER TABLE {CATALOG}.{TABLE} SET TBLPROPERTIES ({codec})")
    statement = (
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{TABLE}', strategy => 'sort', "
        f"sort_order => '{curve}({', '.join(job.columns)})', "
        f"options => map('rewrite-all', 'true', 'target-file-size-bytes', '{job.target}'))"
    )
    return lambda: spark.sql(statement).collect()


zorder = partial(start, curve="zorder")
hilbert = partial(start, curve="hilbert")
