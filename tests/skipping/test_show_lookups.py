"""What `show` says of look-ups is what `prune` reads: by bounds, partition values, buckets, and all together."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform, TruncateTransform
from pyiceberg.types import DateType, IntegerType

import zonal
from support.cluster_tables import Delta, Iceberg
from support.pages import clustering_page, health_page
from zonal.report.clustering import clustering_facts

ROWS = 1200
LITERALS = {"user": str, "part": lambda value: f"'{value}'", "ts": lambda value: f"TIMESTAMP '{value}'"}


@pytest.fixture(autouse=True)
def value_by_value(monkeypatch):
    """PyIceberg's own transforms of columns need a package that isn't needed otherwise."""

    def of_array(self, source):
        each = self.transform(source)
        kind = pa.int32() if isinstance(self.result_type(source), IntegerType | DateType) else None
        return lambda array: pa.array([each(_stored(value)) for value in array.to_pylist()], kind)

    for transform in (BucketTransform, TruncateTransform, DayTransform, MonthTransform):
        monkeypatch.setattr(transform, "pyarrow_transform", of_array)


def _stored(value):
    return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def arriving(first, *, seed):
    """Rows of 60 users at any time of three months, in five parts."""
    random = np.random.default_rng(seed)
    days = random.integers(0, 90, ROWS)
    moments = [datetime(2026, 1, 1) + timedelta(days=int(day), seconds=first) for day in days]
    return pa.table(
        {
            "user": pa.array(random.integers(0, 60, ROWS)),
            "part": pa.array([f"{'abcde'[number]}-{number}" for number in random.integers(0, 5, ROWS)]),
            "ts": pa.array(moments, pa.timestamp("us")),
        }
    )


def iceberg(folder, column, transform, *, metrics):
    home = Iceberg(folder)
    data = arriving(0, seed=0)
    properties = {"write.metadata.metrics.default": metrics}
    table = home.catalog.create_table("db.t", data.schema, properties=properties)
    with table.update_spec() as spec:
        spec.add_field(column, transform, "key")
    for seed in range(3):
        home.append(arriving(seed, seed=seed))
    return home, data


def read_in_the_mean(home, column, data):
    """The files that look-ups of values that are there read, each as often as it is there."""
    table = opened(home)
    asked = [f"{column} = {LITERALS[column](value)}" for value in data[column].to_pylist()[:: ROWS // 60]]
    return float(np.mean([len(zonal.prune(table, where=where)) for where in asked]))


def opened(home):
    return zonal.open_table(home.name, **home.options)


def shown(home, column):
    (health,) = zonal.show(opened(home), columns=[column]).columns
    return health


@pytest.mark.parametrize("metrics", ["full", "none"])
@pytest.mark.parametrize(
    ("column", "transform"),
    [
        ("user", BucketTransform(4)),
        ("part", BucketTransform(3)),
        ("ts", BucketTransform(5)),
        ("part", IdentityTransform()),
        ("part", TruncateTransform(1)),
        ("user", TruncateTransform(20)),
        ("ts", DayTransform()),
        ("ts", MonthTransform()),
    ],
    ids=str,
)
def test_partitions_tell_what_a_lookup_reads(tmp_path, column, transform, metrics):
    home, data = iceberg(tmp_path, column, transform, metrics=metrics)
    health, read = shown(home, column), read_in_the_mean(home, column, data)
    assert read < health.files, "partitions skip some of them"
    assert health.depth.lookup_files == pytest.approx(read, rel=0.1)
    assert f"reads {round(health.depth.lookup_files):,} of {health.files} files" in health.verdict
    assert ("by its buckets" in health.verdict) == isinstance(transform, BucketTransform)


def test_a_bucketed_column_without_bounds_reads_one_bucket_and_a_range_everything(tmp_path):
    home, _ = iceberg(tmp_path, "user", BucketTransform(4), metrics="none")
    health = shown(home, "user")
    assert health.verdict == (
        "a look-up of user reads 3 of 12 files by its buckets; it has no bounds, so a range reads all 12 files"
    )
    assert len(zonal.prune(opened(home), where="user = 7")) == 3
    assert len(zonal.prune(opened(home), where="user > 7")) == 12
    found = zonal.show(opened(home), display=zonal.Display(picture=True))
    assert "a look-up of user reads 3 of 12 files by its buckets" in health_page(found)


def test_files_from_before_the_buckets_are_read_beside_one_bucket(tmp_path):
    home = Iceberg(tmp_path)
    data = arriving(0, seed=0)
    table = home.catalog.create_table("db.t", data.schema, properties={"write.metadata.metrics.default": "none"})
    for buckets in (None, 4, 8):
        if buckets is not None:
            table = home.table
            with table.update_spec() as spec:
                spec.add_field("user", BucketTransform(buckets), f"by_{buckets}")
                if buckets == 8:
                    spec.remove_field("by_4")
        home.append(data)
    assert shown(home, "user").files == 1 + 4 + 8
    assert shown(home, "user").depth.lookup_files == pytest.approx(3.0)
    assert read_in_the_mean(home, "user", data) == pytest.approx(3.0)


def test_a_partition_column_of_delta_is_told_by_its_values(tmp_path):
    home = Delta(tmp_path).make([arriving(seed, seed=seed) for seed in range(3)], partition_by=["part"])
    health = shown(home, "part")
    assert health.verdict == "a look-up of part reads 3 of 15 files"
    assert read_in_the_mean(home, "part", arriving(0, seed=0)) == 3


def test_files_without_bounds_are_counted_and_told(tmp_path):
    home = Iceberg(tmp_path)
    data = arriving(0, seed=0).sort_by("user")
    parts = [data.slice(start, ROWS // 4) for start in range(0, ROWS, ROWS // 4)]
    home.make(parts, properties={"write.metadata.metrics.default": "full"})
    with home.table.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "none"})
    home.append(data)
    assert shown(home, "user").verdict == "a look-up of user reads 2 of 5 files, 1 of them without bounds of it"
    assert read_in_the_mean(home, "user", data) == pytest.approx(2, abs=0.2)


def test_more_files_that_are_fewer_bytes_are_no_regression(tmp_path):
    home = Delta(tmp_path).make([arriving(0, seed=0)])
    done = home.cluster(by=["user", "ts"], layout="zorder", target_file_size=1_000)
    (user, _) = done.lookups.depths
    read = shown(home, "user").depth
    assert (user.before, user.share_before) == (1, 1)
    assert (user.after, user.share_after) == (read.lookup_files, read.lookup_share)
    assert user.after > 1 > user.share_after, "more files, but fewer bytes"
    after = f"{round(user.after)} of {done.lookups.files_after} files ({user.share_after:.1%} of the bytes)"
    told = [fact for label, fact in clustering_facts(done) if label == "look-up"]
    assert told[0] == f"one user: 1 of 1 file (100.0% of the bytes) before, {after} now"
    assert after in done._repr_html_()
    page = clustering_page(done)
    assert f">{user.share_after:.1%}<" in page
    assert f"{round(user.after)} of {done.lookups.files_after} files" in page
