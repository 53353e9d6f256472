"""Laws of the policy that keeps a growing table clustered, on a simulation in memory."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.growing_table import ROW_BYTES, GrowingTable
from zonal.layouts.layout import Layout
from zonal.predicates.bound import All, Interval, Ranges
from zonal.upkeep.account import account_of
from zonal.upkeep.merges import MergeTerms

FILE_ROWS = 500


def grown(rows, seed=0, *, late=0.0, by=("ts", "x"), partition_of=None):
    """A table whose rows are numbered in the order of time, but for late ones."""
    draw = np.random.default_rng(seed)
    ts = np.arange(rows)
    ts = np.where(draw.random(rows) < late, np.maximum(ts - draw.integers(0, rows // 4, rows), 0), ts)
    data = {"ts": ts, "x": draw.integers(0, 10_000, rows), "c": np.full(rows, 7)}
    layout = Layout("zorder", tuple(by), target_file_bytes=FILE_ROWS * ROW_BYTES)
    return GrowingTable(data, layout, partition_of=partition_of)


def half_then(table, parts, rows, terms=None, queries=()):
    """Load half of the rows, cluster them, and keep the table while the rest arrives; yield bytes after each."""
    half = rows // 2
    table.append(np.arange(half))
    table.keep(terms, queries)
    for part in np.array_split(np.arange(half, rows), parts):
        table.append(part)
        yield table.keep(terms, queries)


def queries_of(table, count=60, seed=1):
    """Look-ups of x, and ranges of time with and without one."""
    draw = np.random.default_rng(seed)
    low, high = np.full((count, 2), -1), np.full((count, 2), 10**9)
    for number in range(count):
        if number % 3 != 1:
            low[number, 1] = high[number, 1] = draw.integers(0, 10_000)
        if number % 3:
            start = draw.integers(0, len(table.data["ts"]))
            low[number, 0], high[number, 0] = start, start + len(table.data["ts"]) // 50
    return low, high


@settings(max_examples=12, deadline=None)
@given(
    parts=st.integers(1, 12),
    late=st.sampled_from([0.0, 0.2]),
    amplification=st.sampled_from([1.0, 2.0, 3.0]),
    seed=st.integers(0, 99),
)
def test_rows_are_kept_bytes_are_bounded_and_nothing_is_done_twice(parts, late, amplification, seed):
    rows = 12_000
    table, terms = grown(rows, seed, late=late), MergeTerms(amplification=amplification)
    written = sum(half_then(table, parts, rows, terms))
    assert sorted(np.concatenate([file.rows for file in table.files]).tolist()) == list(range(rows))
    assert not table.choose(terms).chosen
    account = account_of(table.snapshot())
    assert account.rewritten <= amplification * account.arrived
    assert written <= account.rewritten


def test_a_growing_table_stays_nearly_as_good_as_fresh_for_few_bytes():
    rows = 40_000
    table, never = grown(rows), grown(rows)
    never.append(np.arange(rows // 2))
    never.keep()
    shares, written = [], 0
    for number, size in enumerate(half_then(table, 60, rows, MergeTerms(amplification=2))):
        written += size
        if number % 12 == 11:
            low, high = queries_of(table)
            shares.append(table.share(low, high, ["ts", "x"]) / table.fresh().share(low, high, ["ts", "x"]))
    for part in np.array_split(np.arange(rows // 2, rows), 60):
        never.append(part)
    worst = never.share(low, high, ["ts", "x"]) / never.fresh().share(low, high, ["ts", "x"])
    assert written <= 2.0 * (rows // 2) * ROW_BYTES
    assert np.mean(shares) <= 1.4, shares
    assert np.mean(shares) - 1 <= 0.25 * (worst - 1), (shares, worst)


def test_rows_that_arrive_wait_until_they_are_worth_some_files():
    table = grown(40_000)
    table.append(np.arange(39_000))
    table.keep()
    table.append(np.arange(39_000, 39_100))
    choice = table.choose()
    assert not choice.chosen
    assert "wait until there are" in choice.why_nothing
    table.append(np.arange(39_100, 40_000))
    assert [merge.reason for merge in table.choose().chosen] == ["arrived"]


def test_a_first_clustering_does_not_wait():
    table = grown(100)
    table.append(np.arange(100))
    assert [merge.reason for merge in table.choose().chosen] == ["first"]


def test_young_rows_do_not_spend_bits_on_time():
    table = grown(40_000)
    table.append(np.arange(36_000))
    table.keep()
    table.append(np.arange(36_000, 40_000))
    (merge,) = table.choose().chosen
    assert merge.delays[0] >= 2
    assert merge.delays[1] == 0
    low, high = queries_of(table)
    look_ups = slice(0, None, 3)
    waiting = [table.clustered(np.arange(36_000, 40_000), delays) for delays in (merge.delays, ())]
    reads = []
    for pieces in waiting:
        bounds = [(table.data["x"][piece].min(), table.data["x"][piece].max()) for piece in pieces]
        reads.append(np.mean([[a <= x <= b for a, b in bounds] for x in low[look_ups, 1]]))
    assert reads[0] < reads[1], "look-ups without a time read less of rows whose time waits"
    assert (low <= high).all()


def test_files_that_overlap_with_nobody_or_are_constant_are_left_alone():
    for by in (("ts",), ("c",)):
        table = grown(20_000, by=by)
        table.append(np.arange(10_000))
        table.keep()
        table.append(np.arange(10_000, 20_000), files=20)
        table.files = [file for file in table.files if file.layout or len(file.rows) >= FILE_ROWS // 2]
        assert not [merge for merge in table.choose().chosen if merge.reason != "first"], by


@pytest.mark.parametrize("part", [337, 500, 613])
def test_rows_in_order_never_move_files_that_are_clustered(part):
    """Neighbors share no value, however coarse the codes are that stand for values."""
    table = grown(12_000, by=("ts",))
    table.append(np.arange(5_711))
    table.keep()
    for start in range(5_711, 12_000 - part, part):
        settled = {id(file) for file in table.files if file.layout and len(file.rows) >= 0.75 * FILE_ROWS}
        table.append(np.arange(start, start + part))
        table.keep()
        assert settled <= {id(file) for file in table.files}


def test_files_heavy_with_deletes_are_rewritten_at_once():
    table = grown(20_000)
    table.append(np.arange(20_000))
    table.keep()
    table.files[3].deleted = len(table.files[3].rows) // 10
    assert not table.choose().chosen
    table.files[3].deleted = len(table.files[3].rows) // 2
    (merge,) = table.choose().chosen
    assert merge.reason == "deletes"
    assert merge.files.tolist() == [3]


def test_a_partition_of_less_than_a_file_becomes_one_file():
    table = grown(3_000, partition_of=lambda rows: rows % 10)
    table.append(np.arange(0, 1_000))
    table.keep()
    assert len(table.files) == 10
    table.append(np.arange(1_000, 1_100))
    assert not table.choose().chosen
    table.append(np.arange(1_100, 3_000))
    table.keep()
    assert len(table.files) == 10


def test_a_merge_beyond_the_bound_says_what_would_be_rewritten_with_it():
    table = grown(8_000)
    table.append(np.arange(8_000))
    table.keep()
    (left,) = (
        replace(table, layout=Layout("zorder", ("x",), target_file_bytes=FILE_ROWS * ROW_BYTES))
        .choose(MergeTerms(amplification=1.5))
        .left
    )
    assert "with it, too much would be rewritten: 2.00 bytes per byte that arrived, of at most 1.5" in left.text


def test_times_of_a_year_never_force_old_files_to_be_rewritten():
    days, rows = 365, 36_500
    table = grown(rows)
    written, touched = 0, 0
    table.append(np.arange(3_650))
    table.keep()
    for day in range(36, days):
        before = {id(file) for file in table.files if file.layout and file.rows.max() < (day - 200) * 100}
        table.append(np.arange(day * 100, day * 100 + 100) if day > 36 else np.arange(3_650, 3_700))
        written += table.keep()
        touched += len(before - {id(file) for file in table.files})
    assert written <= 3 * rows * ROW_BYTES
    assert touched <= 12, "files of long ago are merged a few times in a year"
    assert not table.choose().chosen


@pytest.mark.parametrize("scans", [0.01, 1e6])
def test_known_queries_decide_whether_runs_merge(scans):
    rows = 40_000
    table = grown(rows)
    look = All((Ranges("x", (Interval(5_000, 5_000),)),))
    terms = MergeTerms(scans=scans, amplification=3)
    written = sum(half_then(table, 40, rows, terms, [(look, 1.0)]))
    appended = rows // 2 * ROW_BYTES
    assert (written <= appended) == (scans < 1), written / appended


def test_another_layout_moves_files_where_that_pays_and_back_for_free():
    table = grown(20_000, by=("ts", "x"))
    table.append(np.arange(20_000))
    table.keep()
    first = table.layout
    table.layout = Layout("zorder", ("x",), target_file_bytes=first.file_bytes)
    (merge,) = table.choose().chosen
    assert merge.reason == "layout"
    assert not table.choose(MergeTerms(scans=0.5)).chosen
    table.layout = first
    assert not table.choose().chosen, "files of the first layout are clustered still"


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_another_size_of_files_leaves_what_is_clustered_alone(factor):
    """Nothing to do must not become everything to do, only because the table grew."""
    rows = 20_000
    table = grown(rows)
    table.layout = Layout("zorder", ("ts", "x"), fitted_file_bytes=FILE_ROWS * ROW_BYTES)
    for _ in half_then(table, 20, rows):
        kept = table.layout
        table.layout = replace(kept, fitted_file_bytes=FILE_ROWS * ROW_BYTES * factor)
        chosen = table.choose().chosen
        assert {merge.reason for merge in chosen} <= {"runs", "arrived"}
        due = sum(merge.bytes for merge in chosen)
        assert due <= table.snapshot().files.sizes.sum() / 4
        table.layout = kept
