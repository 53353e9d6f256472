"""Read a folder of Parquet files, or a single file, as a table whose only metadata is the files' footers."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import fs

from zonal.cleaning.retention import Retention
from zonal.cleaning.run_folders import leftovers
from zonal.cleaning.spares import Spares
from zonal.errors import LayoutError, TableError, option, quoted, suggestion
from zonal.layouts.layout import Layout
from zonal.parquet import statistics as decode
from zonal.parquet.footer import Footer, parse_footer, read_footer_bytes, row_group_ranges
from zonal.parquet.statistics import NOTHING, Range, Scalar, Statistics
from zonal.plan.rewrite import Scan
from zonal.snapshot import UNKNOWN, Bounds, Files, LazyBounds, Physical, Snapshot, Traits
from zonal.storage import Storage, open_regular
from zonal.storage.causes import STORAGE_ERRORS
from zonal.storage.location import catalog_hint
from zonal.tables.foreign import refuse_managed
from zonal.tables.hive_folders import HIVE_NULL, is_hidden
from zonal.tables.parquet.copy import LAYOUT_KEY, scan_files
from zonal.values.arrays import Int64Array
from zonal.values.columns import find, leaf_type, leaves
from zonal.values.progress import Progress, Step

_BOUNDS_ADVICE = "Write the Parquet files with statistics of this column: pyarrow's write_statistics, Spark's default."

_NO_LOG = (
    "Plain Parquet has no log: only folders of zonal's own broken copies can be told from rows that somebody wants."
)

THREADS = 16
"""Footers read at once: each is one small request that mostly waits for the storage."""


@dataclass(frozen=True)
class _Listed:
    """A data file in the listing."""

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...]
    """Keys and values of its Hive folders; None is a null."""


class ParquetTable:
    """Parquet files below one location: a local path, or a URI that pyarrow opens (s3, gs, abfss, hdfs).

    Folders named `key=value` are Hive partitions; names that begin with `_` or `.` don't belong to the table.
    A folder that belongs to a table of another format is refused, unless its files are wanted `as_is`.
    `storage_options` are those of `zonal.storage.options`.
    """

    def __init__(self, location: str, *, storage_options: Mapping[str, str] | None = None, as_is: bool = False) -> None:
        self._as_is = as_is
        self.storage = Storage(location, storage_options or {})
        self._storage, self._root = self.storage.locate(self.storage.root)
        local = isinstance(self._storage, fs.LocalFileSystem)
        self._base = self._root if local else self.storage.root
        self.name = location if local else self.storage.root  # without the credentials that a URI may hold
        self._footers: dict[str, Footer | TableError] = {}

    def snapshot(self, progress: Progress | None = None) -> Snapshot:
        """List the files and read each one's footer, once; `progress` hears how many of how many are read.

        A file that can't be read is named in `problems`; it has no bounds, so nothing skips it.
        """
        files = self._list()
        footers, problems = self._read_all(files, progress)
        schema, conflicts = _unified_schema(files, footers)
        rows = np.array([UNKNOWN if footer is None else footer.rows for footer in footers], np.int64)
        partitions = _partition_bounds(files, rows)
        for key, (kind, _) in partitions.items():
            schema = _with_partition(schema, pa.field(key, kind))
        layout, layout_ids = _layouts(footers)
        names = [name for name in dict.fromkeys(leaves(schema)) if name not in partitions]
        return Snapshot(
            name=self.name,
            format="parquet",
            location=self._base,
            version=None,
            time=None,
            schema=schema,
            partitioning=tuple(partitions),
            files=_files(
                files,
                footers,
                rows=rows,
                layout_ids=layout_ids,
                kinds={name: leaf_type(schema, find(schema, name)) for name in names},
                partitions=partitions,
            ),
            physical={name: Physical(name) for name in names},
            layout=layout,
            traits=Traits(bounds_advice=lambda _: _BOUNDS_ADVICE),
            blockers=(f"plain Parquet has no atomic commit: use {option('into')}",),
            problems=(*problems, *conflicts),
        )

    def open_file(self, path: str) -> pa.NativeFile:
        """Open one of the snapshot's files for random access; the caller closes it."""
        inside = path[len(self._base) :]
        if not path.startswith(self._base) or inside[:1] not in ("", "/"):
            raise TableError(f"{quoted(path)} is no file of {quoted(self.name)}.")
        try:
            return open_regular(self._storage, self._root + inside)
        except STORAGE_ERRORS as error:
            raise TableError(f"It can't be opened: {self.storage.told(error, path)}") from error

    def scan(self, snapshot: Snapshot, files: Int64Array, *, columns: Sequence[str] | None = None) -> Scan:
        """Return how workers read these files: columns by name, Hive partition columns from the folders' names."""
        return scan_files(snapshot, files, self.storage, columns)

    def place(self) -> Storage:
        """Return the folder; see `Cleanable`."""
        return self.storage

    def spare(self, retention: Retention) -> Spares:
        """Return what broken copies have left; see `Cleanable`. Of other files, nothing tells who needs them."""
        if self._storage.get_file_info(self._root).type == fs.FileType.NotFound:
            raise self._missing()
        listed = self._storage.get_file_info(fs.FileSelector(self._root, recursive=True, allow_not_found=True))
        refuse_managed(self.name, self._storage, self._root, (info.path for info in listed))
        files, notes = leftovers(self.storage, self.storage.root, retention, set)
        return Spares(tuple(files), notes=(*notes, _NO_LOG))

    def needed(self, retention: Retention) -> set[str]:  # noqa: ARG002
        """Return nothing: a folder has no metadata that could need a file; see `Cleanable`."""
        return set()

    def footer(self, path: str) -> Footer:
        """Return a file's footer, cached where a snapshot has read it."""
        if path not in self._footers:
            self._footers[path] = _parsed(path, *self._read(path, None))
        known = self._footers[path]
        if isinstance(known, TableError):
            raise known
        return known

    def _read(self, path: str, size: int | None) -> tuple[bytes | TableError, int]:
        try:
            with self.open_file(path) as file:
                size = file.size() if size is None else size
                return read_footer_bytes(file, size), size
        except TableError as error:
            return error, size or 0

    def _read_all(self, files: Sequence[_Listed], progress: Progress | None) -> tuple[list[Footer | None], list[str]]:
        # Threads only read: with decoding in them, too, it takes half as long again, as they compete for the GIL.
        with ThreadPoolExecutor(THREADS) as pool:
            answers = pool.map(lambda file: self._read(file.path, file.size), files)
            for done, (file, answer) in enumerate(zip(files, answers, strict=True), 1):
                self._footers[file.path] = _parsed(file.path, *answer)
                if progress:
                    progress(Step("reading footers", done=done, total=len(files)))
        answered = [self._footers[file.path] for file in files]
        problems = [str(answer) for answer in answered if isinstance(answer, TableError)]
        if len(problems) == len(files):
            raise TableError(f"No file of {quoted(self.name)} can be read. {problems[0]}")
        return [None if isinstance(answer, TableError) else answer for answer in answered], problems

    def _list(self) -> list[_Listed]:
        try:
            top = self._storage.get_file_info(self._root)
            listed = [top] if top.type == fs.FileType.File else []
            if top.type == fs.FileType.Directory:
                selector = fs.FileSelector(self._root, recursive=True)
                listed = [info for info in self._storage.get_file_info(selector) if info.is_file]
                if not self._as_is:
                    refuse_managed(self.name, self._storage, self._root.rstrip("/"), [info.path for info in listed])
        except STORAGE_ERRORS as error:
            raise TableError(f"{quoted(self.name)} can't be listed: {self.storage.told(error)}") from error
        if top.type == fs.FileType.NotFound:
            raise self._missing()
        files = [self._listed(info) for info in listed if not is_hidden(info.path[len(self._root) :])]
        if not files:
            raise TableError(f"{quoted(self.name)} has no Parquet files.")
        return sorted(files, key=lambda file: file.path)

    def _listed(self, info: fs.FileInfo) -> _Listed:
        inside = info.path[len(self._root) :]
        return _Listed(self._base + inside, info.size, tuple(_hive_pairs(inside)))

    def _missing(self) -> TableError:
        hints = (self._nearest(), catalog_hint(self.name))
        return TableError(" ".join((f"There is nothing at {quoted(self.name)}.", *filter(None, hints))))

    def _nearest(self) -> str:
        parent, _, name = self._root.rpartition("/")
        try:
            around = self._storage.get_file_info(fs.FileSelector(parent or "/"))
        except STORAGE_ERRORS as error:
            return "" if isinstance(self._storage, fs.LocalFileSystem) else self.storage.told(error)
        return suggestion(name, sorted(info.base_name for info in around if not is_hidden(info.base_name)))


