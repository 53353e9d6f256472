"""Trees learned from queries: they cut where queries ask, and skip more than a curve on queries not seen before."""

import math
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.arrow_values import VALUES, arrays
from zonal.layouts.cuts import cell_cuts, tree_cuts
from zonal.layouts.keys import key_words
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.layouts.sort import stable_order
from zonal.layouts.tree import Tree
from zonal.learning import grow, growth
from zonal.learning.training import training_queries
from zonal.predicates.bind import bind
from zonal.predicates.bound import All, Anything, Interval, Nulls, Ranges, Some
from zonal.sql.where import parse_where
from zonal.trials.boxes import boxes_of, code, literal_columns, meets, units_of


def bound(data, queries):
    return [bind(parse_where(query), data.schema) for query in queries]


def grown(data, queries, *, columns=None, weights=None, **options):
    """Grow a tree from rows and WHERE clauses; without a share of synthetic queries unless told."""
    bounds = queries if queries and not isinstance(queries[0], str) else bound(data, queries)
    coded = code(data, columns or data.column_names)
    options = {"leaf_rows": len(coded) / 20, "synthetic": 0.0} | options
    boxes = boxes_of(bounds, coded)
    return grow(coded, boxes, np.ones(len(bounds)) if weights is None else weights, schema=data.schema, **options)


def share_read(data, queries, layout, files):
    """The mean share of the rows that queries read, if the files are cut as a rewrite would."""
    coded = code(data, data.column_names)
    words = key_words(data, layout, Ranks.fit(data, layout.curve_columns))
    order = stable_order(words)
    cut = tree_cuts if layout.kind == "tree" else cell_cuts
    units = units_of(coded, order, cut([word[order] for word in words], data.num_rows / files), widen=False)
    return float(units.rows @ meets(units, boxes_of(bound(data, queries), coded)).mean(axis=1)) / data.num_rows


def events(rows=8000, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": rng.integers(0, 1_000_000, rows),
            "tenant": rng.zipf(1.5, rows) % 500,
            "amount": rng.lognormal(3, 1.5, rows),
        }
    )


def event_queries(count, seed):
    rng = np.random.default_rng(seed)
    queries = []
    for _ in range(count):
        start = int(rng.integers(0, 950_000))
        kinds = (
            f"ts >= {start} AND ts < {start + 30_000}",
            f"tenant = {int(rng.zipf(1.5)) % 500} AND ts >= {start}",
            f"amount > {float(rng.lognormal(5, 1)):.3f}",
        )
        queries.append(kinds[int(rng.integers(3))])
    return queries


# --- where it cuts ---------------------------------------------------------------------------------------------------


def test_a_cut_is_the_literal_itself_though_the_sample_doesnt_have_it():
    data = pa.table({"x": np.arange(0, 1000, 10), "y": np.random.default_rng(0).random(100)})
    tree = grown(data, ["x >= 333"], leaf_rows=30)
    assert (tree.columns, tree.points, tree.leaves) == (("x",), ((333,),), 2)
    rows = pa.table({"x": [332, 333]})
    assert tree.paths(rows).tolist() == [0, 1 << 63]


def test_a_range_is_cut_at_both_ends_and_closed_ends_are_kept_inside():
    data = pa.table({"x": np.arange(1000)})
    tree = grown(data, ["x BETWEEN 200 AND 499"], leaf_rows=100)
    assert tree.points == ((200, 500),)
    text = grown(pa.table({"s": [f"k{n:03d}" for n in range(500)]}), ["s <= 'k199'"], leaf_rows=100)
    assert text.points == ((b"k199\0",),)
    real = grown(pa.table({"f": np.arange(500) / 2}), ["f <= 100.25"], leaf_rows=100)
    assert real.points == ((math.nextafter(100.25, math.inf),),)


def test_moments_are_cut_in_the_units_of_their_column():
    start = datetime(2026, 1, 1)
    moments = pa.array([start + timedelta(hours=hour) for hour in range(400)], pa.timestamp("us"))
    tree = grown(pa.table({"ts": moments}), ["ts >= '2026-01-05'"], leaf_rows=50)
    assert tree.families == ("timestamp[us]",)
    assert tree.points == ((pa.scalar(datetime(2026, 1, 5), pa.timestamp("us")).value,),)


