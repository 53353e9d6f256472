"""delta-spark reads what zonal appended: rows, partitions, statistics, and the transactions of its own writers."""

import pyarrow as pa
import pytest

from interop.clustering import rows_of, scan_metrics
from zonal.verbs.append import append

pytestmark = pytest.mark.interop


def rows(first, count):
    ids = range(first, first + count)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "x": pa.array([7 * each % 1000 for each in ids], pa.int64()),
         "p": pa.array([("a", "b c", "d=1")[each % 3] for each in ids], pa.string())}
    )  # fmt: skip


def test_delta_spark_reads_appended_rows_and_knows_their_transactions(spark, tmp_path):
    path = tmp_path / "t"
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, x BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    layout = "zorder(x, id, file_size=500B)"
    done = append(f"delta:{path}", rows(0, 3000), layout=layout, transaction=("nightly", 3))
    assert (done.rows, done.repeated) == (3000, False)
    assert done.files > 3
    expected = spark.createDataFrame(
        [tuple(row.values()) for row in rows(0, 3000).to_pylist()], "id long, x long, p string"
    )
    expected.createOrReplaceTempView("appended")
    assert rows_of(spark, f"SELECT * FROM {table}") == rows_of(spark, "SELECT * FROM appended")
    counts = "SELECT count(*) FROM {t} WHERE p = 'b c'"
    assert rows_of(spark, counts.format(t=table)) == rows_of(spark, counts.format(t="appended"))
    assert scan_metrics(spark, f"SELECT * FROM {table} WHERE p = 'a' AND x = 30")["numFiles"] < done.files / 3
    batch = spark.range(5).selectExpr("id + 9000 AS id", "id AS x", "'a' AS p")
    for version, total in ((3, 3000), (4, 3005)):  # the third is in the table, by zonal's own append
        options = {"txnAppId": "nightly", "txnVersion": version}
        batch.write.format("delta").mode("append").options(**options).save(str(path))
        assert spark.sql(f"SELECT count(*) AS n FROM {table}").first().n == total
    assert append(f"delta:{path}", rows(5000, 10), transaction=("nightly", 4)).repeated, "which delta-spark wrote"
