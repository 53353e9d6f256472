"""Commits of rewrites to Iceberg tables, against writers that are faster: rows are neither lost nor brought back."""

import os
import struct
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFileContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType, TimestampType

from support.iceberg_rewriting import (
    LAYOUT,
    Writer,
    delete_equal,
    delete_positions,
    delete_vectors,
    local,
    opened,
    replacement,
    rows_of,
)
from support.iceberg_tables import catalog_in, properties_in
from zonal.errors import CommitUnknownError, ConflictError, TableError
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import ColumnMetrics, Written
from zonal.tables.iceberg.avro import records
from zonal.tables.iceberg.manifests import read_contents
from zonal.tables.iceberg.metrics import data_file, kept_metrics, truncated_bytes, truncated_text
from zonal.tables.iceberg.table import IcebergTable

SCHEMA = Schema(
    NestedField(1, "x", LongType(), required=False),
    NestedField(2, "y", DoubleType(), required=False),
    NestedField(3, "s", StringType(), required=False),
)


def rows(start: int, count: int = 25) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "x": pa.array(numbers, pa.int64()),
            "y": pa.array([float(n % 7) for n in numbers]),
            "s": pa.array([f"s{n}" for n in numbers], pa.large_string()),
        }
    )


@pytest.fixture
def catalog(tmp_path) -> SqlCatalog:
    return catalog_in(tmp_path)


def made(catalog, *, version: int = 2, files: int = 4, schema=SCHEMA, **options):
    """Make `db.t` of some files with 25 rows each."""
    first = min(version, 2)
    table = catalog.create_table("db.t", schema, properties={"format-version": str(first)}, **options)
    for number in range(files):
        table.append(rows(25 * number))
    if version == 3:
        upgraded(catalog)
    return opened(catalog)


def upgraded(catalog) -> None:
    """Upgrade a table to version 3 and give all rows ids, by a snapshot that changes nothing."""
    writer = Writer(catalog, format_version=3)
    for manifest in list(writer.manifests):
        writer.manifests.remove(manifest)
        writer.manifests.append(manifest)
        writer.add_rows(manifest.added_rows_count)
    writer.publish()


def contents(catalog) -> Counter:
    """Count the rows that the table has, as PyIceberg reads them."""
    table = catalog.load_table("db.t").scan().to_arrow()
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def read(table: IcebergTable) -> list[int]:
    """Return the values of `x`, as the scan says that they are read."""
    snapshot = table.snapshot()
    scan = table.scan(snapshot, np.arange(len(snapshot.files)))
    return sorted(x for source in scan.sources for x in rows_of(source, scan.reading)["x"].to_pylist())


def summary(catalog) -> dict[str, str]:
    return dict(catalog.load_table("db.t").current_snapshot().summary.additional_properties)


def paths(snapshot, files) -> set[str]:
    return {snapshot.files.paths[file].as_py() for file in files}


# --- one commit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_commit_replaces_files_in_one_snapshot_and_keeps_every_row(catalog, version):
    table = made(catalog, version=version)
    before = contents(catalog)
    snapshot = table.snapshot()
    rewrite = replacement(table, snapshot, [0, 1, 3], each=30)
    version_before = len(catalog.load_table("db.t").metadata.snapshots)
    snapshot_id = table.commit(rewrite)
    after = catalog.load_table("db.t")
    assert contents(catalog) == before
    assert after.current_snapshot().snapshot_id == snapshot_id
    assert after.current_snapshot().parent_snapshot_id == snapshot.version
    assert after.current_snapshot().summary.operation.value == "replace"
    assert len(after.metadata.snapshots) == version_before + 1
    assert after.metadata.properties["zonal.layout"] == LAYOUT.to_json()
    found = summary(catalog)
    assert (found["added-data-files"], found["deleted-data-files"]) == ("3", "3")
    assert found.get("total-data-files") == (None if version == 3 else "4")  # the upgrade by hand counts nothing
    assert found["added-records"] == found["deleted-records"] == "75"
    assert found["zonal.run"] == "r1"
    newest = table.newest().snapshot()
    assert Counter(newest.files.layout_ids.to_pylist()) == {LAYOUT.id: 3, None: 1}
    assert paths(newest, range(4)) & paths(snapshot, range(4)) == paths(snapshot, [2])


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_goes_on_after_a_commit_and_totals_stay_right(catalog, version):
    table = made(catalog, version=version)
    table.commit(replacement(table, table.snapshot()))
    other = catalog.load_table("db.t")
    other.append(rows(100))
    other.delete(EqualTo("x", 3))
    total = catalog.load_table("db.t")
    assert total.scan().to_arrow().num_rows == 124
    found = summary(catalog)
    files = list(total.scan().plan_files())
    assert int(found["total-records"]) == 124
    assert int(found["total-data-files"]) == len(files)
    assert int(found["total-files-size"]) == sum(task.file.file_size_in_bytes for task in files)


