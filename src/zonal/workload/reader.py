"""The reader of query logs: parses every entry, counts it, and weighs the queries of one table."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from hashlib import blake2b
from itertools import islice
from types import MappingProxyType

from zonal.errors import PredicateError, ZonalError, option, quoted
from zonal.predicates.calendar import zone_of
from zonal.predicates.expressions import Column, Compare, In, leaves
from zonal.sql.ask import TableRead, ask, guess_dialect
from zonal.sql.query import tables_in
from zonal.sql.statement import known_dialect
from zonal.sql.views import check_views
from zonal.values.progress import Progress, Step
from zonal.workload.entries import entries_of
from zonal.workload.log_files import LogFile, find_logs
from zonal.workload.query import LogError, Summary, Workload, is_usable, signature
from zonal.workload.records import LogEntry
from zonal.workload.weights import RunTotals, Weighting, weigh

_USUAL = Weighting()
_NO_VIEWS: Mapping[str, str] = MappingProxyType({})
_DAILY = re.compile(r"\b(?:current_?date|curdate|today|yesterday|tomorrow)\b", re.IGNORECASE)
_HOURLY = re.compile(
    r"\b(?:now|current_?(?:date)?time(?:stamp)?|localtime(?:stamp)?|sysdate(?:time)?|systimestamp|getdate|getutcdate"
    r"|utc_\w+|unix_timestamp|date\s*\(\s*\))(?!\w)",
    re.IGNORECASE,
)
"""Words that may mean the time of the run; a statement that has one for another reason is only parsed more often."""
_GRAINS = ((2_000, timedelta(hours=1)), (6_000, timedelta(days=1)), (1 << 62, timedelta(days=28)))
"""The rounding of relative queries' times, by how many were parsed so far: it keeps their number small."""
_TAG = re.compile(r"\s*/\*[^*'\"`]*\*/|\s*--[^\n'\"`]*\n", re.ASCII)
_END_TAG = re.compile(r"(?:/\*[^*'\"`]*\*/|--[^\n'\"`]*)\s*\Z", re.ASCII)
"""Comments before and after a statement, in which tools number its runs."""
_SAMPLED, _SAMPLED_CHARACTERS, _PEEKED = 200, 20_000, 2_000
_EXAMPLES = 5
_EVERY = 256


def read_workload(
    logs: Sequence[str | os.PathLike[str]],
    *,
    tables: Sequence[str],
    dialect: str | None = None,
    timezone: str = "UTC",
    views: Mapping[str, str] = _NO_VIEWS,
    columns: Sequence[str] | None = None,
    weighting: Weighting = _USUAL,
    since: datetime | None = None,
    now: datetime | None = None,
    progress: Progress | None = None,
) -> Workload:
    """Read the queries of the table that the logs know by one of the names `tables`.

    Logs are files or folders of them. With the table's `columns` (names of its schema, in order), unqualified columns
    in joins can be resolved. Entries that can't be read are counted and never an exception; a log without any SQL is a
    `LogError`. Relative dates mean the time of the run, to the hour (coarser in logs with thousands of different ones);
    without a time in the log, `now`. With `since`, entries before it, and those without a time, are counted and left
    out. `progress` hears how many bytes of how many are read.
    """
    if isinstance(tables, str) or not tables or not all(tables):
        raise LogError("Give the names by which the logs know the table, such as ['events', 'db.events'].")
    weighting.check()
    if since is not None and since.tzinfo is None:
        raise LogError(f"The time {since} to read logs from has no time zone: give it one.")
    zone, files = zone_of(timezone), find_logs(logs)
    chosen = known_dialect(dialect) if dialect is not None else _dialect(files, tables, zone)
    check_views(views, chosen)
    reader = _Reader(tables, chosen, timezone, views, columns, weighting.half_life_days, now)
    recent = _Recent(since)
    done, total = 0, sum(log.size for log in files)
    for log in files:
        for number, entry in enumerate(entries_of(log, tables=tables, dialect=chosen, zone=zone)):
            if recent.takes(entry):
                reader.take(entry)
            if progress and number % _EVERY == _EVERY - 1:
                progress(Step("reading the logs", done=done, total=total))
        done += log.size
        if progress:
            progress(Step("reading the logs", done=done, total=total))
    summary = recent.counted(reader.summary())
    weighed = weigh(list(reader.tallies.values()), weighting)
    return Workload(weighed, summary, timezone)


