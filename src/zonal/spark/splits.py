"""Turn splits into a DataFrame with one task per split."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zonal.worker.splits import Split, split_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def dealt(spark: "SparkSession", splits: Sequence[Split]) -> "DataFrame":
    """Return one row per split, as text, each in its own partition."""
    texts = [split_text(split) for split in splits]
    table = pa.table({"split": texts, "number": pa.array(range(len(splits)), pa.int32())})
    return spark.createDataFrame(table).repartitionById(len(splits), F.col("number")).select("split")