def test_nulls_are_parted_from_values_where_queries_ask_for_them():
    x = [None if n % 4 == 0 else n for n in range(400)]
    data = pa.table({"x": pa.array(x, pa.int64()), "y": np.arange(400)})
    for query in ("x IS NULL", "x IS NOT NULL"):
        tree = grown(data, [query], leaf_rows=50)
        assert (tree.columns[0], tree.leaves) == ("x", 2)
        assert (tree.paths(data) == 0).tolist() == [value is None for value in x]


def test_nan_is_parted_from_numbers():
    data = pa.table({"f": pa.array([float(n) if n % 3 else math.nan for n in range(300)])})
    tree = grown(data, [Ranges("f", (), nan=True)], leaf_rows=50)
    assert tree.leaves == 2
    assert (tree.paths(data) > 0).tolist() == [n % 3 == 0 for n in range(300)]


def test_the_heavier_query_is_served_first():
    rng = np.random.default_rng(0)
    data = pa.table({"x": rng.integers(0, 1000, 4000), "y": rng.integers(0, 1000, 4000)})
    queries = ["x < 500", "y < 500"]
    for weights, first in (([9, 1], "x"), ([1, 9], "y")):
        tree = grown(data, queries, weights=weights, leaf_rows=1400)
        assert tree.columns[int(tree.column[0])] == first
        assert tree.columns[0] == first, "the column that parts the most rows comes first"


def test_a_correlated_column_needs_no_cuts_of_its_own():
    x = np.arange(4000)
    data = pa.table({"x": x, "twin": x + 7, "free": np.random.default_rng(0).random(4000)})
    tree = grown(data, [f"x >= {n} AND x < {n + 200}" for n in range(0, 4000, 200)], leaf_rows=200)
    assert tree.columns == ("x",)
    assert share_read(data, ["twin >= 1000 AND twin < 1100"], tree.layout(), 20) <= 0.1


@pytest.mark.parametrize("queries", [[], ["x > -1"], ["x = 5 OR 1 = 1"]])
def test_queries_that_leave_nothing_unread_give_a_single_leaf(queries):
    data = pa.table({"x": np.arange(100), "y": np.arange(100)})
    tree = grown(data, queries, leaf_rows=10)
    assert tree.leaves == 1
    assert tree.columns


def test_no_rows_give_a_single_leaf():
    data = pa.table({"x": pa.array([], pa.int64())})
    assert grown(data, ["x > 5"], leaf_rows=10, synthetic=0.2).leaves == 1


def test_alternatives_are_one_query():
    data = events()
    tree = grown(data, ["ts < 50000 OR tenant = 1", "ts IN (1, 2, 3) OR amount > 500"], leaf_rows=200)
    assert set(tree.columns) == {"ts", "tenant", "amount"}


# --- how well --------------------------------------------------------------------------------------------------------


def test_queries_not_seen_before_read_less_than_with_a_curve():
    data = events()
    seen, unseen = event_queries(150, 1), event_queries(150, 2)
    tree = grown(data, seen, leaf_rows=data.num_rows / 80, synthetic=0.2)
    learned = share_read(data, unseen, tree.layout(), 80)
    curve = share_read(data, unseen, Layout("zorder", ("ts", "tenant", "amount")), 80)
    assert learned < 0.9 * curve


def test_row_groups_are_cut_inside_of_files():
    data = events()
    queries = event_queries(100, 1)
    files = grown(data, queries, leaf_rows=400)
    both = grown(data, queries, leaf_rows=400, group_rows=50)
    assert files.leaves < 40 < both.leaves
    read = {tree.leaves: share_read(data, queries, tree.layout(), 160) for tree in (files, both)}
    assert read[both.leaves] < 0.9 * read[files.leaves]
    assert share_read(data, queries, both.layout(), 20) < 1.15 * share_read(data, queries, files.layout(), 20)


def test_leaves_have_at_least_half_and_less_than_one_and_a_half_times_their_rows():
    data = events()
    tree = grown(data, event_queries(200, 1), leaf_rows=100)
    _, rows = np.unique(tree.paths(data), return_counts=True)
    assert rows.min() >= 50
    assert np.quantile(rows, 0.9) < 150, "leaves are larger only where no cut helps any query"
    assert len(rows) == tree.leaves


