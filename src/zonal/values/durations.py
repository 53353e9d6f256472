"""Durations as text with units: `7d`, `12h`, `30m`, `2w`."""

import re
from datetime import timedelta

from zonal.errors import ZonalError, quoted

_DURATION = re.compile(r"(\d{1,6})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_duration(text: str) -> timedelta | None:
    """Read a duration; None for another text. One that is longer than any time is an error.

    >>> parse_duration("7d"), parse_duration(" 90M "), parse_duration("2026-01-31")
    (datetime.timedelta(days=7), datetime.timedelta(seconds=5400), None)
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        return None
    try:
        return timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise ZonalError(f"{quoted(text)} is longer than any time.") from None


def duration_name(duration: timedelta) -> str:
    """Print a duration in its largest whole unit.

    >>> duration_name(timedelta(days=7)), duration_name(timedelta(hours=1)), duration_name(timedelta(seconds=90))
    ('7 days', '1 hour', '90 seconds')
    """
    seconds = round(duration.total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % length == 0 and (seconds >= length or length == 1):
            return f"{seconds // length:,} {unit}{'' if seconds == length else 's'}"
    raise AssertionError(duration)
