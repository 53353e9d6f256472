"""Other engines read the files that zonal writes, row for row."""

import duckdb
import pytest
from rich.console import Console

from zonal.demo import run, telemetry

pytestmark = pytest.mark.interop

ROWS = 50_000
QUERY = "SELECT count(*), sum(value), sum(payload_id), count(DISTINCT trace_id) FROM t WHERE payload_id < 20000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("layouts") / "kept"
    run(Console(quiet=True), data=None, by=None, rows=ROWS, files=20, into=path)
    return path


@pytest.mark.parametrize("layout", ["linear", "zorder", "hilbert"])
def test_spark_and_duckdb_find_the_same_rows(spark, folder, layout):
    t = telemetry(ROWS)
    count, total, ids, traces = duckdb.sql(QUERY).fetchall()[0]
    spark.read.parquet(str(folder / layout)).createOrReplaceTempView("t")
    found = spark.sql(QUERY).first()
    t = duckdb.read_parquet(f"{folder / layout}/*.parquet")  # noqa: F841
    for engine in (found, duckdb.sql(QUERY).fetchall()[0]):
        assert (engine[0], engine[2], engine[3]) == (count, ids, traces)
        assert engine[1] == pytest.approx(total)
