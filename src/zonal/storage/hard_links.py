"""Create files on local disks only where their name is free: by hard links, which fail where a name exists."""

import errno
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from zonal.errors import CommitUnknownError, TableError, quoted
from zonal.storage.durability import flush_folder

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


class HardLinks:
    """A folder on a local or mounted disk."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def check(self) -> None:
        """Do nothing: a disk without hard links says so when one is made, and nothing is lost."""

    def put_if_absent(self, name: str, text: str, *, sending: Callable[[], None]) -> bool:
        """Create a file; see `ExclusiveFolder`.

        The content is written to a hidden file, which readers of logs ignore, and flushed to disk; then a hard link
        gives it its name.
        """
        target = self._folder / name
        hidden = target.with_name(f".{name}.{uuid.uuid4()}.tmp")
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
            raise TableError(f"Can't write {quoted(str(target), limit=300)}: {error}.{links}") from None
        finally:
            with suppress(OSError):
                hidden.unlink()

    def is_overwritten(self, name: str, text: str) -> bool:  # noqa: ARG002 - as every folder
        """Return False: writers to local disks make links or rename, and none replaces what is there."""
        return False


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
