"""The tables of the comparison: their rows as they arrived, in a given number of files, and what queries add up."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.rewriters import inputs
from benchmarks.rewriters.inputs import Input

CODEC = "zstd"
"""Of all files, whoever writes them, so that bytes compare layouts."""


@dataclass(frozen=True)
class DataSet:
    """A table by its name, with the aggregates by which answers are compared."""

    name: str
    title: str
    aggregates: tuple[str, ...]
    """Besides the number of rows: sums of whole numbers and largest texts, which are the same in any order."""

    @property
    def select(self) -> str:
        """Return the list of a SELECT."""
        named = [f"{aggregate} AS a{at}" for at, aggregate in enumerate(("count(*)", *self.aggregates))]
        return ", ".join(named)


SETS = (
    DataSet("lineitem", "TPC-H lineitem", ("sum(l_orderkey)", "max(l_comment)")),
    DataSet("wide", "60 columns, skewed keys", ("sum(count_2)", "max(trace_id)")),
    DataSet("flights", "flights from New York, grown", ("sum(distance)", "max(tailnum)")),
    DataSet("store_sales", "TPC-DS store_sales", ("sum(ss_quantity)", "max(ss_ticket_number)")),
    DataSet("changes", "a stream of changes", ("sum(amount)", "max(trace)")),
)


@dataclass(frozen=True)
class Scales:
    """How large each set is: 1 is six million rows of lineitem, 1.5 wide, 3 of flights and store_sales, 2 changes."""

    usual: float = 1.0
    own: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> float:
        """Return the scale of a set."""
        return self.own.get(name, self.usual)


def chosen(names: str | None) -> list[DataSet]:
    """Return the sets in a list with commas; all by default."""
    wanted = [each.name for each in SETS] if names is None else [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in {each.name for each in SETS}]:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are: {', '.join(each.name for each in SETS)}.")
    return [each for each in SETS if each.name in wanted]


def arrived(data_set: DataSet, *, scale: float, files: int, cache: Path) -> Input:
    """Return the rows in the order in which they arrived, in so many files, made once and kept in the cache."""
    made = inputs.make(data_set.name, scale=scale, cache=cache)
    folder = cache / f"{made.folder.name}-in-{files}"
    if not folder.exists():
        rows = pq.read_table(made.files)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            written = Path(scratch) / "made"
            written.mkdir()
            for number in range(files):
                start, end = (rows.num_rows * at // files for at in (number, number + 1))
                part = rows.slice(start, end - start)
                path = written / f"part-{number:05d}.parquet"
                pq.write_table(part, path, compression=CODEC, store_schema=False)
            written.rename(folder)
    return Input(made.name, folder, made.columns)
