"""Folders of zonal's own runs, and the files in them that no version of a table has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow.fs

from zonal.cleaning.enclosure import StoredFile, inside, look, spellings
from zonal.cleaning.retention import Retention
from zonal.cleaning.spares import LEFT_BY_RUN, Spare
from zonal.errors import TableError, option, quoted
from zonal.plan.run import RUN_FOLDER, began
from zonal.storage import Storage
from zonal.storage.causes import STORAGE_ERRORS
from zonal.storage.folders import entries_in
from zonal.values.durations import duration_name


@dataclass
class _Run:
    """All folders of one run: where one of its files is young, the run may still go on."""

    name: str
    touched: datetime
    files: list[str] = field(default_factory=list)
    """From the table's folder on."""


def leftovers(
    storage: Storage, parent: str, retention: Retention, referred: Callable[[], set[str]]
) -> tuple[list[Spare], list[str]]:
    """Return files in folders of old runs that nobody refers to, and say which runs are too young to tell.

    `parent` is where the run folders lie, and `referred` returns the spellings of all files that any version, readable
    or not, names: it is called only if there is something to ask.
    """
    files = [(run, relative) for run in _runs(storage, parent) for relative in run.files]
    known = referred() if files else set()
    unknown = [(run, path) for run, path in files if known.isdisjoint(spellings(f"{storage.root}/{path}"))]
    spare = [(run, path) for run, path in unknown if run.touched <= retention.stale]
    young = {run.name for run, _ in unknown if run.touched > retention.stale}
    notes = [
        f"The folders of run {name} were written to within {duration_name(retention.older_than)} "
        f"({option('older_than')}): it may still go on."
        for name in sorted(young)
    ]
    found = []
    for (run, relative), seen in zip(spare, look(storage, [relative for _, relative in spare]), strict=True):
        if isinstance(seen, StoredFile):
            found.append(Spare(relative, seen.size, LEFT_BY_RUN, _why(run)))
        elif seen is not None:
            notes.append(f"{quoted(relative, limit=300)} stays: {seen}.")
    return found, notes


def _why(run: _Run) -> str:
    touched = f"{run.touched:%Y-%m-%d %H:%M} UTC"
    return f"Run {run.name} of zonal wrote it, touched nothing since {touched}, and no version has it."


def _runs(storage: Storage, parent: str) -> list[_Run]:
    """List the runs with folders in a folder of the table."""
    filesystem, top = storage.locate(parent)
    runs: dict[str, _Run] = {}
    try:
        for info in entries_in(filesystem, top):
            match = RUN_FOLDER.fullmatch(info.base_name)
            start = began(match["run"]) if match else None
            if match is None or start is None or info.type != pyarrow.fs.FileType.Directory:
                continue
            run = runs.setdefault(match["run"], _Run(match["run"], start))
            for entry in [info, *_entries(filesystem, info.path)]:
                run.touched = max(run.touched, entry.mtime or run.touched)
                relative = inside(storage.root, f"{parent}{entry.path[len(top) :]}")
                if entry.is_file and relative is not None:
                    run.files.append(relative)
    except STORAGE_ERRORS as error:
        raise TableError(f"Can't list {quoted(parent, limit=300)}: {storage.told(error)}") from None
    return [runs[name] for name in sorted(runs)]


def _entries(filesystem: pyarrow.fs.FileSystem, folder: str) -> Iterator[pyarrow.fs.FileInfo]:
    found = filesystem.get_file_info(pyarrow.fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return iter(sorted(found, key=lambda info: str(info.path)))
