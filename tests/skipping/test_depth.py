"""Depth and overlaps against their definitions, counted one by one."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.skipping.depth import depth_of
from zonal.snapshot import UNKNOWN, Bounds

INTEGERS = pa.int64()


def bounds(pairs, kind=INTEGERS, nulls=None):
    low, high = zip(*pairs, strict=True)
    counts = np.zeros(len(pairs), np.int64) if nulls is None else np.array(nulls)
    return Bounds(pa.array(low, kind), pa.array(high, kind), counts, np.zeros(len(pairs), np.int64))


def measure(pairs, rows=10, **options):
    return depth_of("x", bounds(pairs, **options), np.full(len(pairs), rows))


RANGES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda p: (p[0], p[0] + p[1])), min_size=1, max_size=12
)


@given(RANGES)
def test_depth_and_overlaps_are_what_counting_gives(pairs):
    found = measure(pairs)
    cover = [sum(low <= x <= high for low, high in pairs) for x in range(20)]
    depths = [max(cover[low : high + 1]) for low, high in pairs]
    overlaps = [sum(a <= high and b >= low for a, b in pairs) - 1 for low, high in pairs]
    assert found.average_depth == pytest.approx(np.mean(depths))
    assert found.average_overlaps == pytest.approx(np.mean(overlaps))
    assert found.constant_files == sum(low == high for low, high in pairs)
    assert sum(found.histogram.values()) == len(pairs)
    assert 1 <= found.lookup_files <= len(pairs)


def test_files_apart_are_read_alone():
    found = measure([(10 * n, 10 * n + 9) for n in range(50)])
    assert (found.average_depth, found.average_overlaps, found.histogram) == (1.0, 0.0, {1: 50})
    assert found.lookup_files == pytest.approx(1.0)


def test_files_over_everything_are_all_read():
    for kind, pairs in (
        (pa.int64(), [(n % 3, 10**9 - n % 3) for n in range(50)]),
        (pa.large_binary(), [(b"id-%03d" % n, b"id-zz%03d" % n) for n in range(50)]),
        (pa.float64(), [(-float("inf"), float("inf"))] * 50),
    ):
        found = measure(pairs, kind=kind)
        assert found.lookup_files == pytest.approx(50, rel=0.05), str(kind)
        assert found.average_depth == 50
        assert found.histogram == {64: 50}


def test_a_file_without_bounds_is_always_read():
    found = measure([(0, 1), (5, 6), (None, None), (8, None)])
    assert found.files_with_bounds == 2
    assert found.lookup_files == pytest.approx(3.0), "one of the two, and both that can't be told"


def test_files_of_nulls_meet_no_lookup():
    found = measure([(0, 1), (None, None)], nulls=[0, 10])
    assert found.lookup_files == pytest.approx(1.0)
    assert measure([(None, None)], nulls=[10]).lookup_files == 0.0
    unknown = depth_of("x", bounds([(None, None)], nulls=[UNKNOWN]), np.array([10]))
    assert unknown.lookup_files == 1.0


def test_constant_files_share_their_value():
    found = measure([(7, 7)] * 5 + [(0, 10)])
    assert found.constant_files == 5
    assert found.lookup_files == pytest.approx((50 * 6 + 10 * (1 + 5 * 0)) / 60, rel=0.01)


def test_the_share_of_bytes_weighs_files_by_their_size():
    pairs, sizes = [(0, 9), (10, 19), (None, None)], np.array([10, 30, 60])
    found = depth_of("x", bounds(pairs), np.array([100, 300, 600]), sizes=sizes)
    # a look-up reads the first file in a quarter of the cases, the second in the others, and always the third
    assert found.lookup_share == pytest.approx((0.25 * 10 + 0.75 * 30 + 60) / 100)
    assert measure(pairs).lookup_share is None
    assert depth_of("x", bounds([(0, 0)]), np.array([5]), sizes=np.array([7])).lookup_share == 1.0


def test_a_bucket_is_read_alone_and_files_without_one_always():
    pairs, rows = [(None, None)] * 5, np.full(5, 10)
    buckets = np.array([0, 0, 1, 1, UNKNOWN])
    found = depth_of("x", bounds(pairs), rows, [buckets], np.full(5, 100))
    assert found.lookup_files == pytest.approx(2 + 1)
    assert found.lookup_share == pytest.approx(3 / 5)
