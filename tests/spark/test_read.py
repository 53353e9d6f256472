"""A table as a DataFrame over only the files that can match."""

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import zonal
from support.cluster_tables import assert_same_rows, parts_of, telemetry
from zonal.errors import PredicateError
from zonal.spark.versions import collected

pytestmark = pytest.mark.spark
ROWS = telemetry(4000).sort_by("x")


@pytest.fixture(scope="module")
def delta(tmp_path_factory):
    """Eight files by ranges of `x`, in partitions, some rows deleted."""
    folder = str(tmp_path_factory.mktemp("read") / "delta")
    for part in parts_of(ROWS, 8):
        write_deltalake(folder, part, mode="append", partition_by=["p"])
    DeltaTable(folder).delete("x < 50")
    return folder


def test_all_rows_of_a_partitioned_delta_table_come_with_their_types(spark, delta):
    found = collected(zonal.read(spark, delta))
    expected = ROWS.filter(pc.greater_equal(ROWS["x"], 50))
    assert_same_rows(found.cast(ROWS.schema), expected)


def test_a_condition_leaves_files_out_and_no_matching_row(spark, delta):
    every, some = zonal.read(spark, delta), zonal.read(spark, delta, where="x BETWEEN 100 AND 110")
    matching = "x BETWEEN 100 AND 110"
    assert some.count() < every.count() / 3
    assert some.where(matching).exceptAll(every.where(matching)).count() == 0
    assert some.where(matching).count() == every.where(matching).count() > 0


def test_a_condition_that_nothing_meets_gives_no_rows_and_the_same_columns(spark, delta):
    nothing = zonal.read(spark, delta, where="x > 5000")
    assert nothing.count() == 0
    assert nothing.schema == zonal.read(spark, delta).schema


def test_an_iceberg_table_is_read_without_its_jar(spark, tmp_path):
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    catalog = SqlCatalog("test", **options)
    catalog.create_namespace("db")
    catalog.create_table("db.t", ROWS.schema).append(ROWS)
    found = zonal.read(spark, "iceberg:db.t", catalog="test", storage_options=options)
    assert_same_rows(collected(found).cast(ROWS.schema), ROWS)


def test_an_unknown_column_is_named(spark, delta):
    with pytest.raises(PredicateError, match="Unknown column 'xx'"):
        zonal.read(spark, delta, where="xx = 1")
