"""Predictions against what they predict: layouts applied to all rows, tables as they are."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.learning import grow
from zonal.plan.placement import Sizes, has_heavy_keys, plan_placement
from zonal.predicates.bind import bind
from zonal.predicates.expressions import And, Call, Column, Compare, In, Or, Parameter, Unknown
from zonal.skipping.files import FileIndex
from zonal.sql.where import parse_where
from zonal.study.sample import look
from zonal.tables.registry import open_table
from zonal.trials.boxes import boxes_of, code, meets, units_of
from zonal.trials.parameters import draw_parameters, has_parameters
from zonal.trials.prediction import Prediction, predict
from zonal.trials.today import current, regressions, standing
from zonal.trials.trial import filtered_columns, trial_of
from zonal.values.sample import Sample

ROW_BYTES = 100.0
ROWS = 60_000


def events(rows, seed=0):
    """Time, a skewed tenant, an amount with nulls, a name."""
    rng = np.random.default_rng(seed)
    amount = np.exp(rng.normal(3, 1.6, rows)).round(2)
    return pa.table(
        {
            "time": rng.integers(0, 10**9, rows),
            "tenant": rng.zipf(1.3, rows).clip(max=5000).astype(np.int32),
            "amount": pa.array(amount, mask=rng.random(rows) < 0.1),
            "name": pa.array(np.char.add("n", rng.integers(0, 3000, rows).astype(str))),
        }
    )


DATA = events(ROWS)
LAYOUTS = [
    Layout(kind, columns, target_file_bytes=round(ROWS * ROW_BYTES / 50))
    for kind, columns in [
        ("zorder", ("time", "tenant")),
        ("hilbert", ("time", "amount", "name")),
        ("linear", ("tenant", "time")),
        ("zorder", ("time",)),
    ]
]
QUERIES = [
    *(f"time BETWEEN {start} AND {start + 40_000_000}" for start in range(0, 900_000_000, 90_000_000)),
    *(f"tenant = {tenant} AND time > {tenant * 10_000_000}" for tenant in range(1, 30, 3)),
    *(f"amount >= {limit}" for limit in (50, 200, 800)),
    "amount IS NULL AND time < 100000000",
    "tenant IN (3, 77, 1200) OR time < 5000000",
    "name LIKE 'n17%' AND time < 500000000",
    "tenant = 100000",
]


def bound(*texts, data=DATA):
    return [bind(parse_where(text), data.schema) for text in texts]


def some_rows(data, count, seed=1):
    chosen = np.sort(np.random.default_rng(seed).choice(data.num_rows, count, replace=False))
    return data.take(pa.array(chosen))


def trial_on(sample, bounds, rows=None, **options):
    total = sample.num_rows if rows is None else rows
    rows = Sample(sample, np.zeros(sample.num_rows, np.int64))
    options = {"partition_rows": {0: total}, "row_bytes": ROW_BYTES, **options}
    return trial_of(rows, bounds, np.ones(len(bounds)).tolist(), **options)


def applied(data, layout, bounds, sample, partition=None):
    """Place all rows as a rewrite does, and match the queries against the files."""
    mine = np.zeros(data.num_rows, np.int64) if partition is None else partition
    of_sample = mine if sample is data else np.zeros(sample.num_rows, np.int64)
    ranks = Ranks.fit(sample, layout.curve_columns)
    sizes = Sizes(dict(enumerate(np.bincount(mine).tolist())), ROW_BYTES, ROW_BYTES)
    drawn = Sample(sample, of_sample)
    placement = plan_placement(layout, ranks, drawn, sizes, ties=has_heavy_keys(layout, ranks, drawn, sizes))
    file = np.empty(data.num_rows, np.int64)
    for part in np.unique(mine).tolist():
        rows = np.flatnonzero(mine == part)
        _, pieces = placement.place(data.take(pa.array(rows)), part, rows, 0)
        file[rows] = placement.file_of_piece[pieces]
    order = np.argsort(file, kind="stable")
    coded = code(data, data.column_names)
    units = units_of(coded, order, np.flatnonzero(np.diff(file[order], prepend=-1)), widen=False)
    return units.rows @ meets(units, boxes_of(bounds, coded)) / data.num_rows


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_sample_of_all_rows_tells_exactly_what_a_rewrite_brings(layout):
    data = DATA.slice(0, 8000)
    bounds = bound(*QUERIES)
    found = predict(trial_on(data, bounds), layout)
    assert not found.extrapolated
    if layout.kind != "linear" and len(layout.columns) > 1:  # else rows of equal keys are told apart at random
        assert found.shares == pytest.approx(applied(data, layout, bounds, data))
    assert found.mean == pytest.approx(applied(data, layout, bounds, data).mean(), rel=0.02)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_fifth_of_the_rows_predicts_the_rest(layout):
    bounds = bound(*QUERIES)
    exact = applied(DATA, layout, bounds, some_rows(DATA, 20_000, seed=2))
    found = predict(trial_on(some_rows(DATA, 12_000), bounds, ROWS), layout)
    assert found.mean == pytest.approx(exact.mean(), rel=0.1)
    assert np.abs(found.shares - exact).mean() < 0.03
    assert found.shares[-1] == 0, "no unit holds a tenant beyond all others"


def test_trees_are_predicted_from_another_sample():
    bounds = bound(*QUERIES)
    learned = trial_on(some_rows(DATA, 12_000, seed=4), bounds, ROWS)
    tree = grow(learned.coded, learned.boxes, learned.weights, schema=DATA.schema, leaf_rows=240)
    layout = Layout("tree", tree.columns, tree=tree.to_json(), target_file_bytes=LAYOUTS[0].file_bytes)
    exact = applied(DATA, layout, bounds, some_rows(DATA, 20_000, seed=2))
    found = predict(trial_on(some_rows(DATA, 12_000), bounds, ROWS), layout)
    assert found.mean == pytest.approx(exact.mean(), rel=0.15)


def test_a_query_that_filters_no_column_of_the_layout_reads_nearly_all():
    found = predict(trial_on(some_rows(DATA, 12_000), bound("amount < 1000", "time < 1000000"), ROWS), LAYOUTS[0])
    assert found.shares[0] > 0.99
    assert found.shares[1] < 0.2


def test_partitions_are_cut_apart_and_skipped_by_their_values():
    data = DATA.slice(0, 8000)
    partition = np.arange(8000) % 4
    bounds = bound("time < 100000000", "time >= 0")
    in_partition = np.ones((4, 2), bool)
    in_partition[1:, 1] = False
    rows = dict.fromkeys(range(4), 2000)
    trial = trial_of(
        Sample(data, partition),
        bounds,
        [1, 1],
        partition_rows=rows,
        row_bytes=ROW_BYTES,
        in_partition=in_partition,
    )
    layout = Layout("zorder", ("time", "tenant"), target_file_bytes=round(2000 * ROW_BYTES / 5))
    found = predict(trial, layout)
    exact = applied(data, layout, bounds, data, partition)
    assert found.files >= 20
    assert found.shares[0] == pytest.approx(exact[0])
    assert found.shares[1] == pytest.approx(0.25), "one partition of four"


def test_small_partitions_are_a_file_each():
    data = DATA.slice(0, 3000)
    rows = dict.fromkeys(range(1000), 30)
    trial = trial_of(
        Sample(data, np.arange(3000) % 1000), bound("time < 0"), [1], partition_rows=rows, row_bytes=ROW_BYTES
    )
    found = predict(trial, LAYOUTS[0])
    assert found.files == 1000
    assert not found.extrapolated


def test_a_partition_counts_by_its_rows_and_not_by_its_sample():
    data = pa.table({"x": [1] * 50 + [2] * 50})
    trial = trial_of(
        Sample(data, np.repeat([0, 1], 50)),
        bound("x = 1", data=data),
        [1],
        partition_rows={0: 900, 1: 100},
        row_bytes=ROW_BYTES,
    )
    assert predict(trial, Layout("zorder", ("x",))).shares == pytest.approx([0.9])
    assert trial.floor == pytest.approx([0.9])


def test_more_files_than_the_sample_shows_are_extrapolated():
    bounds = bound(*QUERIES)
    layout = Layout("zorder", ("time", "tenant"), target_file_bytes=round(ROWS * ROW_BYTES / 600))
    trial = trial_on(some_rows(DATA, 6000), bounds, ROWS)
    found = predict(trial, layout)
    assert found.extrapolated
    assert found.files == 600
    exact = applied(DATA, layout, bounds, some_rows(DATA, 30_000, seed=2))
    assert found.mean == pytest.approx(exact.mean(), rel=0.2)
    assert (found.shares >= trial.floor - 1e-9).all(), "no layout reads less than what matches"


def test_row_groups_skip_more_than_files():
    layout = Layout("zorder", ("time", "tenant"), target_file_bytes=round(ROWS * ROW_BYTES / 10), row_group_rows=1000)
    found = predict(trial_on(some_rows(DATA, 12_000), bound(*QUERIES), ROWS), layout)
    assert (found.row_group_shares <= found.shares).all()
    assert found.row_group_shares.mean() < 0.8 * found.shares.mean()


def test_one_heavy_value_is_told_apart_by_other_columns():
    data = pa.table({"kind": [7] * 6000, "time": np.random.default_rng(0).permutation(6000)})
    layout = Layout("zorder", ("kind",), target_file_bytes=round(6000 * ROW_BYTES / 20))
    found = predict(trial_on(data, bound("kind = 7 AND time < 100", data=data)), layout)
    assert found.shares[0] < 0.2, "a rewrite orders rows of equal keys by the other columns"


def test_the_interval_holds_the_mean_and_narrows_with_more_queries():
    rng = np.random.default_rng(0)
    few, many = (Prediction.of(1, s, s, np.ones(len(s))) for s in (rng.random(10), rng.random(1000)))
    for found in (few, many):
        assert found.low <= found.mean <= found.high
    assert many.high - many.low < 0.3 * (few.high - few.low)


def test_weights_count():
    trial = trial_of(
        Sample(DATA, np.zeros(ROWS, np.int64)),
        bound("time < 20000000", "amount > 0"),
        [3, 1],
        partition_rows={0: ROWS},
        row_bytes=ROW_BYTES,
    )
    found = predict(trial, LAYOUTS[3])
    assert found.mean == pytest.approx(0.75 * found.shares[0] + 0.25 * found.shares[1])


def test_nothing_is_predicted_of_nothing():
    empty = DATA.slice(0, 0)
    found = predict(trial_on(empty, bound("time < 5"), 0), LAYOUTS[0])
    assert found.shares.tolist() == [1.0], "what nobody looked at is read"
    assert predict(trial_on(DATA.slice(0, 100), []), LAYOUTS[0]).mean == 0


def test_columns_are_taken_by_the_weight_of_their_queries():
    data = DATA.append_column("tags", pa.array([["a"]] * ROWS))
    bounds = bound("time < 5 AND tags IS NULL", "amount > 5", "amount > 7", data=data)
    assert filtered_columns(bounds, [3, 1, 1], data.schema) == ["time", "amount"]
    without = trial_on(data.select(["amount"]), bounds)
    assert without.coded.columns == ("amount",), "what the sample doesn't have sets no condition"


# --- tables as they are ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Eight files of 500 rows in order of time, in two partitions."""
    for number in range(8):
        part = tmp_path / f"region={'ab'[number % 2]}"
        part.mkdir(exist_ok=True)
        pq.write_table(DATA.slice(500 * number, 500).sort_by("time"), part / f"{number}.parquet", row_group_size=100)
    return open_table(str(tmp_path))


