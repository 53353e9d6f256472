"""`clustered`: a clustering step for a user's own Spark job; importing it needs no pyspark, calling it does."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from zonal.arguments import check_arguments
from zonal.layouts.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def clustered(layout: str | Layout, *, files: int) -> "Callable[[DataFrame], DataFrame]":
    """Return a step for `DataFrame.transform` that puts rows in clustered order, cut into about `files` partitions.

    The step reads the key columns once to sample them, then gives a DataFrame with the same columns and rows; write it
    as usual. A key with more rows than a file is spread over several ones, except rows that are equal in all columns.

    Arguments:
        layout: a whole layout, such as `zorder(ts, payload_id)`.
        files: how many files the rows are to become.

    Example:
        >>> step = zonal.clustered("hilbert(ts, payload_id)", files=64)
        >>> df.transform(step).write.parquet("events")  # doctest: +SKIP
    """
    check_arguments(clustered, locals())
    from zonal.spark.versions import check_pyspark  # noqa: PLC0415 - pyspark is an extra

    check_pyspark()
    from zonal.spark.frame import clustered as step  # noqa: PLC0415

    return step(layout, files=files)
