"""Draw a bounded sample of a table's rows, and measure bytes, memory and time per row, to plan a rewrite."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from zonal.layouts.batch import SAMPLE_ROWS
from zonal.layouts.keys import tie_columns
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.parquet.codecs import usual_codec
from zonal.plan.placement import Placement, Sizes, has_heavy_keys, plan_placement
from zonal.plan.rewrite import Scan, Source, Writing
from zonal.snapshot import UNKNOWN
from zonal.study.page_reads import WeightedPredicates, page_share
from zonal.study.row_trial import Pick, Sampled, try_rows
from zonal.values.arrays import Int64Array
from zonal.values.cache import Cache
from zonal.values.columns import find
from zonal.values.sample import Sample
from zonal.values.selection import take_rows
from zonal.worker.read.data_file import RowGroupSize
from zonal.worker.read.reader import KnownFiles, Reader

ROW_GROUPS = 1024
"""Row groups from which rows are sampled; only the key columns are read."""
LEAST_ROWS = 4096
"""Least number of rows sampled per partition, where it has as many."""
LOOK_ROWS = 60_000
"""Rows in the sample of predictions."""
OVERHEAD = 5.0
"""Time of a rewrite on Spark as a multiple of reading, sorting and writing alone: payloads, shuffle, the JVM."""
_THREADS = 8
_FOOTER_BYTES = 16 * 1024**2
"""Footers that are kept while a scan is sampled; parsed, they take several times as much."""

Delays: TypeAlias = "Sequence[int] | Callable[[Sample], Sequence[int]]"
"""By how many bits each column of the curve waits in the key, or a function that tells it by a sample of the rows."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Survey:
    """What a sample tells of all rows: enough to decide where each of them goes."""

    layout: Layout
    ranks: Ranks
    sample: Sample
    sizes: Sizes
    writing: Writing
    """With the usual codec of the files, where none was set, and how rows are stored inside of row groups."""
    heavy: bool
    """Whether one key has more rows than a file, so that further columns must tell them apart."""
    few_valued: tuple[str, ...]

    def placement(self) -> Placement:
        """Decide the cuts of every partition."""
        placement = plan_placement(self.layout, self.ranks, self.sample, self.sizes, ties=self.heavy)
        return replace(placement, few_valued=self.few_valued)


def survey(
    scan: Scan, writing: Writing, layout: Layout,
    *, ranks: Ranks | None = None, delays: Delays = (), queries: WeightedPredicates = (),
) -> Survey:  # fmt: skip
    """Sample, fit ranks where none are given, and measure bytes, memory and time per row.

    `layout` names the columns as the scan reads them; with `delays` each of its columns enters the key so many bits
    later, and `queries` weigh how rows are ordered inside of row groups. Only the sample's row groups are read.
    """
    readers = _Readers(scan)
    rows = readers.expected_rows()
    picks = _picks(readers)
    writing = with_codec(writing, [pick.size for pick in picks])
    sampled = _draw(readers, picks, layout.columns, _shares(picks, rows))
    sample = sampled.rows
    if ranks is None or not ranks.fit_for(sample.data, layout.curve_columns):
        ranks = Ranks.fit(sample.data, layout.curve_columns)
        if waits := delays(sample) if callable(delays) else delays:
            ranks = ranks.delayed(dict(zip(layout.curve_columns, waits, strict=True)), layout.bits_per_column)
    reading = scan.reading
    trial = try_rows(
        readers.one(), sampled, writing, layout, ranks, rows,
        schema=reading.schema, keep_order=reading.row_id is not None,
        pages=page_share(queries, scan.columns, layout.curve_columns),
    )  # fmt: skip
    writing = replace(writing, packing=trial.packing)
    sizes = Sizes(rows, trial.row_bytes, trial.row_memory, trial.row_seconds)
    heavy = has_heavy_keys(layout, ranks, sample, sizes)
    if heavy:
        named = [*layout.columns, *tie_columns(scan.reading.schema, layout)]
        sample = _draw(readers, picks, named, _shares(picks, rows)).rows
    return Survey(layout, ranks, sample, sizes, writing, heavy, trial.few_valued)


def plan(
    scan: Scan, writing: Writing, layout: Layout,
    *, ranks: Ranks | None = None, delays: Delays = (), queries: WeightedPredicates = (),
) -> tuple[Placement, Sizes, Writing]:  # fmt: skip
    """Decide by a survey where the rows go, and which codec new files get where `writing` has none."""
    surveyed = survey(scan, writing, layout, ranks=ranks, delays=delays, queries=queries)
    return surveyed.placement(), surveyed.sizes, surveyed.writing


def with_codec(writing: Writing, groups: Iterable[RowGroupSize]) -> Writing:
    """Set the codec of new files to the usual one of these row groups, if `writing` has none."""
    if writing.compression is not None:
        return writing
    sizes: dict[str, int] = defaultdict(int)
    for group in groups:
        sizes[group.codec] += group.size
    return replace(writing, compression=usual_codec(sizes))


