"""Snapshots: one version of a table as its metadata describes it, with files as arrays of sizes, rows and bounds.

A table has up to hundreds of thousands of files, so everything here is an array over files, and bounds are decoded
only for the columns that are used. The same arrays describe row groups and pages.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import TableError, quoted
from zonal.layouts.layout import Layout
from zonal.values.arrays import Int64Array

UNKNOWN = -1
"""In arrays of counts: the metadata doesn't say."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Statistics of one column over many units: files, row groups or pages.

    `lower` is at or below and `upper` at or above every value of the unit that is neither null nor NaN; a null bound
    means that it is not known. Both have the type of the column in the table's schema, but strings are given as
    `large_binary` (UTF-8 bytes): a bound may be cut or rounded up within a character.
    """

    lower: pa.Array
    upper: pa.Array
    nulls: Int64Array
    """Nulls in each unit, or UNKNOWN."""
    nans: Int64Array
    """NaNs in each unit, or UNKNOWN; 0 for types that have none."""

    @classmethod
    def joined(cls, parts: "Sequence[Bounds]") -> "Bounds":
        """Concatenate the bounds of several sets of files, all of one type."""
        return cls(
            pa.concat_arrays([part.lower for part in parts]),
            pa.concat_arrays([part.upper for part in parts]),
            np.concatenate([part.nulls for part in parts]),
            np.concatenate([part.nans for part in parts]),
        )

    def take(self, units: Int64Array) -> "Bounds":
        """Return the bounds of some units."""
        chosen = pa.array(units)
        return Bounds(self.lower.take(chosen), self.upper.take(chosen), self.nulls[units], self.nans[units])


class LazyBounds(Mapping[str, Bounds]):
    """Bounds by column name, decoded on first access; `together` decodes several columns in one pass."""

    def __init__(
        self,
        decoders: Mapping[str, Callable[[], Bounds]],
        together: Callable[[Sequence[str]], Mapping[str, Bounds]] | None = None,
    ) -> None:
        self._decoders = dict(decoders)
        self._together = together
        self._known: dict[str, Bounds] = {}

    def load(self, names: Iterable[str]) -> None:
        """Decode these columns now, if that is cheaper together."""
        missing = [name for name in names if name in self._decoders and name not in self._known]
        if self._together is not None and len(missing) > 1:
            self._known.update(self._together(missing))

    def __getitem__(self, name: str) -> Bounds:
        if name not in self._known:
            self._known[name] = self._decoders[name]()
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._decoders  # what `Mapping` has would decode it

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoders)

    def __len__(self) -> int:
        return len(self._decoders)


@dataclass(frozen=True, eq=False)
class Buckets:
    """A partition field that holds a hash of a column: it can exclude files by equality alone."""

    column: str
    bucket_of: Callable[[object], int | None]
    """The bucket of a value of the column's type (int, str, bytes, Decimal, date …); None where it is unknown."""
    values: Int64Array
    """The bucket of each file, or UNKNOWN."""


@dataclass(frozen=True, eq=False)
class Files:
    """The live data files of one version of a table."""

    paths: pa.Array
    """Full location of each file."""
    sizes: Int64Array
    rows: Int64Array
    """Rows in the file, deleted ones included; UNKNOWN where the metadata doesn't say."""
    deleted: Int64Array
    """Rows that deletion vectors and position deletes remove; UNKNOWN where only the delete files could say."""
    delete_files: Int64Array
    """Delete files and deletion vectors that apply to each file."""
    added_by: Int64Array
    """The snapshot or version that added each file, or UNKNOWN."""
    layout_ids: pa.Array
    """Id of the layout that zonal wrote the file with, or null."""
    partition: Int64Array
    """Number of the partition of each file in `partitions`."""
    partitions: tuple[str, ...]
    """The partitions for people: `region=eu/day=2026-01-01`, empty text in an unpartitioned table."""
    bounds: Mapping[str, Bounds]
    """By column; struct leaves by dotted path."""
    partition_bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """What the partition values say of the columns that they are made of."""
    buckets: tuple[Buckets, ...] = ()

    def __len__(self) -> int:
        return len(self.sizes)


LARGEST_FILE = 2**44
"""Bytes; object stores have smaller limits, and sums of such numbers fit into 64 bits."""


def refuse_impossible(files: Files, table: str, *, fewest_rows: int = UNKNOWN) -> None:
    """Raise a `TableError` for a size, a number of rows or a path that no file can have.

    `fewest_rows` is 0 in a format that always tells them.
    """
    wrong = {
        "size": (files.sizes, (files.sizes < 0) | (files.sizes > LARGEST_FILE)),
        "number of rows": (files.rows, files.rows < fewest_rows),
    }
    for what, (values, bad) in wrong.items():
        for file in np.flatnonzero(bad)[:1].tolist():
            raise TableError(
                f"The metadata of {quoted(table, limit=200)} is wrong: the {what} of "
                f"{quoted(files.paths[file].as_py(), limit=300)} can't be {values[file]}."
            )
    odd = pc.match_substring(files.paths, "\0")
    if pc.any(odd).as_py():
        path = files.paths.filter(odd)[0].as_py()
        raise TableError(
            f"The metadata of {quoted(table, limit=200)} is wrong: no file can be called {quoted(path, limit=300)}."
        )


