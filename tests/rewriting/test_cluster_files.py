"""What new files are: their size, row groups, bounds, sort order and Bloom filters."""

import json
import math
import os
import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zonal
from support.cluster_tables import (
    NEWEST,
    Delta,
    assert_same_rows,
    home,
    never,
    parts_of,
    row_counts,
    rows_in,
    telemetry,
)
from zonal.errors import ColumnError, TableError, ZonalError
from zonal.layouts.layout import CURVES
from zonal.rewriting import in_place as rewriting

# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
def test_files_have_about_the_size_that_is_asked_for(kind, tmp_path):
    before = telemetry(60_000)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    shares = []
    for target in (26_000, 30_000, 34_000, 45_000, 56_000):
        asked = {"by": ["x", "y"], "target_file_size": target, "full": True}
        plan = table.plan(**asked)
        table.cluster(**asked)
        sizes = np.array([file.size for file in table.files()])
        assert plan.change.rows == 60_000
        assert 0.8 < len(sizes) / plan.change.new_files < 1.25
        assert 0.8 < sizes.sum() / plan.change.new_bytes < 1.25
        shares += (sizes / target).tolist()
        assert np.mean([0.6 < size / target < 1.6 for size in sizes]) >= 0.9, sorted(sizes / target)
    assert len(shares) > 100
    assert all(0.45 < share < 1.9 for share in shares), sorted(shares)  # what cuts promise, and some for the estimate
    assert 0.7 < np.mean(shares) < 1.15
    assert_same_rows(table.rows(), before)


def test_files_whose_rows_no_metadata_counts_are_cut_to_size_too(tmp_path):
    before = telemetry(4000)
    table = home("delta", tmp_path).make(parts_of(before, 4))
    for log in (table.root / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    asked = {"by": ["x", "y"], "target_file_size": 10_000}
    plan = table.plan(**asked)
    assert plan.change.rows == 4000
    table.cluster(**asked)
    assert len(table.files()) >= 5
    assert 0.8 < len(table.files()) / plan.change.new_files < 1.25
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
def test_files_have_row_groups_cut_to_size_with_page_indexes(kind, tmp_path):
    table = home(kind, tmp_path).make([telemetry(6000)])
    table.cluster(layout="zorder(x, y, file_size=40KB, row_group_rows=300)")
    assert sum(file.footer.num_row_groups for file in table.files()) > 2 * len(table.files())
    for file in table.files():
        groups = [file.footer.row_group(number) for number in range(file.footer.num_row_groups)]
        assert all(group.num_rows <= 1.8 * 300 for group in groups)
        for column in (group.column(number) for group in groups for number in range(group.num_columns)):
            assert column.has_offset_index
            assert column.has_column_index
            assert column.statistics.has_min_max


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("delta", {"delta.dataSkippingNumIndexedCols": "0"}),
        ("delta", {"delta.dataSkippingStatsColumns": "id"}),
        ("iceberg v2", {"write.metadata.metrics.default": "none"}),
        ("iceberg v2", {"write.metadata.metrics.column.x": "counts"}),
        ("iceberg v2", {"write.metadata.metrics.max-inferred-column-defaults": "1"}),
    ],
)  # fmt: skip
def test_key_columns_have_bounds_even_where_the_table_limits_them(kind, properties, tmp_path):
    table = home(kind, tmp_path).make([telemetry(500)], properties=properties)
    table.cluster(by=["x", "s"])
    (file,) = table.files()
    values = pq.read_table(file.path)
    if kind == "delta":
        log = (table.root / "_delta_log" / f"{table.version():020d}.json").read_text().splitlines()
        (stats,) = (json.loads(json.loads(line)["add"]["stats"]) for line in log if '"add"' in line)
        bounds = {name: (stats["minValues"][name], stats["maxValues"][name]) for name in ("x", "s")}
    else:
        (task,) = table.table.scan().plan_files()
        from pyiceberg.conversions import from_bytes

        bounds = {
            field.name: tuple(
                from_bytes(field.field_type, side[field.field_id])
                for side in (task.file.lower_bounds, task.file.upper_bounds)
            )
            for field in (table.table.schema().find_field(name) for name in ("x", "s"))
        }
    for name, (lower, upper) in bounds.items():
        column = values[name].to_pylist()
        assert (lower, upper) == (min(column), max(column)), name