def _parsed(path: str, read: bytes | TableError, size: int) -> Footer | TableError:
    """Decode a footer, or return an error that names the file."""
    try:
        if isinstance(read, TableError):
            raise read
        return parse_footer(read, size)
    except TableError as error:
        return TableError(f"{path}: {error}")


def _hive_pairs(inside: str) -> Iterator[tuple[str, str | None]]:
    for folder in inside.split("/")[:-1]:
        key, mark, value = folder.partition("=")
        if mark and key:
            yield unquote(key), None if value == HIVE_NULL else unquote(value)


def _files(
    files: Sequence[_Listed],
    footers: Sequence[Footer | None],
    *,
    rows: Int64Array,
    layout_ids: pa.Array,
    kinds: Mapping[str, pa.DataType],
    partitions: Mapping[str, tuple[pa.DataType, Bounds]],
) -> Files:
    nothing = np.zeros(len(files), np.int64)
    numbers = {pairs: number for number, pairs in enumerate(dict.fromkeys(file.partition for file in files))}
    return Files(
        paths=pa.array([file.path for file in files], pa.string()),
        sizes=np.array([file.size for file in files], np.int64),
        rows=rows,
        deleted=nothing,
        delete_files=nothing,
        added_by=np.full(len(files), UNKNOWN, np.int64),
        layout_ids=layout_ids,
        partition=np.array([numbers[file.partition] for file in files], np.int64),
        partitions=tuple("/".join(f"{key}={value}" for key, value in pairs) for pairs in numbers),
        bounds=LazyBounds({
            name: partial(file_bounds, footers, Physical(name), kind)
            for name, kind in kinds.items()
            if not pa.types.is_nested(kind)
        }),
        partition_bounds={key: bounds for key, (_, bounds) in partitions.items()},
    )  # fmt: skip


