"""`explain`: which partitions, files, row groups and pages a query reads, and what skipped the rest."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa

from zonal.arguments import check_arguments
from zonal.display import Shown
from zonal.errors import PredicateError, TableError, option
from zonal.parquet.bloom import bloom_might_contain
from zonal.parquet.footer import Footer, read_footer, row_group_bounds
from zonal.parquet.page_index import Pages, page_bounds
from zonal.picture.picture import Picture
from zonal.predicates.bind import bind
from zonal.predicates.bound import All, Anything, Bound, Ranges, leaves_of
from zonal.skipping.files import FileIndex, points_of
from zonal.skipping.index import Index, columns_of
from zonal.snapshot import UNKNOWN, Bounds, Snapshot, table_names
from zonal.sql.query import parse_query
from zonal.sql.where import parse_where
from zonal.study.drawing import drawn, is_wanted
from zonal.tables.protocol import Table, keeps_footers
from zonal.tables.registry import read_snapshot, table_of
from zonal.values.arrays import BoolArray, Int64Array
from zonal.values.columns import find, leaf_type
from zonal.values.progress import Progress, Step, only_notices

FOOTERS = 1000
"""Footers that are read by default: beyond this many files, `explain` stops at the level of files."""

_THREADS = 16


@dataclass(frozen=True)
class Level:
    """What skipping leaves at one level: units and bytes."""

    name: str
    kept: int
    total: int
    kept_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class ReadFile:
    """A file that the query reads."""

    path: str
    size: int
    rows: int | None
    partition: str
    row_groups: int | None = None
    """Row groups that might match; None where the footer was not read."""
    total_row_groups: int | None = None


@dataclass(frozen=True)
class Explanation(Shown):
    """What a query reads of a table."""

    table: str
    format: str
    version: int | None
    predicate: str
    levels: tuple[Level, ...]
    skipped_by: Mapping[str, int]
    """Files that each column's bounds, or partition values, skipped."""
    unknown: tuple[str, ...]
    """Parts of the predicate that no statistics help with, and why."""
    files: tuple[ReadFile, ...]
    notes: tuple[str, ...]
    picture: Picture | None = field(default=None, repr=False, compare=False)
    """The files as rectangles and the query as a box, where it was asked for."""

    @property
    def share_of_bytes(self) -> float:
        """Return the share of the table's bytes that the query reads, at the finest level that was read."""
        return self.levels[-1].kept_bytes / max(self.levels[0].total_bytes, 1)


