"""Catalogs that a server keeps: Glue by moto, Hive by a metastore in memory, and REST by a stub."""

from contextlib import closing, contextmanager

import pyarrow as pa
import pytest
from hive_metastore.ttypes import LockComponent, LockLevel, LockRequest, LockType

from support.cluster_tables import Meanwhile, assert_same_rows, parts_of, telemetry
from support.hive_server import HiveServer
from support.rest_server import RestServer
from support.s3_server import s3_server
from support.served_catalogs import Served, glue_properties, hive_properties
from zonal.errors import TableError
from zonal.tables.iceberg import commit
from zonal.tables.iceberg.catalogs import tables_of
from zonal.verbs.explain import explain
from zonal.verbs.show import show

ROWS = telemetry(3000)


@contextmanager
def _glue(store, folder):  # noqa: ARG001 - all of it is at the server
    yield Served(glue_properties(store))


@contextmanager
def _hive(store, folder):  # noqa: ARG001 - its files are on a disk
    with closing(HiveServer()) as server:
        table = Served(hive_properties(server, folder))
        table.state = server.state
        yield table


@contextmanager
def _rest(store, folder):
    with closing(RestServer(store, folder)) as server:
        table = Served(server.properties, server.catalog)
        table.server = server
        yield table


@pytest.fixture
def home(request, tmp_path, monkeypatch):
    open_home = {"glue": _glue, "hive": _hive, "rest": _rest}[request.param]
    with s3_server(monkeypatch) as store, open_home(store, tmp_path) as found:
        yield found


every = pytest.mark.parametrize("home", ["glue", "hive", "rest"], indirect=True)
on_hive = pytest.mark.parametrize("home", ["hive"], indirect=True)


@every
def test_tables_are_listed_shown_and_explained(home):
    home.make(parts_of(ROWS, 3))
    assert tables_of("lake", home.properties) == ("iceberg:db.t",)
    assert show(home.name, **home.options).table.files == 3
    assert explain(home.name, where="x = 7", **home.options).files


@every
def test_a_table_is_clustered_beside_an_append(home):
    home.make(parts_of(ROWS, 6))
    more = telemetry(50, 1, first=9000)
    done = home.cluster(by=["x", "y"], target_file_size=20_000, runner=Meanwhile(lambda: home.append(more)))
    assert len(done.run.versions) == 1
    assert_same_rows(home.rows(), pa.concat_tables([ROWS, more]))


@every
def test_a_delete_meanwhile_is_kept(home):
    home.make(parts_of(ROWS, 6))
    done = home.cluster(by=["x", "y"], runner=Meanwhile(lambda: home.table.delete("id < 100")))
    assert done.run.conflicts
    assert_same_rows(home.rows(), ROWS.slice(100))


@on_hive
def test_an_answer_that_is_lost_is_known_by_the_snapshot(home):
    home.make(parts_of(ROWS, 6))
    home.state.lose_answers = 1
    done = home.cluster(by=["x", "y"], target_file_size=20_000)
    assert home.state.lose_answers == 0
    assert home.version() == done.run.versions[-1]
    assert_same_rows(home.rows(), ROWS)


@on_hive
def test_a_lock_that_another_job_holds_is_named(home, monkeypatch):
    home.make(parts_of(ROWS, 6))
    monkeypatch.setattr(commit, "ATTEMPTS", 2)
    part = LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname="db", tablename="t")
    held = home.state.lock(LockRequest(component=[part], user="other", hostname="h"))
    before = home.version()
    with pytest.raises(TableError, match=r"Another job holds the lock of 'db\.t'.*SHOW LOCKS"):
        home.cluster(by=["x", "y"])
    assert home.version() == before
    assert_same_rows(home.rows(), ROWS)
    home.state.unlock(held)
    assert home.cluster(by=["x", "y"]).run.versions


@pytest.mark.parametrize("home", ["rest"], indirect=True)
@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_commit_of_which_a_rest_catalog_doesnt_know_is_looked_up(home, status):
    home.make(parts_of(ROWS, 6))
    home.server.fault = status
    done = home.cluster(by=["x", "y"], target_file_size=20_000)
    assert home.server.fault is None
    assert home.version() == done.run.versions[-1]
    assert_same_rows(home.rows(), ROWS)
