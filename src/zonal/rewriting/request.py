"""Check a request to `cluster` before anything is written: the table, the layout, and the files to rewrite."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs

from zonal.advising.queries import BoundQueries
from zonal.errors import ColumnError, LayoutError, TableError, ZonalError, option, quoted
from zonal.history.records import LedgerRecord
from zonal.layouts.layout import CURVES, Layout
from zonal.layouts.ranks import bind
from zonal.plan.choice import choose, still_there
from zonal.plan.file_size import sized
from zonal.plan.rewrite import Writing
from zonal.plan.run import new_run
from zonal.predicates.bind import bind as bind_predicate
from zonal.predicates.bound import Bound
from zonal.rewriting.in_place import refuse_filters
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.scope import Scope
from zonal.snapshot import Snapshot
from zonal.storage.exclusive import exclusive_folder
from zonal.tables.protocol import Rewritable, Table, is_rewritable
from zonal.upkeep.merges import MergeTerms
from zonal.values.arrays import Int64Array
from zonal.values.columns import leaf_type
from zonal.values.sizes import size_text
from zonal.workload.logs import Queries

DEFAULT_KIND = "zorder"
_EXAMPLE = ["ts", "payload_id"]


@dataclass(frozen=True, eq=False)
class Request:
    """What `cluster` is asked for, as its arguments have it."""

    by: str | Sequence[str] | None = None
    layout: str | Layout | None = None
    queries: Queries | None = None
    scope: Scope = field(default_factory=Scope)
    into: str | None = None
    files: NewFiles = field(default_factory=NewFiles)
    asked: BoundQueries | None = None
    """The queries, once they are read and bound to the table."""
    per_day: float | None = None
    """Scans of the table in one day, as the log has them."""

    def chosen(self, snapshot: Snapshot) -> Layout:
        """Return the requested layout, else the one that the table records."""
        chosen = chosen_layout(snapshot, self.by, self.layout, self.files.target_bytes)
        recorded = None if snapshot.layout is None else snapshot.layout.encodings
        chosen = replace(chosen, encodings=self.files.encodings or chosen.encodings or recorded)
        return sized(chosen, snapshot, afresh=self.scope.full or self.into is not None)

    def check(self) -> None:
        """Raise an error for sizes and codecs that mean nothing, and for options that don't go together."""
        _ = self.files.target_bytes, self.files.codec, self.scope.most_bytes, self.scope.commit_bytes
        _ = self.scope.terms()
        if self.scope.pays_within is not None and self.queries is None:
            what = option("pays_within", self.scope.pays_within)
            raise ZonalError(f"{what} is judged by queries: give their logs with {option('queries')}, or leave it out.")
        if self.into is None:
            return
        if parts := [option(name) for name in self.scope.given]:
            raise ZonalError(f"{option('into')} copies the whole table at once: leave out {', '.join(parts)}.")
        if self.files.keep_properties:
            what = option("keep_properties")
            raise ZonalError(f"{what} is for a rewrite in place: a new table has no properties to keep.")


@dataclass(frozen=True, eq=False)
class Job:
    """A checked request: everything that can be refused has been, and nothing is written yet."""

    table: Rewritable
    snapshot: Snapshot
    layout: Layout
    scope: Scope
    where: "Bound | None"
    """The condition of the scope, bound to the table's columns."""
    files: NewFiles
    terms: MergeTerms
    queries: tuple[tuple[Bound, float], ...] = ()
    """Predicates of the log, and their weights."""
    ledger: tuple[LedgerRecord, ...] = ()
    """What the history knows of the table's runs, for when their commits have expired."""

    @classmethod
    def of(cls, source: Table, snapshot: Snapshot, request: Request, ledger: Sequence[LedgerRecord] = ()) -> "Job":
        """Check a request, and refuse what can't be done or wouldn't help."""
        chosen = request.chosen(snapshot)
        refuse(snapshot, chosen)
        bound = _bound(request.scope.where, snapshot)
        table = rewritable(source, snapshot)
        asked = request.asked
        queries = () if asked is None else tuple(zip(asked.bounds, asked.weights.tolist(), strict=True))
        terms = request.scope.terms(request.per_day)
        job = cls(table, snapshot, chosen, request.scope, bound, request.files, terms, queries, tuple(ledger))
        refuse_filters(job.writing(new_run()))
        return job

    def writing(self, run: str, newer: Snapshot | None = None) -> Writing:
        """Return how a run with this name writes its files, of the snapshot that was checked or a newer one."""
        table, snapshot = (self.table, self.snapshot) if newer is None else (self.table.newest(), newer)
        return table.writing(snapshot, layout=self.layout, run=run, compression=self.files.codec)

    def check(self, snapshot: Snapshot) -> None:
        """Raise an error where the layout doesn't fit a newer snapshot; columns are identified by field id."""
        now = {column.field_id: name for name, column in snapshot.physical.items() if column.field_id is not None}
        for name in (*self.layout.columns, *self.layout.bloom_columns):
            column = self.snapshot.physical.get(name)
            number = None if column is None else column.field_id
            if (now.get(number) if number is not None else name) != name or name not in snapshot.physical:
                what = f"renamed to {quoted(now[number])}" if number in now and number is not None else "dropped"
                raise ColumnError(
                    f"The column {quoted(name)} of {quoted(snapshot.name, limit=200)} was {what} during the rewrite. "
                    "Run it again by columns that the table has."
                )
        refuse(snapshot, self.layout)

    @property
    def is_explicit(self) -> bool:
        """Whether the request itself says which files to rewrite, so that nothing is left to wait."""
        return self.scope.full or self.where is not None

    @property
    def changes_layout(self) -> bool:
        """Whether the table is to record another layout, whatever is rewritten now."""
        recorded = self.snapshot.layout
        return self.where is None and (recorded is None or recorded.id != self.layout.id)

    def again(self, mine: Collection[str], snapshot: Snapshot) -> Int64Array:
        """Return the files of a snapshot that may be rewritten: `mine`, and those that aren't in the layout."""
        self.check(snapshot)
        chosen = choose(snapshot, self.layout, where=self.where, full=self.scope.full)
        return np.union1d(chosen, still_there(snapshot, list(mine)))