def test_the_table_as_it_is_is_measured_by_its_own_bounds(folder):
    snapshot = folder.snapshot()
    bounds = [
        bind(parse_where(text), snapshot.schema) for text in ("region = 'a'", "time < 0", "region = 'b' AND time < 0")
    ]
    now = standing(snapshot, bounds, [1, 1, 1])
    sizes = snapshot.files.sizes
    exact = [sizes[FileIndex(snapshot).prune(each).kept].sum() / sizes.sum() for each in bounds]
    assert now.current.shares == pytest.approx(exact)
    assert now.current.shares[1] == 0
    assert now.partition_only.shares[1] == 1
    assert 0.4 < now.partition_only.shares[2] < 0.6
    assert sorted(now.in_partition[:, 0].tolist()) == [False, True]
    assert current(snapshot, bounds, [1, 1, 1]).mean == now.current.mean


def test_a_look_at_a_table_draws_from_all_of_its_files(folder):
    snapshot = folder.snapshot()
    scan = folder.scan(snapshot, np.arange(8))
    sample, rows = look(scan, ["time", "amount"], rows=400)
    assert sample.data.column_names == ["time", "amount"]
    assert 300 <= sample.data.num_rows <= 500
    assert rows == {0: 2000, 1: 2000}
    assert np.bincount(sample.partition).tolist() == pytest.approx([200, 200], abs=60)
    again, _ = look(scan, ["time", "amount"], rows=400)
    assert again.data == sample.data, "the same rows every time"
    whole, _ = look(scan, ["time"])
    assert sorted(whole.data["time"].to_pylist()) == sorted(DATA.slice(0, 4000)["time"].to_pylist())


