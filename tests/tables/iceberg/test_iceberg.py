"""Iceberg metadata: bounds that hold, partitions, deletes, versions, and damaged or missing pieces."""

import datetime as dt
import json
import math
import os
import random
import struct
import uuid
from decimal import Context, Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import FileFormat, ManifestEntryStatus
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
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from support.iceberg_tables import Handmade, catalog_in, properties_in
from zonal.errors import TableError, naming_flags
from zonal.layouts.layout import Layout
from zonal.snapshot import UNKNOWN
from zonal.tables.iceberg.table import IcebergTable

UTC = dt.timezone.utc
EPOCH, DAY = dt.datetime(1970, 1, 1), dt.timedelta(days=1)
DAY_2 = struct.pack("<q", 2 * 86_400_000_000)
LONG = Schema(NestedField(1, "id", LongType(), required=False))


def column(number, name, kind):
    return NestedField(number, name, kind, required=False)


@pytest.fixture
def catalog(tmp_path):
    return catalog_in(tmp_path)


def load(table, **options):
    return IcebergTable("db.t", table, **options).snapshot()


def read(path, **options):
    return IcebergTable.from_metadata(path, **options).snapshot()


# --- bounds --------------------------------------------------------------------------------------------------------

WIDE = Context(prec=60)
PRIMITIVES = {
    "bool": (BooleanType(), st.booleans()),
    "int": (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "long": (LongType(), st.integers(-(2**63), 2**63 - 1)),
    "float": (FloatType(), st.floats(width=32)),
    "double": (DoubleType(), st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan]))),
    "small": (DecimalType(9, 2), st.decimals(-(10**6), 10**6, places=2)),
    "wide": (DecimalType(38, 3), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda i: Decimal(i).scaleb(-3, WIDE))),
    "date": (DateType(), st.dates()),
    "time": (TimeType(), st.times()),
    "ts": (TimestampType(), st.datetimes()),
    "tstz": (TimestamptzType(), st.datetimes(timezones=st.just(UTC))),
    "text": (StringType(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)),
    "blob": (BinaryType(), st.binary(max_size=40)),
    "fixed": (FixedType(20), st.binary(min_size=20, max_size=20)),
    "uuid": (UUIDType(), st.binary(min_size=16, max_size=16)),
}


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def plain(value):
    """The value in the form that bounds have in Python."""
    return value.encode() if isinstance(value, str) else value


def assert_sound(bounds, at, values, what):
    """Every value of the unit lies within its bounds, and counts that are known are right."""
    lower, upper = bounds.lower[at].as_py(), bounds.upper[at].as_py()
    usual = [plain(value) for value in values if value is not None and not is_nan(value)]
    for value in usual:
        assert lower is None or lower <= value, f"{what}: {value!r} is below {lower!r}"
        assert upper is None or value <= upper, f"{what}: {value!r} is above {upper!r}"
    assert bounds.nulls[at] in (UNKNOWN, values.count(None)), f"{what}: nulls"
    assert bounds.nans[at] in (UNKNOWN, sum(map(is_nan, values))), f"{what}: NaNs"


