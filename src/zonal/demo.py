"""The demonstration: the same rows as Parquet files in several layouts, and what their min/max let queries skip."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from zonal.batch import cluster_batch
from zonal.columns import find, leaf, leaf_type
from zonal.errors import ZonalError, quoted, suggestion
from zonal.layout import Layout
from zonal.ranks import bind
from zonal.rows import take_rows

LOOKUPS = 200
ROW_GROUPS_A_FILE = 8


@dataclass(frozen=True)
class Query:
    """A range of values of each of some columns, both ends included."""

    name: str
    ranges: tuple[tuple[str, pa.Scalar, pa.Scalar], ...]


@dataclass(frozen=True)
class Footers:
    """The statistics of one layout's files: sizes and bounds of each row group, and the file that it is in."""

    file: np.ndarray[tuple[int], np.dtype[np.int64]]
    size: np.ndarray[tuple[int], np.dtype[np.int64]]
    bounds: dict[str, tuple[pa.Array, pa.Array]]


@dataclass(frozen=True)
class Measured:
    """What the queries of each name read on average under one layout, as shares of all bytes."""

    layout: str
    files: int
    size: int
    by_file: dict[str, float]
    by_row_group: float

    @property
    def mean(self) -> float:
        """Average the queries of all names."""
        return float(np.mean(list(self.by_file.values())))


def run(
    console: Console, *, data: Path | None, by: Sequence[str] | None, rows: int, files: int, into: Path | None
) -> list[Measured]:
    """Write the layouts, measure the queries on the files' own footers, and print the table."""
    columns = list(by) if by is not None else (["ts", "payload_id"] if data is None else [])
    if not columns:
        raise ZonalError("Say which columns of your data to cluster by, as in --by ts,payload_id.")
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ZonalError(f"{quoted(str(into))} exists and is not an empty folder. Choose a new one with --into.")
    bind(telemetry(1).schema if data is None else _schema(data), columns)
    folder = into or Path(tempfile.mkdtemp(prefix="zonal-demo-"))
    steps = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    try:
        with steps:
            task = steps.add_task("making telemetry" if data is None else "reading", total=None)
            table = telemetry(rows) if data is None else _read(data)
            if table.num_rows < files:
                raise ZonalError(f"{table.num_rows} rows are too few for {files} files. Use fewer --files.")
            queries = list(_queries(table, columns))
            measured = []
            for layout in (None, *(Layout(kind, tuple(columns)) for kind in ("linear", "zorder", "hilbert"))):
                name = "as it arrives" if layout is None else layout.kind
                steps.update(task, description=f"writing and measuring {name}")
                _write(table, layout, files, folder / name.replace(" ", "-"))
                measured.append(_measure(name, _footers(folder / name.replace(" ", "-"), columns), queries))
    finally:
        if into is None:
            shutil.rmtree(folder, ignore_errors=True)
    _print(console, measured, columns)
    if into is not None:
        console.print(f"The files are in {into}", markup=False, highlight=False, soft_wrap=True)
    return measured


def telemetry(rows: int, seed: int = 7) -> pa.Table:
    """Make rows as devices send them: nearly in order of time, device ids skewed, a few late.

    >>> telemetry(1000).column_names
    ['ts', 'payload_id', 'region', 'status', 'battery', 'value', 'trace_id']
    """
    rng = np.random.default_rng(seed)
    start = np.datetime64("2026-01-01", "us").astype(np.int64)
    late = np.where(rng.random(rows) < 0.03, rng.exponential(6 * 3600e6, rows), rng.exponential(20e6, rows))
    ts = start + np.linspace(0, 30 * 86400e6, rows).astype(np.int64) - late.astype(np.int64)
    payload = (200_000 * rng.beta(0.7, 2.5, rows)).astype(np.int64)
    regions = pa.array(["ap-south", "ap-southeast", "eu-central", "eu-west", "sa-east", "us-east", "us-west"])
    region = pa.DictionaryArray.from_arrays(pa.array((payload * 7919 % 7).astype(np.int8)), regions)
    hexadecimal = np.frombuffer(b"0123456789abcdef", np.uint8)[rng.integers(0, 16, (rows, 16))]
    offsets = np.arange(0, 16 * rows + 1, 16, dtype=np.int32)
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "payload_id": payload,
            "region": region.cast(pa.string()),
            "status": rng.choice(np.array([200, 202, 400, 404, 500], np.int16), rows, p=[0.9, 0.05, 0.02, 0.02, 0.01]),
            "battery": pa.array(rng.integers(0, 101, rows).astype(np.int8), mask=rng.random(rows) < 0.1),
            "value": np.round(rng.gamma(2.0, 15.0, rows), 2),
            "trace_id": pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(hexadecimal.tobytes())),
        }
    )


def _schema(path: Path) -> pa.Schema:
    if not path.exists():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ZonalError(f"There is no {quoted(str(path))}. {suggestion(path.name, sorted(beside))}")
    with _parquet_errors(path):
        return pq.ParquetDataset(path).schema


def _read(path: Path) -> pa.Table:
    with _parquet_errors(path):
        return pq.read_table(path)


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ZonalError(f"{quoted(str(path))} can't be read as Parquet: {reason}") from None


