"""`cluster` in an object store: every row kept, beside other writers and through faults, and nothing left behind."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake.exceptions import CommitFailedError

from support.cluster_tables import assert_same_rows, never, telemetry
from support.local_runner import run_here
from support.s3_server import CUT, SLOW_DOWN, Fault
from support.store_contract import ROWS, Made, StoreContract
from zonal.errors import CommitUnknownError, ConflictError, TableError, ZonalError
from zonal.storage import objects

pytest.importorskip("obstore", reason="obstore needs Python 3.11")

KINDS = ["delta", "iceberg v1", "iceberg v2"]
"""PyIceberg appends to no table of version 3."""


@pytest.fixture(params=KINDS)
def made(request, server, tmp_path):
    return Made(request.param, server, tmp_path)


class TestContract(StoreContract):
    """What holds in every store, on moto."""


def test_a_table_of_version_3_is_clustered_in_place(server, tmp_path):
    TestContract().test_a_table_is_clustered_in_place_and_keeps_its_rows(Made("iceberg v3", server, tmp_path))


@pytest.fixture
def table(server):
    return Made("delta", server, None)()


def test_appends_and_deletes_of_another_library_go_on_beside_several_runs(table):
    """delta-rs writes all the time, by its own conditional puts; whoever loses a version tries again."""
    parts = [telemetry(40, number, first=9000 + 40 * number) for number in range(6)]
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
        for other in others:
            other.result()
    assert len(versions) == len(set(versions))
    gone = [number for start in range(0, 1000, 250) for number in range(start, start + 50)]
    kept = ROWS.filter(pc.invert(pc.is_in(ROWS["id"], pa.array(gone))))
    assert_same_rows(table.rows(), pa.concat_tables([kept, *parts]))
    assert table.leftovers() == []


def test_a_copy_to_plain_parquet_is_refused_before_any_work(table):
    with pytest.raises(TableError, match=r"can't appear at once.*delta:… or iceberg:…"):
        table.cluster(by=["x"], into="parquet:s3://box/plain", runner=never)


# --- faults ----------------------------------------------------------------------------------------------------------

COMMIT = "_delta_log/00000000000000000006.json"


@pytest.mark.parametrize("answer", [CUT, SLOW_DOWN])
@pytest.mark.parametrize("after", [False, True])
def test_a_commit_whose_answer_is_lost_is_known_by_its_content(answer, after, server, table):
    server.faults = [Fault("PUT", COMMIT, answer, after=after)]
    done = table.cluster(by=["x", "y"])
    assert server.faults[0].times == 0
    assert done.run.versions == (6,)
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_a_commit_of_which_nothing_can_be_known_keeps_its_files(server, table, monkeypatch):
    monkeypatch.setitem(objects._RETRIES, "max_retries", 1)
    server.faults = [Fault("PUT", COMMIT, CUT, times=99, after=True), Fault("GET", COMMIT, CUT, times=99)]
    with pytest.raises(CommitUnknownError, match="must stay"):
        table.cluster(by=["x", "y"])
    server.faults = []
    assert table.version() == 6, "it was made"
    assert_same_rows(table.rows(), ROWS)
    assert not table.cluster(by=["x", "y"]).run.versions


def test_a_store_that_ignores_conditions_is_refused_before_any_work(server, table):
    server.ignores_conditions = True
    with pytest.raises(TableError, match="ignores conditions of writes"):
        table.cluster(by=["x", "y"], runner=never)
    server.ignores_conditions = False
    assert table.version() == 5
    assert table.leftovers() == []


def test_a_writer_that_replaces_a_version_is_told_of_loudly(server, table):
    """As delta-spark's log store for a single driver does, which looks first and then writes in any case."""
    theirs = {"commitInfo": {"timestamp": 0, "operation": "WRITE"}}

    def replace(path):
        if path.endswith(COMMIT):
            server.on_put = None
            server.client.put_object(Bucket="box", Key=f"t/{COMMIT}", Body=json.dumps(theirs).encode())

    server.on_put = replace
    with pytest.raises(CommitUnknownError, match="Another writer replaced version 6 of 's3://box/t'"):
        table.cluster(by=["x", "y"])
    assert_same_rows(table.rows(), ROWS)


def test_throttling_is_waited_for(server, table):
    server.faults = [Fault(method, "/box", times=3) for method in ("GET", "PUT", "POST", "HEAD")]
    table.cluster(by=["x", "y"], target_file_size=20_000)
    assert not any(fault.times for fault in server.faults if fault.method != "POST")
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_a_connection_that_is_cut_during_an_upload_costs_no_row(server, table):
    server.faults = [Fault("PUT", ".parquet", CUT, times=2)]
    table.cluster(by=["x", "y"], target_file_size=20_000)
    assert server.faults[0].times == 0
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


@pytest.mark.parametrize("moment", [".parquet", "_delta_log/0"])
def test_credentials_that_expire_are_named_and_nothing_is_lost(moment, server, table):
    server.faults = [Fault("PUT", moment, "400 Bad Request", times=99, code="ExpiredToken")]
    with pytest.raises(ZonalError, match=r"ExpiredToken|EXPIRED_TOKEN"):
        table.cluster(by=["x", "y"])
    server.faults = []
    assert table.version() == 5
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_a_run_that_fails_leaves_nothing_behind(server, table):

    def failing(*given):
        run_here(*given)
        raise ZonalError("on purpose")

    before = server.objects()
    with pytest.raises(ZonalError, match="on purpose"):
        table.cluster(by=["x", "y"], runner=failing)
    assert server.objects() == before
    assert server.uploads() == []
