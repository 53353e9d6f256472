"""`cluster_batch` keeps every row, sorts by the layout, and makes files narrower."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zonal
from support.arrow_values import arrays, order_key
from zonal import Layout, ZonalAdvice, ZonalError, cluster_batch
from zonal.layouts.cuts import LARGEST, SMALLEST
from zonal.layouts.layout import CURVES
from zonal.layouts.tree import Tree

LAYOUTS = st.sampled_from(CURVES)


@st.composite
def tables(draw):
    columns = [draw(arrays(max_size=25)) for _ in range(draw(st.integers(1, 3)))]
    rows = min(len(column) for column in columns)
    named = {f"c{i}": column.slice(0, rows) for i, column in enumerate(columns)}
    return pa.table({**named, "payload": pa.array([[{"row": i}] for i in range(rows)])})


def as_bytes(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@given(tables(), LAYOUTS)
def test_the_same_rows_come_out(table, kind):
    by = [name for name in table.column_names if name != "payload"]
    untouched = pa.ipc.open_stream(as_bytes(table)).read_all()
    result = cluster_batch(table, by, layout=kind, detail=True)
    assert sorted(result.order.tolist()) == list(range(table.num_rows)), "every row once"
    assert result.data.schema == table.schema
    result.data.validate(full=True)
    before, after = (list(map(repr, data.to_pylist())) for data in (table, result.data))
    assert after == [before[row] for row in result.order], "rows stay whole"
    assert list(map(repr, untouched.to_pylist())) == before, "the input was written into"


@given(tables(), st.sampled_from(["zorder", "hilbert"]))
def test_rows_of_equal_keys_keep_their_order(table, kind):
    result = cluster_batch(table, ["c0"], layout=kind, detail=True)
    (key,) = result.keys
    assert (np.diff(key.astype(object)) >= 0).all(), "sorted by the key"
    same = np.flatnonzero(key[1:] == key[:-1])
    assert (result.order[same + 1] > result.order[same]).all(), "stable"


@given(tables())
def test_linear_sorts_by_the_exact_values(table):
    by = [name for name in table.column_names if name != "payload"]
    rows = [[order_key(row[name]) for name in by] for row in cluster_batch(table, by, layout="linear").to_pylist()]
    assert rows == sorted(rows)


@given(st.integers(1, 3000), st.integers(10, 400), LAYOUTS, st.sampled_from([1, 2, 30, 10**9]), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_files_keep_their_sizes_however_heavy_a_value_is(rows, file_rows, kind, distinct, seed):
    rng = np.random.default_rng(seed)
    table = pa.table(
        {"x": rng.integers(0, distinct, rows), "y": rng.integers(0, distinct, rows), "z": rng.random(rows)}
    )
    result = cluster_batch(table, ["x", "y"], layout=kind, file_rows=file_rows, detail=True)
    sizes = np.diff(np.append(result.files, rows))
    assert sizes.max() <= LARGEST * file_rows
    assert sizes.min() >= min(rows, SMALLEST * file_rows)
    assert len(result.row_groups) == len(result.files)


def test_heavy_keys_are_split_by_the_other_columns():
    rng = np.random.default_rng(0)
    table = pa.table({"x": np.zeros(20_000, np.int64), "other": rng.integers(0, 10**6, 20_000), "note": [[1]] * 20_000})
    result = cluster_batch(table, "x", file_rows=1000, detail=True)
    other = result.data["other"].to_numpy()
    spans = [np.ptp(part) for part in np.split(other, result.files[1:])]
    assert np.mean(spans) < 0.1 * 10**6, "files of one key are narrow in the next column"


def test_heavy_rows_that_are_all_equal_are_split_by_count():
    table = pa.table({"x": [1] * 5000, "y": ["same"] * 5000})
    result = cluster_batch(table, "x", file_rows=500, detail=True)
    sizes = np.diff(np.append(result.files, 5000))
    assert SMALLEST * 500 <= sizes.min() <= sizes.max() <= LARGEST * 500
    assert result.order.tolist() == list(range(5000)), "equal rows stay in their order"


def scanned(result, column, width):
    """Mean share of the rows in files that a range of this share of the column can't skip."""
    values = result.data[column].to_numpy()
    parts = np.split(values, result.files[1:])
    low, high = np.array([part.min() for part in parts]), np.array([part.max() for part in parts])
    sizes = np.array([len(part) for part in parts]) / len(values)
    starts = np.quantile(values, np.linspace(0, 1 - width, 50))
    ends = np.quantile(values, np.linspace(width, 1, 50))
    return np.mean([sizes[(low <= end) & (high >= start)].sum() for start, end in zip(starts, ends, strict=True)])