def _queries(table: pa.Table, columns: Sequence[str]) -> Iterator[Query]:
    """Make look-ups of values that are there, and ranges that hold a known share of the rows."""
    rng = np.random.default_rng(1)
    sample = take_rows(table, np.sort(rng.integers(0, table.num_rows, min(table.num_rows, 20_000))))
    values = {name: leaf(sample, find(sample.schema, name)).drop_null() for name in columns}
    values = {name: column.take(pc.sort_indices(column)) for name, column in values.items()}
    empty = [name for name in columns if not len(values[name])]
    if empty:
        raise ZonalError(f"Column {quoted(empty[0])} has only nulls: there is nothing to look up.")

    def some_range(name: str, share: float) -> tuple[str, pa.Scalar, pa.Scalar]:
        known = values[name]
        width = int(share * len(known))
        low = int(rng.integers(0, max(len(known) - width, 1)))
        return name, known[low], known[low + width]

    for _ in range(LOOKUPS):
        for name in columns:
            yield Query(f"{name} = ?", (some_range(name, 0.0),))
        for name in columns:
            yield Query(f"1 % of {name}", (some_range(name, 0.01),))
        if len(columns) > 1:
            yield Query("5 % of each", tuple(some_range(name, 0.05) for name in columns))


def _write(table: pa.Table, layout: Layout | None, files: int, folder: Path) -> None:
    """Write about this many files, each with row groups cut by the layout."""
    folder.mkdir(parents=True)
    a_file = table.num_rows // files
    if layout is None:
        starts = np.arange(0, table.num_rows, -(-table.num_rows // files))
        groups = [np.arange(0, a_file, max(a_file // ROW_GROUPS_A_FILE, 1)) for _ in starts]
    else:
        sized = Layout(layout.kind, layout.columns, row_group_rows=max(a_file // ROW_GROUPS_A_FILE, 1))
        clustered = cluster_batch(table, layout=sized, file_rows=a_file, detail=True)
        table, starts, groups = clustered.data, clustered.files, list(clustered.row_groups)
    ends = np.append(starts[1:], table.num_rows)
    for number, (start, end, group) in enumerate(zip(starts, ends, groups, strict=True)):
        with pq.ParquetWriter(folder / f"{number:05d}.parquet", table.schema, compression="zstd") as writer:
            for first, last in zip(start + group, np.append(start + group[1:], end), strict=True):
                writer.write_table(table.slice(first, last - first))


def _footers(folder: Path, columns: Sequence[str]) -> Footers:
    """Read the bounds that every engine reads: the minimum and maximum of each column chunk."""
    file, size = [], []
    bounds: dict[str, tuple[list[object], list[object]]] = {name: ([], []) for name in columns}
    kinds: dict[str, pa.DataType] = {}
    for number, path in enumerate(sorted(folder.iterdir())):
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
        kinds = {name: leaf_type(schema, find(schema, name)) for name in columns}
        for g in range(footer.num_row_groups):
            group = footer.row_group(g)
            chunks = {(chunk := group.column(c)).path_in_schema: chunk for c in range(group.num_columns)}
            file.append(number)
            size.append(sum(chunk.total_compressed_size for chunk in chunks.values()))
            for name, (low, high) in bounds.items():
                told = chunks[name].statistics
                known = told is not None and told.has_min_max
                low.append(told.min if known else None)
                high.append(told.max if known else None)
    arrays = {name: (pa.array(low, kinds[name]), pa.array(high, kinds[name])) for name, (low, high) in bounds.items()}
    return Footers(np.array(file), np.array(size), arrays)


def _measure(name: str, footers: Footers, queries: Sequence[Query]) -> Measured:
    total = int(footers.size.sum())
    files = int(footers.file[-1]) + 1
    file_size = np.bincount(footers.file, footers.size)
    shares: dict[str, list[float]] = {}
    groups = []
    for query in queries:
        read = np.ones(len(footers.file), np.bool_)
        for column, low, high in query.ranges:
            least, most = footers.bounds[column]
            meets = pc.and_(pc.less_equal(least, high), pc.greater_equal(most, low))
            read &= meets.fill_null(True).to_numpy(zero_copy_only=False)  # no bounds: it might match
        in_file = np.bincount(footers.file, read, minlength=files) > 0
        shares.setdefault(query.name, []).append(float(file_size[in_file].sum()) / total)
        groups.append(float(footers.size[read].sum()) / total)
    by_file = {query: float(np.mean(values)) for query, values in shares.items()}
    return Measured(name, files, total, by_file, float(np.mean(groups)))


def _print(console: Console, measured: Sequence[Measured], columns: Sequence[str]) -> None:
    table = Table(title="Share of the bytes that a query reads", title_justify="left")
    table.add_column("query", overflow="fold")
    for row in measured:
        table.add_column(row.layout, justify="right", overflow="fold")
    for query in measured[0].by_file:
        table.add_row(Text(query), *(f"{row.by_file[query]:.1%}" for row in measured))
    table.add_section()
    table.add_row("mean", *(f"{row.mean:.1%}" for row in measured), style="bold")
    table.add_row("mean, by row groups", *(f"{row.by_row_group:.1%}" for row in measured))
    table.add_section()
    table.add_row("files", *(str(row.files) for row in measured))
    table.add_row("megabytes", *(f"{row.size / 1e6:.1f}" for row in measured))
    console.print(table)
    best = min(measured[1:], key=lambda row: row.mean)
    console.print(
        f"{Layout(best.layout, tuple(columns))} makes these queries read {measured[0].mean / best.mean:.1f} times "
        "fewer bytes, by the min/max statistics in the files' own footers.",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
