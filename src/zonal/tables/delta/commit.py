"""Commit a change to a Delta log as one new version.

Every attempt reads the log up to its newest version and checks the change against it; the new version's file then
appears whole or not at all, and only if no other writer wrote that version. So a concurrent append survives, and a
concurrent change of a file that would be replaced is a conflict.
"""

import errno
import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow.fs

from zonal.errors import CommitUnknownError, TableError, quoted
from zonal.storage import Storage
from zonal.storage.durability import flush_folder
from zonal.tables.delta.listing import Mark
from zonal.tables.delta.log import State
from zonal.tables.protocol import Sending, unheard

Action = dict[str, Any]

ATTEMPTS = 20
_LONGEST_WAIT = 1.0
_REFUSED = frozenset(
    getattr(errno, name)
    for name in ("EACCES", "EDQUOT", "EMLINK", "ENOENT", "ENOSPC", "ENOSYS", "EOPNOTSUPP", "EPERM", "EROFS", "EXDEV")
    if hasattr(errno, name)
)
"""Errors that say that a link wasn't made; after others, such as a timeout, it may have been."""
_LINKLESS = frozenset(
    getattr(errno, name) for name in ("EMLINK", "ENOSYS", "EOPNOTSUPP", "EPERM", "EXDEV") if hasattr(errno, name)
)
"""Errors of a file system without hard links."""


class LogChange(Protocol):
    """What a commit does to a table."""

    @property
    def root(self) -> str:
        """Return the table's location."""

    def actions(self, current: State) -> Iterator[Action]:
        """Yield the actions of the version after `current`; a change that doesn't fit it is a `ConflictError`."""


def log_folder(storage: Storage) -> str:
    """Return the path of the log's folder, or refuse a storage on which a commit can't be atomic."""
    filesystem, path = storage.locate(f"{storage.root}/_delta_log")
    if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
        raise TableError(
            f"{quoted(storage.root, limit=300)} can't be rewritten: zonal commits to Delta tables on local and mounted "
            "file systems; on an object store a commit needs a conditional write, which pyarrow's file systems lack."
        )
    return str(path)


def commit(
    change: LogChange, newest: Callable[[State | None], State], folder: str, *, sending: Sending = unheard
) -> int:
    """Commit and return the new version; `sending` as in `Rewritable.commit`.

    `newest` reads the log up to its newest version, from an older state on where one is given. A change that doesn't
    fit that version is a `ConflictError`. Only a `CommitUnknownError` leaves open whether the table has it.
    """
    state: State | None = None
    for attempt in range(ATTEMPTS):
        state = newest(state)
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in change.actions(state))
        with suppress(_MadeAnewError):
            if put_if_absent(
                f"{folder}/{state.version + 1:020d}.json", lines, sending=partial(_send, state.mark, sending)
            ):
                return state.version + 1
        # Another writer was faster. Waits of random length keep two losers from meeting again.
        time.sleep(random.uniform(0, min(_LONGEST_WAIT, 0.01 * 2**attempt)))  # noqa: S311 - no secret
    raise TableError(
        f"Other writers were faster than zonal {ATTEMPTS} times in a row, so the commit to "
        f"{quoted(change.root, limit=300)} was given up. Run it again when fewer writers are busy."
    )


class _MadeAnewError(Exception):
    """The log is another one than was read: the table was created anew."""


def _send(mark: Mark, sending: Sending) -> None:
    """Announce a commit, and check that the log still is the one that was read.

    A commit is checked only by its version number, which means another version in a table that was created anew.
    """
    sending()
    if not mark.stands:
        raise _MadeAnewError


# --- one file, or none -----------------------------------------------------------------------------------------------


def put_if_absent(path: str, text: str, *, sending: Sending = unheard) -> bool:
    """Create a file with all its content at once; return False if it exists already.

    The content is written to a hidden file, which readers of the log ignore, and flushed to disk; then a hard link,
    which fails where the name exists, gives it its name.
    """
    target = Path(path)
    hidden = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
    linking = False
    try:
        with hidden.open("xb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        sending()
        linking = True
        return _link(hidden, target)
    except (KeyboardInterrupt, SystemExit) as interrupt:
        # A caller that treats an interrupt as a failure would remove files that may belong to the table by now.
        if linking:
            raise _unknown(target, interrupt) from interrupt
        raise
    except OSError as error:
        links = " Delta commits need a file system with hard links." if error.errno in _LINKLESS else ""
        raise TableError(f"Can't write {quoted(path, limit=300)}: {error}.{links}") from None
    finally:
        with suppress(OSError):
            hidden.unlink()


def _link(hidden: Path, target: Path) -> bool:
    try:
        os.link(hidden, target)
    except OSError as error:
        # A network file system may repeat a request that succeeded, and report that the name exists.
        try:
            if target.exists():
                return target.samefile(hidden)
            unknown = error.errno not in _REFUSED
        except OSError:
            unknown = True
        if unknown:
            raise _unknown(target, error) from None
        raise
    with suppress(OSError):  # the version exists: an error would say that it doesn't
        flush_folder(target.parent)
    return True


def _unknown(target: Path, reason: BaseException) -> CommitUnknownError:
    return CommitUnknownError(
        f"It isn't known whether {quoted(str(target), limit=300)} was written ({type(reason).__name__} {reason}), so "
        "the new files must stay. See whether the table's newest versions have this run."
    )
