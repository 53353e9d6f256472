"""Find rows of new files by their values: rows that are equal in all columns can stand for each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.plan.rewrite import ColumnMetrics, Source, Written
from zonal.values.arrays import BoolArray, Int64Array, UInt64Array
from zonal.values.checksum import row_hashes
from zonal.values.equality import equal_rows
from zonal.values.selection import take_rows
from zonal.worker.read.reader import LiveRows, Reader


def find_twins(
    reader: Reader, rows: pa.Table, files: Sequence[Written], keys: Sequence[str]
) -> Mapping[str, Int64Array] | None:
    """Return positions of new files, by path, whose rows are these rows: one position per row, none twice.

    Rows are equal if all their bits are, with nulls in the same places. None is returned unless there is an equal row
    for each. `keys` are columns by whose bounds files are passed over, and whose values are read first.
    """
    search = _Search(row_hashes(rows))
    hashes_of_keys = row_hashes(rows.select(keys)) if keys else None
    for file in files:
        if search.done:
            break
        if not _might_hold(file, rows, keys):
            continue
        source = Source(-1, file.path, file.size, file.rows, file.partition)
        for found in _candidates(reader, source, keys, hashes_of_keys):
            search.look_at(file.path, found)
    return search.proved(rows)


def _candidates(reader: Reader, source: Source, keys: Sequence[str], wanted: UInt64Array | None) -> Iterator[LiveRows]:
    """Yield the rows of the row groups that have one with the key values of a wanted one."""
    for group in range(len(reader.row_groups(source))):
        if wanted is not None:
            read = reader.rows(source, [group], keys)
            if not any(np.isin(row_hashes(part.data), wanted).any() for part in read):
                continue
        yield from reader.rows(source, [group])


@dataclass
class _Search:
    """Wanted rows by their hashes, and those that were found."""

    hashes: UInt64Array
    known: UInt64Array = field(init=False)
    left: Int64Array = field(init=False)
    """How many rows of each known hash are still to be found."""
    paths: list[str] = field(default_factory=list)
    parts: list[pa.Table] = field(default_factory=list)
    positions: list[Int64Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known, counts = np.unique(self.hashes, return_counts=True)
        self.left = counts.astype(np.int64)

    @property
    def done(self) -> bool:
        return not self.left.any()

    def look_at(self, path: str, rows: LiveRows) -> None:
        """Keep the first rows with each hash, as many as are missing."""
        hashes = row_hashes(rows.data)
        hits = np.flatnonzero(np.isin(hashes, self.known[self.left > 0]))
        hits = hits[np.argsort(hashes[hits], kind="stable")]
        of = np.searchsorted(self.known, hashes[hits])
        rank = np.arange(len(hits)) - np.searchsorted(of, of)
        kept = rank < self.left[of]
        if not kept.any():
            return
        np.subtract.at(self.left, of[kept], 1)
        self.paths.append(path)
        self.parts.append(take_rows(rows.data, hits[kept]))
        self.positions.append(rows.positions[hits[kept]])

    def proved(self, rows: pa.Table) -> Mapping[str, Int64Array] | None:
        """Return the positions if each wanted row has one of its own whose row is equal in every bit."""
        if not self.done:
            return None
        found = pa.concat_tables(self.parts)
        pairs = [take_rows(each, np.argsort(row_hashes(each), kind="stable")) for each in (rows, found)]
        if found.num_rows != rows.num_rows or not equal_rows(*pairs).all():
            return None
        positions: dict[str, Int64Array] = {}
        for path, part in zip(self.paths, self.positions, strict=True):
            positions[path] = np.concatenate([positions.get(path, np.empty(0, np.int64)), part])
        unique = {path: np.unique(part) for path, part in positions.items()}
        return unique if sum(map(len, unique.values())) == rows.num_rows else None


def _might_hold(file: Written, rows: pa.Table, keys: Sequence[str]) -> bool:
    """Tell whether a new file can have one of the rows, by the bounds of its columns."""
    metrics = {column.path: column for column in file.columns}
    possible = np.ones(rows.num_rows, np.bool_)
    for name in keys:
        if name in metrics:
            possible &= _within(rows[name], metrics[name])
    return bool(possible.any())


def _within(column: pa.ChunkedArray, metrics: ColumnMetrics) -> BoolArray:
    """Return which values lie within the bounds; null and NaN, of which bounds say nothing, always do."""
    everything = np.ones(len(column), np.bool_)
    if metrics.lower is None or metrics.upper is None:
        return everything
    try:
        outside = pc.or_(pc.less(column, metrics.lower), pc.greater(column, metrics.upper))
    except pa.ArrowException:
        return everything
    inside: BoolArray = ~pc.fill_null(outside, False).to_numpy()
    return inside
