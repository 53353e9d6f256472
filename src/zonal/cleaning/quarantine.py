"""The quarantine of a table: files that nobody needs, out of readers' sight until they are brought back or deleted.

It is the folder `_zonal_quarantine` in the table's own, so that a file gets there by a rename, on the same disk. The
underscore hides it from readers of Parquet, from Delta's VACUUM and from Iceberg's removal of orphan files: what may
still be brought back isn't theirs to delete. In it every clean-up has a folder with a manifest, which is on the disk
before the first file is moved, and the files under numbers, so that no pattern of names such as `**/*.parquet` finds
them. A move that was interrupted leaves each file in one of its two places, or in both as one file with two names.
"""

import errno
import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from zonal.cleaning.enclosure import StoredFile, is_plain, look
from zonal.cleaning.spares import Spare
from zonal.errors import TableError, ZonalError, option, quoted, suggestion
from zonal.plan.run import RUN, RUN_FOLDER, began
from zonal.storage import Storage, local_path
from zonal.storage.durability import flush_folder
from zonal.values.progress import Progress, Step

FOLDER = "_zonal_quarantine"
_MANIFEST, _UNDONE, _DRAFT = "manifest.jsonl", "undone.jsonl", "draft.tmp"


@dataclass(frozen=True)
class Held:
    """What the manifest of a clean-up says."""

    run: str
    time: datetime
    """When its manifest was written, by the storage's clock, or when it began, whichever is later."""
    files: tuple[Spare, ...]
    """In the order of their numbers, from 1 on."""
    is_undone: bool


@dataclass(frozen=True)
class Moved:
    """What came of bringing files back, moving or deleting them."""

    files: tuple[Spare, ...]
    notes: tuple[str, ...] = ()


