"""A rewrite to measure, as a value for the process that does it."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

LOGGED = "rows"
"""The table's name in the log of queries."""


@dataclass(frozen=True)
class Job:
    """A fresh table in `folder`, the columns to cluster it by, and the target size of its files."""

    folder: Path
    columns: tuple[str, ...]
    target: int
    codec: str | None = None
    """Of the new files; by default, each engine's own."""
    queries: Path | None = None
    """A log of statements, for layouts that are learned."""

    def to_json(self) -> str:
        """Return the text form; `Job.from_json(job.to_json()) == job`."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Read what `to_json` wrote."""
        read = json.loads(text)
        queries = None if read["queries"] is None else Path(read["queries"])
        return cls(Path(read["folder"]), tuple(read["columns"]), read["target"], read["codec"], queries)


Rewrite = Callable[[], object]
"""The work that is measured."""

Start = Callable[[Job], Rewrite]
"""Opens the table and starts the engine, neither of which is measured."""
