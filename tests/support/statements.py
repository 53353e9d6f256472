"""Asks statements of the table `lake.db.events` in tests."""

from datetime import datetime, timezone

from zonal.predicates.expressions import And, Constant, Predicate, Unknown
from zonal.sql.ask import TableRead, ask
from zonal.sql.where import parse_where

NOW = datetime(2024, 3, 31, 12, 30, tzinfo=timezone.utc)
ALL = Constant(True)
EVENTS = ("id", "user_id", "ts", "day", "kind", "country", "amount", "payload")


def asked(sql: str, dialect: str | None = None, **options: object) -> list[TableRead]:
    return ask(sql, ["lake.db.events"], dialect=dialect, now=NOW, **options)  # type: ignore[arg-type]


def predicates(sql: str, dialect: str | None = None, **options: object) -> list[Predicate]:
    return [found.predicate for found in asked(sql, dialect, **options)]


def parts(predicate: Predicate) -> set[Predicate]:
    """Return the conditions that all hold, without those of which nothing is known."""
    found: set[Predicate] = set()
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        found |= parts(part) if isinstance(part, And) else {part}
    return {part for part in found if part != ALL and not isinstance(part, Unknown)}


def expected(condition: str, dialect: str | None) -> set[Predicate]:
    return parts(parse_where(condition, dialect=dialect, now=NOW)) if condition else set()
