"""What an audit counts is what pruning finds; what it takes for needless obeys the laws that define it."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zonal.auditing import replay as replaying
from zonal.auditing.excess import Chances
from zonal.auditing.profit import hindrance_of, is_hopeless
from zonal.auditing.replay import replay
from zonal.predicates.bind import bind
from zonal.predicates.bound import All, Anything, Interval, Nulls, Ranges, Some, union
from zonal.skipping.files import FileIndex
from zonal.skipping.index import ColumnIndex
from zonal.skipping.line import line_of
from zonal.snapshot import UNKNOWN, Bounds, Buckets, Files, Snapshot
from zonal.sql.where import parse_where
from zonal.tables.delta.traits import traits_of as delta_traits
from zonal.tables.iceberg.traits import traits_of as iceberg_traits
from zonal.trials.today import standing

SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "f": pa.float64(),
        "s": pa.string(),
        "day": pa.date32(),
        "region": pa.string(),
        "bare": pa.int32(),
    }
)
KINDS = {"i": pa.int64(), "f": pa.float64(), "s": pa.large_binary(), "day": pa.date32(), "region": pa.large_binary()}
TEXT = st.binary(max_size=3)
POINTS = {
    "i": st.integers(-3, 12), "f": st.floats(-3, 12), "s": TEXT, "day": st.integers(-3, 12), "region": TEXT,
    "bare": st.integers(0, 3),
}  # fmt: skip


# --- random tables and queries ---------------------------------------------------------------------------------------


@st.composite
def bounds(draw, name, count):
    """Bounds that lack what metadata may lack."""
    pairs = draw(st.lists(st.tuples(POINTS[name], POINTS[name]).map(sorted), min_size=count, max_size=count))
    gaps = st.lists(st.sampled_from([False, False, True]), min_size=count, max_size=count)
    sides = [[None if gap else pair[side] for pair, gap in zip(pairs, draw(gaps), strict=True)] for side in (0, 1)]
    counts = st.lists(st.sampled_from([UNKNOWN, 0, 1, 5]), min_size=count, max_size=count)
    plain = pa.int32() if name == "day" else KINDS[name]
    lower, upper = (pa.array(side, plain).cast(KINDS[name]) for side in sides)
    nans = np.array(draw(counts) if name == "f" else [0] * count, np.int64)
    return Bounds(lower, upper, np.array(draw(counts), np.int64), nans)


@st.composite
def snapshots(draw):
    count = draw(st.integers(0, 8))
    numbers = st.lists(st.integers(0, 3), min_size=count, max_size=count).map(lambda found: np.array(found, np.int64))
    own = {name: draw(bounds(name, count)) for name in draw(st.sets(st.sampled_from(["i", "f", "s", "day"])))}
    told = {name: draw(bounds(name, count)) for name in draw(st.sets(st.sampled_from(["i", "day", "region"])))}
    buckets = tuple(
        Buckets("i", lambda value, by=by: None if value == 7 else value % by, draw(numbers) - 1)
        for by in draw(st.lists(st.sampled_from([2, 3]), max_size=2))
    )
    rows = draw(st.lists(st.sampled_from([UNKNOWN, 0, 1, 5, 1000]), min_size=count, max_size=count))
    return snapshot_of(own, count, told=told, rows=rows, partition=draw(numbers), buckets=buckets,
                       sizes=draw(numbers) * 10)  # fmt: skip


def snapshot_of(own, count, *, told=None, rows=1000, partition=0, buckets=(), sizes=10):
    rows, partition, sizes = (
        np.array(each, np.int64) if np.ndim(each) else np.full(count, each) for each in (rows, partition, sizes)
    )
    zeros = np.zeros(count, np.int64)
    files = Files(
        pa.array([f"f{number}" for number in range(count)], pa.string()), sizes, rows, zeros, zeros, zeros,
        pa.nulls(count, pa.string()), partition, ("a", "b", "c", "d"), own, told or {}, buckets,
    )  # fmt: skip
    return Snapshot("t", "delta", "/t", 1, None, SCHEMA, (), files, {}, traits=delta_traits("/t", {}))


@st.composite
def leaves(draw):
    name = draw(st.sampled_from(sorted(POINTS)))
    kind = draw(st.sampled_from(["range", "range", "in", "null", "anything", "constant"]))
    if kind == "null":
        return Nulls(name, draw(st.booleans()))
    if kind == "anything":
        return Anything("a mystery", (name,))
    if kind == "constant":
        return draw(st.sampled_from([All(()), Some(())]))
    nan = name == "f" and draw(st.booleans())
    if kind == "in":
        points = draw(st.lists(POINTS[name], max_size=12))
        return Ranges(name, union(Interval(point, point) for point in points), nan)
    limits = st.one_of(st.none(), POINTS[name])
    flags = st.booleans() if name in ("f", "s", "region") else st.just(False)
    found = draw(st.lists(st.builds(Interval, limits, limits, flags, flags), max_size=3))
    return Ranges(
        name, union(each for each in found if each.low is None or each.high is None or each.low <= each.high), nan
    )


PREDICATES = st.recursive(
    leaves(),
    lambda inner: st.builds(
        lambda joint, parts: joint(tuple(parts)), st.sampled_from([All, Some]), st.lists(inner, max_size=4)
    ),
    max_leaves=6,
)


def weights_of(count):
    weights = np.arange(1, count + 1, dtype=np.float64)
    return weights / max(weights.sum(), 1)


# --- counts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(snapshots(), st.lists(PREDICATES, max_size=4))
def test_a_replay_counts_exactly_what_pruning_finds(snapshot, asked):
    files, weights = snapshot.files, weights_of(len(asked))
    found = replay(snapshot, asked, weights)
    read = np.zeros(len(files))
    skipped, by_partition = {}, {}
    for query, (bound, weight) in enumerate(zip(asked, weights, strict=True)):
        pruned = FileIndex(snapshot).prune(bound)
        assert found.files[query] == pruned.kept.sum()
        assert found.bytes[query] == files.sizes[pruned.kept].sum()
        assert found.partition_files[query] == pruned.in_partitions.sum()
        assert found.partition_bytes[query] == files.sizes[pruned.in_partitions].sum()
        kept = set(files.partition[pruned.in_partitions].tolist())
        assert set(np.flatnonzero(found.in_partition[:, query]).tolist()) == kept
        read[pruned.kept] += weight
        for sums, masks in ((skipped, pruned.by_bounds), (by_partition, pruned.by_partition)):
            for name, mask in masks.items():
                amount = np.array(
                    [mask.sum() / max(len(files), 1), files.sizes[mask].sum() / max(files.sizes.sum(), 1)]
                )
                sums[name] = sums.get(name, 0) + weight * amount
    assert found.read == pytest.approx(read)
    assert {name: pytest.approx(tuple(sums)) for name, sums in skipped.items()} == found.skipped
    assert {name: pytest.approx(tuple(sums)) for name, sums in by_partition.items()} == found.skipped_by_partition


def test_partitions_of_nulls_are_told_apart():
    told = column("region", [None, None, None, b"a"], [None, None, None, b"a"], nulls=[1000, 0, UNKNOWN, 0])
    snapshot = snapshot_of({}, 4, told=told, partition=[0, 1, 2, 3], sizes=[1, 2, 4, 8])
    found = replay(snapshot, [Nulls("region"), Nulls("region", negated=True)], weights_of(2))
    assert found.partition_bytes.tolist() == found.bytes.tolist() == [1 + 4, 2 + 4 + 8]
    assert found.in_partition.T.astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 1, 1]]
    assert set(found.skipped_by_partition) == {"region"}


def test_buckets_are_told_apart():
    buckets = Buckets("i", lambda value: value % 4, np.array([0, 1, 2, UNKNOWN]))
    snapshot = snapshot_of({}, 4, partition=[0, 1, 2, 3], sizes=[1, 2, 4, 8], buckets=(buckets,))
    found = replay(snapshot, [Ranges("i", (Interval(5, 5),))], weights_of(1))
    assert found.partition_bytes.tolist() == [2 + 8]
    assert found.in_partition[:, 0].astype(int).tolist() == [0, 1, 0, 1]
    assert found.skipped_by_partition == {"bucket of i": (0.5, pytest.approx(1 / 3))}


def test_two_numbers_of_buckets_of_one_column_both_exclude():
    by_two, by_three = (
        Buckets("i", lambda value, by=by: value % by, np.array(values, np.int64))
        for by, values in ((2, [0, 1, UNKNOWN, UNKNOWN]), (3, [UNKNOWN, UNKNOWN, 1, 2]))
    )
    snapshot = snapshot_of({}, 4, buckets=(by_two, by_three))
    found = FileIndex(snapshot).prune(Ranges("i", (Interval(4, 4),)))
    assert found.kept.tolist() == [True, False, True, False]
    assert found.by_partition["bucket of i"].tolist() == [False, True, False, True]
    counted = replay(snapshot, [Ranges("i", (Interval(4, 4),))], np.ones(1))
    assert counted.partition_files.tolist() == [2]


def test_lists_have_counts_of_nulls_and_no_bounds():
    kind = pa.list_(pa.int64())
    index = ColumnIndex(
        Bounds(pa.nulls(3, kind), pa.nulls(3, kind), np.array([0, 5, UNKNOWN]), np.zeros(3)), np.array([5, 5, 5])
    )
    assert index.all_null.tolist() == [False, True, False]
    assert index.might_lie_in(Ranges("l", (Interval(None, None),))).tolist() == [True, False, True]


def test_conditions_on_one_column_are_counted_together():
    own = column("i", [0, 10, 20, 30], [9, 19, 29, 39])
    halves = [Ranges("i", (Interval(10, None),)), Ranges("i", (Interval(None, 29),))]
    found = replay(snapshot_of(own, 4, sizes=[1, 2, 3, 4]), [All(tuple(halves))], weights_of(1))
    assert found.skipped == {"i": (0.5, 0.5)}
    assert found.read.tolist() == [0, 1, 1, 0]


@settings(max_examples=30, deadline=None)
@given(snapshots(), st.lists(PREDICATES, min_size=1, max_size=3))
def test_advice_and_audits_measure_a_table_alike(snapshot, asked):
    weights = weights_of(len(asked))
    now, found = standing(snapshot, asked, weights), replay(snapshot, asked, weights, excess=False)
    total = max(int(snapshot.files.sizes.sum()), 1)
    assert now.current.shares.tolist() == (found.bytes / total).tolist()
    assert now.partition_only.shares.tolist() == (found.partition_bytes / total).tolist()
    assert (now.in_partition == found.in_partition).all()
    assert not found.excess.any()
    assert not found.excess_files.any()


@given(st.lists(st.one_of(st.none(), st.binary(max_size=3), st.just(b"\xff" * 3)), max_size=20))
def test_texts_get_their_place_by_their_bytes(values):
    array, count = pa.array(values, pa.large_binary()), np.zeros(len(values), np.int64)
    index = ColumnIndex(Bounds(array, array, count, count), count)
    known = sorted({value for value in values if value is not None})
    assert index.values.tolist() == known
    assert index.lower.tolist() == [-1 if value is None else known.index(value) for value in values]
    assert index.upper.tolist() == [len(known) if value is None else known.index(value) for value in values]


# --- excess ----------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(snapshots(), st.lists(PREDICATES, max_size=4))
def test_what_is_read_for_nothing_is_a_part_of_what_is_read(snapshot, asked):
    found = replay(snapshot, asked, weights_of(len(asked)))
    assert (found.excess >= 0).all()
    assert (found.excess <= found.read).all()
    assert (found.excess_files >= 0).all()
    assert (found.excess_files <= found.files + 1e-9).all()
    assert (found.excess_bytes <= found.bytes + 1e-9).all()
    assert (found.excess_bytes >= 0).all()


def column(name, lower, upper, nulls=0, nans=0):
    plain = pa.int32() if name == "day" else KINDS[name]
    sides = [pa.array(side, plain).cast(KINDS[name]) for side in (lower, upper)]
    counts = [np.broadcast_to(np.asarray(each, np.int64), len(lower)).copy() for each in (nulls, nans)]
    return {name: Bounds(*sides, *counts)}


def nothing(own, bound, **options):
    count = len(next(iter(own.values())).lower)
    return Chances(snapshot_of(own, count, **options)).of_nothing(bound, np.arange(count))


@given(st.sampled_from(["i", "f", "s", "day"]), st.data())
def test_a_file_inside_of_the_asked_range_is_never_read_for_nothing(name, data):
    lower, upper = sorted(data.draw(st.tuples(POINTS[name], POINTS[name])))
    others = sorted(data.draw(st.tuples(POINTS[name], POINTS[name])))
    own = column(name, [lower, others[0]], [upper, others[1]])
    around = Ranges(name, (Interval(data.draw(st.sampled_from([None, lower])), upper),))
    assert nothing(own, around, rows=data.draw(st.integers(1, 1000)))[0] == 0


@given(st.sampled_from(["i", "f", "day"]), st.lists(st.integers(0, 1000), min_size=2, max_size=20), st.integers(0, 5))
def test_the_wider_a_file_around_the_asked_range_the_likelier_it_is_read_for_nothing(name, margins, width):
    margins = sorted(margins)
    own = column(name, [0 - margin for margin in margins], [width + margin for margin in margins])
    found = nothing(own, Ranges(name, (Interval(0, width),)), rows=100)
    assert (np.diff(found) >= -1e-12).all()
    assert found[0] < found[-1] or margins[0] == margins[-1] or found[0] == pytest.approx(found[-1])


def test_the_chance_follows_from_the_rows_and_the_ranges():
    own = column("i", [0, 0, 0, 0], [9, 9, 99, None], nulls=[0, 50, 0, 0])
    chances = Chances(snapshot_of(own, 4, rows=100))
    row = chances.of_row(Ranges("i", (Interval(3, 3), Interval(5, 6))), np.arange(4))
    assert row == pytest.approx([0.3, 0.15, 0.03, 1])
    assert nothing(own, Ranges("i", (Interval(3, 3),)), rows=100) == pytest.approx([0.9**100, 0.95**100, 0.99**100, 0])


def test_columns_count_as_independent():
    own = {**column("i", [0], [9]), **column("day", [0], [99])}
    chances = Chances(snapshot_of(own, 1))
    one, two = Ranges("i", (Interval(0, 0),)), Ranges("day", (Interval(0, 19),))
    assert chances.of_row(All((one, two)), np.arange(1)) == pytest.approx([0.02])
    assert chances.of_row(Some((one, two)), np.arange(1)) == pytest.approx([1 - 0.9 * 0.8])
    assert chances.of_row(All((one, Anything("a mystery"))), np.arange(1)) == pytest.approx([0.1])


@pytest.mark.parametrize("name", ["i", "f"])
def test_many_values_count_as_few_do(name):
    own = column(name, [0, 30, 5], [99, 60, 5])
    at, points = np.arange(3), [Interval(value, value) for value in range(0, 100, 5)]
    chances = Chances(snapshot_of(own, 3))
    found = chances.of_row(Ranges(name, tuple(points)), at)
    parts = sum(chances.of_row(Ranges(name, (point,)), at) for point in points)
    assert found == pytest.approx(np.minimum(parts, 1))


def test_single_texts_are_one_of_the_known_values():
    own = column("s", [b"a", b"b", b"c"], [b"z", b"d", b"c"])
    row = Chances(snapshot_of(own, 3)).of_row(Ranges("s", (Interval(b"c", b"c"),)), np.arange(3))
    assert row == pytest.approx([1 / 5, 1 / 3, 1])


def test_a_range_of_floats_is_worth_its_length_and_not_one_of_the_known_values():
    snapshot = snapshot_of(column("f", [0.0], [100.0]), 1)
    chance = Chances(snapshot).of_row(Ranges("f", (Interval(50.0, 50.05),)), np.array([0]))
    assert chance == pytest.approx([0.0005])
    single = Chances(snapshot).of_row(Ranges("f", (Interval(50.0, 50.0),)), np.array([0]))
    assert single == pytest.approx([0.5]), "one of two values that are known"


def test_nulls_count_by_their_number():
    own = column("i", [0, 0, None], [9, 9, None], nulls=[0, 25, UNKNOWN])
    chances = Chances(snapshot_of(own, 3, rows=100))
    assert chances.of_row(Nulls("i"), np.arange(3)) == pytest.approx([0, 0.25, 1])
    assert chances.of_row(Nulls("i", negated=True), np.arange(3)) == pytest.approx([1, 0.75, 1])


def test_a_nan_that_may_be_there_is_needed():
    own = column("f", [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], nans=[0, 10, UNKNOWN])
    row = Chances(snapshot_of(own, 3, rows=100)).of_row(Ranges("f", (Interval(5.0),), nan=True), np.arange(3))
    assert row == pytest.approx([0, 0.1, 1])


def test_partition_values_tell_of_columns_without_bounds():
    told = column("region", [b"a", b"b"], [b"a", b"b"])
    own = column("i", [0, 0], [9, 9])
    chances = Chances(snapshot_of(own, 2, told=told))
    bound = All((Ranges("region", (Interval(b"a", b"a"),)), Ranges("i", (Interval(0, 0),))))
    assert chances.of_row(bound, np.arange(2)) == pytest.approx([0.1, 0])


def test_an_empty_file_is_read_for_nothing_and_one_of_unknown_rows_is_not():
    own = column("i", [0, 0], [9, 9], nulls=UNKNOWN)
    assert nothing(own, Ranges("i", (Interval(3, 3),)), rows=[0, UNKNOWN]).tolist() == [1, 0]


@pytest.mark.parametrize(
    "values",
    [
        np.array([-(2**63), 0, 2**63 - 1]),
        np.array([0, 2**64 - 1], np.uint64),
        np.array([-(10**30), 0, 10**30], object),
        np.array([-math.inf, 0.0, math.inf]),
        np.array([b"", b"\xff" * 20], object),
        np.array([b"abcdef", b"abcxyz"], object),
    ],
)
def test_the_line_reaches_from_the_first_value_to_the_last(values):
    line = line_of(values)
    assert np.isfinite(line.positions).all()
    assert (np.diff(line.positions) > 0).all()
    whole = line.span(Interval())
    assert whole == (0, line.positions[-1] + line.step)
    first, last = values.tolist()[0], values.tolist()[-1]
    assert line.span(Interval(first, last)) == whole
    assert line.span(Interval(first, first)) == (0, line.step)


@given(st.lists(st.integers(-20, 20), min_size=1, unique=True).map(sorted), st.integers(-50, 50), st.integers(0, 50))
def test_a_span_is_as_long_as_the_part_of_the_interval_on_the_line(values, low, width):
    line = line_of(np.array(values))
    start, end = line.span(Interval(low, low + width))
    assert max(end - start, 0) == max(min(low + width, values[-1]) - max(low, values[0]) + 1, 0)


def test_of_many_files_some_stand_for_their_neighbors(monkeypatch):
    widths = np.repeat([10, 1000], 500)
    own = column("i", np.zeros(1000, np.int64), widths - 1)
    snapshot, asked = snapshot_of(own, 1000, rows=20), [Ranges("i", (Interval(3, 3),))] * 7
    exact = replay(snapshot, asked, weights_of(7))
    monkeypatch.setattr(replaying, "_MOST_FILES", 100)
    found = replay(snapshot, asked, weights_of(7))
    assert found.excess_files == pytest.approx(exact.excess_files, rel=0.02)
    assert found.excess == pytest.approx(exact.excess, abs=0.02)
    assert (found.files == exact.files).all()


# --- who can't be helped ---------------------------------------------------------------------------------------------

TOLD = snapshot_of(
    {**column("i", [0], [9]), **column("f", [0.0], [1.0], nans=UNKNOWN), **column("s", [b"a"], [b"b"])}, 1
)


def hindrance(where, snapshot=TOLD):
    return hindrance_of(bind(parse_where(where), SCHEMA), snapshot)


@pytest.mark.parametrize(
    "where",
    ["i = 3", "i = 3 AND lower(s) = 'x'", "bare = 1 AND i = 3", "f < 3", "f BETWEEN 1 AND 2", "i IS NULL", "FALSE"],
)
def test_queries_that_a_layout_can_help_have_no_hindrance(where):
    assert hindrance(where) == ("", "")
    assert not is_hopeless(bind(parse_where(where), SCHEMA))


@pytest.mark.parametrize(
    ("where", "reason", "remedy", "hopeless"),
    [
        ("TRUE", "no filter", "Filter a column", True),
        ("lower(s) = 'x'", "the function lower", "Compare 's' itself", True),
        ("i = 3 OR lower(s) = 'x'", "the function lower", "Compare 's' itself", True),
        ("s LIKE '%x'", "wildcard", "Begin the pattern with text", True),
        ("CAST(i AS VARCHAR) LIKE '3%'", "a pattern for a cast", "Compare 'i' itself", True),
        ("bare = 3", "no file has bounds of 'bare'", "first 32 columns", False),
        ("i = 3 OR bare = 3", "no file has bounds of 'bare'", "dataSkippingStatsColumns", False),
        ("bare IS NULL", "no file has counts of nulls of 'bare'", "rewrite", False),
        ("f > 3", "'f' has no upper limit: NaN", "an upper limit", False),
        ("f > 3 AND bare = 1", "'f' has no upper limit", "dataSkippingStatsColumns", False),
    ],
)
def test_a_hindrance_says_why_and_what_helps(where, reason, remedy, hopeless):
    found = hindrance(where)
    assert reason in found[0]
    assert remedy in found[1]
    assert is_hopeless(bind(parse_where(where), SCHEMA)) is hopeless


def test_iceberg_counts_nans_and_names_its_own_property():
    snapshot = replace(TOLD, format="iceberg", traits=iceberg_traits("t", SCHEMA, {}))
    assert hindrance("f > 3", snapshot) == ("", "")
    assert "write.metadata.metrics.column.bare" in hindrance("bare = 1", snapshot)[1]


def test_partition_values_and_buckets_help_without_bounds():
    told = snapshot_of(
        {}, 1, told=column("region", [b"a"], [b"a"]), buckets=(Buckets("i", lambda v: v, np.zeros(1, int)),)
    )
    assert hindrance("region = 'a'", told) == ("", "")
    assert hindrance("i = 3", told) == ("", "")
    assert "no file has bounds of 'i'" in hindrance("i > 3", told)[0]
