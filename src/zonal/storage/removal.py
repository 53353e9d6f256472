"""Remove files of a folder: on disks with the folder, and in object stores without leaving objects in its place."""

from collections.abc import Collection
from contextlib import suppress

import pyarrow.fs

from zonal.errors import TableError
from zonal.storage import Storage, local_path
from zonal.storage.causes import STORAGE_ERRORS
from zonal.storage.objects import unavailable


def remove_folder(storage: Storage, folder: str, *, kept: Collection[str] = ()) -> None:
    """Remove all files below a folder but some; what can't be removed stays."""
    with suppress(TableError, *STORAGE_ERRORS):
        storage.renewing(lambda: _remove_all(storage, folder, kept))


def _remove_all(storage: Storage, folder: str, kept: Collection[str]) -> None:
    filesystem, path = storage.locate(folder)
    keep = {storage.locate(location)[1] for location in kept}
    if not keep and local_path(folder) is not None:
        filesystem.delete_dir(path)
        return
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(path, recursive=True, allow_not_found=True))
    gone = [info.path for info in found if info.is_file and info.path not in keep]
    if gone:
        _remove(storage, folder, filesystem, path, gone)


def _remove(storage: Storage, folder: str, filesystem: pyarrow.fs.FileSystem, path: str, gone: list[str]) -> None:
    if local_path(folder) is None and not unavailable(storage.store_at(folder).kind):
        storage.objects_at(folder).remove([each.removeprefix(f"{path}/") for each in gone])
        return
    for each in gone:
        with suppress(*STORAGE_ERRORS):
            filesystem.delete_file(each)
