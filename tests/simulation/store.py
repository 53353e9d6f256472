"""An object store among the events of a world: versions appear by conditional puts, and files move by copies."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import zonal.cleaning.quarantine
import zonal.rewriting.request
import zonal.tables.delta.commit
from simulation.disk import passed
from simulation.events import DROP, World
from simulation.schedules import REFUSALS
from simulation.seeding import replaced
from zonal.cleaning.places import FOLDER
from zonal.cleaning.store_place import StorePlace
from zonal.storage import Storage, local_path
from zonal.storage.conditional_puts import ConditionalPuts
from zonal.storage.objects import MissingError, RefusedError, StoredObject, TakenError


@contextmanager
def stored(world: World) -> Iterator[None]:
    """Let commits and quarantines go to an object store, whose objects are files of a folder."""

    def puts(_, folder: str) -> ConditionalPuts:
        return ConditionalPuts(_FolderOfObjects(world, folder), folder)

    def place(storage: Storage) -> StorePlace:
        return StorePlace(_FolderOfObjects(world, local_path(storage.root)), storage.root, "s3")

    with ExitStack() as stack:
        for module in (zonal.tables.delta.commit, zonal.rewriting.request):
            replaced(stack, module, "exclusive_folder", puts)
        replaced(stack, zonal.cleaning.quarantine, "place_of", place)
        yield


class _FolderOfObjects:
    """What `zonal.storage.objects.Objects` does, on a disk and by events."""

    def __init__(self, world: World, folder: str) -> None:
        self._world, self._folder = world, Path(folder)

    def create(self, name: str, body: bytes) -> None:
        kind = "link" if self._folder.name == "_delta_log" and not name.startswith(".zonal-") else "create"
        self._asked(kind, name, lambda: self._put(name, lambda upload: upload.write_bytes(body)))

    def copy(self, source: str, target: str) -> None:
        def copy() -> None:
            with suppress(FileExistsError):
                self._put(target, lambda upload: shutil.copyfile(self._folder / source, upload), over=True)

        self._asked("copy", target, copy)

    def copy_if_absent(self, source: str, target: str) -> None:
        def copy() -> None:
            self._put(target, lambda upload: shutil.copyfile(self._folder / source, upload))

        self._asked("copy", target, copy)

    def _asked(self, kind: str, name: str, call: Callable[[], Any]) -> Any:
        """Make a request an event; its errors are those of a store."""
        try:
            return passed(self._world, kind, self._folder / name, call)
        except FileExistsError as error:
            raise TakenError from error
        except FileNotFoundError as error:
            raise MissingError(str(error)) from None
        except OSError as error:
            if error.errno in REFUSALS:
                raise RefusedError(str(error)) from None
            raise

    def _put(self, name: str, fill: Callable[[Path], object], *, over: bool = False) -> None:
        """Put an object as a store does: whole, and with what folders it takes."""
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        upload = target.parent / f".upload-{target.name}"
        try:
            fill(upload)
            if over:
                target.unlink(missing_ok=True)
            os.link(upload, target)
        finally:
            upload.unlink(missing_ok=True)
            self._forget_empty(target.parent)

    def read(self, name: str) -> bytes | None:
        try:
            return self._asked("read", name, (self._folder / name).read_bytes)
        except MissingError:
            return None

    def look(self, name: str) -> StoredObject | None:
        try:
            return self._asked("stat", name, partial(_seen, self._folder / name))
        except MissingError:
            return None

    def is_same(self, name: str, other: str) -> bool:
        body = self.read(name)
        return body is not None and body == self.read(other)

    def folders(self, folder: str) -> list[str]:
        return self._listed(folder, lambda path: path.name if path.is_dir() else None)

    def objects(self, folder: str) -> dict[str, StoredObject]:
        return dict(self._listed(folder, lambda path: (path.name, _seen(path)) if path.is_file() else None))

    def _listed(self, folder: str, told: Callable[[Path], Any]) -> list[Any]:
        def listed() -> list[Any]:
            return [found for path in sorted((self._folder / folder).iterdir()) if (found := told(path)) is not None]

        try:
            return self._asked("list", folder, listed)
        except MissingError:
            return []

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            self._asked(DROP if self._is_held(name) else "rm", name, partial(self._remove, name))

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        self._forget_empty((self._folder / name).parent)

    def _is_held(self, name: str) -> bool:
        """Tell whether the quarantine has a copy of an object outside of it, so that it may go."""
        path, heard = self._folder / name, self._world.listening
        self._world.listening = False
        try:
            if FOLDER in path.parts or not path.exists():
                return False
            copies = (self._folder / FOLDER).glob("*/*")
            return any(copy.name.isdecimal() and copy.read_bytes() == path.read_bytes() for copy in copies)
        finally:
            self._world.listening = heard

    def _forget_empty(self, folder: Path) -> None:
        """Remove folders of the quarantine without objects, which a store doesn't know."""
        with suppress(OSError):
            while FOLDER in folder.parts:
                folder.rmdir()
                folder = folder.parent


def _seen(path: Path) -> StoredObject:
    found = path.stat()
    return StoredObject(found.st_size, datetime.fromtimestamp(found.st_mtime, timezone.utc), str(found.st_ino))
