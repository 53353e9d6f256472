"""A workload as a value: which predicates a table is asked, how much each of them matters, and what a log left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from zonal.errors import ZonalError, option, quoted
from zonal.predicates.expressions import And, Compare, Constant, In, IsNull, Or, Predicate, StartsWith
from zonal.sql.where import parse_where

MOST_OTHERS = 5
"""Other tables that a message names."""


class LogError(ZonalError):
    """A query log that doesn't exist, or in which no statements can be found."""


@dataclass(frozen=True)
class Query:
    """A predicate that a table is asked, joined from all the statements that ask it."""

    predicate: Predicate
    weight: float
    """How much it matters, above 0: runs times bytes where the log knows bytes, faded with age and limited."""
    count: int
    """How many scans of the table asked it; a statement that reads the table twice scans it twice."""
    bytes: int | None = None
    """What a scan read in the mean, where the log tells; a statement's bytes are shared by its scans of the table."""
    last: datetime | None = None
    """The time of its last run, with its time zone."""
    source: str = ""
    """Where it stands first: `queries.sql:12`."""
    joins: tuple[str, ...] = ()
    """The table's columns that are compared with other tables' columns for equality."""


@dataclass(frozen=True)
class Summary:
    """What became of each entry of the logs: statements = parsed + unparsable, parsed = matched + other_tables."""

    statements: int
    parsed: int
    matched: int
    unparsable: int
    other_tables: int
    """Read, but not about this table: other tables' queries, DDL and settings."""
    full_scans: int
    """Matched, but at least one scan of the table has no filter that statistics could use."""
    examples: tuple[str, ...] = ()
    """The first unparsable ones for different reasons: `queries.sql:12: reason`; the reasons may quote the SQL."""
    dialect: str = ""
    """The SQL dialect that was given or found; empty for the standard."""
    days: float | None = None
    """From the first to the last run, where the log knows times."""
    strangers: tuple[str, ...] = ()
    """Columns that the table doesn't have, the first ones: filters on them count for nothing."""
    strange: int = 0
    """Statements that filter the table by such a column and no other."""
    older: int = 0
    """Entries from before the time that was asked for, and in no other number here …"""
    undated: int = 0
    """… as those without a time, where one was asked for."""

    others: tuple[str, ...] = ()
    """Where no statement is about this table: those that they read, the most frequent ones first."""

    def nobody_asks(self, *, hide: bool = False) -> str:
        """Say why logs have no query of a table, and what to do; with `hide` no SQL is quoted."""
        if not self.statements:
            left_out = [(self.older, "older than the time that was asked for"), (self.undated, "without a time")]
            told = [f"{count:,} {'is' if count == 1 else 'are'} {why}" for count, why in left_out if count]
            if told:
                return (
                    f"No statement of the logs is left: {', '.join(told)}. Ask for an earlier time ({option('since')})."
                )
            return "The logs hold no statement. Check that they are the right files."
        if not self.parsed:
            example = "" if hide or not self.examples else f", as {self.examples[0]}"
            unread = f"None of the logs' {self.statements:,} statements can be read{example}"
            return f"{unread}. Say which SQL dialect they are in ({option('dialect')})."
        one = self.other_tables == 1
        others = f", and {self.unparsable:,} can't be read" if self.unparsable else ""
        return (
            f"No query in the logs reads it: {self.other_tables:,} {'statement is' if one else 'statements are'} about "
            f"something else{others}. {self._whose()}"
        )

    def _whose(self) -> str:
        """Say which tables the logs know, and what to do."""
        names = option("names")
        if not self.others:
            return f"Give the names ({names}) by which the logs know the table."
        shown = ", ".join(quoted(name) for name in self.others[:MOST_OTHERS])
        more = f" and {len(self.others) - MOST_OTHERS:,} more" if len(self.others) > MOST_OTHERS else ""
        which = "that" if len(self.others) == 1 else "one of these"
        return f"The logs read {shown}{more}: if {which} is the table, give its name ({names})."


@dataclass(frozen=True)
class Workload:
    """The queries of a table, heaviest first, and the account of the logs that they came from."""

    queries: tuple[Query, ...]
    summary: Summary

    @classmethod
    def of(
        cls,
        conditions: Sequence[str],
        *,
        dialect: str | None = None,
        now: datetime | None = None,
        timezone: str = "UTC",
    ) -> "Workload":
        """Make a workload of WHERE clauses of equal weights; one that can't be read is a `PredicateError`.

        >>> Workload.of(["id = 7"]).queries[0].predicate
        Compare(term=Column(name='id', quoted=False), op='=', value=7)
        """
        read = [parse_where(text, dialect=dialect, now=now, timezone=timezone) for text in conditions]
        queries = [Query(p, 1.0, 1, source=f"condition {number}") for number, p in enumerate(read, 1)]
        full = sum(not is_usable(predicate) for predicate in read)
        return cls(tuple(queries), Summary(len(read), len(read), len(read), 0, 0, full, dialect=dialect or ""))


def is_usable(predicate: Predicate) -> bool:
    """Tell whether statistics could ever exclude a file by the predicate: some part of every alternative is known."""
    found: list[bool] = []
    for node, size in _postfix(predicate):
        if size is None:
            known = isinstance(node, Compare | In | IsNull | StartsWith)
            found.append(known or (isinstance(node, Constant) and not node.value))
            continue
        parts = [found.pop() for _ in range(size)]
        found.append(all(parts) if isinstance(node, Or) else any(parts))
    return found[0]


def signature(predicate: Predicate) -> tuple[str, ...]:
    """Return what tells predicates apart: unlike `==`, it takes 1, 1.0 and TRUE for three values, at any depth."""
    return tuple(repr(node) if size is None else f"{type(node).__name__} {size}" for node, size in _postfix(predicate))


def _postfix(predicate: Predicate) -> list[tuple[Predicate, int | None]]:
    """List parts before the AND or OR that joins them (with their number), without the interpreter's stack."""
    order: list[tuple[Predicate, int | None]] = []
    waiting = [predicate]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And | Or):
            order.append((node, len(node.parts)))
            waiting.extend(node.parts)
        else:
            order.append((node, None))
    return order[::-1]
