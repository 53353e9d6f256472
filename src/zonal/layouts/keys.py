"""Sort keys of Arrow rows under a layout: the ranks of each column, then the curve, or the path through a tree."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zonal.layouts import curves
from zonal.layouts.layout import TREE, Layout
from zonal.layouts.ranks import Ranks, bind
from zonal.layouts.tree import tree_of
from zonal.values.arrays import UInt64Array
from zonal.values.columns import find, leaf, leaf_type, leaves
from zonal.values.words import decoded_array, family_of, validity, words_in, words_of

ArrowData: TypeAlias = "pa.RecordBatch | pa.Table"

_TIE_COLUMNS, _TIE_BITS = 4, 8


def key_words(data: ArrowData, layout: Layout, ranks: Ranks) -> tuple[UInt64Array, ...]:
    """Return the key of each row: one word, or two if the layout asks for more than 64 bits.

    A tree's key is the path to the row's leaf, then a word of the curve that orders the rows within the leaf.
    """
    bits = layout.bits_per_column
    codes = [
        ranks.codes(data, column, bits, None if layout.salt is None else layout.salt + number)
        for number, column in enumerate(layout.curve_columns)
    ]
    if layout.kind == TREE:
        return (tree_of(layout).paths(data), *curves.encode("zorder", codes, bits))
    return curves.encode(layout.kind, codes, bits)


def tie_columns(schema: pa.Schema, layout: Layout) -> list[str]:
    """Name the columns that tell rows of equal keys apart: the first ones with an order outside of the curve."""
    others = [name for name in leaves(schema) if name not in layout.curve_columns]
    return [name for name in others if _is_rankable(schema, name)][:_TIE_COLUMNS]


def tie_word(data: ArrowData, ties: Ranks, row_hash: npt.NDArray[np.uint32]) -> UInt64Array:
    """Return a second key for rows whose keys are equal: the columns of `ties`, then `row_hash`."""
    tie = row_hash.astype(np.uint64)
    if len(ties):
        (key,) = curves.encode("zorder", [ties.codes(data, name, _TIE_BITS) for name in ties], _TIE_BITS)
        tie |= key << np.uint64(32)
    return tie


def exact_words(data: ArrowData, columns: Sequence[str]) -> list[UInt64Array]:
    """Return words whose order is that of the columns' exact values, nulls first and NaN last."""
    paths = bind(data.schema, columns)
    return [word for path in paths.values() for word in _exact_words(leaf(data, path))]


def _exact_words(column: pa.ChunkedArray) -> list[UInt64Array]:
    family = str(family_of(column.type))
    chunks = [decoded_array(chunk) for chunk in column.chunks]
    if family == "bytes":
        whole = pa.chunked_array([chunk.cast(pa.large_binary()) for chunk in chunks], pa.large_binary())
        words = [pc.rank(whole, tiebreaker="dense").to_numpy().astype(np.uint64)]
    else:
        each = [words_of(chunk, family) for chunk in chunks]
        words = [
            np.concatenate([part.at(depth) for part in each] or [np.zeros(0, np.uint64)])
            for depth in range(words_in(family))
        ]
    if not any(chunk.null_count for chunk in chunks):
        return words
    valid = np.concatenate([_valid(chunk) for chunk in chunks])
    return [valid.astype(np.uint64), *(np.where(valid, word, np.uint64(0)) for word in words)]


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    known = validity(array)
    return np.ones(len(array), np.bool_) if known is None else known


def _is_rankable(schema: pa.Schema, name: str) -> bool:
    if schema.names.count(name.partition(".")[0]) > 1:
        return False
    return family_of(leaf_type(schema, find(schema, name))) not in (None, "null")
