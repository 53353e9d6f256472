"""List folders of storages alike, whatever each takes for a folder."""

import pyarrow as pa
import pyarrow.fs


def entries_in(filesystem: pa.fs.FileSystem, folder: str) -> list[pa.fs.FileInfo]:
    """Return what lies directly in a folder; nothing where there is none.

    In Google's stores pyarrow shows only those folders that have an object of their own, which other writers don't
    make: there, all files below are listed.
    """
    deep = filesystem.type_name == "gcs"
    found = filesystem.get_file_info(pa.fs.FileSelector(folder, recursive=deep, allow_not_found=True))
    if not deep:
        return list(found)
    entries = {}
    for info in found:
        name, slash, _ = info.path.removeprefix(f"{folder}/").partition("/")
        path = f"{folder}/{name}"
        entries[path] = pa.fs.FileInfo(path, pa.fs.FileType.Directory) if slash else info
    return list(entries.values())
