"""Partition values of Iceberg files: what they say of the columns that they are made of."""

import datetime as dt
import math
import uuid
from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
)

from support.iceberg_snapshots import EPOCH, PRIMITIVES, UTC, assert_sound, column, is_nan, load, new_table, read
from support.iceberg_tables import Handmade, catalog_in
from zonal.snapshot import UNKNOWN


def test_files_keep_their_partition_spec(catalog):
    schema = Schema(column(1, "region", StringType()), column(2, "id", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "region"))
    table = catalog.create_table("db.t", schema, partition_spec=spec)
    arrow = table.schema().as_arrow()
    table.append(pa.Table.from_pylist([{"region": "eu", "id": 1}, {"region": None, "id": 2}], schema=arrow))
    with table.update_spec() as update:
        update.remove_field("region")
    table.append(pa.Table.from_pylist([{"region": "us", "id": 3}], schema=arrow))
    with table.update_schema() as change:
        change.rename_column("region", "place")
    snapshot = load(table)
    files = snapshot.files
    assert snapshot.partitioning == ()
    assert sorted(files.partitions) == ["", "region=eu", "region=null"]
    by_text = {files.partitions[number]: at for at, number in enumerate(files.partition)}
    bounds = files.partition_bounds["place"]
    assert bounds.lower[by_text["region=eu"]].as_py() == bounds.upper[by_text["region=eu"]].as_py() == b"eu"
    assert bounds.nulls[by_text["region=eu"]] == 0
    assert bounds.lower[by_text["region=null"]].as_py() is None
    assert bounds.nulls[by_text["region=null"]] == 1, "all rows are null"
    assert bounds.lower[by_text[""]].as_py() is None
    assert bounds.nulls[by_text[""]] == UNKNOWN, "this spec has no such field"


TIMES = (YearTransform(), MonthTransform(), DayTransform())
TRANSFORMS = {
    **{name: (IdentityTransform(),) for name in PRIMITIVES},
    "int": (IdentityTransform(), TruncateTransform(10), BucketTransform(7)),
    "long": (IdentityTransform(), TruncateTransform(1000), BucketTransform(7)),
    "small": (IdentityTransform(), TruncateTransform(50), BucketTransform(7)),
    "wide": (IdentityTransform(), TruncateTransform(50), BucketTransform(7)),
    "date": (IdentityTransform(), *TIMES, BucketTransform(7)),
    "time": (IdentityTransform(), BucketTransform(7)),
    "ts": (IdentityTransform(), *TIMES, HourTransform(), BucketTransform(7)),
    "tstz": (IdentityTransform(), *TIMES, HourTransform(), BucketTransform(7)),
    "text": (IdentityTransform(), TruncateTransform(2), BucketTransform(7)),
    "blob": (IdentityTransform(), TruncateTransform(2), BucketTransform(7)),
    "fixed": (IdentityTransform(), BucketTransform(7)),
    "uuid": (IdentityTransform(), BucketTransform(7)),
}