@settings(max_examples=12)
@given(data=st.data())
def test_bounds_of_written_files_hold(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("written")
    schema = Schema(*(column(i, name, kind) for i, (name, (kind, _)) in enumerate(PRIMITIVES.items(), 1)))
    table = catalog_in(folder).create_table("db.t", schema)
    units, added = [], []
    for _ in range(2):
        rows = data.draw(st.integers(1, 6))
        values = {
            name: data.draw(st.lists(st.none() | strategy, min_size=rows, max_size=rows), label=name)
            for name, (_, strategy) in PRIMITIVES.items()
        }
        table.append(pa.table(values, schema=table.schema().as_arrow()))
        units.append(values)
        added.append(table.current_snapshot().snapshot_id)
    files = load(table).files
    for name in PRIMITIVES:
        for snapshot_id, unit in zip(added, units, strict=True):
            assert_sound(files.bounds[name], files.added_by.tolist().index(snapshot_id), unit[name], name)


def test_all_types_have_their_exact_bounds(catalog):
    schema = Schema(*(column(i, name, kind) for i, (name, (kind, _)) in enumerate(PRIMITIVES.items(), 1)))
    table = catalog.create_table("db.t", schema)
    first = dict.fromkeys(PRIMITIVES)
    values = {
        "bool": (False, True),
        "int": (-1, 2),
        "long": (-(2**40), 2**40),
        "float": (-0.5, 1.5),
        "double": (-1e300, math.inf),
        "small": (Decimal("-1.25"), Decimal("7.00")),
        "wide": (Decimal("-1.000"), Decimal("99999999999999999999.125")),
        "date": (dt.date(1969, 1, 1), dt.date(2026, 1, 1)),
        "time": (dt.time(1), dt.time(23, 59, 59, 999999)),
        "ts": (dt.datetime(1960, 1, 1, 12), dt.datetime(2026, 1, 1)),
        "tstz": (dt.datetime(1960, 1, 1, tzinfo=UTC), dt.datetime(2026, 1, 1, tzinfo=UTC)),
        "text": ("a", "b"),
        "blob": (b"\x00", b"\xff"),
    }
    rows = [first | {name: pair[side] for name, pair in values.items()} for side in (0, 1)]
    rows.append(first | {"float": math.nan, "double": math.nan})
    rows.append(first)
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    files = load(table).files
    for name, (low, high) in values.items():
        bounds = files.bounds[name]
        assert (bounds.lower[0].as_py(), bounds.upper[0].as_py()) == (plain(low), plain(high)), name
        assert bounds.nulls.tolist() == [1 if name in ("float", "double") else 2], name
    assert files.bounds["float"].nans.tolist() == [UNKNOWN], "PyIceberg counts no NaN"
    assert files.bounds["int"].nans.tolist() == [0]
    assert files.bounds["uuid"].lower.type == pa.binary(16)
    assert files.bounds["text"].lower.type == pa.large_binary()


def test_schema_has_the_types_of_parquet_reading(catalog):
    struct_type = StructType(column(2, "name", StringType()), column(3, "x", DoubleType()))
    schema = Schema(
        column(1, "s", struct_type),
        column(4, "tags", ListType(5, StringType(), element_required=False)),
        column(6, "b", BinaryType()),
    )
    table = catalog.create_table("db.t", schema)
    snapshot = load(table)
    assert snapshot.schema.field("s").type == pa.struct([("name", pa.string()), ("x", pa.float64())])
    assert snapshot.schema.field("tags").type.value_type == pa.string()
    assert snapshot.schema.field("b").type == pa.binary()
    assert set(snapshot.files.bounds) == {"s.name", "s.x", "b"}, "lists have no bounds"
    given = {name: table.schema().find_field(name).field_id for name in ("s.name", "s.x", "tags", "b")}
    assert {name: place.field_id for name, place in snapshot.physical.items()} == given


def new_table(catalog, kind, *transforms):
    """A table of the column `c`; types of version 3, which PyIceberg doesn't create, are put in by `retype`."""
    kind = TimestampType() if kind.minimum_format_version() > 2 else kind
    spec = PartitionSpec(*(PartitionField(1, 1000 + i, transform, f"f{i}") for i, transform in enumerate(transforms)))
    return catalog.create_table(f"db.t{uuid.uuid4().hex}", Schema(column(1, "c", kind)), partition_spec=spec)


def bounds_of(catalog, kind, lower, upper):
    made = Handmade(new_table(catalog, kind), format_version=3)
    made.retype(c=kind)
    made.add_manifest([made.data_file("a.parquet", lower_bounds={1: lower}, upper_bounds={1: upper})])
    bounds = read(made.commit()).files.bounds["c"]
    return bounds.lower[0].as_py(), bounds.upper[0].as_py()


@pytest.mark.parametrize(
    ("case", "kind", "stored_bounds", "expected"),
    [
        ("int in a long", LongType(), (struct.pack("<i", -5), struct.pack("<q", 2**40)), (-5, 2**40)),
        ("float in a double", DoubleType(), (struct.pack("<f", 0.5), struct.pack("<d", 0.7)), (0.5, 0.7)),
        ("short decimals", DecimalType(18, 2), (b"\xff", b"\x01\x00"), (Decimal("-0.01"), Decimal("2.56"))),
        ("decimal too wide", DecimalType(2, 0), (b"\x00", b"\x7f\xff"), (Decimal(0), None)),
        ("date in a timestamp", TimestampType(), (struct.pack("<i", 1), DAY_2), (EPOCH + DAY, EPOCH + 2 * DAY)),
        ("far date in a timestamp", TimestampType(), (struct.pack("<i", 2**31 - 1), b""), (None, None)),
        ("NaN", DoubleType(), (struct.pack("<d", 1.0), struct.pack("<d", math.nan)), (1.0, None)),
        ("crossed", LongType(), (struct.pack("<q", 2), struct.pack("<q", 1)), (None, None)),
        ("wrong length", LongType(), (b"abc", struct.pack("<q", 1)), (None, 1)),
        ("empty", DecimalType(9, 2), (b"", b""), (None, None)),
        ("padded text", StringType(), (b"abc\0", b"abd\0"), (b"abc", b"abd\0")),
        ("half a character", StringType(), ("é".encode()[:1], b"\xff"), (b"\xc3", b"\xff")),
        ("cut fixed", FixedType(4), (b"ab", b"ac"), (b"ab\0\0", b"ac\xff\xff")),
        ("signed uuids", UUIDType(), (b"\x90" * 16, b"\x10" * 16), (None, None)),
        ("unknown type", UnknownType(), (b"a", b"b"), (None, None)),
    ],
)
def test_stored_bytes(catalog, case, kind, stored_bounds, expected):
    assert bounds_of(catalog, kind, *stored_bounds) == expected, case


def test_uuid_bounds_rely_on_the_first_half_only(catalog):
    lower, upper = bounds_of(catalog, UUIDType(), b"\x10" * 16, b"\x20" * 16)
    assert lower == b"\x10" * 8 + b"\0" * 8
    assert upper == b"\x20" * 8 + b"\xff" * 8


def test_field_ids_and_lengths_of_several_bytes(catalog):
    ids = [1, 63, 64, 8191, 8192, 2_000_000]
    made = Handmade(catalog.create_table("db.t", Schema(*(column(i, f"c{i}", BinaryType()) for i in ids))))
    for field, number in zip(made.metadata["schemas"][0]["fields"], ids, strict=True):
        field["id"] = number
    made.metadata["last-column-id"] = ids[-1]
    lower = {number: bytes([at]) * (at * 30) for at, number in enumerate(ids)}
    nulls = dict(zip(ids, (0, 63, 64, 8192, 2**31, 2**62), strict=True))
    made.add_manifest([made.data_file("a", lower_bounds=lower, null_value_counts=nulls)])
    bounds = read(made.commit()).files.bounds
    assert {number: bounds[f"c{number}"].lower[0].as_py() for number in ids} == lower
    assert {number: bounds[f"c{number}"].nulls[0] for number in ids} == nulls


# --- evolution -----------------------------------------------------------------------------------------------------


def test_schema_evolution_resolves_by_field_id(catalog):
    schema = Schema(
        column(1, "i", IntegerType()),
        column(2, "f", FloatType()),
        column(3, "d", DecimalType(9, 2)),
        column(4, "gone", LongType()),
        column(5, "s", StructType(column(6, "x", IntegerType()))),
    )
    table = catalog.create_table("db.t", schema)
    rows = [{"i": 3, "f": 1.5, "d": Decimal("1.25"), "gone": 9, "s": {"x": -7}}]
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    with table.update_schema() as update:
        update.update_column("i", LongType()).rename_column("i", "renamed")
        update.update_column("f", DoubleType())
        update.update_column("d", DecimalType(20, 2))
        update.update_column(("s", "x"), LongType()).rename_column(("s", "x"), "y")
        update.delete_column("gone")
        update.add_column("added", StringType())
    snapshot = load(table)
    got = {name: bounds.lower[0].as_py() for name, bounds in snapshot.files.bounds.items()}
    # PyIceberg writes no bounds of struct leaves.
    assert got == {"renamed": 3, "f": 1.5, "d": Decimal("1.25"), "s.y": None, "added": None}
    assert snapshot.files.bounds["renamed"].lower.type == pa.int64()
    assert snapshot.files.bounds["added"].nulls.tolist() == [UNKNOWN], "an initial default may stand there"
    old = load(table, version=snapshot.version)
    assert old.schema.names == ["i", "f", "d", "gone", "s"], "a snapshot is read with its own schema"
    assert old.files.bounds["gone"].lower[0].as_py() == 9


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


# --- partitions ----------------------------------------------------------------------------------------------------

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


# --- deletes -------------------------------------------------------------------------------------------------------


def test_deletes_of_all_kinds(catalog):
    made = Handmade(catalog.create_table("db.t", LONG), format_version=3)
    made.add_manifest([made.equality_deletes("older-eq.parquet")])
    made.commit()
    made.add_manifest([made.data_file(name) for name in ("vector", "referenced", "bounds", "loose", "plain")])
    made.commit()
    made.add_manifest(
        [
            made.deletion_vector("vector", record_count=4),
            made.position_deletes("p0", referenced_data_file="vector", record_count=2),
            made.position_deletes("p1", referenced_data_file="referenced", record_count=3),
            made.position_deletes("p2", paths=("bounds", "bounds"), record_count=5),
            made.position_deletes("p3", paths=("kilo", "love")),
            made.position_deletes("p4", referenced_data_file="no such file"),
        ]
    )
    made.commit()
    made.add_manifest([made.data_file("later")])
    before = read(made.commit()).files
    assert dict(zip(before.paths.to_pylist(), before.delete_files.tolist(), strict=True)) == {
        "vector": 1,
        "referenced": 1,
        "bounds": 1,
        "loose": 1,
        "plain": 0,
        "later": 0,
    }
    assert before.deleted.tolist() == [4, 3, 5, UNKNOWN, 0, 0]
    made.add_manifest([made.equality_deletes("eq.parquet")])
    after = read(made.commit()).files
    assert after.delete_files.tolist() == [2, 2, 2, 2, 1, 1]
    assert after.deleted.tolist() == [UNKNOWN] * 6


def test_position_deletes_apply_to_their_own_commit_and_equality_deletes_do_not(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("a")])
    made.add_manifest([made.position_deletes("p"), made.equality_deletes("e")])
    assert read(made.commit()).files.delete_files.tolist() == [1]


