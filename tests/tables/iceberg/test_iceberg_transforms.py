"""Partition values at the limits of their types, as Java's transforms make them, never exclude a row."""

import math
from decimal import Decimal
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField
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
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from zonal.snapshot import UNKNOWN
from zonal.tables.iceberg.arrow_schema import bound_type
from zonal.tables.iceberg.bounds import IcebergLeaf, partition_bounds
from zonal.tables.iceberg.buckets import buckets
from zonal.tables.iceberg.deletes import DeleteIndex
from zonal.tables.iceberg.live_files import LiveFiles

ENDS = {32: (-(2**31), 2**31 - 1), 64: (-(2**63), 2**63 - 1)}
UNITS = {"D": 1, "us": 86_400_000_000, "ns": 86_400_000_000_000}
MICROS = st.integers(*ENDS[64]) | st.integers(-(10**12), 10**12)


def wrapped(number, bits):
    """The number as Java's `int` or `long` has it."""
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def remainder(number, by):
    """Java's `%`, which has the sign of the number."""
    return int(math.copysign(1, number)) * (abs(number) % by)


def truncated(number, width, bits):
    """Java's `v - (((v % W) + W) % W)`."""
    return wrapped(number - remainder(wrapped(remainder(number, width) + width, bits), width), bits)


