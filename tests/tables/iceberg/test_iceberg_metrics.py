"""Metrics that commits to Iceberg tables write: they hold, and are those that settings ask for."""

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, TimestampType

from support.iceberg_commits import PARTITIONED, SCHEMA, made, partitioned_rows
from support.iceberg_rewriting import opened, replacement
from zonal.errors import TableError
from zonal.plan.rewrite import ColumnMetrics, Written
from zonal.tables.iceberg.metrics import data_file, kept_metrics, truncated_bytes, truncated_text


def test_bounds_counts_and_nans_are_those_of_the_rows(catalog):
    table = made(catalog, schema=PARTITIONED, files=0)
    current = catalog.load_table("db.t")
    current.append(partitioned_rows(0))
    current.append(partitioned_rows(40))
    table = opened(catalog)
    table.commit(replacement(table, table.snapshot()))
    files = table.newest().snapshot().files
    data = pa.concat_tables([partitioned_rows(0), partitioned_rows(40)]).to_pydict()
    numbers = [x for x in data["x"] if x is not None]
    assert (files.bounds["x"].lower[0].as_py(), files.bounds["x"].upper[0].as_py()) == (min(numbers), max(numbers))
    assert files.bounds["x"].nulls.tolist() == [data["x"].count(None)]
    real = [y for y in data["y"] if y == y]  # noqa: PLR0124
    assert files.bounds["y"].lower[0].as_py() == min(real)
    assert not files.bounds["y"].upper[0].is_valid, "NaN is above all numbers"
    assert files.bounds["y"].nans.tolist() == [80 - len(real)]
    assert files.bounds["s"].lower[0].as_py() == b""
    times = [t for t in data["ts"] if t is not None]
    assert files.bounds["ts"].upper[0].as_py() == max(times)


def kept(properties, keys=(), schema=SCHEMA):
    return {k.field_id: (k.counts, k.bounds, k.length) for k in kept_metrics(schema, properties, keys)}


def test_settings_decide_which_metrics_are_kept_and_keys_always_have_bounds():
    everything = "write.metadata.metrics.default"
    assert kept({}) == dict.fromkeys((1, 2, 3), (True, True, 16))
    assert kept({everything: "none"}, ["s"]) == {1: (False, False, 16), 2: (False, False, 16), 3: (True, True, 16)}
    assert kept({everything: "counts"})[1][:2] == (True, False)
    assert kept({everything: "full"}, ["s"])[3] == (True, True, None)
    assert kept({everything: "truncate(4)"})[3] == (True, True, 4)
    assert kept({everything: "truncate(4)"}, ["s"])[3] == (True, True, 16)
    assert kept({"write.metadata.metrics.column.s": "none"})[3][:2] == (False, False)
    wide = Schema(*(NestedField(n, f"c{n}", LongType()) for n in range(1, 121)))
    assert sum(counts for counts, _, _ in kept({}, schema=wide).values()) == 100
    assert sum(counts for counts, _, _ in kept({}, ["c120"], schema=wide).values()) == 101
    most = "write.metadata.metrics.max-inferred-column-defaults"
    assert sum(counts for counts, _, _ in kept({most: "7"}, schema=wide).values()) == 7
    assert sum(counts for counts, _, _ in kept({everything: "counts"}, schema=wide).values()) == 120


@given(st.text(min_size=0, max_size=8), st.integers(1, 4))
def test_a_cut_bound_of_text_still_holds(text, length):
    lower, upper = truncated_text(text, length, upper=False), truncated_text(text, length, upper=True)
    assert lower <= text
    assert len(lower) <= length
    if upper is not None:
        assert upper >= text
        assert upper.encode() >= text.encode()
        assert len(upper) <= length
    else:
        assert set(text[:length]) == {"\U0010ffff"}


@given(st.binary(max_size=8), st.integers(1, 4))
def test_a_cut_bound_of_bytes_still_holds(value, length):
    assert truncated_bytes(value, length, upper=False) <= value
    upper = truncated_bytes(value, length, upper=True)
    assert upper >= value if upper is not None else set(value[:length]) == {255}


def test_bounds_beyond_pythons_calendar_and_both_zeros_are_written():
    schema = Schema(NestedField(1, "ts", TimestampType()), NestedField(2, "y", DoubleType()))
    most = pa.scalar(2**62, pa.timestamp("us"))
    zero, nan = pa.scalar(0.0), pa.scalar(float("nan"))
    columns = (
        ColumnMetrics("ts", 1, 2, 0, 0, pa.scalar(-(2**62), pa.timestamp("us")), most),
        ColumnMetrics("y", 1, 2, 0, 1, zero, nan),
    )
    file = data_file(Written("p", 1, 2, 0, columns), kept_metrics(schema, {}, []), partition={})
    assert struct.unpack("<q", file[128][1]) == (2**62,)
    assert file[125][2] == struct.pack("<d", -0.0)
    assert 2 not in file[128]
    with pytest.raises(TableError, match="1 columns instead of 2"):
        data_file(Written("p", 1, 2, 0, columns[:1]), kept_metrics(schema, {}, []), partition={})
