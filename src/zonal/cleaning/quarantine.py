"""The quarantine of a table: files that nobody needs, out of readers' sight until they are brought back or deleted.

It is the folder `_zonal_quarantine` in the table's own, so that a file gets there by a rename on the same disk, or by a
copy that the store makes itself. The underscore hides it from readers of Parquet, from Delta's VACUUM and from
Iceberg's removal of orphan files: what may still be brought back isn't theirs to delete. In it every clean-up has a
folder with a manifest, which is there before the first file is moved, and the files under numbers, so that no pattern
of names such as `**/*.parquet` finds them. A move that was interrupted leaves each file in one of its two places, or
in both.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby

from zonal.cleaning.disk_place import DiskPlace
from zonal.cleaning.enclosure import is_plain
from zonal.cleaning.places import FOLDER, MANIFEST, UNDONE, QuarantinePlace
from zonal.cleaning.spares import Spare
from zonal.cleaning.store_place import StorePlace
from zonal.errors import TableError, ZonalError, option, quoted, suggestion
from zonal.plan.run import RUN, began
from zonal.storage import Storage, local_path
from zonal.storage.objects import unavailable
from zonal.values.progress import Progress, Step

_DELETED_AT_ONCE = 500


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


def place_of(storage: Storage) -> QuarantinePlace:
    """Return where the quarantine of a table's folder lies; a storage without a way to move files is refused."""
    if (root := local_path(storage.root)) is not None:
        return DiskPlace(storage, root)
    kind = storage.store_at(storage.root).kind
    if problem := unavailable(kind):
        raise TableError(
            f"Files of {quoted(storage.root, limit=300)} can't be moved to a quarantine. {problem} What nobody needs "
            f"can be listed, without {option('yes')}."
        )
    return StorePlace(storage.objects_at(storage.root), storage.root, kind)


