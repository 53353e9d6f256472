"""Statistics of new files in a Delta log are exact or rounded outward."""

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.delta_commits import bodies
from support.delta_rewrites import data_file, prepare
from support.delta_tables import LogWriter, features, field, metadata, protocol, struct
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import ColumnMetrics
from zonal.tables.delta.actions import lower_bound, upper_bound

UTC = timezone.utc


def metrics(lower, upper, *, nans=0):
    return ColumnMetrics("c", 1, 1, 0, nans, lower, upper)


def both(kind, lower, upper, **more):
    found = metrics(pa.scalar(lower, kind), pa.scalar(upper, kind), **more)
    return lower_bound(found), upper_bound(found)


LAST = "\U0010ffff"


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int64(), (-(2**63), 2**63 - 1), (-(2**63), 2**63 - 1)),
        (pa.date32(), (date(1, 1, 1), date(9999, 12, 31)), ("0001-01-01", "9999-12-31")),
        (pa.date32(), (-1_000_000, 2**31 - 1), (None, None)),
        (pa.timestamp("us", "UTC"), (1_500, 1_500), ("1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z")),
        (pa.timestamp("us"), (-1_500, -1_500), ("1969-12-31T23:59:59.998", "1969-12-31T23:59:59.999")),
        (pa.timestamp("us", "UTC"), (2_000, 2_000), ("1970-01-01T00:00:00.002Z", "1970-01-01T00:00:00.002Z")),
        (pa.timestamp("us"), (datetime.max, datetime.max), ("9999-12-31T23:59:59.999", None)),
        (pa.float64(), (float("-inf"), float("inf")), (None, None)),
        (pa.float32(), (0.5, 1.5), (0.5, 1.5)),
        (pa.bool_(), (False, True), (None, None)),
        (pa.binary(), (b"a", b"b"), (None, None)),
        (pa.string(), ("a" * 32, "b" * 32), ("a" * 32, "b" * 32)),
        (pa.string(), ("a" * 33, "b" * 33), ("a" * 32, "b" * 32 + LAST)),
        (pa.string(), ("😀" * 40, "😀" * 40), ("😀" * 32, "😀" * 32 + LAST)),
        (pa.string(), ("", "a" * 32 + LAST + "b"), ("", "a" * 32 + LAST + LAST)),
        (pa.string(), ("", "a" * 32 + LAST), ("", "a" * 32 + LAST)),
    ],
)
def test_bounds_are_exact_or_outward(kind, values, expected):
    assert both(kind, *values) == expected


def test_a_file_with_nan_has_no_maximum():
    assert both(pa.float64(), 1.0, 2.0, nans=1) == (1.0, None)


def only_stats(where, version):
    (add,) = bodies(where, version, "add")
    return add["stats"]


def test_decimals_keep_every_digit(log):
    big, small = Decimal(f"{'9' * 33}.99999"), Decimal(f"-{'1' * 33}.00001")
    rows = pa.table({"x": pa.array([big, small], pa.decimal128(38, 5))})
    log.commit(protocol(), metadata(field("x", "decimal(38,5)")), data_file(log, "a", rows))
    table, rewrite = prepare(log, halves=1)
    text = only_stats(log, table.commit(rewrite))
    assert f'"maxValues":{{"x":{big}}}' in text
    assert f'"minValues":{{"x":{small}}}' in text
    assert json.loads(text)["tightBounds"] is True


def wide_table(log, configuration):
    names = [f"c{number}" for number in range(40)]
    rows = pa.table({name: [1, None] for name in names} | {"l": [[1], None], "g": [{"y": 1}, None]})
    list_ = {"type": "array", "elementType": "long", "containsNull": True}
    columns = [field(name, "long") for name in names] + [field("l", list_), field("g", struct(field("y", "long")))]
    log.commit(protocol(), metadata(*columns, configuration=configuration), data_file(log, "a", rows))
    table, rewrite = prepare(log, layout=Layout("zorder", ("c38", "g.y")), halves=1)
    return json.loads(only_stats(log, table.commit(rewrite)))


