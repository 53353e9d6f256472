"""Read a user's own Parquet data for the demonstration, whole and therefore of bounded size."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from zonal.errors import ZonalError, quoted, suggestion
from zonal.layouts.ranks import bind

MOST_BYTES = 4_000_000_000
"""Of the data before compression; the demonstration holds it in memory."""


def read_own(path: Path, columns: Sequence[str], files: int) -> pa.Table:
    """Read a Parquet file or folder; columns that can't be keys and too many or too few rows are refused before."""
    if not path.exists():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ZonalError(f"There is no {quoted(str(path))}. {suggestion(path.name, sorted(beside))}")
    with _parquet_errors(path):
        data = pq.ParquetDataset(path)
        bind(data.schema, columns)
        rows = size = 0
        for fragment in data.fragments:
            rows += fragment.metadata.num_rows
            size += sum(group.total_byte_size for group in fragment.row_groups)
            if size > MOST_BYTES:
                raise ZonalError(_too_much(path, columns))
        if rows < files:
            raise ZonalError(f"{rows} rows are too few for {files} files. Use fewer --files.")
        return _in_microseconds(data.read())


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Cut timestamps to microseconds: few readers of Delta know nanoseconds."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            kind = pa.timestamp("us", field.type.tz)
            table = table.set_column(place, field.with_type(kind), table.column(place).cast(kind, safe=False))
    return table


def _too_much(path: Path, columns: Sequence[str]) -> str:
    return (
        f"{quoted(str(path))} has more than {MOST_BYTES / 1e9:.0f} GB before compression: too much for the demo, which "
        f"holds it in memory. Take a part of it, or make a clustered copy, which may have any size: "
        f"zonal cluster parquet:PATH --by {','.join(columns)} --into delta:NEW_FOLDER"
    )


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ZonalError(f"{quoted(str(path))} can't be read as Parquet: {reason}") from None
