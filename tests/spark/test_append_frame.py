"""DataFrames, and the batches of a stream, appended to tables on Spark."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

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


# A session is classic or Connect for a whole process.
ON_CONNECT = """
import sys
sys.path.insert(0, sys.argv[1])
from support.appends import append_to
from support.cluster_tables import Delta, telemetry
from zonal.spark.session import is_connect, spark_session
table = Delta(sys.argv[2]).make([telemetry(20)], ["p"])
with spark_session(remote="local[2]") as spark:
    assert is_connect(spark)
    frame = spark.createDataFrame(telemetry(500, 1, first=1000).to_pandas()).repartition(3)
    done = append_to(table, frame, by=["x", "y"], transaction=("orders", 1))
    again = append_to(table, frame, transaction=("orders", 1))
print(done.rows, again.repeated)
"""


@pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
def test_a_dataframe_of_spark_connect_is_appended_exactly_once(tmp_path):
    words = [sys.executable, "-c", ON_CONNECT, str(Path(__file__).parents[1]), str(tmp_path)]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.split() == ["500", "True"]
    table, rows = Delta(tmp_path), pa.concat_tables([telemetry(20), telemetry(500, 1, first=1000)])
    assert_same_rows(table.rows(), rows)
    partitions_hold(table, rows)
    assert not table.strays()
