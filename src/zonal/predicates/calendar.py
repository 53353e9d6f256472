"""Times as exact numbers: text and datetimes to microseconds, and the starts of years, months, weeks and days."""

import re
from datetime import date, datetime, time, timedelta, timezone
from datetime import tzinfo as TimeZone  # noqa: N812 - a type
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from zonal.errors import PredicateError, quoted

DAY = 86_400_000_000
MICROS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
"""Units of the calendar: those of fixed length by their microseconds, and those that the clocks or months change."""
PER_MICROSECOND = {"s": Fraction(1, 10**6), "ms": Fraction(1, 1000), "us": Fraction(1), "ns": Fraction(1000)}
"""Units of Arrow's timestamps per microsecond."""
EPOCH = datetime(1970, 1, 1)
_MOST_YEARS = 290_000
"""64-bit microseconds reach this far."""

_TEXT = re.compile(
    r"""\s*(?P<date>\d{4,6}-\d{1,2}-\d{1,2})
        (?:[T\s]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?
        \s*(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?\s*""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)


def zone_of(name: str) -> TimeZone:
    """Return a time zone by its name."""
    try:
        return timezone.utc if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PredicateError(f"Unknown time zone {quoted(name)}. Use a name such as UTC or Europe/Berlin.") from None


def micros_of(value: date | datetime) -> int:
    """Return the microseconds since 1970 of a naive datetime, or of a date's midnight."""
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)


def parse_moment(text: str) -> tuple[Fraction, int | None] | None:
    """Read a date or timestamp: its clock time in exact microseconds, and its offset from UTC if it names one.

    >>> parse_moment("1970-01-02 00:00:01.5")
    (Fraction(86401500000, 1), None)
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    try:
        year, month, day = (int(part) for part in match["date"].split("-"))
        clock = time(int(match["hour"] or 0), int(match["minute"] or 0), int(match["second"] or 0))
        micros = Fraction(micros_of(datetime.combine(date(year, month, day), clock)))
    except ValueError:
        return None
    micros += Fraction(int((match["fraction"] or "0").ljust(9, "0")), 1000)
    return micros, _offset(match["zone"])


def _offset(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone.upper() in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000_000


def to_local(utc_micros: Fraction, zone: TimeZone) -> Fraction:
    """Return the clock time in a zone at a moment."""
    whole = utc_micros.numerator // utc_micros.denominator
    try:
        moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=whole)
        offset = moment.astimezone(zone).utcoffset() or timedelta()
    except (OverflowError, ValueError):  # years beyond Python's
        offset = timedelta()
    return utc_micros + offset // timedelta(microseconds=1)


def to_utc(local_micros: Fraction, zone: TimeZone) -> Fraction:
    """Return the moment at which a zone's clock shows this time (the first of two, in autumn)."""
    whole = local_micros.numerator // local_micros.denominator
    try:
        offset = (EPOCH + timedelta(microseconds=whole)).replace(tzinfo=zone).utcoffset() or timedelta()
    except (OverflowError, ValueError):
        offset = timedelta()
    return local_micros - offset // timedelta(microseconds=1)


def is_doubtful(local_micros: Fraction, zone: TimeZone) -> bool:
    """Tell whether a zone's clock shows this time twice, or never: engines choose different moments then."""
    wall = EPOCH + timedelta(microseconds=int(local_micros))
    return len({wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)}) > 1


def year_start(year: int) -> int:
    """Return the microseconds at which a year begins, for years of any sign.

    >>> year_start(1971) == 365 * DAY
    True
    """
    clipped = max(-_MOST_YEARS, min(_MOST_YEARS, year))
    return int(np.datetime64(clipped - 1970, "Y").astype("datetime64[D]").astype(np.int64)) * DAY


def unit_start(unit: str, micros: int) -> int | None:
    """Return the start of the unit that a clock time lies in; None for a unit that isn't known.

    >>> unit_start("week", 4 * DAY) == 4 * DAY  # 1970-01-05 was a Monday
    True
    """
    if unit in MICROS:
        return micros - micros % MICROS[unit]
    days = micros // DAY
    if unit in DAYS:
        return (days - (days + 3) % DAYS[unit]) * DAY
    if unit in MONTHS:
        month = int(np.datetime64(days, "D").astype("datetime64[M]").astype(np.int64))
        month -= month % MONTHS[unit]
        return int(np.datetime64(month, "M").astype("datetime64[D]").astype(np.int64)) * DAY
    return None


def next_unit(unit: str, start: int) -> int:
    """Return the start of the unit that follows the one starting here."""
    if unit in MONTHS:
        longest = {"year": 367, "quarter": 93, "month": 32}[unit] * DAY
        following = unit_start(unit, start + longest)
        return following if following is not None else start
    return start + (MICROS[unit] if unit in MICROS else DAYS.get(unit, 1) * DAY)