def look(scan: Scan, columns: Sequence[str], rows: int = LOOK_ROWS) -> tuple[Sample, dict[int, int]]:
    """Draw about `rows` rows of these columns, and return them with the number of rows of each partition.

    `columns` are named as the scan reads them. At most `ROW_GROUPS` row groups are read, or one per partition.
    """
    readers = _Readers(scan)
    partition_rows = readers.expected_rows()
    picks = _picks(readers)
    picked = sum(pick.rows for pick in picks)
    share = min(1.0, rows / max(picked, 1))
    return _draw(readers, picks, columns, dict.fromkeys(partition_rows, share)).rows, partition_rows


class _Readers:
    """Readers of a scan's files, in threads that mostly wait for the storage; a footer is read once."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self._known: KnownFiles = Cache(_FOOTER_BYTES, lambda file: file.footer.serialized_size)

    def one(self) -> Reader:
        return Reader(self.scan.reading, self.scan.storage, self._known)

    def read(self, items: Sequence[Item], read: Callable[[Reader, Item], Result]) -> list[Result]:
        """Read items; each thread has one reader and consecutive items."""
        runs = [part.tolist() for part in np.array_split(np.arange(len(items)), _THREADS)]

        def read_run(run: list[int]) -> list[Result]:
            reader = self.one()
            return [read(reader, items[at]) for at in run]

        with ThreadPoolExecutor(_THREADS) as pool:
            return [result for results in pool.map(read_run, runs) for result in results]

    def expected_rows(self) -> dict[int, int]:
        """Return the number of rows of each partition without those that deletion vectors remove.

        Where the metadata has no count, the file's footer has. Rows that delete files remove are counted: reading
        those files on the driver would cost more than new files that are smaller than planned.
        """
        uncounted = [source for source in self.scan.sources if source.rows == UNKNOWN]
        footers = self.read(uncounted, lambda reader, source: sum(group.rows for group in reader.row_groups(source)))
        counts = {source.number: count for source, count in zip(uncounted, footers, strict=True)}
        rows: dict[int, int] = defaultdict(int)
        for source in self.scan.sources:
            deleted = source.vector.rows if source.vector is not None else 0
            rows[source.partition] += max(counts.get(source.number, source.rows) - deleted, 0)
        return rows


def _picks(readers: _Readers) -> list[Pick]:
    """Choose row groups evenly over the files of every partition."""
    scan = readers.scan
    by_partition: dict[int, list[Source]] = defaultdict(list)
    for source in scan.sources:
        by_partition[source.partition].append(source)
    total = len(scan.sources)
    chosen: list[tuple[Source, int]] = []
    for sources in by_partition.values():
        budget = max(1, ROW_GROUPS * len(sources) // total)
        spread = _evenly(sources, budget)
        chosen += [(source, -(-budget // len(spread))) for source in spread]
    footers = readers.read(chosen, lambda reader, pick: reader.row_groups(pick[0]))
    return [
        Pick(source, group, sizes[group])
        for (source, budget), sizes in zip(chosen, footers, strict=True)
        for group in _evenly(range(len(sizes)), budget)
        if sizes[group].rows
    ]


def _evenly(items: Sequence[Item], count: int) -> list[Item]:
    if len(items) <= count:
        return list(items)
    return [items[int((number + 0.5) * len(items) / count)] for number in range(count)]


def _draw(readers: _Readers, picks: Sequence[Pick], columns: Sequence[str], share: Mapping[int, float]) -> Sampled:
    """Draw a share of each partition's picked live rows at random, with fixed seeds."""
    scan = readers.scan
    top = list(dict.fromkeys(scan.reading.schema.names[find(scan.reading.schema, name)[0]] for name in columns))

    def take(reader: Reader, pick: Pick) -> tuple[pa.Table, Int64Array]:
        (group,) = reader.rows(pick.source, [pick.group], top)
        live = group.data.num_rows
        count = min(live, max(1, round(share[pick.source.partition] * live))) if live else 0
        random = np.random.default_rng([pick.source.number, pick.group])
        chosen = np.sort(random.choice(live, count, replace=False))
        return take_rows(group.data, chosen), np.full(count, pick.source.partition, np.int64)

    parts = readers.read(picks, take)
    schema = pa.schema([scan.reading.schema.field(name) for name in top])
    empty = (pa.Table.from_batches([], schema), np.zeros(0, np.int64))
    tables, partitions = zip(*(parts or [empty]), strict=True)
    pick_of = np.repeat(np.arange(len(partitions)), [len(each) for each in partitions])
    return Sampled(Sample(pa.concat_tables(tables), np.concatenate(partitions)), picks, pick_of)


def _shares(picks: Sequence[Pick], rows: Mapping[int, int]) -> dict[int, float]:
    """Return the share of the picked rows of each partition to draw."""
    picked: dict[int, int] = defaultdict(int)
    for pick in picks:
        picked[pick.source.partition] += pick.rows
    total = max(sum(rows.values()), 1)
    wanted = {part: max(SAMPLE_ROWS * rows[part] // total, LEAST_ROWS) for part in picked}
    return {part: min(1.0, wanted[part] / count) for part, count in picked.items()}
