"""NaN in tables that others wrote: their bounds leave it out, and zonal keeps what might hold one.

DuckDB judges on the rows alone. For it, as for Spark, NaN is the greatest number and equals itself.
"""

import math
import struct

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cluster_tables import home
from zonal.parquet.footer import read_footer, row_group_bounds
from zonal.parquet.page_index import page_bounds
from zonal.predicates.bind import bind
from zonal.skipping.files import FileIndex
from zonal.skipping.index import Index
from zonal.snapshot import Physical
from zonal.sql.where import parse_where
from zonal.tables.registry import table_of

NAN, INF = math.nan, math.inf
UNITS = {
    "numbers": [1.5, 2.5, -3.0],
    "some_nan": [1.5, NAN, 2.5],
    "first_nan": [NAN, 1.5],
    "only_nan": [NAN, NAN],
    "nan_and_null": [None, NAN],
    "only_null": [None, None],
    "infinite": [INF, -INF, 0.5],
    "infinite_nan": [INF, NAN],
    "minus_zero": [-0.0, NAN],
    "negative_nan": [struct.unpack("<d", struct.pack("<Q", 0xFFF8 << 48))[0], 7.0],
}
NUMBERS = ("1.5", "2.5", "0.0", "-0.0", "9", "-9", "1e300", "'nan'", "'inf'", "'-inf'")
CONDITIONS = [
    *(f"x {op} {number}" for op in ("=", "<>", "<", "<=", ">", ">=") for number in NUMBERS),
    *(f"NOT (x {op} {number})" for op in ("=", "<", "<=", ">") for number in NUMBERS),
    *(f"x IS {no}DISTINCT FROM {number}" for no in ("", "NOT ") for number in NUMBERS),
    "x IN (9, 'nan')",
    "x IN (9, 1.5)",
    "x NOT IN (9, 1.5)",
    "x NOT IN (9, 'nan')",
    "NOT (x IN (1.5, 'inf'))",
    "x BETWEEN 5 AND 9",
    "x BETWEEN 5 AND 'nan'",
    "x BETWEEN 'nan' AND 'nan'",
    "x NOT BETWEEN -100 AND 100",
    "NOT (x BETWEEN 1 AND 'inf')",
    "x > 5 AND x < 9",
    "x > 5 OR x < -5",
    "x IS NULL",
    "x IS NOT NULL",
    "x > 5 AND x IS NOT NULL",
    "x = CAST('NaN' AS DOUBLE)",
    "x >= CAST('NaN' AS DOUBLE)",
    "isnan(x)",
    "NOT isnan(x)",
]


def bound(condition, schema):
    return bind(parse_where(condition, dialect="duckdb"), schema, dialect="duckdb")


def matching(rows, conditions):
    """The units that hold a row for which each condition is true."""
    with duckdb.connect() as judge:
        judge.register("told", rows)
        return {
            condition: {unit for (unit,) in judge.sql(f"SELECT DISTINCT unit FROM told WHERE {condition}").fetchall()}
            for condition in conditions
        }


def told(units, kind):
    flat = [(number, value) for number, unit in enumerate(units) for value in unit]
    return pa.table({"unit": [unit for unit, _ in flat], "x": pa.array([value for _, value in flat], kind)})


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("made_by", ["parquet", "delta", "iceberg v2"])
def test_files_with_a_matching_nan_are_kept(made_by, kind, tmp_path):
    units = list(UNITS.values())
    rows = told(units, kind)
    table = home(made_by, tmp_path).make([rows.filter(pa.compute.equal(rows["unit"], n)) for n in range(len(units))])
    snapshot = table_of(table.name, **table.options).snapshot()
    index = FileIndex(snapshot)
    paths = [path.removeprefix("file://") for path in snapshot.files.paths.to_pylist()]
    unit_of = [pq.read_table(path, partitioning=None)["unit"][0].as_py() for path in paths]
    skipped = 0
    for condition, units_found in matching(rows, CONDITIONS).items():
        kept = index.prune(bound(condition, snapshot.schema)).kept
        found = {unit for unit, keep in zip(unit_of, kept, strict=True) if keep}
        assert units_found <= found, f"{condition} loses {[list(UNITS)[unit] for unit in units_found - found]}"
        skipped += len(units) - len(found)
    assert skipped > len(CONDITIONS), "bounds of floats are still of use"


FLOATS = st.none() | st.sampled_from([NAN, 1.5, 2.5, 0.0, -0.0, 9.0, -9.0, INF, -INF])
PAGE = 3
"""Rows per page."""


@given(
    st.lists(st.lists(FLOATS, min_size=1, max_size=9), min_size=1, max_size=4),
    st.sampled_from([pa.float64(), pa.float32()]),
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=8, unique=True),
    st.booleans(),
)
@settings(max_examples=60)
def test_row_groups_and_pages_with_a_matching_nan_are_kept(groups, kind, conditions, use_dictionary):
    sink = pa.BufferOutputStream()
    schema = pa.schema({"x": kind})
    options = {"data_page_size": 1, "write_batch_size": PAGE, "use_dictionary": use_dictionary}
    with pq.ParquetWriter(sink, schema, write_page_index=True, **options) as writer:
        for values in groups:
            writer.write_table(pa.table({"x": pa.array(values, kind)}, schema))
    file = pa.BufferReader(sink.getvalue())
    footer = read_footer(file)
    places = [(g, r // PAGE) for g, values in enumerate(groups) for r in range(len(values))]
    values = pa.array([value for group in groups for value in group], kind)
    rows = pa.table({"unit": pa.array([f"{g}/{p}" for g, p in places]), "x": values})
    whole = Index(np.array([len(g) for g in groups]), {"x": row_group_bounds(footer, Physical("x"), kind)})
    for condition, found in matching(rows, conditions).items():
        asked = bound(condition, schema)
        kept = whole.might_match(asked)
        for unit in found:
            group, page = map(int, unit.split("/"))
            assert kept[group], f"{condition} loses a row group of {groups[group]}"
            pages = page_bounds(file, footer, group, Physical("x"), kind)
            if pages is not None:  # Arrow writes none where a page holds nothing but NaN
                sizes = np.diff(np.append(pages.first_rows, len(groups[group])))
                at = np.searchsorted(pages.first_rows, page * PAGE, side="right") - 1
                assert Index(sizes, {"x": pages.bounds}).might_match(asked)[at], f"{condition} loses a page"
