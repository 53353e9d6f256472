"""The life of a table, for tests of `audit`: written, clustered, appended to, compacted by size alone, deleted from.

Made by the formats' own libraries, and by zonal where it clusters. What queries must read at each stage is told by the
footers and rows of the files, without zonal.
"""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from support.cluster_tables import Delta, Iceberg

ROWS = 4_000
"""Rows at first: `x` is 0 to 3999, each once, and `t` counts the rows as they arrive."""
PARTS = 4
LATE = 400
"""Rows of the append after the clustering."""
DELETED_BELOW = 80
"""Rows with a smaller `x` are deleted in the end."""
FILE_BYTES = 2_550
COMPACTED_BYTES = 40_000
STAGES = ("written", "clustered", "appended", "compacted", "deleted")
INFINITE = float("inf")


@dataclass(frozen=True)
class Asked:
    """A query as SQL, and the same as a range a column: both ends included."""

    sql: str
    ranges: dict
    count: int = 1
    """How often it is in the log."""


QUERIES = (
    Asked("SELECT * FROM life WHERE x BETWEEN 100 AND 149", {"x": (100, 149)}, 4),
    Asked("SELECT t FROM life WHERE x = 2718", {"x": (2718, 2718)}, 3),
    Asked("SELECT * FROM life WHERE x >= 3900", {"x": (3900, INFINITE)}, 2),
    Asked("SELECT count(*) FROM life WHERE t < 1000 AND x < 500", {"t": (-INFINITE, 999), "x": (-INFINITE, 499)}),
    Asked("SELECT max(x) FROM life WHERE t >= 4100", {"t": (4100, INFINITE)}),
)
"""Queries that statistics can help."""
HOPELESS = Asked("SELECT sum(x) FROM life", {})
"""A query that no layout can help."""


def first_part(number):
    """Every fourth `x`, so that each of the first files spans the whole range."""
    size = ROWS // PARTS
    return _rows([PARTS * row + number for row in range(size)], first=number * size)


def late_part():
    """Every tenth `x` once more."""
    return _rows([10 * row for row in range(LATE)], first=ROWS)


def _rows(xs, *, first):
    # A text that compresses badly: files have about the same size a row, whatever their order.
    texts = [f"{(x * 2654435761) % 2**32:08x}{(x * 40503 + first) % 2**32:08x}" for x in xs]
    return pa.table(
        {
            "x": pa.array(xs, pa.int64()),
            "t": pa.array(range(first, first + len(xs)), pa.int64()),
            "payload": pa.array(texts, pa.string()),
        }
    )


def mixed(table):
    """The same rows in an order that puts `x` from everywhere into every file, as a compaction by size alone does."""
    place = [(x * 1597) % 4001 for x in table["x"].to_pylist()]
    order = sorted(range(len(place)), key=lambda row: (place[row], row))
    return table.take(pa.array(order))


@dataclass(frozen=True)
class LifeFile:
    """A live file: its bytes and the ends of its columns, by its footer."""

    path: Path
    size: int
    rows: int
    ends: dict

    @classmethod
    def of(cls, path):
        footer = pq.read_metadata(path)
        ends = {}
        for place, name in enumerate(footer.schema.names):
            found = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
            ends[name] = (min(each.min for each in found), max(each.max for each in found))
        return cls(Path(path), Path(path).stat().st_size, footer.num_rows, ends)

    def width(self, column):
        """The part of 0 to 3999 that it spans."""
        low, high = self.ends[column]
        return (high - low) / (ROWS - 1)


@dataclass(frozen=True)
class Stage:
    """The table at one time, by its files."""

    name: str
    version: int
    versions: int
    """Commits since the stage before, this one included."""
    files: tuple
    rows: pa.Table = field(repr=False)

    @property
    def bytes(self):
        return sum(file.size for file in self.files)

    def read(self, asked):
        """The files whose footers don't exclude a query: what it must read, no more and no less."""
        return [
            file for file in self.files if all(_meets(file.ends[name], each) for name, each in asked.ranges.items())
        ]

    def needed(self, asked):
        """The files that hold a row that matches."""
        return [file for file in self.files if _matching(file, asked)]

    def ratio(self, queries=QUERIES):
        """Files read of all files, in the mean by how often queries run."""
        runs = sum(asked.count for asked in queries)
        return sum(len(self.read(asked)) * asked.count for asked in queries) / len(self.files) / runs

    def byte_share(self, queries=(*QUERIES, HOPELESS)):
        """Bytes read of all bytes, in the mean."""
        runs = sum(asked.count for asked in queries)
        read = sum(sum(file.size for file in self.read(asked)) * asked.count for asked in queries)
        return read / self.bytes / runs

    def mean_width(self, column="x"):
        """The mean by bytes."""
        return sum(file.width(column) * file.size for file in self.files) / self.bytes


def _meets(ends, wanted):
    return ends[0] <= wanted[1] and ends[1] >= wanted[0]


def _matching(file, asked):
    rows = pq.read_table(file.path, columns=["x", "t"]).to_pylist()
    return any(all(low <= row[name] <= high for name, (low, high) in asked.ranges.items()) for row in rows)


class Life:
    """A table that goes through the stages one by one; every method returns the stage that it leads to."""

    def __init__(self, kind, folder):
        self.home = {"delta": Delta, "iceberg": Iceberg}[kind](folder, "life")
        self.kind = kind
        self.stages = {}
        self.log = Path(folder) / "queries.sql"
        self.log.write_text("".join(f"{each.sql};\n" * each.count for each in (*QUERIES, HOPELESS)))

    @property
    def name(self):
        return self.home.name

    @property
    def options(self):
        return self.home.options

    def until(self, name):
        """Live on up to a stage."""
        for step in STAGES[: STAGES.index(name) + 1]:
            if step not in self.stages:
                getattr(self, step)()
        return self.stages[name]

    def written(self):
        properties = {"write.target-file-size-bytes": str(COMPACTED_BYTES)} if self.kind == "iceberg" else None
        self.home.make([first_part(number) for number in range(PARTS)], properties=properties)
        return self._stage("written")

    def clustered(self):
        self.home.cluster(by=["x"], layout="linear", target_file_size=FILE_BYTES, full=True)
        return self._stage("clustered")

    def appended(self):
        self.home.append(late_part())
        return self._stage("appended")

    def compacted(self):
        """Make fewer, larger files: delta-rs by its own compaction; PyIceberg has none, so it overwrites all rows."""
        if self.kind == "delta":
            DeltaTable(self.home.root).optimize.compact(target_size=COMPACTED_BYTES)
        else:
            self.home.table.overwrite(mixed(self.home.rows()))
        return self._stage("compacted")

    def deleted(self):
        if self.kind == "delta":
            DeltaTable(self.home.root).delete(f"x < {DELETED_BELOW}")
        else:
            self.home.table.delete(f"x < {DELETED_BELOW}")
        return self._stage("deleted")

    def _stage(self, name):
        before = sum(stage.versions for stage in self.stages.values())
        files = tuple(LifeFile.of(file.path) for file in self.home.files())
        stage = Stage(name, self.home.version(), self._commits() - before, files, self.home.rows())
        self.stages[name] = stage
        return stage

    def _commits(self):
        return self.home.version() + 1 if self.kind == "delta" else len(self.home.table.snapshots())
