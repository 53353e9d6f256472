"""Written files that outlive a power cut: on local disks, files and the folders that name them are flushed.

Until then a system may keep a file's content in memory, and forget it, while a commit that names the file is on the
disk already. Object stores are durable when they answer.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from zonal.storage import local_path

_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.ENOSYS, errno.EBADF}
"""What systems say of folders that they can't flush, or don't let one open; other errors are the disk's."""


def flush_file(location: str) -> None:
    """Put a written file on its disk; an `OSError` says that it may not be there."""
    if (path := local_path(location)) is not None:
        _flush(path)


def flush_folders(locations: Iterable[str], top: str) -> None:
    """Put the names of new files on the disk: all folders from theirs up to `top`, and the one that holds it."""
    highest = local_path(top)
    if highest is None:
        return
    folders = {Path(highest).parent}
    for path in map(local_path, locations):
        folder = Path(path or highest).parent
        while folder not in folders and folder.is_relative_to(highest):
            folders.add(folder)
            folder = folder.parent
    for folder in sorted(folders, reverse=True):  # inner ones first
        flush_folder(folder)


def flush_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can."""
    try:
        _flush(str(folder))
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
