"""Folders named after partition values: every text comes back, and readers that look at names get the right values."""

import datetime as dt
import json
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import QueryBuilder, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import zonal
from support.cluster_tables import Delta, assert_same_rows, home, parts_of
from support.local_runner import run_here
from zonal.errors import TableError
from zonal.plan.rewrite import Written
from zonal.storage import Storage
from zonal.tables.delta.actions import add_action
from zonal.tables.hive_folders import HIVE_NULL, hive_folders

ODD = [
    "a b", "x/y", "p%q", "é=+", "#h", "2026-01-01", "a:b", "😀\U0010ffff", "50%25", "a?b&c", "{z}[1]^", "q'\"*\\", ".",
    "..", "tab\there", "~-._!", " lead", "trail ", "_x", "x" * 250, None, "",
]  # fmt: skip


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.none() | st.text(max_size=90), min_size=1, max_size=3))
def test_every_value_comes_back_from_its_folder(values):
    folders = hive_folders(values)
    if folders is None:
        assert any(len(f"{key}={value}".encode()) > 85 for key, value in values.items()), "only long names are refused"
        return
    pairs = [name.split("=") for name in folders.split("/")]
    assert all(len(name.encode()) <= 255 for name in folders.split("/"))
    found = {unquote(key): None if value == HIVE_NULL else unquote(value) for key, value in pairs}
    assert found == {key: value or None for key, value in values.items()}


def test_names_are_escaped_as_spark_does():
    special = "".join(map(chr, range(1, 32))) + "\"#%'*/:=?\\\x7f{[]^"
    assert hive_folders({"k": special}) == "k=" + "".join(f"%{ord(char):02X}" for char in special)
    assert hive_folders({"a b": "~!@$&()_+-;<>,.|`} é😀"}) == "a b=~!@$&()_+-;<>,.|`} é😀"
    assert hive_folders({"k": ""}) == hive_folders({"k": None}, empty="") == f"k={HIVE_NULL}"
    assert hive_folders({"k": ""}, empty="") == "k="
    assert hive_folders({"k": HIVE_NULL}) == f"k=%5F{HIVE_NULL[1:]}", "a text that isn't null"
    assert hive_folders({"k": "é" * 126}) == "k=" + "é" * 126
    assert hive_folders({"k": "é" * 127}) is None


@given(st.text(max_size=60))
def test_a_path_in_the_log_resolves_to_the_file(value):
    folders = hive_folders({"k": value}) or ""
    storage = Storage("/tmp/some table%20", {})  # noqa: S108 - nothing is there
    path = f"{storage.root}/zonal-1-2/{folders}/x.parquet"
    action = add_action(
        Written(path, 1, 1, 0, ()), root=storage.root, values={}, stats="", tags={}, time=0, data_change=False
    )
    assert storage.resolve(json.loads(json.dumps(action))["path"]) == path


def by_partition(table, column="p"):
    """How many rows each value has, as Polars and as delta-rs say."""
    scanned = pl.scan_delta(str(table.root))
    counted = (
        QueryBuilder().register("t", table.table).execute(f"SELECT {column}, count(*) AS n FROM t GROUP BY {column}")
    )
    polars = dict(scanned.group_by(column).len().collect().rows())
    asked = {
        value: scanned.filter(pl.col(column).eq_missing(pl.lit(value))).select(pl.len()).collect().item()
        for value in polars
    }
    return polars, asked, {row[column]: row["n"] for row in pa.table(counted.read_all()).to_pylist()}


@pytest.mark.parametrize("into", [False, True])
def test_polars_reads_odd_partition_values_as_before(into, tmp_path):
    rows = pa.table({"id": range(len(ODD) * 6), "q": [1, 2] * (len(ODD) * 3), "p": pa.array(ODD * 6, pa.string())})
    table = home("delta", tmp_path).make(parts_of(rows, 2), partition_by=["p", "q"])
    expected = dict.fromkeys(ODD, 6)
    read = table.rows()
    assert by_partition(table) == (expected, expected, expected), "both take an empty text for one, not for null"
    table.cluster(by="id", **({"into": f"delta:{tmp_path}/copy"} if into else {}))
    after = Delta(tmp_path, "copy") if into else table
    if into:  # by the protocol
        expected[None] += expected.pop("")
    assert by_partition(after) == (expected, expected, expected)
    assert_same_rows(after.rows(), read)
    assert not after.strays()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([dt.date(1969, 12, 30), None]),
        pa.array([-5, None], pa.int32()),
        pa.array([True, None]),
        pa.array([1e-7, None]),
        pa.array([dt.datetime(1960, 1, 1, 12, 30, 0, 5), None], pa.timestamp("us")),
        pa.array([dt.datetime(2024, 1, 1, 12, 30, tzinfo=dt.timezone.utc), None], pa.timestamp("us", "UTC")),
    ],
    ids=lambda values: str(values.type),
)
def test_polars_reads_partitions_of_every_type_as_before(values, tmp_path):
    rows = pa.table({"id": range(40), "p": pa.concat_arrays([values] * 20)})
    table = home("delta", tmp_path).make(parts_of(rows, 2), partition_by=["p"])
    before = by_partition(table)
    assert before[0] == dict.fromkeys(values.to_pylist(), 20)
    table.cluster(by="id")
    assert by_partition(table) == before


