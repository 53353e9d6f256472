"""Look into the files that a predicate keeps: which of their row groups and pages it reads."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from zonal.errors import TableError
from zonal.parquet.bloom import bloom_might_contain
from zonal.parquet.footer import Footer, read_footer, row_group_bounds
from zonal.parquet.page_index import Pages, page_bounds
from zonal.predicates.bound import All, Bound, Ranges
from zonal.skipping.files import points_of
from zonal.skipping.index import Index, columns_of
from zonal.snapshot import UNKNOWN, Bounds, Snapshot
from zonal.tables.protocol import Table, keeps_footers
from zonal.values.arrays import BoolArray, Int64Array
from zonal.values.columns import find, leaf_type
from zonal.values.progress import Progress, Step

_THREADS = 16


@dataclass(frozen=True, eq=False)
class Look:
    """What is looked for in the files of a table."""

    table: Table
    snapshot: Snapshot
    bound: Bound
    bloom: bool
    """Whether to look values up in Bloom filters, too."""


@dataclass(frozen=True, eq=False)
class ReadInside:
    """What one file's footer and page indexes say of a predicate."""

    groups: BoolArray
    group_bytes: Int64Array
    pages: tuple[int, int]
    page_bytes: int
    has_pages: bool


def read_inside(look: Look, files: Int64Array, report: Progress) -> tuple[list[ReadInside | None], list[str]]:
    """Read the footers of files; None, and why, for one that can't be read."""
    results: list[ReadInside | None] = []
    problems: list[str] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        for done, one in enumerate(pool.map(partial(_one, look), files.tolist()), 1):
            results.append(None if isinstance(one, TableError) else one)
            problems += [str(one)] if isinstance(one, TableError) else []
            report(Step("reading footers", done=done, total=len(files)))
    return results, problems


def _one(look: Look, row: int) -> ReadInside | TableError:
    path = look.snapshot.files.paths[row].as_py()
    try:
        with look.table.open_file(path) as file:
            if keeps_footers(look.table):  # the snapshot read it already
                footer = look.table.footer(path)
            else:
                footer = read_footer(file, int(look.snapshot.files.sizes[row]) or None)
            return _in_file(look, file, footer)
    except TableError as error:
        return error


def _in_file(look: Look, file: pa.NativeFile, footer: Footer) -> ReadInside:
    rows = np.array([group.rows for group in footer.row_groups], np.int64)
    bytes_ = np.array([group.compressed_size for group in footer.row_groups], np.int64)
    schema, physical = look.snapshot.schema, look.snapshot.physical
    kinds = {name: leaf_type(schema, find(schema, name)) for name in columns_of(look.bound) if name in physical}
    bounds = {name: row_group_bounds(footer, physical[name], kind) for name, kind in kinds.items()}
    groups = Index(rows, bounds).might_match(look.bound)
    if look.bloom:
        for group in np.flatnonzero(groups).tolist():
            groups[group] = _bloom_might_match(look, file, footer, group)
    kept = total = page_bytes = 0
    has_pages = False
    for group in np.flatnonzero(groups).tolist():
        found = {name: page_bounds(file, footer, group, physical[name], kind) for name, kind in kinds.items()}
        pages = {name: column for name, column in found.items() if column is not None}
        share, here = _pages_kept(pages, int(rows[group]), look.bound)
        has_pages |= bool(pages)
        kept, total = kept + here[0], total + here[1]
        page_bytes += round(share * int(bytes_[group]))
    return ReadInside(groups, bytes_, (kept, total), page_bytes, has_pages)


def _bloom_might_match(look: Look, file: pa.NativeFile, footer: Footer, group: int) -> bool:
    """Tell whether a row group's Bloom filters might hold a value of each equality in the predicate."""
    for part in look.bound.parts if isinstance(look.bound, All) else (look.bound,):
        if isinstance(part, Ranges) and part.column in look.snapshot.physical:
            values = points_of(part, look.snapshot.schema)
            where = look.snapshot.physical[part.column]
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
