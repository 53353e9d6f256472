"""`trend`: what arrived in a table, what runs rewrote, and what queries read against a fresh layout, over time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from zonal.arguments import check_arguments
from zonal.display import Shown
from zonal.errors import ZonalError, option
from zonal.history.opened import Database, opened
from zonal.history.records import AuditRecord, LedgerRecord, RunRecord
from zonal.history.store import History
from zonal.snapshot import Snapshot
from zonal.tables.protocol import Table
from zonal.tables.registry import read_snapshot, table_of
from zonal.upkeep.account import Account, account_of, that_count
from zonal.upkeep.tallies import tallies_of
from zonal.values.progress import Progress, Step, only_notices


@dataclass(frozen=True)
class TrendPoint:
    """The table after one run of its ledger, or at one audit; what wasn't measured then is None."""

    time: datetime
    what: str
    """The kind of the run, or `audit`."""
    version: int | None
    arrived_bytes: int | None = None
    """Since the run before."""
    rewritten_bytes: int | None = None
    amplification: float | None = None
    """Bytes rewritten per byte that arrived, all runs so far together."""
    lookups: float | None = None
    """What look-ups and ranges read, as a multiple of what they would of a fresh layout; predicted."""
    queries: float | None = None
    """The same of the queries of a log: an audit measures what they read, and predicts the fresh layout."""


@dataclass(frozen=True)
class Trend(Shown):
    """What the history knows of a table."""

    table: str
    format: str
    location: str
    version: int | None
    arrived_bytes: int
    """All that is known to have arrived, up to now."""
    rewritten_bytes: int
    amplification: float
    waiting_bytes: int
    """Bytes that arrived since the last run."""
    all_known: bool
    """Whether the table's log and the ledger tell of all commits; else there may be more."""
    points: tuple[TrendPoint, ...]
    """Runs and audits, oldest first."""
    audits: tuple[AuditRecord, ...]
    runs: tuple[RunRecord, ...]


def trend(
    table: Table | str,
    *,
    database: Database,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Trend:
    """Tell what arrived in a table, what runs rewrote for it, and what queries read against a fresh layout, over time.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        database: the history: a URL, or an open `History`.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears each step.

    Example:
        >>> course = zonal.trend("events", database="sqlite:///history.db")
        >>> course.points
        ()
    """
    check_arguments(trend, locals())
    with opened(database) as history:
        if history is None:
            raise ZonalError(f"A trend is what a history knows: name one with {option('database')}.")
        source = table_of(table, catalog=catalog, storage_options=storage_options)
        report = progress or only_notices
        report(Step("reading the table's metadata"))
        return trend_of(read_snapshot(source, report), history)


def trend_of(snapshot: Snapshot, history: History) -> Trend:
    """Return the trend of a table, of which a snapshot tells what arrived since the last run."""
    ledger, audits = history.ledger(snapshot.location), history.audits(snapshot.location)
    account = account_of(snapshot, ledger)
    runs = _points(that_count(tallies_of(snapshot), ledger))
    return Trend(
        table=snapshot.name,
        format=snapshot.format,
        location=snapshot.location,
        version=snapshot.version,
        arrived_bytes=account.arrived,
        rewritten_bytes=account.rewritten,
        amplification=account.amplification,
        waiting_bytes=account.waiting,
        all_known=account.exact,
        points=tuple(sorted([*runs, *map(_audited, audits)], key=lambda point: point.time)),
        audits=audits,
        runs=history.runs(snapshot.location),
    )


def _points(ledger: Sequence[LedgerRecord]) -> Iterator[TrendPoint]:
    """Yield one point per run, with the sums of all runs so far."""
    arrived = rewritten = 0
    for entry in ledger:
        arrived, rewritten = arrived + entry.arrived_bytes, rewritten + entry.rewritten_bytes
        yield TrendPoint(
            entry.finished,
            entry.kind,
            entry.version,
            entry.arrived_bytes,
            entry.rewritten_bytes,
            Account(arrived, rewritten).amplification,
            _times(entry.lookup_share, entry.fresh_lookup_share),
            _times(entry.query_share, entry.fresh_query_share),
        )


def _audited(record: AuditRecord) -> TrendPoint:
    times = _times(record.byte_share, record.fresh_share)
    return TrendPoint(record.audited, "audit", record.version, queries=times)


def _times(share: float | None, fresh: float | None) -> float | None:
    return share / fresh if share is not None and fresh else None