def test_a_size_that_the_storage_contradicts_is_refused_at_once(tmp_path):
    """By the size a file is cut into parts: of one that lies, there would be thousands."""
    table = Delta(tmp_path).make(parts_of(telemetry(60), 2))
    log = table.root / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (added,) = (action["add"] for action in actions if "add" in action)
    real, added["size"] = added["size"], 10**12
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    message = f"{added['path']}' has {real:,} bytes, and the table's metadata says 1,000,000,000,000"
    with pytest.raises(TableError, match=re.escape(message)):
        table.cluster(by=["x"])
    with pytest.raises(TableError, match=re.escape(message)):
        table.plan(by=["x"])
    assert table.version() == 1


def test_a_pipe_among_the_files_is_refused_and_not_waited_for(tmp_path):
    table = Delta(tmp_path).make(parts_of(telemetry(60), 2))
    path = table.files()[0].path
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(TableError, match=f"{path.name}'.* isn't a regular file"):
        table.cluster(by=["x"])
    assert zonal.explain(table.name, where="x = 5").levels, "it is told among the notes"


@pytest.mark.parametrize("kind", NEWEST)
def test_a_database_of_a_wrong_type_is_refused_before_any_work(kind, tmp_path):
    table = home(kind, tmp_path).make([telemetry(60)])
    before = table.version()
    with pytest.raises(ZonalError, match="database=False is not the URL of a history"):
        table.cluster(by=["x"], database=False)
    assert table.version() == before


@pytest.mark.parametrize("kind", NEWEST)
def test_a_linear_layout_sorts_and_says_so(kind, tmp_path):
    before = telemetry(1500)
    before = before.set_column(1, "x", pa.array([None if n % 50 == 0 else n * 7919 % 90 for n in range(1500)]))
    table = home(kind, tmp_path).make(parts_of(before, 3))
    table.cluster(layout="linear(x, s, file_size=5KB, row_group_rows=100)")
    ranges = []
    for file in table.files():
        found = pq.read_table(file.path)
        keys = [
            ((x is not None, x or 0), s) for x, s in zip(found["x"].to_pylist(), found["s"].to_pylist(), strict=True)
        ]
        assert keys == sorted(keys)
        ranges.append((keys[0], keys[-1]))
        places = [found.schema.get_field_index(name) for name in ("x", "s")]
        for number in range(file.footer.num_row_groups):
            told = file.footer.row_group(number).sorting_columns
            assert [(one.column_index, one.descending, one.nulls_first) for one in told] == [
                (at, False, True) for at in places
            ]
    ranges.sort()
    assert len(ranges) > 3
    assert all(high[0] <= low[0] for (_, high), (low, _) in pairwise(ranges))
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
def test_a_value_that_most_rows_have_is_split_over_files(kind, tmp_path):
    before = telemetry(4000)
    heavy = np.where(np.arange(4000) % 10 < 6, 7, np.arange(4000) % 997)
    before = before.set_column(1, "x", pa.array(heavy))
    for number, layout in enumerate(("zorder(x, file_size=4KB)", "linear(x, file_size=4KB)")):
        table = home(kind, tmp_path / str(number)).make(parts_of(before, 2))
        table.cluster(layout=layout)
        files = table.files()
        only = [file for file in files if set(rows_in(file, "x")) == {7}]
        assert len(only) >= 0.4 * len(files) > 2, "the heavy value has files of its own"
        assert max(file.rows for file in files) < 2.5 * 4000 / len(files)
        assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("layout", CURVES)