def hours(micros):
    """Java's `DateTimeUtil.microsToHours`, with its cast to `int`."""
    if micros >= 0:
        return wrapped(micros // 3_600_000_000, 32)
    moment = micros // 10**6 * 10**6 + (micros + 1) % 10**6
    return wrapped(-(-moment // 3_600_000_000) - 1, 32)


def bounds_of(kind, transform, value):
    """What a partition value says of a column: the lowest and the highest value, as numbers where they are such."""
    leaf = IcebergLeaf("c", 1, kind, bound_type(kind))
    spec = type("Spec", (), {"fields": [PartitionField(1, 1000, transform, "part")]})
    key = (0, (1000, value))
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    live = LiveFiles(
        pa.array(["f"]), {}, one, one, one, zero, zero, zero, (key,), DeleteIndex([], set()), (), encrypted=False
    )
    found = partition_bounds(live, {0: spec}, {1: leaf}).get("c")
    if found is None:
        return None, None, UNKNOWN, buckets(live, {0: spec}, {1: leaf})
    ends = [each.cast(_numbers(each.type)) for each in (found.lower, found.upper)]
    return *(each[0].as_py() for each in ends), int(found.nulls[0]), buckets(live, {0: spec}, {1: leaf})


def _numbers(kind):
    if pa.types.is_date(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_time(kind) else kind


def assert_holds(kind, transform, value, row):
    lower, upper, nulls, _ = bounds_of(kind, transform, value)
    row = row.encode() if isinstance(row, str) else row
    assert lower is None or lower <= row, f"{transform}: {row!r} of {value!r} is below {lower!r}"
    assert upper is None or row <= upper, f"{transform}: {row!r} of {value!r} is above {upper!r}"
    assert nulls in (0, UNKNOWN)


@pytest.mark.parametrize(("kind", "bits"), [(IntegerType(), 32), (LongType(), 64), (LongType(), 32)])
@given(data=st.data())
def test_truncated_numbers(kind, bits, data):
    """A long that was an int when its file was written was truncated as one."""
    least, most = ENDS[bits]
    row = data.draw(st.integers(least, least + 50) | st.integers(most - 50, most) | st.integers(least, most))
    width = data.draw(st.sampled_from([1, 2, 7, 10, 1000, 2**30, 2**30 + 1, 2**31 - 1]))
    assert_holds(kind, TruncateTransform(width), truncated(row, width, bits), row)
    assert_holds(kind, TruncateTransform(width), row - row % width, row)  # a writer that doesn't wrap around


def test_truncated_numbers_that_wrapped_around_say_nothing():
    row = -(2**31)
    assert truncated(row, 10, 32) == 2**31 - 2
    assert bounds_of(IntegerType(), TruncateTransform(10), 2**31 - 2)[:2] == (None, None)
    assert bounds_of(IntegerType(), TruncateTransform(10), row - 2)[:2] == (None, row + 7)
    assert bounds_of(IntegerType(), TruncateTransform(10), row + 8)[:2] == (row + 8, row + 17)


@given(st.integers(-9999, 9999), st.sampled_from([1, 50, 1000, 10**6]))
def test_truncated_decimals(unscaled, width):
    below = unscaled - unscaled % width
    row, value = (Decimal(number).scaleb(-2) for number in (unscaled, below))
    assert_holds(DecimalType(4, 2), TruncateTransform(width), value, row)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), st.integers(1, 4))
def test_truncated_texts_by_characters_and_by_units_of_utf_16(row, width):
    assert_holds(StringType(), TruncateTransform(width), row[:width], row)
    cut = row.encode("utf-16-le")[: 2 * width].decode("utf-16-le", "ignore")
    assert_holds(StringType(), TruncateTransform(width), cut if len(cut) * 2 == width * 2 else row[:width], row)
    assert_holds(StringType(), TruncateTransform(1), "\U0010ffff", "\U0010ffff" * 3)


@given(st.binary(max_size=6) | st.integers(0, 6).map(lambda count: b"\xff" * count), st.integers(1, 4))
def test_truncated_bytes(row, width):
    assert_holds(BinaryType(), TruncateTransform(width), row[:width], row)


@pytest.mark.parametrize("kind", [TimestampType(), TimestamptzType()])
@given(MICROS | st.sampled_from([*ENDS[64], -1, 0, -3_599_000_001, -3_600_000_000]))
def test_hours(kind, micros):
    assert_holds(kind, HourTransform(), hours(micros), micros)
    assert_holds(kind, HourTransform(), wrapped(micros // 3_600_000_000, 32), micros)


@pytest.mark.parametrize("kind", [TimestampType(), TimestamptzType(), TimestampNanoType(), DateType()])
@pytest.mark.parametrize("transform", [YearTransform(), MonthTransform(), DayTransform()], ids=str)
@given(data=st.data())
def test_periods(kind, transform, data):
    unit = {DateType: "D", TimestampNanoType: "ns"}.get(type(kind), "us")
    least, most = ENDS[32 if unit == "D" else 64]
    row = data.draw(st.integers(least, most) | st.sampled_from([least, least + 1, -1, 0, 1, most - 1, most]))
    days = row // UNITS[unit]
    assert_holds(kind, transform, period(str(transform), days), row)
    if unit != "D" and row < 0 and row % (UNITS[unit] // 86_400) == UNITS[unit] // 86_400 - 1:
        assert_holds(kind, transform, period(str(transform), (row - UNITS[unit] // 86_400) // UNITS[unit]), row)


def test_the_last_microsecond_of_a_periods_first_second_before_1970():
    second = 10**6
    for transform, first in ((DayTransform(), -86_400 * second), (MonthTransform(), -31 * 86_400 * second)):
        assert_holds(TimestampType(), transform, -2, first + second - 1)


def period(transform, days):
    """The year, month or day since 1970, in a calendar that repeats every 400 years."""
    cycles, day = divmod(days, 146_097)
    month = cycles * 4800 + int(np.datetime64(day, "D").astype("datetime64[M]").astype(np.int64))
    return {"year": month // 12, "month": month, "day": days}[transform]


IDENTICAL = [
    (BooleanType(), [False, True]),
    (IntegerType(), ENDS[32]),
    (LongType(), ENDS[64]),
    (FloatType(), [-3.4028234663852886e38, 3.4028234663852886e38, -math.inf, math.inf, -0.0]),
    (DoubleType(), [-1.7976931348623157e308, 5e-324, -math.inf, math.inf, -0.0]),
    (DecimalType(38, 3), [Decimal(f"{sign}{'9' * 35}.999") for sign in "+-"]),
    (DateType(), ENDS[32]),
    (TimeType(), [0, 86_399_999_999]),
    (TimestampType(), ENDS[64]),
    (TimestampNanoType(), ENDS[64]),
    (StringType(), ["", "\U0010ffff" * 3]),
    (BinaryType(), [b"", b"\xff" * 3]),
    (FixedType(3), [b"\0\0\0", b"\xff\xff\xff"]),
    (UUIDType(), [b"\0" * 16, b"\xff" * 16]),
]


@pytest.mark.parametrize(("kind", "values"), IDENTICAL, ids=lambda value: str(value)[:20])
def test_identity(kind, values):
    for value in values:
        assert_holds(kind, IdentityTransform(), value, value)
        assert bounds_of(kind, IdentityTransform(), value)[0] is not None, "the value itself is known"


@pytest.mark.parametrize("kind", [kind for kind, _ in IDENTICAL], ids=str)
@pytest.mark.parametrize("value", [2**63, -(2**70), 2**31, "text", b"bytes", 1.5, Decimal("1e40"), math.inf], ids=repr)
def test_values_that_a_type_does_not_have_say_nothing_or_themselves(kind, value):
    """Damaged metadata never stops a look at the table, and all other files keep their bounds."""
    for transform in (IdentityTransform(), TruncateTransform(10), DayTransform(), BucketTransform(4)):
        lower, upper, _, _ = bounds_of(kind, transform, value)
        assert lower is None or upper is None or lower <= upper


@pytest.mark.parametrize(
    ("kind", "rows"),
    [(kind, rows) for kind, rows in IDENTICAL if BucketTransform(7).can_transform(kind)],
    ids=lambda value: str(value)[:20],
)
def test_buckets_and_voids_give_no_bounds(kind, rows):
    transform = BucketTransform(7)
    for row in rows:
        bucket = transform.transform(kind)(row)
        lower, upper, nulls, (known,) = bounds_of(kind, transform, bucket)
        assert (lower, upper, nulls) == (None, None, 0)
        assert known.values.tolist() == [bucket]
        assert known.bucket_of(row) in (None, bucket)
    assert itemgetter(0, 1, 2)(bounds_of(kind, VoidTransform(), None)) == (None, None, UNKNOWN), "void says nothing"
