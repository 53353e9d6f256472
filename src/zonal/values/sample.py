"""Rows drawn from a table, with the partition of each."""

from dataclasses import dataclass

import pyarrow as pa

from zonal.values.arrays import Int64Array


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows of some columns; within a partition every row stands for equally many rows of the table."""

    data: pa.Table
    partition: Int64Array
    """The number of each row's partition."""