def test_nulls_nan_and_columns_without_any_value_are_clustered_by(layout, tmp_path):
    rows = 1200
    before = telemetry(rows)
    y = [[None, math.nan, -0.0, 0.0, math.inf, -math.inf, n / 7][n % 7] for n in range(rows)]
    before = before.set_column(2, "y", pa.array(y, pa.float64()))
    before = before.append_column("none", pa.nulls(rows, pa.int64()))
    before = before.append_column("nan", pa.array([math.nan] * rows))
    for kind in NEWEST:
        table = home(kind, tmp_path / kind).make(parts_of(before, 2))
        done = table.cluster(layout=f"{layout}(none, y, nan)", target_file_size=2000)
        assert done.change.added_files > 2
        assert row_counts(table.rows()) == row_counts(before)


# --- Bloom filters ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not rewriting.WRITES_BLOOM_FILTERS, reason="pyarrow before 26 writes no Bloom filters")
@pytest.mark.parametrize("kind", NEWEST)
def test_bloom_filters_are_written_on_the_columns_asked_for(kind, tmp_path):
    from zonal.verbs.explain import explain

    before = telemetry(400)
    table = home(kind, tmp_path).make([before])
    table.cluster(layout="zorder(x, bloom=[s])")
    (file,) = table.files()
    columns = {file.footer.row_group(0).column(n).path_in_schema: n for n in range(5)}
    filters = {name for name, n in columns.items() if file.footer.row_group(0).column(n).bloom_filter_offset}
    assert filters == {"s"}
    opened = f"parquet:{file.path.parent}"
    missing = next(f"device-{n:04d}" for n in range(300) if f"device-{n:04d}" not in set(before["s"].to_pylist()))
    assert explain(opened, where=f"s = '{missing}'", footers=True, bloom=True).share_of_bytes == 0
    assert explain(opened, where="s = 'device-0001'", footers=True, bloom=True).share_of_bytes > 0


@pytest.mark.parametrize("kind", NEWEST)
def test_bloom_filters_that_this_pyarrow_cant_write_are_refused(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(rewriting, "WRITES_BLOOM_FILTERS", False)
    table = home(kind, tmp_path).make([telemetry(30)])
    for asked in ({}, {"into": f"delta:{tmp_path}/copy"}):
        with pytest.raises(ZonalError, match="Bloom filters on 's' need pyarrow 26 or later"):
            table.cluster(layout="zorder(x, bloom=[s])", runner=never, **asked)
    assert not (tmp_path / "copy").exists()


def floats(rows):
    numbers = pa.array([0.0, -0.0, float("nan")] * rows)
    inside = pa.StructArray.from_arrays([numbers.cast(pa.float32())], ["z"])
    return pa.table({"x": pa.array(range(3 * rows)), "y": numbers, "st": inside})


@pytest.mark.parametrize("column", ["y", "st.z"])
@pytest.mark.parametrize("into", [False, True])
def test_bloom_filters_on_floats_are_refused_before_any_work(column, into, tmp_path):
    table = home("delta", tmp_path).make([floats(10)])
    asked = {"into": f"delta:{tmp_path}/copy"} if into else {}
    with pytest.raises(ColumnError, match=f"'{column}' has type .*0.0 and -0.0 are equal"):
        table.cluster(layout=f"zorder(x, bloom=[{column}])", runner=never, **asked)
    assert not (tmp_path / "copy").exists()


@pytest.mark.skipif(not rewriting.WRITES_BLOOM_FILTERS, reason="pyarrow before 26 writes no Bloom filters")
@pytest.mark.filterwarnings("ignore:Parquet writer option")
def test_filters_on_floats_that_a_table_asks_for_are_left_out(tmp_path):
    asked = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in ("x", "y", "st.z")}
    table = home("iceberg v2", tmp_path).make([floats(10)], properties=asked)
    table.cluster(by="x")
    (file,) = table.files()
    columns = [file.footer.row_group(0).column(n) for n in range(3)]
    assert [column.path_in_schema for column in columns if column.bloom_filter_offset] == ["x"]
