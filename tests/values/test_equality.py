"""Rows compared bit by bit, in every type that a table can have."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_values import columns
from zonal.values.checksum import row_hashes
from zonal.values.equality import equal_rows
from zonal.values.selection import take_rows


def shown(column):
    """Values in a form that tells NaN and zeros of either sign apart from other values."""
    return [repr(value) for value in column.to_pylist()]


@given(columns(), st.data())
def test_rows_that_python_shows_differently_differ_and_a_row_equals_itself(column, data):
    places = st.lists(st.integers(0, max(len(column) - 1, 0)), min_size=0 if not len(column) else 1, max_size=30)
    one = np.array(data.draw(places) if len(column) else [], np.int64)
    other = np.array(data.draw(st.permutations(one.tolist())), np.int64)
    table = pa.table({"n": pa.nulls(len(column), pa.int64()), "v": column})
    first, second = take_rows(table, one), take_rows(table, other)
    expected = [a == b for a, b in zip(shown(first["v"]), shown(second["v"]), strict=True)]
    found = equal_rows(first, second).tolist()
    assert not any(is_equal for is_equal, alike in zip(found, expected, strict=True) if not alike)
    same_place = (one == other).tolist()
    assert all(is_equal for is_equal, same in zip(found, same_place, strict=True) if same)
    assert equal_rows(first, first).all()


@given(columns(), st.randoms())
def test_equal_rows_have_equal_hashes_wherever_they_are(column, random):
    table = pa.table({"v": column})
    order = list(range(len(column)))
    random.shuffle(order)
    shuffled = take_rows(table, np.array(order, np.int64))
    assert row_hashes(shuffled).tolist() == row_hashes(table)[order].tolist()
    assert equal_rows(shuffled, take_rows(table, np.array(order, np.int64))).all()


def test_a_null_equals_null_whatever_is_stored_below_it():
    stored = [pa.py_buffer(np.array(values, np.int64).tobytes()) for values in ([1, 7], [1, 8])]
    columns = [pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), values]) for values in stored]
    one, other = (pa.table({"v": column}) for column in columns)
    assert equal_rows(one, other).tolist() == [True, True]


def test_floats_are_compared_by_their_bits():
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0, 1 << 63], np.uint64)
    one, other = (pa.array(each.view(np.float64)) for each in (bits, bits[[1, 1, 3, 3]]))
    tables = [pa.table({"v": values}) for values in (one, other)]
    assert equal_rows(*tables).tolist() == [False, True, False, True]
    lists = [pa.table({"v": pa.ListArray.from_arrays([0, 2, 4], values)}) for values in (one, other)]
    assert equal_rows(*lists).tolist() == [False, False]
