"""Reads conditions in tests: a fixed time, and the names of columns."""

from datetime import datetime, timezone

from zonal.predicates.expressions import Column, Constant, Predicate
from zonal.sql.where import parse_where

NOW = datetime(2024, 3, 31, 12, 30, 15, tzinfo=timezone.utc)
X, TS, S, ACTIVE = Column("x"), Column("ts"), Column("s"), Column("active")
YES, NO = Constant(True), Constant(False)


def where(text: str, dialect: str | None = None, zone: str = "UTC") -> Predicate:
    return parse_where(text, dialect=dialect, now=NOW, timezone=zone)