class Quarantine:
    """The quarantine of the table at a local folder."""

    def __init__(self, storage: Storage) -> None:
        root = local_path(storage.root)
        if root is None:
            raise TableError(
                f"{quoted(storage.root, limit=300)} is in an object store, where zonal moves no files yet: a move is a "
                "copy and a deletion there, which can end halfway. What nobody needs can be listed, without "
                f"{option('yes')}."
            )
        self._storage, self._root = storage, Path(root)
        self.folder = self._root / FOLDER

    # --- what is there ---

    def runs(self) -> list[str]:
        """Return the names of all clean-ups whose files are here, or were brought back; oldest first."""
        with _told("The quarantine can't be listed"):
            self._refuse_link(self.folder)
            if not self.folder.exists():
                return []
            return sorted(entry.name for entry in self.folder.iterdir() if RUN.fullmatch(entry.name))

    def read(self, run: str) -> Held:
        """Read the manifest of a clean-up; one that ended before it had one moved nothing."""
        folder = self._folder(run)
        with _told(f"The quarantine {quoted(run)} can't be read"):
            for name in (_UNDONE, _MANIFEST):
                if (path := folder / name).exists():
                    files = _files(path.read_text(encoding="utf-8"), path)
                    return Held(run, _latest(path, run), files, is_undone=name == _UNDONE)
            return Held(run, _latest(folder, run), (), is_undone=True)

    # --- in and out ---

    def open(self, run: str) -> datetime:
        """Make the folder of a clean-up, and return the time that the storage's clock shows."""
        with _told(f"The quarantine in {quoted(str(self._root), limit=300)} can't be made"):
            self._refuse_link(self.folder)
            self.folder.mkdir(exist_ok=True)
            folder = self.folder / run
            folder.mkdir()
            return datetime.fromtimestamp(folder.stat().st_mtime, timezone.utc)

    def close(self, run: str) -> None:
        """Remove the folders of a clean-up that had nothing to move."""
        with suppress(OSError):  # others have something here; an empty folder does no harm
            (self.folder / run).rmdir()
            self.folder.rmdir()

    def put(self, run: str, files: Sequence[Spare], report: Progress) -> Moved:
        """Move files here, in order; one that can't be moved stays where it is, and a note says so."""
        folder = self._folder(run)
        try:
            with _told("The manifest of the quarantine can't be written, so nothing was moved"):
                self._write_manifest(folder, files)
        except BaseException:
            for name in (_DRAFT, _MANIFEST):  # one without moved files would promise to bring them back
                with suppress(OSError):
                    (folder / name).unlink()
            raise
        moved: list[Spare] = []
        notes: list[str] = []
        for number, file in enumerate(files, 1):
            problem = self._move(file, folder / str(number))
            if problem is None:
                moved.append(file)
            elif problem:
                notes.append(f"{quoted(file.path, limit=300)} stays: it can't be moved ({problem}).")
            report(Step("moving files", done=number, total=len(files)))
        with suppress(OSError):  # the files are moved: an error would say that they aren't
            flush_folder(folder)
        self._remove_empty({Path(file.path).parent for file in moved})
        return Moved(tuple(moved), tuple(notes))

    def bring_back(self, run: str, paths: Collection[str] | None = None) -> Moved:
        """Move files back to where they were; all of them, or those at some paths.

        Where another file has a file's name now, nothing is moved. What is back already stays so.
        """
        held, folder = self.read(run), self._folder(run)
        wanted = [(n, file) for n, file in enumerate(held.files, 1) if paths is None or file.path in paths]
        with _told(f"Files of the quarantine {quoted(run)} can't be brought back; run it again to go on"):
            self._refuse_taken(folder, wanted)
            back = [file for number, file in wanted if self._return(folder / str(number), file)]
            lost = [file.path for _, file in wanted if not _exists(self._root / file.path)]
            for parent in sorted({(self._root / file.path).parent for file in back}):
                flush_folder(parent)
            if paths is None and not held.is_undone:
                os.rename(folder / _MANIFEST, folder / _UNDONE)
                flush_folder(folder)
        notes = [f"{quoted(path, limit=300)} is neither here nor there: somebody else removed it." for path in lost]
        return Moved(tuple(back), tuple(notes))

    def delete(self, held: Held, report: Progress) -> Moved:
        """Delete the files of a clean-up for good, and its manifest at last."""
        folder = self._folder(held.run)
        gone = []
        with _told(f"The quarantine {quoted(held.run)} can't be deleted whole; run it again to go on"):
            for number, file in enumerate(held.files, 1):
                place = folder / str(number)
                if _exists(place):
                    place.unlink()
                    gone.append(file)
                report(Step("deleting files", done=number, total=len(held.files)))
            for name in (_DRAFT, _MANIFEST, _UNDONE):
                (folder / name).unlink(missing_ok=True)
        self.close(held.run)
        return Moved(tuple(gone))

    # --- steps ---

    def _folder(self, run: str) -> Path:
        folder = self.folder / run
        with _told("The quarantine can't be read"):
            self._refuse_link(self.folder)
            known = RUN.fullmatch(run) is not None and folder.is_dir() and not folder.is_symlink()
        if not known:
            raise ZonalError(f"There is no run {quoted(run)} in quarantine. {suggestion(run, self.runs())}")
        return folder

    def _refuse_link(self, folder: Path) -> None:
        if folder.is_symlink():
            raise TableError(f"{quoted(str(folder), limit=300)} is a link, which zonal doesn't follow: remove it.")

    def _write_manifest(self, folder: Path, files: Sequence[Spare]) -> None:
        """Write the manifest whole, and put it on the disk under its name."""
        lines = "".join(json.dumps({"number": n, **asdict(file)}) + "\n" for n, file in enumerate(files, 1))
        draft = folder / _DRAFT
        with draft.open("wb") as file:
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, folder / _MANIFEST)
        for each in (folder, self.folder, self._root):
            flush_folder(each)

    def _move(self, file: Spare, place: Path) -> str | None:
        """Move a file here; return what kept it from being moved: nothing is None, and empty that it is gone."""
        try:
            seen = look(self._storage, [file.path])[0]
            if not isinstance(seen, StoredFile):
                return seen or ""
            os.rename(self._root / file.path, place)
        except (OSError, TableError) as error:
            # A network file system may repeat a request that succeeded, and report that the file is gone.
            return None if _exists(place) else str(error)
        return None

    def _refuse_taken(self, folder: Path, wanted: Sequence[tuple[int, Spare]]) -> None:
        taken = [
            file.path
            for number, file in wanted
            if _exists(folder / str(number))
            and _exists(self._root / file.path)
            and not (self._root / file.path).samefile(folder / str(number))
        ]
        if taken:
            raise ZonalError(
                f"Nothing was brought back: {len(taken)} of the files' names are taken by now, such as "
                f"{quoted(taken[0], limit=300)}. Move what is there away first."
            )

    def _return(self, place: Path, file: Spare) -> bool:
        """Bring one file back; False where it isn't here. A link never replaces what has the name."""
        if not _exists(place):
            return False
        target = self._root / file.path
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

    def _make_folders(self, folder: Path) -> None:
        """Make the folders of a file again; none of them may be a link."""
        place = self._root
        for name in folder.relative_to(self._root).parts:
            place = place / name
            place.mkdir(exist_ok=True)
            self._refuse_link(place)

    def _remove_empty(self, folders: Collection[Path]) -> None:
        """Remove folders of runs that are empty now, from the inside out; others may be somebody's partitions."""
        inner = {
            parent
            for folder in folders
            for parent in (folder, *folder.parents)
            if any(map(RUN_FOLDER.fullmatch, parent.parts))
        }
        for folder in sorted(inner, key=lambda path: -len(path.parts)):
            with suppress(OSError):
                (self._root / folder).rmdir()


_LINKLESS = {errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}
"""Errors of a file system without hard links."""


def _latest(path: Path, run: str) -> datetime:
    written = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    return max(written, began(run) or written)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _files(text: str, path: Path) -> tuple[Spare, ...]:
    """Read a manifest; a line that names a place outside of the table's folder makes all of it suspect."""
    try:
        lines = [json.loads(line) for line in text.split("\n") if line]
        if [line["number"] for line in lines] != list(range(1, len(lines) + 1)):
            raise ValueError("its lines aren't numbered")
        files = tuple(
            Spare(str(line["path"]), int(line["size"]), str(line["reason"]), str(line["why"])) for line in lines
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError(f"The manifest {quoted(str(path), limit=300)} can't be read: {error}") from None
    if outside := [file.path for file in files if not is_plain(file.path) or file.path.startswith(f"{FOLDER}/")]:
        raise TableError(
            f"The manifest {quoted(str(path), limit=300)} names a file outside of the table: {quoted(outside[0])}."
        )
    return files


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn errors of the disk into one that says what they kept from happening."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{what}: {error}.") from error