def test_queries_that_read_more_are_named_worst_first():
    before, after = (Prediction.of(1, np.array(s), np.array(s), np.ones(5)) for s in (
        [0.1, 0.1, 0.5, 0.9, 0.0], [0.2, 0.9, 0.4, 0.95, 0.005],
    ))  # fmt: skip
    assert regressions(before, after).tolist() == [1, 0]


# --- parameters ------------------------------------------------------------------------------------------------------

P = Parameter()


def test_parameters_take_the_values_of_one_row():
    pairs = set(zip(DATA["tenant"].to_pylist(), DATA["time"].to_pylist(), strict=True))
    for seed in range(20):
        drawn = draw_parameters(And((Compare(Column("tenant"), "=", P), Compare(Column("TIME"), "=", P))), DATA, seed)
        assert (drawn.parts[0].value, drawn.parts[1].value) in pairs
        assert not has_parameters(drawn)


def test_limits_are_drawn_in_their_order():
    both = And((Compare(Column("time"), "<", P), Compare(Column("time"), ">=", P)))
    for seed in range(20):
        upper, lower = draw_parameters(both, DATA, seed).parts
        assert lower.value <= upper.value
        assert draw_parameters(both, DATA, seed).parts == (upper, lower), "the same seed draws the same values"


def test_lists_keep_what_is_known():
    drawn = draw_parameters(Or((In(Column("tenant"), (5, P, P, P)), Compare(Column("time"), ">", 7))), DATA, 3)
    listed, known = drawn.parts
    assert listed.values[0] == 5
    assert 2 <= len(listed.values) <= 4
    assert known == Compare(Column("time"), ">", 7)


def test_functions_of_times_are_drawn_where_they_are_known():
    data = pa.table({"ts": pa.array([dt.datetime(2024, 5, 6, 7)] * 3, pa.timestamp("ns"))})
    assert draw_parameters(Compare(Call("date", Column("ts")), "=", P), data, 0).value == dt.date(2024, 5, 6)
    assert draw_parameters(Compare(Call("year", Column("ts")), "=", P), data, 0).value == 2024
    assert isinstance(draw_parameters(Compare(Call("floor", Column("ts")), "=", P), data, 0), Unknown)


def test_what_has_no_values_stays_unknown():
    data = pa.table({"x": pa.nulls(3, pa.int64()), "f": [float("nan")] * 3})
    for name in ("x", "f", "gone"):
        drawn = draw_parameters(Compare(Column(name), "=", P), data, 0)
        assert isinstance(drawn, Unknown)
        assert name in drawn.reason
