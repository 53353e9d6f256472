"""Reads snapshots of Iceberg tables in tests."""

import datetime as dt
import math
import uuid
from decimal import Context, Decimal

from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
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
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from zonal.snapshot import UNKNOWN
from zonal.tables.iceberg.table import IcebergTable

UTC = dt.timezone.utc
EPOCH, DAY = dt.datetime(1970, 1, 1), dt.timedelta(days=1)
LONG = Schema(NestedField(1, "id", LongType(), required=False))


def column(number, name, kind):
    return NestedField(number, name, kind, required=False)


def load(table, **options):
    return IcebergTable("db.t", table, **options).snapshot()


def read(path, **options):
    return IcebergTable.from_metadata(path, **options).snapshot()


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


def new_table(catalog, kind, *transforms):
    """A table of the column `c`; types of version 3, which PyIceberg doesn't create, are put in by `retype`."""
    kind = TimestampType() if kind.minimum_format_version() > 2 else kind
    spec = PartitionSpec(*(PartitionField(1, 1000 + i, transform, f"f{i}") for i, transform in enumerate(transforms)))
    return catalog.create_table(f"db.t{uuid.uuid4().hex}", Schema(column(1, "c", kind)), partition_spec=spec)
