"""`cluster` over all formats: the same rows, fewer files to read; the formats' own libraries and DuckDB judge."""

import datetime as dt
import json
import math
import os
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import zonal
from support.arrow_values import VALUES, build
from support.cluster_tables import (
    Delta,
    Iceberg,
    Meanwhile,
    Parquet,
    assert_same_rows,
    home,
    parts_of,
    row_counts,
    telemetry,
)
from support.iceberg_rewriting import Writer
from zonal.errors import ColumnError, LayoutError, TableError, ZonalError
from zonal.layouts.layout import CURVES, Layout
from zonal.layouts.tree import tree_of
from zonal.learning import grow
from zonal.predicates.bound import Interval, Ranges
from zonal.rewriting import in_place as rewriting
from zonal.study.sample import survey
from zonal.trials.boxes import boxes_of, code

IN_PLACE = ["delta", "iceberg v1", "iceberg v2", "iceberg v3"]
NEWEST = ["delta", "iceberg v2"]
FORMATS = ["parquet", "delta", "iceberg"]
STRANGE = ["a/b", "a b", "p%q", "é=+", "x=1", "..", "%2F", "'\"", None, "c:d", "#?&"]
"""Values of partitions that paths, URIs and logs write in different ways."""


def rows_in(file, column="id"):
    return pq.ParquetFile(file.path).read([column]).column(0).to_pylist()


def partitions_hold(table, before, key="p"):
    """Every file has rows of one partition only, and says which."""
    partition_of = dict(zip(before["id"].to_pylist(), before[key].to_pylist(), strict=True))
    for file in table.files():
        assert {partition_of[number] for number in rows_in(file)} == set(file.partition), file.path


# --- in place --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitioning", [(), ("p",)], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_table_keeps_its_rows_and_each_key_reads_fewer_files(kind, partitioning, tmp_path):
    before = telemetry(4000)
    table = home(kind, tmp_path).make(parts_of(before, 4), partitioning)
    old = table.files()
    done = table.cluster(by=["x", "y"], target_file_size=4000)
    new = table.files()
    assert_same_rows(table.rows(), before)
    assert (done.rows, done.conflicts, done.versions) == (4000, 0, (table.version(),))
    assert (done.files_before, done.removed_files) == (len(old), len(old))
    assert (done.files_after, done.added_files) == (len(new), len(new))
    assert (done.removed_bytes, done.added_bytes) == (sum(f.size for f in old), sum(f.size for f in new))
    assert {file.path for file in old}.isdisjoint(file.path for file in new)
    assert sum(file.rows for file in new) == 4000
    assert [depth.column for depth in done.depths] == ["x", "y"]
    for depth in done.depths:
        assert depth.before > 0.9 * len(old), "appends in no order overlap everywhere"
        assert depth.after < 0.7 * len(new)
    if partitioning:
        partitions_hold(table, before)
    assert not table.strays()


@pytest.mark.parametrize("kind", IN_PLACE)
def test_right_after_a_run_there_is_nothing_to_do(kind, tmp_path):
    table = home(kind, tmp_path).make(parts_of(telemetry(600), 3), ["p"])
    table.cluster(by=["x", "y"], target_file_size=4000)
    version, listing = table.version(), table.listing()
    for again in ({"by": ["x", "y"], "target_file_size": 4000}, {}):
        done = table.cluster(runner=never, **again)
        assert (done.versions, done.removed_files, done.added_files, done.rows) == ((), 0, 0, 0)
        assert done.layout == "zorder(x, y, file_size=4KB)"
    assert (table.version(), table.listing()) == (version, listing)


def never(*_):
    raise AssertionError("there was nothing to run")


@pytest.mark.parametrize("kind", NEWEST)
def test_the_recorded_layout_takes_what_was_appended_since(kind, tmp_path):
    before, more = telemetry(900), telemetry(300, 1, first=900)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    table.cluster(layout="hilbert(x, s, file_size=5KB)")
    clustered = {file.path for file in table.files()}
    table.append(more)
    done = table.cluster()
    assert done.layout == "hilbert(x, s, file_size=5KB)"
    assert (done.removed_files, done.rows) == (1, 300)
    assert clustered <= {file.path for file in table.files()}, "files in the layout stay"
    assert_same_rows(table.rows(), pa.concat_tables([before, more]))


@pytest.mark.parametrize("kind", NEWEST)
def test_another_layout_rewrites_all_files_and_so_does_full(kind, tmp_path):
    before = telemetry(600)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    first = table.cluster(by="x", target_file_size=5000)
    second = table.cluster(by="y", target_file_size=5000)
    assert second.removed_files == first.added_files
    third = table.cluster(full=True)
    assert (third.removed_files, third.layout) == (second.added_files, "zorder(y, file_size=5KB)")
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
@pytest.mark.parametrize("layout", [*(f"{kind}(x, y)" for kind in CURVES), "zorder(x, y, s, id, bits=20, salt=3)"])
def test_every_layout_keeps_the_rows(kind, layout, tmp_path):
    before = telemetry(700)
    table = home(kind, tmp_path).make(parts_of(before, 2), ["p"])
    done = table.cluster(layout=layout, target_file_size=4000)
    assert_same_rows(table.rows(), before)
    assert done.depths[0].after < done.depths[0].before


