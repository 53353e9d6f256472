"""Rows of every Arrow type can be put in another order."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from zonal.values.selection import take_rows

VIEW = pa.string_view()
LONG = "longer than the twelve bytes that a view holds itself"
ARRAYS = {
    "string_view": pa.array(["a", None, LONG], VIEW),
    "binary_view": pa.array([b"a", None, LONG.encode()], pa.binary_view()),
    "list": pa.array([[1], None, [2, 3]]),
    "large_list": pa.array([[1], None, [2, 3]], pa.large_list(pa.int8())),
    "list_view": pa.array([[1], None, [2, 3]], pa.list_view(pa.int8())),
    "fixed_size_list": pa.array([[1, 2], None, [2, 3]], pa.list_(pa.int8(), 2)),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8())),
    "struct of views": pa.array(
        [{"a": LONG, "b": 1}, None, {"a": None, "b": 2}], pa.struct({"a": VIEW, "b": pa.int8()})
    ),
    "list of views": pa.array([["x"], None, ["y", LONG]], pa.list_(VIEW)),
    "large list of views": pa.array([["x"], None, ["y", LONG]], pa.large_list(VIEW)),
    "fixed list of views": pa.array([["x", "y"], None, ["y", LONG]], pa.list_(VIEW, 2)),
    "list view of views": pa.array([["x"], None, ["y", LONG]], pa.list_view(VIEW)),
    "map of views": pa.array([[("a", LONG)], None, []], pa.map_(VIEW, VIEW)),
    "list of structs of views": pa.array([[{"a": "x"}], None, []], pa.list_(pa.struct({"a": pa.binary_view()}))),
    "run ends": pc.run_end_encode(pa.array([1, 1, None])),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "dense_union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 2]), pa.array(["x"])]
    ),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), None, pa.MonthDayNano([3, 2, 1])]),
    "null": pa.nulls(3),
    "uuid": pa.array([b"0" * 16, None, b"1" * 16], pa.uuid()),
    "extension over views": pa.ExtensionArray.from_storage(pa.opaque(VIEW, "a", "b"), pa.array(["a", None, "c"], VIEW)),
    "decimal256": pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal256(50, 2)),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("sliced", [False, True])
def test_rows_are_taken_in_order(name, sliced):
    array = pa.concat_arrays([ARRAYS[name]] * 2).slice(1, 3) if sliced else ARRAYS[name]
    values = array.to_pylist()
    batch = take_rows(pa.record_batch({"x": array}), np.array([2, 0, 1]))
    batch.validate(full=True)
    assert batch.column(0).type == array.type
    assert batch.column(0).to_pylist() == [values[2], values[0], values[1]]
    table = take_rows(pa.table({"x": pa.chunked_array([array, array])}), np.array([5, 0, 4, 4]))
    table.validate(full=True)
    assert table.column(0).to_pylist() == [values[2], values[0], values[1], values[1]]


def test_no_columns_and_no_rows():
    assert take_rows(pa.table({}), np.zeros(0, np.int64)).num_columns == 0
    assert take_rows(pa.table({"x": pa.array([], VIEW)}), np.zeros(0, np.int64)).num_rows == 0
