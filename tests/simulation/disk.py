"""Calls to storage, catalogs and the operating system as events of a world; outside of `heard` nothing is changed."""

import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.fs
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from simulation.events import REMOVALS, World, local
from simulation.seeding import replaced
from zonal.storage import Storage

CREATING = frozenset({"create", "open", "link", "io.create"})
_PATHS = {
    "open": "open", "unlink": "rm", "rmdir": "rmdir", "mkdir": "mkdir", "rename": "rename", "replace": "rename",
    "exists": "stat", "is_dir": "stat", "is_file": "stat", "stat": "stat", "samefile": "stat", "iterdir": "list",
    "read_text": "read", "read_bytes": "read", "write_text": "create", "write_bytes": "create", "touch": "create",
}  # fmt: skip
_SYSTEM = {
    "open": "os.open", "unlink": "rm", "remove": "rm", "rename": "rename", "replace": "rename", "mkdir": "mkdir",
    "rmdir": "rmdir", "stat": "stat", "listdir": "list",
}  # fmt: skip
_CATALOG = {
    "load_table": "load", "commit_table": "commit", "table_exists": "load", "create_table_transaction": "load",
    "namespace_exists": "load", "create_namespace": "namespace", "list_tables": "load", "list_namespaces": "load",
}  # fmt: skip


@contextmanager
def heard(world: World) -> Iterator[None]:
    """Let all calls to storage, catalogs and the operating system pass through the world."""
    with ExitStack() as stack:
        _hear_storage(stack, world)
        _hear_system(stack, world)
        _hear_iceberg(stack, world)
        yield


def passed(world: World, kind: str, path: object, call: Callable[[], Any], *, nested: bool = False) -> Any:
    """Make a call an event, and note what it writes or removes."""
    place = local(path)
    if not world.listening:
        return call()
    if kind in CREATING:
        world.created.append(place)

    def noting() -> Any:
        gone = world.going(place) if kind in REMOVALS else []
        result = call()
        world.removed += gone
        return result

    return world.event(kind, place, noting, nested=nested)


# --- storage ---------------------------------------------------------------------------------------------------------


def _hear_storage(stack: ExitStack, world: World) -> None:
    locate = Storage.locate

    def located(self: Storage, location: str) -> tuple[pa.fs.FileSystem, str]:
        filesystem, path = locate(self, location)
        return (Disk(world) if type(filesystem) is pa.fs.LocalFileSystem else filesystem), path

    replaced(stack, Storage, "locate", located)


class Disk(pa.fs.LocalFileSystem):
    """The local file system as zonal's storage sees it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def open_output_stream(self, path, **named):
        if not self.world.listening:
            return super().open_output_stream(path, **named)
        sink = passed(self.world, "create", path, lambda: Sink(self.world, path))
        return pa.PythonFile(sink, mode="w")

    def open_input_file(self, path):
        return passed(self.world, "read", path, lambda: super(Disk, self).open_input_file(path))

    def open_input_stream(self, path, **named):
        return passed(self.world, "read", path, lambda: super(Disk, self).open_input_stream(path, **named))

    def get_file_info(self, asked):
        if isinstance(asked, pa.fs.FileSelector):
            # Sorted, since the order of a folder is the disk's secret.
            real = super().get_file_info
            return passed(self.world, "list", asked.base_dir, lambda: sorted(real(asked), key=lambda info: info.path))
        first = asked if isinstance(asked, str) else ", ".join(map(str, asked))
        return passed(self.world, "stat", first, lambda: super(Disk, self).get_file_info(asked))

    def create_dir(self, path, **named):
        return passed(self.world, "mkdir", path, lambda: super(Disk, self).create_dir(path, **named))

    def delete_dir(self, path):
        return passed(self.world, "rmdir", path, lambda: super(Disk, self).delete_dir(path))

    def delete_file(self, path):
        return passed(self.world, "rm", path, lambda: super(Disk, self).delete_file(path))

    def move(self, src, dest):
        self.world.created.append(local(dest))
        return passed(self.world, "move", src, lambda: super(Disk, self).move(src, dest))


class Sink:
    """A file that is written by events: of a write that fails, half is in it; a dead process writes nothing."""

    def __init__(self, world: World, path: str) -> None:
        self.world, self.path, self.closed = world, path, False
        self._file = open(path, "wb")  # noqa: SIM115

    def write(self, data):
        data = bytes(data)
        if self.world.listening and not self.world.dead:
            _torn(self.world, self.path, self._file, data)
        return len(data)

    def tell(self):
        return self._file.tell()

    def flush(self):
        pass

    def close(self):
        if self.closed:
            return
        self.closed = True
        self._file.close()
        if self.world.listening:
            self.world.event("close", self.path, lambda: self.world.closed.append(local(self.path)))


def _torn(world: World, path: str, file, data: bytes) -> None:
    try:
        world.event("write", path, lambda: file.write(data))
    except OSError:
        file.write(data[: len(data) // 2])
        raise


# --- the operating system --------------------------------------------------------------------------------------------


class Opened:
    """A file of `Path.open` whose writes are events."""

    def __init__(self, world: World, path: str, file) -> None:
        self._world, self._path, self._file = world, path, file

    def write(self, data):
        _torn(self._world, self._path, self._file, data)
        return len(data)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def _hear_system(stack: ExitStack, world: World) -> None:
    """Hear calls of `os` and `pathlib` about paths in the schedule's folder; real flushes take too long here."""
    for name, kind in _PATHS.items():
        _hear_path(stack, world, pathlib.Path, name, kind)
    for name, kind in _SYSTEM.items():
        _hear_path(stack, world, os, name, kind)
    link = os.link

    def linked(source, target, **named):
        if not _is_about(world, target):
            return link(source, target, **named)
        return passed(world, "link", target, lambda: link(source, target, **named))

    replaced(stack, os, "link", linked)
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)
        replaced(stack, os, name, partial(_flushed, world, real))