def _bound(where: str | None, snapshot: Snapshot) -> "Bound | None":
    """Read a condition, and bind it to the table's columns."""
    if where is None:
        return None
    from zonal.sql.where import parse_where  # noqa: PLC0415 - sqlglot is slow to import

    return bind_predicate(parse_where(where), snapshot.schema)


def chosen_layout(
    snapshot: Snapshot, by: str | Sequence[str] | None, layout: str | Layout | None, file_bytes: int | None
) -> Layout:
    """Return the requested layout, else the one that the table records."""
    if by is None and layout is None:
        if snapshot.layout is None:
            raise LayoutError(
                f"{quoted(snapshot.name, limit=200)} records no layout: say which columns, as in "
                f"{option('by', _EXAMPLE)}."
            )
        chosen = snapshot.layout
    elif by is not None:
        if isinstance(layout, Layout) or "(" in (layout or ""):
            raise LayoutError(f"The layout {layout} names its columns already: leave out {option('by', by)}.")
        chosen = Layout(layout or DEFAULT_KIND, (by,) if isinstance(by, str) else tuple(by))
    elif isinstance(layout, Layout):
        chosen = layout
    else:
        if layout in CURVES:
            raise LayoutError(
                f"Say which columns to cluster by: {option('by', _EXAMPLE)}, or "
                f"{option('layout', f'{layout}(ts, payload_id)')}."
            )
        chosen = Layout.parse(str(layout))
    return chosen if file_bytes is None else replace(chosen, target_file_bytes=file_bytes)


def rewritable(source: Table, snapshot: Snapshot) -> Rewritable:
    """Return the table, or raise an error where its files must not be replaced."""
    if snapshot.blockers or not is_rewritable(source):
        reasons = " ".join(snapshot.blockers)
        raise TableError(f"{quoted(snapshot.name, limit=300)} can't be rewritten: {reasons}")
    return source


def refuse_columns(schema: pa.Schema, layout: Layout) -> None:
    """Raise an error for columns that don't exist, have no order, or whose Bloom filters would hide rows.

    A filter hashes bits, and 0.0 equals -0.0, which has others: parquet-java looks up the literal's bits alone, so
    that Spark would miss the other zero, and a NaN of other bits.
    """
    paths = bind(schema, [*layout.columns, *layout.bloom_columns])
    for name in layout.bloom_columns:
        if pa.types.is_floating(leaf_type(schema, paths[name])):
            raise ColumnError(
                f"{quoted(name)} has type {leaf_type(schema, paths[name])}, for which Bloom filters are unsafe: 0.0 "
                "and -0.0 are equal but have different bits, and engines that ask a filter for one miss the other. "
                "Leave it out of bloom=[…]."
            )


def refuse(snapshot: Snapshot, layout: Layout) -> None:
    """Raise an error for what `refuse_columns` refuses, and for columns that are constant in each partition."""
    refuse_columns(snapshot.schema, layout)
    constant = [name for name in layout.columns if name in snapshot.partitioning]
    if constant:
        raise ColumnError(
            f"{quoted(constant[0])} partitions {quoted(snapshot.name, limit=200)}: it has one value in each partition, "
            "and rows stay in theirs. Leave it out."
        )


SMALL = 0.5
"""Share of a file's target size up to which a partition becomes one file."""


def too_small(snapshot: Snapshot, paths: Sequence[str], layout: Layout) -> str:
    """Say where partitions are so small that no layout can skip anything inside of them; empty where they aren't."""
    files = still_there(snapshot, paths)
    parts, place = np.unique(snapshot.files.partition[files], return_inverse=True)
    sizes = np.bincount(place, snapshot.files.sizes[files])
    if not snapshot.partitioning or not len(parts) or sizes.max() > SMALL * layout.file_bytes:
        return ""
    many = f"each of {len(parts):,} partitions has" if len(parts) > 1 else "the partition has"
    return (
        f"There is little to gain: {many} at most {size_text(int(sizes.max()))} and a file may have "
        f"{size_text(layout.file_bytes)}, so that it becomes one file, which a query reads or skips as a whole. "
        f"Choose a smaller {option('target_file_size')}, or partition the table by less."
    )


def refuse_unwritable(writing: Writing, run: str) -> None:
    """Raise an error where new files or their commit can't be written, before Spark starts.

    Permissions don't tell: a disk may be mounted read-only, and some folders take no files of anybody. In an object
    store only what a commit needs is checked.
    """
    if writing.log is not None:
        exclusive_folder(writing.storage, writing.log).check()
    filesystem, path = writing.storage.locate(writing.folder)
    if not isinstance(filesystem, pa.fs.LocalFileSystem):
        return
    folder = Path(path).parent
    try:
        while not folder.exists():
            folder = folder.parent
        probe = folder / f".zonal-{run}"
        probe.mkdir()
        with suppress(OSError):
            probe.rmdir()
    except OSError as error:
        raise TableError(
            f"Nothing can be written to {quoted(str(Path(path).parent), limit=300)}: {error.strerror or error}. Choose "
            "another place, or have it made writable."
        ) from None
