"""Commits and their authors in words that are safe to print, and in the order of time."""

import math
from collections.abc import Iterable
from typing import Final

from zonal.snapshot import Commit

ZONAL: Final = "zonal"
"""The kind of zonal's own commits."""
LONGEST = 100
"""Characters of an untrusted name that are shown."""


def writer_of(commit: Commit) -> str:
    """Return the engine with its version, as far as the commit tells; an empty text where it doesn't."""
    return plain(commit.writer)


def time_of(commit: Commit) -> tuple[float, int]:
    """Return a sort key for the order of time; a commit without a time comes first."""
    return (-math.inf if commit.time is None else commit.time.timestamp()), commit.id


def in_common(texts: Iterable[str]) -> str:
    """Return the text that all of them are; an empty one where they differ.

    >>> in_common(["WRITE", "WRITE"]), in_common(["WRITE", "DELETE"])
    ('WRITE', '')
    """
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def plain(text: str, limit: int = LONGEST) -> str:
    """Return untrusted text on one line, without unprintable characters, and shortened.

    >>> plain("OPTI" + chr(10) + "MIZE")
    'OPTI�MIZE'
    """
    shown = "".join(each if each.isprintable() else "�" for each in text[:limit])
    return shown if len(text) <= limit else shown[:-1] + "…"
