"""Refuse to read the folder of a table format as plain Parquet.

Some files there hold rows that were deleted or replaced since, so rows would be read twice or after their deletion.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.fs

from zonal.errors import TableError, quoted
from zonal.storage.causes import STORAGE_ERRORS
from zonal.tables.hive_folders import is_hidden

_MARK = re.compile(
    r"/(?:(?P<Delta>_delta_log/)|(?P<Hudi>\.hoodie/)|(?P<Iceberg>metadata/[^/]+\.metadata\.json$)"
    r"|(?P<Lance>_versions/[^/]+\.manifest$|[^/]+\.lance$)|(?P<Paimon>snapshot/snapshot-[0-9]+$)"
    r"|(?P<Hive>(?:(?:delete_)?delta_[0-9]{7,}_[0-9]{7,}|base_[0-9]{7,})(?:_\w+)?/))"
)
_ABOVE = {"Delta": ("_delta_log",), "Hudi": (".hoodie",), "Paimon": ("snapshot", "schema", "manifest")}
"""Folders by which a table is recognized from a subfolder of it; Iceberg's `metadata` must hold a metadata file."""
_NAMES = {"Delta": "a Delta table", "Iceberg": "an Iceberg table", "Hive": "a transactional Hive table"}


class Managed(NamedTuple):
    """A table whose format zonal reads through its metadata, or not at all."""

    format: str
    folder: str

    def __str__(self) -> str:
        return _NAMES.get(self.format, f"a {self.format} table")

    @property
    def advice(self) -> str:
        """Say what to do instead."""
        if self.format == "Delta":
            return f"Give the table itself, as {quoted('delta:' + self.folder, limit=300)}."
        if self.format == "Iceberg":
            return (
                "Name the table in its catalog, as in iceberg:namespace.table, or give the newest metadata file in "
                f"{quoted(self.folder + '/metadata', limit=300)}."
            )
        return (
            f"zonal doesn't read {self.format}: copy its rows to Delta, Iceberg or plain Parquet with its own engine."
        )


def refuse_managed(name: str, filesystem: pa.fs.FileSystem, root: str, files: Iterable[str]) -> None:
    """Raise a `TableError` for a folder that is a table of some format, lies in one, or has one in it.

    `name` is the folder as the user named it, `root` its path in the file system, and `files` are the paths of all
    files below it, which begin with `root`.
    """
    if (table := min(_marked(root, files), key=lambda table: len(table.folder), default=None)) is not None:
        named = table._replace(folder=name.rstrip("/") + table.folder[len(root) :])
        where = f"is the folder of {named}"
        if table.folder != root:
            where = f"has {named} in it, {quoted(named.folder, limit=300)}"
    elif (table := _above(filesystem, root)) is not None:
        named = table._replace(folder=_cut(name, root, table.folder))
        where = f"lies in the folder of {named}, {quoted(named.folder, limit=300)}"
    else:
        return
    raise TableError(
        f"{quoted(name, limit=300)} {where}, and not all files there hold rows of it. {named.advice} (With parquet: "
        "before the path, every Parquet file there is read, also those that the table has replaced.)"
    )


def _cut(name: str, root: str, above: str) -> str:
    """Name the folder `above` in the style of `name`, if that ends with the whole path, as in an object store."""
    inside = root[len(above) :]
    return name.rstrip("/").removesuffix(inside) if name.rstrip("/").endswith(root) else above


def _marked(root: str, files: Iterable[str]) -> Iterator[Managed]:
    """Yield the tables recognized by their files below a folder; hidden folders, which aren't read, don't count."""
    for path in files:
        mark = _MARK.search(path, len(root))
        if mark is not None and not is_hidden(path[len(root) : mark.start()]):
            yield Managed(str(mark.lastgroup), path[: mark.start()])


def _above(filesystem: pa.fs.FileSystem, root: str) -> Managed | None:
    """Return the nearest table whose folder contains this one, up to the first folder that can't be read."""
    names = sorted({"metadata", *(name for marks in _ABOVE.values() for name in marks)})
    folder = root
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        try:
            infos = filesystem.get_file_info([f"{folder}/{name}" for name in names])
            there = {info.base_name for info in infos if info.type == pa.fs.FileType.Directory}
            if kind := next((kind for kind, marks in _ABOVE.items() if there.issuperset(marks)), None):
                return Managed(kind, folder)
            inside = pa.fs.FileSelector(f"{folder}/metadata", allow_not_found=True)
            if "metadata" in there and any(
                info.path.endswith(".metadata.json") for info in filesystem.get_file_info(inside)
            ):
                return Managed("Iceberg", folder)
        except STORAGE_ERRORS:
            return None
    return None
