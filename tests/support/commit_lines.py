"""Lines of commits in memory: of other writers, and of runs of zonal that may interleave."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from support.growing_table import GrowingTable
from support.history_records import NOON
from zonal.layouts.layout import Layout
from zonal.snapshot import Commit

RUNS = [f"20260101-00000{number}-0123abcd" for number in range(3)]
KINDS = ["append", "overwrite", "delete", "compaction", "unknown", "zonal"]


def snapshot_of(commits, version=None):
    table = GrowingTable({"ts": np.arange(10)}, Layout("zorder", ("ts",)))
    table.append(np.arange(10))
    newest = len(commits) - 1 if version is None else version
    return replace(table.snapshot(), commits={each.id: each for each in commits}, version=newest)


def commit(number, kind, size, run="", **more):
    parent = number - 1 if number else None
    return Commit(
        number, NOON, kind.upper(), {}, parent=parent, kind=kind, added_bytes=size, added_rows=size, run=run,
        is_first=not number, **more,
    )  # fmt: skip


@st.composite
def histories(draw):
    """Commits of other writers, and of three runs that may interleave."""
    drawn = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1000), st.integers(0, 2)), max_size=20))
    commits = [commit(0, "append", 0)]
    for kind, size, run in drawn:
        own = kind == "zonal" or (kind == "append" and run == 0)
        commits.append(commit(len(commits), kind, size, f"{RUNS[run]}-{len(commits)}" if own else ""))
    return commits
