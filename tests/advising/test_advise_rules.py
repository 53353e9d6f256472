"""Each rule of `advising.rules` fires for a table made for it, and for no healthy table."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster_options import grouped
from support.cluster_tables import home, parts_of
from zonal.verbs.advise import advise
from zonal.workload.query import Workload

ROWS = 20_000
SMALL = 10_000


def columns(rows=ROWS, seed=0):
    """Five uniform columns, a unique number, three states, a skewed tenant, and a day."""
    draw = np.random.default_rng(seed)
    tenant = draw.integers(0, 500, rows)
    tenant[draw.random(rows) < 0.3] = 7
    return pa.table(
        {name: pa.array(draw.integers(0, 100_000, rows)) for name in "abcde"}
        | {
            "number": pa.array(draw.permutation(rows)),
            "state": pa.array(draw.choice(["new", "open", "done"], rows).tolist()),
            "tenant": pa.array(tenant),
            "day": pa.array(np.sort(draw.integers(0, 5, rows))),
        }
    )


def ranges(names, count=12, seed=1):
    """Queries for a range of each of the columns in turn."""
    draw = np.random.default_rng(seed)
    starts = draw.integers(0, 90_000, count).tolist()
    return [f"{names[at % len(names)]} BETWEEN {start} AND {start + 5000}" for at, start in enumerate(starts)]


def found(folder, texts, *, data=None, kind="delta", partition_by=(), properties=None, size=SMALL, **asked):
    """Make a table, and return its cautions by code."""
    whole = columns() if data is None else data
    table = home(kind, folder).make(parts_of(whole, 4), partition_by=partition_by, properties=properties)
    advice = advise(table.name, queries=Workload.of(texts), target_file_size=size, **table.options, **grouped(**asked))
    codes: dict = {}
    for warning in advice.warnings:
        codes.setdefault(warning.code, []).append(warning)
    return codes


def test_two_columns_of_ranges_are_as_they_should_be(tmp_path):
    assert not found(tmp_path, ranges("ab", 16))


def test_a_column_of_few_values_is_told(tmp_path):
    (caution,) = found(tmp_path, [*ranges("a", 8), "state = 'new'", "state = 'open'"])["low-cardinality"]
    assert caution.column == "state"
    assert "only 3 different values" in caution.text


def test_a_column_with_another_value_in_every_row_is_told_where_single_ones_are_asked_for(tmp_path):
    asked = [*ranges("a", 8), *(f"number = {at}" for at in range(8))]
    (caution,) = found(tmp_path / "one", asked)["unique"]
    assert caution.column == "number"
    assert "Bloom filter" in caution.text
    between = [*ranges("a", 8), *(f"number BETWEEN {at} AND {at + 99}" for at in range(8))]
    assert "unique" not in found(tmp_path / "other", between)


@pytest.mark.parametrize("hide", [False, True])
def test_a_value_with_many_of_the_rows_is_told(tmp_path, hide):
    asked = [*ranges("a", 8), *(f"tenant = {at}" for at in range(100, 108))]
    (caution,) = found(tmp_path, asked, hide_literals=hide)["skew"]
    assert caution.column == "tenant"
    assert "29% of the rows" in caution.text
    assert ("'7'" in caution.text) != hide


def test_too_many_columns_are_told(tmp_path):
    (caution,) = found(tmp_path / "five", ranges("abcde", 20))["many-columns"]
    assert "5 columns" in caution.text
    assert "many-columns" not in found(tmp_path / "four", ranges("abcd", 20))


def test_one_column_that_decides_is_told(tmp_path):
    (caution,) = found(tmp_path, [*ranges("a", 18), *ranges("b", 2, seed=2)])["dominant-column"]
    assert caution.column == "a"
    assert "linear(a)" in caution.text


def test_full_scans_are_told(tmp_path):
    scans = ["strange(a) = 1", "strange(b) = 2", "a = 1 OR strange(b) = 2", "b IS NOT NULL"]
    codes = found(tmp_path / "most", [*scans, *ranges("a", 4)])
    assert "50% of the queries' weight" in codes["full-scans"][0].text
    assert "opaque-filters" in codes
    assert "full-scans" not in found(tmp_path / "some", [*scans[:2], *ranges("a", 8)])


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_floats_without_an_upper_limit_are_told_where_files_dont_count_nan(tmp_path, kind):
    data = columns().append_column("price", pa.array(np.random.default_rng(0).normal(size=ROWS)))
    texts = [*ranges("a", 8), *(f"price > {at}" for at in (1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.1, 2.2))]
    codes = found(tmp_path, texts, data=data, kind=kind)
    assert ("nan" in codes) == (kind == "delta")
    if kind == "delta":
        assert codes["nan"][0].column == "price"
        assert "50% of the queries' weight" in codes["nan"][0].text


@pytest.mark.parametrize(
    ("kind", "properties", "advice"),
    [
        ("delta", {"delta.dataSkippingNumIndexedCols": "1"}, "'delta.dataSkippingStatsColumns' = '…,b'"),
        ("delta", {"delta.dataSkippingStatsColumns": "a,c"}, "'delta.dataSkippingStatsColumns' = 'a,c,b'"),
        ("iceberg", {"write.metadata.metrics.column.b": "none"}, "'write.metadata.metrics.column.b' = 'full'"),
    ],
)
def test_a_column_without_bounds_is_told_with_the_property_to_set(tmp_path, kind, properties, advice):
    (caution,) = found(tmp_path, ranges("ab"), kind=kind, properties=properties)["no-statistics"]
    assert caution.column == "b"
    assert advice in caution.text


def test_text_without_bounds_is_told_with_the_property_to_set(tmp_path):
    properties = {"write.metadata.metrics.column.state": "counts"}
    texts = [*ranges("a", 8), "state = 'new'", "state = 'open'"]
    (caution,) = found(tmp_path, texts, kind="iceberg", properties=properties)["no-statistics"]
    assert "'write.metadata.metrics.column.state' = 'truncate(16)'" in caution.text


def test_parquet_without_statistics_is_told(tmp_path):
    table = home("parquet", tmp_path)
    table.root.mkdir(parents=True)
    pq.write_table(columns(), table.root / "0.parquet", write_statistics=["a"])
    advice = advise(table.name, queries=Workload.of(ranges("ab")), target_file_size=SMALL)
    assert [warning.column for warning in advice.warnings if warning.code == "no-statistics"] == ["b"]


def test_a_column_that_follows_the_partitions_is_told(tmp_path):
    data = columns()
    rng = np.random.default_rng(0)
    follows = data.append_column("time", pa.array(data["day"].to_numpy() * 1000 + rng.integers(0, 900, ROWS)))
    texts = [*ranges("a", 8), *(f"time BETWEEN {at} AND {at + 99}" for at in range(0, 4000, 500))]
    (caution,) = found(tmp_path, texts, data=follows, partition_by=["day"])["partition-correlated"]
    assert caution.column == "time"
    assert "by day" in caution.text


def test_a_small_table_is_told(tmp_path):
    (caution,) = found(tmp_path, ranges("ab", 16), size="128MiB")["small-table"]
    assert "1 file of 134.2 MB" in caution.text


def test_many_small_files_are_told_and_compaction_is_a_candidate(tmp_path):
    table = home("delta", tmp_path).make(parts_of(columns(), 60))
    size = sum(file.size for file in table.files()) // 4
    advice = advise(table.name, queries=Workload.of(ranges("ab", 16)), target_file_size=size)
    assert "60 files" in next(warning.text for warning in advice.warnings if warning.code == "small-files")
    sizes = next(candidate for candidate in advice.candidates if candidate.kind == "sizes")
    assert 3 <= sizes.files <= 6
    assert sizes.layout is None
    assert sizes.reads.bytes >= advice.now.bytes - 1e-9, "larger files skip no more than their parts"


def test_few_queries_and_columns_that_are_gone_are_told(tmp_path):
    codes = found(tmp_path, [*ranges("ab", 4), "gone = 5"])
    assert "too few different queries (4)" in codes["few-queries"][0].text
    assert "'gone'" in codes["unknown-columns"][0].text


def test_statements_that_cant_be_read_are_told(tmp_path):
    table = home("delta", tmp_path / "lake").make([columns()])
    log = tmp_path / "log.sql"
    log.write_text("".join(f"SELECT * FROM t WHERE {text};\n" for text in ranges("ab")) + "SELEKT FROM FROM;\n" * 3)
    advice = advise(table.name, queries=[log], target_file_size=SMALL)
    assert "3 of 15 statements" in next(each.text for each in advice.warnings if each.code == "unparsable")


def test_a_sample_that_is_too_small_for_the_files_is_told(tmp_path):
    codes = found(tmp_path / "small", ranges("ab", 16), size=5000, sample_rows=500)
    assert "sample of 500 rows is too small" in codes["extrapolated"][0].text
