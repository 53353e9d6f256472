"""Tables of a REST catalog, Iceberg's own fixture, with files in a bucket for which it vends credentials."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from typer.testing import CliRunner

from stores.programs import rest_catalog, served
from support.cluster_tables import Meanwhile, assert_same_rows, parts_of, telemetry
from support.local_runner import run_here
from support.s3_server import KEYS, s3_server
from support.served_catalogs import Served
from zonal.cli.app import app
from zonal.verbs.append import append
from zonal.verbs.audit import audit
from zonal.verbs.explain import explain
from zonal.verbs.show import show

pytestmark = pytest.mark.stores

ROWS = telemetry(3000)


@pytest.fixture
def store(monkeypatch):
    with s3_server(monkeypatch) as found:
        yield found


@pytest.fixture
def table(store, tmp_path):
    properties = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "uri": f"jdbc:sqlite:{tmp_path}/served.db",
        "jdbc.schema-version": "V1", "warehouse": f"{store.place}warehouse",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": store.url, "s3.path-style-access": "true",
        "s3.access-key-id": KEYS["aws_access_key_id"], "s3.secret-access-key": KEYS["aws_secret_access_key"],
        "client.region": "us-east-1", "include-credentials": "true",
    }  # fmt: skip
    file = tmp_path / "served.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    command = ["java", "-cp", rest_catalog(), "org.apache.iceberg.rest.LoopbackCatalog", "{}", file]
    with served(command, tmp_path) as url:
        given = {"type": "rest", "uri": url, "s3.endpoint": store.url, "s3.region": "us-east-1"}
        writer = load_catalog("theirs", **(given | store.properties))
        yield Served(given, writer).make(parts_of(ROWS, 6))


def command(table, *words):
    given = [word for name, value in table.properties.items() for word in ("--storage-option", f"{name}={value}")]
    done = CliRunner().invoke(app, [*words, *given], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_tables_are_listed_shown_explained_advised_and_audited(table, tmp_path):
    assert "iceberg:db.t" in command(table, "tables", "lake").splitlines()
    assert show(table.name, **table.options).table.files == 6
    assert explain(table.name, where="x = 7", **table.options).files
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE x = 7;\n" * 5)
    advised = json.loads(
        command(table, "advise", table.name, "--catalog", "lake", "--queries", str(log), "--output", "json")
    )
    assert advised["table"]
    assert audit(table.name, queries=log, **table.options)


def test_a_table_is_clustered_beside_an_append(table):
    more = telemetry(50, 1, first=9000)
    done = table.cluster(by=["x", "y"], target_file_size=20_000, runner=Meanwhile(lambda: table.append(more)))
    assert len(done.run.versions) == 1
    assert_same_rows(table.rows(), pa.concat_tables([ROWS, more]))


def test_a_delete_meanwhile_is_kept(table):
    done = table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.table.delete("id < 100")))
    assert done.run.conflicts
    assert_same_rows(table.rows(), ROWS.slice(100))


def test_rows_are_appended(table, tmp_path):
    more = telemetry(500, 1, first=9000)
    pq.write_table(more, tmp_path / "more.parquet")
    table.cluster(by=["x", "y"])
    append(table.name, str(tmp_path / "more.parquet"), spark=run_here, **table.options)
    assert_same_rows(table.rows(), pa.concat_tables([ROWS, more]))
