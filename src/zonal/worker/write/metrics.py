"""Gather the statistics of a new file while its row groups are written.

Counts and sizes come from the file's own footer. Bounds and counts of NaN come from the rows, because a footer leaves
out long bounds and counts no NaN; so do the counts of nulls in leaves without statistics.
"""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zonal.errors import ZonalError, quoted
from zonal.plan.rewrite import ColumnMetrics
from zonal.worker.write.leaves import ArrowLeaf, leaves_of, not_numbers


class LeafMetrics:
    """Bounds and counts of one leaf over the rows added so far; nulls and NaN are not in the bounds."""

    def __init__(self, leaf: ArrowLeaf, *, counts_nulls: bool) -> None:
        self._leaf = leaf
        self._bounded = not leaf.repeated and _is_ordered(leaf.kind)
        self._lows: list[pa.Scalar] = []
        self._highs: list[pa.Scalar] = []
        self.nans = 0
        self.counts_nulls = counts_nulls
        self.valid = 0
        """Values that aren't null; counted only with `counts_nulls`."""

    def add(self, rows: pa.Table) -> None:
        """Take in the rows of a row group."""
        if not (self._bounded or self._leaf.is_float or self.counts_nulls):
            return
        values = self._leaf.values(rows)
        if self.counts_nulls:
            self.valid += len(values) - values.null_count
        if self._leaf.is_float:
            undefined = not_numbers(values)
            if nans := pc.sum(undefined).as_py() or 0:
                self.nans += nans
                values = values.filter(pc.invert(undefined))
        if self._bounded:
            self._widen(values)

    def _widen(self, values: pa.ChunkedArray) -> None:
        if isinstance(values.type, pa.BaseExtensionType):  # such as UUID: `min_max` takes only the storage type
            values = pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type)
        if pa.types.is_dictionary(values.type):
            values = pc.unique(values).dictionary_decode()
        bounds = pc.min_max(values)
        if bounds["min"].is_valid:
            self._lows.append(bounds["min"])
            self._highs.append(bounds["max"])

    @property
    def lower(self) -> pa.Scalar | None:
        """Return the least value."""
        return _signed_zero(pc.min_max(pa.array(self._lows))["min"], -0.0) if self._lows else None

    @property
    def upper(self) -> pa.Scalar | None:
        """Return the greatest value."""
        return _signed_zero(pc.min_max(pa.array(self._highs))["max"], 0.0) if self._highs else None


def _signed_zero(bound: pa.Scalar, zero: float) -> pa.Scalar:
    """Make a bound of zero hold for both zeros: some readers order -0.0 below 0.0."""
    if pa.types.is_floating(bound.type) and bound.as_py() == 0:
        return pa.scalar(zero, bound.type)
    return bound


class FileMetrics:
    """Statistics of all leaf columns of one file; the footer has no statistics of the leaves in `uncounted`."""

    def __init__(self, schema: pa.Schema, *, uncounted: Collection[int] = ()) -> None:
        self._leaves = [
            # A column of the null type has no statistics either.
            LeafMetrics(leaf, counts_nulls=number in uncounted or pa.types.is_null(leaf.kind))
            for number, leaf in enumerate(leaves_of(schema))
        ]

    def add(self, rows: pa.Table) -> None:
        """Take in the rows of a row group."""
        for leaf in self._leaves:
            leaf.add(rows)

    def columns(self, footer: pq.FileMetaData) -> tuple[ColumnMetrics, ...]:
        """Return the metrics of each leaf, with the counts and sizes of the finished file's footer."""
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        return tuple(
            _column([group.column(number) for group in groups], footer.schema.column(number).path, leaf)
            for number, leaf in enumerate(self._leaves)
        )


def _column(chunks: Sequence[pq.ColumnChunkMetaData], path: str, leaf: LeafMetrics) -> ColumnMetrics:
    values = sum(chunk.num_values for chunk in chunks)
    return ColumnMetrics(
        path=path,
        size=sum(chunk.total_compressed_size for chunk in chunks),
        values=values,
        # As in a footer: an empty list counts as a null, too.
        nulls=values - leaf.valid if leaf.counts_nulls else sum(chunk.statistics.null_count for chunk in chunks),
        nans=leaf.nans,
        lower=leaf.lower,
        upper=leaf.upper,
    )


def refuse_hidden_nans(path: str, footer: pq.FileMetaData, columns: Sequence[ColumnMetrics]) -> None:
    """Raise an error if a leaf with statistics holds a NaN, which engines would miss."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for number, column in enumerate(columns):
        if column.nans and any(group.column(number).is_stats_set for group in groups):
            raise ZonalError(
                f"Column {quoted(column.path)} of the new file {quoted(path, limit=300)} holds {column.nans:,} NaN, "
                "which its statistics don't tell of. Please report this."
            )


def _is_ordered(kind: pa.DataType) -> bool:
    """Tell whether `min_max` takes the type."""
    try:
        pc.min_max(pa.nulls(0, kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind))
    except pa.ArrowNotImplementedError:
        return False
    return True
