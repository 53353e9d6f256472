"""The kind and the writer of a commit, by what engines write into it."""

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.auditing.blame.authors import plain, writer_of
from zonal.snapshot import Commit
from zonal.tables.delta import operations as delta_operations
from zonal.tables.iceberg import operations as iceberg_operations

DELTA_RS = {"engineInfo": "delta-rs:py-1.6.6"}
SPARK_DELTA = {"engineInfo": "Apache-Spark/4.1.4 Delta-Lake/4.4.0"}
ZONAL = {"zonal.layout": "{}", "zonal.run": "20261116-014641-54c701aa"}
SPARK_ICEBERG = {
    "engine-name": "spark",
    "engine-version": "4.1.4",
    "iceberg-version": "Apache Iceberg 1.12.0 (commit 0123456)",
    "app-id": "local-1794796253991",
}
RS, SPARK_WITH_DELTA = "delta-rs 1.6.6", "Spark 4.1.4, Delta Lake 4.4.0"
OPERATIONS = {"delta": delta_operations, "iceberg": iceberg_operations}


def told_commit(table_format, operation, details):
    """Return a commit as the format's adapter describes it."""
    told = OPERATIONS[table_format]
    time = datetime(2026, 11, 16, tzinfo=timezone.utc)
    return Commit(1, time, operation, details, kind=told.kind_of(operation, details), writer=told.writer_of(details))


@pytest.mark.parametrize(
    ("table_format", "operation", "details", "kind", "writer"),
    [
        # deltalake 1.6.6
        ("delta", "WRITE", {"mode": "ErrorIfExists", **DELTA_RS}, "append", RS),
        ("delta", "WRITE", {"mode": "Append", **DELTA_RS}, "append", RS),
        ("delta", "WRITE", {"mode": "Overwrite", **DELTA_RS}, "overwrite", RS),
        ("delta", "OPTIMIZE", {"predicate": "[]", "targetSize": "104857600", **DELTA_RS}, "compaction", RS),
        ("delta", "DELETE", {"predicate": "x = 3", **DELTA_RS}, "delete", RS),
        ("delta", "UPDATE", {"predicate": "x = 4", **DELTA_RS}, "overwrite", RS),
        ("delta", "MERGE", {"mergePredicate": "t.x = s.x", **DELTA_RS}, "overwrite", RS),
        ("delta", "RESTORE", {"version": "1", **DELTA_RS}, "overwrite", RS),
        ("delta", "CONVERT", {"numFiles": "8", **DELTA_RS}, "append", RS),
        ("delta", "CREATE TABLE", {"mode": "ErrorIfExists", **DELTA_RS}, "append", RS),
        ("delta", "SET TBLPROPERTIES", DELTA_RS, "unknown", RS),
        ("delta", "WRITE", {"mode": "Append", "engineInfo": "delta-rs.0.17.3"}, "append", "delta-rs 0.17.3"),
        # Spark's Delta 4.4.0
        ("delta", "WRITE", {"mode": "Append", "partitionBy": "[]", **SPARK_DELTA}, "append", SPARK_WITH_DELTA),
        ("delta", "WRITE", {"mode": "Overwrite", "partitionBy": "[]", **SPARK_DELTA}, "overwrite", SPARK_WITH_DELTA),
        ("delta", "STREAMING UPDATE", {"outputMode": "Append", **SPARK_DELTA}, "append", SPARK_WITH_DELTA),
        ("delta", "STREAMING UPDATE", {"outputMode": "Complete", **SPARK_DELTA}, "overwrite", SPARK_WITH_DELTA),
        ("delta", "OPTIMIZE", {"zOrderBy": '["i"]', "auto": "false", **SPARK_DELTA}, "compaction", SPARK_WITH_DELTA),
        ("delta", "OPTIMIZE", {"zOrderBy": "[]", "auto": "true", **SPARK_DELTA}, "compaction", SPARK_WITH_DELTA),
        ("delta", "DELETE", {"predicate": '["(id#3L = 4)"]', **SPARK_DELTA}, "delete", SPARK_WITH_DELTA),
        ("delta", "MERGE", SPARK_DELTA, "overwrite", SPARK_WITH_DELTA),
        ("delta", "UPDATE", SPARK_DELTA, "overwrite", SPARK_WITH_DELTA),
        ("delta", "RESTORE", {"version": "2", **SPARK_DELTA}, "overwrite", SPARK_WITH_DELTA),
        ("delta", "CREATE TABLE AS SELECT", SPARK_DELTA, "append", SPARK_WITH_DELTA),
        ("delta", "CREATE OR REPLACE TABLE AS SELECT", SPARK_DELTA, "overwrite", SPARK_WITH_DELTA),
        ("delta", "OPTIMIZE", {"engineInfo": "Databricks-Runtime/15.4.x"}, "compaction", "Databricks-Runtime/15.4.x"),
        # zonal
        ("delta", "OPTIMIZE", {**ZONAL, "engineInfo": "zonal/0.1.0"}, "zonal", "zonal 0.1.0"),
        ("delta", "CREATE TABLE AS SELECT", {**ZONAL, "engineInfo": "zonal/0.1.0"}, "zonal", "zonal 0.1.0"),
        ("iceberg", "replace", ZONAL, "zonal", "zonal"),
        ("delta", "WRITE", {**ZONAL, "engineInfo": "zonal/0.1.0", "mode": "Append"}, "append", "zonal 0.1.0"),
        ("iceberg", "append", ZONAL, "append", "zonal"),
        # PyIceberg 0.12, which leaves no name
        ("iceberg", "append", {"added-data-files": "1"}, "append", ""),
        ("iceberg", "overwrite", {"added-data-files": "2", "deleted-data-files": "2"}, "overwrite", ""),
        ("iceberg", "delete", {"deleted-data-files": "2"}, "delete", ""),
        # Spark's Iceberg 1.12.0
        ("iceberg", "append", {**SPARK_ICEBERG, "spark.app.id": "local-1"}, "append", "Spark 4.1.4"),
        ("iceberg", "replace", SPARK_ICEBERG, "compaction", "Spark 4.1.4"),
        ("iceberg", "overwrite", {**SPARK_ICEBERG, "spark.app.id": "local-1"}, "overwrite", "Spark 4.1.4"),
        ("iceberg", "delete", {**SPARK_ICEBERG, "added-position-delete-files": "4"}, "delete", "Spark 4.1.4"),
        ("iceberg", "append", {"spark.app.id": "local-1"}, "append", "Spark"),
        (
            "iceberg",
            "append",
            {"flink.job-id": "1", "engine-name": "flink", "engine-version": "2.1"},
            "append",
            "Flink 2.1",
        ),
        ("iceberg", "append", {"trino_query_id": "1"}, "append", "Trino"),
        ("iceberg", "unheard-of", {}, "unknown", ""),
        ("delta", "UNKNOWN", {}, "unknown", ""),
    ],
)
def test_what_engines_write_tells_kind_and_writer(table_format, operation, details, kind, writer):
    commit = told_commit(table_format, operation, details)
    assert (commit.kind, writer_of(commit)) == (kind, writer)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_of_an_engine_is_taken(operation, engine):
    commit = told_commit("delta", operation, {"engineInfo": engine})
    assert commit.kind in ("append", "compaction", "delete", "overwrite", "unknown")
    assert writer_of(commit).isprintable()
    assert plain(operation).isprintable()