@pytest.mark.parametrize("kind", ["zorder", "hilbert"])
def test_files_become_narrow_in_every_column(kind):
    """64 files over two skewed columns: a curve cuts each into about eight ranges; raw values would not."""
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.lognormal(0, 3, 100_000), "b": rng.integers(0, 10**12, 100_000)})
    result = cluster_batch(table, ["a", "b"], layout=kind, file_rows=100_000 // 64, detail=True)
    for column in ("a", "b"):
        assert scanned(result, column, 0.01) < 0.17, f"{kind} leaves {column} wide"


def test_ranks_of_an_earlier_run_make_comparable_keys():
    rng = np.random.default_rng(0)
    first, later = (pa.table({"a": rng.random(1000), "b": rng.random(1000)}) for _ in range(2))
    before = cluster_batch(first, ["a", "b"], detail=True)
    stored = zonal.Ranks.from_json(before.ranks.to_json())
    after = cluster_batch(later, layout=before.layout, ranks=stored, detail=True)
    again = cluster_batch(pa.concat_tables([first, later]), layout=before.layout, ranks=stored, detail=True)
    assert sorted(again.keys[0].tolist()) == sorted([*before.keys[0].tolist(), *after.keys[0].tolist()])


def test_wide_keys_for_those_who_ask():
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.random(2000) for name in "abcd"})
    for kind in CURVES:
        layout = Layout(kind, ("a", "b", "c", "d"), bits=32)
        result = cluster_batch(table, layout=layout, file_rows=100, detail=True)
        assert len(result.keys) == 2
        assert sorted(result.order.tolist()) == list(range(2000))
        if kind != "linear":
            keys = list(zip(*(word.tolist() for word in result.keys), strict=True))
            assert keys == sorted(keys)


def test_a_large_input_is_ranked_by_a_sample():
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.random(300_000), "b": rng.random(300_000), "wide": pa.array(["x" * 50] * 300_000)})
    result = cluster_batch(table, ["a", "b"], file_rows=5000, detail=True)
    assert result.ranks["a"].rows == 262_144
    assert scanned(result, "a", 0.01) < 0.2
    assert pc.sum(result.data["a"]).as_py() == pytest.approx(pc.sum(table["a"]).as_py())


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("kind", CURVES)
def test_no_rows_and_one_row(rows, kind):
    table = pa.table({"x": pa.array([5] * rows, pa.int64()), "s": pa.array(["a"] * rows, pa.string())})
    result = cluster_batch(table, ["x", "s"], layout=kind, detail=True)
    assert result.data.equals(table)
    assert len(result.files) == rows


def test_batches_stay_batches_and_metadata_stays():
    schema = pa.schema([pa.field("x", pa.int64(), False, {"PARQUET:field_id": "3"})], {"owner": "me"})
    batch = pa.record_batch([pa.array([3, 1, 2])], schema=schema)
    clustered = cluster_batch(batch, "x")
    assert isinstance(clustered, pa.RecordBatch)
    assert clustered.schema.equals(schema, check_metadata=True)
    assert clustered.column(0).to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Say which columns"),
        ({"by": ["x"], "layout": "zoder"}, "Unknown layout 'zoder'. Did you mean 'zorder'"),
        ({"by": ["x"], "layout": "zorder(x)"}, "names its columns already"),
        ({"by": []}, "at least one column"),
        ({"by": ["x", "x"]}, "named twice"),
        ({"by": ["xx"]}, "Unknown column 'xx'. Did you mean 'x'"),
        ({"by": ["tags"]}, "'tags' has type"),
        ({"by": ["x"], "file_rows": 0}, "file_rows=0"),
        ({"layout": "zorder(x, bits=40)"}, "bits=40 is not between"),
    ],
)
def test_bad_calls_are_explained(arguments, message):
    with pytest.raises(ZonalError, match=message):
        cluster_batch(pa.table({"x": [1], "tags": [[1]]}), **arguments)


def test_other_data_is_refused():
    with pytest.raises(ZonalError, match="takes a pyarrow RecordBatch or Table, not list"):
        cluster_batch([1, 2], by="x")


def test_many_columns_get_advice():
    table = pa.table({name: [1.0, math.nan, None] for name in "abcde"})
    with pytest.warns(ZonalAdvice, match="over 5 columns"):
        cluster_batch(table, list("abcde"))


@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_a_tree_orders_rows_by_its_leaves(rows):
    rng = np.random.default_rng(1)
    table = pa.table(
        {"x": rng.integers(0, 100, rows), "s": rng.choice(["a", "m", "z"], rows).tolist(), "n": range(rows)}
    )
    table = table.set_column(1, "s", table["s"].cast(pa.string()))
    nodes = [(0, 0), (1, 0), (-1, -1), (-1, -1), (-1, -1)]
    column, cut = np.array(nodes).T
    tree = Tree(("x", "s"), ("int", "bytes"), ((50,), (b"m",)), column, cut)
    result = cluster_batch(table, layout=str(tree.layout()), file_rows=1000, detail=True)
    assert sorted(result.data["n"].to_pylist()) == list(range(rows))
    path, curve = result.keys
    assert path.tolist() == np.sort(tree.paths(table)).tolist()
    assert path.tolist() == tree.paths(result.data).tolist()
    inside = path[1:] == path[:-1]
    assert (curve[1:][inside] >= curve[:-1][inside]).all(), "within a leaf rows follow the curve"
    if rows == 5000:
        assert len(result.files) == 5
        assert set(np.flatnonzero(~inside) + 1) <= set(result.files.tolist()), "files end where leaves do"
        assert all((groups[0] == 0) for groups in result.row_groups)


def test_salt_spreads_but_loses_nothing():
    table = pa.table({"x": [1] * 900 + [2] * 100, "y": list(range(1000))})
    result = cluster_batch(table, layout="zorder(x, y, salt=3)", file_rows=100, detail=True)
    assert sorted(result.data["y"].to_pylist()) == list(range(1000))
    assert len(np.unique(result.keys[0])) > 900
