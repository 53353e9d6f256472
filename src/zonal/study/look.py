"""Sample the filtered columns of a table for advice, and measure bytes and time per row of a rewrite."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import TableError, ZonalError
from zonal.layouts.keys import key_words
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.parquet.footer import Footer, read_footer, row_group_bounds
from zonal.plan.rewrite import Scan, Source, Writing
from zonal.plan.run import new_run
from zonal.predicates.bound import Bound, Point
from zonal.skipping.index import Index, comparable_values
from zonal.snapshot import UNKNOWN, Bounds, Snapshot
from zonal.study.pack_trial import TrialRows, pack
from zonal.study.sample import OVERHEAD, look, with_codec
from zonal.tables.protocol import Readable, Table, is_rewritable, is_versioned
from zonal.values.arrays import BoolArray, Float64Array, Int64Array
from zonal.values.columns import find, leaf, leaf_type
from zonal.values.sample import Sample
from zonal.values.selection import take_rows
from zonal.values.words import family_of
from zonal.worker.exchange.dictionary import few_valued
from zonal.worker.read.data_file import RowGroupSize
from zonal.worker.read.reader import Reader

MOST_FILES, MOST_PARTITIONS = 256, 256
"""Files that are sampled, and partitions over which they are spread."""
MOST_FOOTERS = 64
"""Footers that are read for what row groups skip today."""
_TRIALS, _TRIAL_ROWS = 3, 50_000
_THREADS = 8
_ROW_SECONDS = 2e-6
"""Core-seconds per row where none could be written on trial."""


@dataclass(frozen=True, eq=False)
class Looked:
    """A sample of a table, and what it tells of all rows."""

    rows: Sample
    """One column per filtered column, by its dotted name in the table."""
    partition_rows: Mapping[int, int]
    """Number of rows of each sampled partition."""
    table_rows: int
    """Estimated number of rows of the table."""
    row_bytes: float
    row_seconds: float
    """Core-seconds per row of a rewrite on Spark."""


def look_at(table: Readable, snapshot: Snapshot, columns: Sequence[str], needed: BoolArray, rows: int) -> Looked:
    """Sample these columns from files spread over the partitions, preferring partitions that many queries need.

    `needed` tells for each partition (row) and query (column) whether the query needs it.
    """
    files = spread(snapshot, needed)
    top = list(dict.fromkeys(snapshot.schema.names[find(snapshot.schema, name)[0]] for name in columns))
    scan = table.scan(snapshot, files, columns=top)
    sample, held = look(scan, [scan.columns.get(name, name) for name in columns], rows)
    data = _flat(sample.data, {name: scan.columns.get(name, name) for name in columns})
    known = _partition_rows(snapshot, files, held)
    looked = {part: known[part] for part in held}
    row_bytes, row_seconds = _weigh(table, snapshot, files)
    total = sum(known.values())
    return Looked(
        Sample(data, sample.partition),
        looked,
        total,
        row_bytes or int(snapshot.files.sizes.sum()) / max(total, 1) or 1.0,
        (row_seconds or _ROW_SECONDS) * OVERHEAD,
    )


def row_group_shares(
    table: Table, snapshot: Snapshot, columns: Sequence[str], bounds: Sequence[Bound], shares: Float64Array
) -> Float64Array | None:
    """Return what each query reads today if row groups are skipped, too: at most its `shares` of whole files.

    The footers of some files tell which part of a kept file's bytes is read; None where none can be read.
    """
    names = [name for name in columns if name in snapshot.physical]
    files = _evenly(spread(snapshot, np.zeros((0, 0), np.bool_)), MOST_FOOTERS)
    footers = _footers(table, snapshot, files)
    groups = [group for footer in footers for group in footer.row_groups]
    if not groups:
        return None
    sizes = np.array([group.compressed_size for group in groups], np.float64)
    counts = np.array([len(footer.row_groups) for footer in footers])
    index = Index(
        np.array([group.rows for group in groups], np.int64),
        {name: _group_bounds(footers, snapshot, name) for name in names},
    )
    kept = np.array([index.might_match(bound) for bound in bounds])
    in_kept = np.repeat(np.logical_or.reduceat(kept, np.cumsum(counts) - counts, axis=1), counts, axis=1)
    left, whole = kept @ sizes, in_kept @ sizes
    usual = float(left.sum() / whole.sum()) if whole.sum() > 0 else 1.0
    ratio = np.divide(left, whole, out=np.full(len(bounds), usual), where=whole > 0)
    return np.asarray(shares * ratio, np.float64)


def _footers(table: Table, snapshot: Snapshot, files: Int64Array) -> list[Footer]:
    """Read the footers that can be read; errors of the others are reported when rows are sampled."""

    def read(file: int) -> Footer | None:
        try:
            with table.open_file(snapshot.files.paths[file].as_py()) as opened:
                return read_footer(opened)
        except TableError:
            return None

    with ThreadPoolExecutor(_THREADS) as pool:
        return [footer for footer in pool.map(read, files.tolist()) if footer and footer.row_groups]


def _group_bounds(footers: Sequence[Footer], snapshot: Snapshot, name: str) -> Bounds:
    kind = leaf_type(snapshot.schema, find(snapshot.schema, name))
    parts = [row_group_bounds(footer, snapshot.physical[name], kind) for footer in footers]
    return Bounds.joined(parts)


def _evenly(files: Int64Array, count: int) -> Int64Array:
    return files if len(files) <= count else files[(2 * np.arange(count) + 1) * len(files) // (2 * count)]


def fit_columns(snapshot: Snapshot, names: Sequence[str]) -> list[str]:
    """Return those of the columns that have an order; others can't be sampled as keys."""
    schema = snapshot.schema
    return [name for name in names if family_of(leaf_type(schema, find(schema, name))) not in (None, "null")]


