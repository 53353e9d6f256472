"""What holds on every kind of cluster: rows are kept, files narrowed, and nothing is left behind."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import zonal
from clusters.sessions import KINDS, classic
from support.appends import append_to
from support.cluster_tables import Delta, Iceberg, assert_same_rows, partitions_hold, parts_of, telemetry
from support.delta_tables import field
from support.delta_vectors import Vectored
from support.iceberg_positions import Positioned
from zonal.spark.session import is_connect, is_on_this_machine, spark_session
from zonal.spark.versions import collected

pytestmark = pytest.mark.clusters
ROWS = telemetry(6000)
SMALL_FILES = zonal.NewFiles(target_file_size=20_000, verify=True)
TYPES = ("long", "long", "double", "string", "string")
FIELDS = [field(name, kind) for name, kind in zip(ROWS.column_names, TYPES, strict=True)]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def spark(request, kind, executor_python):
    """A session on a cluster of this kind; its executors have numpy and pyarrow only."""
    if kind in ("connect", "restricted"):
        pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
        with spark_session(remote=request.getfixturevalue("server")) as session:
            if kind == "restricted":
                from clusters.restricted import restrict

                restrict(session)
            yield session
        return
    address = "local-cluster[2,1,1024]" if kind == "local-cluster" else request.getfixturevalue("master")
    with classic(address, executor_python) as session:
        yield session


def test_executors_are_elsewhere_and_have_neither_zonal_nor_pandas(spark, kind):
    def imports(batches):  # it travels by value: workers can't import this module
        from importlib.util import find_spec

        import pyarrow

        for _ in batches:
            there = [name for name in ("numpy", "pandas", "pyarrow", "zonal") if find_spec(name)]
            yield pyarrow.record_batch({"found": [",".join(there)]})

    found = spark.range(8, numPartitions=4).mapInArrow(imports, "found string").distinct().collect()
    assert [row.found for row in found] == ["numpy,pyarrow"]
    assert not is_on_this_machine(spark)
    assert is_connect(spark) == (kind in ("connect", "restricted"))


@pytest.mark.parametrize("home", [Delta, Iceberg])
def test_partitions_are_rewritten_in_place_and_committed_one_by_one(spark, tmp_path, home):
    table = home(tmp_path).make(parts_of(ROWS, 3), ["p"])
    scope = zonal.Scope(commit_every=sum(file.size for file in table.files()) * 2 // 3)
    done = zonal.cluster(table.name, by=["x", "y"], files=SMALL_FILES, scope=scope, spark=spark, **table.options)
    assert len(done.run.versions) > 1
    assert done.change.rows == ROWS.num_rows
    assert_same_rows(table.rows(), ROWS)
    partitions_hold(table, ROWS)
    assert not table.strays()
    again = zonal.cluster(table.name, files=SMALL_FILES, spark=spark, **table.options)
    assert not again.run.versions


@pytest.mark.parametrize("home", [Delta, Iceberg])
def test_a_copy_has_all_rows(spark, tmp_path, home):
    source, copy = home(tmp_path, "source").make(parts_of(ROWS, 3)), home(tmp_path, "copy")
    zonal.cluster(source.name, by=["x"], into=copy.name, files=SMALL_FILES, spark=spark, **source.options)
    assert_same_rows(copy.rows(), ROWS)
    assert_same_rows(source.rows(), ROWS)


@pytest.mark.parametrize("home", [Vectored, Positioned])
def test_rows_that_are_deleted_meanwhile_stay_deleted(spark, tmp_path, home):
    table = home(tmp_path).create(parts_of(ROWS, 3), FIELDS)
    table.delete("0.parquet", [5, 6])
    others = [lambda: table.delete("1.parquet", [0, 1, 1999])]

    def act(step):
        if step.name == "committing" and others:
            others.pop()()

    done = zonal.cluster(
        table.name, by=["x", "y"], files=SMALL_FILES, spark=spark, progress=act, **table.options
    )  # fmt: skip
    assert not others
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 3)
    gone = pa.array([5, 6, 2000, 2001, 3999])
    assert_same_rows(table.rows(), ROWS.filter(pc.invert(pc.is_in(ROWS["id"], gone))))
    assert not table.strays()


def test_a_partition_that_another_writer_changes_meanwhile_is_done_again(spark, tmp_path):
    table = Delta(tmp_path).make(parts_of(ROWS, 2), ["p"])
    others = [lambda: table.table.delete("p = 'b' and x < 100")]

    def act(step):
        if step.name == "committing" and others:
            others.pop()()

    done = zonal.cluster(table.name, by=["x", "y"], files=SMALL_FILES, spark=spark, progress=act)
    assert done.run.conflicts == 1
    gone = pc.and_(pc.equal(ROWS["p"], "b"), pc.less(ROWS["x"], 100))
    assert_same_rows(table.rows(), ROWS.filter(pc.invert(gone)))
    assert not table.strays()


def test_a_dataframe_is_clustered_and_appended(spark, tmp_path):
    frame = spark.createDataFrame(ROWS.to_pandas())
    out = frame.transform(zonal.clustered("hilbert(x, y)", files=6))
    out.write.parquet(str(tmp_path / "out"))
    files = [pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert 5 <= len(files) <= 8
    assert_same_rows(pa.concat_tables(files), ROWS)
    assert np.mean([np.ptp(file["x"].to_numpy()) for file in files]) < 0.75 * 1000
    table = Delta(tmp_path).make([telemetry(20)], ["p"])
    more = telemetry(500, 1, first=10_000)
    assert append_to(table, spark.createDataFrame(more.to_pandas()), by=["x", "y"], spark=spark).rows == 500
    assert_same_rows(table.rows(), pa.concat_tables([telemetry(20), more]))
    assert not table.strays()


@pytest.mark.parametrize("home", [Delta, Iceberg])
def test_a_table_is_read_by_the_files_that_match(spark, tmp_path, home):
    rows = ROWS.sort_by("x")
    table = home(tmp_path).make(parts_of(rows, 6), ["p"])
    some = collected(zonal.read(spark, table.name, where="x < 90", **table.options))
    assert some.num_rows < rows.num_rows / 2
    few = pc.less(some["x"], 90)
    assert_same_rows(some.filter(few).cast(rows.schema), rows.filter(pc.less(rows["x"], 90)))
