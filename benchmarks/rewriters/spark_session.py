"""Start the Spark session of every peer on Spark, with the same cores, memory and first job."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.rewriters.jars import jars
from benchmarks.rewriters.job import Job
from zonal.spark.java import use_java

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


def session(folder: Path, *, engine: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark and run a tiny job, so that what is measured next doesn't pay for the start."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    use_java()
    builder = SparkSession.builder.master(f"local[{cores()}]")
    own = {"spark.local.dir": str(folder / "spark"), "spark.sql.warehouse.dir": str(folder / "spark-warehouse")}
    if engine is not None:
        own["spark.jars"] = ",".join(map(str, jars(engine)))
    for key, value in {**_SETTINGS, **own, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    assert spark.range(0, 10_000, 1, 4).repartition(4).selectExpr("sum(id)").collect()[0][0] == 49_995_000
    return spark


def codec_settings(job: Job) -> dict[str, str]:
    """Return the setting of the codec that Spark writes, where the job says which."""
    return {} if job.codec is None else {"spark.sql.parquet.compression.codec": job.codec}


def cores() -> int:
    """Return how many cores Spark gets."""
    return len(os.sched_getaffinity(0))
