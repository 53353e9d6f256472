"""`append` in an object store: each batch is there exactly once, beside other writers and through faults."""

import pyarrow as pa
import pytest

from support.appends import append_to
from support.cluster_tables import Meanwhile, assert_same_rows, never, telemetry
from support.local_runner import run_here
from support.s3_server import CUT, SLOW_DOWN, Fault
from support.store_tables import stored_home
from zonal.errors import CommitUnknownError, TableError, ZonalError
from zonal.history.store import History
from zonal.storage import objects
from zonal.tables.registry import open_table

pytest.importorskip("obstore", reason="obstore needs Python 3.11")

KINDS = ["delta", "iceberg v1", "iceberg v2"]
NEWEST = ["delta", "iceberg v2"]
COMMIT = "_delta_log/00000000000000000001.json"
BEFORE, NEW = telemetry(300), telemetry(500, 1, first=1000)


def made(kind, server, folder, **given):
    return stored_home(kind, server, folder).make([BEFORE], **given)


def both(*more):
    return pa.concat_tables([BEFORE, NEW, *more])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_added_in_one_commit_and_marked_as_a_run(kind, server, tmp_path):
    table = made(kind, server, tmp_path, partition_by=["p"])
    before = server.content()
    url = f"sqlite:///{tmp_path}/history.db"
    done = append_to(table, NEW, by=["x", "y"], transaction=("batch", 1), database=url)
    assert (done.rows, done.version, done.repeated) == (500, table.version(), False)
    assert_same_rows(table.rows(), both())
    assert table.leftovers() == []
    after = server.content()
    assert {key: after[key] for key in before} == before, "nothing that was there is changed"
    added = [key for key in after.keys() - before.keys() if key.endswith(".parquet")]
    assert (len(added), sum(len(after[key]) for key in added)) == (done.files, done.bytes)
    snapshot = open_table(table.name, **table.options).snapshot()
    assert snapshot.commits[snapshot.version].kind == "append"
    with History.open(url) as history:
        (run,) = history.runs(done.location)
    assert (run.run, run.rows, run.removed_bytes, run.added_bytes) == (done.run, 500, 0, done.bytes)
    again = append_to(table, NEW, transaction=("batch", 1))
    assert again.repeated
    assert server.content().keys() == after.keys()
    assert_same_rows(table.rows(), both())
    assert table.cluster(by=["x", "y"], full=True).run.versions
    assert_same_rows(table.rows(), both())


@pytest.mark.parametrize("kind", NEWEST)
def test_a_dry_run_writes_nothing(kind, server, tmp_path):
    table = made(kind, server, tmp_path)
    before = server.content()
    server.heard.clear()
    append_to(table, NEW, by=["x", "y"], dry_run=True)
    assert server.content() == before
    assert not {"PUT", "POST", "DELETE", "COPY"} & server.counts().keys()


@pytest.mark.parametrize("kind", NEWEST)
def test_the_tables_folder_isnt_listed(kind, server, tmp_path):
    table = made(kind, server, tmp_path)
    server.heard.clear()
    append_to(table, NEW, by=["x", "y"])
    lists = [each for each in server.heard if each.startswith("GET /box?") and "list-type" in each]
    allowed = ("_delta_log", "zonal-", "max-keys=1&")
    assert [each for each in lists if not any(part in each for part in allowed)] == []


@pytest.mark.parametrize("kind", NEWEST)
def test_an_append_of_another_writer_meanwhile_is_no_conflict(kind, server, tmp_path):
    table, more = made(kind, server, tmp_path), telemetry(50, 2, first=9000)
    append_to(table, NEW, by="x", spark=Meanwhile(lambda: table.append(more)))
    assert_same_rows(table.rows(), both(more))
    assert table.leftovers() == []


def test_a_delete_of_another_writer_meanwhile_is_no_conflict(server, tmp_path):
    table = made("delta", server, tmp_path)
    append_to(table, NEW, by="x", spark=Meanwhile(lambda: table.table.delete("id < 100")))
    assert_same_rows(table.rows(), both().slice(100))
    assert table.leftovers() == []


@pytest.mark.parametrize("kind", NEWEST)
def test_a_failure_before_the_commit_leaves_the_table_as_it_was(kind, server, tmp_path):
    table = made(kind, server, tmp_path)

    def failing(*given):
        run_here(*given)
        raise ZonalError("on purpose")

    before = server.content()
    with pytest.raises(ZonalError, match="on purpose"):
        append_to(table, NEW, by="x", spark=failing)
    assert server.content() == before
    assert server.uploads() == []


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "after"), [(CUT, False), (CUT, True), (SLOW_DOWN, True)])
def test_a_commit_whose_answer_is_lost_is_known_by_its_content(answer, after, server, tmp_path):
    table = made("delta", server, tmp_path)
    server.faults = [Fault("PUT", COMMIT, answer, after=after)]
    assert append_to(table, NEW, by="x").version == 1
    assert server.faults[0].times == 0
    assert_same_rows(table.rows(), both())
    assert table.leftovers() == []


def test_an_unknown_outcome_keeps_the_files_and_a_repeated_batch_finds_out(server, tmp_path, monkeypatch):
    monkeypatch.setitem(objects._RETRIES, "max_retries", 1)
    table = made("delta", server, tmp_path)
    server.faults = [Fault("PUT", COMMIT, CUT, times=99, after=True), Fault("GET", COMMIT, CUT, times=99)]
    with pytest.raises(CommitUnknownError, match="must stay"):
        append_to(table, NEW, by="x", transaction=("batch", 7))
    server.faults = []
    assert append_to(table, NEW, transaction=("batch", 7)).repeated
    assert_same_rows(table.rows(), both())


@pytest.mark.parametrize("kind", NEWEST)
def test_a_connection_that_is_cut_during_an_upload_costs_no_row(kind, server, tmp_path):
    table = made(kind, server, tmp_path)
    server.faults = [Fault("PUT", ".parquet", CUT, times=2), Fault("PUT", ".parquet", SLOW_DOWN, times=2)]
    append_to(table, NEW, by="x")
    assert [fault.times for fault in server.faults] == [0, 0]
    assert_same_rows(table.rows(), both())
    assert table.leftovers() == []


def test_a_store_that_ignores_conditions_is_refused_before_any_work(server, tmp_path):
    table = made("delta", server, tmp_path)
    server.ignores_conditions = True
    with pytest.raises(TableError, match="ignores conditions of writes"):
        append_to(table, NEW, by="x", spark=never)
    assert table.version() == 0
    assert table.leftovers() == []
