"""Partition values of Delta tables are read in every form, and as they were written."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.delta_commits import create
from support.delta_snapshots import read
from support.delta_tables import add, features, field, metadata, protocol, stats
from zonal.tables.delta.partition_values import partition_text, partition_value
from zonal.tables.delta.table import DeltaTable

UTC = timezone.utc

PARTITIONED = {
    "long": (pa.array([2**62 + 1, -5, None]), [2**62 + 1, -5, None]),
    "string": (pa.array(["a b/ü%", "x=y", None]), ["a b/ü%".encode(), b"x=y", None]),
    "date": (pa.array([date(1, 1, 1), date(2026, 1, 1), None]), [date(1, 1, 1), date(2026, 1, 1), None]),
    "boolean": (pa.array([True, False, None]), [True, False, None]),
    "binary": (pa.array([b"\x00\xff", b"a", None]), [b"\x00\xff", b"a", None]),
    "float": (pa.array([0.1, -2.5, None], pa.float32()), [float(np.float32(0.1)), -2.5, None]),
    "ntz": (
        pa.array([datetime(2020, 1, 1, 0, 0, 0, 123456), datetime(1969, 1, 1), None], pa.timestamp("us")),
        [datetime(2020, 1, 1, 0, 0, 0, 123456), datetime(1969, 1, 1), None],
    ),
}


@pytest.mark.parametrize("kind", PARTITIONED)
def test_partition_values_of_deltalake_are_both_bounds(tmp_path, kind):
    column, expected = PARTITIONED[kind]
    deltalake.write_deltalake(tmp_path, pa.table({"id": [0, 1, 2], "p": column}), partition_by=["p"])
    for checkpoint in (False, True):
        if checkpoint:
            deltalake.DeltaTable(tmp_path).create_checkpoint()
        snapshot = read(tmp_path)
        assert snapshot.partitioning == ("p",)
        assert "p" not in snapshot.files.bounds
        ids, bounds = snapshot.files.bounds["id"].lower.to_pylist(), snapshot.files.partition_bounds["p"]
        assert bounds.lower.to_pylist() == [expected[i] for i in ids]
        assert bounds.upper.to_pylist() == [expected[i] for i in ids]
        assert bounds.nulls.tolist() == [int(expected[i] is None) for i in ids]
        for path in snapshot.files.paths.to_pylist():
            with DeltaTable(str(tmp_path)).open_file(path) as source:
                assert pq.ParquetFile(source).metadata.num_rows == 1


def test_partitions_are_numbered_by_their_labels(log):
    def file(name, region, day):
        return add(name, values={"region": region, "day": day}, stats=stats(5))

    fields = (field("region", "string"), field("day", "date"), field("x", "long"))
    files = [file("a", "us", "2026-01-02"), file("b", "eu", "2026-01-01"), file("c", None, ""), file("d", "a/b", None)]
    snapshot = read(log.commit(protocol(), metadata(*fields, partitioning=["region", "day"]), *files))
    assert snapshot.files.partitions == (
        "region=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__",
        "region=a%2Fb/day=__HIVE_DEFAULT_PARTITION__",
        "region=eu/day=2026-01-01",
        "region=us/day=2026-01-02",
    )
    assert snapshot.files.partition.tolist() == [3, 2, 0, 1]
    assert snapshot.files.partition_bounds["day"].nulls.tolist() == [0, 0, 5, 5]
    assert snapshot.files.partition_bounds["day"].lower.to_pylist()[0] == date(2026, 1, 2)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("timestamp", "1970-01-01T00:00:00.123456Z", datetime(1970, 1, 1, 0, 0, 0, 123456, UTC)),
        ("timestamp_ntz", "1970-01-01 00:00:00", datetime(1970, 1, 1)),
        ("decimal(9,2)", "-1.50", Decimal("-1.50")),
        ("double", "1E300", 1e300),
        ("integer", "7", 7),
        ("boolean", "true", True),
        ("binary", "\u0001a", b"\x01a"),
        ("binary", "ü", None),
        ("date", "2026-99-99", None),
        ("decimal(9,2)", "-1.-5000", None),
        ("double", "NaN", None),
    ],
)
def test_partition_values_are_read_in_every_form(log, kind, text, expected):
    head = (features("timestampNtz"), metadata(field("p", kind), partitioning=["p"]))
    bounds = read(log.commit(*head, add("f", values={"p": text}, stats=stats(3)))).files.partition_bounds["p"]
    assert (bounds.lower[0].as_py(), bounds.upper[0].as_py()) == (expected, expected)
    assert (bounds.nulls[0], bounds.nans[0]) == (0, 3 if text == "NaN" else 0)


def test_a_partition_time_without_its_zone_holds_for_every_zone(log):
    head = (protocol(), metadata(field("p", "timestamp"), partitioning=["p"]))
    text = "2026-06-01 00:00:00"
    bounds = read(log.commit(*head, add("f", values={"p": text}))).files.partition_bounds["p"]
    noon = datetime(2026, 6, 1, tzinfo=UTC)
    assert (bounds.lower[0].as_py(), bounds.upper[0].as_py()) == (
        noon - timedelta(hours=14),
        noon + timedelta(hours=12),
    )


VALUES = st.one_of(
    st.tuples(st.just(pa.string()), st.text(min_size=1)),
    st.tuples(st.just(pa.int64()), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(pa.bool_()), st.booleans()),
    st.tuples(st.just(pa.float64()), st.floats(allow_nan=False)),
    st.tuples(st.just(pa.float32()), st.floats(allow_nan=False, width=32)),
    st.tuples(st.just(pa.date32()), st.dates()),
    st.tuples(st.just(pa.timestamp("us")), st.datetimes()),
    st.tuples(st.just(pa.timestamp("us", "UTC")), st.datetimes(timezones=st.just(UTC))),
    st.tuples(st.just(pa.decimal128(38, 9)), st.decimals(-(10**28), 10**28, places=9, allow_nan=False)),
    st.tuples(st.just(pa.int32()), st.none()),
)


@given(VALUES)
def test_partition_values_are_read_as_they_were_written(typed):
    value = pa.scalar(typed[1], typed[0])
    assert partition_value(partition_text(value, "p"), pa.field("p", typed[0])) == value


@pytest.mark.parametrize("kind", [pa.int64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.bool_()])
def test_partition_values_mean_the_same_to_another_reader(tmp_path, kind):
    value = pa.scalar(1, pa.int64()).cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    rows = pa.table({"x": [1, 2], "p": pa.array([value.as_py(), None], kind)})
    destination, added = create(tmp_path / "new", rows, partitioning=["p"])
    destination.publish(added)
    found = deltalake.DeltaTable(tmp_path / "new").to_pyarrow_table().sort_by("x")
    assert found["p"].to_pylist() == rows["p"].to_pylist()
