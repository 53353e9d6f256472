"""Turn splits into a DataFrame with one task per split."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zonal.spark.row_partitions import addresses
from zonal.worker.splits import Split, split_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def dealt(spark: "SparkSession", splits: Sequence[Split]) -> "DataFrame":
    """Return one row per split, as text, each in its own partition."""
    texts = [split_text(split) for split in splits]
    rows = list(zip(texts, addresses(np.arange(len(splits))).tolist(), strict=True))
    return spark.createDataFrame(rows, "split string, address int").repartition(len(rows), "address").select("split")