CommitKind = Literal["append", "compaction", "delete", "overwrite", "zonal", "unknown"]
"""What a commit did; zonal's own are a kind of their own, and changing rows in place is an overwrite."""


@dataclass(frozen=True)
class Commit:
    """One entry of a table's history."""

    id: int
    time: datetime | None
    operation: str
    details: Mapping[str, str]
    parent: int | None = None
    """The entry that it followed, whether or not that is still there; None for the first, and where it is unknown."""
    kind: CommitKind = "unknown"
    writer: str = ""
    """The engine with its version, as far as the commit tells; untrusted text."""
    only_adds: bool = False
    """Whether it is sure to have removed no file."""
    added_bytes: int | None = None
    """Bytes of the data files that it wrote; None where it doesn't tell."""
    added_rows: int | None = None
    """Rows in these files; None where it doesn't tell."""
    is_first: bool = False
    """Whether it is sure to be the table's first entry."""
    run: str = ""
    """The run of zonal that made it, as the commit names it; untrusted text."""


def _no_advice(column: str) -> str:  # noqa: ARG001 - the signature of `Traits.bounds_advice`
    return ""


@dataclass(frozen=True)
class SizeProperty:
    """A table property that says how large files are to be."""

    name: str
    bytes: int | None
    """None where its value can't be read."""


@dataclass(frozen=True)
class Traits:
    """What others must know of a table's format: adapters say it, so that nobody else asks which format it is."""

    version_word: str = "version"
    """What people call one version of the table."""
    counts_nan: bool = False
    """Whether files tell how many NaN they hold, which bounds don't."""
    bounds_advice: Callable[[str], str] = _no_advice
    """Returns a sentence on what to set so that new files have bounds of a column."""
    old_files_until: str = ""
    """What removes replaced files, which stay for older versions until then: "VACUUM … removes them"."""
    file_size: SizeProperty | None = None
    """The size of files that the table's owner set for all writers; None where there is none."""


@dataclass(frozen=True)
class Physical:
    """How a column is found in the table's Parquet files: by field id where the table has ids, else by its path."""

    path: str
    field_id: int | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of a table, as its metadata describes it."""

    name: str
    format: Literal["parquet", "delta", "iceberg"]
    location: str
    version: int | None
    time: datetime | None
    schema: pa.Schema
    partitioning: tuple[str, ...]
    """Partition fields for people, such as `region` and `day(ts)`."""
    files: Files
    physical: Mapping[str, Physical]
    """Columns that are read from the files; those whose values the metadata gives are left out."""
    layout: Layout | None = None
    """The layout that zonal recorded in the table's properties."""
    properties: Mapping[str, str] = field(default_factory=dict)
    commits: Mapping[int, Commit] = field(default_factory=dict)
    traits: Traits = field(default_factory=Traits, repr=False)
    blockers: tuple[str, ...] = ()
    """Why zonal must not rewrite this table; reading works all the same."""
    problems: tuple[str, ...] = ()
    """Files that couldn't be read, each with its reason; they have no bounds, so nothing skips them."""
    source: object | None = field(default=None, repr=False)
    """What the table read it from, in the format's own terms: only its `scan`, `writing` and `commit` look into it."""


@dataclass(frozen=True)
class TableVersion:
    """One version of a table in a few facts: what every result says of the table that it is about."""

    name: str
    format: str
    location: str
    version: int | None
    time: datetime | None
    files: int
    bytes: int
    rows: int | None
    """Rows without the deleted ones; None where the metadata doesn't tell."""
    layout: str | None
    """The layout that zonal recorded."""
    partitioning: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, *, cuts: bool = True) -> "TableVersion":
        """Describe a snapshot; without `cuts`, which are values of queries, a tree's layout is a summary."""
        files, layout = snapshot.files, snapshot.layout
        known = (files.rows != UNKNOWN).all() and (files.deleted != UNKNOWN).all()
        return cls(
            name=snapshot.name,
            format=snapshot.format,
            location=snapshot.location,
            version=snapshot.version,
            time=snapshot.time,
            files=len(files),
            bytes=int(files.sizes.sum()),
            rows=int((files.rows - files.deleted).sum()) if known else None,
            layout=None if layout is None else str(layout) if cuts else layout.short,
            partitioning=snapshot.partitioning,
        )


def table_names(snapshot: Snapshot) -> list[str]:
    """Return the names by which queries probably know a table: its name in the catalog, or that of its folder."""
    bare = snapshot.name.partition("@")[0].rstrip("/")
    last = re.split(r"[/\\]", bare)[-1]
    return list(dict.fromkeys(name for name in (last, last.removesuffix(".parquet")) if name))
