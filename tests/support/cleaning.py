"""Clean-ups at a moment that a test chooses, and files that stand for leftovers."""

import os
import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest import mock

import zonal.verbs.clean
from zonal.verbs.clean import clean

WEEK = timedelta(days=7)
RUN = "20250101-000000-0123abcd"


def now():
    """A moment that is later than all before and earlier than all after it, also in milliseconds."""
    time.sleep(0.02)
    moment = datetime.now(timezone.utc)
    time.sleep(0.02)
    return moment


@contextmanager
def clock(moment):
    """Let it be a moment for `clean`."""
    with mock.patch.object(zonal.verbs.clean, "_time", return_value=moment):
        yield


def cleaned(home, cutoff=None, **asked):
    """Clean a table a week after a moment; versions that were left before it expire."""
    given = {"expire": "7d"} if cutoff is not None and not {"undo", "purge", "expire"} & {*asked} else {}
    with clock((cutoff or now()) + WEEK):
        return clean(home.name, **{"yes": True, **given, **asked}, **home.options)


def left_by_run(folder, run=RUN, name="left.parquet"):
    """Make what a broken run leaves: a folder with a file that no version has."""
    left = Path(folder) / f"zonal-0123456789ab-{run}-0"
    left.mkdir(parents=True, exist_ok=True)
    (left / name).write_bytes(b"left")
    for path in (left / name, left):
        os.utime(path, (0, 0))
    return left / name


def quarantined(root):
    """The files in quarantine, by run."""
    return {path.name: sorted(file.name for file in path.iterdir()) for path in (root / "_zonal_quarantine").glob("*")}


def everything(root):
    """All files of a table but those in quarantine, with their content."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "_zonal_quarantine" not in path.parts
    }
