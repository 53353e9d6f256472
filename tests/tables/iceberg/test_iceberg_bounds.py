"""Bounds of Iceberg files: those of all types hold, whatever wrote them and however the schema changed."""

import datetime as dt
import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    UnknownType,
    UUIDType,
)

from support.iceberg_snapshots import DAY, EPOCH, PRIMITIVES, UTC, assert_sound, column, load, new_table, plain, read
from support.iceberg_tables import Handmade, catalog_in
from zonal.snapshot import UNKNOWN

DAY_2 = struct.pack("<q", 2 * 86_400_000_000)


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
