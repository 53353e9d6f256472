"""An object store among the events of a world: versions of Delta logs appear by conditional puts instead of links."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import zonal.rewriting.request
import zonal.tables.delta.commit
from simulation.disk import passed
from simulation.events import World
from simulation.schedules import REFUSALS
from simulation.seeding import replaced
from zonal.storage.conditional_puts import ConditionalPuts
from zonal.storage.objects import RefusedError, TakenError


@contextmanager
def stored(world: World) -> Iterator[None]:
    """Let commits go to an object store, whose objects are files of a folder."""

    def puts(_, folder: str) -> ConditionalPuts:
        return ConditionalPuts(_FolderOfObjects(world, folder), folder)

    with ExitStack() as stack:
        for module in (zonal.tables.delta.commit, zonal.rewriting.request):
            replaced(stack, module, "exclusive_folder", puts)
        yield


class _FolderOfObjects:
    """What `zonal.storage.objects.Objects` does, on a disk and by events."""

    def __init__(self, world: World, folder: str) -> None:
        self._world, self._folder = world, Path(folder)

    def create(self, name: str, body: bytes) -> None:
        kind = "create" if name.startswith(".zonal-") else "link"
        try:
            passed(self._world, kind, self._folder / name, lambda: self._put(name, body))
        except FileExistsError as error:
            raise TakenError from error
        except OSError as error:
            if error.errno in REFUSALS:
                raise RefusedError(str(error)) from None
            raise

    def _put(self, name: str, body: bytes) -> None:
        """Put an object as a store does: whole, only where the name is free, and with what folders it takes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        upload = self._folder / f".upload-{name}"
        upload.write_bytes(body)
        try:
            os.link(upload, self._folder / name)
        finally:
            upload.unlink()

    def read(self, name: str) -> bytes | None:
        try:
            return passed(self._world, "read", self._folder / name, (self._folder / name).read_bytes)
        except FileNotFoundError:
            return None

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            passed(self._world, "rm", self._folder / name, (self._folder / name).unlink)
