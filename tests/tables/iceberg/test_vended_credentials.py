"""Credentials that a REST catalog vends with a table: renewed where zonal can ask, and told of where workers can't."""

import json
import logging
import pickle
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from support.cluster_tables import assert_same_rows, parts_of, telemetry
from support.local_runner import run_here
from support.rest_server import RestServer
from support.s3_server import s3_server
from support.served_catalogs import Served
from zonal.errors import TableError, ZonalError
from zonal.storage import loans
from zonal.verbs.audit import audit
from zonal.verbs.show import show

ROWS = telemetry(3000)
HOUR = 3600.0


@pytest.fixture
def store(monkeypatch):
    with s3_server(monkeypatch) as found:
        yield found


@pytest.fixture
def catalog(store, tmp_path):
    with closing(RestServer(store, tmp_path)) as found:
        yield found


class Vended(Served):
    """A table that zonal opens by the REST catalog, and that its writer keeps with keys of its own."""

    def __init__(self, server):
        self.server = server
        super().__init__(server.properties, server.catalog)

    def leftovers(self):
        known = {path.removeprefix(self.server.store.place) for path in self.paths_ever()}
        return [key for key in self.server.store.objects() if "/zonal-" in key and key not in known]


@pytest.fixture
def table(catalog):
    return Vended(catalog).make(parts_of(ROWS, 6))


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still, and can be put forward."""
    moment = [time.time()]
    monkeypatch.setattr(loans, "now", lambda: moment[0])

    def put_forward(seconds):
        moment[0] += seconds

    return put_forward


@pytest.fixture
def told(catalog, clock):  # noqa: ARG001 - tokens end by this clock
    """The catalog tells when a token ends."""
    catalog.ends = lambda: loans.now() + HOUR


def as_on_spark(meanwhile=lambda: None):
    """Return a runner that sends work to workers as Spark does, which can't ask the catalog."""

    def run(scan, writing, placement, splits, report):
        sent = pickle.loads(pickle.dumps((scan, writing)))  # noqa: S301 - our own
        meanwhile()
        return run_here(*sent, placement, splits, report)

    return run


def afterwards(runner, act):
    def run(*given):
        result = runner(*given)
        act()
        return result

    return run


@pytest.mark.usefixtures("told")
def test_a_job_that_outlives_its_token_is_committed_with_another(table, catalog, clock):
    def end():
        clock(HOUR)
        catalog.revoke()

    done = table.cluster(by=["x", "y"], target_file_size=20_000, runner=afterwards(as_on_spark(), end))
    assert len(done.run.versions) == 1
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_a_token_whose_end_nobody_told_is_replaced_when_it_is_refused(table, catalog):
    done = table.cluster(by=["x", "y"], target_file_size=20_000, runner=afterwards(as_on_spark(), catalog.revoke))
    assert len(done.run.versions) == 1
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


def test_every_job_begins_with_a_new_token(catalog, clock):
    table = Vended(catalog).make(parts_of(ROWS, 6), partition_by=["p"])
    catalog.ends = lambda: loans.now() + HOUR

    def end():
        clock(HOUR)
        catalog.revoke()

    done = table.cluster(
        by=["x"], target_file_size=10_000, commit_every=30_000, runner=afterwards(as_on_spark(), end)
    )  # fmt: skip
    assert len(done.run.versions) > 1
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


@pytest.mark.usefixtures("told")
def test_workers_whose_token_ends_say_when_and_what_to_do(table, catalog, clock):
    def end():
        clock(HOUR + 1)
        catalog.revoke()

    before = table.version()
    with pytest.raises(ZonalError, match=r"credentials that the catalog vended expired at 20\d\d-.* UTC.*commit_every"):
        table.cluster(by=["x", "y"], runner=as_on_spark(end))
    assert table.version() == before
    assert_same_rows(table.rows(), ROWS)
    assert table.leftovers() == []


