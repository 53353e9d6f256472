"""`cluster` over all formats: the same rows, fewer files to read; the formats' own libraries and DuckDB judge."""

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster_tables import Delta, Iceberg, Parquet, assert_same_rows, home, parts_of, row_counts, telemetry
from zonal.layout import KINDS

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
    done = table.cluster(by=["x", "y"], target_file_size=8000)
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
@pytest.mark.parametrize("layout", [*(f"{kind}(x, y)" for kind in KINDS), "zorder(x, y, s, id, bits=20, salt=3)"])
def test_every_layout_keeps_the_rows(kind, layout, tmp_path):
    before = telemetry(700)
    table = home(kind, tmp_path).make(parts_of(before, 2), ["p"])
    done = table.cluster(layout=layout, target_file_size=4000)
    assert_same_rows(table.rows(), before)
    assert done.depths[0].after < done.depths[0].before


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
    assert not [path for path in tmp_path.glob("zonal-*")]
    if target != "parquet":
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
                found = pa.table({name: found[name].cast(before.schema.field(name).type) for name in found.schema.names})
            assert_same_rows(found, before)


def test_transforms_partition_a_table_but_not_its_copy(tmp_path):
    from pyiceberg.transforms import BucketTransform, DayTransform, TruncateTransform

    moments = pa.array([dt.datetime(2026, 1, 1 + n % 3, n % 24) for n in range(300)], pa.timestamp("us"))
    before = telemetry(300).append_column("ts", moments)
    table = Iceberg(tmp_path)
    made = table.catalog.create_table("db.t", before.schema)
    with made.update_spec() as spec:
        spec.add_field("ts", DayTransform(), "ts_day")
        spec.add_field("x", BucketTransform(3), "x_bucket")
        spec.add_field("s", TruncateTransform(8), "s_trunc")
    table.append(before)
    places = {file.partition for file in table.files()}
    table.cluster(by=["x", "id"])
    assert {file.partition for file in table.files()} == places
    assert len(table.files()) == len(places)
    assert_same_rows(table.rows(), before)
    copy = Delta(tmp_path, "copy")
    table.cluster(by="x", into=copy.name)
    assert len(copy.files()) == 1
    assert_same_rows(copy.rows(), before)


def test_many_small_partitions_share_tasks(tmp_path):
    before = partitioned_by([f"p{number}" for number in range(200)], 1000)
    table = Delta(tmp_path).make([before], ["p"])
    seen = []

    def spying(scan, writing, placement, splits, report):
        from local_runner import run_here

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
    from zonal.demo import telemetry as demo

    before = demo(100_000)
    table = home(kind, tmp_path).make(parts_of(before, 3))
    plan = table.plan(by=["ts", "payload_id"], target_file_size="120KB")
    table.cluster(by=["ts", "payload_id"], target_file_size="120KB")
    sizes = np.array([file.size for file in table.files()])
    assert len(sizes) > 20
    assert np.mean((sizes > 0.6 * 120_000) & (sizes < 1.6 * 120_000)) >= 0.9, sorted(sizes.tolist())
    assert sizes.max() < 2 * 120_000
    assert plan.rows == 100_000
    assert 0.8 < len(sizes) / plan.new_files < 1.25
    assert 0.8 < sizes.sum() / plan.new_bytes < 1.25
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
def test_files_have_row_groups_cut_to_size_with_page_indexes(kind, tmp_path):
    table = home(kind, tmp_path).make([telemetry(6000)])
    table.cluster(layout="zorder(x, y, file_size=40KB, row_group_rows=500)")
    for file in table.files():
        groups = [file.footer.row_group(number) for number in range(file.footer.num_row_groups)]
        assert len(groups) > 1
        assert all(group.num_rows <= 1.5 * 500 for group in groups)
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
        ("iceberg v2", {"write.metadata.metrics.column.x": "counts", "write.metadata.metrics.max-inferred-column-defaults": "1"}),
    ],
)  # fmt: skip
def test_key_columns_have_bounds_even_where_the_table_limits_them(kind, properties, tmp_path):
    table = home(kind, tmp_path).make([telemetry(500)], properties=properties)
    table.cluster(by=["x", "s"])
    (file,) = table.files()
    values = pq.read_table(file.path)
    if kind == "delta":
        (action,) = pa.table(table.table.get_add_actions(flatten=True)).to_pylist()
        bounds = {name: (action[f"min.{name}"], action[f"max.{name}"]) for name in ("x", "s")}
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


