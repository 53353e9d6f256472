"""NaN and -0.0 in what zonal writes: a leaf that holds one has no statistics, or dictionary, and others keep theirs."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cluster_tables import home
from zonal.errors import ZonalError
from zonal.worker.exchange import payload
from zonal.worker.write.leaves import Odd, leaves_of, odd_leaves
from zonal.worker.write.metrics import FileMetrics

NAN = math.nan
FLOATS = st.none() | st.sampled_from([NAN, 1.5, -0.0, math.inf, -math.inf])
PAIR = pa.struct({"x": pa.float32(), "s": pa.string()})
SCHEMA = pa.schema(
    {
        "f": pa.float64(),
        "half": pa.float16(),
        "st": pa.struct({"a": pa.int64(), "in": PAIR}),
        "many": pa.list_(pa.float64()),
        "pairs": pa.map_(pa.float32(), pa.list_(pa.float64())),
        "deep": pa.large_list(pa.struct({"y": pa.list_(PAIR)})),
        "i": pa.int32(),
    }
)
PAIRS = st.none() | st.fixed_dictionaries({"x": FLOATS, "s": st.none() | st.text(max_size=2)})
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "f": FLOATS,
            "half": FLOATS,
            "st": st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "in": PAIRS}),
            "many": st.none() | st.lists(FLOATS, max_size=3),
            "pairs": st.none()
            | st.lists(
                st.tuples(st.sampled_from([1.0, 2.0, NAN]), st.none() | st.lists(FLOATS, max_size=2)), max_size=2
            ),
            "deep": st.none()
            | st.lists(st.none() | st.fixed_dictionaries({"y": st.none() | st.lists(PAIRS, max_size=2)}), max_size=2),
            "i": st.none() | st.integers(0, 9),
        }
    ),
    max_size=5,
)
PATHS = [
    "f", "half", "st.a", "st.in.x", "st.in.s", "many.list.element", "pairs.key_value.key",
    "pairs.key_value.value.list.element", "deep.list.element.y.list.element.x", "deep.list.element.y.list.element.s",
    "i",
]  # fmt: skip


def leaf_values(value, kind):
    """All values of every leaf, in Parquet's order, found by plain Python."""
    if pa.types.is_struct(kind):
        parts = (leaf_values(None if value is None else value[field.name], field.type) for field in kind)
        return [leaf for part in parts for leaf in part]
    if pa.types.is_map(kind):
        pairs = [leaf_values(k, kind.key_type) + leaf_values(v, kind.item_type) for k, v in value or ()]
        empty = leaf_values(None, kind.key_type) + leaf_values(None, kind.item_type)
        return [[one for pair in pairs for one in pair[number]] for number in range(len(empty))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        each = [leaf_values(one, kind.value_type) for one in value or ()]
        return [[one for part in each for one in part[n]] for n in range(len(leaf_values(None, kind.value_type)))]
    return [[value]]


def table_of(rows):
    columns = []
    for field in SCHEMA:
        values = [row[field.name] for row in rows]
        if pa.types.is_float16(field.type):
            columns.append(pa.array(values, pa.float32()).cast(field.type))
        else:
            columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@given(ROWS, ROWS, st.integers(0, 2))
@settings(max_examples=80)
def test_leaves_with_a_nan_or_a_negative_zero_are_found_at_any_depth(first, second, skipped):
    rows = [*first, *second]
    table = pa.concat_tables([table_of(first), table_of(second)]).slice(skipped)
    flat = [[leaf for f in SCHEMA for leaf in leaf_values(row[f.name], f.type)] for row in rows[skipped:]]
    each = [[v for row in flat for v in row[n] if isinstance(v, float)] for n in range(len(PATHS))]
    nans = frozenset(n for n, values in enumerate(each) if any(map(math.isnan, values)))
    zeros = frozenset(n for n, values in enumerate(each) if "-0.0" in map(repr, values))
    assert odd_leaves(table) == Odd(nans, zeros)
    assert odd_leaves(table, Odd(zeros, frozenset())) == Odd(zeros & nans, frozenset())


def stored(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


@given(ROWS.filter(bool))
@settings(max_examples=60)
def test_nulls_counted_from_rows_are_those_that_a_footer_counts(rows):
    table = table_of(rows)
    counted = FileMetrics(SCHEMA, uncounted=range(len(PATHS)))
    for at in range(len(rows)):
        counted.add(table.slice(at, 1))
    told = FileMetrics(SCHEMA)
    told.add(table)
    found = counted.columns(stored(table, write_statistics=False, row_group_size=2))
    expected = told.columns(stored(table, row_group_size=2))
    assert [column.path for column in found] == PATHS
    assert [(c.values, c.nulls, c.nans) for c in found] == [(c.values, c.nulls, c.nans) for c in expected]
    assert len(leaves_of(SCHEMA)) == len(PATHS)


def rows_with_nans(*, first=0, rows=2000):
    """A NaN in every float, at any depth, of rows whose `i` is below 500; none above."""
    numbers = range(first, first + rows)

    def number(i):
        return NAN if i < 500 and i % 7 == 0 else i / 3

    return pa.table(
        {
            "i": pa.array(numbers, pa.int64()),
            "f": pa.array([number(i) for i in numbers]),
            "clean": pa.array([i / 3 for i in numbers], pa.float32()),
            "st": pa.array(
                [{"x": number(i), "n": i} for i in numbers], pa.struct({"x": pa.float32(), "n": pa.int64()})
            ),
            "many": pa.array([[number(i), None] if i % 3 else None for i in numbers], pa.list_(pa.float64())),
            "pairs": pa.array([[("k", number(i))] for i in numbers], pa.map_(pa.string(), pa.float64())),
        }
    )


def statistics(file):
    """What the footer and the page index say of each leaf: whether there is any, and whether that holds a bound."""
    groups = [file.footer.row_group(number) for number in range(file.footer.num_row_groups)]
    return {
        groups[0].column(n).path_in_schema: {(g.column(n).is_stats_set, g.column(n).has_column_index) for g in groups}
        for n in range(groups[0].num_columns)
    }


@pytest.mark.parametrize("kind", ["delta", "iceberg v2", "parquet"])
def test_leaves_with_a_nan_have_no_statistics_in_their_file_and_others_do(kind, tmp_path):
    table = home(kind, tmp_path).make([rows_with_nans(), rows_with_nans(first=2000, rows=1000)])
    if kind == "parquet":
        table.cluster(by="i", target_file_size=12_000, into=f"parquet:{tmp_path}/copy")
        table = home(kind, tmp_path, "copy")
    else:
        table.cluster(by="i", target_file_size=12_000)
    silent = {"f", "st.x", "many.list.element", "pairs.key_value.value"}
    met = set()
    for file in table.files():
        least = min(pq.read_table(file.path, columns=["i"])["i"].to_pylist())
        holds = least < 500
        met.add(holds)
        for path, found in statistics(file).items():
            expected = {(False, False)} if holds and path in silent else {(True, True)}
            assert found == expected, f"{path} of a file that holds {'a' if holds else 'no'} NaN"
    assert met == {True, False}, "there are files of both kinds"


def test_a_nan_behind_statistics_is_an_error_and_nothing_is_committed(tmp_path, monkeypatch):
    table = home("delta", tmp_path).make([rows_with_nans()])
    before = table.version()
    monkeypatch.setattr(payload, "odd_leaves", lambda *_: Odd())
    with pytest.raises(
        ZonalError, match=r"Column '(f|many.list.element)' of the new file .* NaN, which its statistics"
    ):
        table.cluster(by="i")
    assert table.version() == before
    assert not table.run_folders()


def test_iceberg_metrics_of_floats_with_nan_are_safe_for_java(tmp_path):
    data = (
        rows_with_nans()
        .append_column("only", pa.array([NAN] * 2000))
        .append_column("half", pa.array([NAN, None] * 1000))
    )
    table = home("iceberg v2", tmp_path).make([data])
    table.cluster(by="clean", target_file_size=12_000)
    ids = {field.name: field.field_id for field in table.table.schema().fields}
    ids["many.element"] = table.table.schema().find_field("many.element").field_id
    ids["pairs.value"] = table.table.schema().find_field("pairs.value").field_id
    seen = set()
    for task in table.table.scan().plan_files():
        file, stored = task.file, pq.read_table(task.file.file_path.removeprefix("file://"))
        nans = sum(math.isnan(value) for value in stored["f"].to_pylist())
        seen.add(nans > 0)
        assert ids["f"] in file.lower_bounds
        assert (ids["f"] in file.upper_bounds) == (not nans), "an upper bound leaves NaN out, and Java trusts it"
        assert file.nan_value_counts[ids["f"]] == nans
        for name in ("only", "half"):
            for told in (file.nan_value_counts, file.lower_bounds, file.upper_bounds):
                assert ids[name] not in told, "Java skips a file that counts as many NaN as values"
        elements = [value for one in stored["many"].to_pylist() if one for value in one]
        assert file.nan_value_counts[ids["many.element"]] == sum(v is not None and math.isnan(v) for v in elements)
        missing = stored["many"].null_count + elements.count(None)
        assert file.null_value_counts[ids["many.element"]] == missing
        assert file.null_value_counts[ids["pairs.value"]] == 0
        assert file.null_value_counts[ids["f"]] == 0
    assert seen == {True, False}, "there are files with and without a NaN"


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_leaves_with_a_negative_zero_have_no_dictionary_in_their_file_and_others_do(kind, tmp_path):
    few = np.random.default_rng(0).choice([0.0, 0.1, 2.7, 3.9, 4.3], 4000)  # in no pattern: smallest in a dictionary
    numbers = [-0.0 if n == 1999 else few[n] for n in range(4000)]
    inside = pa.StructArray.from_arrays([pa.array(numbers, pa.float32()), pa.array(range(4000))], ["x", "n"])
    rows = pa.table({"i": range(4000), "f": numbers, "clean": few, "st": inside})
    table = home(kind, tmp_path).make([rows])
    table.cluster(by="i", target_file_size=5_000)
    met = set()
    for file in table.files():
        stored = pq.read_table(file.path)["i"].to_pylist()
        holds = 1999 in stored
        met.add(holds)
        group = file.footer.row_group(0)
        for column in (group.column(n) for n in range(group.num_columns)):
            if column.path_in_schema in ("f", "clean", "st.x"):
                expected = not holds or column.path_in_schema == "clean"
                assert column.has_dictionary_page == expected, column.path_in_schema
                assert column.is_stats_set
    assert met == {True, False}, "there are files of both kinds"
