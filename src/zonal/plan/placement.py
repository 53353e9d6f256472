"""Placement of a rewrite's rows: partition and key give the piece; pieces make files, and files make tasks.

A piece is what a worker sorts at a time, so its size bounds memory; a file has one or more. The cuts come from a
sample; ranks are shared by all partitions, so that keys compare across them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.layouts.cuts import LARGEST, Cuts, cuts_within, file_cuts
from zonal.layouts.keys import key_words, tie_columns, tie_word
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.layouts.sort import heaviest_key, stable_order
from zonal.values.arrays import Int32Array, Int64Array, UInt64Array
from zonal.values.sample import Sample

PIECE_BYTES = 64 * 1024**2
"""Bytes of a piece in memory: while it is sorted it is there twice, beside the task's compressed payloads."""
LEAST_TASK_BYTES = 1024**2
TASKS = 16
"""Small tables have about this many tasks, where they have as many files."""


@dataclass(frozen=True)
class Sizes:
    """Numbers and sizes of a rewrite's rows."""

    rows: Mapping[int, int]
    """Rows of each partition, without deleted ones as far as the metadata counts them."""
    row_bytes: float
    """Bytes that a row takes in a new file."""
    row_memory: float
    """Bytes that a row takes in memory."""
    row_seconds: float = 0.0
    """Processor time per row of reading, sorting and writing, measured on a trial."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Files and pieces of every partition; `place` tells where rows belong."""

    layout: Layout
    ranks: Ranks
    ties: Ranks | None
    """Ranks of further columns, which break ties where one key has more rows than a file."""
    cuts: Mapping[int, Cuts]
    """Borders between the pieces of each partition."""
    first_piece: Mapping[int, int]
    """Number of each partition's first piece."""
    file_of_piece: Int64Array
    task_of_file: Int64Array
    partition_of_file: Int64Array
    file_rows: Int64Array
    """Rows that each file is expected to have."""
    few_valued: tuple[str, ...] = ()
    """Columns that are sent as a dictionary of values and one code per row."""
    verify: bool = False
    """Whether checksums of the rows are taken where they are read and where they are written."""

    @property
    def files(self) -> int:
        """Count the files."""
        return len(self.task_of_file)

    @property
    def key_count(self) -> int:
        """Count the words of a key."""
        return len(next(iter(self.cuts.values())).borders)

    @property
    def encoded(self) -> frozenset[str]:
        """Return the columns of few values that no key is made of: they may stay as their files have them."""
        ranked = {*self.layout.columns, *(self.ties or ())}
        return frozenset(self.few_valued) - ranked

    @cached_property
    def tasks(self) -> int:
        """Count the tasks."""
        return int(self.task_of_file.max(initial=0)) + 1

    def place(
        self, data: pa.Table, partition: int, positions: Int64Array, seed: int
    ) -> tuple[tuple[UInt64Array, ...], Int32Array]:
        """Return the key words of rows of one partition, and the piece that each belongs to.

        The same row gets the same piece in every attempt: `positions` and `seed` identify it.
        """
        words = self.words(data, positions, seed)
        pieces = self.cuts[partition].assign(words)
        pieces += self.first_piece[partition]
        return words, pieces

    def words(self, data: pa.Table, positions: Int64Array, seed: int) -> tuple[UInt64Array, ...]:
        """Return the key of each row, with a word that breaks ties where the sample had heavy keys."""
        words = key_words(data, self.layout, self.ranks)
        if self.ties is None:
            return words
        return (*words, tie_word(data, self.ties, _hash(positions, seed)))


def plan_placement(layout: Layout, ranks: Ranks, sample: Sample, sizes: Sizes, *, ties: bool = False) -> Placement:
    """Cut every partition into files of about the layout's target size.

    With `ties`, the sample's other columns break ties between equal keys: see `has_heavy_keys`.
    """
    words = key_words(sample.data, layout, ranks)
    parts = _partitions(sample, sizes)
    tie_ranks = Ranks.fit(sample.data, tie_columns(sample.data.schema, layout)) if ties else None
    if tie_ranks is not None:
        words = (*words, tie_word(sample.data, tie_ranks, _hash(np.arange(sample.data.num_rows), 0)))
    cuts, first_piece = {}, {}
    pieces: list[Int64Array] = []
    partition_of_file: list[int] = []
    file_rows: list[float] = []
    for part, rows in parts.items():
        files = max(1, round(sizes.rows[part] * sizes.row_bytes / layout.file_bytes))
        mine = [word[rows] for word in words]
        cuts[part], of_piece, share = _cut(layout, mine, files, sizes.rows[part], sizes.row_memory)
        first_piece[part] = sum(map(len, pieces))
        pieces.append(of_piece + len(partition_of_file))
        partition_of_file += [part] * len(share)
        file_rows += list(share * sizes.rows[part])
    expected = np.array(file_rows).round().astype(np.int64)
    return Placement(
        layout, ranks, tie_ranks, cuts, first_piece,
        file_of_piece=np.concatenate([np.zeros(0, np.int64), *pieces]),
        task_of_file=_tasks(expected * sizes.row_bytes, layout.file_bytes),
        partition_of_file=np.array(partition_of_file, np.int64),
        file_rows=expected,
    )  # fmt: skip


