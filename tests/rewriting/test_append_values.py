"""Any Arrow table that fits is read back as it was, by the formats' own readers, whatever types it has."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.arrow_values import arrays
from support.cluster_tables import Iceberg, row_counts
from zonal.verbs.append import append

SAME = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us"))
TARGETS = {kind: kind for kind in SAME} | {
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.decimal32(9, 2): pa.decimal128(12, 2),
    pa.decimal128(38, 2): pa.decimal128(38, 2),
    pa.date64(): pa.date32(),
    pa.timestamp("s"): pa.timestamp("us"),
    pa.timestamp("ns", "UTC"): pa.timestamp("us", "UTC"),
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
    pa.dictionary(pa.int8(), pa.string()): pa.string(),
    pa.dictionary(pa.int32(), pa.int64()): pa.int64(),
}
"""The type of the table's column for each type of rows."""


@st.composite
def tables(draw):
    """Rows with an id, a column of any type, and a struct and a list of it."""
    kind = draw(st.sampled_from(list(TARGETS)))
    column = draw(arrays(kind, max_size=25))
    plain = column.cast(TARGETS[kind]) if not pa.types.is_dictionary(kind) else column.combine_chunks()
    values = pa.chunked_array([plain.dictionary_decode()]) if pa.types.is_dictionary(kind) else plain
    values = values.combine_chunks()
    inner = pa.StructArray.from_arrays([values, pa.array(range(len(values)), pa.int64())], ["a", "b"])
    offsets = pa.array([*range(len(values)), len(values)], pa.int32())
    extra = {"st": inner, "li": pa.ListArray.from_arrays(offsets, values)}
    ids = pa.array(range(len(values)), pa.int64())
    return pa.table({"id": ids, "v": column, **extra}), pa.table({"id": ids, "v": values, **extra})


def _delta(rows, expected, folder):
    write_deltalake(folder / "t", expected.slice(0, 0))
    append(f"delta:{folder / 't'}", rows, by="id")
    return DeltaTable(folder / "t").to_pyarrow_table() if rows.num_rows else expected


def _iceberg(rows, expected, folder):
    table = Iceberg(folder).make([expected.slice(0, 0)])
    append(table.name, rows, by="id", **table.options)
    return table.rows()


@pytest.mark.parametrize("through", [_delta, _iceberg])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(given_rows=tables())
def test_rows_are_read_back_as_they_were(through, given_rows):
    rows, expected = given_rows
    with tempfile.TemporaryDirectory() as folder:
        found = through(rows, expected, Path(folder))
    assert row_counts(pa.table(found)) == row_counts(expected)