def test_manifests_that_lost_no_file_are_kept_and_empty_ones_dropped(catalog):
    table = made(catalog)
    before = {m.manifest_path for m in catalog.load_table("db.t").current_snapshot().manifests(table.table.io)}
    table.commit(replacement(table, table.snapshot(), [0]))
    current = catalog.load_table("db.t")
    after = {m.manifest_path for m in current.current_snapshot().manifests(current.io)}
    assert len(before & after) == 3
    table = table.newest()
    table.commit(replacement(table, table.snapshot(), [0], run="r2"))
    current = catalog.load_table("db.t")
    for manifest in current.current_snapshot().manifests(current.io):
        assert (
            manifest.has_added_files()
            or manifest.has_existing_files()
            or manifest.added_snapshot_id == (current.current_snapshot().snapshot_id)
        )
    assert contents(catalog) == Counter(zip(*(c.to_pylist() for c in rows(0, 100).columns), strict=True))


def test_a_commit_without_files_or_into_another_partition_is_refused(catalog):
    table = made(catalog, files=1)
    snapshot = table.snapshot()
    rewrite = replacement(table, snapshot)
    with pytest.raises(TableError, match="replaces no files"):
        table.commit(type(rewrite)(snapshot, rewrite.removed[:0], rewrite.added, LAYOUT, "r"))
    moved = type(rewrite.added[0])(**{**vars(rewrite.added[0]), "partition": 7})
    with pytest.raises(TableError, match="partition of which no file is replaced") as caught:
        table.commit(type(rewrite)(snapshot, rewrite.removed, (moved,), LAYOUT, "r"))
    assert not isinstance(caught.value, (ConflictError, CommitUnknownError))


def test_a_linear_layout_registers_its_sort_order_once(catalog):
    table = made(catalog)
    layout = Layout("linear", ("y", "x"))
    table.commit(replacement(table, table.snapshot(), [0, 1], layout=layout))
    table = table.newest()
    table.commit(replacement(table, table.snapshot(), [1, 2], layout=layout, run="r2"))
    current = catalog.load_table("db.t")
    assert current.metadata.default_sort_order_id == 0
    (order,) = [order for order in current.metadata.sort_orders if order.order_id]
    assert [(f.source_id, str(f.direction), str(f.null_order)) for f in order.fields] == [
        (2, "ASC", "NULLS FIRST"),
        (1, "ASC", "NULLS FIRST"),
    ]
    orders = Counter(task.file.sort_order_id for task in current.scan().plan_files())
    assert set(orders) <= {order.order_id, None}
    assert orders[order.order_id]


def test_a_branch_takes_the_commit_and_keeps_its_settings(catalog):
    table = made(catalog)
    current = catalog.load_table("db.t")
    current.manage_snapshots().create_branch(
        current.current_snapshot().snapshot_id, "audit", max_ref_age_ms=10**12
    ).commit()
    main = catalog.load_table("db.t").current_snapshot().snapshot_id
    branch = opened(catalog, version="audit")
    snapshot_id = branch.commit(replacement(branch, branch.snapshot()))
    current = catalog.load_table("db.t")
    assert current.current_snapshot().snapshot_id == main
    assert current.metadata.refs["audit"].snapshot_id == snapshot_id
    assert current.metadata.refs["audit"].max_ref_age_ms == 10**12
    assert branch.newest().snapshot().version == snapshot_id
    assert table.newest().snapshot().version == main


def test_what_has_no_catalog_or_is_pinned_is_refused(catalog):
    table = made(catalog)
    snapshot = table.snapshot()
    current = catalog.load_table("db.t")
    current.manage_snapshots().create_tag(snapshot.version, "monday").commit()
    static = IcebergTable.from_metadata(current.metadata_location)
    with pytest.raises(TableError, match=r"is a metadata file.*iceberg:namespace.table"):
        static.writing(static.snapshot(), layout=LAYOUT, run="r")
    for version in ("monday", snapshot.version):
        pinned = opened(catalog, version=version)
        with pytest.raises(TableError, match=r"tag or a snapshot.*name a branch"):
            pinned.writing(pinned.snapshot(), layout=LAYOUT, run="r")
        with pytest.raises(TableError, match="tag or a snapshot"):
            pinned.commit(replacement(table, snapshot))


def test_layouts_of_files_are_known_from_their_folder_once_the_snapshot_is_expired(catalog):
    table = made(catalog)
    snapshot_id = table.commit(replacement(table, table.snapshot()))
    catalog.load_table("db.t").append(rows(100))
    catalog.load_table("db.t").maintenance.expire_snapshots().by_id(snapshot_id).commit()
    newest = table.newest().snapshot()
    assert snapshot_id not in newest.commits
    assert sorted(newest.files.layout_ids.to_pylist(), key=str) == [None, LAYOUT.id]