def has_heavy_keys(layout: Layout, ranks: Ranks, sample: Sample, sizes: Sizes) -> bool:
    """Tell whether one key has more rows than a file: the sample then needs the columns that break ties as well."""
    words = key_words(sample.data, layout, ranks)
    parts = _partitions(sample, sizes)
    return any(_heaviest(words, rows) > _most_rows(sizes, part, layout, len(rows)) for part, rows in parts.items())


def _partitions(sample: Sample, sizes: Sizes) -> dict[int, npt.NDArray[np.intp]]:
    """Return the sample's rows of each partition."""
    order = np.argsort(sample.partition, kind="stable")
    parts = sorted(sizes.rows)
    borders = np.searchsorted(sample.partition[order], [*parts, np.iinfo(np.int64).max])
    return {part: order[borders[at] : borders[at + 1]] for at, part in enumerate(parts)}


def _most_rows(sizes: Sizes, part: int, layout: Layout, sampled: int) -> float:
    """Return how many sampled rows one key may have before it needs more than one file."""
    file_rows = layout.file_bytes / max(sizes.row_bytes, 1e-9)
    return LARGEST * file_rows * sampled / max(sizes.rows[part], 1)


def _heaviest(words: Sequence[UInt64Array], rows: npt.NDArray[np.intp]) -> int:
    """Count the rows of the most frequent key among some rows."""
    mine = [word[rows] for word in words]
    order = stable_order(mine)
    return heaviest_key([word[order] for word in mine])


def _cut(
    layout: Layout, words: Sequence[UInt64Array], files: int, rows: int, row_memory: float
) -> tuple[Cuts, Int64Array, npt.NDArray[np.float64]]:
    """Return the borders of a partition's pieces, the file of each piece, and each file's share of the rows."""
    sampled = len(words[0])
    if not sampled:
        return Cuts(tuple(word[:0] for word in words)), np.zeros(1, np.int64), np.ones(1)
    order = stable_order(words)
    ordered = [word[order] for word in words]
    file_starts = file_cuts(layout, ordered, files)
    most = max(PIECE_BYTES / row_memory * sampled / max(rows, 1), 1.0)
    starts = [
        start + cut
        for start, cuts in zip(
            file_starts.tolist(), cuts_within(ordered, file_starts, most, kind=layout.kind), strict=True
        )
        for cut in cuts.tolist()
    ]
    in_files = Cuts.at(ordered, file_starts)
    in_pieces = Cuts.at(ordered, np.array(starts, np.int64))
    if layout.kind == "linear":
        in_pieces = _between_values(layout, in_files, in_pieces)
    of_piece = np.concatenate([[0], in_files.assign(in_pieces.borders)]).astype(np.int64)
    counted = np.bincount(in_files.assign(ordered), minlength=in_files.pieces)
    return in_pieces, of_piece, counted / sampled


def _between_values(layout: Layout, files: Cuts, pieces: Cuts) -> Cuts:
    """Cut files of a linear layout into pieces only where the first column's code changes.

    A piece is sorted by exact values, of which several may share a code: only with such cuts is a file of several
    pieces sorted as a whole, as its metadata says.
    """
    key, *others = pieces.borders
    low = np.uint64(layout.bits_per_column * (len(layout.columns) - 1))
    inside = files.assign(pieces.borders)
    if layout.bits_per_column * len(layout.columns) > 64:
        return files
    moved = (key >> low) << low, *(np.zeros_like(other) for other in others)
    kept = files.assign(moved) == inside  # else the value began in an earlier file
    both = np.stack([np.concatenate([old, new[kept]]) for old, new in zip(files.borders, moved, strict=True)])
    return Cuts(tuple(np.unique(both, axis=1)))


def _tasks(file_bytes: npt.NDArray[np.floating], target: int) -> Int64Array:
    """Give each task consecutive files of about the target size in total: a task holds their payloads in memory."""
    most = max(min(float(target), float(file_bytes.sum()) / TASKS), LEAST_TASK_BYTES)
    tasks, task, held = [], 0, 0.0
    for size in file_bytes.tolist():
        if held and held + size > most:
            task, held = task + 1, 0.0
        tasks.append(task)
        held += size
    return np.array(tasks, np.int64)


def _hash(positions: Int64Array, seed: int) -> npt.NDArray[np.uint32]:
    """Return one pseudorandom number per row, the same in every attempt (splitmix64 of its position)."""
    x = positions.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x >> np.uint64(32)).astype(np.uint32)
