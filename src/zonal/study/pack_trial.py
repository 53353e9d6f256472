"""Choose by trial how rows are stored inside of row groups, and predict how many bytes a row takes then.

The trial's rows are neighbors in the layout's order, as those of a new row group are; but of a large table only some
rows are read, so neighbors among them are further apart than they will be. Bytes per row are therefore measured at two
densities, and extrapolated to that of the table.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.layouts.layout import Layout
from zonal.layouts.sort import stable_order
from zonal.plan.pack import DICTIONARY, PLAIN, Packing
from zonal.plan.rewrite import Writing
from zonal.study.page_reads import PageShare, page_share
from zonal.values.arrays import UInt64Array
from zonal.values.selection import take_rows
from zonal.worker.write.inner_order import is_sortable, sorted_inside
from zonal.worker.write.writer import RowGroups, trial_sizes

SPARSER = 4
"""One of so many rows is taken where rows that are further apart are measured."""
PAGES_COUNT = 0.5
"""Share of what is read by engines that skip pages by the page index; others read whole column chunks."""
ORDER_VALUES, LEAST_ROWS = 500_000, 8192
"""Values that are written to try one order, and the least number of rows."""
GROUPS_ROWS, MOST_GROUPS = 131_072, 8
"""Rows of all row groups that are tried at once, and the most of them."""
REPEATS = 32
"""A column has few values in a row group if each is there so often on average."""
FEW_COLUMNS, KEY_COLUMNS = 4, 3
"""Columns of few values, and key columns, that orders are made of."""
LEAST_GAIN = 0.95
"""An order is taken for what is read under it, if that is at most so much of what is read in the key's order."""
FURTHER, SMALLEST = 0.5, 0.6
"""How much of what nearer neighbors save is expected again of those that are nearer still; the least share of bytes."""


@dataclass(frozen=True, eq=False)
class TrialRows:
    """Rows of one partition that were read for a trial."""

    data: pa.Table
    words: Sequence[UInt64Array]
    """The rows' keys."""
    total: int
    """Rows of the partition."""
    few_valued: Sequence[str]
    """Columns of text that workers have dictionary-encoded."""


@dataclass(frozen=True)
class Packed:
    """What a trial found."""

    packing: Packing
    row_bytes: float
    """Bytes that a row takes in a new file."""
    row_seconds: float
    """Processor time per row of putting rows in order and writing them."""


