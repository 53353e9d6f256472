"""The protocols that tables of every format implement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeGuard

import pyarrow as pa

from zonal.cleaning.retention import Retention
from zonal.cleaning.spares import Spares
from zonal.errors import LayoutError
from zonal.layouts.layout import Layout
from zonal.parquet.footer import Footer
from zonal.plan.append import Append, Appending, PartitionValues
from zonal.plan.rewrite import NewDeletes, Rewrite, Scan, Writing, Written
from zonal.snapshot import Commit, Snapshot
from zonal.storage import Storage
from zonal.values.arrays import Int64Array

LAYOUT_PROPERTY = "zonal.layout"
"""Table property with the layout as JSON; in an Iceberg snapshot's summary, the layout of the files that it added."""


Sending = Callable[[], None]
"""Called right before a request that may commit."""


def unheard() -> None:
    """Do nothing: the default `Sending`."""


class Table(Protocol):
    """A table that can be read: metadata by `snapshot`, files by `open_file`."""

    name: str

    def snapshot(self) -> Snapshot:
        """Return the version that the table's name gives, the newest by default; metadata only."""

    def open_file(self, path: str) -> pa.NativeFile:
        """Open one of the snapshot's files for random access; the caller closes it."""


class Versioned(Table, Protocol):
    """A table with older versions.

    An older version has the schema of its time, so a predicate must be bound to that version's own schema: a column
    that was renamed since is unknown there by its new name. `auditing.renames` gives an older version's bounds today's
    names, by field ids.
    """

    @property
    def pinned(self) -> bool:
        """Whether the table was opened at a version, instead of the newest."""

    def at(self, version: int) -> Table:
        """Return the table pinned to an older version or snapshot; its files are those of the metadata at that time.

        A version that isn't there any more is a `TableError`, at once or when its snapshot is read.
        """

    def versions(self) -> tuple[Commit, ...]:
        """Return the commits that led to the table's version, as far as they can still be read; oldest first."""


class Readable(Table, Protocol):
    """A table whose rows workers can read."""

    def scan(self, snapshot: Snapshot, files: Int64Array, *, columns: Sequence[str] | None = None) -> Scan:
        """Return what workers need to read the rows of these files.

        By default all columns of the data files are read, with those that track rows, as a rewrite in place needs them.
        With `columns` these top-level columns are read, those that only the metadata has included.
        """


class Rewritable(Readable, Protocol):
    """A table whose files can be replaced."""

    def newest(self) -> "Rewritable":
        """Return the table at its newest version; `snapshot` of a pinned table may be older."""

    def writing(self, snapshot: Snapshot, *, layout: Layout, run: str, compression: str | None = None) -> Writing:
        """Return how files that replace others are written; nothing is written yet.

        `compression`, one of `parquet.codecs.CODECS`, replaces the table's own codec. A feature that a rewrite can't
        keep is a `TableError` that names it, as far as `snapshot.blockers` doesn't.
        """

    def commit(self, rewrite: Rewrite, *, sending: Sending = unheard) -> int:
        """Replace files in one atomic commit and return the new version or snapshot id.

        `sending` is called right before each request that may commit: until then, nothing can have been committed, and
        an error that it raises ends the commit.
        A concurrent append survives; where another writer changed a file that would be replaced, a `ConflictError`
        names such files, and nothing of the rewrite is committed.
        """

    def record(self, layout: Layout, base: Snapshot) -> None:
        """Record a layout that fits `base` as the table's own, in one atomic commit that changes no file.

        A schema, or another layout, that somebody changed since `base` is a `ConflictError`.
        """

    def refers_to(self, change: Rewrite) -> set[str]:
        """Return the new files of a change that any version since its base has, even if its commit seemed to fail.

        The newest metadata decides; where it can't be read, the answer is unknown, which is a `TableError`.
        """


class CarriesDeletes(Rewritable, Protocol):
    """A table whose new files can begin with deletes."""

    def newest(self) -> "CarriesDeletes":
        """Return the table at its newest version."""

    def new_deletes(self, snapshot: Snapshot, writing: Writing) -> NewDeletes | None:
        """Return how deletes of new files are stored; None where the table may have none.

        `commit` then takes a rewrite with `carried` deletes: the replaced files must have those of `carried.seen`.
        `refers_to` also returns files of deletes in the run's own folder.
        """


def carries_deletes(table: Rewritable) -> TypeGuard[CarriesDeletes]:
    """Tell whether new files of the table's format can begin with deletes."""
    return hasattr(table, "new_deletes")


class Cleanable(Table, Protocol):
    """A table that knows which files nobody needs."""

    def place(self) -> Storage:
        """Return the table's folder: nothing outside of it is ever touched."""

    def spare(self, retention: Retention) -> Spares:
        """Return the files in the table's folder that no version needs which is kept; nothing is changed.

        The newest metadata decides. What can't be proved is left, and told; metadata that can't be read is a
        `TableError`.
        """

    def needed(self, retention: Retention) -> set[str]:
        """Return all files that the versions need which are kept, by all their `spellings`."""


