"""Flush written files and their folders to local disks, so that they survive a power cut.

Until then the system may hold a file's content in memory only, and lose it, while a commit that names the file is on
disk already. Object stores are durable when they answer.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from zonal.storage import local_path

_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.ENOSYS, errno.EBADF}
"""Errors of systems that can't flush or open folders; other errors come from the disk."""


def flush_file(location: str) -> None:
    """Flush a written file to disk; after an `OSError` it may not be there."""
    if (path := local_path(location)) is not None:
        _flush(path)


def flush_folders(locations: Iterable[str], top: str) -> None:
    """Flush the folders of new files to disk: all from theirs up to `top`, and the parent of `top`."""
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
    """Flush the names in a folder to disk, where the system can."""
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