def pack(
    rows: TrialRows, writing: Writing, layout: Layout, *, keep_order: bool, pages: PageShare | None = None
) -> Packed:
    """Choose order and encodings for the fewest bytes; with `keep_order`, rows stay in the key's order.

    Orders are weighed by the `pages` that are read under them; without, by look-ups of the layout's columns.
    """
    if not rows.data.num_rows:
        return Packed(Packing(), 1.0, 0.0)
    bare = replace(writing, bloom_columns=())
    # A linear layout declares the order of its rows to readers; what is tried has another one.
    neutral = replace(layout, kind="zorder") if layout.kind == "linear" else layout
    ordered = _Ordered(rows)
    few = ordered.groups(max(ORDER_VALUES // max(len(writing.schema), 1), LEAST_ROWS))
    usual = _smallest(few, bare, neutral)
    group_rows = _group_rows(layout, sum(size for size, _ in usual.values()) / few.data.num_rows)
    chosen: tuple[str, ...] = ()
    if usual and not (keep_order or layout.kind == "linear"):
        chosen = _best_order(few, bare, neutral, _names(usual), pages or page_share((), {}, layout.curve_columns))
    packing = Packing(chosen, _names(_smallest(_in_order(ordered.groups(group_rows), chosen), bare, neutral)))
    return Packed(packing, *_costs(ordered, group_rows, replace(writing, packing=packing), neutral))


def _group_rows(layout: Layout, row_bytes: float) -> int:
    """Return how many rows a row group has: fewer than the layout allows where files are small."""
    return int(min(layout.row_group_rows, max(layout.file_bytes / max(row_bytes, 1e-3), 64)))


class _Ordered:
    """The trial's rows in the layout's order, from which row groups are cut like those of new files."""

    def __init__(self, rows: TrialRows) -> None:
        self._rows = rows
        self._order = stable_order(rows.words)
        self.missing = math.log2(max(rows.total / len(self._order), 1.0))
        """How many times neighbors in the table are nearer than in the trial, as a power of two."""

    def __len__(self) -> int:
        return len(self._order)

    def groups(self, rows: int, *, step: int = 1) -> RowGroups:
        """Return row groups of so many rows from several places, in each of which every `step`-th row is taken."""
        span = min(rows * step, len(self))
        count = max(1, min(len(self) // span, GROUPS_ROWS // rows, MOST_GROUPS))
        firsts = [int((len(self) - span) * (number + 0.5) / count) for number in range(count)]
        taken = [self._order[first : first + span : step] for first in firsts]
        starts = np.cumsum([0, *map(len, taken[:-1])]).tolist()
        data = take_rows(self._rows.data, np.concatenate(taken))
        return RowGroups(_encoded(data, self._rows.few_valued), starts)


def _in_order(groups: RowGroups, columns: Sequence[str]) -> RowGroups:
    """Sort the rows by these columns inside of their row groups."""
    if not columns:
        return groups
    order = sorted_inside(np.arange(groups.data.num_rows), groups.starts, groups.data, columns)
    return RowGroups(take_rows(groups.data, order), groups.starts)


def _encoded(data: pa.Table, names: Sequence[str]) -> pa.Table:
    for name in names:
        at = data.schema.get_field_index(name)
        column = data.column(at).combine_chunks().dictionary_encode()
        data = data.set_column(at, data.schema.field(at).with_type(column.type), column)
    return data


# --- encodings -----------------------------------------------------------------------------------------------------

Smallest = Mapping[str, tuple[int, str]]
"""Bytes and encoding of each leaf, by its path."""


def _smallest(groups: RowGroups, writing: Writing, layout: Layout) -> Smallest:
    """Return the smallest encoding of each column that may be encoded in several ways."""
    best: dict[str, tuple[int, str]] = {}
    for encodings in _trials(writing.schema, modern=writing.encodings == "modern"):
        for path, size in _sizes(groups, writing, layout, encodings).items():
            if path not in best or size < best[path][0]:
                best[path] = size, encodings[path]
    return best


def _names(sizes: Smallest) -> dict[str, str]:
    return {path: encoding for path, (_, encoding) in sizes.items()}


def _sizes(groups: RowGroups, writing: Writing, layout: Layout, encodings: Mapping[str, str]) -> Mapping[str, int]:
    """Return the bytes of these columns, each in its encoding."""
    places = [at for at, field in enumerate(writing.schema) if field.name in encodings]
    schema = pa.schema([writing.schema.field(at) for at in places])
    some = replace(writing, schema=schema, packing=Packing(encodings=encodings))
    _, sizes = trial_sizes(RowGroups(groups.data.select(places), groups.starts), some, layout)
    return sizes


def _trials(schema: pa.Schema, *, modern: bool) -> Iterator[dict[str, str]]:
    """Yield encodings to try, by column; nested columns are left as they are."""
    names = schema.names
    flat = [field for field in schema if not field.type.num_fields and names.count(field.name) == 1]
    kinds = [(PLAIN, DICTIONARY, *(_modern(field.type) if modern else ())) for field in flat]
    for number in range(max(map(len, kinds), default=0)):
        yield {field.name: known[number] for field, known in zip(flat, kinds, strict=True) if len(known) > number}


def _modern(kind: pa.DataType) -> tuple[str, ...]:
    """Return the newer encodings of a type that Spark, DuckDB, Polars and delta-rs read alike."""
    types = pa.types
    if types.is_signed_integer(kind) or (types.is_temporal(kind) and not types.is_duration(kind)):
        return ("DELTA_BINARY_PACKED",)
    if types.is_decimal128(kind) and kind.precision <= 18:  # stored as an integer
        return ("DELTA_BINARY_PACKED",)
    if types.is_string(kind) or types.is_binary(kind):
        return ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
    return ("RLE",) if types.is_boolean(kind) else ()


# --- orders --------------------------------------------------------------------------------------------------------


def _best_order(
    groups: RowGroups, writing: Writing, layout: Layout, usual: Mapping[str, str], pages: PageShare
) -> tuple[str, ...]:
    """Return the order under which least is read, or none where that is the key's own.

    `usual` are the smallest encodings in the key's order; the column that leads another order gets a newer one.
    """
    newer = writing.encodings == "modern"

    def read(columns: Sequence[str]) -> float:
        inside = _in_order(groups, columns)
        encodings = dict(usual)
        if newer and columns:
            leading = writing.schema.field(groups.data.schema.get_field_index(columns[0]))  # its name may be another
            encodings[leading.name] = next(iter(_modern(leading.type)), usual[leading.name])
        size = sum(_sizes(inside, writing, layout, encodings).values())
        return size * (1 - PAGES_COUNT + PAGES_COUNT * pages(inside))

    limit = LEAST_GAIN * read(())
    tried = {columns: read(columns) for columns in _orders(groups.data, layout)}
    best = min(tried, key=lambda columns: tried[columns], default=())
    return best if tried.get(best, math.inf) <= limit else ()


def _orders(data: pa.Table, layout: Layout) -> Iterator[tuple[str, ...]]:
    """Yield orders to try: columns of few values first, each key column first, and the one of most values first."""
    names = data.schema.names
    flat = [
        (column, field.name)
        for field, column in zip(data.schema, data.columns, strict=True)
        if is_sortable(field.type) and names.count(field.name) == 1
    ]
    distinct = sorted((_distinct(column), name) for column, name in flat)
    few = [name for count, name in distinct if 1 < count <= data.num_rows // REPEATS][:FEW_COLUMNS]
    sortable = {name for _, name in distinct}
    keys = [name for name in layout.curve_columns if name in sortable][:KEY_COLUMNS]
    most = [name for _, name in distinct[-1:] if name not in keys]
    if few:
        yield tuple(few)
    for name in (*keys, *most):
        yield (name, *(other for other in few if other != name))


def _distinct(column: pa.ChunkedArray) -> int:
    try:
        return len(pc.unique(column))
    except pa.ArrowNotImplementedError:  # for run-end encoding, for example
        return len(column)


# --- costs of a row ------------------------------------------------------------------------------------------------


def _costs(ordered: _Ordered, group_rows: int, writing: Writing, layout: Layout) -> tuple[float, float]:
    """Predict bytes and processor time of a row where all rows of the partition are there."""
    columns = writing.packing.order if writing.packing is not None else ()
    one_per_file = group_rows < layout.row_group_rows

    def row_bytes(step: int) -> tuple[float, int]:
        """Return the bytes per row of new files, and how many rows were written to tell."""
        groups = _in_order(ordered.groups(group_rows, step=step), columns)
        files = [RowGroups(group, [0]) for group in groups] if one_per_file else [groups]
        tried = [trial_sizes(file, writing, layout) for file in files]
        rows = groups.data.num_rows
        values = sum(sum(leaves.values()) for _, leaves in tried)
        # Footers and indexes are there once per file, which may have more rows than could be tried.
        around = (sum(size for size, _ in tried) - values) / len(files)
        return values / rows + around / (group_rows if one_per_file else rows), rows

    began = time.process_time()
    dense, rows = row_bytes(1)
    seconds = (time.process_time() - began) / rows
    if not ordered.missing or len(ordered) < SPARSER * group_rows:
        return dense, seconds
    sparse, _ = row_bytes(SPARSER)
    slope = FURTHER * min(dense - sparse, 0.0) / math.log2(SPARSER)
    predicted: float = max(dense + slope * ordered.missing, SMALLEST * dense)
    return predicted, seconds
