"""Which locations lie inside a table's folder beyond doubt, and what is really there.

Metadata is written by others: a path in it may climb out of the folder, be spelled in several ways, or lead through a
link. Such a file is never touched, and one that any spelling of a needed file might mean isn't either.
"""

import os
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from stat import S_ISDIR, S_ISREG
from urllib.parse import unquote

import pyarrow.fs

from zonal.errors import TableError, quoted
from zonal.storage import Storage, local_path
from zonal.storage.causes import STORAGE_ERRORS
from zonal.storage.location import is_uri, store_of

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class StoredFile:
    """A file as the storage has it."""

    size: int
    time: datetime
    """When it was last written, by the storage's clock."""


def spellings(location: str) -> Iterator[str]:
    """Yield what a location is known by: without case and composition, plain and percent-decoded.

    >>> sorted(spellings("file:/lake/t/A%20b"))
    ['/lake/t/a b', '/lake/t/a%20b']
    """
    plain = local_path(location) or location
    if is_uri(plain):
        scheme, _, rest = plain.partition("://")
        plain = f"{store_of(scheme)}:/{rest}"
    for text in {plain, unquote(plain)}:
        yield unicodedata.normalize("NFC", posixpath.normpath(text)).casefold()


def spelled(locations: Iterable[str]) -> set[str]:
    """Return all spellings of some locations."""
    return {spelling for location in locations for spelling in spellings(location)}


def inside(root: str, location: str) -> str | None:
    """Return a location's path from the folder on; None where it isn't in there beyond doubt.

    >>> inside("/lake/t", "/lake/t/day=1/x.parquet"), inside("/lake/t", "/lake/t/../u/x"), inside("/lake/t", "/lake/tt")
    ('day=1/x.parquet', None, None)
    """
    top, path = (local_path(text) or text for text in (root, location))
    top = top.rstrip("/")
    if not path.startswith(f"{top}/"):
        return None
    return path[len(top) + 1 :] if is_plain(path[len(top) + 1 :]) else None


def is_plain(relative: str) -> bool:
    """Tell whether a relative path names one place only: no step leads up, and none is empty."""
    if _CONTROL.search(relative) or any(step in ("", ".", "..") for step in relative.split("/")):
        return False
    try:
        return bool(relative.encode())
    except UnicodeEncodeError:
        return False


def look(storage: Storage, relatives: Sequence[str]) -> list[StoredFile | str | None]:
    """Look at files in a storage's folder: what is there, None where nothing is, or why it can't be touched."""
    filesystem, top = storage.locate(storage.root)
    try:
        if isinstance(filesystem, pyarrow.fs.LocalFileSystem):
            return [_seen(top, relative) for relative in relatives]
        infos = filesystem.get_file_info([f"{top}/{relative}" for relative in relatives]) if relatives else []
    except STORAGE_ERRORS as error:
        raise TableError(
            f"Can't look at the files of {quoted(storage.root, limit=300)}: {storage.told(error)}"
        ) from None
    return [StoredFile(info.size, info.mtime) if info.is_file else None for info in infos]


def _seen(top: str, relative: str) -> StoredFile | str | None:
    """Look at a local file, without following a link below the folder."""
    *folders, name = relative.split("/")
    place = top
    try:
        for folder in folders:
            place = f"{place}/{folder}"
            if not S_ISDIR(os.stat(place, follow_symlinks=False).st_mode):
                return "a link leads to it"
        found = os.stat(f"{place}/{name}", follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not S_ISREG(found.st_mode):
        return "it is no regular file"
    return StoredFile(found.st_size, datetime.fromtimestamp(found.st_mtime, timezone.utc))
