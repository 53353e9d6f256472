"""A clustered table keeps its rows, and each key reads fewer files: in place, small tables, and any table."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cluster_tables import (
    FORMATS,
    IN_A_BUCKET,
    IN_PLACE,
    NEWEST,
    Delta,
    assert_same_rows,
    home,
    never,
    opened_with,
    partitions_hold,
    parts_of,
    row_counts,
    telemetry,
)
from zonal.errors import TableError
from zonal.layouts.layout import CURVES

# --- in place --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitioning", [(), ("p",)], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("kind", [*IN_PLACE, IN_A_BUCKET])
def test_a_table_keeps_its_rows_and_each_key_reads_fewer_files(kind, partitioning, tmp_path):
    before = telemetry(4000)
    table = home(kind, tmp_path).make(parts_of(before, 4), partitioning)
    old = table.files()
    done = table.cluster(by=["x", "y"], target_file_size=4000)
    new = table.files()
    assert_same_rows(table.rows(), before)
    assert (done.change.rows, done.run.conflicts, done.run.versions) == (4000, 0, (table.version(),))
    assert (done.lookups.files_before, done.change.removed_files) == (len(old), len(old))
    assert (done.lookups.files_after, done.change.added_files) == (len(new), len(new))
    assert (done.change.removed_bytes, done.change.added_bytes) == (sum(f.size for f in old), sum(f.size for f in new))
    assert {file.path for file in old}.isdisjoint(file.path for file in new)
    assert sum(file.rows for file in new) == 4000
    assert [depth.column for depth in done.lookups.depths] == ["x", "y"]
    for depth in done.lookups.depths:
        assert depth.before > 0.9 * len(old), "appends in no order overlap everywhere"
        assert depth.after < 0.7 * len(new)
    if partitioning:
        partitions_hold(table, before)
    assert not table.strays()


@pytest.mark.parametrize("kind", [*IN_PLACE, IN_A_BUCKET])
def test_right_after_a_run_there_is_nothing_to_do(kind, tmp_path):
    table = home(kind, tmp_path).make(parts_of(telemetry(600), 3), ["p"])
    table.cluster(by=["x", "y"], target_file_size=4000)
    version, listing = table.version(), table.listing()
    for again in ({"by": ["x", "y"], "target_file_size": 4000}, {}):
        done = table.cluster(runner=never, **again)
        assert (done.run.versions, done.change.removed_files, done.change.added_files, done.change.rows) == (
            (),
            0,
            0,
            0,
        )
        assert done.layout == "zorder(x, y, file_size=4KB)"
    assert (table.version(), table.listing()) == (version, listing)


@pytest.mark.parametrize("kind", [*NEWEST, IN_A_BUCKET])
def test_the_recorded_layout_takes_what_was_appended_since(kind, tmp_path):
    before, more = telemetry(900), telemetry(300, 1, first=900)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    table.cluster(layout="hilbert(x, s, file_size=5KB)")
    clustered = {file.path for file in table.files()}
    table.append(more)
    done = table.cluster()
    assert done.layout == "hilbert(x, s, file_size=5KB)"
    assert (done.change.removed_files, done.change.rows) == (1, 300)
    assert clustered <= {file.path for file in table.files()}, "files in the layout stay"
    assert_same_rows(table.rows(), pa.concat_tables([before, more]))


@pytest.mark.parametrize("kind", NEWEST)
def test_another_layout_rewrites_all_files_and_so_does_full(kind, tmp_path):
    before = telemetry(600)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    first = table.cluster(by="x", target_file_size=5000)
    second = table.cluster(by="y", target_file_size=5000)
    assert second.change.removed_files == first.change.added_files
    third = table.cluster(full=True)
    assert (third.change.removed_files, third.layout) == (second.change.added_files, "zorder(y, file_size=5KB)")
    assert_same_rows(table.rows(), before)


@pytest.mark.parametrize("kind", NEWEST)
@pytest.mark.parametrize("layout", [*(f"{kind}(x, y)" for kind in CURVES), "zorder(x, y, s, id, bits=20, salt=3)"])
def test_every_layout_keeps_the_rows(kind, layout, tmp_path):
    before = telemetry(700)
    table = home(kind, tmp_path).make(parts_of(before, 2), ["p"])
    done = table.cluster(layout=layout, target_file_size=4000)
    assert_same_rows(table.rows(), before)
    assert done.lookups.depths[0].after < done.lookups.depths[0].before


# --- small tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
def test_an_empty_table_stays_empty_and_can_be_copied(kind, tmp_path):
    table = home(kind, tmp_path).make([telemetry(0)])
    done = table.cluster(by="x", runner=never)
    assert (done.run.versions, done.change.rows, done.lookups.depths) == ((), 0, ())
    for target in FORMATS:
        copy = home(target, tmp_path, f"copy{target}")
        if target == "parquet":
            with pytest.raises(TableError, match=r"no rows to copy .* Write a table instead"):
                type(table).cluster(opened_with(table, table.options), by="x", into=copy.name)
            assert not copy.root.exists()
            continue
        done = type(table).cluster(opened_with(table, table.options | copy.options), by="x", into=copy.name)
        assert done.change.rows == done.change.added_files == 0
        assert copy.rows().num_rows == 0
        assert copy.rows().schema.names == telemetry(0).schema.names


@pytest.mark.parametrize("kind", [*IN_PLACE, IN_A_BUCKET])
def test_a_table_of_one_row_keeps_it(kind, tmp_path):
    before = telemetry(1)
    table = home(kind, tmp_path).make([before], ["p"])
    done = table.cluster(by=["x", "y"], target_file_size="1KB")
    assert (done.change.rows, done.change.added_files) == (1, 1)
    assert_same_rows(table.rows(), before)


def test_files_whose_rows_are_all_deleted_go(tmp_path):
    from support.delta_rewrites import LogWriter, data_file, stored_vector
    from support.delta_tables import features, field, metadata
    from zonal.tables.delta.table import DeltaTable as Ours

    log = LogWriter(tmp_path / "t")
    one, two = (data_file(log, f"{n}.parquet", pa.table({"x": [n, n + 1, n + 2]})) for n in (0, 10))
    one["add"]["deletionVector"] = stored_vector(log, [0, 1, 2])
    log.commit(features("deletionVectors"), metadata(field("x", "long")), one, two)
    table = Delta(tmp_path)
    assert table.cluster(by="x").change.rows == 3
    two["add"]["deletionVector"] = stored_vector(log, [0, 1, 2])
    snapshot = Ours(str(log)).snapshot()
    assert [path.rpartition("/")[2] for path in snapshot.files.paths.to_pylist()] != ["0.parquet", "10.parquet"]
    assert len(snapshot.files) == 1


def test_a_table_whose_rows_are_all_deleted_becomes_empty(tmp_path):
    from support.delta_rewrites import LogWriter, data_file, rows_of, stored_vector
    from support.delta_tables import features, field, metadata

    log = LogWriter(tmp_path / "t")
    add = data_file(log, "0.parquet", pa.table({"x": [1, 2]}))
    add["add"]["deletionVector"] = stored_vector(log, [0, 1])
    log.commit(features("deletionVectors"), metadata(field("x", "long")), add)
    done = Delta(tmp_path).cluster(by="x")
    assert (done.change.removed_files, done.change.added_files, done.change.rows, done.lookups.files_after) == (
        1,
        0,
        0,
        0,
    )
    assert rows_of(log) == []


# --- any table -------------------------------------------------------------------------------------------------------


KEYS = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.one_of(st.none(), st.floats(), st.sampled_from([math.nan, -0.0, 0.0]))
ROW = st.tuples(KEYS, FLOATS, st.sampled_from(["a", "b", "ä/ =%", None]), st.one_of(st.none(), st.text(max_size=5)))
TABLE_SCHEMA = pa.schema({"x": pa.int64(), "y": pa.float64(), "p": pa.string(), "s": pa.string()})


@settings(max_examples=8)
@pytest.mark.parametrize("kind", NEWEST)
@given(
    appends=st.lists(st.lists(ROW, min_size=1, max_size=30), min_size=1, max_size=3),
    layout=st.sampled_from(["zorder(x, y)", "hilbert(y, s)", "linear(s, x)", "zorder(y)"]),
    partitioning=st.sampled_from([(), ("p",)]),
    size=st.sampled_from([300, 1500, 100_000]),
    deleted=st.sampled_from([None, "x > 0", "s is null"]),
    commit_every=st.sampled_from([None, 1, 3000]),
)
def test_any_table_keeps_its_rows(kind, appends, layout, partitioning, size, deleted, commit_every, tmp_path_factory):
    parts = [
        pa.table(dict(zip("xyps", map(list, zip(*rows, strict=True)), strict=True)), TABLE_SCHEMA) for rows in appends
    ]
    table = home(kind, tmp_path_factory.mktemp("any")).make(parts, partitioning)
    if deleted is not None:
        table.table.delete(deleted)
    before = row_counts(table.rows())
    table.cluster(layout=layout, target_file_size=size, commit_every=commit_every)
    assert row_counts(table.rows()) == before
    assert not table.strays()
    assert table.cluster(layout=layout, target_file_size=size, runner=never).run.versions == ()
