"""Bounds of Delta's statistics hold for every value, whatever writers truncated or rounded."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.delta_snapshots import HEAD, of, read
from support.delta_tables import (
    LogWriter,
    add,
    features,
    field,
    metadata,
    parsed_stats_schema,
    protocol,
    stats,
    struct,
    synthetic_table,
)
from zonal.snapshot import UNKNOWN
from zonal.tables.delta import stats as deltastats
from zonal.tables.delta.table import DeltaTable

UTC = timezone.utc


def one_file(tmp_path, kind, lower, upper, *, records=2, nulls=0, metadata_=None, **more):
    """A table of one column `c` and one file with these statistics."""
    text = stats(records, {"c": lower}, {"c": upper}, {"c": nulls}, **more)
    head = (features("timestampNtz"), metadata(field("c", kind, metadata=metadata_)))
    return read(LogWriter(tmp_path).commit(*head, add("f", stats=text)))


# --- soundness --------------------------------------------------------------------------------------------------------


MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
VALUES = {
    "byte": (pa.int8(), st.integers(-128, 127)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=45)),
    "alike": (pa.string(), st.text("ab\U0010ffff\x7f", min_size=30, max_size=40)),
    "bool": (pa.bool_(), st.booleans()),
    "binary": (pa.binary(), st.binary(max_size=5)),
    "date": (pa.date32(), st.dates()),
    "ts": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
    "ntz": (pa.timestamp("us"), MOMENTS),
    "small": (pa.decimal128(9, 2), st.decimals(-9999999, 9999999, places=2)),
    "precise": (pa.decimal128(15, 14), st.decimals(-9, 9, places=14)),
    "big": (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
}


def assert_within(values, bounds, file, name):
    """Every value of a column that is neither null nor NaN lies within the bounds of its file."""
    values = values.filter(pc.is_valid(values))
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if pa.types.is_string(values.type):
        values = values.cast(pa.large_binary())
    if pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        return
    lower, upper = bounds.lower[file].as_py(), bounds.upper[file].as_py()
    for value in values.to_pylist():
        assert lower is None or lower <= value, f"{name}: {value!r} is below {lower!r}"
        assert upper is None or value <= upper, f"{name}: {value!r} is above {upper!r}"


ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()}), min_size=1)


@settings(max_examples=20)
@given(st.lists(ROWS, min_size=1, max_size=3), st.booleans())
def test_every_value_lies_within_the_bounds(tmp_path_factory, contents, checkpoint):
    where = tmp_path_factory.mktemp("table")
    schema = pa.schema({name: kind for name, (kind, _) in VALUES.items()})
    for content in contents:
        rows = pa.Table.from_pylist(content, schema)
        nested = pa.StructArray.from_arrays([rows[name].combine_chunks() for name in VALUES], fields=list(schema))
        deltalake.write_deltalake(where, rows.append_column("nested", nested), mode="append")
    if checkpoint:
        deltalake.DeltaTable(where).create_checkpoint()
    table = DeltaTable(str(where))
    snapshot = table.snapshot()
    for file, path in enumerate(snapshot.files.paths.to_pylist()):
        with table.open_file(path) as source:
            rows = pq.read_table(source)
        for name in VALUES:
            for column, values in ((name, rows[name]), (f"nested.{name}", pc.struct_field(rows["nested"], name))):
                bounds = snapshot.files.bounds[column]
                assert_within(values.combine_chunks(), bounds, file, column)
                assert bounds.nulls[file] in (UNKNOWN, values.null_count), column
        for name in ("long", "date", "ts", "small"):
            known = rows[name].null_count < len(rows)
            assert snapshot.files.bounds[name].lower[file].is_valid == known, f"{name} has bounds"


@pytest.mark.parametrize(
    ("lower", "upper", "inside", "outside"),
    [
        ("short", "shorty", "shorty", "shortz"),
        ("a" * 32, "b" * 32, "b" * 32 + "\U0010ffff" * 9, "c"),
        ("a" * 32, "b" * 32 + "\U0010ffff", "b" * 32 + "\U0010ffff" * 9, "c"),
        ("a" * 32, "b" * 32 + "\x7f", "b" * 32 + "~~", "c"),
        ("é" * 16, "é" * 16, "é" * 16 + "zzz", "ê"),
    ],
)
def test_cut_strings_still_bound_every_string(tmp_path, lower, upper, inside, outside):
    low, high, _ = of(one_file(tmp_path, "string", lower, upper), "c")
    assert low <= lower.encode()
    assert upper.encode() <= high
    assert inside.encode() <= high, "a value with the prefix of a cut maximum"
    assert outside.encode() > high, "the bound is still of use"


@pytest.mark.parametrize(
    ("kind", "upper", "expected"),
    [
        ("timestamp", "2026-01-01T00:00:00.123Z", datetime(2026, 1, 1, 0, 0, 0, 123999, UTC)),
        ("timestamp", "2026-01-01T00:00:00.123+00:00", datetime(2026, 1, 1, 0, 0, 0, 123999, UTC)),
        ("timestamp", "2026-01-01T01:00:00.123+01:00", datetime(2026, 1, 1, 0, 0, 0, 123999, UTC)),
        ("timestamp", "2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 0, 0, 999, UTC)),
        ("timestamp", "2026-01-01T00:00:00.123456Z", datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)),
        ("timestamp", "2026-01-01T00:00:00.123", datetime(2026, 1, 1, 12, 0, 0, 123999, UTC)),
        ("timestamp_ntz", "2026-01-01T00:00:00.123", datetime(2026, 1, 1, 0, 0, 0, 123999)),
        ("timestamp_ntz", "2026-01-01 00:00:00.123", datetime(2026, 1, 1, 0, 0, 0, 123999)),
        ("timestamp_ntz", "2026-01-01", datetime(2026, 1, 1, 0, 0, 0, 999)),
        ("timestamp_ntz", "+12026-01-01T00:00:00", None),
        ("date", "2026-01-01", date(2026, 1, 1)),
        ("date", "2026-02-30", None),
        ("double", "NaN", None),
        ("double", "Infinity", float("inf")),
        ("double", 0.30000000000000004, 0.30000000000000004),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", 2**63, None),
        ("byte", 300, None),
        ("long", "7", None),
        ("boolean", True, True),
        ("binary", "abc", None),
        ("decimal(9,2)", 1.1, Decimal("1.10")),
        ("decimal(9,2)", 1.101, Decimal("1.11")),
        ("decimal(9,2)", 99999999999, None),
        ("string", "\ud83d", None),
        ("string", "", b""),
    ],
)
def test_upper_bounds_are_at_or_above_what_the_writer_saw(tmp_path, kind, upper, expected):
    _, high, _ = of(one_file(tmp_path, kind, None, upper), "c")
    assert high == expected


def test_decimals_beyond_a_double_are_widened(tmp_path):
    head = (protocol(), metadata(field("c", "decimal(30,4)")))
    text = '{"numRecords":1,"minValues":{"c":1.234567890123457e+19},"maxValues":{"c":1.234567890123457e+19}}'
    low, high, _ = of(read(LogWriter(tmp_path).commit(*head, add("f", stats=text))), "c")
    assert low < Decimal("12345678901234567890.1234") < high
    assert high - low < 10**6


def test_floats_and_doubles_that_were_floats_are_widened(tmp_path):
    low, high, _ = of(one_file(tmp_path / "float", "float", 0.1, 0.1), "c")
    assert low < float(np.float32(0.1)) < high
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    low, high, _ = of(one_file(tmp_path / "double", "double", 0.1, 0.1, metadata_=changes), "c")
    assert low <= 0.1 < float(np.float32(0.1)) <= high, "an old file holds the float next to 0.1"


@pytest.mark.parametrize(
    ("tight", "nulls", "expected"), [(False, 3, UNKNOWN), (False, 0, 0), (False, 10, 10), (True, 3, 3), (True, 11, -1)]
)
def test_wide_statistics_count_nulls_only_at_the_ends(tmp_path, tight, nulls, expected):
    snapshot = one_file(tmp_path, "long", 1, 9, records=10, nulls=nulls, tightBounds=tight)
    assert of(snapshot, "c") == (1, 9, expected)


def test_statistics_that_contradict_themselves_prove_nothing(tmp_path):
    assert of(one_file(tmp_path, "long", 9, 1), "c") == (None, None, 0)


@pytest.mark.parametrize("text", ["", "nonsense", "{", "[]", "{}\n{}", '{"numRecords": "x"}', '{"minValues": 3}'])
def test_broken_statistics_of_one_file_leave_the_others_alone(log, text):
    good = stats(5, {"x": 1}, {"x": 2}, {"x": 0})
    files = [add("good", stats=good), add("bad", stats=text), add("none"), add("empty", stats="")]
    snapshot = read(log.commit(*HEAD, *files))
    assert snapshot.files.rows.tolist() == [5, UNKNOWN, UNKNOWN, UNKNOWN]
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, None, None, None]
    assert snapshot.files.bounds["x"].nulls.tolist() == [0, UNKNOWN, UNKNOWN, UNKNOWN]


def test_both_readers_of_statistics_agree(tmp_path, monkeypatch):
    log = synthetic_table(tmp_path, 20, checkpoint=False, commits=2)
    fast = read(log)
    assert all(fast.files.bounds[name].lower.null_count == 0 for name in fast.files.bounds)

    def refuse(*_):
        raise pa.ArrowInvalid("not this time")

    monkeypatch.setattr(deltastats, "_read_lines", refuse)
    slow = read(log)
    for name in fast.files.bounds:
        one, other = fast.files.bounds[name], slow.files.bounds[name]
        assert one.lower.equals(other.lower), name
        assert one.upper.equals(other.upper), name
        assert (one.nulls == other.nulls).all(), name


def test_arrow_reads_the_statistics_of_a_usual_table(tmp_path, monkeypatch):
    log = synthetic_table(tmp_path, 3)
    monkeypatch.setattr(deltastats, "_object", lambda *_: pytest.fail("one object at a time is slow"))
    snapshot = read(log)
    assert [len(snapshot.files.bounds[name].lower) for name in snapshot.files.bounds] == [3] * 6


# --- the log ----------------------------------------------------------------------------------------------------------


def test_parsed_statistics_replace_missing_json(log):
    moment = datetime(2026, 1, 1, 0, 0, 0, 123000, UTC)
    values = pa.struct({"x": pa.int64(), "t": pa.timestamp("us", "UTC"), "g": pa.struct({"s": pa.string()})})
    nulls = pa.struct({"x": pa.int64(), "t": pa.int64(), "g": pa.struct({"s": pa.int64()})})
    kind = pa.struct({"numRecords": pa.int64(), "minValues": values, "maxValues": values, "nullCount": nulls})
    value = {"x": 5, "t": moment, "g": {"s": "b" * 32}}
    parsed = {
        "numRecords": 8,
        "minValues": value,
        "maxValues": value,
        "nullCount": {"x": 1, "t": 0, "g": {"s": 2}},
    }
    fields = (field("x", "long"), field("t", "timestamp"), field("g", struct(field("s", "string"))))
    head = (protocol(), metadata(*fields))
    body = {"path": "a", "partitionValues": {}, "size": 1, "stats_parsed": parsed}
    log.commit(*head)
    log.checkpoint(
        *head, {"add": body}, {"add": body | {"path": "b", "stats_parsed": None}}, schema=parsed_stats_schema(kind)
    )
    log.commit(add("c", stats=stats(2, {"x": 1}, {"x": 2}, {"x": 0})))
    snapshot = read(log)
    assert snapshot.files.rows.tolist() == [8, UNKNOWN, 2]
    assert [of(snapshot, "x", file) for file in range(3)] == [(5, 5, 1), (None, None, UNKNOWN), (1, 2, 0)]
    assert of(snapshot, "t") == (moment, moment + timedelta(microseconds=999), 0)
    assert of(snapshot, "g.s") == (b"b" * 32, b"b" * 32 + b"\xff", 2)


@pytest.mark.parametrize(("mode", "field_id"), [("name", None), ("id", 3)])
def test_statistics_use_physical_names(log, mode, field_id):
    def mapped(name, kind, physical, number):
        numbers = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
        return field(name, kind, metadata=numbers)

    inner = struct(mapped("lat", "double", "col-lat", 3))
    fields = (mapped("geo", inner, "col-geo", 2), mapped("p", "string", "col-p", 1))
    head = metadata(*fields, partitioning=["p"], configuration={"delta.columnMapping.mode": mode})
    values = {"col-geo": {"col-lat": 1.5}}
    text = stats(4, values, values, {"col-geo": {"col-lat": 1}})
    snapshot = read(log.commit(protocol(2, 5), head, add("f", stats=text, values={"col-p": "eu"})))
    assert of(snapshot, "geo.lat") == (1.5, 1.5, 1)
    assert (snapshot.physical["geo.lat"].path, snapshot.physical["geo.lat"].field_id) == ("col-geo.col-lat", field_id)
    assert snapshot.files.partitions == ("p=eu",)


def test_collated_strings_have_no_bounds(tmp_path):
    collated = {"__COLLATIONS": {"c": "ICU.UNICODE_CI"}}
    assert of(one_file(tmp_path, "string", "a", "b", metadata_=collated), "c") == (None, None, 0)