def test_equality_deletes_stay_in_their_partition_unless_their_spec_has_none(catalog):
    table = catalog.create_table("db.t", LONG)
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id_part")
    made = Handmade(table)
    made.add_manifest([made.data_file("x", partition=Record(1)), made.data_file("y", partition=Record(2))], spec_id=1)
    made.add_manifest([made.data_file("z")], spec_id=0)
    made.commit()
    made.add_manifest([made.equality_deletes("in-1", partition=Record(1))], spec_id=1)
    made.add_manifest([made.equality_deletes("in-3", partition=Record(3))], spec_id=1)
    assert read(made.commit()).files.delete_files.tolist() == [1, 0, 0]
    made.add_manifest([made.equality_deletes("everywhere")], spec_id=0)
    assert read(made.commit()).files.delete_files.tolist() == [2, 1, 1]


def test_deletes_match_the_specification_by_brute_force(catalog):
    chance = random.Random(7)  # noqa: S311
    table = catalog.create_table("db.t", LONG)
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id_part")
    made = Handmade(table)
    data, deletes = [], []
    for sequence in range(1, 9):
        parts = [chance.randrange(3) for _ in range(4)]
        names = [f"f{chance.randrange(100):02d}-{sequence}-{i}" for i in range(4)]
        files = [made.data_file(name, partition=Record(part)) for name, part in zip(names, parts, strict=True)]
        data += [(name, part, sequence) for name, part in zip(names, parts, strict=True)]
        made.add_manifest(files, spec_id=1)
        new = []
        for _ in range(3):
            part, (low, high) = chance.randrange(3), sorted(f"f{chance.randrange(100):02d}" for _ in range(2))
            if chance.random() < 0.5:
                new.append(made.equality_deletes("e", partition=Record(part)))
                deletes.append(("equality", part, sequence, "", "z"))
            else:
                new.append(made.position_deletes("p", paths=(low, high), partition=Record(part)))
                deletes.append(("position", part, sequence, low, high))
        made.add_manifest(new, spec_id=1)
        path = made.commit()
    files = read(path).files
    for at, (name, part, sequence) in enumerate(data):
        expected = sum(
            (sequence < at_sequence if kind == "equality" else sequence <= at_sequence and low <= name <= high)
            for kind, its_part, at_sequence, low, high in deletes
            if its_part == part
        )
        position = files.paths.to_pylist().index(name)
        assert files.delete_files[position] == expected, (at, name)


