"""`cluster` in an object store: every row kept, beside other writers and through faults, and nothing left behind."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake.exceptions import CommitFailedError

from support.cluster_tables import Meanwhile, assert_same_rows, never, parts_of, telemetry
from support.local_runner import run_here
from support.s3_server import CUT, SLOW_DOWN, Fault
from support.store_tables import StoredDelta, stored_home
from zonal.errors import CommitUnknownError, ConflictError, TableError, ZonalError
from zonal.storage import objects

pytest.importorskip("obstore", reason="obstore needs Python 3.11")

ROWS = telemetry(3000)
KINDS = ["delta", "iceberg v1", "iceberg v2", "iceberg v3"]


@pytest.fixture(params=KINDS)
def table(request, server, tmp_path):
    return made(request.param, server, tmp_path)


def made(kind, server, folder, **given):
    return stored_home(kind, server, folder).make(parts_of(ROWS, 6), **given)


def test_a_table_is_clustered_in_place_and_keeps_its_rows(table):
    done = table.cluster(by=["x", "y"], target_file_size=20_000)
    assert len(done.run.versions) == 1
    assert done.lookups.files_after > 1
    assert_same_rows(table.rows(), ROWS)
    assert table.version() == done.run.versions[-1]
    assert table.leftovers() == []
    assert not table.cluster(by=["x", "y"], target_file_size=20_000).run.versions, "there is nothing left to do"


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_a_partitioned_table_is_clustered_in_several_commits(kind, server, tmp_path):
    table = made(kind, server, tmp_path, partition_by=["p"])
    done = table.cluster(by=["x"], target_file_size=10_000, commit_every=30_000)
    assert len(done.run.versions) > 1
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_an_append_meanwhile_survives(kind, server, tmp_path):
    table = made(kind, server, tmp_path)
    more = telemetry(50, 1, first=9000)
    table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.append(more)))
    assert_same_rows(table.rows(), pa.concat_tables([ROWS, more]))
    assert table.leftovers() == []


def test_a_delete_meanwhile_is_kept(server, tmp_path):
    table = made("delta", server, tmp_path)
    done = table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.table.delete("id < 100")))
    assert done.run.conflicts
    assert_same_rows(table.rows(), ROWS.slice(100))
    assert table.leftovers() == []


def test_appends_and_deletes_of_another_library_go_on_beside_several_runs(server, tmp_path):
    """delta-rs writes all the time, by its own conditional puts; whoever loses a version tries again."""
    table, parts = (
        made("delta", server, tmp_path),
        [telemetry(40, number, first=9000 + 40 * number) for number in range(6)],
    )
    deleted = [f"id >= {start} and id < {start + 50}" for start in range(0, 1000, 250)]

    def until_done(act):
        for _ in range(30):
            with suppress(CommitFailedError):
                return act()
        raise AssertionError("it never came through")

    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(until_done, partial(table.append, part)) for part in parts]
        others += [pool.submit(until_done, lambda where=where: table.table.delete(where)) for where in deleted]
        versions = []
        while not versions or not all(other.done() for other in others):
            with suppress(ConflictError):
                versions += table.cluster(by=["x", "y"], target_file_size=20_000).run.versions
        assert [other.result() is not None for other in others[len(parts) :]] == [True] * len(deleted)
        assert [other.result() for other in others[: len(parts)]] == [None] * len(parts)
    assert len(versions) == len(set(versions))
    gone = [number for start in range(0, 1000, 250) for number in range(start, start + 50)]
    kept = ROWS.filter(pc.invert(pc.is_in(ROWS["id"], pa.array(gone))))
    assert_same_rows(table.rows(), pa.concat_tables([kept, *parts]))
    assert table.leftovers() == []


# --- copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_a_table_is_copied_into_a_delta_table_of_the_store(kind, server, tmp_path):
    table, copy = made(kind, server, tmp_path), StoredDelta(server, "copies/new")
    table.cluster(by=["x"], into=copy.name, target_file_size=20_000)
    assert_same_rows(copy.rows(), ROWS)
    assert copy.version() == 0
    assert copy.leftovers() == []
    with pytest.raises(TableError, match="isn't empty"):
        table.cluster(by=["x"], into=copy.name)


def test_a_copy_to_plain_parquet_is_refused_before_any_work(server, tmp_path):
    table = made("delta", server, tmp_path)
    with pytest.raises(TableError, match=r"can't appear at once.*delta:… or iceberg:…"):
        table.cluster(by=["x"], into="parquet:s3://box/plain", runner=never)


# --- faults ----------------------------------------------------------------------------------------------------------

COMMIT = "_delta_log/00000000000000000006.json"


@pytest.mark.parametrize("answer", [CUT, SLOW_DOWN])
@pytest.mark.parametrize("after", [False, True])
def test_a_commit_whose_answer_is_lost_is_known_by_its_content(answer, after, server, tmp_path):
    table = made("delta", server, tmp_path)
    server.faults = [Fault("PUT", COMMIT, answer, after=after)]
    done = table.cluster(by=["x", "y"])
    assert server.faults[0].times == 0
    assert done.run.versions == (6,)
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_a_commit_of_which_nothing_can_be_known_keeps_its_files(server, tmp_path, monkeypatch):
    monkeypatch.setitem(objects._RETRIES, "max_retries", 1)
    table = made("delta", server, tmp_path)
    server.faults = [Fault("PUT", COMMIT, CUT, times=99, after=True), Fault("GET", COMMIT, CUT, times=99)]
    with pytest.raises(CommitUnknownError, match="must stay"):
        table.cluster(by=["x", "y"])
    server.faults = []
    assert table.version() == 6, "it was made"
    assert_same_rows(table.rows(), ROWS)
    assert not table.cluster(by=["x", "y"]).run.versions


def test_a_store_that_ignores_conditions_is_refused_before_any_work(server, tmp_path):
    table = made("delta", server, tmp_path)
    server.ignores_conditions = True
    with pytest.raises(TableError, match="ignores conditions of writes"):
        table.cluster(by=["x", "y"], runner=never)
    server.ignores_conditions = False
    assert table.version() == 5
    assert table.leftovers() == []


def test_a_writer_that_replaces_a_version_is_told_of_loudly(server, tmp_path):
    """As delta-spark's log store for a single driver does, which looks first and then writes in any case."""
    table = made("delta", server, tmp_path)
    theirs = {"commitInfo": {"timestamp": 0, "operation": "WRITE"}}

    def replace(path):
        if path.endswith(COMMIT):
            server.on_put = None
            server.client.put_object(Bucket="box", Key=f"t/{COMMIT}", Body=json.dumps(theirs).encode())

    server.on_put = replace
    with pytest.raises(CommitUnknownError, match="Another writer replaced version 6 of 's3://box/t'"):
        table.cluster(by=["x", "y"])
    assert_same_rows(table.rows(), ROWS)


