"""Audits and rewrites as rows: what is remembered of each, small enough to keep for years."""

from dataclasses import dataclass
from datetime import datetime

from zonal.errors import ZonalError


class HistoryError(ZonalError):
    """A database that can't be reached, isn't zonal's, or is of a newer zonal."""


@dataclass(frozen=True)
class AuditRecord:
    """What one audit of a table found; shares and ratios are from 0 to 1."""

    table: str
    """As it was named."""
    location: str
    """Where it lies: what makes it the same table as before."""
    format: str
    version: int | None
    audited: datetime
    """With its time zone; it is remembered in UTC."""
    queries: int
    ratio: float | None
    """Files read, of the files in partitions that might match; None where no query could be helped."""
    byte_ratio: float | None
    file_share: float
    byte_share: float
    partition_byte_share: float
    selectivity: float | None
    fresh_share: float | None
    """Share of the bytes that would be read of the table, freshly clustered; None where it wasn't predicted."""
    excess_share: float
    alerts: tuple[str, ...] = ()
    """What they say."""
    culprit: str = ""
    """The sentence about the commit that caused most of the excess, if one did."""
    layout: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """What one rewrite of a table did."""

    table: str
    location: str
    format: str
    version: int | None
    """That its last commit made."""
    finished: datetime
    run: str
    layout: str
    rows: int
    removed_files: int
    removed_bytes: int
    added_files: int
    added_bytes: int
    queries: int | None
    """Where queries were given: their number, and the mean share of the bytes that they read …"""
    share_before: float | None
    share_predicted: float | None
    share_after: float | None
    seconds: float
    predicted_files: int | None = None
    """What was expected of the new files before they were written; None for runs of an older zonal."""
    predicted_bytes: int | None = None