def test_copy_on_write_delete_leaves_live_files_only(catalog):
    table = catalog.create_table("db.t", LONG)
    for start in (0, 10):
        table.append(pa.table({"id": pa.array(range(start, start + 5), pa.int64())}))
    table.delete("id < 3")
    files = load(table).files
    assert sorted(files.rows.tolist()) == [2, 5]
    assert files.delete_files.tolist() == [0, 0]
    assert sorted(files.bounds["id"].lower.to_pylist()) == [3, 10]


def test_entries_marked_deleted_are_not_live(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("gone")], status=ManifestEntryStatus.DELETED)
    made.add_manifest([made.data_file("here")], status=ManifestEntryStatus.EXISTING)
    assert read(made.commit()).files.paths.to_pylist() == ["here"]


# --- versions ------------------------------------------------------------------------------------------------------


def test_branches_tags_and_snapshots(catalog):
    table = catalog.create_table("db.t", LONG)
    empty = load(table)
    assert (len(empty.files), empty.version, empty.time, empty.commits) == (0, None, None, {})
    assert len(empty.files.bounds["id"].lower) == 0
    table.append(pa.table({"id": pa.array([1, 2])}))
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "release").create_branch(first, "audit").commit()
    with table.update_schema() as update:
        update.add_column("more", LongType())
    table.append(pa.table({"id": pa.array([3]), "more": pa.array([4])}))
    newest = load(table)
    assert (len(newest.files), newest.version) == (2, table.current_snapshot().snapshot_id)
    assert newest.time.tzinfo is UTC
    assert list(newest.commits) == [first, newest.version]
    assert newest.commits[first].operation == "append"
    assert newest.commits[first].details["added-records"] == "2"
    assert sorted(newest.files.added_by.tolist()) == sorted([first, newest.version])
    for version in (first, str(first), "release", "audit"):
        old = load(table, version=version)
        assert (old.version, len(old.files)) == (first, 1)
        assert old.schema.names == (["id", "more"] if version == "audit" else ["id"]), version
    with pytest.raises(TableError, match=r"Unknown version 'relaese'.*Did you mean 'release'\?"):
        load(table, version="relaese")
    with pytest.raises(TableError, match=f"Unknown version '7'.*{first}"):
        load(table, version=7)


