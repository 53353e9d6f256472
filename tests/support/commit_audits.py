"""Replays made by hand and older versions of tables, for tests of who is to blame."""

import numpy as np

from zonal.auditing.replay import Replay
from zonal.errors import TableError
from zonal.tables.registry import open_table

TIMES = "\N{MULTIPLICATION SIGN}"


def opened(home, version=""):
    return open_table(home.name + version, **home.options)


def replay_of(read, excess):
    """A replay of which only what each file is read for counts."""
    none = np.zeros(0)
    return Replay(
        files=none.astype(int),
        bytes=none.astype(int),
        partition_files=none.astype(int),
        partition_bytes=none.astype(int),
        in_partition=np.zeros((1, 0), bool),
        read=np.asarray(read, float),
        excess=np.asarray(excess, float),
        excess_files=none,
        excess_bytes=none,
        skipped={},
        skipped_by_partition={},
    )


def nowhere(version):
    """A past that is gone."""


def versions_of(table):
    """Older versions, and which of them were asked for."""
    asked = []

    def at(number):
        asked.append(number)
        try:
            return table.at(number).snapshot()
        except TableError:
            return None

    return at, asked


def width(commit, column="x"):
    return next(each for each in commit.widths if each.column == column)
