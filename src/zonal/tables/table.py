"""What every table format can do for zonal."""

from typing import Protocol

import pyarrow as pa

from zonal.files import Snapshot


class Table(Protocol):
    """A table that can be read: metadata by `snapshot`, files by `open_file`."""

    name: str

    def snapshot(self) -> Snapshot:
        """Return the version that the table's name asks for, the newest by default; metadata only."""

    def open_file(self, path: str) -> pa.NativeFile:
        """Open one of the snapshot's files for random access; the caller closes it."""