# --- partitions ----------------------------------------------------------------------------------------------------

PARTITIONED = Schema(
    NestedField(1, "x", LongType(), required=False),
    NestedField(2, "y", DoubleType(), required=False),
    NestedField(3, "s", StringType(), required=False),
    NestedField(4, "ts", TimestampType(), required=False),
)


def partitioned_rows(start: int) -> pa.Table:
    numbers = range(start, start + 40)
    names = ["a", None, "", "x/y", "p%q", "é=+"]
    days = [None if n % 5 == 0 else datetime(2026, 1, 1 + n % 2, 3) for n in numbers]
    return pa.table(
        {
            "x": pa.array([None if n % 11 == 0 else n for n in numbers], pa.int64()),
            "y": pa.array([float("nan") if n % 3 == 0 else n / 2 for n in numbers]),
            "s": pa.array([names[n % 6] for n in numbers], pa.large_string()),
            "ts": pa.array(days, pa.timestamp("us")),
        }
    )


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("source", "transform"),
    [(3, IdentityTransform()), (4, DayTransform()), (1, BucketTransform(3)), (3, TruncateTransform(1))],
)
def test_new_files_take_over_partition_and_spec(catalog, tmp_path, version, source, transform):
    spec = PartitionSpec(PartitionField(source, 1000, transform, "part"))
    current = catalog.create_table(
        "db.t", PARTITIONED, partition_spec=spec, properties={"format-version": str(version)}
    )
    writer = Writer(catalog)
    for number in range(3):
        writer.append(partitioned_rows(40 * number), tmp_path)
    writer.publish()
    current = catalog.load_table("db.t")
    before = [task.file.partition for task in current.scan().plan_files()]
    want = sorted(map(str, current.scan().to_arrow().to_pylist()))
    table = opened(catalog)
    table.commit(replacement(table, table.snapshot()))
    current = catalog.load_table("db.t")
    after = [task.file.partition for task in current.scan().plan_files()]
    assert len(after) == len(set(map(str, after))) < len(before)
    assert set(map(str, after)) == set(map(str, before))
    assert sorted(map(str, current.scan().to_arrow().to_pylist())) == want
    if transform == IdentityTransform():
        assert current.scan(row_filter=EqualTo("s", "x/y")).to_arrow()["s"].to_pylist() == ["x/y"] * 20
        assert len(list(current.scan(row_filter=EqualTo("s", "x/y")).plan_files())) == 1
    assert int(summary(catalog)["changed-partition-count"]) == len(after)


def test_files_keep_their_spec_after_the_partitioning_was_changed_and_its_column_dropped(catalog, tmp_path):
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "s"))
    current = catalog.create_table("db.t", PARTITIONED, partition_spec=spec)
    current.append(partitioned_rows(0))
    with current.update_spec() as update:
        update.remove_field("s")
        update.add_field("x", BucketTransform(2), "b")
    for start in (40, 80):
        writer = Writer(catalog)
        writer.append(partitioned_rows(start), tmp_path)
        writer.publish()
    current = catalog.load_table("db.t")
    with current.update_schema() as update:
        update.delete_column("s")
    before = sorted(map(str, current.scan().to_arrow().to_pylist()))
    old = [task.file for task in current.scan().plan_files()]
    table = opened(catalog)
    table.commit(replacement(table, table.snapshot(), range(1, len(old))))
    current = catalog.load_table("db.t")
    new = [task.file for task in current.scan().plan_files()]
    assert sorted(map(str, current.scan().to_arrow().to_pylist())) == before
    assert {file.spec_id for file in new} == {0, 1}
    assert {(f.spec_id, str(f.partition)) for f in new} == {(f.spec_id, str(f.partition)) for f in old}


# --- other writers -------------------------------------------------------------------------------------------------


@pytest.fixture(params=[2, 3])
def version(request) -> int:
    return request.param


def test_a_concurrent_append_survives(catalog):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())
    catalog.load_table("db.t").append(rows(100))
    table.commit(rewrite)
    assert read(table.newest()) == list(range(125))
    assert len(catalog.load_table("db.t").scan().to_arrow()) == 125
    assert summary(catalog)["total-records"] == "125"


