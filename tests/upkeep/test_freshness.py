"""What is predicted of look-ups against a fresh layout, compared with a table that is clustered anew."""

from dataclasses import replace

import numpy as np
import pytest

from support.growing_table import ROW_BYTES, GrowingTable
from zonal.layouts.layout import Layout
from zonal.snapshot import Physical
from zonal.upkeep.freshness import lookup_shares
from zonal.upkeep.merges import MergeTerms

FILE_ROWS = 500


def made(rows, seed=0):
    draw = np.random.default_rng(seed)
    data = {"ts": np.arange(rows), "x": draw.integers(0, 10_000, rows)}
    return GrowingTable(data, Layout("zorder", ("ts", "x"), target_file_bytes=FILE_ROWS * ROW_BYTES))


def shares(table, layout=None):
    snapshot = replace(table.snapshot(), physical={name: Physical(name) for name in table.data})
    return lookup_shares(snapshot, layout or table.layout)


def times(table):
    now, fresh = shares(table)
    return now / fresh


@pytest.mark.parametrize("rows", [3_000, 6_000, 20_000])
def test_a_fresh_table_is_as_good_as_fresh(rows):
    table = made(rows)
    table.append(np.arange(rows))
    table.keep()
    assert 1 <= times(table) < 1.05


def test_runs_that_pile_up_are_predicted_as_they_are():
    table, rows = made(40_000), 40_000
    table.append(np.arange(rows // 2))
    table.keep()
    for part in np.array_split(np.arange(rows // 2, rows), 40):
        table.append(part)
        table.keep(MergeTerms(amplification=1))
    real = shares(table)[0] / shares(table.fresh())[0]
    assert real > 1.5
    assert times(table) == pytest.approx(real, rel=0.25)
    assert times(table.fresh()) < 1.05


def test_what_has_no_fresh_layout_to_compare_with_is_none():
    table = made(1_000)
    table.append(np.arange(1_000))
    assert shares(table, Layout("zorder", ("ts", "gone"))) is None
    table.files.clear()
    assert shares(made(10)) is None
