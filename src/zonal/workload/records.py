"""Log entries from the records of any query history: finds the columns of SQL, time, bytes and runs."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from fractions import Fraction

from zonal.errors import ZonalError
from zonal.predicates.calendar import parse_moment
from zonal.sql.ask import TableRead
from zonal.values.sizes import parse_size

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOST_RUNS = 10**12
_MOST_BYTES = 10**18

NAMES: dict[str, tuple[str, ...]] = {
    "sql": (
        *("querytext", "statementtext", "sqltext", "querytxt", "querystring", "rawsql", "rawquery", "sqlquery"),
        *("commandtext", "sql", "query", "statement"),
    ),
    "time": (
        *("starttime", "querystarttime", "startedat", "executionstarttime", "executionstart", "createtime", "created"),
        *("createdat", "creationtime", "submittime", "submissiontime", "eventtime", "executedat", "timestamp"),
        *("datetime", "time", "ts", "started", "start", "endtime", "finishedat", "date"),
    ),
    "bytes": (
        *("bytesscanned", "physicalinputbytes", "readbytes", "bytesread", "scannedbytes", "datascannedinbytes"),
        *("totalbytesprocessed", "totalphysicalinputbytes", "inputbytes", "physicalinputdatasize", "bytesprocessed"),
        *("totalbytesscanned", "bytes"),
    ),
    "count": ("calls", "executions", "executioncount", "numexecutions", "runs", "count", "cnt", "frequency"),
}
"""Column names without underscores and case, the surest first: a `query` beside a `query_text` is its number."""


@dataclass(frozen=True)
class LogEntry:
    """One entry of a log: a statement, or the scans of a plan, or the problem of one that can't be read."""

    source: str
    sql: str = ""
    scans: tuple[TableRead, ...] | None = None
    problem: str = ""
    time: datetime | None = None
    bytes: int | None = None
    count: int = 1


@dataclass(frozen=True)
class Roles:
    """The columns of a log by their roles; None where there is no such column."""

    sql: str | None
    time: str | None
    bytes: str | None
    count: str | None

    @property
    def columns(self) -> list[str]:
        """Return the columns that have a role."""
        return [name for name in (self.sql, self.time, self.bytes, self.count) if name is not None]


def roles_of(names: tuple[str, ...]) -> Roles:
    """Find the columns by their names, in any case, with or without underscores.

    >>> roles_of(("QUERY_ID", "QUERY_TEXT", "START_TIME"))
    Roles(sql='QUERY_TEXT', time='START_TIME', bytes=None, count=None)
    """
    folded: dict[str, str] = {}
    for name in names:
        # The outermost field of a name wins: nested ones come later.
        folded.setdefault(re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower()), name)
    return Roles(**{role: next((folded[n] for n in known if n in folded), None) for role, known in NAMES.items()})


def entry_of(record: Mapping[str, object], roles: Roles, *, source: str, zone: tzinfo) -> LogEntry:
    """Make an entry of a record; a time without a zone is in `zone`, and invalid times and numbers are left out."""
    sql = record.get(roles.sql) if roles.sql else None
    if isinstance(sql, bytes):
        sql = sql.decode("utf-8", "replace")
    problem = "" if isinstance(sql, str) and sql.strip() else "The entry has no SQL."
    return LogEntry(
        source,
        sql.strip().rstrip(";").rstrip() if isinstance(sql, str) else "",
        problem=problem,
        time=moment_of(record.get(roles.time), zone) if roles.time else None,
        bytes=_whole(record.get(roles.bytes), _MOST_BYTES) if roles.bytes else None,
        count=(_whole(record.get(roles.count), _MOST_RUNS) or 1) if roles.count else 1,
    )


def moment_of(value: object, zone: tzinfo) -> datetime | None:
    """Read a time: text, a datetime, or a number since 1970, whose size tells seconds from milli- to nanoseconds."""
    if isinstance(value, datetime):
        return _utc(value if value.tzinfo else value.replace(tzinfo=zone))
    if isinstance(value, date):
        return _utc(datetime(value.year, value.month, value.day, tzinfo=zone))
    if isinstance(value, str):
        parsed = parse_moment(value[:80])
        if parsed is not None:
            return _shifted(parsed, zone)
        number = re.fullmatch(r"\s*(\d{1,20}(?:\.\d{1,9})?)\s*", value[:80], re.ASCII)
        value = Fraction(number[1]) if number else None
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not 0 < value < 10**20:
        return None
    return _since_epoch(Fraction(value))


def _since_epoch(number: Fraction) -> datetime | None:
    for per_second in (1, 10**3, 10**6, 10**9):
        if number < 10**11 * per_second:
            return _EPOCH + timedelta(microseconds=int(number * 10**6 / per_second))
    return None


def _shifted(parsed: tuple[Fraction, int | None], zone: tzinfo) -> datetime | None:
    micros, offset = parsed
    try:
        moment = _EPOCH + timedelta(microseconds=int(micros) - (offset or 0))
    except OverflowError:
        return None
    return _utc(moment if offset is not None else moment.replace(tzinfo=zone))


def _utc(moment: datetime) -> datetime | None:
    try:
        return moment.astimezone(timezone.utc)
    except (OverflowError, ValueError):  # the first and last day of all years
        return None


def _whole(value: object, most: int) -> int | None:
    """Read a count or a size: a number, its text, or text with a unit."""
    if isinstance(value, str):
        text = value.strip()[:40]
        try:
            value = parse_size(text) if text[-1:].isalpha() else float(text.replace(",", ""))
        except (ZonalError, ValueError):
            return None
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return None
    return min(int(number), most) if math.isfinite(number) and number >= 0 else None
