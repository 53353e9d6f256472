"""The result of an audit as values: per query, column, file, partition and commit."""

from dataclasses import dataclass, field
from datetime import datetime

from zonal.display import Shown
from zonal.picture.picture import Picture
from zonal.snapshot import TableVersion
from zonal.workload.query import Summary


@dataclass(frozen=True)
class QueryReads:
    """What one query reads, in files and bytes."""

    files: int
    bytes: int
    partition_files: int
    """Files of the partitions that might match: what it would read if rows had no order inside of them."""
    partition_bytes: int
    file_share: float
    byte_share: float
    ratio: float | None
    """`files` / `partition_files`; None where no partition might match."""
    row_group_share: float | None = None
    """Share of the bytes that it reads if row groups are skipped, too; None where no footer was read."""
    excess_files: float = 0.0
    """Files that it reads although no row matches; estimated."""
    excess_bytes: float = 0.0


@dataclass(frozen=True)
class QueryAudit:
    """A query, what it reads, and what it could read."""

    query: str
    source: str
    count: int
    """Scans of the table that it stands for."""
    weight: float
    """Its share of the total weight of all queries."""
    reads: QueryReads
    selectivity: float | None = None
    """Share of the sampled rows that match what bounds can decide: no layout reads less; None without a sample."""
    fresh_share: float | None = None
    """Predicted share of the bytes that it would read of the table, freshly clustered."""
    before_share: float | None = None
    """Share of the bytes that it read before the worst commit; None where no such version is known."""
    hindrance: str = ""
    """Why statistics can't help the query, whatever the layout."""
    remedy: str = ""
    """What to change so that they can."""


@dataclass(frozen=True)
class ColumnAudit:
    """What one column does for the queries."""

    column: str
    weight: float
    """Weight of the queries that filter it."""
    files_with_bounds: int
    skipped_files: float
    """Mean share of the files that it skips; a file counts for the first column that excludes it."""
    skipped_bytes: float
    partitions: bool = False
    """Whether partition values skip, instead of the files' own bounds."""


@dataclass(frozen=True)
class FileAudit:
    """A file that queries read although none of its rows matches."""

    path: str
    partition: str
    bytes: int
    read: float
    """Weight of the queries that read it."""
    excess: float
    """Estimated weight of the queries that read it and find no row."""
    added_by: int | None


@dataclass(frozen=True)
class PartitionAudit:
    """A partition, and its share of the bytes that are read without a matching row."""

    partition: str
    files: int
    bytes: int
    excess_share: float


@dataclass(frozen=True)
class Width:
    """How wide a commit's files are in a column, as a share of the column's whole range."""

    column: str
    width: float
    """Mean over the commit's files, weighted by bytes."""
    before: float | None
    """Mean over the files that it replaced or, where it replaced none or they aren't known, the table's other files.

    For a commit that rewrote files as wide as they were: over those that the commit which widened them replaced.
    """

    @property
    def times(self) -> float | None:
        """Return how many times wider the files became."""
        return None if self.before is None or self.before <= 0 else self.width / self.before


@dataclass(frozen=True)
class CommitAudit:
    """The live files that one commit added, or several commits together."""

    id: int | None
    """None where the metadata doesn't tell which commit added the files, and for several commits."""
    time: datetime | None
    kind: str
    """append, compaction, delete, overwrite, zonal or unknown; several, where the smallest commits are joined."""
    operation: str
    """Its name in the table's log."""
    writer: str
    """The engine that committed, as far as the log tells."""
    files: int
    bytes: int
    read_share: float
    """Its share of the bytes that queries read."""
    excess_share: float
    """Its share of the bytes that are read without a matching row."""
    replaced: int | None
    """Files that it removed; None where the version before isn't known."""
    widths: tuple[Width, ...]
    """One per filtered column, the one that became wider by most first."""
    sentence: str
    """What it did, for people."""
    read_files_share: float = 0.0
    """Its share of all reads of a file by a query."""
    since: int | None = None
    """The commit with which the harm began: itself, the one that had widened its files, or the first of several."""
    ids: tuple[int, ...] = ()
    """The commits, where they are known."""


@dataclass(frozen=True)
class Fresh:
    """What clustering the table anew is predicted to bring."""

    layout: str
    recorded: bool
    """Whether it is the table's own layout; else it was chosen for this comparison."""
    byte_share: float
    """Mean share of the bytes that queries would read."""
    gain: float
    """Share of the bytes read now that would be saved."""


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


@dataclass(frozen=True)
class AuditedQueries:
    """The queries that were replayed, and how they were found in the logs."""

    queries: int
    """Number of distinct queries."""
    hindered: float
    """Weight of those that no layout can help; `ratio` and `byte_ratio` are of the others."""
    summary: Summary
    hidden: bool = False
    """Whether values that queries compare with are hidden."""


@dataclass(frozen=True)
class MeanReads:
    """What queries read of the table, as means over their weight."""

    ratio: float | None
    """Files read as a share of those in matching partitions, over all queries; None where no query can be helped."""
    byte_ratio: float | None
    file_share: float
    byte_share: float
    partition_file_share: float
    partition_byte_share: float
    row_group_share: float | None
    selectivity: float | None


@dataclass(frozen=True)
class Excess:
    """What queries read although no row matches."""

    excess_share: float
    """Estimated share of the bytes read that are of files without a matching row."""
    worst_files: tuple[FileAudit, ...] = ()
    worst_partitions: tuple[PartitionAudit, ...] = ()


@dataclass(frozen=True)
class Blame:
    """Whose files are read, and which commits spoiled the order."""

    commits: tuple[CommitAudit, ...]
    """The culprits first, then by their share of the excess."""
    culprits: tuple[CommitAudit, ...] = ()
    """Commits that did harm, the worst first: much is read of their files, which are wider in filtered columns."""
    before: Before | None = None
    """What was read before the culprit; None where there is none, or the version before it isn't known."""
    operation: str = ""
    """Operation and writer of this version's commit, by the table's log; empty where they aren't known."""

    @property
    def culprit(self) -> CommitAudit | None:
        """Return the worst culprit, if there is one."""
        return self.culprits[0] if self.culprits else None


@dataclass(frozen=True)
class Judgment:
    """Whether an alert is due, and what could be done."""

    alerts: tuple[Alert, ...] = ()
    tolerated: Alert | None = None
    """The limit of the ratio, crossed where clustering would save too little for an alert."""
    saving: float | None = None
    """Share of the bytes read that clustering could save; None where it isn't known."""
    outside: int | None = None
    """Files that aren't in the table's own layout; None where it records none."""
    in_others: int = 0
    """Those of them that are clustered in another layout, which was recorded before."""


@dataclass(frozen=True)
class Circumstances:
    """When and how an audit was made."""

    audited: datetime
    seed: int
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Audit(Shown):
    """What `audit` found."""

    table: TableVersion
    """The version that was audited."""
    workload: AuditedQueries
    judgment: Judgment
    reads: MeanReads
    fresh: Fresh | None
    excess: Excess
    blame: Blame
    columns: tuple[ColumnAudit, ...]
    asked: tuple[QueryAudit, ...]
    """Those with the most bytes read, times weight, first."""
    made: Circumstances
    picture: Picture | None = field(default=None, repr=False)
