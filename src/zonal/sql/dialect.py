"""How SQL is read, as a value: the dialect, and what the session makes of times."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from zonal.arguments import check_arguments
from zonal.predicates.bind import bind
from zonal.predicates.bound import Bound
from zonal.predicates.expressions import Predicate
from zonal.sql.query import ParsedQuery, parse_query
from zonal.sql.where import parse_where


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL, and what the session that runs it makes of times.

    Arguments:
        name: such as `spark` or `trino`; by default, what most dialects share.
        timezone: of the session: what times without a zone mean.
        now: what `current_timestamp` means, with a time zone; by default, the time of the call.

    Example:
        >>> berlin = zonal.Dialect("trino", timezone="Europe/Berlin")
        >>> len(zonal.prune("events", where="day = 2", dialect=berlin))
        1
    """

    name: str | None = None
    timezone: str = "UTC"
    now: datetime | None = None

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))

    @classmethod
    def of(cls, dialect: "Dialect | str | None") -> "Dialect":
        """Return a dialect that is given by its name alone with the defaults of the rest."""
        return dialect if isinstance(dialect, Dialect) else cls(dialect)

    def condition(self, text: str) -> Predicate:
        """Read a condition, as after WHERE."""
        return parse_where(text, dialect=self.name, now=self.now, timezone=self.timezone)

    def statement(self, text: str) -> ParsedQuery:
        """Read a whole statement."""
        return parse_query(text, dialect=self.name, now=self.now, timezone=self.timezone)

    def bound(self, predicate: Predicate, schema: pa.Schema) -> Bound:
        """Bind a predicate that was read so to the columns of a table."""
        return bind(predicate, schema, dialect=self.name, timezone=self.timezone)
