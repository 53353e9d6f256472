"""How wide files are in a column."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.auditing.blame.widths import measured
from zonal.snapshot import Bounds


def bounds(pairs, kind=None):
    kind = kind or pa.int64()
    lower, upper = (pa.array(list(side), kind) for side in zip(*pairs, strict=True))
    return Bounds(lower, upper, np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64))


def widths(given_bounds, rows):
    return measured(given_bounds, rows).widths


TEN = np.full(3, 10)


def test_widths_are_parts_of_the_whole_range():
    assert widths(bounds([(0, 10), (10, 20), (0, 40)]), TEN).tolist() == [0.25, 0.25, 1.0]


def test_texts_are_placed_behind_what_all_have_in_common():
    found = widths(bounds([(b"id-a", b"id-b"), (b"id-b", b"id-c"), (b"id-a", b"id-e")], pa.large_binary()), TEN)
    assert found.tolist() == pytest.approx([0.25, 0.25, 1.0])


def test_a_file_of_one_value_is_as_wide_as_one_of_the_bounds():
    assert widths(bounds([(1, 1), (2, 2), (1, 4)]), TEN).tolist() == pytest.approx([1 / 3, 1 / 3, 1])


def test_a_missing_bound_reaches_to_the_end_and_two_to_both():
    found = widths(bounds([(0, 100), (None, None), (75, None)]), TEN)
    assert found.tolist() == [1.0, 1.0, 0.25]


def test_files_of_nulls_alone_have_no_width():
    given_bounds = bounds([(0, 100), (None, None), (0, 50)])
    given_bounds.nulls[1] = 10
    found = widths(given_bounds, TEN)
    assert np.isnan(found[1])
    assert found[[0, 2]].tolist() == [1.0, 0.5]


def test_no_bounds_at_all_are_no_widths():
    assert measured(bounds([(None, None)] * 3), TEN) is None


def test_outliers_dont_put_all_files_in_one_spot():
    pairs = [(number, number + 1) for number in range(20)] + [(0, 10**15)]
    found = widths(bounds(pairs), np.full(21, 10))
    assert found[:20] == pytest.approx(np.full(20, 1 / 21)), "by rank: 22 distinct bounds"
    assert found[20] == 1


@given(
    st.lists(
        st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 2**40)).map(lambda p: (p[0], p[0] + p[1])),
        min_size=1,
        max_size=20,
    )
)
def test_widths_lie_between_nothing_and_everything_and_grow_with_the_file(pairs):
    whole = (min(low for low, _ in pairs), max(high for _, high in pairs))
    found = widths(bounds([*pairs, whole]), np.full(len(pairs) + 1, 10))
    assert (found > 0).all()
    assert (found <= 1).all()
    assert found[-1] == found.max()
