"""An audit as a value: what a table's queries read, how far that is from what they could, and who is to blame."""

from dataclasses import dataclass, field
from datetime import datetime

from zonal.display import Shown
from zonal.picture.picture import Picture
from zonal.workload.query import Summary


@dataclass(frozen=True)
class QueryAudit:
    """What one query reads."""

    query: str
    source: str
    count: int
    """Scans of the table that it stands for."""
    weight: float
    """Its part of all the queries' weight."""
    files: int
    bytes: int
    partition_files: int
    """Files of the partitions that might match: what a table without order inside of them would read."""
    partition_bytes: int
    file_share: float
    byte_share: float
    ratio: float | None
    """`files` of `partition_files`; None where no partition might match."""
    row_group_share: float | None = None
    """Share of the bytes where row groups are skipped, too; None where no footer was read."""
    selectivity: float | None = None
    """Share of the sampled rows that match what bounds can decide: no layout reads less; None without a sample."""
    fresh_share: float | None = None
    """Share of the bytes that it would read of the table, freshly clustered; predicted."""
    before_share: float | None = None
    """Share of the bytes that it read before the worst commit; None where no such version is known."""
    excess_files: float = 0.0
    """Files that it reads although no row matches; estimated."""
    excess_bytes: float = 0.0
    hindrance: str = ""
    """Why statistics can't help it, whatever the layout."""
    remedy: str = ""
    """What would."""


@dataclass(frozen=True)
class ColumnAudit:
    """What one column does for the queries."""

    column: str
    weight: float
    """Weight of the queries that filter it."""
    files_with_bounds: int
    skipped_files: float
    """Share of the files that it skips, in the mean; a file counts for the first column that excludes it."""
    skipped_bytes: float
    partitions: bool = False
    """Whether partition values skip, and not the files' own bounds."""


@dataclass(frozen=True)
class FileAudit:
    """A file that is read for nothing."""

    path: str
    partition: str
    bytes: int
    read: float
    """Weight of the queries that read it."""
    excess: float
    """Weight of those that find nothing in it; estimated."""
    added_by: int | None


@dataclass(frozen=True)
class PartitionAudit:
    """A partition and its part of what is read for nothing."""

    partition: str
    files: int
    bytes: int
    excess_share: float


@dataclass(frozen=True)
class Width:
    """How wide a commit's files are in a column, as a part of the column's whole range."""

    column: str
    width: float
    """Of the commit's files, in the mean by bytes."""
    before: float | None
    """Of the files that it replaced or, where it replaced none or they aren't known, of the table's other files.

    Of a commit that rewrote files as wide as they were, of those that the commit which widened them replaced.
    """

    @property
    def times(self) -> float | None:
        """Return how many times wider the files became."""
        return None if self.before is None or self.before <= 0 else self.width / self.before


@dataclass(frozen=True)
class CommitAudit:
    """The live files that one commit added, or several together."""

    id: int | None
    """None for files of which the metadata doesn't tell who added them, and for several commits."""
    time: datetime | None
    kind: str
    """append, compaction, delete, overwrite, zonal, unknown; several, where the smallest ones are joined."""
    operation: str
    """As the table's log calls it."""
    writer: str
    """Who did it, as far as the log tells."""
    files: int
    bytes: int
    read_share: float
    """Its part of all bytes that queries read."""
    excess_share: float
    """Its part of all bytes that are read for nothing."""
    replaced: int | None
    """Files that it removed; None where the version before isn't known."""
    widths: tuple[Width, ...]
    """Of the columns that queries filter, the one that became wider by most first."""
    sentence: str
    """What it did, for people."""
    read_files_share: float = 0.0
    """Its part of all files that queries read, each time counted."""
    since: int | None = None
    """The commit with which it began: itself, the one that had widened its files before it, or the first of several."""
    ids: tuple[int, ...] = ()
    """The commits, where they are known."""


@dataclass(frozen=True)
class Fresh:
    """What clustering the table anew would bring."""

    layout: str
    recorded: bool
    """Whether it is the table's own layout; else it was chosen for this comparison."""
    byte_share: float
    """Predicted, in the mean."""
    gain: float
    """What of the bytes that are read now would be saved."""


@dataclass(frozen=True)
class Before:
    """What the same queries read of the version from before the commit that did most harm."""

    version: int | None
    byte_share: float
    worse: int
    """How many of them read more now."""


@dataclass(frozen=True)
class Alert:
    """A limit that was crossed."""

    kind: str
    """ratio, or worse."""
    value: float
    limit: float
    text: str


@dataclass(frozen=True, eq=False)
class Audit(Shown):
    """What `audit` found."""

    table: str
    format: str
    location: str
    version: int | None
    version_time: datetime | None
    audited: datetime
    files: int
    bytes: int
    rows: int | None
    layout: str | None
    partitioning: tuple[str, ...]
    queries: int
    """Different filters that were asked."""
    hindered: float
    """Weight of those that no layout can help; `ratio` and `byte_ratio` are of the others."""
    ratio: float | None
    """Files read, of the files in partitions that might match, in the mean; None where no query can be helped."""
    byte_ratio: float | None
    file_share: float
    byte_share: float
    partition_file_share: float
    partition_byte_share: float
    row_group_share: float | None
    selectivity: float | None
    fresh: Fresh | None
    excess_share: float
    """Part of the bytes read in which no row matches; estimated."""
    columns: tuple[ColumnAudit, ...]
    asked: tuple[QueryAudit, ...]
    """Those that read most, by weight, first."""
    worst_files: tuple[FileAudit, ...]
    worst_partitions: tuple[PartitionAudit, ...]
    commits: tuple[CommitAudit, ...]
    """The culprits first, then those that cause most of the excess."""
    alerts: tuple[Alert, ...]
    notes: tuple[str, ...]
    summary: Summary
    seed: int
    seconds: float
    hidden: bool = False
    """Whether values that queries compare with are hidden."""
    operation: str = ""
    """What made this version, as the table's log calls it, and by whom; empty where that isn't known."""
    culprits: tuple[CommitAudit, ...] = ()
    """Those that did harm, the worst first: much is read of their files, which are wider where queries filter."""
    before: Before | None = None
    """Where there is a culprit, and the version before it is known."""
    picture: Picture | None = field(default=None, repr=False)
    tolerated: Alert | None = None
    """A limit of the ratio that is crossed though nothing can be done about it: no alert."""
    saving: float | None = None
    """What of the bytes that queries read could be saved by clustering; None where nobody knows."""
    outside: int | None = None
    """Files that aren't in the table's own layout; None where it records none."""

    @property
    def culprit(self) -> CommitAudit | None:
        """Return the worst one, if there is one."""
        return self.culprits[0] if self.culprits else None
