"""What every table format can do for zonal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeGuard

import pyarrow as pa

from zonal.errors import LayoutError
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Rewrite, Scan, Writing, Written
from zonal.snapshot import Commit, Snapshot
from zonal.values.arrays import Int64Array

LAYOUT_PROPERTY = "zonal.layouts.layout"
"""Table property with the layout as JSON; in the summary of an Iceberg snapshot, that of the files that it added."""


Sending = Callable[[], None]
"""Hears that a request goes out which may commit."""


def unheard() -> None:
    """Tell nobody."""


class Table(Protocol):
    """A table that can be read: metadata by `snapshot`, files by `open_file`."""

    name: str

    def snapshot(self) -> Snapshot:
        """Return the version that the table's name asks for, the newest by default; metadata only."""

    def open_file(self, path: str) -> pa.NativeFile:
        """Open one of the snapshot's files for random access; the caller closes it."""


class Versioned(Table, Protocol):
    """A table that remembers what it was.

    An older version has the schema of its time, so a condition must be bound to that version's own schema: a column
    that has been renamed since is unknown there by its new name. `auditing.naming` gives an older version's bounds
    today's names, by field ids.
    """

    @property
    def pinned(self) -> bool:
        """Whether a version was asked for, and not the newest."""

    def at(self, version: int) -> Table:
        """Return the table pinned to an older version or snapshot; files are told by its metadata as it was then.

        A version that isn't there any more is a `TableError`, at once or when its snapshot is read.
        """

    def versions(self) -> tuple[Commit, ...]:
        """Return the commits that led to the table's version, as far as they can still be told; oldest first."""


class Readable(Table, Protocol):
    """A table whose rows workers can read."""

    def scan(self, snapshot: Snapshot, files: Int64Array, *, columns: Sequence[str] | None = None) -> Scan:
        """Return what workers need to read the rows of these files.

        By default they are read as a rewrite in place needs them: all that the data files hold, with the columns that
        track rows. With `columns` these top-level columns are read, also those that only the metadata has.
        """


class Rewritable(Readable, Protocol):
    """A table whose files can be replaced."""

    def newest(self) -> "Rewritable":
        """Return the table as it is now; `snapshot` of a table that was opened at a time may be older."""

    def writing(self, snapshot: Snapshot, *, layout: Layout, run: str, compression: str | None = None) -> Writing:
        """Return how files that replace others are written; nothing is written yet.

        `compression`, a name of `compression.CODECS`, is taken instead of the table's own codec.
        What a rewrite can't keep is a `TableError` that names it, as far as `snapshot.blockers` doesn't.
        """

    def commit(self, rewrite: Rewrite, *, sending: Sending = unheard) -> int:
        """Replace files in one atomic commit and return the new version or snapshot id.

        `sending` is called right before each request that may commit: until then, nothing can have been committed, and
        an error that it raises ends the commit.
        A concurrent append survives; where another writer changed a file that would be replaced, a `ConflictError`
        names such files, and nothing of the rewrite is committed.
        """

    def refers_to(self, rewrite: Rewrite) -> set[str]:
        """Return those of a rewrite's new files that a version since its base has, whoever says that it failed.

        Read from the newest metadata; what can't be read is a `TableError`, for then nobody knows.
        """


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
    ) -> Writing:
        """Return how its files are written, or refuse what the format can't hold, or that there is something already.

        `schema` is the source's, `partitioning` the columns that partition by their values, and `partitions` has the
        values of each partition of the source.
        """

    def publish(self, added: Sequence[Written], *, sending: Sending = unheard) -> int | None:
        """Make the table of the written files appear, at once, and return its version; see `Rewritable.commit`."""

    def refers_to(self, added: Sequence[Written]) -> set[str]:
        """Return those of the written files that the table has, if it appeared; see `Rewritable.refers_to`."""


def is_versioned(table: Table) -> TypeGuard[Versioned]:
    """Tell whether the table has older versions; a folder of Parquet files has none."""
    return hasattr(table, "versions")


def is_rewritable(table: Table) -> TypeGuard[Rewritable]:
    """Tell whether a table's files can be replaced at all."""
    return hasattr(table, "commit")


def is_readable(table: Table) -> TypeGuard[Readable]:
    """Tell whether workers can read the table's rows."""
    return hasattr(table, "scan")


def recorded_layout(properties: Mapping[str, str]) -> tuple[Layout | None, tuple[str, ...]]:
    """Return the layout that zonal recorded in a table's properties, or what is wrong with it."""
    text = properties.get(LAYOUT_PROPERTY)
    if text is None:
        return None, ()
    try:
        return Layout.from_json(text), ()
    except LayoutError as error:
        return None, (f"The table property {LAYOUT_PROPERTY} can't be read: {error}",)
