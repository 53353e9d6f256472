"""Commits of rewrites to Iceberg tables: files, partitions, deletes, and catalogs that fail."""

import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFileContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform

from support.iceberg_commits import PARTITIONED, made, partitioned_rows, paths, read, rows, summary
from support.iceberg_rewriting import (
    LAYOUT,
    Writer,
    delete_equal,
    delete_positions,
    delete_vectors,
    local,
    opened,
    replacement,
)
from zonal.errors import CommitUnknownError, ConflictError, TableError
from zonal.layouts.layout import Layout
from zonal.tables.iceberg.avro import records
from zonal.tables.iceberg.manifests import read_contents
from zonal.tables.iceberg.table import IcebergTable


def contents(catalog) -> Counter:
    """Count the rows that the table has, as PyIceberg reads them."""
    table = catalog.load_table("db.t").scan().to_arrow()
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


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
    assert Counter(newest.files.layout_ids.to_pylist()) == {LAYOUT.id: 1, None: 1}


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

    monkeypatch.setattr("zonal.tables.iceberg.new_snapshot.write_manifest_list", refuse)
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
