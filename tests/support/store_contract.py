"""What `cluster` must do in every object store: keep every row, beside other writers, and leave nothing behind.

A module that runs it has a class of this kind, and a fixture `made` that returns a `Made`.
"""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError

from support.cleaning import cleaned, now
from support.cluster_tables import Meanwhile, assert_same_rows, parts_of, telemetry
from support.store_tables import StoredDelta, stored_home
from zonal.errors import TableError

ROWS = telemetry(3000)


class Made:
    """Makes tables of one kind in one store."""

    def __init__(self, kind, server, folder):
        self.kind, self.server, self.folder = kind, server, folder

    def __call__(self, **given):
        return stored_home(self.kind, self.server, self.folder).make(parts_of(ROWS, 6), **given)


class StoreContract:
    """Tests that run on every kind of table in every store."""

    def test_a_table_is_clustered_in_place_and_keeps_its_rows(self, made):
        table = made()
        done = table.cluster(by=["x", "y"], target_file_size=20_000)
        assert len(done.run.versions) == 1
        assert done.lookups.files_after > 1
        assert_same_rows(table.rows(), ROWS)
        assert table.version() == done.run.versions[-1]
        assert table.leftovers() == []
        assert not table.cluster(by=["x", "y"], target_file_size=20_000).run.versions, "there is nothing left to do"

    def test_a_partitioned_table_is_clustered_in_several_commits(self, made):
        table = made(partition_by=["p"])
        done = table.cluster(by=["x"], target_file_size=10_000, commit_every=30_000)
        assert len(done.run.versions) > 1
        assert_same_rows(table.rows(), ROWS)
        assert table.leftovers() == []

    def test_an_append_meanwhile_survives(self, made):
        table, more = made(), telemetry(50, 1, first=9000)
        table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.append(more)))
        assert_same_rows(table.rows(), pa.concat_tables([ROWS, more]))
        assert table.leftovers() == []

    def test_a_delete_meanwhile_is_kept(self, made):
        table = made()
        done = table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.table.delete("id < 100")))
        assert done.run.conflicts
        assert_same_rows(table.rows(), ROWS.slice(100))
        assert table.leftovers() == []

    def test_spare_files_go_to_quarantine_come_back_and_are_deleted(self, made):
        table = made()
        old = table.ever()
        table.cluster(by=["x", "y"])
        done = cleaned(table, now())
        assert {path for path in old if path not in table.server.objects()} == old
        assert cleaned(table, undo=done.run, yes=False).files
        assert old <= set(table.server.objects())
        assert len(cleaned(table, now()).files) == len(done.files)
        assert len(cleaned(table, now(), purge=True).files) == len(done.files)
        assert not table.quarantined()
        assert_same_rows(table.rows(), ROWS)

    def test_a_table_is_copied_into_a_delta_table_of_the_store(self, made):
        table, copy = made(), StoredDelta(made.server, "copies/new")
        table.cluster(by=["x"], into=copy.name, target_file_size=20_000)
        assert_same_rows(copy.rows(), ROWS)
        assert copy.version() == 0
        assert copy.leftovers() == []
        with pytest.raises(TableError, match="isn't empty"):
            table.cluster(by=["x"], into=copy.name)


class DeltaBeside:
    """Tests of a Delta table that delta-rs writes all the while; its store is the fixture `server`."""

    @pytest.fixture
    def made(self, server):
        return Made("delta", server, None)

    def test_appends_all_the_while_survive(self, made):
        table, more = made(), [telemetry(20, number, first=9000 + 20 * number) for number in range(12)]
        with ThreadPoolExecutor(1) as pool:
            appending = pool.submit(lambda: [_append(table, part) for part in more])
            done = table.cluster(by=["x", "y"], target_file_size=20_000)
            appending.result()
        assert done.run.versions
        assert_same_rows(table.rows(), pa.concat_tables([ROWS, *more]))
        assert table.leftovers() == []


def _append(table, rows, *, again=9):
    """Append as a job does that tries again: delta-rs itself gives up where a commit sets a property meanwhile."""
    try:
        table.append(rows)
    except CommitFailedError:
        if not again:
            raise
        _append(table, rows, again=again - 1)
