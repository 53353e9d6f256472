"""Commits to Iceberg tables against faster writers: rows are neither lost nor brought back."""

from dataclasses import replace
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from support.iceberg_commits import made, paths, read, rows, summary
from support.iceberg_rewriting import Writer, delete_equal, delete_positions, delete_vectors, local, opened, replacement
from support.iceberg_tables import properties_in
from zonal.errors import ConflictError
from zonal.layouts.layout import Layout


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