def test_metadata_file_and_catalog_tell_the_same(catalog, tmp_path):
    table = catalog.create_table("db.t", LONG, properties={"note": "x"})
    table.append(pa.table({"id": pa.array([1, 2])}))
    by_file = IcebergTable.from_metadata(table.metadata_location)
    by_name = IcebergTable.from_catalog("db.t", catalog="test", catalog_properties=properties_in(tmp_path))
    assert by_name.name == "db.t"
    assert by_file.name == table.metadata_location
    one, other = by_file.snapshot(), by_name.snapshot()
    assert one.files.paths.equals(other.files.paths)
    assert one.location == other.location == table.location()
    assert one.properties["note"] == "x"
    with by_name.open_file(one.files.paths[0].as_py()) as file:
        assert file.read(4) == b"PAR1"
        assert file.seek(0) == 0
    with pytest.raises(TableError, match=r"nothing\.parquet.* doesn't exist"):
        by_name.open_file(f"{table.location()}/data/nothing.parquet")


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_all_format_versions(catalog, format_version):
    table = catalog.create_table("db.t", LONG, properties={"format-version": str(min(format_version, 2))})
    made = Handmade(table, format_version=format_version)
    bound = {1: struct.pack("<q", 5)}
    made.add_manifest([made.data_file("a", lower_bounds=bound, upper_bounds=bound, null_value_counts={1: 2})])
    snapshot = read(made.commit())
    assert snapshot.files.paths.to_pylist() == ["a"]
    assert snapshot.files.added_by.tolist() == [snapshot.version]
    assert snapshot.files.bounds["id"].upper.to_pylist() == [5]
    assert snapshot.files.bounds["id"].nulls.tolist() == [2]
    assert snapshot.files.delete_files.tolist() == [0]
    assert snapshot.blockers == ()


# --- layouts, blockers, errors -------------------------------------------------------------------------------------


def test_layout_of_table_and_files(catalog):
    layout = Layout.parse("zorder(id, more)")
    table = catalog.create_table("db.t", LONG, properties={"zonal.layout": layout.to_json()})
    table.append(pa.table({"id": pa.array([1])}))
    for number, text in enumerate((layout.to_json(), layout.id, "{}")):
        table.append(pa.table({"id": pa.array([number])}), snapshot_properties={"zonal.layout": text})
    snapshot = load(table)
    assert snapshot.layout == layout
    assert snapshot.problems == ()
    assert sorted(snapshot.files.layout_ids.to_pylist(), key=str) == [layout.id, layout.id, None, None]
    with table.transaction() as change:
        change.set_properties({"zonal.layout": "{}"})
    broken = load(table)
    assert broken.layout is None
    assert "zonal.layout" in broken.problems[0]


