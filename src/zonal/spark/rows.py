"""Read a table's live rows as a DataFrame: workers read the files and apply deletes, without a format's jar."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from zonal.plan.rewrite import Scan
from zonal.spark.session import check_worker_python, is_on_this_machine
from zonal.spark.shipment import carried
from zonal.spark.splits import dealt
from zonal.worker.read.scan import scan_step
from zonal.worker.splits import Split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_rows(spark: "SparkSession", scan: Scan, schema: pa.Schema, splits: Sequence[Split]) -> "DataFrame":
    """Return the scan's live rows with the names of `schema`, whose columns are those of the scan in order."""
    check_worker_python(spark)
    ntz = spark.conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ"
    columns = from_arrow_schema(schema, prefer_timestamp_ntz=ntz)  # as Spark converts Arrow itself
    if not splits:
        return spark.createDataFrame([], columns)
    step = carried(scan_step(scan.reading, scan.storage, schema), by_value=not is_on_this_machine(spark))
    return dealt(spark, splits).mapInArrow(step, columns)
