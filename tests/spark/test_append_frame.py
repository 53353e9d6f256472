"""DataFrames, and the batches of a stream, appended to tables on Spark."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zonal
from support.appends import append_to
from support.cluster_tables import Delta, Iceberg, assert_same_rows, partitions_hold, telemetry

pytestmark = pytest.mark.spark


def test_a_dataframe_is_appended_and_runs_once(spark, tmp_path):
    new = telemetry(2000, 1, first=1000)
    table = Delta(tmp_path).make([telemetry(20)], ["p"])
    done = append_to(table, spark.createDataFrame(new).repartition(3), by=["x", "y"])
    assert done.rows == 2000
    assert_same_rows(table.rows(), pa.concat_tables([telemetry(20), new]))
    partitions_hold(table, pa.concat_tables([telemetry(20), new]))
    assert not table.strays()
    with pytest.raises(zonal.ZonalError, match="no column 'more'"):
        append_to(table, spark.createDataFrame(new).selectExpr("*", "1 AS more"))


def test_the_batches_of_a_stream_are_appended_exactly_once(spark, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        pq.write_table(telemetry(50, number, first=100 * number), tmp_path / "in" / f"{number}.parquet")
    table = Iceberg(tmp_path / "lake").make([telemetry(0)])
    repeated = []

    def append(batch, number):
        append_to(table, batch, by="x", transaction=("orders", number))
        repeated.append(append_to(table, batch, transaction=("orders", number)).repeated)

    rows = spark.readStream.schema("id long, x long, y double, s string, p string").option("maxFilesPerTrigger", 1)
    stream = rows.parquet(str(tmp_path / "in")).writeStream.foreachBatch(append).trigger(availableNow=True)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(240)
    assert repeated == [True] * 3
    assert_same_rows(table.rows(), pa.concat_tables([telemetry(50, n, first=100 * n) for n in range(3)]))
