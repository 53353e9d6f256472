"""What is refused before anything is written."""

import pyarrow as pa
import pytest

from support.cluster_tables import (
    FORMATS,
    NEWEST,
    Delta,
    Iceberg,
    Meanwhile,
    Parquet,
    assert_same_rows,
    home,
    never,
    opened_with,
    parts_of,
    telemetry,
)
from zonal.errors import ColumnError, LayoutError, TableError, ZonalError


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"by": "xs"}, ColumnError, "Unknown column 'xs'. Did you mean 'x'?"),
        ({"by": ["x", "p"]}, ColumnError, "'p' partitions"),
        ({"by": "list"}, ColumnError, "'list'"),
        ({"by": ["x", "x"]}, LayoutError, "named twice"),
        ({"layout": "zorder"}, LayoutError, "Say which columns to cluster by"),
        ({"layout": "spiral(x)"}, LayoutError, "Unknown layout 'spiral'"),
        ({"layout": "zorder(x)", "by": "y"}, LayoutError, "names its columns already"),
        ({}, LayoutError, "records no layout: say which columns"),
        ({"by": "x", "target_file_size": "big"}, ZonalError, "'big' is not a size"),
        ({"by": "x", "target_file_size": 0}, ZonalError, "target_file_size=0 is not a positive number"),
        ({"by": "x", "max_bytes": -1}, ZonalError, "scope=Scope(max_bytes=-1) is not a positive number"),
        ({"by": "x", "commit_every": "0MB"}, ZonalError, "'0MB' is not a whole number of bytes"),
        ({"by": "x", "where": "nothing = 1"}, ZonalError, "'nothing'"),
        ({"by": "x", "where": "x ="}, ZonalError, ""),
        ({"layout": "zorder(x, bloom=[z])"}, ColumnError, "Unknown column 'z'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_requests_are_refused_before_anything_is_written(asked, error, told, wrong_tables):
    for table in wrong_tables:
        listing = table.listing()
        with pytest.raises(error) as caught:
            table.cluster(runner=never, **asked)
        assert told in str(caught.value)
        with pytest.raises(error):
            table.plan(**asked)
        assert table.listing() == listing


@pytest.fixture(scope="module")
def wrong_tables(tmp_path_factory):
    rows = telemetry(30).append_column("list", pa.array([[1]] * 30))
    return [home(kind, tmp_path_factory.mktemp("wrong")).make([rows], ["p"]) for kind in NEWEST]


def test_what_exists_is_never_overwritten_by_a_copy(tmp_path):
    before = telemetry(30)
    source = Delta(tmp_path, "source").make([before])
    for target in FORMATS:
        taken = home(target, tmp_path, f"taken{target}").make([before])
        listing = taken.listing()
        with pytest.raises(TableError, match=r"exists|isn't empty"):
            type(source).cluster(opened_with(source, taken.options), by="x", into=taken.name, runner=never)
        assert taken.listing() == listing
    for name, told in (("elsewhere", "Say which format"), ("iceberg:t", "name it as namespace.table")):
        with pytest.raises(TableError, match=told):
            source.cluster(by="x", into=name, runner=never)
    for option in ({"where": "x = 1"}, {"full": True}, {"max_bytes": 1}, {"commit_every": 1}):
        with pytest.raises(ZonalError, match="into copies the whole table at once: leave out"):
            source.cluster(by="x", into=f"delta:{tmp_path}/new", runner=never, **option)
    assert not (tmp_path / "new").exists()


def test_plain_parquet_and_old_versions_are_not_rewritten_in_place(tmp_path):
    from zonal.verbs.cluster import cluster

    before = telemetry(40)
    plain = Parquet(tmp_path, "plain").make([before])
    with pytest.raises(TableError, match=r"can't be rewritten.*into"):
        plain.cluster(by="x", runner=never)
    delta = Delta(tmp_path, "delta").make(parts_of(before, 2))
    with pytest.raises(TableError, match=r"Version 0 of .* never changes"):
        cluster(f"{delta.name}@0", by="x", spark=never)
    iceberg = Iceberg(tmp_path).make(parts_of(before, 2))
    with pytest.raises(TableError, match="a tag or a snapshot, which never change"):
        cluster(f"{iceberg.name}@{iceberg.version()}", by="x", spark=never, **iceberg.options)
    assert_same_rows(delta.rows(), before)
    copy = Delta(tmp_path, "copy")
    cluster(f"{delta.name}@0", by="x", into=copy.name, spark=Meanwhile())
    assert_same_rows(copy.rows(), before.slice(0, 20))


def test_features_that_a_rewrite_cant_keep_are_named(tmp_path):
    from support.delta_tables import LogWriter, add, field, metadata, protocol

    log = LogWriter(tmp_path / "t")
    log.commit(protocol(1, 7, writer_features=["icebergCompatV2"]), metadata(field("x", "long")), add("a.parquet"))
    with pytest.raises(TableError, match=r"can't be rewritten: .*icebergCompatV2"):
        Delta(tmp_path).cluster(by="x", runner=never)
