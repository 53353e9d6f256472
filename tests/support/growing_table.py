"""A table that grows, in memory: files are rows of numbers, snapshots what a format's metadata would tell of them."""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from zonal.layouts.cuts import file_cuts
from zonal.layouts.keys import key_words
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.snapshot import UNKNOWN, Bounds, Commit, Files, Snapshot
from zonal.upkeep.account import account_of
from zonal.upkeep.append_delays import arriving_delays
from zonal.upkeep.merges import MergeTerms
from zonal.upkeep.policy import choose_merges

ROW_BYTES = 100


@dataclass
class MemoryFile:
    """Rows of a file by number, and what its metadata tells."""

    rows: np.ndarray
    layout: str | None
    path: str
    partition: int = 0
    deleted: int = 0


@dataclass
class GrowingTable:
    """Rows arrive unclustered; merges are made with the product's own ranks, keys and cuts."""

    data: dict
    layout: Layout
    files: list = field(default_factory=list)
    commits: list = field(default_factory=list)
    partition_of: object = None

    @property
    def file_rows(self):
        return self.layout.file_bytes / ROW_BYTES

    def append(self, rows, files=None):
        """Add files with these rows as they come."""
        count = files or max(1, round(len(rows) / self.file_rows))
        for part in np.unique(self._parts(rows)):
            mine = rows[self._parts(rows) == part]
            for piece in np.array_split(mine, count):
                if len(piece):
                    name = f"/t/part-{len(self.commits)}-{len(self.files)}.parquet"
                    self.files.append(MemoryFile(piece, None, name, int(part)))
        size = len(rows) * ROW_BYTES
        self._commit("WRITE", "append", size)

    def _commit(self, operation, kind, size):
        number = len(self.commits)
        parent = number - 1 if number else None
        self.commits.append(
            Commit(number, None, operation, {}, parent=parent, kind=kind, added_bytes=size, is_first=not number)
        )

    def append_run(self, rows, *, wait=True):
        """Add files with these rows that are clustered as they come, as `append` does it."""
        arriving = [pa.chunked_array([values[rows]]) for values in self.data.values()]
        delays = arriving_delays(self.snapshot(), tuple(self.data), arriving, len(rows)) if wait else ()
        run = f"20260101-000000-{len(self.commits):08x}"
        for number, piece in enumerate(self.clustered(rows, delays)):
            path = f"/t/zonal-{self.layout.id}-{run}-0/{number}.parquet"
            self.files.append(MemoryFile(piece, self.layout.id, path, 0))
        size = len(rows) * ROW_BYTES
        self.commits.append(Commit(len(self.commits), None, "WRITE", {}, kind="append", added_bytes=size))

    def _parts(self, rows):
        return np.zeros(len(rows), np.int64) if self.partition_of is None else self.partition_of(rows)

    def snapshot(self):
        """Return the metadata."""
        parts = sorted({file.partition for file in self.files}) or [0]
        bounds = {}
        for name, values in self.data.items():
            lower = pa.array([int(values[file.rows].min()) for file in self.files], pa.int64())
            upper = pa.array([int(values[file.rows].max()) for file in self.files], pa.int64())
            none = np.zeros(len(self.files), np.int64)
            bounds[name] = Bounds(lower, upper, none, none)
        sizes = np.array([len(file.rows) * ROW_BYTES for file in self.files], np.int64)
        files = Files(
            paths=pa.array([file.path for file in self.files], pa.string()),
            sizes=sizes,
            rows=sizes // ROW_BYTES,
            deleted=np.array([file.deleted for file in self.files], np.int64),
            delete_files=np.array([file.deleted > 0 for file in self.files], np.int64),
            added_by=np.full(len(sizes), UNKNOWN),
            layout_ids=pa.array([file.layout for file in self.files], pa.string()),
            partition=np.array([parts.index(file.partition) for file in self.files], np.int64),
            partitions=tuple(f"p={part}" for part in parts),
            bounds=bounds,
        )
        schema = pa.schema({name: pa.int64() for name in self.data})
        commits = {commit.id: commit for commit in self.commits}
        return Snapshot(
            "t", "delta", "/t", len(commits) - 1, None, schema, (), files, {}, layout=self.layout, commits=commits
        )  # fmt: skip

    def choose(self, terms=None, queries=()):
        """Decide what to merge now."""
        snapshot = self.snapshot()
        return choose_merges(snapshot, self.layout, terms or MergeTerms(), account_of(snapshot), queries)

    def keep(self, terms=None, queries=(), rounds=8):
        """Merge until there is nothing to do; return the bytes that were rewritten."""
        written = 0
        for _ in range(rounds):
            choice = self.choose(terms, queries)
            if not choice.chosen:
                return written
            written += sum(merge.bytes for merge in choice.chosen)
            self.merge(choice.chosen)
        raise AssertionError("the policy finds always something to do")

    def merge(self, merges):
        """Make these merges in one commit."""
        run = f"20260101-000000-{len(self.commits):08x}"
        gone = {int(file) for merge in merges for file in merge.files}
        new = []
        for merge in merges:
            group = [self.files[int(file)] for file in merge.files]
            for part in sorted({file.partition for file in group}):
                rows = np.concatenate([file.rows for file in group if file.partition == part])
                for piece in self.clustered(rows, merge.delays):
                    path = f"/t/zonal-{self.layout.id}-{run}-0/{len(new)}.parquet"
                    new.append(MemoryFile(piece, self.layout.id, path, part))
        self.files = [file for number, file in enumerate(self.files) if number not in gone] + new
        size = sum(merge.bytes for merge in merges)
        self._commit("OPTIMIZE", "zonal", size)

    def clustered(self, rows, delays=()):
        """Return the rows of each new file."""
        table = pa.table({name: values[rows] for name, values in self.data.items()})
        ranks = Ranks.fit(table, self.layout.columns)
        if delays:
            ranks = ranks.delayed(dict(zip(self.layout.columns, delays, strict=True)), self.layout.bits_per_column)
        words = key_words(table, self.layout, ranks)
        order = np.lexsort(words[::-1])
        files = max(1, round(len(rows) / self.file_rows))
        starts = file_cuts(self.layout, [word[order] for word in words], files)
        return np.split(rows[order], starts[1:])

    def fresh(self):
        """Return the same rows, clustered at once."""
        rows = np.concatenate([file.rows for file in self.files])
        made = replace(self, files=[], commits=[])
        made.files = [MemoryFile(piece, self.layout.id, "/t/fresh", 0) for piece in self.clustered(rows)]
        return made

    def share(self, low, high, columns):
        """Return the mean share of rows in files that queries can't skip; boxes as (queries, columns)."""
        met = np.ones((len(low), len(self.files)), np.bool_)
        for at, name in enumerate(columns):
            least = np.array([self.data[name][file.rows].min() for file in self.files])
            most = np.array([self.data[name][file.rows].max() for file in self.files])
            met &= (most[None] >= low[:, at][:, None]) & (least[None] <= high[:, at][:, None])
        rows = np.array([len(file.rows) for file in self.files])
        return float((met @ rows).mean() / rows.sum())