def _hear_path(stack: ExitStack, world: World, owner: object, name: str, kind: str) -> None:
    real = getattr(owner, name)

    def call(path, *given, **named):
        if not _is_about(world, path):
            return real(path, *given, **named)
        if name == "iterdir":
            return iter(passed(world, kind, path, lambda: sorted(real(path))))
        reads = kind == "open" and (given or ["r"])[0].startswith("r")
        found = passed(world, "read" if reads else kind, path, lambda: real(path, *given, **named))
        return Opened(world, str(path), found) if kind == "open" and not reads else found

    replaced(stack, owner, name, call)


def _is_about(world: World, path: object) -> bool:
    return world.listening and isinstance(path, (str, os.PathLike)) and str(path).startswith(world.folder)


def _flushed(world: World, real: Callable[[int], None], descriptor: int) -> None:
    if world.listening:
        passed(world, "fsync", _named(descriptor), lambda: None)
    else:
        real(descriptor)


def _named(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


# --- PyIceberg -------------------------------------------------------------------------------------------------------


class Uploaded:
    """A metadata file that is stored when it is closed; of one that fails then, half is there."""

    def __init__(self, world: World, location: str, file) -> None:
        self._world, self._location, self._file, self._data = world, location, file, b""
        self.closed = False

    def write(self, data):
        self._data += bytes(data)
        return len(data)

    def tell(self):
        return len(self._data)

    def close(self):
        if self.closed:
            return
        self.closed = True
        try:
            if self._world.listening:
                _torn(self._world, self._location, self._file, self._data)
        finally:
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _hear_iceberg(stack: ExitStack, world: World) -> None:
    opened, create, size, there = PyArrowFile.open, PyArrowFile.create, PyArrowFile.__len__, PyArrowFile.exists

    def created(self, overwrite=False):
        if not world.listening:
            return create(self, overwrite)
        file = passed(world, "io.create", self.location, lambda: create(self, overwrite))
        return Uploaded(world, self.location, file)

    def hear(owner: type, name: str, kind: str, real: Callable[..., Any], place: Callable[..., object]) -> None:
        def call(self, *given, **named):
            nested = owner is SqlCatalog
            return passed(world, kind, place(self, *given), lambda: real(self, *given, **named), nested=nested)

        replaced(stack, owner, name, call)

    replaced(stack, PyArrowFile, "create", created)
    for name, kind, real in (("open", "io.open", opened), ("__len__", "io.stat", size), ("exists", "io.stat", there)):
        hear(PyArrowFile, name, kind, real, lambda self, *_: self.location)
    hear(PyArrowFileIO, "delete", "io.delete", PyArrowFileIO.delete, lambda _, at: getattr(at, "location", at))
    for name, kind in _CATALOG.items():
        hear(SqlCatalog, name, kind, getattr(SqlCatalog, name), _table_named)


def _table_named(_: Catalog, about: Any = "", *__: object) -> str:
    return about if isinstance(about, str) else ".".join(about if isinstance(about, tuple) else about.name())
