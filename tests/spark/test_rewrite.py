"""Rewrites on whatever Spark is installed: the contract that every version is held to."""

import numpy as np
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from support.cluster_tables import Delta, Iceberg, assert_same_rows, parts_of, telemetry
from zonal.rewriting.new_files import NewFiles
from zonal.spark.place import Spark
from zonal.spark.row_partitions import addresses
from zonal.verbs.cluster import cluster

pytestmark = pytest.mark.spark
ROWS = telemetry(4000)


@pytest.mark.parametrize("partitions", [1, 2, 7, 64, 1000])
def test_every_address_is_that_of_its_partition(spark, partitions):
    numbers = np.arange(partitions)
    rows = list(zip(addresses(numbers).tolist(), numbers.tolist(), strict=True))
    dealt = spark.createDataFrame(rows, "address int, number int").repartition(partitions, "address")
    assert dealt.where(F.spark_partition_id() != F.col("number")).count() == 0


@pytest.mark.parametrize("home", [Delta, Iceberg])
def test_a_rewrite_keeps_the_rows_and_narrows_the_files(spark, tmp_path, home):
    table = home(tmp_path).make(parts_of(ROWS, 4))
    files = NewFiles(target_file_size=12_000, verify=True)
    done = cluster(table.name, by=["x", "y"], files=files, spark=spark, **table.options)
    assert done.change.rows == 4000
    assert done.change.added_files > 4
    assert_same_rows(table.rows(), ROWS)
    again = cluster(table.name, by=["x", "y"], files=files, spark=spark, **table.options)
    assert not again.run.versions


def test_a_copy_has_all_rows(spark, tmp_path):
    source = Delta(tmp_path, "source").make(parts_of(ROWS, 4))
    copy = Delta(tmp_path, "copy")
    cluster(source.name, by=["x"], into=copy.name, spark=spark)
    assert_same_rows(copy.rows(), ROWS)
    assert pc.sum(copy.rows()["x"]).as_py() == pc.sum(ROWS["x"]).as_py()


def test_settings_beside_a_session_are_told(spark, tmp_path):
    """A running session is used as it is, on every version."""
    table = Delta(tmp_path).make(parts_of(ROWS, 2))
    with pytest.raises(Exception, match="already runs in this process: leave out"):
        cluster(table.name, by=["x"], spark=Spark(conf={"spark.app.name": "other"}))
    assert spark.range(1).count() == 1
