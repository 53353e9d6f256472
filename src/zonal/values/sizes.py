"""Sizes in bytes as text with units: `128MiB`, `1.5GB`, `2200000B`."""

import re
from fractions import Fraction
from typing import Annotated

from zonal.errors import ZonalError, option, quoted

Size = Annotated[int | str, "a number of bytes, or a text such as '64MB'"]
"""A size as users give it."""

_UNITS = {"B": 1} | {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate("KMGTP", start=1)
    for suffix, base in (("B", 1000), ("iB", 1024))
}
_SIZE = re.compile(r"(?P<number>\d{1,19}(?:\.\d{1,9})?)\s*(?P<unit>[A-Za-z]{1,3})", re.ASCII)
_UNIT_NAMES = {unit.casefold(): factor for unit, factor in _UNITS.items()}


def parse_size(text: str) -> int:
    """Read a size in bytes; a unit is required, KB is 1000 and KiB 1024 bytes.

    >>> parse_size("128MiB"), parse_size("1.5 kb"), parse_size("2200000B")
    (134217728, 1500, 2200000)
    """
    match = _SIZE.fullmatch(text.strip())
    factor = _UNIT_NAMES.get(match["unit"].casefold()) if match else None
    if match is None or factor is None:
        raise ZonalError(f"{quoted(text)} is not a size. Write a number with a unit, such as 128MB, 1GiB or 2200000B.")
    size = Fraction(match["number"]) * factor
    if size < 1 or size.denominator != 1:
        raise ZonalError(f"{quoted(text)} is not a whole number of bytes. Write a larger size, or plain bytes with B.")
    return int(size)


def size_of(value: Size | None, name: str) -> int | None:
    """Read a number of bytes, or a text such as `64MB`, of the option with this name; None stays None."""
    if value is None or isinstance(value, str):
        return None if value is None else parse_size(value)
    if value < 1:
        raise ZonalError(f"{option(name, value)} is not a positive number of bytes.")
    return value


def format_size(size: int) -> str:
    """Print a size exactly: `parse_size(format_size(n)) == n` for every positive n.

    >>> format_size(134217728), format_size(2_200_000), format_size(1001)
    ('128MiB', '2200KB', '1001B')
    """
    unit = min((u for u in _UNITS if size % _UNITS[u] == 0), key=lambda u: size // _UNITS[u])
    return f"{size // _UNITS[unit]}{unit}"


def size_text(size: float) -> str:
    """Print a size for people, rounded.

    >>> size_text(17), size_text(1500), size_text(2_340_000)
    ('17 B', '1.5 KB', '2.3 MB')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