def with_long_value(tmp_path):
    """A Delta table with a partition value that is too long for a folder's name, which its writer didn't use."""
    table = home("delta", tmp_path).make([pa.table({"id": range(20), "p": ["a", "b"] * 10})], partition_by=["p"])
    (log,) = (table.root / "_delta_log").glob("*.json")
    text = log.read_text()
    assert '"partitionValues":{"p":"a"}' in text
    log.write_text(text.replace('"partitionValues":{"p":"a"}', f'"partitionValues":{{"p":"{"é" * 200}"}}'))
    return table


@pytest.mark.parametrize("into", [False, True])
def test_values_too_long_for_a_name_have_no_folder(into, tmp_path):
    table = with_long_value(tmp_path)
    expected = {"é" * 200: 10, "b": 10}
    table.cluster(by="id", **({"into": f"delta:{tmp_path}/copy"} if into else {}))
    after = Delta(tmp_path, "copy") if into else table
    folders = {file.partition: file.path.relative_to(after.root).parts[1:-1] for file in after.files()}
    assert folders == {("é" * 200,): (), ("b",): ("p=b",)}
    counted = QueryBuilder().register("t", after.table).execute("SELECT p, count(*) AS n FROM t GROUP BY p")
    assert {row["p"]: row["n"] for row in pa.table(counted.read_all()).to_pylist()} == expected
    assert after.cluster(by="id").change.added_files == 0, "a second run has nothing to do"


def test_a_parquet_copy_refuses_values_too_long_for_a_name(tmp_path):
    def never(*_):
        raise AssertionError("it must not run")

    with pytest.raises(TableError, match="of column 'p' makes the name of a folder that has more than 255 bytes"):
        with_long_value(tmp_path).cluster(by="id", into=f"parquet:{tmp_path}/copy", runner=never)
    assert not (tmp_path / "copy").exists()


def test_a_parquet_copy_keeps_odd_values(tmp_path):
    texts = [value for value in ODD if value not in ("2026-01-01", "")]
    rows = pa.table({"id": range(len(texts) * 4), "p": pa.array(texts * 4, pa.string())})
    home("delta", tmp_path).make([rows], partition_by=["p"]).cluster(by="id", into=f"parquet:{tmp_path}/copy")
    copy = home("parquet", tmp_path, "copy")
    assert_same_rows(copy.rows(), rows)
    again = home("delta", tmp_path, "again")
    copy.cluster(by="id", into=again.name)
    assert_same_rows(again.rows(), rows)


@pytest.mark.parametrize("name", ["it's", "a%b", "p:q", "a?b", "a#b", "[x]", "a*b", "a^b", 'a"b', "a b", "x.y", "ü"])
def test_polars_reads_partition_columns_of_odd_names(name, tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"x": [1, 2, 3], name: ["a", "b", "a"]}), partition_by=[name])
    zonal.cluster(tmp_path / "t", by=["x"], spark=run_here)
    assert pl.scan_delta(str(tmp_path / "t")).filter(pl.col(name) == "a").collect().height == 2


def test_a_partition_column_that_makes_hidden_folders_is_refused_for_parquet(tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"x": [1, 2, 3], ".p": ["a", "b", "a"]}), partition_by=[".p"])
    with pytest.raises(TableError, match=r"partition column '\.p' makes folders whose names begin with a dot"):
        zonal.cluster(tmp_path / "t", by=["x"], spark=run_here, into=f"parquet:{tmp_path / 'copy'}")
    assert not (tmp_path / "copy").exists()


def test_columns_of_nothing_but_nulls_are_copied(tmp_path):
    rows = pa.table({"x": [3, 1, 2], "n": pa.nulls(3), "s": pa.array([{"n": None}] * 3, pa.struct({"n": pa.null()}))})
    pq.write_table(rows, tmp_path / "t.parquet")
    zonal.cluster(
        tmp_path / "t.parquet",
        by=["x"],
        spark=run_here,
        into=f"parquet:{tmp_path / 'copy'}",
        files=zonal.NewFiles(verify=True),
    )
    assert pq.read_table(tmp_path / "copy").column("n").null_count == 3