def limits_of(snapshot: Snapshot, columns: Sequence[str]) -> dict[str, tuple[Point, Point]]:
    """Return the least and the greatest value of each column, as far as files have bounds."""
    limits: dict[str, tuple[Point, Point]] = {}
    for name in columns:
        bounds = snapshot.files.bounds.get(name) or snapshot.files.partition_bounds.get(name)
        if bounds is not None and len(bounds.lower) and bounds.lower.null_count < len(bounds.lower):
            ends = [pc.min_max(bounds.lower)["min"].as_py(), pc.min_max(bounds.upper)["max"].as_py()]
            least, greatest = comparable_values(pa.array(ends, bounds.lower.type)).tolist()
            limits[name] = least, greatest
    return limits


def spread(snapshot: Snapshot, needed: BoolArray) -> Int64Array:
    """Choose files evenly over the partitions; of many partitions, half are those that most queries need."""
    files = snapshot.files
    parts, counts = np.unique(files.partition, return_counts=True)
    if len(parts) > MOST_PARTITIONS:
        wanted = needed[parts].sum(axis=1) if needed.size else np.zeros(len(parts))
        order = np.argsort(-wanted, kind="stable")
        first, rest = order[: MOST_PARTITIONS // 2], np.sort(order[MOST_PARTITIONS // 2 :])
        others = rest[np.linspace(0, len(rest) - 1, MOST_PARTITIONS // 2).astype(np.int64)]
        chosen = np.sort(np.concatenate([first, others]))
        parts, counts = parts[chosen], counts[chosen]
    budget = np.maximum(1, MOST_FILES * counts // max(int(counts.sum()), 1))
    by_part = np.argsort(files.partition, kind="stable")
    starts = np.searchsorted(files.partition[by_part], parts)
    picked = [
        by_part[start + (2 * np.arange(take) + 1) * count // (2 * take)]
        if take < count
        else by_part[start : start + count]
        for start, count, take in zip(starts.tolist(), counts.tolist(), budget.tolist(), strict=True)
    ]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *picked])).astype(np.int64)


def _flat(data: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Give each leaf its own column, under the table's name of it."""
    return pa.table({name: leaf(data, find(data.schema, path)) for name, path in names.items()}).combine_chunks()


def _partition_rows(snapshot: Snapshot, looked: Int64Array, held: Mapping[int, int]) -> dict[int, int]:
    """Return the rows of all partitions; where the metadata has no count, by the rows per byte of the sampled files."""
    files = snapshot.files
    per_byte = sum(held.values()) / max(int(files.sizes[looked].sum()), 1)
    rows = np.where(files.rows == UNKNOWN, np.round(files.sizes * per_byte), files.rows).astype(np.float64)
    rows -= np.where(files.deleted == UNKNOWN, 0, files.deleted)
    parts, place = np.unique(files.partition, return_inverse=True)
    counts = np.bincount(place, np.maximum(rows, 0.0))
    return {int(part): int(count) for part, count in zip(parts, counts, strict=True)}


def _weigh(table: Readable, snapshot: Snapshot, files: Int64Array) -> tuple[float | None, float | None]:
    """Return bytes and core-seconds per row of a rewrite, from rows that are read, sorted and written on trial.

    None where there are no rows, or none that could be sorted.
    """
    chosen = _evenly(files, _TRIALS)
    scan = table.scan(snapshot, chosen)
    began = time.process_time()  # of all threads: Arrow decodes in its own
    reader = Reader(scan.reading, scan.storage)
    drawn: list[pa.Table] = []
    seen: list[RowGroupSize] = []
    read = 0
    for source in scan.sources:
        seen += (groups := reader.row_groups(source))
        data, count = _some_rows(reader, source, groups)
        drawn += [] if data is None else [data]
        read += count
    some = pa.concat_tables([pa.Table.from_batches([], scan.reading.schema), *drawn])
    drew = time.process_time()
    key = next((name for name in scan.columns.values() if _is_key(scan, name)), None)
    if not some.num_rows or key is None:
        return None, None
    layout = Layout("linear", (key,))
    words = key_words(some, layout, Ranks.fit(some, layout.columns))
    writing = with_codec(_writing(table, snapshot, scan, layout), seen)
    sorting = (time.process_time() - drew) / some.num_rows  # fewer rows than were read
    packed = pack(TrialRows(some, words, some.num_rows, few_valued(some)), writing, layout, keep_order=True)
    return packed.row_bytes, (drew - began) / max(read, 1) + sorting + packed.row_seconds


def _some_rows(reader: Reader, source: Source, groups: Sequence[RowGroupSize]) -> tuple[pa.Table | None, int]:
    filled = [number for number, size in enumerate(groups) if size.rows]
    if not filled:
        return None, 0
    (group,) = reader.rows(source, [filled[len(filled) // 2]])
    live = group.data.num_rows
    some = np.linspace(0, max(live - 1, 0), min(live, _TRIAL_ROWS)).astype(np.int64)
    return take_rows(group.data, some), group.read


def _is_key(scan: Scan, name: str) -> bool:
    schema = scan.reading.schema
    return family_of(leaf_type(schema, find(schema, name))) not in (None, "null")


def _writing(table: Readable, snapshot: Snapshot, scan: Scan, layout: Layout) -> Writing:
    """Return how the table's files are written, or defaults where zonal can't write them."""
    if is_rewritable(table) and not snapshot.blockers:
        try:
            is_pinned = is_versioned(table) and table.pinned
            return (table.newest() if is_pinned else table).writing(snapshot, layout=layout, run=new_run())
        except ZonalError:
            pass  # such as a table that takes no commits: its rows cost about the same
    return Writing(folder="", storage=scan.storage, schema=scan.reading.schema)
