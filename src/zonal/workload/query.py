"""A workload as a value: the predicates of a table's queries with their weights, and a summary of the logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from zonal.errors import ZonalError, option, quoted
from zonal.predicates.expressions import And, Compare, Constant, In, IsNull, Or, Predicate, StartsWith

MOST_OTHERS = 5
"""Other tables that a message names."""


class LogError(ZonalError):
    """A query log that doesn't exist, or in which no statements can be found."""


@dataclass(frozen=True)
class Query:
    """A predicate by which queries filter a table, with the totals of all statements that have it."""

    predicate: Predicate
    weight: float
    """How much it counts, above 0: runs times bytes where the log has bytes, decayed with age and capped."""
    count: int
    """How many scans of the table had it; a statement that reads the table twice scans it twice."""
    bytes: int | None = None
    """Mean bytes per scan, where the log has them; a statement's bytes are shared by its scans of the table."""
    last: datetime | None = None
    """The time of its last run, with its time zone."""
    source: str = ""
    """Where it occurs first: `queries.sql:12`."""
    joins: tuple[str, ...] = ()
    """The table's columns that are compared with other tables' columns for equality."""


@dataclass(frozen=True)
class Summary:
    """Counts of the logs' entries: statements = parsed + unparsable, parsed = matched + other_tables."""

    statements: int
    parsed: int
    matched: int
    unparsable: int
    other_tables: int
    """Parsed statements that don't read this table: other tables' queries, DDL and settings."""
    full_scans: int
    """Matched statements with at least one scan of the table without a filter that statistics could use."""
    examples: tuple[str, ...] = ()
    """The first unparsable statement for each of some reasons: `queries.sql:12: reason`; reasons may quote the SQL."""
    dialect: str = ""
    """The SQL dialect that was given or guessed; empty for the standard."""
    days: float | None = None
    """From the first to the last run, where the log has times."""
    strangers: tuple[str, ...] = ()
    """The first columns in filters that the table doesn't have: such filters are ignored."""
    strange: int = 0
    """Statements that filter the table by such columns alone."""
    older: int = 0
    """Entries before `since`, which no other count includes."""
    undated: int = 0
    """Entries without a time, where `since` was given, which no other count includes."""

    others: tuple[str, ...] = ()
    """Where no statement is about this table: those that they read, the most frequent ones first."""

    def nobody_asks(self, *, hide: bool = False) -> str:
        """Explain why the logs have no query of a table, and what to do; with `hide` no SQL is quoted."""
        if not self.statements:
            left_out = [(self.older, "older than the time that was asked for"), (self.undated, "without a time")]
            reasons = [f"{count:,} {'is' if count == 1 else 'are'} {why}" for count, why in left_out if count]
            if reasons:
                earlier = f"Ask for an earlier time ({option('since')})."
                return f"No statement of the logs is left: {', '.join(reasons)}. {earlier}"
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
    """The queries of a table, heaviest first, and the summary of the logs that they came from."""

    queries: tuple[Query, ...]
    summary: Summary
    timezone: str = "UTC"
    """Of the sessions that ran the queries."""

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
        from zonal.sql.where import parse_where  # noqa: PLC0415 - sqlglot is slow to import

        read = [parse_where(text, dialect=dialect, now=now, timezone=timezone) for text in conditions]
        queries = [Query(p, 1.0, 1, source=f"condition {number}") for number, p in enumerate(read, 1)]
        full = sum(not is_usable(predicate) for predicate in read)
        return cls(
            tuple(queries), Summary(len(read), len(read), len(read), 0, 0, full, dialect=dialect or ""), timezone
        )


def is_usable(predicate: Predicate) -> bool:
    """Tell whether statistics could ever exclude a file by the predicate: some part of every alternative is known."""
    usable: list[bool] = []
    for node, size in _postfix(predicate):
        if size is None:
            known = isinstance(node, Compare | In | IsNull | StartsWith)
            usable.append(known or (isinstance(node, Constant) and not node.value))
            continue
        parts = [usable.pop() for _ in range(size)]
        usable.append(all(parts) if isinstance(node, Or) else any(parts))
    return usable[0]


def signature(predicate: Predicate) -> tuple[str, ...]:
    """Return a key that tells predicates apart: unlike `==`, it has 1, 1.0 and TRUE as three values, at any depth."""
    return tuple(repr(node) if size is None else f"{type(node).__name__} {size}" for node, size in _postfix(predicate))


def _postfix(predicate: Predicate) -> list[tuple[Predicate, int | None]]:
    """List nodes in postorder, an AND or OR with the number of its parts, without the interpreter's stack."""
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
