"""New files have the requested codec, else the table's own."""

import json

import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, write_deltalake

from support.cluster_tables import assert_same_rows, home, parts_of, telemetry
from zonal.errors import TableError, ZonalError
from zonal.parquet.codecs import CODECS

ROWS = telemetry(400)
NAMES = {"none": "UNCOMPRESSED"}
PROPERTY = "delta.parquet.compression.codec"


def codecs(paths):
    """The codecs of all columns in all row groups of some files."""
    groups = [footer.row_group(i) for footer in map(pq.read_metadata, paths) for i in range(footer.num_row_groups)]
    return {group.column(i).compression for group in groups for i in range(group.num_columns)}


def of(table):
    return codecs(file.path for file in table.files())


def delta(folder, *parts):
    """A Delta table with one file of each codec in order."""
    table = home("delta", folder)
    for codec, rows in parts:
        how = WriterProperties(compression=codec.upper())
        write_deltalake(table.root, rows, mode="append", writer_properties=how)
    return table


def with_property(table, value):
    """Set the codec in the log: delta-rs can't set it."""
    first = table.root / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"][PROPERTY] = value
    first.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return table


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "uncompressed"])
def test_a_delta_table_keeps_the_codec_of_its_files(codec, tmp_path):
    table = delta(tmp_path, *((codec, part) for part in parts_of(ROWS, 2)))
    before = of(table)
    assert before == {codec.upper()}
    table.cluster(by="x")
    assert of(table) == before
    assert_same_rows(table.rows(), ROWS)


def test_among_several_codecs_that_of_most_bytes_is_kept(tmp_path):
    table = delta(tmp_path, ("snappy", ROWS.slice(0, 40)), ("gzip", ROWS.slice(40)), ("snappy", ROWS.slice(0, 40)))
    table.cluster(by="x")
    assert of(table) == {"GZIP"}


def test_a_delta_tables_property_is_kept_whatever_its_files_have(tmp_path):
    table = with_property(delta(tmp_path, ("snappy", ROWS)), "GZIP")
    table.cluster(by="x")
    assert codecs(table.root.glob("zonal-*/*.parquet")) == {"GZIP"}


def test_what_is_planned_weighs_rows_in_the_codec_of_the_files(tmp_path):
    plain, small = (delta(tmp_path / codec, (codec, telemetry(4000))) for codec in ("uncompressed", "zstd"))
    assert plain.plan(by="x").change.new_bytes > small.plan(by="x").change.new_bytes
    assert plain.plan(by="x", compression="zstd").change.new_bytes == small.plan(by="x").change.new_bytes


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
@pytest.mark.parametrize("codec", CODECS)
def test_another_codec_can_be_asked_for_in_place(kind, codec, tmp_path):
    table = home(kind, tmp_path).make([ROWS])
    table.cluster(by="x", compression=codec.upper())
    assert of(table) == {NAMES.get(codec, codec.upper())}
    assert_same_rows(table.rows(), ROWS)


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize(("asked", "codec"), [(None, "ZSTD"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED")])
def test_copies_have_the_codec_that_was_asked_for(kind, asked, codec, tmp_path):
    source = home("iceberg v2", tmp_path).make([ROWS])
    into = "iceberg:db.copy" if kind == "iceberg" else f"{kind}:{tmp_path}/copy"
    before = {*tmp_path.rglob("*.parquet")}
    source.cluster(by="x", into=into, compression=asked)
    assert codecs({*tmp_path.rglob("*.parquet")} - before) == {codec}


def test_a_property_that_cannot_be_written_gives_way_to_what_was_asked_for(tmp_path):
    table = with_property(delta(tmp_path, ("snappy", ROWS)), "lzo")
    with pytest.raises(TableError, match=f"{PROPERTY} is 'lzo'"):
        table.cluster(by="x")
    table.cluster(by="x", compression="zstd")
    assert codecs(table.root.glob("zonal-*/*.parquet")) == {"ZSTD"}


@pytest.mark.parametrize(
    ("asked", "told"), [("zsdt", "Did you mean 'zstd'"), ("lzo", "Did you mean 'lz4'"), ("", "There are: ")]
)
def test_an_unknown_codec_is_refused_before_any_work(asked, told, tmp_path):
    nowhere = home("delta", tmp_path)
    for run in (nowhere.cluster, nowhere.plan):
        with pytest.raises(ZonalError, match=f"no compression '{asked}'. .*{told}"):
            run(by="x", compression=asked)
