"""`clustered` in a user's own Spark job: the same rows and types, in files with narrow ranges."""

import datetime as dt
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.errors import ColumnError, LayoutError, ZonalError
from zonal.layouts.layout import Layout
from zonal.layouts.tree import Tree
from zonal.spark.frame import _plan, clustered
from zonal.spark.reservoir import Part, merged_parts, reservoir
from zonal.spark.versions import collected, has_column_functions
from zonal.verbs.show import show

# --- samples ---------------------------------------------------------------------------------------------------------


def batches_of(sizes, start=0):
    for size in sizes:
        yield pa.record_batch({"x": pa.array(range(start, start + size), pa.int64())})
        start += size


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 30), st.integers(0, 5))
def test_a_reservoir_holds_as_many_different_rows_as_it_may(sizes, most, seed):
    part = reservoir(batches_of(sizes), most, seed)
    if part is None:
        assert not sizes
        return
    held = part.sample["x"].to_pylist()
    assert part.rows == sum(sizes)
    assert len(held) == min(most, sum(sizes))
    assert len(set(held)) == len(held)
    assert set(held) <= set(range(sum(sizes)))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 50)), min_size=1, max_size=6), st.integers(1, 60))
def test_merged_samples_stand_for_all_rows_in_proportion(parts, most):
    made, start = [], 0
    for rows, held in parts:
        made.append(reservoir(batches_of([rows], start), held, 0))
        start += rows
    merged = merged_parts(made, most)
    values = merged.sample["x"].to_pylist()
    assert merged.rows == start
    assert len(values) <= most
    assert len(set(values)) == len(values)
    lower = 0
    for part in made:
        share = sum(lower <= value < lower + part.rows for value in values)
        assert abs(share - len(values) * part.rows / max(start, 1)) <= 1.5
        lower += part.rows


def test_every_row_has_the_same_chance():
    counts = np.zeros(100)
    for seed in range(400):
        parts = [reservoir(batches_of([30, 50]), 20, seed), reservoir(batches_of([20], 80), 20, seed + 1000)]
        counts[merged_parts(parts, 20).sample["x"].to_numpy()] += 1
    assert counts[:80].mean() == pytest.approx(counts[80:].mean(), rel=0.1)
    assert counts[:80].min() > 40
    assert counts[:80].max() < 130


def test_a_part_without_rows_weighs_nothing():
    empty = Part(0, pa.table({"x": pa.array([], pa.int64())}))
    assert merged_parts([empty, empty], 10).sample.num_rows == 0


# --- Spark -----------------------------------------------------------------------------------------------------------

ROWS = 20_000


def pieces(df):
    """The rows of each partition, in their order."""
    rows = df.selectExpr("*", "spark_partition_id() AS zonal_piece", "monotonically_increasing_id() AS zonal_at")
    table = collected(rows).sort_by([("zonal_piece", "ascending"), ("zonal_at", "ascending")])
    starts = np.flatnonzero(np.diff(table["zonal_piece"].to_numpy(), prepend=-1))
    ends = np.append(starts[1:], table.num_rows)[: len(starts)]
    return [table.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]


functions = pytest.importorskip("pyspark.sql.functions")


@pytest.fixture(scope="module")
def points(spark):
    return spark.range(ROWS, numPartitions=3).selectExpr(
        "id", "id * 7919 % 20011 AS x", "cast(id * 104729 % 19997 AS string) AS s"
    )


def lookup_files(folder, column):
    (health,) = show(f"parquet:{folder}", columns=[column]).columns
    return health.depth.lookup_files, health.files


@pytest.mark.spark
def test_written_files_keep_the_rows_and_have_narrow_ranges(points, tmp_path):
    out = points.transform(clustered("hilbert(x, s)", files=16))
    assert out.schema == points.schema
    out.write.parquet(str(tmp_path / "after"))
    files = sorted((tmp_path / "after").glob("*.parquet"))
    sizes = [pq.read_metadata(file).num_rows for file in files]
    assert len(files) == 16
    assert max(sizes) < 1.8 * ROWS / 16
    columns = [("id", "ascending")]
    assert pq.read_table(tmp_path / "after").sort_by(columns).equals(collected(points).sort_by(columns))
    for column in ("x", "s"):
        read, of = lookup_files(tmp_path / "after", column)
        assert of == 16
        assert read < 7, f"a look-up of {column} reads about 4 of 16 files, as all did before"


@pytest.mark.spark
def test_a_linear_layout_sorts_the_values_themselves(points):
    found = pieces(points.transform(clustered(Layout("linear", ("s", "x")), files=4)))
    assert len(found) == 4
    values = [value for piece in found for value in piece["s"].to_pylist()]
    assert values == sorted(values)


