"""Find columns without bounds in files, and the table property that makes writers store them."""

import pyarrow as pa

from zonal.snapshot import Snapshot
from zonal.values.columns import find, leaf_type
from zonal.values.words import family_of

_INDEXED = "delta.dataSkippingNumIndexedCols"
_NAMED = "delta.dataSkippingStatsColumns"
_MOST_UNKNOWN = 0.5


def has_statistics(snapshot: Snapshot, column: str) -> bool:
    """Tell whether most files have bounds of a column, or only nulls in it, which need no bounds."""
    bounds = snapshot.files.bounds.get(column)
    if bounds is None:
        return False
    files = snapshot.files
    empty = (bounds.nulls >= 0) & (bounds.nulls == files.rows)
    unknown = bounds.lower.is_null().to_numpy(zero_copy_only=False) & ~empty
    return bool(unknown.sum() <= _MOST_UNKNOWN * max(len(files), 1))


def statistics_advice(snapshot: Snapshot, column: str) -> str:
    """Return a sentence on what to set so that new files have bounds of a column."""
    if snapshot.format == "iceberg":
        mode = "truncate(16)" if _is_text(snapshot.schema, column) else "full"
        return f"Set the table property 'write.metadata.metrics.column.{column}' = '{mode}', and rewrite the files."
    if snapshot.format == "delta":
        named = snapshot.properties.get(_NAMED)
        if named is not None:
            return f"Set the table property '{_NAMED}' = '{named},{column}', and rewrite the files."
        count = snapshot.properties.get(_INDEXED, "32")
        return (
            f"Delta keeps bounds of the first {count} columns. Set the table property '{_NAMED}' = '…,{column}' (all "
            f"the columns that queries filter), or raise '{_INDEXED}', and rewrite the files."
        )
    return "Write the Parquet files with statistics of this column: pyarrow's write_statistics, Spark's default."


def _is_text(schema: pa.Schema, column: str) -> bool:
    return family_of(leaf_type(schema, find(schema, column))) == "bytes"
