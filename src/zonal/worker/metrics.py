"""Statistics of a new file, gathered while its row groups are written.

Counts and sizes come from the file's own footer; bounds come from the rows, because a footer leaves out long values
and counts no NaN.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zonal.columns import leaf
from zonal.rewrite import ColumnMetrics


class LeafBounds:
    """Bounds of one leaf column over the rows seen so far; nulls and NaN have none."""

    def __init__(self, path: tuple[int, ...] | None) -> None:
        self._path = path
        self._lows: list[pa.Scalar] = []
        self._highs: list[pa.Scalar] = []
        self.nans = 0

    def add(self, rows: pa.Table) -> None:
        """Take in the rows of a row group."""
        if self._path is None:
            return
        values = leaf(rows, self._path)
        if isinstance(values.type, pa.BaseExtensionType):  # such as a UUID, of which `min_max` knows only the bytes
            values = pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type)
        if pa.types.is_dictionary(values.type):
            values = pc.unique(values).dictionary_decode()
        if pa.types.is_floating(values.type):
            undefined = pc.is_nan(values)
            if nans := pc.sum(undefined).as_py() or 0:
                self.nans += nans
                values = values.filter(pc.invert(undefined))
        found = pc.min_max(values)
        if found["min"].is_valid:
            self._lows.append(found["min"])
            self._highs.append(found["max"])

    @property
    def lower(self) -> pa.Scalar | None:
        """Return the least value."""
        return _signed_zero(pc.min_max(pa.array(self._lows))["min"], -0.0) if self._lows else None

    @property
    def upper(self) -> pa.Scalar | None:
        """Return the greatest value."""
        return _signed_zero(pc.min_max(pa.array(self._highs))["max"], 0.0) if self._highs else None


def _signed_zero(bound: pa.Scalar, zero: float) -> pa.Scalar:
    """Let a bound of zero hold for both zeros: some readers order -0.0 below 0.0."""
    if pa.types.is_floating(bound.type) and bound.as_py() == 0:
        return pa.scalar(zero, bound.type)
    return bound


class FileMetrics:
    """Statistics of all leaf columns of one file."""

    def __init__(self, schema: pa.Schema) -> None:
        self._bounds = [LeafBounds(path) for field, at in zip(schema, range(len(schema)), strict=True)
                        for path in _leaf_paths(field.type, (at,))]  # fmt: skip

    def add(self, rows: pa.Table) -> None:
        """Take in the rows of a row group."""
        for bounds in self._bounds:
            bounds.add(rows)

    def columns(self, footer: pq.FileMetaData) -> tuple[ColumnMetrics, ...]:
        """Join them with what the finished file's footer counts."""
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        return tuple(
            _column([group.column(number) for group in groups], footer.schema.column(number).path, bounds)
            for number, bounds in enumerate(self._bounds)
        )


def _column(chunks: Sequence[pq.ColumnChunkMetaData], path: str, bounds: LeafBounds) -> ColumnMetrics:
    return ColumnMetrics(
        path=path,
        size=sum(chunk.total_compressed_size for chunk in chunks),
        values=sum(chunk.num_values for chunk in chunks),
        nulls=sum(chunk.statistics.null_count for chunk in chunks),
        nans=bounds.nans,
        lower=bounds.lower,
        upper=bounds.upper,
    )


def _leaf_paths(kind: pa.DataType, path: tuple[int, ...]) -> Iterator[tuple[int, ...] | None]:
    """Yield the path of each Parquet leaf in order; None where it has no bounds: below lists and maps, or unordered."""
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _leaf_paths(kind.field(number).type, (*path, number))
    elif kind.num_fields:
        for number in range(kind.num_fields):
            yield from (None for _ in _leaf_paths(kind.field(number).type, path))
    else:
        yield path if _is_ordered(kind) else None


def _is_ordered(kind: pa.DataType) -> bool:
    """Tell whether `min_max` knows the type."""
    try:
        pc.min_max(pa.nulls(0, kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind))
    except pa.ArrowNotImplementedError:
        return False
    return True