def test_a_file_that_was_deleted_overwritten_or_rewritten_meanwhile_is_a_conflict_that_names_it(catalog):
    table = made(catalog)
    snapshot = table.snapshot()
    rewrite = replacement(table, snapshot, [0, 1, 2])
    (hit,) = [file for file in range(4) if 30 in rows_at(snapshot, file)]
    catalog.load_table("db.t").delete(EqualTo("x", 30))
    with pytest.raises(ConflictError, match="were removed from") as caught:
        table.commit(rewrite)
    assert caught.value.paths == paths(snapshot, [hit])
    assert read(table.newest()) == [x for x in range(100) if x != 30]
    second = table.newest()
    later = replacement(second, second.snapshot(), run="r2")
    other = table.newest()
    other.commit(replacement(other, other.snapshot(), [1], run="r3"))
    with pytest.raises(ConflictError) as caught:
        second.commit(later)
    assert len(caught.value.paths) == 1
    assert read(table.newest()) == [x for x in range(100) if x != 30]


def rows_at(snapshot, file: int) -> list[int]:
    return pq.read_table(local(snapshot.files.paths[file].as_py()))["x"].to_pylist()


def deleting(catalog, folder, version, path, *positions) -> None:
    if version == 3:
        delete_vectors(catalog, folder, {path: list(positions)})
    else:
        delete_positions(catalog, folder, {path: list(positions)}, paths=(path, path))


@pytest.mark.parametrize("then_append", [False, True])
@pytest.mark.parametrize("reload", [False, True])
def test_a_delete_in_a_rewritten_file_is_a_conflict(catalog, tmp_path, version, then_append, reload):
    table = made(catalog, version=version)
    snapshot = table.snapshot()
    path = snapshot.files.paths[1].as_py()
    rewrite = replacement(table, snapshot, [0, 1])
    deleting(catalog, tmp_path, version, path, 3)
    more = 25 if then_append and version == 2 else 0
    if more:
        catalog.load_table("db.t").append(rows(100))
    elif then_append:
        Writer(catalog).publish()
    with pytest.raises(ConflictError, match="were deleted from") as caught:
        (table.newest() if reload else table).commit(rewrite)
    assert caught.value.paths == {path}
    assert len(read(table.newest())) == 99 + more


def test_a_delete_in_another_file_is_none(catalog, tmp_path, version):
    table = made(catalog, version=version)
    snapshot = table.snapshot()
    rewrite = replacement(table, snapshot, [0, 1])
    deleting(catalog, tmp_path, version, snapshot.files.paths[2].as_py(), 3)
    table.commit(rewrite)
    assert len(read(table.newest())) == 99
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 99


def test_a_delete_file_of_the_partition_is_opened_to_see_what_it_is_about(catalog, tmp_path):
    table = made(catalog)
    snapshot = table.snapshot()
    rewrite = replacement(table, snapshot, [0, 1])
    delete_positions(catalog, tmp_path, {snapshot.files.paths[file].as_py(): [0] for file in (2, 3)})
    table.commit(rewrite)
    assert len(read(table.newest())) == 98
    table = table.newest()
    snapshot = table.snapshot()
    rewrite = replacement(table, snapshot, run="r2")
    hit, missed = (snapshot.files.paths[file].as_py() for file in (0, 1))
    delete_positions(catalog, tmp_path, {hit: [5]})
    with pytest.raises(ConflictError) as caught:
        table.commit(rewrite)
    assert caught.value.paths == {hit}
    assert missed not in caught.value.paths


def test_a_delete_file_that_cant_be_opened_is_a_conflict_of_all_it_may_be_about(catalog, tmp_path):
    table = made(catalog)
    snapshot = table.snapshot()
    rewrite = replacement(table, snapshot, [0, 1])
    writer = Writer(catalog)
    writer.add_manifest([writer.position_deletes(f"file://{tmp_path}/nowhere.parquet")])
    writer.publish()
    with pytest.raises(ConflictError) as caught:
        table.commit(rewrite)
    assert caught.value.paths == paths(snapshot, [0, 1])


def test_equality_deletes_committed_meanwhile_apply_to_the_new_files(catalog, tmp_path):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())
    delete_equal(catalog, tmp_path, pa.table({"x": pa.array([7, 30], pa.int64())}), [1])
    table.commit(rewrite)
    assert read(table.newest()) == [x for x in range(100) if x not in (7, 30)]
    found = summary(catalog)
    assert "removed-delete-files" not in found


def test_equality_deletes_of_the_base_dont_delete_rows_that_came_back(catalog, tmp_path):
    table = made(catalog)
    delete_equal(catalog, tmp_path, pa.table({"x": pa.array([7, 30], pa.int64())}), [1])
    writer = Writer(catalog)  # PyIceberg's own append gives up where there are equality deletes
    writer.append(rows(7, 1), tmp_path)
    writer.publish()
    table = table.newest()
    want = [x for x in range(100) if x != 30]
    assert read(table) == want
    table.commit(replacement(table, table.snapshot()))
    assert read(table.newest()) == want
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["x"].to_pylist()) == want
    found = summary(catalog)
    assert found["removed-equality-delete-files"] == found["removed-delete-files"] == "1"
    assert found["removed-equality-deletes"] == "2"


