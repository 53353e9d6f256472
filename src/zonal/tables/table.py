"""What every table format can do for zonal."""

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from zonal.errors import LayoutError
from zonal.files import Snapshot
from zonal.layout import Layout

LAYOUT_PROPERTY = "zonal.layout"
"""Table property with the layout as JSON; in the summary of an Iceberg snapshot, that of the files that it added."""


class Table(Protocol):
    """A table that can be read: metadata by `snapshot`, files by `open_file`."""

    name: str

    def snapshot(self) -> Snapshot:
        """Return the version that the table's name asks for, the newest by default; metadata only."""

    def open_file(self, path: str) -> pa.NativeFile:
        """Open one of the snapshot's files for random access; the caller closes it."""


def recorded_layout(properties: Mapping[str, str]) -> tuple[Layout | None, tuple[str, ...]]:
    """Return the layout that zonal recorded in a table's properties, or what is wrong with it."""
    text = properties.get(LAYOUT_PROPERTY)
    if text is None:
        return None, ()
    try:
        return Layout.from_json(text), ()
    except LayoutError as error:
        return None, (f"The table property {LAYOUT_PROPERTY} can't be read: {error}",)
