"""How old things must be before they count as spare, and what a table promises to keep."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from zonal.errors import ZonalError, option, quoted
from zonal.values.durations import duration_name, parse_duration

SAFE_AGE = "7d"
"""As long as VACUUM waits by default; most jobs end in less."""
_LEAST_AGE = timedelta(days=1)


@dataclass(frozen=True)
class Retention:
    """What counts as old, from one moment on."""

    now: datetime
    expire: timedelta | None = None
    """Every version of so long ago stays readable; None: nothing expires."""
    older_than: timedelta = timedelta(days=7)
    """The age of leftovers, and of a quarantine that is deleted."""
    ignore_retention: bool = False

    @classmethod
    def of(cls, now: datetime, *, expire: str | None, older_than: str, ignore_retention: bool) -> "Retention":
        """Read durations; refuse an age at which a job may still be running."""
        retention = cls(
            now, None if expire is None else _read("expire", expire), _read("older_than", older_than), ignore_retention
        )
        if retention.older_than < _LEAST_AGE and not ignore_retention:
            raise ZonalError(
                f"{option('older_than', older_than)} is less than {duration_name(_LEAST_AGE)}: a job that still writes "
                f"would lose its files. Give a longer time, or {option('ignore_retention')} if no job is running."
            )
        return retention

    @property
    def cutoff(self) -> datetime | None:
        """Return the moment since which all versions stay readable; None: all of them."""
        return None if self.expire is None else _before(self.now, self.expire)

    @property
    def stale(self) -> datetime:
        """Return the moment before which leftovers must have been touched last."""
        return _before(self.now, self.older_than)

    def hold(self, table: str, promises: "tuple[Promise, ...]") -> None:
        """Raise an error where something would expire that a table promises to keep."""
        longest = max(promises, key=lambda promise: promise.time, default=None)
        if self.expire is None or longest is None or self.expire >= longest.time or self.ignore_retention:
            return
        raise ZonalError(
            f"{quoted(table, limit=300)} promises to keep what is younger than {duration_name(longest.time)} "
            f"({longest.origin}), and {option('expire')} asks for {duration_name(self.expire)}. Give a longer time, "
            f"change the property, or break the promise with {option('ignore_retention')}."
        )


@dataclass(frozen=True)
class Promise:
    """A property of a table by which older versions are kept for some time."""

    origin: str
    """Its name, and whether it is the default."""
    time: timedelta


def _read(name: str, text: str) -> timedelta:
    found = parse_duration(text)
    if found is None:
        raise ZonalError(f"{option(name, text[:60])} is no duration. Give 7d, 12h, 30m or 2w.")
    return found


def _before(now: datetime, time: timedelta) -> datetime:
    try:
        return now - time
    except OverflowError:
        return datetime.min.replace(tzinfo=now.tzinfo)