def test_an_expired_base_or_a_branch_that_was_rolled_back_is_a_conflict_of_everything(catalog):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())
    base = rewrite.base.version
    catalog.load_table("db.t").append(rows(100))
    current = catalog.load_table("db.t")
    parent = current.metadata.snapshot_by_id(base).parent_snapshot_id
    current.manage_snapshots().set_current_snapshot(snapshot_id=parent).commit()
    with pytest.raises(ConflictError, match="rolled back") as caught:
        table.commit(rewrite)
    assert caught.value.paths == frozenset()
    catalog.load_table("db.t").maintenance.expire_snapshots().by_id(base).commit()
    with pytest.raises(ConflictError, match="expired") as caught:
        table.commit(rewrite)
    assert caught.value.paths == frozenset()


def test_harmless_changes_of_schema_spec_and_properties_let_a_commit_through(catalog):
    table = made(catalog)
    rewrite = replace(replacement(table, table.snapshot()), layout=Layout("zorder", ("x",)))
    current = catalog.load_table("db.t")
    with current.update_schema() as update:
        update.add_column("new", StringType())
        update.rename_column("y", "why")
        update.delete_column("s")
    with current.update_spec() as update:
        update.add_field("x", BucketTransform(4), "b")
    with current.transaction() as transaction:
        transaction.set_properties({"owner": "me"})
    table.commit(rewrite)
    after = catalog.load_table("db.t").scan().to_arrow()
    assert after.column_names == ["x", "why", "new"]
    assert sorted(after["x"].to_pylist()) == list(range(100))
    assert after["new"].null_count == 100
    assert sorted(after["why"].to_pylist()) == sorted(rows(0, 100)["y"].to_pylist())


@pytest.mark.parametrize("change", ["rename", "drop", "drop and add"])
def test_a_layout_by_a_column_that_is_gone_meanwhile_is_not_recorded(change, catalog):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())
    current = catalog.load_table("db.t")
    with current.update_schema() as update:
        if change == "rename":
            update.rename_column("y", "why")
        else:
            update.delete_column("y")
    if change == "drop and add":
        with catalog.load_table("db.t").update_schema() as update:
            update.add_column("y", LongType())
    with pytest.raises(ConflictError, match=r"'y' of 'db.t' was (renamed to 'why'|dropped) during the rewrite"):
        table.commit(rewrite)
    assert "zonal.layout" not in catalog.load_table("db.t").metadata.properties


def test_a_type_that_was_widened_meanwhile_is_read_from_the_new_files(catalog):
    current = catalog.create_table(
        "db.t", Schema(NestedField(1, "x", IntegerType()), NestedField(2, "y", IntegerType()))
    )
    current.append(pa.table({"x": pa.array([1, 2], pa.int32()), "y": pa.array([3, 4], pa.int32())}))
    table = opened(catalog)
    rewrite = replacement(table, table.snapshot())
    with current.update_schema() as update:
        update.update_column("x", LongType())
    table.commit(rewrite)
    assert catalog.load_table("db.t").scan().to_arrow().to_pydict() == {"x": [1, 2], "y": [3, 4]}
    bounds = table.newest().snapshot().files.bounds["x"]
    assert (bounds.lower.to_pylist(), bounds.upper.to_pylist()) == ([1], [2])


def test_rewriters_and_appenders_race_and_no_row_is_lost(catalog, tmp_path):
    made(catalog, files=6)
    done: list[str] = []

    def own() -> SqlCatalog:
        return SqlCatalog("test", **properties_in(tmp_path))

    def rewriting(number: int) -> None:
        table = opened(own())
        snapshot = table.snapshot()
        done.append(str(table.commit(replacement(table, snapshot, [2 * number, 2 * number + 1], run=f"r{number}"))))

    def appending(number: int) -> None:
        for attempt in range(50):
            try:
                own().load_table("db.t").append(rows(1000 * (number + 1), 10))
                done.append(f"a{number}")
                return
            except Exception:  # noqa: PERF203 - PyIceberg's append gives up early, and SQLite may be locked
                assert attempt < 49

    threads = [Thread(target=target, args=(n,)) for n in range(3) for target in (rewriting, appending)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 6
    found = catalog.load_table("db.t").scan().to_arrow()["x"].to_pylist()
    want = [*range(150), *(x for n in range(3) for x in range(1000 * (n + 1), 1000 * (n + 1) + 10))]
    assert sorted(found) == want
    assert summary(catalog)["total-records"] == "180"


# --- catalogs that fail --------------------------------------------------------------------------------------------


def failing(table, monkeypatch, errors):
    """Let the table's catalog raise each of the errors before or after a commit."""
    real = SqlCatalog.commit_table

    def commit(self, *arguments):
        if not errors:
            return real(self, *arguments)
        when, error = errors.pop(0)
        if when == "after":
            real(self, *arguments)
        raise error

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    monkeypatch.setattr("zonal.tables.iceberg.commit.time.sleep", lambda _: None)
    return table


def test_failed_attempts_are_repeated_and_leave_nothing_behind(catalog, monkeypatch):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())
    folder = local(table.table.location()) + "/metadata"
    failing(table, monkeypatch, [("before", CommitFailedException("no"))] * 3)
    assert table.commit(rewrite) == table.newest().snapshot().version
    assert len(read(table.newest())) == 100
    current = catalog.load_table("db.t")
    used = {os.path.basename(s.manifest_list) for s in current.metadata.snapshots}
    used |= {os.path.basename(m.manifest_path) for s in current.metadata.snapshots for m in s.manifests(current.io)}
    assert {name for name in os.listdir(folder) if name.endswith(".avro")} == used


