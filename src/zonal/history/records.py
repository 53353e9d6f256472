"""Records of audits, rewrites and what arrived between them, small enough to keep for years."""

from dataclasses import dataclass
from datetime import datetime

from zonal.errors import ZonalError


class HistoryError(ZonalError):
    """A database that can't be reached, isn't zonal's, or is of a newer zonal."""


class OpenHistory:
    """What every open `History` is: arguments are checked by it before the library of databases is loaded."""


@dataclass(frozen=True)
class AuditRecord:
    """The result of one audit of a table; shares and ratios are from 0 to 1."""

    table: str
    """The table's name as it was given."""
    location: str
    """The table's location, which identifies it."""
    format: str
    version: int | None
    audited: datetime
    """With its time zone; it is stored in UTC."""
    queries: int
    ratio: float | None
    """Files read per file in partitions that might match; None where clustering could help no query."""
    byte_ratio: float | None
    file_share: float
    byte_share: float
    partition_byte_share: float
    selectivity: float | None
    fresh_share: float | None
    """Share of the bytes that queries would read if the table were freshly clustered; None where not predicted."""
    excess_share: float
    alerts: tuple[str, ...] = ()
    """The alerts' texts."""
    culprit: str = ""
    """The sentence about the commit that caused most of the excess, if one did."""
    layout: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """The result of one rewrite of a table."""

    table: str
    location: str
    format: str
    version: int | None
    """The version that its last commit made."""
    finished: datetime
    run: str
    layout: str
    rows: int
    removed_files: int
    removed_bytes: int
    added_files: int
    added_bytes: int
    queries: int | None
    """The number of queries, if a log was given."""
    share_before: float | None
    """The mean share of the bytes that queries read; like the next two, None without queries."""
    share_predicted: float | None
    share_after: float | None
    seconds: float
    predicted_files: int | None = None
    """New files that were expected before the rewrite; None for runs of an older zonal, like their bytes."""
    predicted_bytes: int | None = None


@dataclass(frozen=True)
class LedgerRecord:
    """One run that committed, and what arrived since the run before it; a table's records are its ledger."""

    table: str
    location: str
    format: str
    version: int | None
    """The version that its last commit made."""
    finished: datetime
    run: str
    kind: str
    """`first`, `merge`, `layout`, `append` or `copy`; `rewrite` for one that is known by the table's log alone."""
    commits: int
    arrived_bytes: int
    """Bytes of data files that writers brought, those of an append itself included; compactions are left out."""
    arrived_rows: int | None
    rewritten_bytes: int
    exact: bool
    """Whether the table's log told all that arrived; else `arrived_bytes` is what is known, and there may be more."""
    removed_files: int | None = None
    """None, like all below, for a run that is known by the table's log alone."""
    added_files: int | None = None
    layout: str | None = None
    lookup_share: float | None = None
    """Share of the bytes that made-up look-ups and ranges of the layout's columns read after the run, predicted."""
    fresh_lookup_share: float | None = None
    """The same, were the whole table clustered anew."""
    queries: int | None = None
    """The number of queries, if a log was given."""
    query_share: float | None = None
    """Share of the bytes that these queries read after the run."""
    fresh_query_share: float | None = None
    """The same, were the whole table clustered anew; predicted."""
