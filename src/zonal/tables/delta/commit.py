"""Commit a change to a Delta log as one new version.

Every attempt reads the log up to its newest version and checks the change against it; the new version's file then
appears whole or not at all, and only if no other writer wrote that version. So a concurrent append survives, and a
concurrent change of a file that would be replaced is a conflict.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from zonal.errors import CommitUnknownError, TableError, quoted
from zonal.storage import Storage
from zonal.storage.exclusive import ExclusiveFolder, exclusive_folder
from zonal.tables.delta.listing import Mark
from zonal.tables.delta.log import State
from zonal.tables.protocol import Sending, unheard

Action = dict[str, Any]

ATTEMPTS = 20
_LONGEST_WAIT = 1.0


class LogChange(Protocol):
    """What a commit does to a table."""

    @property
    def root(self) -> str:
        """Return the table's location."""

    def actions(self, current: State) -> Iterator[Action]:
        """Yield the actions of the version after `current`; a change that doesn't fit it is a `ConflictError`."""


def log_folder(storage: Storage) -> str:
    """Return the location of the log's folder."""
    return f"{storage.root}/_delta_log"


def new_versions(storage: Storage) -> ExclusiveFolder:
    """Return how versions are added to the log; a storage on which that can't be atomic is a `TableError`."""
    try:
        return exclusive_folder(storage, log_folder(storage))
    except TableError as error:
        raise TableError(f"{quoted(storage.root, limit=300)} can't be rewritten. {error}") from None


def commit(
    change: LogChange, newest: Callable[[State | None], State], log: ExclusiveFolder, *, sending: Sending = unheard
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
            if put_version(log, state.version + 1, lines, change.root, partial(_send, state.mark, sending)):
                return state.version + 1
        # Another writer was faster. Waits of random length keep two losers from meeting again.
        time.sleep(random.uniform(0, min(_LONGEST_WAIT, 0.01 * 2**attempt)))  # noqa: S311 - no secret
    raise TableError(
        f"Other writers were faster than zonal {ATTEMPTS} times in a row, so the commit to "
        f"{quoted(change.root, limit=300)} was given up. Run it again when fewer writers are busy."
    )


def put_version(log: ExclusiveFolder, number: int, lines: str, root: str, sending: Sending) -> bool:
    """Add a version to a log; return False if another writer has added it already.

    In object stores there are writers that don't ask whether a version is there, and replace it: that is looked for
    once more, since nobody else would notice.
    """
    name = f"{number:020d}.json"
    if not log.put_if_absent(name, lines, sending=sending):
        return False
    if log.is_overwritten(name, lines):
        raise CommitUnknownError(
            f"Another writer replaced version {number} of {quoted(root, limit=300)} right after zonal committed it: it "
            "writes versions without the condition that there is none (If-None-Match), as delta-spark's log store for "
            "a single driver does. So the commits of any two writers can replace each other, and their rows be lost. "
            "Give all writers of the table a log store that writes on that condition, as delta-rs and zonal do, or let "
            "only one of them write at a time. The new files of this run stay, and the table doesn't have them."
        )
    return True


class _MadeAnewError(Exception):
    """The log is another one than was read: the table was created anew."""


def _send(mark: Mark, sending: Sending) -> None:
    """Announce a commit, and check that the log still is the one that was read.

    A commit is checked only by its version number, which means another version in a table that was created anew.
    """
    sending()
    if not mark.stands:
        raise _MadeAnewError