def file_bounds(footers: Sequence[Footer | None], physical: Physical, kind: pa.DataType) -> Bounds:
    """Return one column's bounds in whole files; a file without a footer has none.

    A file's bounds cover all its row groups: a row group without a bound leaves the file without one, unless all its
    values are null or NaN.
    """
    ranges: list[Range] = []
    counts: list[Statistics] = []
    for footer in footers:
        span, count = ((None, None), NOTHING) if footer is None else _whole_file(footer, physical, kind)
        ranges.append(span)
        counts.append(count)
    return decode.bounds(None, kind, ranges, counts)


def _whole_file(footer: Footer, physical: Physical, kind: pa.DataType) -> tuple[Range, Statistics]:
    leaf, units, ranges = row_group_ranges(footer, physical, kind)
    floats = leaf is not None and pa.types.is_floating(leaf.kind)
    nans = [unit.nans if floats else 0 for unit in units]
    lowers, uppers = [], []
    for group, unit, not_numbers, (lower, upper) in zip(footer.row_groups, units, nans, ranges, strict=True):
        if unit.nulls == UNKNOWN or unit.nulls + max(not_numbers, 0) < group.rows:
            lowers.append(lower)
            uppers.append(upper)
    nulls = [unit.nulls for unit in units]
    if leaf is None:
        nulls, nans = ([footer.rows], [0]) if _absent(footer, physical) else ([UNKNOWN], [UNKNOWN])
    return (_extreme(lowers, min), _extreme(uppers, max)), Statistics(nulls=_total(nulls), nans=_total(nans))


def _absent(footer: Footer, physical: Physical) -> bool:
    """Tell whether a file lacks a column under any spelling, so that every reader sees nulls."""
    top = physical.path.partition(".")[0].casefold()
    return all(name.partition(".")[0].casefold() != top for name in footer.schema.arrow.names)


def _extreme(values: Sequence[Scalar | None], choose: Callable[..., Scalar]) -> Scalar | None:
    return None if not values or any(value is None for value in values) else choose(values)