def test_blockers_name_what_cannot_be_rewritten(catalog):
    schema = Schema(column(1, "id", LongType()), column(2, "ns", LongType()), column(3, "u", LongType()))
    made = Handmade(catalog.create_table("db.t", schema), format_version=3)
    made.retype(ns=TimestampNanoType(), u=UnknownType())
    bound = {1: struct.pack("<q", 5)}
    made.add_manifest(
        [
            made.data_file("a", key_metadata=b"key"),
            made.data_file("b", file_format=FileFormat.ORC, lower_bounds=bound),
            made.data_file("c", file_format=FileFormat.AVRO),
        ]
    )
    snapshot = read(made.commit())
    assert snapshot.blockers == (
        "1 of 3 data files are AVRO; zonal rewrites Parquet files only.",
        "1 of 3 data files are ORC; zonal rewrites Parquet files only.",
        "The table is encrypted; zonal has no keys.",
        "zonal can't write columns of these types: ns (timestamp_ns), u (unknown).",
    )
    assert snapshot.files.bounds["id"].lower.to_pylist() == [None, 5, None], "ORC files have bounds all the same"
    assert snapshot.files.bounds["u"].lower.type == pa.null()


def test_missing_manifest_is_named(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    manifest = Path(made.add_manifest([made.data_file("a")]))
    path = made.commit()
    manifest.unlink()
    with pytest.raises(TableError, match=manifest.name):
        read(path)


def test_damaged_manifests_are_errors_and_never_crash(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    bound = {1: struct.pack("<q", 5)}
    files = [made.data_file(f"f{i}", lower_bounds=bound, null_value_counts={1: i}) for i in range(20)]
    manifest = Path(made.add_manifest(files))
    path, whole = made.commit(), manifest.read_bytes()
    chance = random.Random(1)  # noqa: S311
    for _ in range(60):
        manifest.write_bytes(whole[: chance.randrange(len(whole))])
        with pytest.raises(TableError, match=manifest.name):
            read(path)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        manifest.write_bytes(damaged)
        try:
            snapshot = read(path)
            assert len(snapshot.files.bounds["id"].lower) == len(snapshot.files), "decoded into something consistent"
        except TableError as error:
            assert manifest.name in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"record_count": -1}, "number of rows of 'one.parquet' can't be -1"),
        ({"record_count": -(2**40)}, "number of rows of 'one.parquet' can't be -1099511627776"),
        ({"file_size_in_bytes": -7}, "size of 'one.parquet' can't be -7"),
        ({"file_size_in_bytes": 10**18}, "size of 'one.parquet' can't be 1000000000000000000"),
    ],
)
def test_counts_that_no_file_has_are_errors_that_name_it(catalog, fields, message):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("one.parquet", **fields)])
    with pytest.raises(TableError, match=message):
        read(made.commit())


def test_a_path_that_no_file_has_is_an_error_that_names_it(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("a\0b")])
    with pytest.raises(TableError, match=r"no file can be called 'a\\x00b'"):
        read(made.commit())


def test_a_location_that_pyiceberg_takes_for_a_relative_path_is_refused(catalog, tmp_path):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.metadata["location"] = f"file://localhost{tmp_path}/warehouse/db/t"
    made.add_manifest([made.data_file("a")])
    with pytest.raises(TableError, match="takes the machine's name for a folder"):
        read(made.commit())