def test_metadata_that_cant_be_written_is_an_error_and_the_table_as_it_was(catalog, monkeypatch):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())

    def refuse(*_, **__):
        raise PermissionError("read-only")

    monkeypatch.setattr("zonal.tables.iceberg.commit.write_manifest_list", refuse)
    with pytest.raises(TableError, match=r"Can't write the new metadata of .*PermissionError") as caught:
        table.commit(rewrite)
    assert not isinstance(caught.value, CommitUnknownError)
    assert table.newest().snapshot().version == rewrite.base.version


def test_attempts_are_bounded(catalog, monkeypatch):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())
    failing(table, monkeypatch, [("before", CommitFailedException("no"))] * 100)
    with pytest.raises(ConflictError, match="10 attempts failed") as caught:
        table.commit(rewrite)
    assert caught.value.paths == frozenset()


def test_a_failure_that_a_repeated_request_reports_of_itself_is_no_failure(catalog, monkeypatch):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot())
    failing(table, monkeypatch, [("after", CommitFailedException("the head has moved"))])
    assert table.commit(rewrite) == table.newest().snapshot().version
    assert len(contents(catalog)) == 100


@pytest.mark.parametrize("error", [CommitStateUnknownException("gone"), ConnectionResetError("gone")])
def test_a_lost_answer_is_looked_up(catalog, monkeypatch, error):
    table = made(catalog)
    rewrite = replacement(table, table.snapshot(), [0, 1])
    failing(table, monkeypatch, [("after", error)])
    assert table.commit(rewrite) == table.newest().snapshot().version
    second = table.newest()
    rewrite = replacement(second, second.snapshot(), run="r2")
    failing(second, monkeypatch, [("before", error)])
    with pytest.raises(CommitUnknownError, match="The new files stay"):
        second.commit(rewrite)
    assert len(read(table.newest())) == 100


# --- deletes that are obsolete -------------------------------------------------------------------------------------


def test_deletes_go_with_the_last_file_that_they_apply_to(catalog, tmp_path):
    table = made(catalog)
    files = [table.snapshot().files.paths[n].as_py() for n in range(4)]
    delete_positions(catalog, tmp_path, {files[0]: [0], files[1]: [1]})  # of the partition
    delete_positions(catalog, tmp_path, {files[2]: [2]}, paths=(files[2], files[2]))
    table = table.newest()
    want = read(table)
    snapshot = table.snapshot()
    numbers = {path: n for n, path in enumerate(snapshot.files.paths.to_pylist())}
    table.commit(replacement(table, snapshot, [numbers[files[0]], numbers[files[2]]]))
    found = summary(catalog)
    assert (found["removed-position-delete-files"], found["removed-position-deletes"]) == ("1", "1")
    assert read(table.newest()) == want
    table = table.newest()
    table.commit(replacement(table, table.snapshot(), run="r2"))
    assert summary(catalog)["removed-delete-files"] == "1"
    assert not table.newest().snapshot().files.delete_files.any()
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["x"].to_pylist()) == want


def test_vectors_of_one_file_are_told_apart(catalog, tmp_path):
    table = made(catalog, version=3)
    files = [table.snapshot().files.paths[n].as_py() for n in range(4)]
    delete_vectors(catalog, tmp_path, {path: [n, n + 5] for n, path in enumerate(files)})
    table = table.newest()
    want = read(table)
    assert len(want) == 92
    snapshot = table.snapshot()
    numbers = {path: n for n, path in enumerate(snapshot.files.paths.to_pylist())}
    table.commit(replacement(table, snapshot, [numbers[files[1]], numbers[files[2]]]))
    found = summary(catalog)
    assert (found["removed-dvs"], found["removed-position-deletes"]) == ("2", "4")
    after = table.newest().snapshot()
    assert Counter(after.files.delete_files.tolist()) == {0: 1, 1: 2}
    assert read(table.newest()) == want
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["x"].to_pylist()) == want


