"""Files that are created whole or not at all, and only where their name is free."""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from zonal.storage import Storage, local_path
from zonal.storage.conditional_puts import ConditionalPuts
from zonal.storage.hard_links import HardLinks
from zonal.storage.objects import Objects
from zonal.storage.store import Store


class ExclusiveFolder(Protocol):
    """A folder in which files can be created so."""

    def check(self) -> None:
        """Refuse a storage that can't do it, before any work; may write a file and remove it again."""

    def put_if_absent(self, name: str, text: str, *, sending: Callable[[], None]) -> bool:
        """Create a file with all its content at once; return False if there is one of this name already.

        `sending` is called right before the request. A `CommitUnknownError` leaves open whether it was created.
        """

    def is_overwritten(self, name: str, text: str) -> bool:
        """Tell whether a file that was created has another content now."""


def exclusive_folder(storage: Storage, folder: str) -> ExclusiveFolder:
    """Return how files are created in a folder of a storage; a storage that can't is a `TableError`."""
    if local_path(folder) is not None:
        return HardLinks(storage.locate(folder)[1])
    filesystem, path = storage.locate(folder)
    return _puts(storage.store_at(folder), path.partition("/")[2], folder, getattr(filesystem, "region", None))


@lru_cache(maxsize=64)
def _puts(store: Store, path: str, folder: str, region: str | None) -> ConditionalPuts:
    """Return the same one each time, so that a store is checked once."""
    return ConditionalPuts(Objects(store, path, region=region), folder)
