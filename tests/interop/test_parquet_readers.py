"""Other engines read the files that zonal writes, row for row."""

import duckdb
import pyarrow.parquet as pq
import pytest

import zonal
from zonal.demo.telemetry import telemetry

pytestmark = pytest.mark.interop

ROWS = 50_000
QUERY = "SELECT count(*), sum(value), sum(payload_id), count(DISTINCT trace_id) FROM t WHERE payload_id < 20000"


@pytest.fixture(scope="module")
def arrived(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrived")
    pq.write_table(telemetry(ROWS), folder / "rows.parquet", row_group_size=10_000)
    return folder


@pytest.mark.parametrize("layout", ["linear", "zorder", "hilbert"])
def test_spark_and_duckdb_find_the_same_rows(spark, arrived, layout, tmp_path):
    done = zonal.cluster(
        str(arrived),
        by=["ts", "payload_id"],
        layout=layout,
        files=zonal.NewFiles(target_file_size="100KB"),
        into=f"parquet:{tmp_path / layout}",
        spark=spark,
    )
    assert done.change.added_files > 5
    t = telemetry(ROWS)
    count, total, ids, traces = duckdb.sql(QUERY).fetchall()[0]
    spark.read.parquet(str(tmp_path / layout)).createOrReplaceTempView("t")
    found = spark.sql(QUERY).first()
    t = duckdb.read_parquet(f"{tmp_path / layout}/*.parquet")  # noqa: F841
    for engine in (found, duckdb.sql(QUERY).fetchall()[0]):
        assert (engine[0], engine[2], engine[3]) == (count, ids, traces)
        assert engine[1] == pytest.approx(total)
