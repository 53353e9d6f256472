"""The time from which queries count, as text: a date, a time, or an age such as `7d`."""

from datetime import datetime
from datetime import timezone as zones

from zonal.errors import ZonalError
from zonal.values.durations import parse_duration
from zonal.workload.query import LogError


def parse_since(text: str, now: datetime | None = None) -> datetime:
    """Read `7d`, `12h`, `30m`, `2w` (before `now`), a date or a time of ISO 8601; without a zone, in UTC.

    >>> parse_since("2d", datetime(2026, 1, 8, tzinfo=zones.utc)), parse_since("2026-01-05 12:30")
    (datetime.datetime(2026, 1, 6, 0, 0, tzinfo=datetime.timezone.utc), \
datetime.datetime(2026, 1, 5, 12, 30, tzinfo=datetime.timezone.utc))
    """
    try:
        if (ago := parse_duration(text)) is not None:
            return (now or datetime.now(zones.utc)) - ago
    except (OverflowError, ZonalError):
        raise LogError(f"{text!r} is longer ago than any time.") from None
    try:
        time = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise LogError(f"{text[:60]!r} is no time. Give 7d, 12h, a date such as 2026-01-31, or a time.") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=zones.utc)
