"""The name of a run: one for each rewrite, and for each clean-up."""

import re
import secrets
from datetime import datetime, timezone

_TIME = "%Y%m%d-%H%M%S"
RUN = re.compile(r"(?P<time>\d{8}-\d{6})-[0-9a-f]{8}")
RUN_FOLDER = re.compile(rf"zonal-[0-9a-f]{{12}}-(?P<run>{RUN.pattern})(-\d+){{0,2}}")
"""A folder of new files: the layout's id and the run, and in a rewrite in place the commit and the attempt."""


def run_folder(layout_id: str, run: str) -> str:
    """Name the folder of a run's new files."""
    return f"zonal-{layout_id}-{run}"


def new_run() -> str:
    """Name a run: when it began, and something that no other run has.

    The name is part of a folder's, and must not begin with `_` or `.`: tools that look for orphans pass over those.
    """
    return f"{datetime.now(timezone.utc):{_TIME}}-{secrets.token_hex(4)}"


def began(run: str) -> datetime | None:
    """Return when a run began, by its name; None where that is no time.

    >>> began("20260131-120000-0123abcd")
    datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    match = RUN.match(run)
    try:
        return datetime.strptime(match["time"], _TIME).replace(tzinfo=timezone.utc) if match else None
    except ValueError:
        return None
