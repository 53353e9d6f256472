"""Read a condition, as it stands behind WHERE in any dialect that sqlglot reads, as a predicate.

The law: a predicate is true for every row for which the SQL is, in any engine of the dialect, and perhaps for more.
What can't be followed, or what engines do differently, becomes `Unknown` with its reason. Nothing is ever executed.
"""

from datetime import datetime

from zonal.predicates.expressions import Predicate
from zonal.sql.conditions import read_condition
from zonal.sql.statement import parse_condition, prepare, with_room


def parse_where(
    text: str, *, dialect: str | None = None, now: datetime | None = None, timezone: str = "UTC"
) -> Predicate:
    """Read a condition as a predicate; it is true for every row for which the SQL is, and perhaps for more.

    `now` is what current_timestamp means (an aware datetime; the time of the call), `timezone` the session's zone.

    >>> parse_where("year(ts) = 2024")
    Compare(term=Call(name='year', column=Column(name='ts', quoted=False), argument=''), op='=', value=2024)
    """
    read = prepare(text, "condition", dialect, now, timezone)
    return with_room(read.depth, lambda: read_condition(parse_condition(read), False, read.session))