# --- trees -----------------------------------------------------------------------------------------------------------


def learned(rows, **options):
    """A tree that is grown for ranges of `x` and for single devices."""
    bounds = [
        *(Ranges("x", (Interval(low, low + 99),)) for low in range(0, 1000, 100)),
        *(Ranges("s", (Interval(name, name),)) for name in (b"device-0007", b"device-0150")),
        Ranges("y", (Interval(1.5, None),)),
    ]
    coded = code(rows, ["x", "y", "s"])
    boxes = boxes_of(bounds, coded)
    tree = grow(coded, boxes, np.ones(len(bounds)), schema=rows.schema, leaf_rows=len(coded) / 15, group_rows=20)
    return replace(tree.layout(), **({"target_file_bytes": 3000} | options))


@pytest.mark.parametrize("partitioning", [(), ("p",)], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_table_is_clustered_by_a_tree_and_then_there_is_nothing_to_do(kind, partitioning, tmp_path):
    before = telemetry(3000)
    table = home(kind, tmp_path).make(parts_of(before, 4), partitioning)
    layout = learned(before)
    done = table.cluster(layout=layout)
    assert_same_rows(table.rows(), before)
    files = len(table.files())
    assert files >= 8
    assert done.depths[0].after < 0.5 * files, "the column that is cut first"
    if partitioning:
        partitions_hold(table, before)
    version = table.version()
    for again in ({"layout": layout}, {"layout": str(layout)}, {}):
        assert table.cluster(runner=never, **again).versions == ()
    assert table.version() == version


def ranges_of(table, column="x"):
    """Sorted bounds of the files in a column."""
    values = [rows_in(file, column) for file in table.files()]
    return sorted((min(each), max(each)) for each in values)


@pytest.mark.parametrize("kind", NEWEST)
def test_appended_rows_are_clustered_by_the_recorded_cuts(kind, tmp_path):
    before, more = telemetry(3000), telemetry(3000, 1, first=3000)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    layout = learned(before)
    table.cluster(layout=layout)
    old = {file.path for file in table.files()}
    table.append(more)
    done = table.cluster()
    assert Layout.parse(done.layout) == layout
    assert (done.removed_files, done.rows) == (1, 3000)
    assert_same_rows(table.rows(), pa.concat_tables([before, more]))
    root = tree_of(layout)
    cut = root.columns[int(root.column[0])], root.points[int(root.column[0])][int(root.cut[0])]
    assert isinstance(cut[1], int | float)
    sides = [{value >= cut[1] for value in rows_in(file, cut[0])} for file in table.files() if file.path not in old]
    assert len(sides) > 8
    assert all(len(side) == 1 for side in sides), "no new file crosses the first cut"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_copy_is_clustered_by_a_tree(kind, tmp_path):
    before = telemetry(2000)
    source = Parquet(tmp_path / "from").make(parts_of(before, 3))
    into = home("iceberg v2" if kind == "iceberg" else kind, tmp_path / "into", "copy")
    layout = learned(before)
    done = source.cluster(layout=layout, into=into.name, **into.options)
    assert_same_rows(into.rows(), before)
    assert (done.rows, Layout.parse(done.layout)) == (2000, layout)
    assert len(into.files()) >= 6


def test_files_of_a_tree_dont_claim_to_be_sorted(tmp_path):
    before = telemetry(1000)
    table = home("delta", tmp_path).make(parts_of(before, 2))
    table.cluster(layout=learned(before))
    for file in table.files():
        assert not file.footer.row_group(0).sorting_columns
    iceberg = home("iceberg v2", tmp_path / "ice").make(parts_of(before, 2))
    iceberg.cluster(layout=learned(before))
    assert not iceberg.table.sort_order().fields


def test_row_groups_end_at_the_cuts_of_a_tree(tmp_path):
    before = telemetry(4000)
    table = home("delta", tmp_path).make(parts_of(before, 2))
    layout = learned(before, target_file_bytes=40_000, row_group_rows=60)
    table.cluster(layout=layout)
    tree = tree_of(layout)
    for file in table.files():
        stored = pq.ParquetFile(file.path)
        groups = [tree.paths(stored.read_row_group(number)) for number in range(stored.num_row_groups)]
        assert len(groups) > 3
        inside = [first[-1] == second[0] for first, second in pairwise(groups)]
        assert np.mean(inside) < 0.5, "most row groups end where a leaf does"


def test_cuts_that_dont_fit_the_table_are_refused(tmp_path):
    before = telemetry(200)
    table = home("delta", tmp_path).make([before])
    layout = learned(before)
    with pytest.raises(LayoutError, match=r"The tree cuts column '.' at"):
        table.cluster(layout=replace(layout, columns=("s", "x", "y")[: len(layout.columns)]))
    with pytest.raises(LayoutError, match="can't be read"):
        table.cluster(layout=replace(layout, tree='{"leaves":3}'))
    with pytest.raises(LayoutError, match="learned from queries"):
        table.cluster(layout="tree", by=["x"])


# --- partitions ------------------------------------------------------------------------------------------------------


def partitioned_by(values, rows=120):
    """Rows of `telemetry`, partitioned by `p` with these values."""
    table = telemetry(rows)
    taken = [values[number % len(values)] for number in range(rows)]
    return table.set_column(table.schema.get_field_index("p"), "p", pa.array(taken))


@pytest.mark.parametrize("kind", IN_PLACE)
def test_values_of_partitions_stay_whatever_characters_they_have(kind, tmp_path):
    before = partitioned_by(STRANGE)
    table = home(kind, tmp_path).make(parts_of(before, 2), ["p"])
    table.cluster(by="x")
    assert_same_rows(table.rows(), before)
    partitions_hold(table, before)
    assert len(table.files()) == len(STRANGE)


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_a_copy_has_the_rows_and_partitions_and_leaves_the_table_alone(source, target, tmp_path):
    before = partitioned_by([value for value in STRANGE if value != ".."])  # a folder that pyarrow can't make
    table = home(source, tmp_path, "source").make(parts_of(before, 2), ["p"])
    copy = home(target, tmp_path, "copy")
    listing, options = table.listing(), table.options | copy.options
    done = type(table).cluster(_with(table, options), by=["x", "y"], into=copy.name)
    assert table.listing() == listing
    assert_same_rows(copy.rows(), before)
    partitions_hold(copy, before)
    assert (done.format, done.rows, done.removed_files) == (target, 120, 0)
    assert done.added_files == done.files_after == len(copy.files()) == len(STRANGE) - 1
    assert not list(tmp_path.glob("zonal-*"))
    if target == "parquet":
        second = Delta(tmp_path, "second")
        assert copy.cluster(into=second.name).layout == "zorder(x, y)", "files say which layout they have"
    else:
        again = copy.cluster(runner=never)
        assert (again.versions, again.layout) == ((), "zorder(x, y)")


def _with(table, options):
    class Opened:
        name = table.name

    Opened.options = options
    return Opened()


def test_partition_columns_of_other_types_keep_their_values(tmp_path):
    before = telemetry(90).append_column(
        "d", pa.array([[dt.date(2026, 1, 1), dt.date(1969, 12, 31), None][n % 3] for n in range(90)])
    )
    before = before.append_column("n", pa.array([[-5, 0, None, 2**40][n % 4] for n in range(90)]))
    before = before.append_column("b", pa.array([[True, False][n % 2] for n in range(90)]))
    for kind in NEWEST:
        table = home(kind, tmp_path / kind).make([before], ["d", "n", "b"])
        files = len(table.files())
        table.cluster(by="x")
        assert_same_rows(table.rows(), before)
        assert len(table.files()) == files
        for target in FORMATS:
            copy = home(target, tmp_path / kind, f"copy{target}")
            type(table).cluster(_with(table, table.options | copy.options), by="x", into=copy.name)
            found = copy.rows()
            if target == "parquet":  # whose folders know no types
                found = pa.table(
                    {name: found[name].cast(before.schema.field(name).type) for name in found.schema.names}
                )
            assert_same_rows(found, before)


def test_transforms_partition_a_table_but_not_its_copy(tmp_path):
    from pyiceberg.transforms import BucketTransform, DayTransform

    moments = pa.array([dt.datetime(2026, 1, 1 + n % 3, n % 24) for n in range(300)], pa.timestamp("us"))
    before = telemetry(300).append_column("ts", moments)
    table = Iceberg(tmp_path)
    made = table.catalog.create_table("db.t", before.schema)
    with made.update_spec() as spec:
        spec.add_field("ts", DayTransform(), "ts_day")
        spec.add_field("x", BucketTransform(3), "x_bucket")
    add_transformed(table, before)
    places = {file.partition for file in table.files()}
    assert len(places) == 9
    table.cluster(by=["x", "id"])
    assert {file.partition for file in table.files()} == places
    assert len(table.files()) == 9
    assert_same_rows(table.rows(), before)
    copy = Delta(tmp_path, "copy")
    table.cluster(by="x", into=copy.name)
    assert len(copy.files()) == 1
    assert_same_rows(copy.rows(), before)


def add_transformed(table, rows):
    """Append a file a partition, by day and bucket; PyIceberg alone can't without its Rust core."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType

    bucket = BucketTransform(3).transform(LongType())
    places = {}
    for number, row in enumerate(rows.to_pylist()):
        place = ((row["ts"].date() - dt.date(1970, 1, 1)).days, bucket(row["x"]))
        places.setdefault(place, []).append(number)
    writer = Writer(table.catalog)
    (table.root / "data").mkdir(parents=True)
    for number, (place, at) in enumerate(places.items()):
        path = table.root / "data" / f"{number}.parquet"
        pq.write_table(rows.take(at).cast(schema_to_pyarrow(table.table.schema())), path)
        known = {"record_count": len(at), "file_size_in_bytes": path.stat().st_size, "partition": Record(*place)}
        writer.add_manifest([writer.data_file(f"file://{path}", **known)], spec_id=1)
    writer.publish()


def test_many_small_partitions_share_tasks(tmp_path):
    before = partitioned_by([f"p{number}" for number in range(200)], 1000)
    table = Delta(tmp_path).make([before], ["p"])
    seen = []

    def spying(scan, writing, placement, splits, report):
        from support.local_runner import run_here

        seen.append((placement.files, placement.tasks))
        return run_here(scan, writing, placement, splits, report)

    table.cluster(by="x", runner=spying)
    ((files, tasks),) = seen
    assert (files, len(table.files())) == (200, 200)
    assert tasks <= 16
    assert_same_rows(table.rows(), before)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
def test_files_have_about_the_size_that_is_asked_for(kind, tmp_path):
    before = telemetry(60_000)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    shares = []
    for target in (26_000, 30_000, 38_000, 45_000, 56_000):
        asked = {"by": ["x", "y"], "target_file_size": target}
        plan = table.plan(**asked)
        table.cluster(**asked)
        sizes = np.array([file.size for file in table.files()])
        assert plan.rows == 60_000
        assert 0.8 < len(sizes) / plan.new_files < 1.25
        assert 0.8 < sizes.sum() / plan.new_bytes < 1.25
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
    assert plan.rows == 4000
    table.cluster(**asked)
    assert len(table.files()) >= 5
    assert 0.8 < len(table.files()) / plan.new_files < 1.25
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
    with pytest.raises(ZonalError, match="database='False' is no history"):
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
        assert done.added_files > 2
        assert row_counts(table.rows()) == row_counts(before)


# --- small tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
def test_an_empty_table_stays_empty_and_can_be_copied(kind, tmp_path):
    table = home(kind, tmp_path).make([telemetry(0)])
    done = table.cluster(by="x", runner=never)
    assert (done.versions, done.rows) == ((), 0)
    for target in FORMATS:
        copy = home(target, tmp_path, f"copy{target}")
        if target == "parquet":
            with pytest.raises(TableError, match=r"no rows to copy .* Write a table instead"):
                type(table).cluster(_with(table, table.options), by="x", into=copy.name)
            assert not copy.root.exists()
            continue
        done = type(table).cluster(_with(table, table.options | copy.options), by="x", into=copy.name)
        assert done.rows == done.added_files == 0
        assert copy.rows().num_rows == 0
        assert copy.rows().schema.names == telemetry(0).schema.names


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_table_of_one_row_keeps_it(kind, tmp_path):
    before = telemetry(1)
    table = home(kind, tmp_path).make([before], ["p"])
    done = table.cluster(by=["x", "y"], target_file_size="1KB")
    assert (done.rows, done.added_files) == (1, 1)
    assert_same_rows(table.rows(), before)


def test_files_whose_rows_are_all_deleted_go(tmp_path):
    from support.delta_rewrites import LogWriter, data_file, stored_vector
    from support.delta_tables import features, field, metadata
    from zonal.tables.delta.table import DeltaTable as Ours

    log = LogWriter(tmp_path / "t")
    one, two = (data_file(log, f"{n}.parquet", pa.table({"x": [n, n + 1, n + 2]})) for n in (0, 10))
    one["add"]["deletionVector"] = stored_vector(log, [0, 1, 2])
    log.commit(features("deletionVectors"), metadata(field("x", "long")), one, two)
    table = Delta(tmp_path)
    assert table.cluster(by="x").rows == 3
    two["add"]["deletionVector"] = stored_vector(log, [0, 1, 2])
    snapshot = Ours(str(log)).snapshot()
    assert [path.rpartition("/")[2] for path in snapshot.files.paths.to_pylist()] != ["0.parquet", "10.parquet"]
    assert len(snapshot.files) == 1


def test_a_table_whose_rows_are_all_deleted_becomes_empty(tmp_path):
    from support.delta_rewrites import LogWriter, data_file, rows_of, stored_vector
    from support.delta_tables import features, field, metadata

    log = LogWriter(tmp_path / "t")
    add = data_file(log, "0.parquet", pa.table({"x": [1, 2]}))
    add["add"]["deletionVector"] = stored_vector(log, [0, 1])
    log.commit(features("deletionVectors"), metadata(field("x", "long")), add)
    done = Delta(tmp_path).cluster(by="x")
    assert (done.removed_files, done.added_files, done.rows, done.files_after) == (1, 0, 0, 0)
    assert rows_of(log) == []


# --- values ----------------------------------------------------------------------------------------------------------


def every_type():
    """A column of every type, plain and in lists and structs, with nulls; from the strategies of `arrow_values`."""
    columns = {"id": pa.array(range(24))}
    for kind, values in VALUES.items():
        plain = build([*_drawn(values), None, None], kind)
        name = "".join(letter if letter.isalnum() else "_" for letter in f"{kind}_{len(columns)}")
        columns[name] = plain
        if not pa.types.is_dictionary(kind):
            columns[f"{name}_list"] = pa.ListArray.from_arrays(pa.array([0, 0, *range(2, 25)], pa.int32()), plain)
            columns[f"{name}_struct"] = pa.StructArray.from_arrays([plain, pa.array(range(24))], ["v", "n"])
    keys = pa.array([f"k{number}" for number in range(24)])
    columns["map"] = pa.MapArray.from_arrays(pa.array(range(25), pa.int32()), keys, columns["id"])
    return pa.table(columns)


def _drawn(values):
    """Draw 22 values of a strategy, the same every time."""
    found = []

    @seed(0)
    @settings(max_examples=3, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(values, min_size=22, max_size=22))
    def draw(drawn):
        found.append(drawn)

    draw()
    return found[-1]


@pytest.fixture(scope="module")
def all_types():
    return every_type()


def held(kind, target):
    """What a format stores values of a type as, None where it has no such type."""
    if pa.types.is_duration(kind):
        return pa.int64()  # so it is in Parquet's own schema, too
    unknown = kind == pa.uint64() or pa.types.is_decimal256(kind) or kind == pa.timestamp("ns", "UTC")
    if target != "parquet" and unknown:
        return None
    return None if target == "delta" and (pa.types.is_time(kind) or kind == pa.uuid()) else kind


def without_types_of(table, target):
    """Leave out what a format refuses."""

    def fits(kind):
        if kind.num_fields:
            return all(fits(kind.field(number).type) for number in range(kind.num_fields))
        return held(kind, target) is not None

    return table.select([field.name for field in table.schema if fits(field.type)])


@pytest.mark.parametrize("target", FORMATS)
def test_values_of_every_type_are_carried_along(target, all_types, tmp_path):
    before = without_types_of(all_types, target)
    assert before.num_columns > 60
    source = Parquet(tmp_path, "source").make([before])  # pyarrow can't write slices of string views
    copy = home(target, tmp_path, "copy")
    type(source).cluster(_with(source, copy.options), by=["id"], into=copy.name)
    read = pa.concat_tables([pq.read_table(file.path) for file in source.files()])
    assert_values(pq.read_table(copy.files()[0].path), read)
    if target != "parquet":
        copy.cluster(by="id", layout="hilbert", runner=Meanwhile())
        assert_values(pq.read_table(copy.files()[0].path), read)
        assert copy.rows().num_rows == 24


def test_a_key_in_a_struct_is_clustered_by_beside_a_uuid(tmp_path):
    rows = [{"n": n * 7919 % 100, "u": n.to_bytes(16, "big")} for n in range(100)]
    kind = pa.struct({"n": pa.int64(), "u": pa.uuid()})
    before = pa.table({"id": pa.array(range(100)), "s": pa.array([r["n"] for r in rows])})
    inner = pa.StructArray.from_arrays(
        [before["s"].combine_chunks(), build([r["u"] for r in rows], pa.uuid())], list("nu")
    )
    assert inner.type == kind
    source = Parquet(tmp_path, "source").make([before.append_column("inner", inner)])
    copy = Parquet(tmp_path, "copy")
    done = source.cluster(layout="linear(inner.n)", into=copy.name)
    assert done.rows == 100
    found = pq.read_table(copy.files()[0].path)
    assert found["s"].to_pylist() == sorted(before["s"].to_pylist())
    assert [value["n"] for value in found["inner"].to_pylist()] == found["s"].to_pylist()


def assert_values(found, expected):
    places = np.argsort(found["id"].to_numpy()).tolist()
    assert expected["id"].to_pylist() == list(range(24))
    for name in expected.column_names:
        values = [repr(value) for value in expected[name].to_pylist()]
        column = found[name].cast(expected[name].type) if "duration" in name else found[name]
        assert [repr(column[at].as_py()) for at in places] == values, name


@pytest.mark.parametrize(
    ("target", "kind"),
    [(target, kind) for target in ("delta", "iceberg") for kind in VALUES if held(kind, target) is None],
    ids=str,
)
def test_types_that_a_format_lacks_are_refused_by_the_columns_name(target, kind, tmp_path):
    source = Parquet(tmp_path, "source").make([pa.table({"id": [1], "odd": build([None], kind)})])
    copy = home(target, tmp_path, "copy")
    with pytest.raises(TableError, match="'odd' has the type"):
        type(source).cluster(_with(source, copy.options), by="id", into=copy.name, runner=never)
    assert not copy.root.exists()


# --- which files, and in how many commits ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
def test_where_leaves_files_alone_that_cant_match(kind, tmp_path):
    before = telemetry(900).sort_by("id")
    table = home(kind, tmp_path).make(parts_of(before, 3))
    spared = [file.path for file in table.files() if min(rows_in(file)) < 600]
    done = table.cluster(by="x", where="id >= 650")
    assert done.removed_files == 1
    assert set(spared) < {file.path for file in table.files()}
    assert_same_rows(table.rows(), before)
    assert table.cluster(by="x", where="id >= 650", runner=never).versions == ()
    assert table.cluster(by="x").removed_files == 2


@pytest.mark.parametrize("kind", NEWEST)
def test_where_takes_whole_partitions_by_their_value(kind, tmp_path):
    before = telemetry(300)
    table = home(kind, tmp_path).make(parts_of(before, 2), ["p"])
    spared = {file.path for file in table.files() if file.partition != ("b",)}
    done = table.cluster(by="x", where="p = 'b'")
    assert (done.removed_files, done.added_files) == (2, 1)
    assert spared < {file.path for file in table.files()}
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
def test_runs_of_bounded_size_come_to_an_end(kind, tmp_path):
    before = telemetry(900)
    table = home(kind, tmp_path).make(parts_of(before, 3), ["p"])
    most = int(max(sum(f.size for f in table.files() if f.partition == (p,)) for p in "abc") * 1.2)
    rewritten = []
    for _ in range(3):
        done = table.cluster(by="x", max_bytes=most)
        assert 0 < done.removed_bytes <= most
        rewritten.append(done.removed_files)
        assert_same_rows(table.rows(), before)
    assert rewritten == [3, 3, 3], "a partition at a time"
    assert table.cluster(by="x", max_bytes=most, runner=never).versions == ()


def test_a_run_smaller_than_a_partition_takes_some_of_its_files_and_one_smaller_than_a_file_is_refused(tmp_path):
    before = telemetry(900)
    table = Delta(tmp_path).make(parts_of(before, 4))
    sizes = [file.size for file in table.files()]
    done = table.cluster(by="x", max_bytes=int(2.5 * max(sizes)))
    assert done.removed_files == 2
    assert_same_rows(table.rows(), before)
    with pytest.raises(ZonalError, match=r"can't rewrite any file.*Raise max_bytes"):
        table.cluster(by="x", max_bytes="10B", full=True, runner=never)


@pytest.mark.parametrize("kind", NEWEST)
@pytest.mark.parametrize("partitioning", [(), ("p",)], ids=["unpartitioned", "partitioned"])
def test_a_run_in_several_commits_does_all_of_it(kind, partitioning, tmp_path):
    before = telemetry(900)
    table = home(kind, tmp_path).make(parts_of(before, 6), partitioning)
    total, old = sum(file.size for file in table.files()), len(table.files())
    plan = table.plan(by="x", commit_every=total // 3 + 2000)
    steps = []
    done = table.cluster(by="x", commit_every=total // 3 + 2000, progress=steps.append)
    assert len(done.versions) == plan.commits == 3
    assert len(set(done.versions)) == 3
    assert (done.removed_files, done.rows) == (old, 900)
    assert {(step.commit, step.commits) for step in steps if step.name == "committing"} == {(1, 3), (2, 3), (3, 3)}
    assert_same_rows(table.rows(), before)
    assert table.cluster(by="x", runner=never).versions == ()


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_plan_writes_nothing_and_says_what_a_run_does(kind, tmp_path):
    before = telemetry(3000)
    table = home(kind, tmp_path).make(parts_of(before, 3), ["p"])
    version, listing = table.version(), table.listing()
    plan = table.plan(by=["x", "y"], target_file_size=8000)
    assert (table.version(), table.listing()) == (version, listing)
    done = table.cluster(by=["x", "y"], target_file_size=8000)
    assert (plan.files, plan.bytes, plan.rows) == (done.removed_files, done.removed_bytes, done.rows)
    assert (plan.partitions, plan.commits, plan.layout) == (3, 1, done.layout)
    assert plan.new_files == pytest.approx(done.added_files, rel=0.2)
    assert plan.new_bytes == pytest.approx(done.added_bytes, rel=0.3)
    assert plan.seconds > 0
    nothing = table.plan()
    assert (nothing.files, nothing.bytes, nothing.rows, nothing.commits, nothing.new_files) == (0, 0, 0, 0, 0)


# --- what is refused, before anything is written ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"by": "xs"}, ColumnError, "Unknown column 'xs'. Did you mean 'x'?"),
        ({"by": ["x", "p"]}, ColumnError, "'p' partitions"),
        ({"by": "list"}, ColumnError, "'list'"),
        ({"by": ["x", "x"]}, LayoutError, "named twice"),
        ({"layout": "zorder"}, LayoutError, "Say which columns to cluster by"),
        ({"layout": "spiral(x)"}, LayoutError, "Unknown layout 'spiral'"),
        ({"layout": "zorder(x)", "by": "y"}, LayoutError, "names its columns already"),
        ({}, LayoutError, "records no layout: say which columns"),
        ({"by": "x", "target_file_size": "big"}, ZonalError, "'big' is not a size"),
        ({"by": "x", "target_file_size": 0}, ZonalError, "target_file_size=0 is not a positive number"),
        ({"by": "x", "max_bytes": -1}, ZonalError, "max_bytes=-1 is not a positive number"),
        ({"by": "x", "commit_every": "0MB"}, ZonalError, "'0MB' is not a whole number of bytes"),
        ({"by": "x", "where": "nothing = 1"}, ZonalError, "'nothing'"),
        ({"by": "x", "where": "x ="}, ZonalError, ""),
        ({"layout": "zorder(x, bloom=[z])"}, ColumnError, "Unknown column 'z'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_requests_are_refused_before_anything_is_written(asked, error, told, wrong_tables):
    for table in wrong_tables:
        listing = table.listing()
        with pytest.raises(error) as caught:
            table.cluster(runner=never, **asked)
        assert told in str(caught.value)
        with pytest.raises(error):
            table.plan(**asked)
        assert table.listing() == listing


@pytest.fixture(scope="module")
def wrong_tables(tmp_path_factory):
    rows = telemetry(30).append_column("list", pa.array([[1]] * 30))
    return [home(kind, tmp_path_factory.mktemp("wrong")).make([rows], ["p"]) for kind in NEWEST]


def test_what_exists_is_never_overwritten_by_a_copy(tmp_path):
    before = telemetry(30)
    source = Delta(tmp_path, "source").make([before])
    for target in FORMATS:
        taken = home(target, tmp_path, f"taken{target}").make([before])
        listing = taken.listing()
        with pytest.raises(TableError, match=r"exists|isn't empty"):
            type(source).cluster(_with(source, taken.options), by="x", into=taken.name, runner=never)
        assert taken.listing() == listing
    for name, told in (("elsewhere", "Say which format"), ("iceberg:t", "name it as namespace.table")):
        with pytest.raises(TableError, match=told):
            source.cluster(by="x", into=name, runner=never)
    for option in ({"where": "x = 1"}, {"full": True}, {"max_bytes": 1}, {"commit_every": 1}):
        with pytest.raises(ZonalError, match="into copies the whole table at once: leave out"):
            source.cluster(by="x", into=f"delta:{tmp_path}/new", runner=never, **option)
    assert not (tmp_path / "new").exists()


def test_plain_parquet_and_old_versions_are_not_rewritten_in_place(tmp_path):
    from zonal.verbs.cluster import cluster

    before = telemetry(40)
    plain = Parquet(tmp_path, "plain").make([before])
    with pytest.raises(TableError, match=r"can't be rewritten.*into"):
        plain.cluster(by="x", runner=never)
    delta = Delta(tmp_path, "delta").make(parts_of(before, 2))
    with pytest.raises(TableError, match=r"Version 0 of .* never changes"):
        cluster(f"{delta.name}@0", by="x", runner=never)
    iceberg = Iceberg(tmp_path).make(parts_of(before, 2))
    with pytest.raises(TableError, match="a tag or a snapshot, which never change"):
        cluster(f"{iceberg.name}@{iceberg.version()}", by="x", runner=never, **iceberg.options)
    assert_same_rows(delta.rows(), before)
    copy = Delta(tmp_path, "copy")
    cluster(f"{delta.name}@0", by="x", into=copy.name, runner=Meanwhile())
    assert_same_rows(copy.rows(), before.slice(0, 20))


def test_features_that_a_rewrite_cant_keep_are_named(tmp_path):
    from support.delta_tables import LogWriter, add, field, metadata, protocol

    log = LogWriter(tmp_path / "t")
    log.commit(protocol(1, 7, writer_features=["icebergCompatV2"]), metadata(field("x", "long")), add("a.parquet"))
    with pytest.raises(TableError, match=r"can't be rewritten: .*icebergCompatV2"):
        Delta(tmp_path).cluster(by="x", runner=never)


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


# --- command line ----------------------------------------------------------------------------------------------------


def run(*words):
    from zonal.cli import app

    return CliRunner().invoke(app, ["cluster", *map(str, words)])


def test_a_trial_counts_the_time_of_reading_and_of_sorting_by_the_rows_of_each(tmp_path, monkeypatch):
    """A thousand rows are read in 10 s, and a hundred of them sorted and written in 20 s."""
    table = home("delta", tmp_path).make([telemetry(1000)])
    clock = iter([0.0, 10.0, 30.0])
    monkeypatch.setattr("zonal.study.sample.time.process_time", lambda: next(clock))
    layout = replace(Layout("zorder", ("x", "y")), row_group_rows=400)
    opened = zonal.open_table(table.name)
    snapshot = opened.snapshot()
    writing = opened.writing(snapshot, layout=layout, run="r")
    found = survey(opened.scan(snapshot, np.arange(1)), writing, layout)
    assert found.sizes.row_seconds == pytest.approx(10 / 1000 + 20 / 100)


def test_a_dry_run_prints_the_plan_and_changes_nothing(tmp_path):
    table = Delta(tmp_path).make(parts_of(telemetry(300), 2))
    listing = table.listing()
    told = run(table.root, "--by", "x, y", "--dry-run", "--output", "json", "--target-file-size", "4KB")
    assert told.exit_code == 0, told.output
    plan = json.loads(told.stdout)
    assert (plan["files"], plan["rows"], plan["layout"]) == (2, 300, "zorder(x, y, file_size=4KB)")
    text = run(table.root, "--by", "x,y", "--dry-run")
    assert text.exit_code == 0
    assert "300" in text.stdout
    assert table.listing() == listing


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--by", "nix"], "Unknown column 'nix'"),
        (["--by", "x", "--max-bytes", "5"], "'5' is not a size"),
        (["--by", "x", "--conf", "nonsense"], "--conf 'nonsense' is not KEY=VALUE"),
        (["--by", "x", "--into", "delta:/tmp/x", "--dry-run"], "leave out --into"),
        ([], "records no layout"),
    ],
)
def test_errors_end_the_command_with_code_1_and_a_message(words, told, tmp_path, monkeypatch, capsys):
    from zonal import cli

    table = Delta(tmp_path).make([telemetry(30)])
    monkeypatch.setattr("sys.argv", ["zonal", "cluster", str(table.root), *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert told in " ".join(capsys.readouterr().err.split())
    assert table.version() == 0


@pytest.mark.spark
def test_the_command_rewrites_on_spark_and_reports_json(spark, tmp_path):  # noqa: ARG001 - its session is used
    before = telemetry(3000)
    numbers = before["y"].to_pylist()
    before = before.set_column(2, "y", pa.array([math.nan, *numbers[1:]]))
    table = Delta(tmp_path).make(parts_of(before, 3), ["p"])
    told = run(table.root, "--by", "x,y", "--target-file-size", "8KB", "--output", "json")
    assert told.exit_code == 0, told.output
    done = json.loads(told.stdout)
    assert (done["rows"], done["versions"], done["added_files"]) == (3000, [3], len(table.files()))
    assert_same_rows(table.rows(), before)
    partitions_hold(table, before)
    silent = [file for file in table.files() if not file.footer.row_group(0).column(2).is_stats_set]
    (alone,) = (pq.read_table(file.path, partitioning=None)["y"].to_pylist() for file in silent)
    assert any(map(math.isnan, alone)), "where NaN is travels through Spark"


# --- any table -------------------------------------------------------------------------------------------------------

KEYS = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.one_of(st.none(), st.floats(), st.sampled_from([math.nan, -0.0, 0.0]))
ROW = st.tuples(KEYS, FLOATS, st.sampled_from(["a", "b", "ä/ =%", None]), st.one_of(st.none(), st.text(max_size=5)))
TABLE_SCHEMA = pa.schema({"x": pa.int64(), "y": pa.float64(), "p": pa.string(), "s": pa.string()})


@settings(max_examples=8)
@pytest.mark.parametrize("kind", NEWEST)
@given(
    appends=st.lists(st.lists(ROW, min_size=1, max_size=30), min_size=1, max_size=3),
    layout=st.sampled_from(["zorder(x, y)", "hilbert(y, s)", "linear(s, x)", "zorder(y)"]),
    partitioning=st.sampled_from([(), ("p",)]),
    size=st.sampled_from([300, 1500, 100_000]),
    deleted=st.sampled_from([None, "x > 0", "s is null"]),
    commit_every=st.sampled_from([None, 1, 3000]),
)
def test_any_table_keeps_its_rows(kind, appends, layout, partitioning, size, deleted, commit_every, tmp_path_factory):
    parts = [
        pa.table(dict(zip("xyps", map(list, zip(*rows, strict=True)), strict=True)), TABLE_SCHEMA) for rows in appends
    ]
    table = home(kind, tmp_path_factory.mktemp("any")).make(parts, partitioning)
    if deleted is not None:
        table.table.delete(deleted)
    before = row_counts(table.rows())
    table.cluster(layout=layout, target_file_size=size, commit_every=commit_every)
    assert row_counts(table.rows()) == before
    assert not table.strays()
    assert table.cluster(layout=layout, target_file_size=size, runner=never).versions == ()