@pytest.mark.usefixtures("told")
def test_work_in_this_process_goes_on_with_another_token(table, catalog, clock):
    def run(*given):
        clock(HOUR)
        catalog.revoke()
        return run_here(*given)

    table.cluster(by=["x", "y"], target_file_size=20_000, runner=run)
    assert_same_rows(table.rows(), ROWS)


def test_files_are_opened_again_where_a_token_is_refused_whose_end_nobody_told(table, catalog):
    def run(*given):
        catalog.revoke()
        return run_here(*given)

    table.cluster(by=["x", "y"], target_file_size=20_000, runner=run)
    assert_same_rows(table.rows(), ROWS)


@pytest.mark.usefixtures("told")
def test_a_catalog_is_asked_no_more_often_than_it_must_be(table, catalog):
    show(table.name, **table.options)
    assert catalog.loads == 1


def test_a_catalog_that_gives_no_other_token_is_told_of(clock):
    def refuse():
        raise TableError("no more.")

    loan = loans.Loan(
        {"s3.session-token": "a", "s3.session-token-expires-at-ms": str(int((loans.now() + 9) * 1000))}, refuse
    )
    assert loan.options() == {"s3.session-token": "a"}
    clock(8)
    assert loan.options() == {"s3.session-token": "a"}, "it isn't over yet"
    clock(8)
    with pytest.raises(TableError, match="vended have expired, and it gives no others: no more"):
        loan.options()


def test_a_catalog_whose_clock_is_behind_is_asked_once_in_a_while(clock):
    asked = []

    def ask():
        asked.append(1)
        return {"s3.session-token": "b", "s3.session-token-expires-at-ms": "1000"}

    loan = loans.Loan({"s3.session-token": "a", "s3.session-token-expires-at-ms": "1000"}, ask)
    for _ in range(20):
        clock(0.1)
        loan.options()
    assert len(asked) <= 2


def test_no_token_is_in_logs_errors_results_or_the_history(table, catalog, caplog, capfd, tmp_path):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ZonalError) as failed:
        table.cluster(by=["x", "y"], runner=as_on_spark(catalog.revoke))
    told = [str(failed.value), repr(failed.value), repr(table.plan(by=["x", "y"]))]
    told += [repr(table.cluster(by=["x", "y"])), repr(show(table.name, **table.options))]
    (tmp_path / "log.sql").write_text("SELECT * FROM t WHERE x = 7;\n")
    database = f"sqlite:///{tmp_path}/history.db"
    told += [repr(audit(table.name, queries=tmp_path / "log.sql", database=database, **table.options))]
    told += [caplog.text, *capfd.readouterr(), *texts_in(tmp_path)]
    told += [catalog.store.read(key).decode("latin-1") for key in catalog.store.objects()]
    assert (tmp_path / "history.db").exists()
    assert_none_is_told(told)


JOB = """
import json, os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from zonal import cluster
from zonal.spark.java import use_java
use_java()
place = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": sys.argv[2], "spark.eventLog.compress": "false",
         "spark.driver.host": "127.0.0.1"}
spark = SparkSession.builder.master("local[2]").config(map={**place, "spark.ui.enabled": "false"}).getOrCreate()
spark.sparkContext.setLogLevel("INFO")
done = cluster("iceberg:db.t", by=["x", "y"], spark=spark, catalog="lake", storage_options=json.loads(sys.argv[1]))
print(done.run.versions, done)
spark.stop()
"""


@pytest.mark.spark
def test_no_token_is_in_sparks_logs(table, catalog, tmp_path):
    (tmp_path / "events").mkdir()
    words = [sys.executable, "-c", JOB, json.dumps(catalog.properties), f"{tmp_path}/events"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert_same_rows(table.rows(), ROWS)
    events = [*texts_in(tmp_path / "events")]
    assert "MapInArrow" in "".join(events), "the job is in the log"
    assert_none_is_told([done.stdout, done.stderr, *events])


def texts_in(folder):
    return [path.read_bytes().decode("latin-1") for path in Path(folder).rglob("*") if path.is_file()]


def assert_none_is_told(texts):
    assert not [text for text in texts for secret in ("vended-token", "vended-secret", "VENDED-KEY") if secret in text]