def stored(name, value):
    """The value as PyIceberg's transforms and Avro writer take it."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days
    if isinstance(value, dt.time):
        return (dt.datetime.combine(EPOCH.date(), value) - EPOCH) // dt.timedelta(microseconds=1)
    return uuid.UUID(bytes=value) if name == "uuid" and value is not None else value


@settings(max_examples=25)
@given(data=st.data())
def test_partition_values_hold(tmp_path_factory, data):
    name = data.draw(st.sampled_from(list(PRIMITIVES)))
    kind, strategy = PRIMITIVES[name]
    transform = data.draw(st.sampled_from(TRANSFORMS[name]))
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=8))
    spec = PartitionSpec(PartitionField(1, 1000, transform, "part"))
    catalog = catalog_in(tmp_path_factory.mktemp("parts"))
    made = Handmade(catalog.create_table("db.t", Schema(column(1, name, kind)), partition_spec=spec))
    groups = {}
    for value in values:
        part = transform.transform(kind)(stored(name, value))
        groups.setdefault("NaN" if is_nan(part) else part, []).append(value)
    files = [
        made.data_file("f", partition=Record(math.nan if part == "NaN" else part), record_count=len(group))
        for part, group in groups.items()
    ]
    made.add_manifest(files)
    live = read(made.commit()).files
    for at, group in enumerate(groups.values()):
        assert_sound(live.partition_bounds[name], at, group, f"{transform} of {name}")
    for buckets in live.buckets:
        for at, group in enumerate(groups.values()):
            known = {buckets.bucket_of(value) for value in group}
            assert known <= {None, buckets.values[at]}, f"{transform} of {name}"


def partitioned(catalog, kind, *transforms, values, format_version=2):
    """One file for each tuple of partition values of the column `c`."""
    made = Handmade(new_table(catalog, kind, *transforms), format_version=format_version)
    made.retype(c=kind)
    made.add_manifest([made.data_file(f"f{i}", partition=Record(*one)) for i, one in enumerate(values)])
    return read(made.commit())


def ranges(snapshot):
    bounds = snapshot.files.partition_bounds["c"]
    return list(zip(bounds.lower.to_pylist(), bounds.upper.to_pylist(), strict=True))


def test_periods_are_exact_after_1970_and_wider_before(catalog):
    snapshot = partitioned(catalog, TimestampType(), MonthTransform(), values=[(1,), (0,), (-1,), (None,)])
    microsecond = dt.timedelta(microseconds=1)
    months = [
        dt.datetime(1969, 11, 1),
        dt.datetime(1969, 12, 1),
        EPOCH,
        dt.datetime(1970, 2, 1),
        dt.datetime(1970, 3, 1),
    ]
    assert ranges(snapshot) == [
        (months[3], months[4] - microsecond),
        (months[1], months[3] - microsecond),  # old writers put December 1969 here
        (months[0], months[2] - microsecond),
        (None, None),
    ]
    assert snapshot.files.partitions == ("f0=1970-02", "f0=1970-01", "f0=1969-12", "f0=null")
    assert snapshot.files.partition_bounds["c"].nulls.tolist() == [0, 0, 0, 10]
    days = partitioned(catalog, DateType(), DayTransform(), values=[(-1,), (20_000,)])
    assert ranges(days) == [(dt.date(1969, 12, 31),) * 2, (dt.date(2024, 10, 4),) * 2], "days of dates were never wrong"


def test_periods_that_the_type_cannot_hold_have_no_bounds(catalog):
    snapshot = partitioned(catalog, TimestampNanoType(), YearTransform(), values=[(400,), (-400,)], format_version=3)
    assert ranges(snapshot) == [(None, None), (None, None)]


def test_two_fields_of_one_column_meet(catalog):
    snapshot = partitioned(catalog, LongType(), TruncateTransform(100), TruncateTransform(30), values=[(100, 90)])
    assert ranges(snapshot) == [(100, 119)]
    assert snapshot.partitioning == ("truncate[100](c)", "truncate[30](c)")


def test_prefixes_are_below_everything_they_start(catalog):
    text = partitioned(catalog, StringType(), TruncateTransform(2), values=[("ab",), ("a",), ("😀",)])
    assert ranges(text) == [(b"ab", b"ab\xff"), (b"a", b"a"), ("😀".encode(), "😀".encode() + b"\xff")]
    blob = partitioned(catalog, BinaryType(), TruncateTransform(2), values=[(b"a\xff",), (b"\xff\xff",), (b"a",)])
    assert ranges(blob) == [(b"a\xff", b"b"), (b"\xff\xff", None), (b"a", b"a")]


def test_truncated_numbers_at_the_end_of_their_type(catalog):
    assert ranges(partitioned(catalog, IntegerType(), TruncateTransform(10), values=[(-10,), (2_147_483_640,)])) == [
        (-10, -1),
        (2_147_483_640, None),
    ]


def test_nan_partition_is_one_partition(catalog):
    snapshot = partitioned(catalog, DoubleType(), IdentityTransform(), values=[(math.nan,), (math.nan,), (1.5,)])
    assert snapshot.files.partitions == ("f0=nan", "f0=1.5")
    assert snapshot.files.partition_bounds["c"].nans.tolist() == [10, 10, 0]


def test_void_fields_and_escapes_in_partition_texts(catalog):
    snapshot = partitioned(catalog, StringType(), VoidTransform(), IdentityTransform(), values=[(None, "a/b=c%\n")])
    assert snapshot.files.partitions == ("f1=a%2Fb%3Dc%25%0A",)
    assert snapshot.partitioning == ("c",)


def test_buckets_tell_values_apart_and_refuse_other_types(catalog):
    snapshot = partitioned(catalog, LongType(), BucketTransform(16), values=[(3,), (None,), (15,)])
    (buckets,) = snapshot.files.buckets
    assert (buckets.column, buckets.values.tolist()) == ("c", [3, UNKNOWN, 15])
    assert snapshot.partitioning == ("bucket[16](c)",)
    assert buckets.bucket_of(34) == BucketTransform(16).transform(LongType())(34)
    assert [buckets.bucket_of(value) for value in (None, "34", 34.0, True, 2**80, Decimal(34))] == [None] * 6
    assert snapshot.files.partition_bounds["c"].nulls.tolist() == [0, 10, 0], "a null bucket is null rows"
    (decimals,) = partitioned(catalog, DecimalType(9, 2), BucketTransform(16), values=[(3,)]).files.buckets
    assert decimals.bucket_of(Decimal("1.5")) == decimals.bucket_of(Decimal("1.50")) is not None
    assert decimals.bucket_of(Decimal("1.505")) is None
    (moments,) = partitioned(catalog, TimestamptzType(), BucketTransform(16), values=[(3,)]).files.buckets
    assert moments.bucket_of(EPOCH) is None, "a time without a zone"
    assert moments.bucket_of(EPOCH.replace(tzinfo=UTC)) is not None