FIRST = [f"c{number}" for number in range(32)]


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, [*FIRST, "c38", "g"]),
        ({"delta.dataSkippingNumIndexedCols": "1"}, ["c0", "c38", "g"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, ["c38", "g"]),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, [*(f"c{n}" for n in range(40)), "g"]),
        ({"delta.dataSkippingStatsColumns": "C1, `c2`"}, ["c1", "c2", "c38", "g"]),
    ],
)
def test_statistics_cover_what_the_table_asks_for_and_every_key(log, configuration, expected):
    found = wide_table(log, configuration)
    assert list(found["nullCount"]) == expected
    assert found["nullCount"]["c38"] == 1
    assert found["nullCount"]["g"] == {"y": 1}
    assert found["minValues"]["g"] == found["maxValues"]["g"] == {"y": 1}
    assert found["numRecords"] == 2


MOMENTS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.none() | st.integers(-(2**63), 2**63 - 1),
            "s": st.none() | st.text(st.sampled_from(["a", "b", "é", "\uffff", "😀", LAST]), max_size=40),
            "d": st.none() | st.decimals(-(10**28), 10**28, places=9, allow_nan=False),
            "t": st.none() | MOMENTS,
            "n": st.none() | MOMENTS,
            "f": st.none() | st.floats(),
            "h": st.none() | st.floats(width=32),
            "day": st.none() | st.dates(),
            "b": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)
KINDS = {
    "x": ("long", pa.int64()),
    "s": ("string", pa.string()),
    "d": ("decimal(38,9)", pa.decimal128(38, 9)),
    "t": ("timestamp", pa.timestamp("us", "UTC")),
    "n": ("timestamp_ntz", pa.timestamp("us")),
    "f": ("double", pa.float64()),
    "h": ("float", pa.float32()),
    "day": ("date", pa.date32()),
    "b": ("boolean", pa.bool_()),
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS)
def test_every_value_lies_within_the_bounds_that_were_written(rows, tmp_path_factory):
    log = LogWriter(tmp_path_factory.mktemp("t"))
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, (_, kind) in KINDS.items()})
    columns = [field(name, kind) for name, (kind, _) in KINDS.items()]
    log.commit(features("timestampNtz"), metadata(*columns), data_file(log, "a", table))
    ours, rewrite = prepare(log, halves=2)
    ours.commit(rewrite)
    snapshot = ours.newest().snapshot()
    for number, path in enumerate(snapshot.files.paths.to_pylist()):
        stored = pq.read_table(path)
        assert snapshot.files.rows[number] == stored.num_rows
        for name in KINDS:
            bounds, values = snapshot.files.bounds[name], stored[name].drop_null()
            assert bounds.nulls[number] == stored[name].null_count, name
            if pa.types.is_string(values.type):
                values = values.cast(pa.large_binary())
            if pa.types.is_floating(values.type):
                values = values.filter(pc.invert(pc.is_nan(values)))
                assert bounds.upper[number].as_py() is None or len(values) == len(stored[name].drop_null()), (
                    "NaN is last"
                )
            if not len(values):
                continue
            lower, upper = bounds.lower[number], bounds.upper[number]
            if lower.is_valid:
                assert pc.all(pc.greater_equal(values, lower)).as_py(), name
            if upper.is_valid:
                assert pc.all(pc.less_equal(values, upper)).as_py(), name
            if name in ("x", "s", "d", "day"):
                assert lower.is_valid, f"{name} has a lower bound"
                assert upper.is_valid, f"{name} has an upper bound"


def test_statistics_skip_files_for_another_reader_and_lose_no_row(tmp_path):
    rows = pa.table(
        {
            "x": range(1000),
            "d": pa.array([Decimal(i) / 100 for i in range(1000)], pa.decimal128(30, 4)),
            "t": pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=137 * i) for i in range(1000)]),
            "s": [f"{'p' * 32}{i:05}" for i in range(1000)],
        }
    )
    deltalake.write_deltalake(tmp_path, rows)
    table, rewrite = prepare(tmp_path, halves=10)
    table.commit(rewrite)
    theirs_ = deltalake.DeltaTable(tmp_path)
    for number in (0, 99, 100, 555, 999):
        row = rows.slice(number, 1).to_pylist()[0]
        for name in ("x", "t", "s"):
            assert theirs_.to_pyarrow_table(filters=[(name, "=", row[name])]).num_rows == 1, (name, number)