HOSTILE = {"a.b": "id % 7", "c `d` e": "id", "place": "id % 11", "c0": "id % 5", "Ünï": "id % 3"}


@pytest.mark.spark
def test_hostile_names_and_struct_leaves_are_found(spark):
    rows = spark.range(500).selectExpr(
        *(f"{value} AS `{name.replace('`', '``')}`" for name, value in HOSTILE.items()),
        "named_struct('lat', cast(id % 97 AS double), 'in.ner', named_struct('z', id)) AS geo",
        "id AS twice", "id + 1 AS twice",
    )  # fmt: skip
    layout = Layout("zorder", ("a.b", "c `d` e", "place", "c0", "Ünï", "geo.lat", "geo.in.ner.z"))
    out = rows.transform(clustered(layout, files=5))
    assert out.schema == rows.schema
    assert sorted(map(str, out.collect())) == sorted(map(str, rows.collect()))
    with pytest.raises(ColumnError) as caught:
        rows.transform(clustered("zorder(geo.latt, place, geo, twice)", files=5))
    told = str(caught.value)
    assert "Unknown column 'geo.latt'. Did you mean 'geo.lat'?" in told
    assert "Column 'geo' has type" in told
    assert "Name one of its fields with a dot" in told
    assert "Column 'twice' is ambiguous" in told


TYPED = [
    "id", "cast(id AS tinyint) AS i1", "cast(id AS smallint) AS i2", "cast(id AS int) AS i4",
    "cast(id AS float) / 7 AS f4", "if(id % 5 = 0, double('NaN'), cast(id AS double)) AS f8",
    "cast(id AS decimal(38, 6)) AS decimal", "id % 2 = 0 AS flag", "repeat(cast(id AS string), 200) AS long_text",
    "cast(cast(id AS string) AS binary) AS bytes", "date_add(date'2024-01-31', cast(id AS int)) AS day",
    "timestamp_micros(id * 1000003) AS ts", "timestamp_ntz'2024-01-31 00:00:00' + make_dt_interval(id) AS ntz",
    "make_dt_interval(id) AS lapse", "make_ym_interval(cast(id AS int)) AS months",
    "if(id % 3 = 0, null, array(id, null)) AS list", "map(id, named_struct('a', cast(id AS string))) AS map",
    "named_struct('n', if(id % 4 = 0, null, id), 'm', map('k', id)) AS nested",
    "parse_json(concat('{\"a\":', id, '}')) AS variant", "cast(null AS int) AS nulls",
    "if(id > 9, id, null) AS some_nulls",
]  # fmt: skip
KEYS = [
    *("i1", "i2", "i4", "f4", "f8", "decimal", "flag", "long_text", "bytes", "day", "ts", "ntz", "lapse"),
    *("nested.n", "nulls", "some_nulls"),
]


def typed_rows(spark):
    """Rows of every type that this Spark has and, before 4.1, can pass through Python; the others are refused."""
    made = [text for text in TYPED if "parse_json" not in text or hasattr(functions, "parse_json")]
    rows = spark.range(90, numPartitions=2).selectExpr(*made)
    if not has_column_functions(spark):
        with pytest.raises(ColumnError, match=r"'months' has type interval year to month, which Spark .* can't pass"):
            rows.transform(clustered("zorder(id)", files=4))
        return rows.drop("months")
    return rows


@pytest.mark.spark
def test_every_type_is_kept_and_most_can_be_keys(spark):
    rows = typed_rows(spark)

    def texts(df):  # pyspark has no Python value for an interval of months
        odd = {"months": df["months"].cast("string")} if "months" in df.columns else {}
        return sorted(map(str, df.withColumns(odd).collect()))

    expected = texts(rows)
    assert not rows.schema["id"].nullable
    for start in range(0, len(KEYS), 8):
        out = rows.transform(clustered(Layout("zorder", tuple(KEYS[start : start + 8])), files=4))
        assert out.schema == rows.schema
        assert texts(out) == expected
    unordered = [name for name in ("list", "map", "variant", "months") if name in rows.columns]
    with pytest.raises(ColumnError, match=".*".join(f"'{name}' has type" for name in unordered)):
        rows.transform(clustered(Layout("zorder", tuple(unordered)), files=4))


@pytest.mark.spark
def test_a_key_heavier_than_a_file_is_spread(spark):
    rows = spark.range(4000, numPartitions=2).selectExpr("id", "if(id % 10 = 0, id, null) AS x", "map(1, id) AS m")
    sizes = [len(piece) for piece in pieces(rows.transform(clustered("zorder(x)", files=8)))]
    assert sum(sizes) == 4000
    assert 7 <= len(sizes) <= 9
    assert max(sizes) < 2 * 4000 / 8
    again = [len(piece) for piece in pieces(rows.transform(clustered("zorder(x)", files=8)))]
    assert again == sizes, "the same rows go the same way every time"


