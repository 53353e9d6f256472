"""Clustering changes no answer: engines that skip by what zonal wrote count the rows that they count without skipping.

Conditions ask for the bounds of the new files and for values that statistics get wrong. The judge is the same engine,
by `sum(CASE WHEN …)`, which it can't skip by, or Arrow's own functions on all rows.
"""

import math
import operator

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyiceberg.expressions as ice
import pytest
from deltalake import QueryBuilder

from support.cluster_tables import assert_same_rows, home, parts_of
from support.hard_values import column_of, conditions, hard_rows

LAYOUTS = {"by": ["dbl", "url"], "target_file_size": 4_000}


def made(kind, folder, *, partitioned=False):
    """A table in three appends, clustered, and the conditions to ask."""
    rows = hard_rows()
    table = home(kind, folder).make(parts_of(rows, 3), partition_by=["p"] if partitioned else ())
    before = table.rows()
    table.cluster(**LAYOUTS)
    assert_same_rows(table.rows(), before)
    files = [pq.read_table(file.path, partitioning=None) for file in table.files()]
    assert len(files) > 8
    asked = conditions(files, partitioned=partitioned)
    return table, [one for one in asked if one.column in ("p", "dbl", "st.x", "url")] if partitioned else asked


def wrong(asked, found, truth):
    return [(*pair, told, right) for pair, told, right in zip(asked, found, truth, strict=True) if told != right]


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_duckdb_answers_from_the_files_as_without_skipping(kind, tmp_path):
    table, asked = made(kind, tmp_path)
    source = f"read_parquet({[str(file.path) for file in table.files()]!r}, hive_partitioning = false)"
    texts = [condition.sql() for condition in asked]
    with duckdb.connect() as engine:
        sums = ", ".join(f"sum(CASE WHEN {text} THEN 1 ELSE 0 END)" for text in texts)
        truth = engine.sql(f"SELECT {sums} FROM {source}").fetchall()[0]
        found = [engine.sql(f"SELECT count(*) FROM {source} WHERE {text}").fetchall()[0][0] for text in texts]
    assert not wrong([(text,) for text in texts], found, truth)


@pytest.mark.parametrize("partitioned", [False, True])
def test_delta_rs_answers_as_without_skipping(partitioned, tmp_path):
    table, asked = made("delta", tmp_path, partitioned=partitioned)
    engine = QueryBuilder().register("t", table.table)
    texts = [condition.sql(blob="X'{}'") for condition in asked]
    sums = ", ".join(f"sum(CASE WHEN {text} THEN 1 ELSE 0 END) AS c{n}" for n, text in enumerate(texts))
    truth = list(pa.table(engine.execute(f"SELECT {sums} FROM t").read_all()).to_pylist()[0].values())
    found = [
        pa.table(engine.execute(f"SELECT count(*) AS n FROM t WHERE {text}").read_all())["n"][0].as_py()
        for text in texts
    ]
    assert not wrong([(text,) for text in texts], found, truth)


PYICEBERG = {
    "=": ice.EqualTo, "<": ice.LessThan, "<=": ice.LessThanOrEqual, ">": ice.GreaterThan, ">=": ice.GreaterThanOrEqual,
    "NOT <=": lambda name, value: ice.Not(ice.LessThanOrEqual(name, value)),
}  # fmt: skip
ARROW = {
    "=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
    "NOT <=": lambda column, value: pc.invert(pc.less_equal(column, value)),
}  # fmt: skip


def pyiceberg_filter(condition):
    name, values = condition.column, condition.values
    if condition.op in ("IS NULL", "IS NOT NULL"):
        return ice.IsNull(name) if condition.op == "IS NULL" else ice.NotNull(name)
    return ice.In(name, values) if condition.op == "IN" else PYICEBERG[condition.op](name, values[0])


def _is_finite(value):
    return not isinstance(value, float) or math.isfinite(value)


def arrow_count(condition, rows):
    """Count rows as PyIceberg means it: NaN is neither above nor below a number."""
    column = column_of(rows, condition.column)
    if condition.op in ("IS NULL", "IS NOT NULL"):
        nulls = column.null_count
        return nulls if condition.op == "IS NULL" else len(column) - nulls
    masks = [
        ARROW["=" if condition.op == "IN" else condition.op](column, pa.scalar(value, column.type))
        for value in condition.values
    ]
    mask = masks[0] if len(masks) == 1 else pc.or_(*masks)
    return pc.sum(pc.fill_null(mask, False)).as_py() or 0


@pytest.mark.parametrize("partitioned", [False, True])
def test_pyiceberg_answers_as_without_skipping(partitioned, tmp_path):
    table, asked = made("iceberg v2", tmp_path, partitioned=partitioned)
    rows = table.rows()
    # NaN is no literal of PyIceberg's, and an infinite one is outside of its range of 32-bit floats.
    asked = [condition for condition in asked[::2] if all(map(_is_finite, condition.values))]
    opened = table.table
    found = [opened.scan(row_filter=pyiceberg_filter(condition)).count() for condition in asked]
    assert not wrong([(c,) for c in asked], found, [arrow_count(condition, rows) for condition in asked])
    numbers = rows["dbl"].to_pylist()
    nans = sum(math.isnan(number) for number in numbers)
    assert opened.scan(row_filter=ice.IsNaN("dbl")).count() == nans
    assert opened.scan(row_filter=ice.NotNaN("dbl")).count() == len(numbers) - nans


POLARS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def polars_filter(condition, schema):
    first, _, second = condition.column.partition(".")
    column, kind = pl.col(first), schema[first]
    if second:
        column, kind = column.struct.field(second), kind.to_schema()[second]
    values = [pl.lit(value, kind) for value in condition.values]
    if condition.op in ("IS NULL", "IS NOT NULL"):
        return column.is_null() if condition.op == "IS NULL" else column.is_not_null()
    if condition.op == "IN":
        return (column == values[0]) | (column == values[1])
    return ~(column <= values[0]) if condition.op == "NOT <=" else POLARS[condition.op](column, values[0])


@pytest.mark.parametrize("partitioned", [False, True])
def test_polars_answers_as_without_skipping(partitioned, tmp_path):
    table, asked = made("delta", tmp_path, partitioned=partitioned)
    rows = pl.from_arrow(pa.table(QueryBuilder().register("t", table.table).execute("SELECT * FROM t").read_all()))
    scanned = pl.scan_delta(str(table.root))
    filters = [polars_filter(condition, rows.schema) for condition in asked]
    found = [scanned.filter(one).select(pl.len()).collect().item() for one in filters]
    truth = [rows.filter(one).height for one in filters]
    assert not wrong([(c,) for c in asked], found, truth)