class Expirable(Cleanable, Protocol):
    """A table whose snapshots are removed from its metadata before their files are spare."""

    def expire(self, retention: Retention) -> tuple[int, ...]:
        """Remove expired snapshots in one atomic commit, and return their ids.

        Where it isn't known whether the commit happened, a `CommitUnknownError` says so.
        """


class Appendable(Table, Protocol):
    """A table to which rows can be appended."""

    def newest(self) -> "Appendable":
        """Return the table at its newest version, to which commits go."""

    def appending(self, snapshot: Snapshot, *, layout: Layout, run: str, compression: str | None = None) -> Appending:
        """Return how rows become files; nothing is written yet.

        What the table asks of new rows and zonal can't give, such as a CHECK constraint, is a `TableError` that names
        it.
        """

    def folders(self, snapshot: Snapshot, partitions: Sequence[PartitionValues]) -> tuple[str, ...]:
        """Return the folder of each partition below the run's own; none where all files lie in that itself."""

    def append(self, append: Append, *, sending: Sending = unheard) -> int:
        """Add files in one atomic commit and return the new version or snapshot id; `sending` as in `commit`.

        Other writers' commits are no conflict, unless they change the schema or the partitioning: that is a
        `ConflictError`, and nothing is committed. A transaction that the table has is a `TransactionSeenError`.
        """

    def refers_to(self, change: Append) -> set[str]:
        """Return the new files that any version since the append's base has; see `Rewritable.refers_to`."""

    def last_transaction(self, snapshot: Snapshot, application: str) -> int | None:
        """Return the last version of an application's transactions that a snapshot has; None where it has none."""


class Destination(Protocol):
    """A table that doesn't exist yet, for `--into`."""

    name: str

    def file_columns(self, schema: pa.Schema, partitioning: Sequence[str]) -> list[str]:
        """Return the top-level columns that the format keeps in data files, in order."""

    def writing(
        self,
        schema: pa.Schema,
        partitioning: Sequence[str],
        partitions: Sequence[Mapping[str, pa.Scalar]],
        *,
        layout: Layout,
        run: str,
        compression: str | None = None,
    ) -> Writing:
        """Return how its files are written; refuse a schema that the format can't hold, or a table that exists.

        `schema` is the source's, `partitioning` the columns that partition by their values, and `partitions` has the
        values of each partition of the source. A `compression` that is asked for is also that of later writers, where
        the format has a property for it.
        """

    def publish(self, added: Sequence[Written], *, sending: Sending = unheard) -> int | None:
        """Make the table appear with all written files at once, and return its version; see `Rewritable.commit`."""

    def refers_to(self, added: Sequence[Written]) -> set[str]:
        """Return the written files that the table has, if it appeared; see `Rewritable.refers_to`."""


class FooterCache(Table, Protocol):
    """A table that keeps the footers that its snapshot has read."""

    def footer(self, path: str) -> Footer:
        """Return the footer of one of the snapshot's files; one that can't be read is a `TableError`."""


def keeps_footers(table: Table) -> TypeGuard[FooterCache]:
    """Tell whether the table keeps footers that it has read, so that nobody reads them again."""
    return hasattr(table, "footer")


def is_versioned(table: Table) -> TypeGuard[Versioned]:
    """Tell whether the table has older versions; a folder of Parquet files has none."""
    return hasattr(table, "versions")


def is_rewritable(table: Table) -> TypeGuard[Rewritable]:
    """Tell whether a table's files can be replaced at all."""
    return hasattr(table, "commit")


def is_appendable(table: Table) -> TypeGuard[Appendable]:
    """Tell whether rows can be appended to a table at all."""
    return hasattr(table, "appending")


def is_readable(table: Table) -> TypeGuard[Readable]:
    """Tell whether workers can read the table's rows."""
    return hasattr(table, "scan")


def is_cleanable(table: Table) -> TypeGuard[Cleanable]:
    """Tell whether a table knows which files nobody needs."""
    return hasattr(table, "spare")


def is_expirable(table: Table) -> TypeGuard[Expirable]:
    """Tell whether snapshots are removed from a table's metadata when they expire."""
    return hasattr(table, "expire")


def recorded_layout(properties: Mapping[str, str]) -> tuple[Layout | None, tuple[str, ...]]:
    """Return the layout that zonal recorded in a table's properties, or what is wrong with it."""
    text = properties.get(LAYOUT_PROPERTY)
    if text is None:
        return None, ()
    try:
        return Layout.from_json(text), ()
    except LayoutError as error:
        return None, (f"The table property {LAYOUT_PROPERTY} can't be read: {error}",)
