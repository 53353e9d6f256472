"""Rows never leave their partition, whatever its value is, and copies keep partitions."""

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster_tables import (
    FORMATS,
    IN_A_BUCKET,
    IN_PLACE,
    NEWEST,
    Delta,
    Iceberg,
    assert_same_rows,
    home,
    never,
    opened_with,
    partitions_hold,
    parts_of,
    telemetry,
)
from support.iceberg_rewriting import Writer

STRANGE = ["a/b", "a b", "p%q", "é=+", "x=1", "..", "%2F", "'\"", None, "c:d", "#?&"]
"""Values of partitions that paths, URIs and logs write in different ways."""


def partitioned_by(values, rows=120):
    """Rows of `telemetry`, partitioned by `p` with these values."""
    table = telemetry(rows)
    taken = [values[number % len(values)] for number in range(rows)]
    return table.set_column(table.schema.get_field_index("p"), "p", pa.array(taken))


@pytest.mark.parametrize("kind", [*IN_PLACE, IN_A_BUCKET])
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
    done = type(table).cluster(opened_with(table, options), by=["x", "y"], into=copy.name)
    assert table.listing() == listing
    assert_same_rows(copy.rows(), before)
    partitions_hold(copy, before)
    assert (done.format, done.change.rows, done.change.removed_files) == (target, 120, 0)
    assert done.change.added_files == done.lookups.files_after == len(copy.files()) == len(STRANGE) - 1
    assert not list(tmp_path.glob("zonal-*"))
    if target == "parquet":
        second = Delta(tmp_path, "second")
        assert copy.cluster(into=second.name).layout == "zorder(x, y)", "files say which layout they have"
    else:
        again = copy.cluster(runner=never)
        assert (again.run.versions, again.layout) == ((), "zorder(x, y)")


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
            type(table).cluster(opened_with(table, table.options | copy.options), by="x", into=copy.name)
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