def test_a_pipe_is_refused_and_not_waited_for(catalog, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    table = IcebergTable("db.t", catalog.create_table("db.t", LONG))
    for path in (f"{tmp_path}/pipe", f"file://{tmp_path}/pipe", f"file://localhost{tmp_path}/pipe"):
        with pytest.raises(TableError, match=r"/pipe'.* isn't a regular file"):
            table.open_file(path)


def test_damaged_metadata_file_is_named(tmp_path):
    path = tmp_path / "v1.metadata.json"
    with pytest.raises(TableError, match=r"There is no metadata file .*v1\.metadata\.json"):
        IcebergTable.from_metadata(str(path))
    for text in ("{", "{}", json.dumps({"format-version": 9})):
        path.write_text(text)
        with pytest.raises(TableError, match=r"Can't read the metadata file .*v1\.metadata\.json"):
            IcebergTable.from_metadata(str(path))


# --- catalogs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, and no configuration of PyIceberg."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE", "PYICEBERG_HOME"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.chdir(folder)
    return folder


def test_no_catalog_says_how_to_configure_one_and_creates_nothing(home):
    with pytest.raises(TableError, match=r"No Iceberg catalog.*\.pyiceberg\.yaml.*PYICEBERG_CATALOG__DEFAULT__URI"):
        IcebergTable.from_catalog("db.t")
    with pytest.raises(TableError, match=r"Unknown catalog 'prod'.*PYICEBERG_CATALOG__PROD__URI"):
        IcebergTable.from_catalog("db.t", catalog="prod")
    with pytest.raises(TableError, match=r"no database file .*none\.db"):
        IcebergTable.from_catalog("db.t", catalog_properties={"uri": f"sqlite:///{home}/none.db"})
    assert list(home.iterdir()) == []


def test_embedded_and_configured_catalogs(home, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    (home / ".zonal").mkdir()
    uri = f"sqlite:///{home}/.zonal/catalog.db"
    for name in ("zonal", "prod"):
        catalog = SqlCatalog(name, uri=uri, warehouse=f"file://{home}/.zonal/warehouse/{name}")
        catalog.create_namespace("db")
        catalog.create_table("db.events", LONG)
    assert IcebergTable.from_catalog("db.events").snapshot().location.endswith("zonal/db/events")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", uri)
    assert IcebergTable.from_catalog("db.events", catalog="prod").snapshot().location.endswith("prod/db/events")
    with pytest.raises(TableError, match=r"no table 'db\.event'.*'prod'.*Did you mean 'db\.events'\?"):
        IcebergTable.from_catalog("db.event", catalog="prod")
    with pytest.raises(TableError, match=r"no table 'dc\.events'.*no namespace 'dc' either.*'db'"):
        IcebergTable.from_catalog("dc.events", catalog="prod")
    with pytest.raises(TableError, match="'events'"):
        IcebergTable.from_catalog("events", catalog="prod")


def test_the_only_catalog_is_the_default_and_several_are_named(home, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    for name in ("prod", "other"):
        catalog = SqlCatalog(name, uri=f"sqlite:///{home}/{name}.db", warehouse=f"file://{home}/{name}")
        catalog.create_namespace("db")
        catalog.create_table("db.events", LONG)
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  prod:\n    uri: sqlite:///{home}/prod.db\n")
    assert IcebergTable.from_catalog("db.events").snapshot().location.endswith("prod/db/events")
    own = {"uri": f"sqlite:///{home}/none.db"}
    with pytest.raises(TableError, match=r"The catalog 'default' has no database file .*none\.db"):
        IcebergTable.from_catalog("db.events", catalog_properties=own)
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", f"sqlite:///{home}/other.db")
    with pytest.raises(TableError, match=r"Several Iceberg catalogs are configured: 'prod', 'other'\. Name one: cat"):
        IcebergTable.from_catalog("db.events")
    with naming_flags(), pytest.raises(TableError, match="Name one: --catalog prod"):
        IcebergTable.from_catalog("db.events")
    assert IcebergTable.from_catalog("db.events", catalog="other").snapshot().location.endswith("other/db/events")
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "other")
    assert IcebergTable.from_catalog("db.events").snapshot().location.endswith("other/db/events")


def test_the_embedded_catalog_has_a_name_beside_others(home, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    with pytest.raises(TableError, match="Unknown catalog 'zonal'"):
        IcebergTable.from_catalog("db.events", catalog="zonal")
    (home / ".zonal").mkdir()
    catalog = SqlCatalog("zonal", uri=f"sqlite:///{home}/.zonal/catalog.db", warehouse=f"file://{home}/own")
    catalog.create_namespace("db")
    catalog.create_table("db.events", LONG)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{home}/prod.db")
    assert IcebergTable.from_catalog("db.events", catalog="zonal").snapshot().location.endswith("own/db/events")


def test_errors_of_catalogs_show_no_password(monkeypatch):
    def refuse(_, **properties):
        raise ValueError(f"can't parse {properties['uri']}")

    monkeypatch.setattr("zonal.tables.iceberg.table.load_catalog", refuse)
    with pytest.raises(TableError, match=r"postgresql://…@host/x") as caught:
        IcebergTable.from_catalog("db.t", catalog="c", catalog_properties={"uri": "postgresql://me:hunter2@host/x"})
    assert "hunter2" not in str(caught.value)
