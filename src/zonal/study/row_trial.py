"""Write some rows on trial before a rewrite, to learn what a row of the new files costs and how it is best stored.

The rows must be like those of a new row group: neighbors in the layout's order. So one region of the key space is
chosen, and the row groups that hold most of it are read. Where rows arrived in the order of a key column, these hold
all of its rows; else some, and what is missing is known from the sample of keys.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zonal.layouts.keys import key_words
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.plan.pack import Packing
from zonal.plan.rewrite import Source, Writing
from zonal.study.pack_trial import TrialRows, pack
from zonal.study.page_reads import PageShare
from zonal.values.arrays import BoolArray, Int64Array, UInt64Array
from zonal.values.sample import Sample
from zonal.values.selection import take_rows
from zonal.worker.exchange.dictionary import few_valued
from zonal.worker.read.data_file import RowGroupSize
from zonal.worker.read.reader import Reader

TRIALS, TRIAL_ROWS = 4, 131_072
"""Row groups of which all columns are read, and the most rows of each."""
REGION_GROUPS, REGION_SAMPLE = 4, 64
"""New row groups that the region should hold, and the least number of sampled keys in it."""
LEAST_ROWS = 1024
"""With fewer rows of the region, all rows that were read are taken."""
MOST_APART = 2.0
"""Rows of the row groups that were read may take so many times the bytes of others before that isn't believed."""


@dataclass(frozen=True)
class Pick:
    """A row group to sample, and its size in the footer."""

    source: Source
    group: int
    size: RowGroupSize

    @property
    def rows(self) -> int:
        """Return its number of rows."""
        return self.size.rows


@dataclass(frozen=True, eq=False)
class Sampled:
    """A sample of keys, with the row group that each was drawn from."""

    rows: Sample
    picks: Sequence[Pick]
    pick_of: Int64Array
    """Position in `picks` of each row's row group."""


@dataclass(frozen=True)
class RowTrial:
    """What the trial tells of a row, and how rows are stored."""

    packing: Packing
    row_bytes: float
    row_memory: float
    row_seconds: float
    few_valued: tuple[str, ...]


def try_rows(
    reader: Reader, sampled: Sampled, writing: Writing, layout: Layout, ranks: Ranks, rows: Mapping[int, int],
    *, schema: pa.Schema, keep_order: bool, pages: PageShare,
) -> RowTrial:  # fmt: skip
    """Measure bytes, memory and processor time of a row in new files; `rows` counts those of each partition.

    `pages` tells what queries read of a row group's pages.
    """
    partition = max(rows, key=lambda part: rows[part], default=0)
    region = _Region.of(sampled, partition, rows.get(partition, 0), key_words(sampled.rows.data, layout, ranks), layout)
    began = time.process_time()  # of all threads: Arrow decodes in its own
    read = 0
    drawn = [pa.Table.from_batches([], schema)]
    for pick in region.picks:
        for count, data in _first_rows(reader, pick):
            read += count
            drawn.append(data)
    everything = pa.concat_tables(drawn)
    drew = time.process_time()
    few = few_valued(everything.slice(0, layout.row_group_rows))
    words = key_words(everything, layout, ranks)
    keyed = time.process_time()
    trial = region.trial(everything, words, few)
    packed = pack(trial, writing, layout, keep_order=keep_order, pages=pages)
    return RowTrial(
        packing=packed.packing,
        row_bytes=max(packed.row_bytes * _usual_size(sampled.picks, region.picks), 1e-3),
        row_memory=max(everything.nbytes / max(everything.num_rows, 1), 1.0),
        row_seconds=(drew - began) / max(read, 1) + (keyed - drew) / max(everything.num_rows, 1) + packed.row_seconds,
        few_valued=few,
    )


def _first_rows(reader: Reader, pick: Pick) -> Iterator[tuple[int, pa.Table]]:
    """Yield rows of a row group, with how many were read for them, until there are enough."""
    read = 0
    for part in reader.parts(pick.source, pick.group):
        read += part.read
        yield part.read, part.data
        if read >= TRIAL_ROWS:
            return


def _usual_size(picks: Sequence[Pick], chosen: Sequence[Pick]) -> float:
    """Return how large rows are today, as a multiple of those that were read: texts may be longer elsewhere."""

    return float(np.clip(_row_bytes(picks) / _row_bytes(chosen), 1 / MOST_APART, MOST_APART)) if chosen else 1.0


@dataclass(frozen=True, eq=False)
class _Region:
    """A range of keys in the middle of a partition, and the row groups that hold most of its rows."""

    low: np.uint64
    high: np.uint64
    rows: int
    """Rows of the table in it, by the sample."""
    total: int
    """Rows of the partition."""
    picks: tuple[Pick, ...]

    @classmethod
    def of(
        cls, sampled: Sampled, partition: int, total: int, words: Sequence[UInt64Array], layout: Layout
    ) -> "_Region":
        mine = np.flatnonzero(sampled.rows.partition == partition)
        if not len(mine):
            return cls(np.uint64(0), np.uint64(0), 0, total, ())
        keys = words[0][mine]
        wanted = REGION_GROUPS * min(layout.row_group_rows, layout.file_bytes / _row_bytes(sampled.picks))
        share = min(1.0, max(wanted / max(total, 1), REGION_SAMPLE / len(mine)))
        low, high = np.quantile(keys, [0.5 - share / 2, 0.5 + share / 2], method="nearest")
        inside = _between(keys, low, high)
        counts = np.bincount(sampled.pick_of[mine[inside]], minlength=len(sampled.picks))
        most = np.argsort(-counts, kind="stable")[:TRIALS]
        picks = tuple(sampled.picks[at] for at in most.tolist() if counts[at])
        return cls(low, high, round(total * inside.mean()), total, picks)

    def trial(self, data: pa.Table, words: Sequence[UInt64Array], few: Sequence[str]) -> TrialRows:
        """Return the rows that lie in the region; all, where these are too few to tell anything."""
        inside = np.flatnonzero(_between(words[0], self.low, self.high))
        if len(inside) < LEAST_ROWS:
            return TrialRows(data, words, self.total, few)
        return TrialRows(take_rows(data, inside), [word[inside] for word in words], self.rows, few)


def _between(keys: UInt64Array, low: np.uint64, high: np.uint64) -> BoolArray:
    within: BoolArray = (keys >= low) & (keys <= high)
    return within


def _row_bytes(picks: Sequence[Pick]) -> float:
    """Return the bytes of a row in today's files."""
    return max(sum(pick.size.size for pick in picks) / max(sum(pick.rows for pick in picks), 1), 1e-3)
