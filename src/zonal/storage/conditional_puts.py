"""Create objects in object stores only where their name is free: by puts on condition (`If-None-Match: *`)."""

import uuid
from collections.abc import Callable
from contextlib import suppress

from zonal.errors import CommitUnknownError, TableError, quoted
from zonal.storage.objects import Objects, RefusedError, TakenError


class ConditionalPuts:
    """A folder of an object store."""

    def __init__(self, objects: Objects, folder: str) -> None:
        self._objects, self._folder = objects, folder
        self._checked = False

    def check(self) -> None:
        """Refuse a store that ignores the condition: a commit would silently replace another writer's.

        The object that is put twice for it is hidden from readers of logs, and removed again.
        """
        if self._checked:
            return
        name = f".zonal-{uuid.uuid4().hex}.tmp"
        try:
            self._objects.create(name, b"first")
            self._objects.create(name, b"second")
        except TakenError:
            self._checked = True  # also where the client repeated a request whose answer got lost
        except OSError as error:
            raise TableError(f"Can't write to {quoted(self._folder, limit=300)}: {error}") from None
        finally:
            with suppress(OSError):  # whatever was answered, the object may be there
                self._objects.remove([name])
        if not self._checked:
            raise TableError(
                f"{quoted(self._folder, limit=300)} is in a store that ignores conditions of writes (If-None-Match), "
                "so a commit could replace another writer's. Nothing was committed. Update the store's software, or "
                "copy the table to another store."
            )

    def put_if_absent(self, name: str, text: str, *, sending: Callable[[], None]) -> bool:
        """Create an object; see `ExclusiveFolder`."""
        self.check()
        body = text.encode()
        sending()
        try:
            self._objects.create(name, body)
            return True
        except TakenError:
            # The client repeats requests whose answer got lost: then the name is taken by this very object.
            return self._found(name, body, "it is taken")
        except RefusedError as error:
            if (held := self._holds(name, body)) is not None:
                return held  # an attempt before this one had been made
            raise TableError(f"Can't write {quoted(f'{self._folder}/{name}', limit=300)}: {error}") from None
        except (KeyboardInterrupt, SystemExit) as interrupt:
            # A caller that treats an interrupt as a failure would remove files that may belong to the table by now.
            raise self._unknown(name, type(interrupt).__name__) from interrupt
        except OSError as error:
            return self._found(name, body, error)

    def is_overwritten(self, name: str, text: str) -> bool:
        """Tell whether an object has another content now; False where it can't be read.

        One that is gone was not overwritten: other writers remove versions behind their checkpoints.
        """
        try:
            found = self._objects.read(name)
        except OSError:
            return False
        return found is not None and found != text.encode()

    def _found(self, name: str, body: bytes, reason: object) -> bool:
        """Tell by what the name holds now whether the object was created."""
        held = self._holds(name, body)
        if held is None:
            raise self._unknown(name, reason)
        return held

    def _holds(self, name: str, body: bytes) -> bool | None:
        """Tell whether an object has this content; None if there is none, or it can't be read."""
        try:
            found = self._objects.read(name)
        except OSError:
            return None
        return None if found is None else found == body

    def _unknown(self, name: str, reason: object) -> CommitUnknownError:
        return CommitUnknownError(
            f"It isn't known whether {quoted(f'{self._folder}/{name}', limit=300)} was written ({reason}), so the new "
            "files must stay. See whether the table's newest versions have this run."
        )