def test_throttling_is_waited_for(server, tmp_path):
    table = made("delta", server, tmp_path)
    server.faults = [Fault(method, "/box", times=3) for method in ("GET", "PUT", "POST", "HEAD")]
    table.cluster(by=["x", "y"], target_file_size=20_000)
    assert not any(fault.times for fault in server.faults if fault.method != "POST")
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_a_connection_that_is_cut_during_an_upload_costs_no_row(server, tmp_path):
    table = made("delta", server, tmp_path)
    server.faults = [Fault("PUT", ".parquet", CUT, times=2)]
    table.cluster(by=["x", "y"], target_file_size=20_000)
    assert server.faults[0].times == 0
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


@pytest.mark.parametrize("moment", [".parquet", "_delta_log/0"])
def test_credentials_that_expire_are_named_and_nothing_is_lost(moment, server, tmp_path):
    table = made("delta", server, tmp_path)
    server.faults = [Fault("PUT", moment, "400 Bad Request", times=99, code="ExpiredToken")]
    with pytest.raises(ZonalError, match=r"ExpiredToken|EXPIRED_TOKEN"):
        table.cluster(by=["x", "y"])
    server.faults = []
    assert table.version() == 5
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_a_run_that_fails_leaves_nothing_behind(server, tmp_path):
    table = made("delta", server, tmp_path)

    def failing(*given):
        run_here(*given)
        raise ZonalError("on purpose")

    before = server.objects()
    with pytest.raises(ZonalError, match="on purpose"):
        table.cluster(by=["x", "y"], runner=failing)
    assert server.objects() == before
    assert server.uploads() == []
