"""A year of days and a month of hours on real tables: laws that hold after every single run of `cluster`.

By default a quarter of the year and the first days of the month pass; with ZONAL_WHOLE_YEAR set, all of both do.
"""

import os
from dataclasses import replace

import pytest

from support.cluster_tables import Meanwhile
from support.growing_life import FIRST, IDS, Arrivals, CopyOnWrite, Snapshots, Vectors
from zonal.layouts.layout import Layout
from zonal.upkeep.account import account_of
from zonal.upkeep.condition import condition_of

WHOLE = "ZONAL_WHOLE_YEAR" in os.environ
LAYOUT = Layout("zorder", ("ts", "x"), target_file_bytes=8_000)
BOTH = [CopyOnWrite, Snapshots]


@pytest.mark.parametrize("kind", BOTH)
def test_a_year_of_days(kind, tmp_path):
    life = kind(tmp_path, LAYOUT).begin()
    for day in range(FIRST, 365 if WHOLE else 91):
        life.live(day)
    assert life.runs >= 20, "laws of runs were put to the test"
    condition = condition_of(life.now(), LAYOUT)
    assert condition.share_in_layout > 0.7
    assert not condition.due
    assert not life.strays()


@pytest.mark.parametrize(("kind", "day"), [(CopyOnWrite, 24), (Vectors, None), (Snapshots, None)])
def test_a_month_of_hours(kind, day, tmp_path):
    """Late rows are of the last two days; in the first table, each day is a partition."""
    life = kind(tmp_path, LAYOUT, Arrivals(latest=48, day=day)).begin()
    for hour in range(FIRST, 720 if WHOLE else 52):
        life.live(hour)
    assert life.runs >= 10
    assert not condition_of(life.now(), LAYOUT).due
    assert not life.strays()


@pytest.mark.parametrize("kind", BOTH)
def test_what_arrived_is_counted_whatever_the_writer_tells(kind, tmp_path):
    life = kind(tmp_path, LAYOUT).begin()
    for day in range(FIRST, FIRST + 7):
        life.live(day)
    account = account_of(life.now())
    assert (account.arrived, account.rewritten) == (life.arrived, life.rewritten)


@pytest.mark.parametrize("kind", BOTH)
def test_newer_times_leave_files_of_older_ones_alone(kind, tmp_path):
    """Ranks of times age, and nobody rewrites a file for that: rows in order overlap with nothing."""
    layout = Layout("linear", ("ts",), target_file_bytes=4_000)
    life = kind(tmp_path, layout, Arrivals(count=100, late=(0.0, 0.0))).begin()
    for day in range(FIRST, FIRST + 24):
        life.arrive(day)
        life.keep()
    assert life.runs >= 2, "small files were joined"
    assert life.touched == 0


@pytest.mark.parametrize("kind", BOTH)
def test_three_layouts_in_one_life(kind, tmp_path):
    life = kind(tmp_path, LAYOUT).begin()
    others = [replace(LAYOUT, kind="hilbert", columns=("x", "ts")), replace(LAYOUT, kind="linear", columns=("ts",))]
    for number, layout in enumerate([*others, LAYOUT]):
        life.layout = layout
        life.keep(alone=False, layout=layout)
        assert life.now().layout == layout, "it is recorded, whether or not files move"
        for day in range(FIRST + 7 * number, FIRST + 7 * (number + 1)):
            life.live(day)
    condition = condition_of(life.now(), LAYOUT)
    assert condition.share_in_layout > 0.2
    assert not condition.due


@pytest.mark.parametrize("kind", [*BOTH, Vectors])
def test_other_writers_during_each_run(kind, tmp_path):
    """Rows arrive, are deleted and changed while runs rewrite their files; the next run finds them as they are."""
    life = kind(tmp_path, LAYOUT).begin()
    life.KEPT = 10**6
    disturbed = 0
    for day in range(FIRST, FIRST + 24, 4):
        for each in range(day, day + 3):
            life.arrive(each)
        acts = (
            lambda day=day: life.arrive(day + 3),
            lambda day=day: life.delete(day * IDS, day * IDS + 40),
            lambda day=day: life.update((day + 1) * IDS, (day + 1) * IDS + 40),
        )
        meanwhile = Meanwhile(acts[day // 4 % 3])
        life.keep(alone=False, runner=meanwhile)
        disturbed += meanwhile.runs
        life.keep()
    assert disturbed >= 6
    assert not life.table.strays()
