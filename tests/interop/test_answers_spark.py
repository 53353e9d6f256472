"""Spark with Delta and Iceberg counts the same rows before and after clustering, and as it does without skipping."""

import pyarrow.parquet as pq
import pytest

from interop.clustering import clustered
from support.hard_values import conditions, hard_rows
from zonal.tables.iceberg.table import IcebergTable
from zonal.tables.registry import table_of

pytestmark = pytest.mark.interop

AT_ONCE = 25
"""Conditions of one query: each has a scan of its own, so that Spark skips by each of them."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The rows in a file that Spark reads."""
    file = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(hard_rows(), file, row_group_size=700, write_statistics=False)
    return f"parquet.`{file}`"


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def table(request, spark, rows, tmp_path_factory, folder_of_engines):
    """A table that Spark made: its name for queries, and as zonal opens it."""
    if request.param == "delta":
        path = str(tmp_path_factory.mktemp("answers") / "hard")
        name, opened = f"delta.`{path}`", path
        spark.sql(f"CREATE TABLE {name} USING delta PARTITIONED BY (p) AS SELECT /*+ REPARTITION(3) */ * FROM {rows}")
        return name, opened
    name = "ice.db.hard_answers"
    spark.sql(f"CREATE TABLE {name} USING iceberg PARTITIONED BY (p) AS SELECT * FROM {rows}")
    uri, warehouse = f"sqlite:///{folder_of_engines / 'catalog.db'}", f"file://{folder_of_engines / 'warehouse'}"
    properties = {"type": "sql", "uri": uri, "warehouse": warehouse}
    return name, IcebergTable.from_catalog("db.hard_answers", catalog="ice", catalog_properties=properties)


def counted(spark, source, texts):
    """Count by WHERE, by which the engine skips."""
    found = {}
    for start in range(0, len(texts), AT_ONCE):
        parts = [
            f"SELECT {start + n} AS at, count(*) AS n FROM {source} WHERE {text}"
            for n, text in enumerate(texts[start : start + AT_ONCE])
        ]
        found |= {row["at"]: row["n"] for row in spark.sql(" UNION ALL ".join(parts)).collect()}
    return [found[n] for n in range(len(texts))]


def judged(spark, source, texts):
    """Count by CASE, by which it can't."""
    sums = ", ".join(f"sum(CASE WHEN {text} THEN 1 ELSE 0 END)" for text in texts)
    return list(spark.sql(f"SELECT {sums} FROM {source}").first())


def test_no_answer_changes(spark, table):
    name, opened = table
    is_delta = name.startswith("delta")
    (written,) = spark.sql(f"DESCRIBE HISTORY {name}" if is_delta else f"SELECT * FROM {name}.snapshots").collect()
    source = f"{name} VERSION AS OF {written['version' if is_delta else 'snapshot_id']}"
    clustered(opened, by=("dbl", "url"))
    files = [path.removeprefix("file://") for path in _files(opened)]
    asked = conditions([pq.read_table(path, partitioning=None) for path in files], partitioned=True)
    asked = [c for n, c in enumerate(asked) if c.column in ("dbl", "st.x", "st.y", "p") or n % 6 == 0]
    texts = [condition.sql(blob="X'{}'", column="{}.{}") for condition in asked]
    truth = judged(spark, source, texts)
    assert judged(spark, name, texts) == truth, "the rows are the same"
    assert not _wrong(texts, counted(spark, name, texts), truth)
    before = _wrong(texts, counted(spark, source, texts), truth)
    # Of Spark's own files: dictionaries tell 0.0 from -0.0, and Iceberg's upper bounds leave NaN out.
    known = ("CAST('0.0'", "CAST('-0.0'") if is_delta else ("AS DOUBLE", "AS FLOAT")
    assert all(told < right and any(part in text for part in known) for text, told, right in before)


def _wrong(texts, found, truth):
    return [(text, told, right) for text, told, right in zip(texts, found, truth, strict=True) if told != right]


def _files(opened):
    return table_of(opened).newest().snapshot().files.paths.to_pylist()
