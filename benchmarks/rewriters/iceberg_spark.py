"""Rewrite with Iceberg's procedure on Spark, `rewrite_data_files`."""

from functools import partial

from benchmarks.rewriters.copies import CATALOG, TABLE
from benchmarks.rewriters.job import Job, Rewrite
from benchmarks.rewriters.spark_session import session


def start(job: Job, *, curve: str) -> Rewrite:
    """Open the catalog; the rewrite takes all files, as one that changes the order must."""
    prefix = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{prefix}.uri": f"jdbc:sqlite:{job.folder / 'catalog.db'}",
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": f"file://{job.folder / 'warehouse'}",
    }
    spark = session(job.folder, engine="iceberg", settings=settings)
    statement = (
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{TABLE}', strategy => 'sort', "
        f"sort_order => '{curve}({', '.join(job.columns)})', "
        f"options => map('rewrite-all', 'true', 'target-file-size-bytes', '{job.target}'))"
    )
    return lambda: spark.sql(statement).collect()


zorder = partial(start, curve="zorder")
hilbert = partial(start, curve="hilbert")