@pytest.mark.spark
@pytest.mark.parametrize(("rows", "files"), [(0, 4), (3, 50), (50, 1)])
def test_small_tables_keep_their_rows(spark, rows, files):
    given = spark.range(rows).selectExpr("id", "cast(id AS string) AS s")
    out = given.transform(clustered("hilbert(id, s)", files=files))
    assert sorted(out.collect()) == sorted(given.collect())
    assert 1 <= len(pieces(out)) <= files if rows else not pieces(out)


def test_mistakes_are_named_before_any_work():
    with pytest.raises(LayoutError, match=r"Say which columns to cluster by: clustered\('hilbert\(column"):
        clustered("hilbert", files=3)
    for files in (0, -1, 2.5, True):
        with pytest.raises(ZonalError, match=r"files=.* is not a number of files"):
            clustered("hilbert(x)", files=files)


def test_rows_are_placed_by_the_cuts_of_a_tree():
    """What the driver plans and workers do, without Spark: columns have numbers for names."""
    rng = np.random.default_rng(0)
    sample = pa.table({"k0": rng.integers(0, 1000, 4000), "k1": rng.random(4000)})
    tree = Tree(
        ("x", "y"), ("int", "float"), ((300,), (0.5,)), np.array([0, -1, 1, -1, -1]), np.array([0, -1, 0, -1, -1])
    )
    plan = _plan(sample, tree.layout(), 8)
    (placed,) = plan.places([tuple(column.combine_chunks() for column in sample.columns)])
    address = placed.field("address").to_numpy()
    paths = tree.paths(sample.rename_columns(["x", "y"]))
    assert plan.words == 2
    assert 6 <= plan.cuts.pieces <= 10
    assert len(np.unique(address)) == plan.cuts.pieces
    assert all(len(np.unique(paths[address == piece])) == 1 for piece in np.unique(address))


@pytest.mark.spark
def test_a_stream_is_refused(spark):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ZonalError, match="streaming DataFrame has no whole to cluster: use foreachBatch"):
        stream.transform(clustered("zorder(value)", files=3))


BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "zonal":
            raise ImportError("zonal is not installed here")
sys.meta_path.insert(0, Block())
"""

# A session is classic or Connect for a whole process, so that Connect has one of its own. Its workers can't import
# zonal: all that they run came with the job.
CONNECT = """
import os, sys
os.environ["SPARK_TESTING"] = "yes"  # an own port
from zonal.spark.java import use_java
from zonal.spark.progress import watch
from zonal.spark.session import is_connect, is_on_this_machine, settings, spark_session
use_java()
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
from zonal.spark.frame import _plan, clustered
assert is_connect(spark) and not is_on_this_machine(spark)
with spark_session() as found:
    assert found is spark
def without_zonal(batches):
    try:
        import zonal
    except ImportError:
        yield from batches
assert spark.range(7).mapInArrow(without_zonal, "id long").count() == 7, "workers have zonal"
with settings(spark, {"spark.sql.shuffle.partitions": "3", "no.such": "1", "spark.sql.warehouse.dir": "/x"}):
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
assert spark.conf.get("spark.sql.shuffle.partitions") != "3"
rows = spark.range(6000, numPartitions=2).selectExpr("id", "id * 7919 % 6007 AS `x.y`", "map(id, 'a') AS m")
reports = []
with watch(spark, reports.append):
    out = rows.transform(clustered("hilbert(x.y, id)", files=4))
assert out.schema == rows.schema
out.write.parquet(sys.argv[1])
assert all(0 < stage.done <= stage.tasks for stage in reports)
spark.stop()
"""


@pytest.mark.spark
def test_on_connect_workers_need_no_zonal(tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    if not hasattr(functions, "parse_json"):
        pytest.skip("Spark 3.5 brings no Connect server of its own")
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(BLOCK)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{blocked}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o700)
    run = subprocess.run(
        [sys.executable, "-c", CONNECT, str(tmp_path / "out")], check=False, capture_output=True, text=True,
        timeout=300, cwd=tmp_path, env={**os.environ, "PYSPARK_PYTHON": str(python)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(files) == 4
    ids = sorted(value for file in files for value in pq.read_table(file, columns=["id"])["id"].to_pylist())
    assert ids == list(range(6000))
    widths = [np.ptp(pq.read_table(file, columns=["x.y"])["x.y"].to_numpy()) for file in files]
    assert np.mean(widths) < 0.7 * 6007


def test_dates_of_the_key_are_dates():
    """A sample of any type goes through the reservoir unchanged."""
    days = pa.record_batch({"k0": pa.array([dt.date(2024, 1, 1), None], pa.date32())})
    part = reservoir([days], 10, 0)
    assert part.sample.schema == days.schema
    assert part.sample["k0"].null_count == 1
