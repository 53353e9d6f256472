"""Measure how much of a rewritten table queries read, by the footers of its live files."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.conditions import literal
from benchmarks.rewriters.copies import opened, result_folder
from benchmarks.rewriters.inputs import Input
from benchmarks.rewriters.job import Job
from zonal.predicates.bind import bind
from zonal.skipping.files import FileIndex
from zonal.sql.where import parse_where
from zonal.tables.parquet.folder import ParquetTable

QUERIES = 300
NARROWEST, WIDEST = 0.001, 0.01
"""Shares of the rows in the range on one column."""


@dataclass(frozen=True)
class Query:
    """A condition, and its kind: on the first column, the second, or both."""

    kind: str
    where: str


@dataclass(frozen=True)
class Judged:
    """A table after its rewrite."""

    files: int
    bytes: int
    rows: int
    shares: dict[str, float]
    """By kind of query, the mean share of the rows in files that bounds can't exclude."""

    @property
    def mean(self) -> float:
        """Return the mean of all queries, of which every kind has the same number."""
        return sum(self.shares.values()) / len(self.shares)


def make_queries(input_: Input, count: int = QUERIES) -> list[Query]:
    """Make ranges between values of the table, a third on each column, a third on both."""
    rng = np.random.default_rng(1)
    values = {column: _sorted_values(input_, column) for column in input_.columns}
    queries = []
    for number in range(count):
        used = [input_.columns[:1], input_.columns[1:2], input_.columns][number % 3]
        parts = list(_ranges(used, values, rng))
        queries.append(Query("both" if len(used) > 1 else used[0], " AND ".join(parts)))
    return queries


def _sorted_values(input_: Input, column: str) -> pa.Array:
    """Return every hundredth value of a column, in order."""
    values = pq.read_table(input_.files, columns=[column])[column].combine_chunks()
    return values.take(pc.sort_indices(values)[::100])


def _ranges(columns: Sequence[str], values: dict[str, pa.Array], rng: np.random.Generator) -> Iterator[str]:
    for column in columns:
        ordered = values[column]
        width = int(len(ordered) * rng.uniform(NARROWEST, WIDEST))
        start = int(rng.integers(0, len(ordered) - width))
        low, high = (literal(ordered[at].as_py()) for at in (start, start + width))
        yield f"{column} BETWEEN {low} AND {high}"


def judge(format_: str, job: Job, queries: Sequence[Query]) -> Judged:
    """Read the footers of the live files, and prune files for all queries."""
    snapshot = ParquetTable(str(link_live(format_, job))).snapshot()
    index = FileIndex(snapshot)
    rows = snapshot.files.rows
    shares: dict[str, list[float]] = {}
    for query in queries:
        kept = index.prune(bind(parse_where(query.where, dialect="spark"), snapshot.schema)).kept
        shares.setdefault(query.kind, []).append(float(rows[kept].sum() / rows.sum()))
    means = {kind: float(np.mean(each)) for kind, each in shares.items()}
    return Judged(len(rows), int(snapshot.files.sizes.sum()), int(rows.sum()), means)


def link_live(format_: str, job: Job) -> Path:
    """Link the live files into a folder, where they are a table of plain Parquet."""
    folder = job.folder / "live"
    folder.mkdir()
    for number, path in enumerate(_live(format_, job)):
        os.link(path, folder / f"{number:06d}.parquet")
    return folder


def _live(format_: str, job: Job) -> list[Path]:
    """Return the files of the newest version, by zonal's own reading of the metadata."""
    if format_ == "parquet":
        return sorted((result_folder(job.folder)).glob("*.parquet"))
    paths = opened(format_, job.folder).snapshot().files.paths.to_pylist()
    return [Path(f"/{path.removeprefix('file:').lstrip('/')}") for path in paths]
