"""A quarantine on a disk: a file gets there by a rename, and back by a link, which never replaces another file."""

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from zonal.cleaning.enclosure import StoredFile, look
from zonal.cleaning.places import DRAFT, FOLDER, MANIFEST, UNDONE, Item, Manifest, Result
from zonal.errors import TableError, quoted
from zonal.plan.run import RUN_FOLDER
from zonal.storage import Storage
from zonal.storage.durability import flush_folder

_LINKLESS = {errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}
"""Errors of a file system without hard links."""


class DiskPlace:
    """The quarantine of the table at a local folder; see `QuarantinePlace`. Links are never followed."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage, self._root = storage, Path(root)
        self._top = self._root / FOLDER
        self.folder = str(self._top)

    # --- what is there ---

    def runs(self) -> Iterable[str]:
        """Return the names of all that is here."""
        _refuse_link(self._top)
        return [entry.name for entry in self._top.iterdir()] if self._top.exists() else []

    def has(self, run: str) -> bool:
        """Tell whether there is a run of this name."""
        _refuse_link(self._top)
        folder = self._top / run
        return folder.is_dir() and not folder.is_symlink()

    def read(self, run: str, name: str) -> Manifest | None:
        """Read a manifest; None where there is none of this name."""
        path = self._top / run / name
        return Manifest(path.read_text(encoding="utf-8"), _time(path)) if path.exists() else None

    def opened(self, run: str) -> datetime:
        """Return when a run without a manifest was opened."""
        return _time(self._top / run)

    def numbers(self, run: str) -> set[int]:
        """Return the numbers of the files that are here."""
        return {int(entry.name) for entry in (self._top / run).iterdir() if entry.name.isdecimal()}

    # --- in ---

    def open(self, run: str) -> datetime:
        """Make the folder of a run, and return its time."""
        _refuse_link(self._top)
        self._top.mkdir(exist_ok=True)
        (self._top / run).mkdir()
        return _time(self._top / run)

    def close(self, run: str) -> None:
        """Remove empty folders."""
        with suppress(OSError):  # others have something here; an empty folder does no harm
            (self._top / run).rmdir()
            self._top.rmdir()

    def write(self, run: str, text: str) -> None:
        """Write the manifest whole, and put it on the disk under its name."""
        folder = self._top / run
        with (folder / DRAFT).open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(folder / DRAFT, folder / MANIFEST)
        for each in (folder, self._top, self._root):
            flush_folder(each)

    def discard(self, run: str) -> None:
        """Remove a manifest whose files were not moved."""
        for name in (DRAFT, MANIFEST):
            with suppress(OSError):
                (self._top / run / name).unlink()

    def move_in(self, run: str, number: int, path: str) -> str | None:
        """Rename a file; see `QuarantinePlace`."""
        place = self._place(run, number)
        try:
            seen = look(self._storage, [path])[0]
            if not isinstance(seen, StoredFile):
                return seen or ""
            os.rename(self._root / path, place)
        except (OSError, TableError) as error:
            # A network file system may repeat a request that succeeded, and report that the file is gone.
            return None if _exists(place) else str(error)
        return None

    def settle(self, run: str, paths: Collection[str]) -> None:
        """Flush the run's folder, and remove empty folders of runs from the inside out; others may be partitions."""
        with suppress(OSError):  # the files are moved: an error would say that they aren't
            flush_folder(self._top / run)
        inner = {
            parent for path in paths for parent in Path(path).parents if any(map(RUN_FOLDER.fullmatch, parent.parts))
        }
        for folder in sorted(inner, key=lambda path: -len(path.parts)):
            with suppress(OSError):
                (self._root / folder).rmdir()

    # --- out ---

    def prepare_return(self, run: str, manifest: str) -> None:
        """Do nothing: a link is tried for each file."""

    def is_taken(self, run: str, number: int, path: str) -> bool:
        """Tell whether another file has the path; the same one with two names is no other."""
        target = self._root / path
        return _exists(target) and not target.samefile(self._place(run, number))

    def move_back(self, run: str, number: int, path: str) -> bool:
        """Link a file to its path, and remove its name here; see `QuarantinePlace`."""
        place, target = self._place(run, number), self._root / path
        if not _exists(place):
            return False
        self._make_folders(target.parent)
        try:
            os.link(place, target)
        except OSError as error:
            if not _exists(target):
                if error.errno not in _LINKLESS:
                    raise
                os.rename(place, target)  # nothing had the name a moment ago
                return True
            if not target.samefile(place):
                raise
        place.unlink()
        return True

    def is_there(self, path: str) -> bool:
        """Tell whether the table's folder has a file."""
        return _exists(self._root / path)

    def settle_return(self, paths: Collection[str]) -> None:
        """Flush the files' folders."""
        for parent in sorted({(self._root / path).parent for path in paths}):
            flush_folder(parent)

    def mark_undone(self, run: str) -> None:
        """Rename the manifest."""
        folder = self._top / run
        os.rename(folder / MANIFEST, folder / UNDONE)
        flush_folder(folder)

    def drop(self, run: str, numbers: Collection[int]) -> None:
        """Delete files for good."""
        for number in numbers:
            self._place(run, number).unlink()

    def drop_manifests(self, run: str) -> None:
        """Delete manifests."""
        for name in (DRAFT, MANIFEST, UNDONE):
            (self._top / run / name).unlink(missing_ok=True)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Go through files in order."""
        return map(function, items)

    # --- steps ---

    def _place(self, run: str, number: int) -> Path:
        return self._top / run / str(number)

    def _make_folders(self, folder: Path) -> None:
        """Make the folders of a file again; none of them may be a link."""
        place = self._root
        for name in folder.relative_to(self._root).parts:
            place = place / name
            place.mkdir(exist_ok=True)
            _refuse_link(place)


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise TableError(f"{quoted(str(folder), limit=300)} is a link, which zonal doesn't follow: remove it.")


def _time(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)
