"""Partition values of rows: PyIceberg judges every transform on values of every type."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from zonal.plan.append import PartitionField
from zonal.worker.arrival.transforms import partition_values

UTC = dt.timezone.utc
TYPES = {
    "int": (pa.int32(), IntegerType(), st.integers(-(2**31) + 100, 2**31 - 1)),
    "long": (pa.int64(), LongType(), st.integers(-(2**63) + 100, 2**63 - 1)),
    "string": (pa.string(), StringType(), st.text(max_size=24)),
    "binary": (pa.binary(), BinaryType(), st.binary(max_size=24)),
    "fixed": (pa.binary(5), FixedType(5), st.binary(min_size=5, max_size=5)),
    "decimal": (pa.decimal128(12, 2), DecimalType(12, 2), st.decimals(-(10**9), 10**9, places=2)),
    "date": (pa.date32(), DateType(), st.dates()),
    "time": (pa.time64("us"), TimeType(), st.times()),
    "timestamp": (pa.timestamp("us"), TimestampType(), st.datetimes()),
    "timestamptz": (pa.timestamp("us", "UTC"), TimestamptzType(), st.datetimes(timezones=st.just(UTC))),
}
PERIODS = {"year": YearTransform(), "month": MonthTransform(), "day": DayTransform(), "hour": HourTransform()}


def judged(name, values, word, transform, width=0):
    arrow, kind, _ = TYPES[name]
    padded = pa.array([None, *values], arrow).slice(1)  # an offset that a slice leaves
    found = partition_values(pa.table({"x": padded}), PartitionField((0,), word, width)).to_pylist()
    judge = transform.transform(kind)
    assert found == [judge(value) for value in values]


def lists(name):
    return st.lists(st.one_of(st.none(), TYPES[name][2]), max_size=30)


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), buckets=st.integers(1, 2**31 - 1))
def test_buckets_are_those_of_pyiceberg(name, data, buckets):
    judged(name, data.draw(lists(name)), "bucket", BucketTransform(buckets), buckets)


@pytest.mark.parametrize("name", ["int", "long", "string", "binary", "decimal"])
@settings(max_examples=40, deadline=None)
@given(data=st.data(), width=st.integers(1, 50))
def test_truncated_values_are_those_of_pyiceberg(name, data, width):
    judged(name, data.draw(lists(name)), "truncate", TruncateTransform(width), width)


@pytest.mark.parametrize("word", PERIODS)
@pytest.mark.parametrize("name", ["date", "timestamp", "timestamptz"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_periods_are_those_of_pyiceberg(name, word, data):
    if (name, word) != ("date", "hour"):
        judged(name, data.draw(lists(name)), word, PERIODS[word])


def test_a_field_of_a_struct_partitions_and_a_null_struct_is_null():
    rows = pa.table({"a": [{"b": 7}, None]})
    assert partition_values(rows, PartitionField((0, 0), "truncate", 5)).to_pylist() == [5, None]
    assert partition_values(rows, PartitionField((0, 0), "void")).to_pylist() == [None, None]
