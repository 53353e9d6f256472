"""Query logs as a value: their paths, and how to read them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from zonal.arguments import check_arguments
from zonal.values.progress import Progress
from zonal.workload.query import Workload
from zonal.workload.weights import Weighting

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Logs:
    """Logs of one engine, and how to read them.

    Arguments:
        paths: files, or folders of them.
        names: by which the logs know the table, besides its own.
        dialect: of their SQL; without, the one that reads most.
        timezone: of the sessions that ran the queries.
        views: the queries of views, by their names.
        half_life_days: days after which a query counts half.
        cap: the most that one query may weigh of all, or None.
        since: a time with its zone; entries before it count for nothing.

    Example:
        >>> logs = zonal.Logs(["queries.sql"], names=["telemetry"], dialect="spark")
        >>> logs.read(["events"], ["day", "id"]).summary.statements
        3
    """

    paths: Sequence[PathLike]
    """Files, or folders of them."""
    names: Sequence[str] = ()
    """Names by which the logs know the table, besides its own."""
    dialect: str | None = None
    timezone: str = "UTC"
    views: Mapping[str, str] = field(default_factory=dict)
    half_life_days: float | None = None
    cap: float | None = 0.2
    since: datetime | None = None
    """Entries before this time are left out."""

    def __post_init__(self) -> None:
        check_arguments(Logs, vars(self))

    @classmethod
    def of(cls, queries: "Logs | Sequence[PathLike] | PathLike") -> "Logs":
        """Return logs as they are, and paths as logs with the default options."""
        if isinstance(queries, Logs):
            return queries
        return cls((queries,) if isinstance(queries, str | os.PathLike) else tuple(queries))

    def read(self, names: Sequence[str], columns: Sequence[str], progress: Progress | None = None) -> Workload:
        """Read the workload of a table with these names, besides those of the logs, and these columns."""
        from zonal.workload.reader import read_workload  # noqa: PLC0415 - sqlglot is slow to import

        return read_workload(
            self.paths,
            tables=[*self.names, *names],
            dialect=self.dialect,
            timezone=self.timezone,
            views=self.views,
            columns=columns,
            weighting=Weighting(self.half_life_days, self.cap),
            since=self.since,
            progress=progress,
        )


def workload_of(
    queries: "Queries", names: Sequence[str], columns: Sequence[str], progress: Progress | None = None
) -> Workload:
    """Return the queries of a table with these names and columns as a workload; logs are read."""
    return queries if isinstance(queries, Workload) else Logs.of(queries).read(names, columns, progress)


Queries = Annotated[Workload | Logs | Sequence[PathLike] | PathLike, "a workload, logs, or paths of logs"]
"""Queries as the verbs take them: paths of logs, logs and how to read them, or a workload."""
