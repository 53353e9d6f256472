"""Rows are sorted inside of their row groups: none leaves its row group, and equal ones stay in their order."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_values import KINDS, VALUES, build
from zonal.worker.write.inner_order import is_sortable, sorted_inside


@st.composite
def columns(draw, rows):
    kind = draw(KINDS)
    return build(draw(st.lists(st.one_of(st.none(), VALUES[kind]), min_size=rows, max_size=rows)), kind)


@given(st.data())
def test_every_row_stays_in_its_row_group(data):
    rows = data.draw(st.integers(1, 40))
    table = pa.table({name: data.draw(columns(rows)) for name in ("a", "b", "c")})
    order = np.array(data.draw(st.permutations(range(rows))))
    starts = sorted({0, *data.draw(st.lists(st.integers(0, rows - 1), max_size=4))})
    names = data.draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True, min_size=1))
    found = sorted_inside(order, starts, table, names)
    for start, end in zip(starts, [*starts[1:], rows], strict=True):
        assert sorted(found[start:end]) == sorted(order[start:end])


@given(st.lists(st.tuples(st.integers(-5, 5), st.sampled_from(["x", "y", "z"])), min_size=1, max_size=60), st.data())
def test_rows_are_in_the_order_of_their_values_and_equal_ones_as_before(values, data):
    order = np.array(data.draw(st.permutations(range(len(values)))))
    start = data.draw(st.integers(0, len(values) - 1))
    numbers = pa.array([number for number, _ in values], pa.int16())
    texts = pa.array([text for _, text in values]).dictionary_encode()
    table = pa.table({"number": numbers, "text": texts})
    found = sorted_inside(order, sorted({0, start}), table, ["number", "text"])
    place = {row: at for at, row in enumerate(order.tolist())}
    code = texts.indices.to_pylist()

    def key(row):
        return place[row] >= start, values[row][0], code[row], place[row]

    assert found.tolist() == sorted(order.tolist(), key=key)


def test_columns_that_take_too_many_bits_are_passed_over():
    wide = pa.array([-(2**63), 2**63 - 1, 0, 5] * 5)
    few = pa.array([3, 1, 2, 1] * 5, pa.int8())
    found = sorted_inside(np.arange(20), [0], pa.table({"wide": wide, "few": few}), ["wide", "few"])
    assert few.take(pa.array(found)).to_pylist() == sorted(few.to_pylist())


def test_what_can_be_sorted_by():
    assert all(map(is_sortable, (pa.int8(), pa.decimal128(9, 2), pa.timestamp("us"), pa.float32())))
    assert is_sortable(pa.dictionary(pa.int32(), pa.string()))
    assert not any(map(is_sortable, (pa.string(), pa.list_(pa.int8()), pa.null(), pa.decimal256(60, 2))))