def test_delete_manifests_keep_all_fields_and_equality_ids_are_ints(catalog, tmp_path):
    table = made(catalog)
    files = [table.snapshot().files.paths[n].as_py() for n in range(4)]
    delete_equal(catalog, tmp_path, pa.table({"x": pa.array([7], pa.int64())}), [1])
    writer = Writer(catalog)  # two deletes in one manifest, one of which goes
    kept = [writer.position_deletes(f"file://{tmp_path}/p{n}.parquet", paths=(files[n],) * 2) for n in (0, 1)]
    for n in (0, 1):
        pq.write_table(pa.table({"file_path": [files[n]], "pos": pa.array([1])}), tmp_path / f"p{n}.parquet")
    eq = writer.file(DataFileContent.EQUALITY_DELETES, f"file://{tmp_path}/e.parquet", equality_ids=[1, 3])
    pq.write_table(pa.table({"x": pa.array([1], pa.int64()), "s": ["none"]}), tmp_path / "e.parquet")
    writer.add_manifest([*kept, eq])
    writer.publish()
    table = table.newest()
    snapshot = table.snapshot()
    numbers = {path: n for n, path in enumerate(snapshot.files.paths.to_pylist())}
    table.commit(replacement(table, snapshot, [numbers[files[0]]]))
    current = catalog.load_table("db.t")
    (part,) = [
        part
        for part in read_contents(current.io, current.current_snapshot().manifest_list)
        if not part.holds_data and len(part.entries) == 2
    ]
    data = Path(local(part.line[500])).read_bytes()
    ids = b'"field-id": 135, "type": ["null", {"type": "array", "element-id": 136, "items": "int"}]'
    assert ids in data
    by_path = {entry.path: entry for entry in part.entries}
    entry = by_path[f"file://{tmp_path}/e.parquet"]
    assert entry.file[135] == [1, 3]
    assert by_path[f"file://{tmp_path}/p1.parquet"].delete.target == files[1]
    assert part.line[517] == 1
    statuses = Counter(record[0] for record in records(data))
    assert statuses == {0: 2, 2: 1}


# --- version 3 -----------------------------------------------------------------------------------------------------


def lineage(table: IcebergTable) -> dict[int, tuple[int, int]]:
    snapshot = table.snapshot()
    scan = table.scan(snapshot, np.arange(len(snapshot.files)))
    return {
        row["x"]: (row["_row_id"], row["_last_updated_sequence_number"])
        for source in scan.sources
        for row in rows_of(source, scan.reading).to_pylist()
    }


def test_row_ids_and_versions_stay_through_rewrites(catalog):
    table = made(catalog, version=3)
    before = lineage(table)
    assert sorted(row_id for row_id, _ in before.values()) == list(range(100))
    assert Counter(sequence for _, sequence in before.values()) == {1: 25, 2: 25, 3: 25, 4: 25}
    for run in ("r1", "r2"):
        table = table.newest()
        current = catalog.load_table("db.t")
        next_row_id = current.metadata.next_row_id
        table.commit(replacement(table, table.snapshot(), [0, 2], run=run))
        after = catalog.load_table("db.t")
        snapshot = after.current_snapshot()
        assert snapshot.first_row_id == next_row_id
        assert after.metadata.next_row_id == next_row_id + snapshot.added_rows
        assert snapshot.added_rows >= 50
        assert lineage(table.newest()) == before
    for part in read_contents(after.io, snapshot.manifest_list):
        assert part.line[520] is not None


def test_files_from_before_version_3_have_null_ids_until_they_get_some(catalog):
    made(catalog)
    writer = Writer(catalog, format_version=3)
    writer.publish()
    table = opened(catalog)
    assert set(lineage(table).values()) == {(None, None)}
    table.commit(replacement(table, table.snapshot(), [0, 1]))
    after = lineage(table.newest())
    assert len({row_id for row_id, _ in after.values()}) == 100
    assert catalog.load_table("db.t").metadata.next_row_id >= 100


def test_metadata_that_would_be_lost_is_refused(catalog):
    made(catalog, version=3)
    writer = Writer(catalog)
    writer.metadata["encryption-keys-of-tomorrow"] = [{"key-id": "k"}]
    writer.publish()
    table = opened(catalog)
    with pytest.raises(TableError, match="'encryption-keys-of-tomorrow'"):
        table.writing(table.snapshot(), layout=LAYOUT, run="r")


def test_nothing_of_pyiceberg_is_changed_for_version_3(catalog):
    table = made(catalog, version=3)
    table.commit(replacement(table, table.snapshot()))
    with pytest.raises(NotImplementedError):
        catalog.load_table("db.t").metadata.model_dump_json()
    with pytest.raises(NotImplementedError), catalog.load_table("db.t").transaction() as transaction:
        transaction.set_properties({"a": "b"})


