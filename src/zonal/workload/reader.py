"""Query logs to a workload: every entry is read, asked for its table, counted and weighed."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from hashlib import blake2b
from itertools import islice
from types import MappingProxyType

from zonal.errors import PredicateError, ZonalError, in_python, option, quoted
from zonal.predicates.calendar import zone_of
from zonal.predicates.expressions import Column, Compare, In, leaves
from zonal.sql.ask import TableRead, ask, guess_dialect
from zonal.sql.query import tables_in
from zonal.sql.statement import known_dialect
from zonal.sql.views import check_views
from zonal.workload.entries import entries_of
from zonal.workload.log_files import LogFile, find_logs
from zonal.workload.query import LogError, Summary, Workload, is_usable, signature
from zonal.workload.records import LogEntry
from zonal.workload.weights import RunTotals, weigh

_NO_VIEWS: Mapping[str, str] = MappingProxyType({})
_DAILY = re.compile(r"\b(?:current_?date|curdate|today|yesterday|tomorrow)\b", re.IGNORECASE)
_HOURLY = re.compile(
    r"\b(?:now|current_?(?:date)?time(?:stamp)?|localtime(?:stamp)?|sysdate(?:time)?|systimestamp|getdate|getutcdate"
    r"|utc_\w+|unix_timestamp|date\s*\(\s*\))(?!\w)",
    re.IGNORECASE,
)
"""What may mean the time of the run; a text that has it for another reason is only read more often."""
_GRAINS = ((2_000, timedelta(hours=1)), (6_000, timedelta(days=1)), (1 << 62, timedelta(days=28)))
"""To what the times of relative queries are rounded, by how many of them were read: keeps their number small."""
_TAG = re.compile(r"\s*/\*[^*'\"`]*\*/|\s*--[^\n'\"`]*\n", re.ASCII)
_END_TAG = re.compile(r"(?:/\*[^*'\"`]*\*/|--[^\n'\"`]*)\s*\Z", re.ASCII)
"""Comments before and behind a statement, in which tools number its runs."""
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
    half_life_days: float | None = None,
    cap: float | None = 0.2,
    since: datetime | None = None,
    now: datetime | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Workload:
    """Read what the logs ask of the table that they know by one of the names `tables`.

    Logs are files or folders of them. With the table's `columns` (names of its schema, in order) statements that join
    it with others without saying whose column a name is are understood, too. Entries that can't be read are counted and
    never an exception; a log in which no SQL can be found is a `LogError`. Relative dates mean the time of the run, to
    the hour (coarser in logs with thousands of different ones); without a time in the log, `now`. With `since`, entries
    from before, and those without a time, are counted and left out. `progress` is told bytes done and bytes in all.
    """
    _check(tables, half_life_days, cap)
    if since is not None and since.tzinfo is None:
        raise LogError(f"The time {since} to read logs from has no time zone: give it one.")
    zone, found = zone_of(timezone), find_logs(logs)
    chosen = known_dialect(dialect) if dialect is not None else _dialect(found, tables, zone)
    check_views(views, chosen)
    reader = _Reader(tables, chosen, timezone, views, columns, half_life_days, now)
    recent = _Recent(since)
    done, total = 0, sum(log.size for log in found)
    for log in found:
        for number, entry in enumerate(entries_of(log, tables=tables, dialect=chosen, zone=zone)):
            if recent.takes(entry):
                reader.take(entry)
            if progress and number % _EVERY == _EVERY - 1:
                progress(done, total)
        done += log.size
        if progress:
            progress(done, total)
    summary = recent.counted(reader.summary())
    return Workload(weigh(list(reader.tallies.values()), half_life_days=half_life_days, cap=cap), summary)


def _check(tables: Sequence[str], half_life_days: float | None, cap: float | None) -> None:
    if isinstance(tables, str) or not tables or not all(tables):
        raise LogError("Give the names by which the logs know the table, such as ['events', 'db.events'].")
    if half_life_days is not None and not half_life_days > 0:
        raise LogError(
            f"{option('half_life_days', half_life_days)} is no half-life. Give days above 0{in_python(', or None')}."
        )
    if cap is not None and not 0 < cap <= 1:
        raise LogError(f"{option('cap', cap)} is no share: give a number above 0 and up to 1{in_python(', or None')}.")


def _dialect(logs: Iterable[LogFile], tables: Sequence[str], zone: tzinfo) -> str:
    """Guess the dialect from the first different statements of all logs; event logs have none to guess from."""
    samples: dict[str, None] = {}
    for log in logs:
        if log.kind != "events":
            entries = islice(entries_of(log, tables=tables, dialect=None, zone=zone), _PEEKED)
            texts = (entry.sql for entry in entries if entry.sql and len(entry.sql) <= _SAMPLED_CHARACTERS)
            samples.update(dict.fromkeys(islice(_different(texts), _SAMPLED)))
    return (guess_dialect(list(samples)) or "") if samples else "spark"


def _different(texts: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _untagged(sql: str) -> str:
    """Return the statement without comments around it, as far as that is certain: no quote in them or after them."""
    head = _TAG.match(sql)
    text = sql[head.end() :] if head else sql
    # Only the last characters are looked at: a search from the start would try every dash of a long statement.
    start = max(0, len(text) - 300)
    tail = _END_TAG.search(text, start)
    return text[: tail.start()].rstrip() if tail else text


class _Recent:
    """Tells entries since a time from those before, and counts the latter."""

    def __init__(self, since: datetime | None) -> None:
        self.since, self.dated, self.older, self.undated = since, 0, 0, 0

    def takes(self, entry: LogEntry) -> bool:
        """Tell whether an entry counts; without a time to ask for, all do."""
        if self.since is None:
            return True
        if entry.time is None:
            self.undated += 1
            return False
        self.dated += 1
        self.older += entry.time < self.since
        return entry.time >= self.since

    def counted(self, summary: Summary) -> Summary:
        """Add the counts, or refuse logs in which nothing has a time."""
        if self.since is not None and self.undated and not self.dated:
            raise LogError(
                f"The logs don't tell when statements ran: leave out {option('since')}, or give logs with times."
            )
        return replace(summary, older=self.older, undated=self.undated)


class _Reader:
    """Takes entries one by one; equal texts are parsed once."""

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
        """What each text came to: its queries and whether they need all of the table, or why it can't be read."""
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
        if entry.asked is not None:
            return self._tallies(entry.asked, entry.source)
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
        """Name the columns by which a statement filters the table, and which the table doesn't have."""
        known = {name.casefold() for name in self.columns or ()}
        names = [
            node.term.name
            for asked in self._ask(entry, moment, None)
            for node in leaves(asked.predicate)
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
            asked = self._ask(entry, moment, self.columns)
        except PredicateError as error:
            return str(error)
        except ZonalError:
            raise
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
            # Logs hold everything; what the parser stumbles over is counted, and named, like what it refuses.
            return f"The statement can't be read ({type(error).__name__}): {quoted(entry.sql, limit=40)}"
        return self._tallies(asked, entry.source)

    def _tallies(self, asked: Iterable[TableRead], source: str) -> tuple[list[RunTotals], bool]:
        scans = []
        is_full = False
        for one in asked:
            key = signature(one.predicate), one.joins
            scans.append(self.tallies.setdefault(key, RunTotals(one, source)))
            is_full = is_full or not is_usable(one.predicate)
        return scans, is_full

    def _moment(self, entry: LogEntry) -> datetime | None:
        """Return the time that relative dates mean, rounded down; None where the text has none."""
        if entry.time is None:
            return None
        if (is_hourly := _HOURLY.search(entry.sql) is not None) or _DAILY.search(entry.sql):
            grain = next(grain for most, grain in _GRAINS if self.relative < most)
            grain = grain if is_hourly else max(grain, timedelta(days=1))
            # Days begin where the session's clocks say so.
            start = datetime(1970, 1, 1, tzinfo=zone_of(self.timezone))
            return start + (entry.time - start) // grain * grain
        return None

    def summary(self) -> Summary:
        """Return the account of all entries."""
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