def explain(
    table: Table | str,
    *,
    where: str | None = None,
    sql: str | None = None,
    read_as: str | None = None,
    dialect: str | None = None,
    now: datetime | None = None,
    timezone: str = "UTC",
    footers: bool | None = None,
    bloom: bool = False,
    picture: bool | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Tell which partitions, files, row groups and pages a condition or statement reads, and what skipped the rest.

    A statement is read as `audit` and `advise` read it.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        where: a condition, as after WHERE; give either this or `sql`.
        sql: a whole statement.
        read_as: the table's name or alias in a statement that reads several; by default its own.
        dialect: of the SQL, such as `spark` or `trino`.
        now: what `current_timestamp` means, with a time zone; the time of the call.
        timezone: of the session: what times without a zone mean.
        footers: read the footers of the kept files for row groups and pages; by default, of up to a thousand files.
        bloom: also look values up in their Bloom filters.
        picture: draw files and query, for a page or a notebook; by default, of tables with up to 500 files.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears each step.

    Example:
        >>> reads = zonal.explain("events", where="day = 2 AND id > 3")
        >>> [(level.name, level.kept, level.total) for level in reads.levels][0], reads.skipped_by
        (('files', 1, 4), {'day': 3})
    """
    check_arguments(explain, locals())
    if (where is None) == (sql is None):
        raise PredicateError(f"Give either a condition ({option('where')}) or a query ({option('sql')}).")
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    report = progress or only_notices
    report(Step("reading the table's metadata"))
    if sql is not None:
        query = parse_query(sql, dialect=dialect, now=now, timezone=timezone)
        snapshot = read_snapshot(source, report)
        names = table_names(snapshot)
        predicate = query.predicate(table=read_as, own=names, columns=snapshot.schema.names)
    else:
        predicate = parse_where(str(where), dialect=dialect, now=now, timezone=timezone)
        snapshot = read_snapshot(source, report)
    bound = bind(predicate, snapshot.schema, dialect=dialect, timezone=timezone)
    explanation = _Explained(source, snapshot, bound, where or str(sql)).result(footers, bloom, report)
    wanted = is_wanted(picture, snapshot)
    return replace(explanation, picture=_drawn(snapshot, bound, explanation.predicate)) if wanted else explanation


def _drawn(snapshot: Snapshot, bound: Bound, text: str) -> Picture | None:
    """Draw the files over the columns of the query, then those of the layout."""
    columns = [*columns_of(bound), *(snapshot.layout.columns if snapshot.layout else ())]
    return drawn([("now", snapshot)], columns, [(text, bound, 1.0)])


def prune(
    table: Table | str,
    *,
    where: str,
    dialect: str | None = None,
    timezone: str = "UTC",
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the files that might hold a row for which the condition is true.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        where: a condition, as after WHERE.
        dialect: of the SQL, such as `spark` or `trino`.
        timezone: of the session: what times without a zone mean.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.

    Example:
        >>> [path.rpartition("/")[2] for path in zonal.prune("events", where="day BETWEEN 1 AND 2")]
        ['1.parquet', '2.parquet']
    """
    check_arguments(prune, locals())
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    snapshot = source.snapshot()
    bound = bind(
        parse_where(where, dialect=dialect, timezone=timezone), snapshot.schema, dialect=dialect, timezone=timezone
    )
    kept = FileIndex(snapshot).prune(bound).kept
    paths: list[str] = snapshot.files.paths.filter(pa.array(kept)).to_pylist()
    return paths


@dataclass(frozen=True, eq=False)
class _Inside:
    """What one file's footer and page indexes say of a predicate."""

    groups: BoolArray
    group_bytes: Int64Array
    pages: tuple[int, int]
    page_bytes: int
    has_pages: bool


class _Explained:
    def __init__(self, table: Table, snapshot: Snapshot, bound: Bound, text: str) -> None:
        self.table, self.snapshot, self.bound, self.text = table, snapshot, bound, text
        self.pruned = FileIndex(snapshot).prune(bound)
        self.columns = [name for name in columns_of(bound) if name in snapshot.physical]
        self.notes = list(snapshot.problems)

    def result(self, footers: bool | None, bloom: bool, report: Progress) -> Explanation:
        kept = np.flatnonzero(self.pruned.kept)
        inside: list[_Inside | None] = [None] * len(kept)
        if footers is None and len(kept) > FOOTERS:
            self.notes.append(f"{len(kept):,} files are kept: their footers were not read.")
        elif footers is not False:
            inside = self._look_inside(kept, bloom, report)
        skipped = {f"{name} (partition)": mask for name, mask in self.pruned.by_partition.items()}
        skipped |= self.pruned.by_bounds
        return Explanation(
            table=self.snapshot.name,
            format=self.snapshot.format,
            version=self.snapshot.version,
            predicate=self.text,
            levels=tuple(self._levels(kept, inside)),
            skipped_by={name: int(mask.sum()) for name, mask in skipped.items()},
            unknown=tuple(dict.fromkeys(leaf.reason for leaf in leaves_of(self.bound) if isinstance(leaf, Anything))),
            files=tuple(self._file(int(row), file) for row, file in zip(kept, inside, strict=True)),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _levels(self, kept: Int64Array, inside: Sequence[_Inside | None]) -> list[Level]:
        files = self.snapshot.files
        total = int(files.sizes.sum())
        in_partitions = self.pruned.in_partitions
        levels = []
        if self.snapshot.partitioning:
            some, every = (len(np.unique(part)) for part in (files.partition[in_partitions], files.partition))
            levels.append(Level("partitions", some, every, int(files.sizes[in_partitions].sum()), total))
        levels.append(Level("files", len(kept), len(files), int(files.sizes[kept].sum()), total))
        known = [file for file in inside if file is not None]
        if not known:
            return levels
        groups = sum(int(file.groups.sum()) for file in known)
        group_bytes = sum(int(file.group_bytes[file.groups].sum()) for file in known)
        unread = int(sum(files.sizes[row] for row, file in zip(kept, inside, strict=True) if file is None))
        whole = sum(int(file.group_bytes.sum()) for file in known) + unread
        levels.append(Level("row groups", groups, sum(len(file.groups) for file in known), group_bytes + unread, whole))
        if any(file.has_pages for file in known):
            read, every = (sum(file.pages[side] for file in known) for side in (0, 1))
            page_bytes = sum(file.page_bytes for file in known)
            levels.append(Level("pages", read, every, page_bytes + unread, group_bytes + unread))
        return levels

    def _file(self, row: int, inside: _Inside | None) -> ReadFile:
        files = self.snapshot.files
        rows = int(files.rows[row])
        return ReadFile(
            path=files.paths[row].as_py(),
            size=int(files.sizes[row]),
            rows=None if rows == UNKNOWN else rows,
            partition=files.partitions[files.partition[row]] if files.partitions else "",
            row_groups=None if inside is None else int(inside.groups.sum()),
            total_row_groups=None if inside is None else len(inside.groups),
        )

    def _look_inside(self, kept: Int64Array, bloom: bool, report: Progress) -> list[_Inside | None]:
        results: list[_Inside | None] = []
        with ThreadPoolExecutor(_THREADS) as pool:
            for done, one in enumerate(pool.map(lambda row: self._one(int(row), bloom), kept), 1):
                results.append(one)
                report(Step("reading footers", done=done, total=len(kept)))
        return results

    def _one(self, row: int, bloom: bool) -> _Inside | None:
        """Read one file's footer; a file that can't be read is kept whole, and named."""
        path = self.snapshot.files.paths[row].as_py()
        try:
            with self.table.open_file(path) as file:
                if keeps_footers(self.table):  # the snapshot read it already
                    footer = self.table.footer(path)
                else:
                    footer = read_footer(file, int(self.snapshot.files.sizes[row]) or None)
                return self._in_file(file, footer, bloom)
        except TableError as error:
            self.notes.append(str(error))
            return None

    def _kind(self, name: str) -> pa.DataType:
        return leaf_type(self.snapshot.schema, find(self.snapshot.schema, name))

    def _in_file(self, file: pa.NativeFile, footer: Footer, bloom: bool) -> _Inside:
        rows = np.array([group.rows for group in footer.row_groups], np.int64)
        bytes_ = np.array([group.compressed_size for group in footer.row_groups], np.int64)
        physical = self.snapshot.physical
        bounds = {name: row_group_bounds(footer, physical[name], self._kind(name)) for name in self.columns}
        groups = Index(rows, bounds).might_match(self.bound)
        if bloom:
            for group in np.flatnonzero(groups):
                groups[group] = self._bloom(file, footer, int(group))
        kept = total = page_bytes = 0
        has_pages = False
        for group in np.flatnonzero(groups):
            pages = {
                name: column_pages
                for name in self.columns
                if (column_pages := page_bounds(file, footer, int(group), physical[name], self._kind(name))) is not None
            }
            share, here = _pages_kept(pages, int(rows[group]), self.bound)
            has_pages |= bool(pages)
            kept, total = kept + here[0], total + here[1]
            page_bytes += round(share * int(bytes_[group]))
        return _Inside(groups, bytes_, (kept, total), page_bytes, has_pages)

    def _bloom(self, file: pa.NativeFile, footer: Footer, group: int) -> bool:
        """Tell whether a row group's Bloom filters might hold a value of each equality in the predicate."""
        for part in self.bound.parts if isinstance(self.bound, All) else (self.bound,):
            if isinstance(part, Ranges) and part.column in self.snapshot.physical:
                values = points_of(part, self.snapshot.schema)
                where = self.snapshot.physical[part.column]
                if values and all(bloom_might_contain(file, footer, group, where, v) is False for v in values):
                    return False
        return True


def _pages_kept(pages: Mapping[str, Pages], rows: int, bound: Bound) -> tuple[float, tuple[int, int]]:
    """Return the share of a row group's rows in pages that might match, and the columns' pages: kept, and in all.

    Each column has its own pages: the row group is cut wherever a page of any of them begins.
    """
    if not pages or rows <= 0:
        return 1.0, (0, 0)
    starts = np.unique(np.concatenate([column.first_rows for column in pages.values()]))
    sizes = np.diff(np.append(starts, rows))
    at = {name: np.searchsorted(column.first_rows, starts, side="right") - 1 for name, column in pages.items()}
    bounds = {name: _taken(column.bounds, at[name], sizes) for name, column in pages.items()}
    might = Index(sizes, bounds).might_match(bound)
    kept = sum(len(np.unique(place[might])) for place in at.values())
    return float(sizes[might].sum()) / rows, (kept, sum(len(column.first_rows) for column in pages.values()))


def _taken(bounds: Bounds, pages: Int64Array, sizes: Int64Array) -> Bounds:
    """Give each cut the bounds of its page; null counts are per page, so that only all or none carry over."""
    rows = pa.array(pages)
    page_rows = np.bincount(pages, sizes, minlength=len(bounds.nulls)).astype(np.int64)
    nulls = np.where(bounds.nulls == 0, 0, np.where(bounds.nulls == page_rows, page_rows, UNKNOWN))[pages]
    nulls = np.where(nulls > 0, sizes, nulls)
    nans = np.where(bounds.nans == 0, 0, UNKNOWN)[pages]
    return Bounds(bounds.lower.take(rows), bounds.upper.take(rows), nulls, nans)