class Quarantine:
    """The quarantine of a table."""

    def __init__(self, storage: Storage) -> None:
        self._place = place_of(storage)

    # --- what is there ---

    def runs(self) -> list[str]:
        """Return the names of all clean-ups whose files are here, or were brought back; oldest first."""
        with _told("The quarantine can't be listed"):
            return sorted(name for name in self._place.runs() if RUN.fullmatch(name))

    def read(self, run: str) -> Held:
        """Read the manifest of a clean-up; one that ended before it had one moved nothing."""
        self._refuse_unknown(run)
        with _told(f"The quarantine {quoted(run)} can't be read"):
            for name in (UNDONE, MANIFEST):
                if (written := self._place.read(run, name)) is not None:
                    files = _files(written.text, f"{self._place.folder}/{run}/{name}")
                    return Held(run, _latest(written.time, run), files, is_undone=name == UNDONE)
            return Held(run, _latest(self._place.opened(run), run), (), is_undone=True)

    def missing(self, files: Sequence[Spare]) -> list[Spare]:
        """Return those of some files whose places in the table's folder are empty."""
        with _told("The table's files can't be looked at"):
            there = self._place.map(lambda file: self._place.is_there(file.path), files)
            return [file for file, is_there in zip(files, there, strict=True) if not is_there]

    # --- in and out ---

    def open(self, run: str) -> datetime:
        """Make room for a clean-up, and return the time that the storage's clock shows."""
        with _told(f"The quarantine {quoted(self._place.folder, limit=300)} can't be made"):
            return self._place.open(run)

    def close(self, run: str) -> None:
        """Remove what `open` made for a clean-up that had nothing to move."""
        self._place.close(run)

    def put(self, run: str, files: Sequence[Spare], report: Progress) -> Moved:
        """Move files here; one that can't be moved stays where it is, and a note says so.

        Files of one reason may be moved at once, and those of the next only when all of them were: what proves that a
        file is spare goes after it.
        """
        self._refuse_unknown(run)
        lines = "".join(json.dumps({"number": n, **asdict(file)}) + "\n" for n, file in enumerate(files, 1))
        try:
            with _told("The manifest of the quarantine can't be written, so nothing was moved"):
                self._place.write(run, lines)
        except BaseException:
            self._place.discard(run)  # one without moved files would promise to bring them back
            raise
        moved: list[Spare] = []
        notes: list[str] = []
        for _, group in groupby(enumerate(files, 1), lambda each: each[1].reason):
            for number, file, (may_be_here, note) in self._place.map(lambda at: (*at, self._move(run, *at)), group):
                moved += [file] if may_be_here else []
                notes += [note] if note else []
                report(Step("moving files", done=number, total=len(files)))
        self._place.settle(run, [file.path for file in moved])
        return Moved(tuple(moved), tuple(notes))

    def bring_back(self, run: str, paths: Collection[str] | None = None) -> Moved:
        """Move files back to where they were; all of them, or those at some paths.

        Where another file has a file's name now, nothing is moved. What is back already stays so.
        """
        held, place = self.read(run), self._place
        wanted = [(n, file) for n, file in enumerate(held.files, 1) if paths is None or file.path in paths]
        with _told(f"Files of the quarantine {quoted(run)} can't be brought back; run it again to go on"):
            present = place.numbers(run)
            here = [(number, file) for number, file in wanted if number in present]
            if here:
                self._refuse_taken(run, here)
                place.prepare_return(run, UNDONE if held.is_undone else MANIFEST)
            done = place.map(lambda each: place.move_back(run, each[0], each[1].path), here)
            back = [file for (_, file), is_back in zip(here, done, strict=True) if is_back]
            lost = [file.path for file in self.missing([file for _, file in wanted])]
            place.settle_return([file.path for file in back])
            if paths is None and not held.is_undone:
                place.mark_undone(run)
        notes = [f"{quoted(path, limit=300)} is neither here nor there: somebody else removed it." for path in lost]
        return Moved(tuple(back), tuple(notes))

    def delete(self, held: Held, report: Progress) -> Moved:
        """Delete the files of a clean-up for good, and its manifest at last."""
        self._refuse_unknown(held.run)
        with _told(f"The quarantine {quoted(held.run)} can't be deleted whole; run it again to go on"):
            present = self._place.numbers(held.run)
            gone = [(number, file) for number, file in enumerate(held.files, 1) if number in present]
            for start in range(0, len(gone), _DELETED_AT_ONCE):
                some = gone[start : start + _DELETED_AT_ONCE]
                self._place.drop(held.run, [number for number, _ in some])
                report(Step("deleting files", done=start + len(some), total=len(gone)))
            self._place.drop_manifests(held.run)
        self.close(held.run)
        return Moved(tuple(file for _, file in gone))

    # --- steps ---

    def _refuse_unknown(self, run: str) -> None:
        with _told("The quarantine can't be read"):
            known = RUN.fullmatch(run) is not None and self._place.has(run)
        if not known:
            raise ZonalError(f"There is no run {quoted(run)} in quarantine. {suggestion(run, self.runs())}")

    def _move(self, run: str, number: int, file: Spare) -> tuple[bool, str]:
        """Move a file here; return whether it may be here now, and what is to be said of it."""
        name = quoted(file.path, limit=300)
        try:
            problem = self._place.move_in(run, number, file.path)
        except OSError as error:
            back = option("undo", run)
            return True, f"It isn't known whether {name} was moved ({_plain(error)}): {back} brings it back."
        return problem is None, f"{name} stays: it can't be moved ({problem})." if problem else ""

    def _refuse_taken(self, run: str, wanted: Sequence[tuple[int, Spare]]) -> None:
        answers = self._place.map(lambda each: self._place.is_taken(run, each[0], each[1].path), wanted)
        taken = [file.path for (_, file), is_taken in zip(wanted, answers, strict=True) if is_taken]
        if taken:
            raise ZonalError(
                f"Nothing was brought back: {len(taken)} of the files' names are taken by now, such as "
                f"{quoted(taken[0], limit=300)}. Move what is there away first."
            )


def _latest(written: datetime, run: str) -> datetime:
    return max(written, began(run) or written)


def _files(text: str, manifest: str) -> tuple[Spare, ...]:
    """Read a manifest; a line that names a place outside of the table's folder makes all of it suspect."""
    try:
        lines = [json.loads(line) for line in text.split("\n") if line]
        if [line["number"] for line in lines] != list(range(1, len(lines) + 1)):
            raise ValueError("its lines aren't numbered")
        files = tuple(
            Spare(str(line["path"]), int(line["size"]), str(line["reason"]), str(line["why"])) for line in lines
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError(f"The manifest {quoted(manifest, limit=300)} can't be read: {error}") from None
    if outside := [file.path for file in files if not is_plain(file.path) or file.path.startswith(f"{FOLDER}/")]:
        raise TableError(
            f"The manifest {quoted(manifest, limit=300)} names a file outside of the table: {quoted(outside[0])}."
        )
    return files


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn errors of the storage into one that says what they kept from happening."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{what}: {_plain(error)}.") from error


def _plain(error: OSError) -> str:
    return str(error).rstrip(". ")
