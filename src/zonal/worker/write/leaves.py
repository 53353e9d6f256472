"""List the leaf columns of rows in Parquet's order, and find those that hold a NaN or a negative zero.

Arrow's Parquet writer leaves NaN out of minima and maxima, and engines for which NaN is the greatest number, such as
Spark and DuckDB, trust them: a maximum of 5 hides a NaN from `x > 9`. So a leaf that holds one goes without statistics.
Spark's Parquet reader, and Iceberg's, look literals up in dictionaries, where -0.0 isn't 0.0: a dictionary with -0.0
alone hides its rows from `x = 0` and `x >= 0`. So a leaf that holds one goes without a dictionary.
Both must be known before the file is begun: the worker that reads the rows finds such leaves and sends their numbers
with the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class ArrowLeaf:
    """A leaf column of a Parquet file."""

    path: tuple[int, ...]
    """Positions from the top-level column down, as Arrow counts the children of its types."""
    kind: pa.DataType
    repeated: bool
    """Whether it is below a list or a map."""

    @property
    def is_float(self) -> bool:
        """Whether it may hold a NaN."""
        return bool(pa.types.is_floating(self.kind))

    def values(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return the leaf's values in these rows, with lists flattened; a value below a null struct is null."""
        first, *below = self.path
        chunks = rows.column(first).chunks
        for position in below:
            chunks = [_child(chunk, position) for chunk in chunks]
        return pa.chunked_array(chunks, chunks[0].type if chunks else self.kind)


@lru_cache(maxsize=8)
def leaves_of(schema: pa.Schema) -> tuple[ArrowLeaf, ...]:
    """List the leaves of a schema in the order in which Parquet stores them."""
    return tuple(leaf for at, field in enumerate(schema) for leaf in _below(field.type, (at,), repeated=False))


@dataclass(frozen=True)
class Odd:
    """Numbers of the float leaves that hold values which readers skip wrongly."""

    nans: frozenset[int] = frozenset()
    zeros: frozenset[int] = frozenset()
    """Leaves with a negative zero."""

    def __or__(self, other: "Odd") -> "Odd":
        return Odd(self.nans | other.nans, self.zeros | other.zeros)


def odd_leaves(rows: pa.Table, among: Odd | None = None) -> Odd:
    """Return the leaves that hold a NaN or a negative zero in these rows, of all leaves or those in `among`."""
    leaves = leaves_of(rows.schema)
    floats = frozenset(number for number, leaf in enumerate(leaves) if leaf.is_float)
    searched = among or Odd(floats, floats)
    values = {number: leaves[number].values(rows) for number in searched.nans | searched.zeros}
    return Odd(
        frozenset(number for number in searched.nans if _has_nan(values[number])),
        frozenset(number for number in searched.zeros if _has_negative_zero(values[number])),
    )


def not_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tell which values are NaN."""
    return pc.is_nan(_known_to_kernels(values))


def _has_nan(values: pa.ChunkedArray) -> bool:
    """Tell whether a value is NaN; their sum, which needs no memory, decides whether to look at each of them."""
    total = pc.sum(_known_to_kernels(values)).as_py()
    if total is None or total == total:  # noqa: PLR0124 - a sum of NaN: one value is NaN, or there are infinities of both signs
        return False
    return bool(pc.any(not_numbers(values)).as_py())


def _has_negative_zero(values: pa.ChunkedArray) -> bool:
    """Tell whether a value is -0.0: as an integer, the bits of -0.0 (only the sign bit is set) are the least number."""
    bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[values.type.bit_width]
    least = -(2 ** (bits.bit_width - 1))
    return any(pc.min(chunk.view(bits)).as_py() == least for chunk in values.chunks)


def _known_to_kernels(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cast float16 to float32: Arrow has no kernels for float16."""
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def _below(kind: pa.DataType, path: tuple[int, ...], *, repeated: bool) -> Iterator[ArrowLeaf]:
    if not kind.num_fields:
        yield ArrowLeaf(path, kind, repeated)
    for position in range(kind.num_fields):
        inside = repeated or not pa.types.is_struct(kind)
        yield from _below(kind.field(position).type, (*path, position), repeated=inside)


def _child(array: pa.Array, position: int) -> pa.Array:
    if pa.types.is_struct(array.type):
        return pc.struct_field(array, [position])
    if pa.types.is_map(array.type):  # `flatten` doesn't take maps, but a map is a list of pairs
        array = array.view(pa.list_(array.type.field(0)))
    return array.flatten()
