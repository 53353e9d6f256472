"""Hostile bytes as a footer are an error, not a crash."""

from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.parquet_footers import encoded, file_of, handmade, stored
from zonal.errors import TableError
from zonal.parquet import thrift
from zonal.parquet.footer import read_footer, row_group_bounds
from zonal.parquet.page_index import page_bounds
from zonal.snapshot import Physical
from zonal.tables.parquet.folder import file_bounds


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no Parquet file"),
        (b"PAR1", "no Parquet file"),
        (b"a text that is long enough", "no Parquet file"),
        (b"PAR1\0\0\0\0\xff\xff\xff\xffPAR1", "Corrupt footer"),
        (b"PAR1\0\0\0\0\1\0\0\0PAR1", "Corrupt footer: .* is missing"),
        (b"PAR1\0\0\0\0\1\0\0\0PARE", "encrypted"),
    ],
)
def test_what_is_no_parquet_file_is_an_error(data, message):
    with pytest.raises(TableError, match=message):
        read_footer(pa.BufferReader(data))


@pytest.mark.parametrize(
    "footer",
    [
        b"\x19" * 100_000,
        b"\x1c" * 100_000,
        b"\x19\xfc\xff\xff\xff\xff\x0f",
        b"\x18\xff\xff\xff\xff\x7f",
        b"\x16" + b"\xff" * 50,
        b"\x1b\xff\xff\xff\xff\x0f\x11",
        handmade({}) | {2: [{4: b"root", 5: 1}]},
        handmade({}) | {2: [{4: b"root", 5: 2**40}]},
        handmade({}) | {2: [{4: b"root", 5: -1}]},
        handmade({}) | {2: []},
        handmade({}) | {2: [{4: b"g", 5: 1}] * 500 + [{1: 2, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {1: 99, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {1: 7, 2: 2**40, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {1: 1, 4: b"x"}]},
        handmade({}) | {2: [{4: b"root", 5: 1}, {4: b"g" * 300_000, 5: 5000}, *[{1: 2, 4: b"x"}] * 5000]},
        handmade({}) | {3: 11},
        handmade({}) | {4: [{1: [], 2: 0, 3: 10}]},
        handmade({}, rows=-1),
        handmade({}) | {3: b"ten"},
    ],
)
def test_hostile_footers_are_corrupt(footer):
    with pytest.raises(TableError, match="Corrupt footer"):
        read_footer(file_of(footer))


def sample():
    table = pa.table({
        "x": pa.array([1, None, 3, 4, 5, 6, 7], pa.int32()),
        "s": ["a", "b", None, "d", "e", "f", "g"],
        "d": pa.array([Decimal(i) for i in range(7)], pa.decimal128(20, 2)),
        "t": pa.array(range(7), pa.timestamp("us", "UTC")),
        "n": [{"f": float(i), "l": [i]} for i in range(7)],
    })  # fmt: skip
    return stored(table, bloom_filter_options={"x": {"ndv": 8}}).read_buffer(2**20).to_pybytes()


SAMPLE = sample()
FOOTER_BYTES = int.from_bytes(SAMPLE[-8:-4], "little") + 8


def read_everything(data):
    file = pa.BufferReader(data)
    footer = read_footer(file)
    for leaf in footer.schema.leaves:
        for kind in (leaf.kind, pa.int64(), pa.string()):
            row_group_bounds(footer, Physical(leaf.path), kind)
            file_bounds([footer], Physical(leaf.path), kind)
            for group in range(len(footer.row_groups)):
                page_bounds(file, footer, group, Physical(leaf.path), kind)


@settings(max_examples=400)
@given(st.lists(st.tuples(st.integers(1, 2 * FOOTER_BYTES), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_nothing_worse_than_a_table_error(flips):
    data = bytearray(SAMPLE)
    for from_end, byte in flips:
        data[-min(from_end, len(data))] = byte
    with suppress(TableError):
        read_everything(bytes(data))


@settings(max_examples=150)
@given(st.binary(max_size=200), st.integers(0, FOOTER_BYTES))
def test_any_bytes_as_a_footer_are_nothing_worse_than_a_table_error(noise, cut):
    for footer in (noise, SAMPLE[-FOOTER_BYTES:-8][:cut] + noise):
        with suppress(TableError):
            read_everything(file_of(footer).read_buffer().to_pybytes())


def test_every_truncation_is_an_error():
    for length in [*range(0, len(SAMPLE), 97), len(SAMPLE) - 1]:
        with pytest.raises(TableError):
            read_footer(pa.BufferReader(SAMPLE[:length]))


NUMBERS = st.integers(-(2**63), 2**63 - 1)
THRIFT = st.recursive(
    st.one_of(st.booleans(), NUMBERS, st.binary(max_size=9), st.lists(NUMBERS, max_size=3)),
    lambda inner: st.dictionaries(st.integers(1, 300), inner, max_size=4),
)


@given(THRIFT)
def test_unknown_fields_are_skipped(value):
    data = encoded({1: 5, 7: value, 9: b"end"})
    reader = thrift.struct({1: ("first", thrift.integer), 9: ("last", thrift.binary)})
    assert thrift.decode(reader, data, what="struct") == {"first": 5, "last": b"end"}