# --- metrics -------------------------------------------------------------------------------------------------------


def test_bounds_counts_and_nans_are_those_of_the_rows(catalog):
    table = made(catalog, schema=PARTITIONED, files=0)
    current = catalog.load_table("db.t")
    current.append(partitioned_rows(0))
    current.append(partitioned_rows(40))
    table = opened(catalog)
    table.commit(replacement(table, table.snapshot()))
    files = table.newest().snapshot().files
    data = pa.concat_tables([partitioned_rows(0), partitioned_rows(40)]).to_pydict()
    numbers = [x for x in data["x"] if x is not None]
    assert (files.bounds["x"].lower[0].as_py(), files.bounds["x"].upper[0].as_py()) == (min(numbers), max(numbers))
    assert files.bounds["x"].nulls.tolist() == [data["x"].count(None)]
    real = [y for y in data["y"] if y == y]  # noqa: PLR0124
    assert files.bounds["y"].lower[0].as_py() == min(real)
    assert not files.bounds["y"].upper[0].is_valid, "NaN is above all numbers"
    assert files.bounds["y"].nans.tolist() == [80 - len(real)]
    assert files.bounds["s"].lower[0].as_py() == b""
    times = [t for t in data["ts"] if t is not None]
    assert files.bounds["ts"].upper[0].as_py() == max(times)


def kept(properties, keys=(), schema=SCHEMA):
    return {k.field_id: (k.counts, k.bounds, k.length) for k in kept_metrics(schema, properties, keys)}


def test_settings_decide_which_metrics_are_kept_and_keys_always_have_bounds():
    everything = "write.metadata.metrics.default"
    assert kept({}) == dict.fromkeys((1, 2, 3), (True, True, 16))
    assert kept({everything: "none"}, ["s"]) == {1: (False, False, 16), 2: (False, False, 16), 3: (True, True, 16)}
    assert kept({everything: "counts"})[1][:2] == (True, False)
    assert kept({everything: "full"}, ["s"])[3] == (True, True, None)
    assert kept({everything: "truncate(4)"})[3] == (True, True, 4)
    assert kept({everything: "truncate(4)"}, ["s"])[3] == (True, True, 16)
    assert kept({"write.metadata.metrics.column.s": "none"})[3][:2] == (False, False)
    wide = Schema(*(NestedField(n, f"c{n}", LongType()) for n in range(1, 121)))
    assert sum(counts for counts, _, _ in kept({}, schema=wide).values()) == 100
    assert sum(counts for counts, _, _ in kept({}, ["c120"], schema=wide).values()) == 101
    most = "write.metadata.metrics.max-inferred-column-defaults"
    assert sum(counts for counts, _, _ in kept({most: "7"}, schema=wide).values()) == 7
    assert sum(counts for counts, _, _ in kept({everything: "counts"}, schema=wide).values()) == 120


@given(st.text(min_size=0, max_size=8), st.integers(1, 4))
def test_a_cut_bound_of_text_still_holds(text, length):
    lower, upper = truncated_text(text, length, upper=False), truncated_text(text, length, upper=True)
    assert lower <= text
    assert len(lower) <= length
    if upper is not None:
        assert upper >= text
        assert upper.encode() >= text.encode()
        assert len(upper) <= length
    else:
        assert set(text[:length]) == {"\U0010ffff"}


@given(st.binary(max_size=8), st.integers(1, 4))
def test_a_cut_bound_of_bytes_still_holds(value, length):
    assert truncated_bytes(value, length, upper=False) <= value
    upper = truncated_bytes(value, length, upper=True)
    assert upper >= value if upper is not None else set(value[:length]) == {255}


def test_bounds_beyond_pythons_calendar_and_both_zeros_are_written():
    schema = Schema(NestedField(1, "ts", TimestampType()), NestedField(2, "y", DoubleType()))
    most = pa.scalar(2**62, pa.timestamp("us"))
    zero, nan = pa.scalar(0.0), pa.scalar(float("nan"))
    columns = (
        ColumnMetrics("ts", 1, 2, 0, 0, pa.scalar(-(2**62), pa.timestamp("us")), most),
        ColumnMetrics("y", 1, 2, 0, 1, zero, nan),
    )
    file = data_file(Written("p", 1, 2, 0, columns), kept_metrics(schema, {}, []), partition={})
    assert struct.unpack("<q", file[128][1]) == (2**62,)
    assert file[125][2] == struct.pack("<d", -0.0)
    assert 2 not in file[128]
    with pytest.raises(TableError, match="1 columns instead of 2"):
        data_file(Written("p", 1, 2, 0, columns[:1]), kept_metrics(schema, {}, []), partition={})
