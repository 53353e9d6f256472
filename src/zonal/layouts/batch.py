"""Clustering of Arrow data in memory: the same rows, in the order of a layout."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.arguments import check_arguments
from zonal.errors import LayoutError, ZonalAdvice, ZonalError
from zonal.layouts.cuts import LARGEST, cuts_within, key_cuts
from zonal.layouts.keys import exact_words, key_words, tie_columns, tie_word
from zonal.layouts.layout import CURVES, Layout
from zonal.layouts.ranks import Ranks, bind
from zonal.layouts.sort import run_starts, stable_order
from zonal.values.arrays import Int64Array, UInt64Array
from zonal.values.selection import take_rows

Arrow = TypeVar("Arrow", bound=pa.RecordBatch | pa.Table)

SAMPLE_ROWS = 262_144
"""Rows that ranks are fitted on: 64 per quantile."""


@dataclass(frozen=True, eq=False)
class Clustered(Generic[Arrow]):
    """Rows in clustered order, with their keys and the cuts of files and row groups.

    Example:
        >>> rows = pa.table({"x": [3, 0, 2, 1]})
        >>> zonal.cluster_batch(rows, layout="linear(x)", file_rows=2, detail=True).files.tolist()
        [0, 2]
    """

    data: Arrow
    layout: Layout
    ranks: Ranks
    keys: tuple[UInt64Array, ...]
    """The rows' keys in their new order, as one word or two."""
    order: Int64Array
    """For each row its number in the input."""
    files: Int64Array
    """The row at which each file begins."""
    row_groups: tuple[Int64Array, ...]
    """For each file the rows, counted from the file's first, at which its row groups begin."""


@overload
def cluster_batch(
    data: Arrow, by: str | Sequence[str] | None = None, *, layout: str | Layout = "zorder", ranks: Ranks | None = None,
    file_rows: int | None = None, detail: Literal[False] = False,
) -> Arrow: ...  # fmt: skip
@overload
def cluster_batch(
    data: Arrow, by: str | Sequence[str] | None = None, *, layout: str | Layout = "zorder", ranks: Ranks | None = None,
    file_rows: int | None = None, detail: Literal[True],
) -> Clustered[Arrow]: ...  # fmt: skip
def cluster_batch(
    data: Arrow,
    by: str | Sequence[str] | None = None,
    *,
    layout: str | Layout = "zorder",
    ranks: Ranks | None = None,
    file_rows: int | None = None,
    detail: bool = False,
) -> Arrow | Clustered[Arrow]:
    """Return the same rows in clustered order.

    Rows of equal keys keep their order, except where they are more than a file holds: the other columns order these.

    Arguments:
        data: a pyarrow table or record batch.
        by: the columns, where `layout` is a curve's name.
        layout: a curve's name, or a whole layout as text or value.
        ranks: those of an earlier batch, so that keys can be compared with its keys.
        file_rows: rows of a file; without, as many as have the layout's target size in memory.
        detail: also return the keys, the ranks and the cuts.

    Example:
        >>> rows = pa.table({"x": [3, 0, 2, 1], "y": [0, 1, 1, 0]})
        >>> zonal.cluster_batch(rows, by=["x", "y"]).to_pydict()
        {'x': [1, 0, 3, 2], 'y': [0, 1, 0, 1]}
    """
    check_arguments(cluster_batch, locals())
    if not isinstance(data, pa.RecordBatch | pa.Table):
        raise ZonalError(f"cluster_batch takes a pyarrow RecordBatch or Table, not {type(data).__name__}.")
    chosen = _layout(by, layout)
    bind(data.schema, chosen.columns)
    for advice in chosen.advice():
        warnings.warn(advice, ZonalAdvice, stacklevel=2)
    clustered = _cluster(data, chosen, ranks, file_rows)
    return clustered if detail else clustered.data


def _layout(by: str | Sequence[str] | None, layout: str | Layout) -> Layout:
    if by is None:
        if isinstance(layout, str):
            if layout in CURVES:
                raise LayoutError(f"Say which columns to cluster by: by=[…], or layout='{layout}(column, …)'.")
            return Layout.parse(layout)
        return layout
    if isinstance(layout, Layout) or "(" in layout:
        name = layout if isinstance(layout, str) else layout.short
        raise LayoutError(f"The layout {name} names its columns already: leave out by={by!r}.")
    return Layout(layout, (by,) if isinstance(by, str) else tuple(by))


def _cluster(data: Arrow, layout: Layout, ranks: Ranks | None, file_rows: int | None) -> Clustered[Arrow]:
    if file_rows is None:
        file_rows = max(1, layout.file_bytes * data.num_rows // max(data.nbytes, 1))
    elif file_rows < 1:
        raise ZonalError(f"file_rows={file_rows} is not a positive number of rows.")
    if ranks is None:
        ranks = Ranks.fit(_sample(data, layout.curve_columns), layout.curve_columns)
    words = key_words(data, layout, ranks)
    linear = layout.kind == "linear"
    sort_words: Sequence[UInt64Array] = exact_words(data, layout.columns) if linear else words
    order = stable_order(sort_words)
    ordered = tuple(word[order] for word in sort_words)
    ties = _split_heavy(data, layout, ordered, order, file_rows)
    keys = tuple(word[order] for word in words) if linear else ordered  # only rows of equal keys were moved
    # Within one code of a column, a sort by values doesn't follow the codes of the columns after it.
    cut_words: list[UInt64Array] = [*(_sorted(keys) if linear else keys), *([] if ties is None else [ties])]
    files = key_cuts(layout.kind, cut_words, file_rows)
    return Clustered(
        data=take_rows(data, order),
        layout=layout,
        ranks=ranks,
        keys=keys,
        order=order,
        files=files,
        row_groups=tuple(cuts_within(cut_words, files, layout.row_group_rows, kind=layout.kind)),
    )


def _sorted(words: Sequence[UInt64Array]) -> list[UInt64Array]:
    order = stable_order(words)
    return [word[order] for word in words]


def _sample(data: Arrow, columns: Sequence[str]) -> Arrow:
    if data.num_rows <= SAMPLE_ROWS:
        return data
    rows = np.random.default_rng(0).choice(data.num_rows, SAMPLE_ROWS, replace=False)
    needed = sorted({path[0] for path in bind(data.schema, columns).values()})
    keys: Arrow = data.select(needed)
    return take_rows(keys, np.sort(rows))


def _split_heavy(
    data: Arrow, layout: Layout, words: Sequence[UInt64Array], order: Int64Array, file_rows: int
) -> UInt64Array | None:
    """Order the rows of each key that fills more than a file by the other columns, in place; return their tie words."""
    heavy = _heavy_runs(words, LARGEST * file_rows)
    if not len(heavy):
        return None
    ties = np.zeros(len(order), np.uint64)
    for start, end in heavy:
        rows = order[start:end]
        position = (np.arange(end - start) * 2**32 // (end - start)).astype(np.uint32)
        tied = take_rows(data, rows)
        tie = tie_word(tied, Ranks.fit(tied, tie_columns(tied.schema, layout)), position)
        by_tie = stable_order([tie])
        order[start:end] = rows[by_tie]
        ties[start:end] = tie[by_tie]
    return ties


def _heavy_runs(words: Sequence[UInt64Array], most: float) -> npt.NDArray[np.int64]:
    """Return (start, end) of the runs of equal keys with more than `most` rows."""
    starts = run_starts(words)
    runs: npt.NDArray[np.int64] = np.stack([starts, np.append(starts[1:], len(words[0]))[: len(starts)]], axis=1)
    return runs[runs[:, 1] - runs[:, 0] > most]
