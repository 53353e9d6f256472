"""The size of new files: as somebody asked for it, else as it suits the table's size."""

import math
from dataclasses import dataclass, replace

from zonal.layouts.layout import Layout
from zonal.snapshot import Snapshot
from zonal.values.sizes import format_size, size_text

LEAST, MOST = 1024**2, 1024**3
"""Below, a file costs more to open than to read; above, even a table of a hundred terabytes has no million files."""
ONE_GIB_FILES = 256
"""Files of a table of 1 GiB; with four times the bytes there are twice as many files, of twice the size."""
STEADY = 2
"""A size stays recorded until another one suits the table that is more than this many times as large or as small."""


@dataclass(frozen=True)
class FileSize:
    """The size that new files of a table get."""

    bytes: int
    asked: bool
    """Whether somebody asked for it: such a size never changes by itself."""


def suited(table_bytes: int) -> int:
    """Return the size of files that suits a table of so many bytes, a power of two; docs/decisions.md has the curve.

    >>> [format_size(suited(size)) for size in (10**6, 10**9, 10**10, 10**12, 10**14)]
    ['1MiB', '4MiB', '16MiB', '128MiB', '1GiB']
    """
    size = 2**30 / ONE_GIB_FILES * math.sqrt(max(table_bytes, 1) / 2**30)
    return min(max(1 << round(math.log2(size)), LEAST), MOST)


def file_size(snapshot: Snapshot, asked: int | None = None, *, arriving: int = 0, afresh: bool = False) -> FileSize:
    """Return the size of a table's new files, with so many bytes that arrive.

    What is asked for comes first, then what was asked for when the layout was recorded, then the table's own property.
    Else the size that was recorded stays while it is about right, unless all is made `afresh`: files that are there
    already are in their layout whatever their size.
    """
    recorded = snapshot.layout
    known = asked if recorded is None or asked is not None else recorded.target_file_bytes
    if known is not None:
        return FileSize(known, asked=True)
    if (named := snapshot.traits.file_size) is not None and named.bytes is not None:
        return FileSize(named.bytes, asked=False)
    size = suited(int(snapshot.files.sizes.sum()) + arriving)
    held = None if recorded is None or afresh else recorded.fitted_file_bytes
    stays = held is not None and max(size / held, held / size) <= STEADY
    return FileSize(held if held is not None and stays else size, asked=False)


def sized(layout: Layout, snapshot: Snapshot, *, arriving: int = 0, afresh: bool = False) -> Layout:
    """Return a layout with the size of a table's new files; other columns keep a size that was asked for."""
    size = file_size(snapshot, layout.target_file_bytes, arriving=arriving, afresh=afresh)
    if size.asked:
        return replace(layout, target_file_bytes=size.bytes, fitted_file_bytes=None)
    return replace(layout, fitted_file_bytes=size.bytes)


def size_reason(layout: Layout, snapshot: Snapshot) -> str:
    """Say why new files of a table get the size that its layout has."""
    recorded, named = snapshot.layout, snapshot.traits.file_size
    if layout.target_file_bytes is not None:
        known = recorded is not None and recorded.target_file_bytes == layout.target_file_bytes
        return "as the table's layout has it" if known else "as requested"
    if named is not None and named.bytes is not None:
        return f"as the table property {named.name} has it"
    total = int(snapshot.files.sizes.sum())
    unread = "" if named is None else f"; the table property {named.name} is no size"
    if layout.file_bytes != (size := suited(total)):
        return f"as recorded for the table; {format_size(size)} would suit its {size_text(total)} little better{unread}"
    return f"which suits a table of {size_text(total)}{unread}"