def _dialect(logs: Iterable[LogFile], tables: Sequence[str], zone: tzinfo) -> str:
    """Guess the dialect from the first distinct statements of all logs; event logs have no SQL to guess from."""
    samples: dict[str, None] = {}
    for log in logs:
        if log.kind != "events":
            entries = islice(entries_of(log, tables=tables, dialect=None, zone=zone), _PEEKED)
            texts = (entry.sql for entry in entries if entry.sql and len(entry.sql) <= _SAMPLED_CHARACTERS)
            samples.update(dict.fromkeys(islice(_distinct(texts), _SAMPLED)))
    return (guess_dialect(list(samples)) or "") if samples else "spark"


def _distinct(texts: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _untagged(sql: str) -> str:
    """Return the statement without the comments around it, where they have no quotes, so that this is certain."""
    head = _TAG.match(sql)
    text = sql[head.end() :] if head else sql
    # Only the last characters are looked at: a search from the start would try every dash of a long statement.
    start = max(0, len(text) - 300)
    tail = _END_TAG.search(text, start)
    return text[: tail.start()].rstrip() if tail else text


class _Recent:
    """A filter that keeps entries since a time, and counts the others."""

    def __init__(self, since: datetime | None) -> None:
        self.since, self.dated, self.older, self.undated = since, 0, 0, 0

    def takes(self, entry: LogEntry) -> bool:
        """Tell whether to keep an entry; without `since`, all are kept."""
        if self.since is None:
            return True
        if entry.time is None:
            self.undated += 1
            return False
        self.dated += 1
        self.older += entry.time < self.since
        return entry.time >= self.since

    def counted(self, summary: Summary) -> Summary:
        """Add the counts to a summary, or refuse logs in which no entry has a time."""
        if self.since is not None and self.undated and not self.dated:
            raise LogError(
                f"The logs don't tell when statements ran: leave out {option('since')}, or give logs with times."
            )
        return replace(summary, older=self.older, undated=self.undated)


class _Reader:
    """Takes entries one by one, and parses equal texts once."""

    def __init__(
        self,
        tables: Sequence[str],
        dialect: str,
        timezone: str,
        views: Mapping[str, str],
        columns: Sequence[str] | None,
        half_life_days: float | None,
        now: datetime | None,
    ) -> None:
        self.tables, self.dialect, self.timezone, self.views = tables, dialect, timezone, views
        self.columns, self.half_life_days, self.now = columns, half_life_days, now
        self.tallies: dict[tuple[tuple[str, ...], tuple[str, ...]], RunTotals] = {}
        self.known: dict[bytes, tuple[list[RunTotals], bool] | str] = {}
        """The outcome of each text: its queries and whether one is a full scan, or why it can't be read."""
        self.relative = 0
        self.parsed = self.matched = self.unparsable = self.full_scans = 0
        self.examples: list[str] = []
        self.reasons: set[str] = set()
        self.strangers: dict[str, None] = {}
        self.strange = 0
        self.has_strangers: set[bytes] = set()
        self.elsewhere: Counter[str] = Counter()
        self.first: datetime | None = None
        self.last: datetime | None = None

    def take(self, entry: LogEntry) -> None:
        """Count an entry, and add its runs to its queries."""
        if entry.time is not None:
            self.first = min(self.first or entry.time, entry.time)
            self.last = max(self.last or entry.time, entry.time)
        outcome = entry.problem or self._outcome(entry)
        if isinstance(outcome, str):
            self.unparsable += 1
            if len(self.examples) < _EXAMPLES and outcome not in self.reasons:
                self.reasons.add(outcome)
                self.examples.append(f"{entry.source}: {outcome}")
            return
        self.parsed += 1
        scans, is_full = outcome
        if not scans:
            self._remember(entry)
            return
        self.matched += 1
        self.full_scans += is_full
        size = None if entry.bytes is None else entry.bytes // len(scans)
        for tally in scans:
            tally.add(count=entry.count, size=size, time=entry.time, half_life_days=self.half_life_days)

    def _remember(self, entry: LogEntry) -> None:
        """Keep some statements about other tables, as long as none is about this one."""
        known = entry.sql in self.elsewhere
        is_short = 0 < len(entry.sql) <= _SAMPLED_CHARACTERS
        if not self.matched and is_short and (known or len(self.elsewhere) < _SAMPLED):
            self.elsewhere[entry.sql] += entry.count

    def _others(self) -> tuple[str, ...]:
        """Name the tables of those statements, the most frequent ones first."""
        found: Counter[str] = Counter()
        for sql, count in self.elsewhere.items():
            with suppress(PredicateError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
                found.update(dict.fromkeys(tables_in(sql, dialect=self.dialect), count))
        return tuple(name for name, _ in found.most_common())

    def _outcome(self, entry: LogEntry) -> "tuple[list[RunTotals], bool] | str":
        if entry.scans is not None:
            return self._tallies(entry.scans, entry.source)
        moment = self._moment(entry)
        key = blake2b(f"{moment}\0{_untagged(entry.sql)}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key not in self.known:
            self.relative += moment is not None
            self.known[key] = self._read(entry, moment)
            outcome = self.known[key]
            if self.columns is not None and not isinstance(outcome, str) and outcome[1]:
                names = self._strangers(entry, moment)
                self.strangers |= dict.fromkeys(names)
                self.has_strangers |= {key} if names else set()
        self.strange += key in self.has_strangers
        return self.known[key]

    def _strangers(self, entry: LogEntry, moment: datetime | None) -> list[str]:
        """Name the columns in a statement's filters that the table doesn't have."""
        known = {name.casefold() for name in self.columns or ()}
        names = [
            node.term.name
            for read in self._ask(entry, moment, None)
            for node in leaves(read.predicate)
            if isinstance(node, Compare | In) and isinstance(node.term, Column)
        ]
        return [name for name in names if name.partition(".")[0].casefold() not in known]

    def _ask(self, entry: LogEntry, moment: datetime | None, columns: Sequence[str] | None) -> list[TableRead]:
        return ask(
            entry.sql,
            self.tables,
            dialect=self.dialect,
            now=moment or self.now,
            timezone=self.timezone,
            views=self.views,
            columns=columns,
        )

    def _read(self, entry: LogEntry, moment: datetime | None) -> "tuple[list[RunTotals], bool] | str":
        try:
            reads = self._ask(entry, moment, self.columns)
        except PredicateError as error:
            return str(error)
        except ZonalError:
            raise
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
            # Logs hold anything; a statement that breaks the parser is counted and named like one that it refuses.
            return f"The statement can't be read ({type(error).__name__}): {quoted(entry.sql, limit=40)}"
        return self._tallies(reads, entry.source)

    def _tallies(self, reads: Iterable[TableRead], source: str) -> tuple[list[RunTotals], bool]:
        tallies = []
        is_full = False
        for read in reads:
            key = signature(read.predicate), read.joins
            tallies.append(self.tallies.setdefault(key, RunTotals(read, source)))
            is_full = is_full or not is_usable(read.predicate)
        return tallies, is_full

    def _moment(self, entry: LogEntry) -> datetime | None:
        """Return the time of the run for relative dates, rounded down; None where the statement has none."""
        if entry.time is None:
            return None
        if (is_hourly := _HOURLY.search(entry.sql) is not None) or _DAILY.search(entry.sql):
            grain = next(grain for most, grain in _GRAINS if self.relative < most)
            grain = grain if is_hourly else max(grain, timedelta(days=1))
            # Days begin at midnight in the session's time zone.
            start = datetime(1970, 1, 1, tzinfo=zone_of(self.timezone))
            return start + (entry.time - start) // grain * grain
        return None

    def summary(self) -> Summary:
        """Return the counts of all entries."""
        days = (self.last - self.first).total_seconds() / 86_400 if self.first and self.last else None
        return Summary(
            statements=self.parsed + self.unparsable,
            parsed=self.parsed,
            matched=self.matched,
            unparsable=self.unparsable,
            other_tables=self.parsed - self.matched,
            full_scans=self.full_scans,
            examples=tuple(self.examples),
            dialect=self.dialect,
            days=days,
            strangers=tuple(islice(self.strangers, _EXAMPLES)),
            strange=self.strange,
            others=() if self.matched else self._others(),
        )
