"""`show`: the health of a table's layout, from its metadata alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from zonal.arguments import check_arguments
from zonal.display import Display, Shown
from zonal.errors import ColumnError, quoted, suggestion
from zonal.history.opened import Database, ledger_of
from zonal.history.records import LedgerRecord
from zonal.picture.picture import Picture
from zonal.plan.file_size import sized
from zonal.skipping.depth import Depth, column_depth
from zonal.skipping.files import telling_buckets
from zonal.snapshot import UNKNOWN, LazyBounds, Snapshot, TableVersion
from zonal.study.drawing import drawn, is_wanted, without_values
from zonal.tables.protocol import Table, is_versioned
from zonal.tables.registry import read_snapshot, table_of
from zonal.upkeep.condition import Condition, condition_of
from zonal.values.columns import leaves
from zonal.values.progress import Progress, Step, only_notices

DEFAULT_COLUMNS = 12


@dataclass(frozen=True)
class ColumnHealth:
    """How well one column skips."""

    depth: Depth
    files: int
    bucketed: bool = False
    """Whether bucket partitions of the column tell which files hold a value."""

    @property
    def holds_nulls_alone(self) -> bool:
        """Whether every file holds only nulls of the column."""
        return not self.depth.histogram

    @property
    def verdict(self) -> str:
        """Say in one sentence what a look-up of the column reads."""
        name, read = self.depth.column, self.depth.lookup_files
        of = f"of {self.files:,} {'file' if self.files == 1 else 'files'}"
        if not self.files:
            return f"there is no file to look for {name} in"
        if self.holds_nulls_alone:
            return f"{name} holds nulls alone: a look-up of a value reads none {of}"
        every = "the only file" if self.files == 1 else f"all {self.files:,} files"
        if not self.depth.files_with_bounds and not self.bucketed and round(read) == self.files:
            return f"no file has both bounds of {name}: a look-up reads {every}"
        text = f"a look-up of {name} reads {max(1, round(read)):,} {of}"
        if self.bucketed:
            text += " by its buckets"
            return text if self.depth.files_with_bounds else f"{text}; it has no bounds, so a range reads {every}"
        without = sum(self.depth.histogram.values()) - self.depth.files_with_bounds
        return f"{text}, {without:,} of them without bounds of it" if without else text


@dataclass(frozen=True)
class FileSizes:
    """The sizes of a table's files, in bytes; zeros where it has none."""

    smallest_file: int
    median_file: int
    largest_file: int


@dataclass(frozen=True)
class Deletes:
    """What deletion vectors and delete files take from a table's files."""

    delete_files: int
    deleted_rows: int | None
    """None where only the delete files could say."""


@dataclass(frozen=True)
class TableHealth(Shown):
    """What `show` found."""

    table: TableVersion
    sizes: FileSizes
    deletes: Deletes
    partitions: int
    files_in_layout: int
    columns: tuple[ColumnHealth, ...]
    columns_left_out: int
    blockers: tuple[str, ...]
    problems: tuple[str, ...]
    condition: Condition | None = None
    """How the table stands to its layout, and what `cluster` would do now; None without a recorded layout."""
    picture: Picture | None = field(default=None, repr=False, compare=False)
    """The files as rectangles over these columns, if one was requested."""


def show(
    table: Table | str,
    *,
    columns: str | Sequence[str] | None = None,
    display: Display | None = None,
    database: Database = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> TableHealth:
    """Measure a table: its files, and how well each column skips.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        columns: one, or several; by default, those of the recorded layout, then others with bounds, a dozen in all.
        display: what the result shows, as `Display`; a picture has these columns.
        database: the history that knows what was rewritten by commits that have expired: a URL, an open `History`, or
            None for none.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears each step.

    Example:
        >>> health = zonal.show("events", columns=["day"])
        >>> health.table.files, health.columns[0].verdict
        (4, 'a look-up of day reads 1 of 4 files')
    """
    check_arguments(show, locals())
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    report = progress or only_notices
    report(Step("reading the table's metadata"))
    snapshot = read_snapshot(source, report)
    columns = [columns] if isinstance(columns, str) else columns
    shown = display or Display()
    is_pinned = is_versioned(source) and source.pinned
    ledger = ledger_of(None if is_pinned else database, snapshot.location)
    picture = is_wanted(shown.picture, snapshot)
    return health_of(snapshot, columns, picture=picture, hide_literals=shown.hide_literals, ledger=ledger)


def health_of(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    *,
    picture: bool = False,
    hide_literals: bool = False,
    ledger: Sequence[LedgerRecord] = (),
) -> TableHealth:
    """Measure a snapshot, and draw it on request."""
    files = snapshot.files
    known = list(dict.fromkeys([*files.partition_bounds, *files.bounds]))
    names = _chosen(snapshot, known, columns)
    if isinstance(files.bounds, LazyBounds):
        files.bounds.load(names)
    sizes = files.sizes if len(files) else np.zeros(1, np.int64)
    layout_id = snapshot.layout.id if snapshot.layout else None
    return TableHealth(
        table=TableVersion.of(snapshot, cuts=not hide_literals),
        sizes=FileSizes(int(sizes.min()), int(np.median(sizes)), int(sizes.max())),
        deletes=Deletes(int(files.delete_files.sum()), _total(files.deleted)),
        partitions=len(np.unique(files.partition)),
        files_in_layout=sum(each == layout_id for each in files.layout_ids.to_pylist()) if layout_id else 0,
        columns=tuple(_column(snapshot, name) for name in names),
        columns_left_out=0 if columns is not None else len(known) - len(names),
        blockers=snapshot.blockers,
        problems=snapshot.problems,
        condition=_condition(snapshot, ledger),
        picture=_drawn(snapshot, names, hide=hide_literals) if picture else None,
    )


def _drawn(snapshot: Snapshot, names: Sequence[str], *, hide: bool) -> Picture | None:
    picture = drawn([("now", snapshot)], names)
    return without_values(picture) if picture is not None and hide else picture


def _condition(snapshot: Snapshot, ledger: Sequence[LedgerRecord]) -> Condition | None:
    """Return None where no layout is recorded, or where its columns are gone."""
    layout = snapshot.layout
    if layout is None or not all(name in snapshot.physical for name in layout.columns):
        return None
    return condition_of(snapshot, sized(layout, snapshot), ledger)


def _total(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int | None:
    return None if (counts == UNKNOWN).any() else int(counts.sum())


def _chosen(snapshot: Snapshot, known: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        first = snapshot.layout.columns if snapshot.layout else ()
        wanted = [*(name for name in first if name in known), *known]
        return list(dict.fromkeys(wanted))[:DEFAULT_COLUMNS]
    everything = list(dict.fromkeys([*leaves(snapshot.schema), *known]))
    missing = [name for name in columns if name not in everything]
    if missing:
        raise ColumnError(f"Unknown column {quoted(missing[0])}. {suggestion(missing[0], everything)}")
    without = [name for name in columns if name not in known]
    if without:
        raise ColumnError(f"Column {quoted(without[0])} has no statistics in this table: choose another.")
    return list(dict.fromkeys(columns))


def _column(snapshot: Snapshot, name: str) -> ColumnHealth:
    depth = column_depth(snapshot, name)
    if depth is None:
        raise ColumnError(f"Column {quoted(name)} has no statistics in this table: choose another.")
    return ColumnHealth(depth, len(snapshot.files), bool(telling_buckets(snapshot, name)))
