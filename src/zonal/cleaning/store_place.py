"""A quarantine in an object store: a file gets there and back by a copy, a look at the copy, and a deletion."""

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime

from zonal.cleaning.places import DRAFT, FOLDER, MANIFEST, UNDONE, Item, Manifest, Result
from zonal.errors import quoted
from zonal.storage.objects import Objects, RefusedError, StoredObject, TakenError

_AT_ONCE = 16
_MOVING = "moving.tmp"
"""An object that is there until every request to delete an original was answered."""
_LARGEST_COPY = {"s3": 5 * 2**30}
"""What a store copies in one request, where that is limited."""


class StorePlace:
    """The quarantine of the table whose folder some objects are in; see `QuarantinePlace`.

    The original is deleted only when its copy was looked at, and from that request on the copy stays. As long as such a
    request may still be under way, it may meet a file that was brought back: then bringing back only copies.
    """

    def __init__(self, objects: Objects, root: str, kind: str) -> None:
        self._objects, self._kind = objects, kind
        self.folder = f"{root}/{FOLDER}"
        self._has_conditions = self._keeps_copies = self._is_doubtful = False

    # --- what is there ---

    def runs(self) -> Iterable[str]:
        """Return the names of all that is here, by a listing of the quarantine alone."""
        return self._objects.folders(FOLDER)

    def has(self, run: str) -> bool:
        """Tell whether there is an object of this run."""
        return bool(self._objects.objects(f"{FOLDER}/{run}"))

    def read(self, run: str, name: str) -> Manifest | None:
        """Read a manifest; None where there is none of this name."""
        seen, body = self._objects.look(_at(run, name)), self._objects.read(_at(run, name))
        if seen is None or body is None:
            return None
        try:
            return Manifest(body.decode(), seen.time)
        except UnicodeDecodeError as error:
            raise OSError(f"{quoted(_at(run, name))} isn't text ({error.reason})") from None

    def opened(self, run: str) -> datetime:
        """Return when a run without a manifest was last touched."""
        times = [seen.time for seen in self._objects.objects(f"{FOLDER}/{run}").values()]
        if not times:
            raise FileNotFoundError(f"{quoted(run)} is gone")
        return max(times)

    def numbers(self, run: str) -> set[int]:
        """Return the numbers of the files that are here."""
        return {int(name) for name in self._objects.objects(f"{FOLDER}/{run}") if name.isdecimal()}

    # --- in ---

    def open(self, run: str) -> datetime:
        """Create an object that stands for the run until its manifest does, and return its time."""
        try:
            self._create(_at(run, DRAFT), b"")
            seen = self._objects.look(_at(run, DRAFT))
        except BaseException:
            self.close(run)
            raise
        if seen is None:
            raise FileNotFoundError(f"{quoted(_at(run, DRAFT))} was removed by somebody else")
        return seen.time

    def close(self, run: str) -> None:
        """Remove what stands for the run."""
        with suppress(OSError):
            self._objects.remove([_at(run, DRAFT)])

    def write(self, run: str, text: str) -> None:
        """Create the manifest, and remove what stood for it: who may not delete here is told before anything moves."""
        self._create(_at(run, _MOVING), b"")
        self._create(_at(run, MANIFEST), text.encode())
        self._objects.remove([_at(run, DRAFT)])

    def discard(self, run: str) -> None:
        """Remove a manifest whose files were not moved."""
        with suppress(OSError):
            self._objects.remove([_at(run, name) for name in (MANIFEST, _MOVING, DRAFT)])

    def move_in(self, run: str, number: int, path: str) -> str | None:
        """Copy an object, look at the copy, and delete the original; see `QuarantinePlace`."""
        target = _at(run, str(number))
        try:
            seen = self._objects.look(path)
            if seen is None:
                return ""
            if seen.size > _LARGEST_COPY.get(self._kind, seen.size):
                return "it has more than 5 GiB, and so much isn't copied in one request"
            self._objects.copy(path, target)
            problem = self._problem_with(path, seen, target)
        except FileNotFoundError:
            return ""
        except (OSError, TakenError) as error:
            return _plain(error) or "the store reports a conflict"
        return self._delete(path) if problem is None else problem

    def _problem_with(self, path: str, seen: StoredObject, target: str) -> str | None:
        """Look at a copy, and again at its original; return what keeps the original from being deleted."""
        copy = self._objects.look(target)
        if copy is None or copy.size != seen.size:
            return "the store hasn't made a whole copy"
        again = self._objects.look(path)
        if again is None:
            return ""  # another clean-up was faster
        return None if again == seen else "somebody else writes to it"

    def _delete(self, path: str, attempts: int = 3) -> str | None:
        """Delete an original whose copy is whole; return why it stays. An `OSError` leaves open whether it is gone."""
        try:
            self._objects.remove([path])
        except OSError as error:
            self._is_doubtful = True
            if self._objects.look(path) is None:
                return None
            if isinstance(error, RefusedError):
                return _plain(error)
            if attempts == 1:
                raise
            return self._delete(path, attempts - 1)
        return None

    def settle(self, run: str, paths: Collection[str]) -> None:  # noqa: ARG002 - a store has no folders
        """Note that all requests were answered."""
        if not self._is_doubtful:
            with suppress(OSError):
                self._objects.remove([_at(run, _MOVING)])

    # --- out ---

    def prepare_return(self, run: str, manifest: str) -> None:
        """Find out whether the store copies on the condition that a name is free: over an object of this run's own."""
        self._keeps_copies = self._is_moving(run)
        probe = _at(run, DRAFT)
        self._create(probe, b"")
        try:
            self._objects.copy_if_absent(_at(run, manifest), probe)
        except TakenError:
            self._has_conditions = True
        except RefusedError:
            self._has_conditions = False
        finally:
            self._objects.remove([probe])

    def is_taken(self, run: str, number: int, path: str) -> bool:
        """Tell whether another object has the path; one of equal content was brought back before."""
        return self._objects.look(path) is not None and not self._is_back(_at(run, str(number)), path)

    def move_back(self, run: str, number: int, path: str) -> bool:
        """Copy an object to its path, look at it, and delete the one that is here; see `QuarantinePlace`."""
        place = _at(run, str(number))
        seen = self._objects.look(place)
        if seen is None:
            return False
        try:
            self._copy_back(place, path)
            copy = self._objects.look(path)
            was_back, is_back = False, copy is not None and copy.size == seen.size
        except FileNotFoundError:
            return False  # somebody else brings it back, too
        except TakenError:
            was_back = is_back = self._is_back(place, path)
        if not is_back:
            raise FileExistsError(f"{quoted(path, limit=300)} is another object by now")
        if self._keeps_copies:
            return not was_back
        self._objects.remove([place])
        return True

    def _copy_back(self, place: str, path: str) -> None:
        if self._has_conditions:
            self._objects.copy_if_absent(place, path)
            return
        # Between look and copy another writer may create the object, in a store without the condition.
        if self._objects.look(path) is not None:
            raise TakenError
        self._objects.copy(place, path)

    def _is_back(self, place: str, path: str) -> bool:
        """Tell whether an object has the content of one that is here, or was."""
        return self._objects.look(place) is None or self._objects.is_same(place, path)

    def is_there(self, path: str) -> bool:
        """Tell whether the table's folder has an object."""
        return self._objects.look(path) is not None

    def settle_return(self, paths: Collection[str]) -> None:
        """Do nothing: a store keeps what it has answered for."""

    def mark_undone(self, run: str) -> None:
        """Create the manifest under its other name, which counts from then on, and remove the first.

        As long as files may be moved, the run isn't undone for good.
        """
        body = None if self._is_moving(run) else self._objects.read(_at(run, MANIFEST))
        if body is not None:
            self._create(_at(run, UNDONE), body)
            self._objects.remove([_at(run, MANIFEST)])

    def drop(self, run: str, numbers: Collection[int]) -> None:
        """Delete objects for good."""
        self._objects.remove([_at(run, str(number)) for number in numbers])

    def drop_manifests(self, run: str) -> None:
        """Delete manifests."""
        self._objects.remove([_at(run, name) for name in (DRAFT, _MOVING, MANIFEST, UNDONE)])

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Do something to many objects at once; what has not begun when one fails doesn't begin."""
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(cancel_futures=True)

    def _is_moving(self, run: str) -> bool:
        return _MOVING in self._objects.objects(f"{FOLDER}/{run}")

    def _create(self, name: str, body: bytes) -> None:
        """Create an object of this run's own; one of equal content is this one, whose answer got lost."""
        try:
            self._objects.create(name, body)
        except (TakenError, RefusedError, OSError) as error:
            if self._objects.read(name) != body:
                raise OSError(_plain(error) or f"{quoted(name)} is taken") from None


def _at(run: str, name: str) -> str:
    return f"{FOLDER}/{run}/{name}"


def _plain(error: Exception) -> str:
    return str(error).rstrip(". ")
