"""Prove before a commit that every row was read and written, and that readers will find every new file."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow.parquet as pq

from zonal.errors import TableError, ZonalError, quoted
from zonal.plan.rewrite import ReadTally, Rewrite, Scan, Writing, Written
from zonal.snapshot import UNKNOWN
from zonal.storage import local_path, open_regular
from zonal.storage.causes import STORAGE_ERRORS, cause_of
from zonal.storage.durability import flush_folders
from zonal.values.checksum import MODULUS
from zonal.worker.problem import naming
from zonal.worker.read.deletes import read_stored

LOOKS = 8
"""Files that are checked in parallel: on an object store, waiting takes all the time."""


def check_rows(
    table: str, labels: Sequence[str], scan: Scan, tallies: Sequence[ReadTally], written: Sequence[Written]
) -> None:
    """Raise an error unless exactly the rows that were there are in the new files; `labels` name the partitions."""
    read, live = Counter[int](), Counter[int]()
    for tally in tallies:
        read[tally.source] += tally.read
        live[tally.source] += tally.live
    passed, stored = Counter[int](), Counter[int]()
    for source in scan.sources:
        deleted = source.vector.rows if source.vector is not None else 0
        simple = not source.position_deletes and not source.equality_deletes
        if source.rows != UNKNOWN and read[source.number] != source.rows:
            raise _wrong(table, source.path, f"{read[source.number]:,} of {source.rows:,} rows were read")
        if simple and read[source.number] - live[source.number] != deleted:
            gone = read[source.number] - live[source.number]
            raise _wrong(table, source.path, f"{gone:,} rows were left out, and {deleted:,} are deleted")
        passed[source.partition] += live[source.number]
    for file in written:
        stored[file.partition] += file.rows
    for part in {*passed, *stored}:
        if passed[part] != stored[part]:
            name = labels[part] or "the table"
            raise _wrong(table, name, f"{passed[part]:,} rows were read and {stored[part]:,} written")
    if (sum(tally.checksum for tally in tallies) - sum(file.checksum for file in written)) % MODULUS:
        raise _wrong(table, "all partitions", "as many rows were written as read, but not the same ones")


def _wrong(table: str, where: str, what: str) -> ZonalError:
    return ZonalError(
        f"Rows don't add up in {quoted(table, limit=200)}, {quoted(where, limit=200)}: {what}. Please report this."
    )


def check_new_files(writing: Writing, rewrite: Rewrite) -> None:
    """Refuse to commit files that the storage doesn't have whole, or deletes that aren't those that were carried."""
    if rewrite.carried is None:
        check_files(writing, rewrite.added)
        return
    carried = rewrite.carried
    deletes = [Written(file.location, file.size, file.rows, -1, ()) for file in carried.files.values()]
    check_files(writing, [*rewrite.added, *deletes])
    rows = {file.path: file.rows for file in rewrite.added}

    def check(path: str) -> None:
        stored = carried.stored[path]
        with naming(stored.location or path):
            found = read_stored(stored, path, writing.storage, rows[path])
        if not np.array_equal(found, carried.positions[path]):
            raise TableError(
                f"The deletes of the new file {quoted(path, limit=300)} aren't as they were written. Does another job "
                "change files of the table's folder?"
            )

    with ThreadPoolExecutor(LOOKS) as pool:
        list(pool.map(check, carried.positions))


def check_files(writing: Writing, written: Sequence[Written]) -> None:
    """Refuse to commit files that the table's storage doesn't have whole; on local disks, make their names durable."""
    if not written:
        return
    with ThreadPoolExecutor(LOOKS) as pool:
        list(pool.map(partial(_check_file, writing), written))
    root, folder = writing.storage.root, writing.folder
    inside = (local_path(folder) or "").startswith(f"{root}/")
    try:
        flush_folders([file.path for file in written], root if inside else folder)
    except OSError as error:
        raise TableError(f"The new files in {quoted(folder, limit=300)} can't be put on the disk: {error}.") from error


def _check_file(writing: Writing, file: Written) -> None:
    """Check a file as a reader sees it: it exists, has the size that was written, and its footer counts its rows."""

    def look() -> int:
        with open_regular(*writing.storage.locate(file.path)) as source:
            size = source.size()
            if size != file.size:
                raise _lost(file, f"has {size:,} bytes instead of {file.size:,}")
            rows: int = pq.read_metadata(source).num_rows
            return rows

    try:
        rows = writing.storage.renewing(look)
    except FileNotFoundError as error:
        raise _lost(file, "isn't there") from error
    except STORAGE_ERRORS as error:
        raise _lost(file, f"can't be read ({cause_of(error)})") from error
    if rows != file.rows:
        raise _lost(file, f"has {rows:,} rows instead of {file.rows:,}")


def _lost(file: Written, what: str) -> TableError:
    shared = ""
    if local_path(file.path) is not None:
        shared = "do Spark's workers and this machine see the same disk at this path? And "
    return TableError(
        f"The new file {quoted(file.path, limit=300)} {what}, although a worker has written it. Check: "
        f"{shared}does another job remove files that it doesn't know, such as a VACUUM without "
        "retention?"
    )