def test_there_are_never_more_leaves_than_a_tree_may_have(monkeypatch):
    data = pa.table({"x": np.arange(2000)})
    queries = [f"x = {n}" for n in range(0, 2000, 10)]
    assert grown(data, queries, leaf_rows=8).leaves > 150
    monkeypatch.setattr(growth, "MAX_LEAVES", 100)
    tree = grown(data, queries, leaf_rows=8)
    _, rows = np.unique(tree.paths(data), return_counts=True)
    assert tree.leaves == 100
    assert rows.max() <= 8 * rows.min(), "they are cut evenly, not from one end"


def test_the_same_arguments_give_the_same_tree():
    data, queries = events(2000), event_queries(50, 3)
    first, again, other = (grown(data, queries, synthetic=0.2, seed=seed) for seed in (5, 5, 6))
    assert first.to_json() == again.to_json()
    assert first.to_json() != other.to_json()


def test_synthetic_queries_keep_a_tree_useful_when_literals_move():
    data = events()
    learned = [f"ts >= {n * 1000} AND ts < {n * 1000 + 20_000}" for n in range(20)]
    moved = [f"ts >= {n} AND ts < {n + 20_000}" for n in range(100_000, 900_000, 20_000)]
    strict = grown(data, learned, leaf_rows=200)
    blended = grown(data, learned, leaf_rows=200, synthetic=0.2)
    assert blended.leaves > 2 * strict.leaves, "nothing was asked of most rows"
    read = [share_read(data, moved, Layout("tree", ("ts",), tree=tree.to_json()), 40) for tree in (strict, blended)]
    assert read[1] < read[0] + 0.02


def test_thousands_of_queries_are_bounded():
    data = events(2000)
    queries = event_queries(3000, 1)
    weights = np.random.default_rng(0).pareto(1.0, 3000) + 0.01
    tree = grown(data, queries, weights=weights, leaf_rows=100)
    assert tree.leaves > 10


def test_long_lists_are_bounded():
    data = pa.table({"x": np.arange(4000)})
    lists = [f"x IN ({', '.join(str(n) for n in range(first, 4000, 97))})" for first in range(80)]
    coded = code(data, ["x"])
    boxes = boxes_of(bound(data, lists), coded)
    assert len(boxes.query) > 2000
    training = training_queries(coded, boxes, np.ones(80), 0.0, np.random.default_rng(0))
    assert len(training.query) <= 2000
    assert np.unique(training.query).tolist() == list(range(80)), "every query is still there"


# --- laws ------------------------------------------------------------------------------------------------------------


@st.composite
def asked(draw):
    """Rows of two columns of any types, and predicates at values of theirs."""
    kinds = [draw(st.sampled_from(list(VALUES))) for _ in range(2)]
    columns = [draw(arrays(kind)) for kind in kinds]
    rows = min(map(len, columns))
    data = pa.table({f"c{at}": column.slice(0, rows) for at, column in enumerate(columns)})
    coded = code(data, data.column_names)
    leaves = []
    for name, points in zip(coded.columns, coded.points, strict=True):
        values = [point for point in points if not (isinstance(point, float) and math.isnan(point))]
        leaves += [Nulls(name), Nulls(name, negated=True), Anything("unknown", (name,))]
        for low in values[:4]:
            leaves.append(Ranges(name, (Interval(low, low),)))
            leaves.append(Ranges(name, (Interval(low, None, low_open=draw(st.booleans())),), nan=True))
            leaves.append(Ranges(name, (Interval(None, low, high_open=draw(st.booleans())),)))
    leaf = st.sampled_from(leaves)
    some = st.lists(leaf, max_size=3).map(tuple)
    return data, draw(st.lists(st.one_of(leaf, some.map(All), some.map(Some)), max_size=6))


@given(asked(), st.floats(1, 20), st.sampled_from([None, 4.0]), st.sampled_from([0.0, 0.2, 1.0]))
@settings(max_examples=150)
def test_any_predicates_over_any_types_give_a_tree_that_stores_and_places_rows(case, leaf_rows, group_rows, synthetic):
    data, bounds = case
    tree = grown(data, bounds, leaf_rows=leaf_rows, group_rows=group_rows, synthetic=synthetic)
    again = Tree.from_json(tree.to_json(), tree.columns)
    paths = tree.paths(data)
    assert again.paths(data).tolist() == paths.tolist()
    assert len(np.unique(paths)) == tree.leaves or not data.num_rows, "every leaf has rows of the sample"
    assert set(tree.columns) <= set(literal_columns(bounds)) or tree.leaves == 1
