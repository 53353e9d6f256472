"""Hypothesis strategies for Arrow columns of every type that tables are filtered by, and their reference order."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

UTC = dt.timezone.utc
SECONDS = st.integers(-(2**33), 2**33)
DECIMALS = st.decimals(-(10**6), 10**6, places=2, allow_nan=False)
TEXT = st.one_of(
    st.text(max_size=12),
    st.text("ab", max_size=3).map(lambda end: "https://example.org/a-long-common-prefix/" + end),
    st.sampled_from(["", "a", "b", "device-0001", "device-0002", "naïve", "\U0010ffff"]),
)
BYTES = st.one_of(st.binary(max_size=20), TEXT.map(str.encode))

VALUES = {
    pa.bool_(): st.booleans(),
    **{kind: st.integers(-(2**7), 2**7 - 1) for kind in (pa.int8(), pa.int16(), pa.int32())},
    pa.int64(): st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3)),
    **{kind: st.integers(0, 2**8 - 1) for kind in (pa.uint8(), pa.uint16(), pa.uint32())},
    pa.uint64(): st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 3)),
    pa.float16(): st.floats(width=16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])),
    pa.decimal32(9, 2): DECIMALS,
    pa.decimal64(18, 2): DECIMALS,
    pa.decimal128(38, 2): st.one_of(DECIMALS, st.integers(-(10**35), 10**35).map(Decimal)),
    pa.decimal256(60, 2): st.one_of(DECIMALS, st.integers(-(10**55), 10**55).map(Decimal)),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.time32("s"): st.times().map(lambda t: t.replace(microsecond=0)),
    pa.time64("us"): st.times(),
    pa.timestamp("s"): SECONDS.map(lambda s: dt.datetime(1970, 1, 1) + dt.timedelta(seconds=s)),
    pa.timestamp("us"): st.datetimes(dt.datetime(1, 1, 1)),
    pa.timestamp("ns", "UTC"): st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1), timezones=st.just(UTC)),
    pa.duration("us"): st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999)),
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary_view(): BYTES,
    pa.binary(4): st.binary(min_size=4, max_size=4),
    pa.uuid(): st.binary(min_size=16, max_size=16),
    pa.dictionary(pa.int8(), pa.string()): TEXT,
    pa.dictionary(pa.int32(), pa.int64()): st.integers(-5, 5),
}

KINDS = st.sampled_from(list(VALUES))


def build(values, kind):
    """Make an Arrow array, also of the types that `pa.array` can't make from Python values."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


@st.composite
def arrays(draw, kind=None, max_size=40):
    """A column of one type with nulls, sometimes sliced and in several chunks."""
    kind = draw(KINDS) if kind is None else kind
    values = draw(st.lists(st.one_of(st.none(), VALUES[kind]), max_size=max_size))
    cut = draw(st.integers(0, len(values)))
    padded = build([*values[:1], *values], kind)  # an offset that a slice leaves
    whole = padded.slice(min(1, len(values)))
    return pa.chunked_array([whole.slice(0, cut), whole.slice(cut)], kind)


def order_key(value):
    """The reference order: nulls, then values, then NaN; -0.0 equals 0.0; strings by their UTF-8 bytes."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value)
    if isinstance(value, str):
        return (1, value.encode())
    return (1, value.bytes) if hasattr(value, "bytes") else (1, value)


NESTED = {
    pa.struct({"a": pa.int64(), "b": pa.string()}): st.fixed_dictionaries({"a": st.integers(0, 3), "b": st.text()}),
    pa.list_(pa.string()): st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=3),
    pa.large_list(pa.list_(pa.int8())): st.lists(st.lists(st.integers(0, 2), max_size=2), max_size=2),
    pa.list_(pa.int16(), 2): st.lists(st.integers(0, 2), min_size=2, max_size=2),
    pa.map_(pa.string(), pa.float64()): st.dictionaries(st.text(max_size=2), st.floats(), max_size=2),
    pa.null(): st.none(),
}


def nested(kind, values):
    return pa.chunked_array([pa.array([None, *values], kind).slice(1)])


@st.composite
def columns(draw):
    """A column of any type, flat or nested, sliced."""
    if draw(st.booleans()):
        return draw(arrays())
    kind = draw(st.sampled_from(list(NESTED)))
    return nested(kind, draw(st.lists(st.one_of(st.none(), NESTED[kind]), max_size=20)))