def _total(counts: Sequence[int]) -> int:
    return UNKNOWN if UNKNOWN in counts else sum(counts)


def _unified_schema(files: Sequence[_Listed], footers: Sequence[Footer | None]) -> tuple[pa.Schema, list[str]]:
    """Merge the files' schemas; a column whose types don't merge keeps the first type, and the conflict is returned."""
    first: dict[int, tuple[str, pa.Schema]] = {}
    for file, footer in zip(files, footers, strict=True):
        if footer is not None:
            first.setdefault(id(footer.schema), (file.path, footer.schema.arrow))
    merged: dict[str, tuple[pa.Field, str]] = {}
    conflicts = []
    for path, schema in first.values():
        for column in schema:
            before, origin = merged.get(column.name, (column, path))
            both = _merge(before, column)
            merged[column.name] = (both or before, origin)
            if both is None:
                conflicts.append(
                    f"Column {quoted(column.name)} is {before.type} in {origin} and {column.type} in {path}: "
                    f"it is read as {before.type}, without statistics of other types."
                )
    return pa.schema([column for column, _ in merged.values()]), conflicts


def _merge(one: pa.Field, other: pa.Field) -> pa.Field | None:
    if one.equals(other):
        return one
    try:
        return pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive").field(0)
    except pa.ArrowException:
        return None


def _partition_bounds(files: Sequence[_Listed], rows: Int64Array) -> dict[str, tuple[pa.DataType, Bounds]]:
    """Return the type of each Hive partition key, inferred from all its values, and its bounds in each file."""
    given = [dict(file.partition) for file in files]
    keys = dict.fromkeys(key for pairs in given for key in pairs)
    return {key: _key_bounds([pairs.get(key, ()) for pairs in given], rows) for key in keys}


def _key_bounds(texts: Sequence[str | tuple[()] | None], rows: Int64Array) -> tuple[pa.DataType, Bounds]:
    """Parse a key's values; an empty tuple is a file outside of such a folder, whose bounds are unknown."""
    present = [text for text in texts if isinstance(text, str)]
    kind = _hive_type(present)
    values = [_hive_value(text, kind) if isinstance(text, str) else None for text in texts]
    known = decode.array(values, kind)
    nulls = [0 if isinstance(text, str) else rows[i] if text is None else UNKNOWN for i, text in enumerate(texts)]
    return kind, Bounds(known, known, np.array(nulls, np.int64), np.zeros(len(values), np.int64))


def _hive_type(texts: Sequence[str]) -> pa.DataType:
    if texts and all(re.fullmatch(r"-?[0-9]{1,18}", text) for text in texts):
        return pa.int64()
    return pa.date32() if texts and all(_day(text) is not None for text in texts) else pa.string()


def _hive_value(text: str, kind: pa.DataType) -> Scalar | None:
    if pa.types.is_string(kind):
        return text.encode("utf-8", "surrogateescape")
    return int(text) if pa.types.is_int64(kind) else _day(text)


def _day(text: str) -> int | None:
    """Return the days since 1970 of a date written as YYYY-MM-DD."""
    try:
        return (date.fromisoformat(text) - date(1970, 1, 1)).days if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None
    except ValueError:
        return None


def _with_partition(schema: pa.Schema, column: pa.Field) -> pa.Schema:
    """Add a partition column; where files have it as well, the folder's value counts, as in Spark and DuckDB."""
    position = schema.get_field_index(column.name)
    return schema.append(column) if position < 0 else schema.set(position, column)


def _layouts(footers: Sequence[Footer | None]) -> tuple[Layout | None, pa.Array]:
    """Return the layout that all files with a recorded layout share, and the layout id of each file."""
    texts = [None if footer is None else footer.metadata.get(LAYOUT_KEY) for footer in footers]
    known = {text: _layout(text) for text in dict.fromkeys(texts) if text is not None}
    ids = [layout.id if text is not None and (layout := known[text]) else None for text in texts]
    layout = next(iter(known.values())) if len(known) == 1 else None
    return layout, pa.array(ids, pa.string())


def _layout(text: str) -> Layout | None:
    try:
        return Layout.from_json(text)
    except LayoutError:
        return None