@pytest.mark.parametrize("kind", NEWEST)
def test_a_linear_layout_sorts_and_says_so(kind, tmp_path):
    before = telemetry(1500)
    before = before.set_column(1, "x", pa.array([None if n % 50 == 0 else n * 7919 % 90 for n in range(1500)]))
    table = home(kind, tmp_path).make(parts_of(before, 3))
    table.cluster(layout="linear(x, s, file_size=5KB, row_group_rows=100)")
    ranges = []
    for file in table.files():
        found = pq.read_table(file.path)
        keys = [((x is not None, x or 0), s) for x, s in zip(found["x"].to_pylist(), found["s"].to_pylist(), strict=True)]
        assert keys == sorted(keys)
        ranges.append((keys[0], keys[-1]))
        places = [found.schema.get_field_index(name) for name in ("x", "s")]
        for number in range(file.footer.num_row_groups):
            told = file.footer.row_group(number).sorting_columns
            assert [(one.column_index, one.descending, one.nulls_first) for one in told] == [(at, False, True) for at in places]
    ranges.sort()
    assert len(ranges) > 3
    assert all(high[0] <= low[0] for (_, high), (low, _) in zip(ranges, ranges[1:], strict=False))
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
def test_a_value_that_most_rows_have_is_split_over_files(kind, tmp_path):
    before = telemetry(4000)
    heavy = np.where(np.arange(4000) % 10 < 6, 7, np.arange(4000) % 997)
    before = before.set_column(1, "x", pa.array(heavy))
    for number, layout in enumerate(("zorder(x, file_size=6KB)", "linear(x, file_size=6KB)")):
        table = home(kind, tmp_path / str(number)).make(parts_of(before, 2))
        table.cluster(layout=layout)
        files = table.files()
        only = [file for file in files if set(rows_in(file, "x")) == {7}]
        assert len(only) >= 4, "the heavy value has files of its own"
        assert max(file.rows for file in files) < 2.5 * 4000 / len(files)
        assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("layout", KINDS)
def test_nulls_nan_and_columns_without_any_value_are_clustered_by(layout, tmp_path):
    rows = 1200
    before = telemetry(rows)
    y = [[None, math.nan, -0.0, 0.0, math.inf, -math.inf, n / 7][n % 7] for n in range(rows)]
    before = before.set_column(2, "y", pa.array(y, pa.float64()))
    before = before.append_column("none", pa.nulls(rows, pa.int64()))
    before = before.append_column("nan", pa.array([math.nan] * rows))
    for kind in NEWEST:
        table = home(kind, tmp_path / kind).make(parts_of(before, 2))
        done = table.cluster(layout=f"{layout}(none, y, nan)", target_file_size=5000)
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
        done = type(table).cluster(_with(table, table.options | copy.options), by="x", into=copy.name)
        assert done.rows == done.added_files == 0
        if target != "parquet":  # an empty folder is nothing to read
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
    from delta_rewrites import LogWriter, data_file, stored_vector
    from delta_tables import features, field, metadata
    from zonal.tables.delta import DeltaTable as Ours

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
    from delta_rewrites import LogWriter, data_file, rows_of, stored_vector
    from delta_tables import features, field, metadata

    log = LogWriter(tmp_path / "t")
    add = data_file(log, "0.parquet", pa.table({"x": [1, 2]}))
    add["add"]["deletionVector"] = stored_vector(log, [0, 1])
    log.commit(features("deletionVectors"), metadata(field("x", "long")), add)
    done = Delta(tmp_path).cluster(by="x")
    assert (done.removed_files, done.added_files, done.rows, done.files_after) == (1, 0, 0, 0)
    assert rows_of(log) == []
