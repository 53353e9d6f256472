"""Locations that can't be opened, told in time with cause, server and what to check; options, none of them ignored."""

import os
import pickle
import re
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from pyiceberg import io as pyiceberg_io
from typer.testing import CliRunner

import zonal
from support.delta_tables import LogWriter, add, field, metadata, protocol
from zonal.cli.app import app
from zonal.errors import TableError
from zonal.storage import Storage, connection
from zonal.storage.arguments import azure_arguments, s3_arguments
from zonal.storage.causes import cause_of, hidden
from zonal.storage.location import catalog_hint
from zonal.storage.options import Given, check_options, for_pyiceberg, needs_pyiceberg
from zonal.storage.secrets import revealed
from zonal.tables.iceberg.io import StoredFileIO, opened_by_storage
from zonal.tables.registry import open_destination, open_table

HEAD = (protocol(), metadata(field("x", "long")))
SECRET = "aHVudGVyMmh1bnRlcjI="  # noqa: S105
KEYS = {"aws_access_key_id": "me", "aws_secret_access_key": SECRET, "aws_region": "us-east-1"}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Keep what this machine's environment says of stores out."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    connection._connect.cache_clear()


@pytest.fixture
def closed():
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent(monkeypatch):
    """A server that takes connections and never answers; nobody waits for it longer than needed."""
    monkeypatch.setattr(connection, "PATIENCE", 1.0)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@dataclass(frozen=True)
class Request:
    """A request that a server heard."""

    line: str
    authorization: str

    @property
    def signer(self):
        """The key that signed it."""
        found = re.search("Credential=([^/]+)/", self.authorization)
        return found and found[1]


@contextmanager
def answering(files=(), *, status=404, body=b""):
    """A server that has some files, as S3 has them, and answers everything else with a status; yields all requests."""
    files = dict(files)
    heard = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append(Request(f"{self.command} {self.path}", self.headers.get("Authorization", "")))
            data = files.get(self.path.partition("?")[0])
            first, found = 0, body if data is None else data
            if data is not None and (asked := self.headers.get("Range")):
                start, stop = asked.removeprefix("bytes=").split("-")
                first = int(start) if start else max(0, len(data) - int(stop))
                found = data[first : int(stop) + 1] if start else data[first:]
            self.send_response(status if data is None else 206 if self.headers.get("Range") else 200)
            if data is not None and self.headers.get("Range"):
                self.send_header("Content-Range", f"bytes {first}-{first + len(found) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(found)))
            self.send_header("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
            self.end_headers()
            self.wfile.write(found if self.command == "GET" else b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()


def failed(work) -> str:
    with pytest.raises(TableError) as caught:
        work()
    assert SECRET not in str(caught.value)
    return str(caught.value)


# --- stores that don't answer ----------------------------------------------------------------------------------------

DEAD = {
    "s3": ("s3://box/t", lambda url: KEYS | {"aws_endpoint_url": url}, "s3://box", "aws_endpoint_url"),
    "gs": ("gs://box/t", lambda url: {"google_endpoint_url": url}, "gs://box", "google_endpoint_url"),
    "azure": (
        "abfss://box/t",
        lambda url: {"azure_endpoint": url, "azure_storage_account_name": "acc", "azure_storage_account_key": SECRET},
        "abfss://box",
        "azure_endpoint",
    ),
}


@pytest.mark.parametrize("store", DEAD)
def test_a_server_that_never_answers_is_named_in_time_with_what_to_check(store, silent):
    location, options, bucket, check = DEAD[store]
    message = failed(lambda: open_table(location, storage_options=options(silent)))
    assert bucket in message
    assert silent in message
    assert check in message
    assert "Timeout was reached" in message or "didn't answer within 1 seconds" in message


def test_a_closed_port_is_named_with_its_cause(closed):
    message = failed(lambda: open_table("s3://box/t", storage_options=KEYS | {"aws_endpoint_url": closed}))
    assert f"'s3://box' at {closed}: NETWORK_CONNECTION: curlCode: 7" in message
    assert "AWS_ENDPOINT_URL" in message


@pytest.mark.parametrize("verb", ["show", "explain", "advise", "audit", "cluster"])
def test_every_verb_says_so(verb, closed, tmp_path):
    log = tmp_path / "log.sql"
    log.write_text("SELECT 1;")
    more = {
        "show": [],
        "explain": ["--where", "x = 1"],
        "advise": ["--queries", str(log)],
        "audit": ["--queries", str(log), "--no-database"],
        "cluster": ["--by", "x", "--dry-run"],
    }[verb]
    given = [word for name, value in KEYS.items() for word in ("--storage-option", f"{name}={value}")]
    words = [verb, "s3://box/t", "--storage-option", f"aws_endpoint_url={closed}", *given, *more]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, TableError)
    assert f"at {closed}" in str(done.exception)
    assert SECRET not in str(done.exception)


def test_reading_and_copying_say_so(closed, tmp_path):
    options = KEYS | {"aws_endpoint_url": closed}
    assert closed in failed(lambda: zonal.read(None, "s3://box/t", storage_options=options))
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    copy = {"by": ["x"], "into": "delta:s3://box/t", "storage_options": options, "database": None}
    assert closed in failed(lambda: zonal.cluster(str(tmp_path), **copy))


def test_files_in_a_store_that_does_not_answer_fail_once_and_then_at_once(closed, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", closed)
    asked = []
    real = connection.connect
    monkeypatch.setattr("zonal.storage.connect", lambda store, path: asked.append(store) or real(store, path))
    log = LogWriter(tmp_path / "t").commit(*HEAD, add("s3://nobody/a"), add("s3://nobody/b"))
    table = open_table(str(log), storage_options=KEYS)
    for path in table.snapshot().files.paths.to_pylist():
        assert "'s3://nobody' at" in failed(lambda path=path: table.open_file(path))
    assert len(asked) == 1


def test_that_access_is_denied_is_an_answer_with_its_own_advice():
    with answering(status=403) as (url, _):
        options = KEYS | {"aws_endpoint_url": url}
        message = failed(lambda: open_table("s3://box/t", storage_options=options))
        assert "ACCESS_DENIED" in message
        assert url in message
        assert "aws_access_key_id" in message
        storage = Storage("s3://box/t", options)
        assert storage.locate("s3://box/t/a")[1] == "box/t/a"  # another file may be allowed


def test_azure_without_credentials_is_told_and_no_traceback(monkeypatch):
    def lacking(*_):
        raise pa.ArrowException(
            "Unknown error: Check failed: N5Azure9ExceptionE: Failed to get token from DefaultAzureCredential."
        )

    monkeypatch.setattr(connection, "_probe", lacking)
    message = failed(lambda: open_table("abfss://box@acc.dfs.core.windows.net/t"))
    assert "https://acc.dfs.core.windows.net: Failed to get token from DefaultAzureCredential. Check" in message
    assert "azure_storage_sas_token" in message


@pytest.mark.parametrize(("az", "ways"), [(None, "prod"), ("/bin/az", None)])
def test_azure_runs_az_only_where_it_is_there(monkeypatch, az, ways):
    monkeypatch.setattr(connection.shutil, "which", lambda _: az)
    monkeypatch.setattr(pyarrow.fs, "AzureFileSystem", lambda **_: os.environ.get("AZURE_TOKEN_CREDENTIALS"))
    assert connection._azure({}) == ways


def test_work_that_never_ends_is_left_alone():
    never = threading.Event()
    with pytest.raises(TimeoutError):
        connection.within(0.05, never.wait)
    assert connection.within(5, lambda: 3) == 3
    with pytest.raises(KeyError):
        connection.within(5, lambda: {}["x"])
    never.set()


Disk = type("Disk", (pa.fs.LocalFileSystem,), {"of": lambda self, _: self})


def test_long_jobs_get_other_limits_than_the_first_answer(monkeypatch):
    made = []
    monkeypatch.setattr(connection, "RangedS3", lambda **given: made.append(given) or Disk())
    monkeypatch.setattr(pa.fs, "GcsFileSystem", lambda **given: made.append(given) or pa.fs.LocalFileSystem())
    Storage("s3://box/t", KEYS).locate("s3://box/t")
    Storage("gs://box/t", {"google_skip_signature": "true"}).locate("gs://box/t")
    hasty, s3, first, gcs = made
    assert hasty["request_timeout"] < connection.PATIENCE
    assert "request_timeout" not in s3
    assert s3["retry_strategy"].max_attempts > hasty["retry_strategy"].max_attempts
    assert first["retry_time_limit"] < gcs["retry_time_limit"]


def test_the_region_of_a_bucket_is_asked_for_where_the_environment_has_another(monkeypatch):
    made = []
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(connection, "RangedS3", lambda **given: made.append(given) or Disk())
    monkeypatch.setattr(pa.fs, "resolve_s3_region", lambda bucket: f"region-of-{bucket}")
    monkeypatch.setattr(
        connection, "_probe", lambda *_: OSError("AWS Error UNKNOWN (HTTP status 301) during HeadObject")
    )
    Storage("s3://box/t", {}).locate("s3://box/t")
    assert [given.get("region") for given in made] == [None, "region-of-box"]


# --- Iceberg ---------------------------------------------------------------------------------------------------------


def test_a_server_that_never_answers_is_named_for_iceberg_too(silent):
    location = "s3://box/t/metadata/0.metadata.json"
    message = failed(lambda: open_table(location, storage_options=KEYS | {"aws_endpoint_url": silent}))
    assert f"'s3://box' at {silent}" in message


def test_iceberg_files_are_opened_with_the_same_options():
    with answering({"/box/a": b"hello"}) as (url, _):
        files = StoredFileIO(for_pyiceberg(KEYS | {"aws_endpoint_url": url}))
        with files.new_input("s3a://box/a").open() as stream:
            assert stream.read() == b"hello"


def test_iceberg_files_are_written_and_removed_in_the_store(tmp_path, monkeypatch):
    """A file that isn't there yet is no reason to open it elsewhere."""
    (tmp_path / "box").mkdir()
    disk = pa.fs.SubTreeFileSystem(str(tmp_path), pa.fs.LocalFileSystem())
    monkeypatch.setattr("zonal.storage.connect", lambda *_: disk)
    files = StoredFileIO({})
    with files.new_output("s3://box/a").create() as sink:
        sink.write(b"hello")
    assert (tmp_path / "box" / "a").read_bytes() == b"hello"
    assert not files.new_input("s3://box/b").exists()
    files.delete(files.new_input("s3://box/a"))
    assert not (tmp_path / "box" / "a").exists()


def test_the_endpoint_of_the_environment_holds_for_iceberg(closed, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", closed)
    assert closed in failed(lambda: open_table("s3://box/t/0.metadata.json", storage_options=KEYS))


def test_a_catalog_that_never_answers_is_named_in_time(silent, monkeypatch):
    monkeypatch.setattr("zonal.tables.iceberg.catalogs.PATIENCE", 0.2)
    options = {"type": "rest", "uri": silent, "token": SECRET}
    message = failed(lambda: open_table("iceberg:db.t", catalog="far", storage_options=options))
    assert f"at {silent} didn't answer within 0.2 seconds" in message


def test_classes_and_options_that_only_others_know_leave_files_to_them():
    assert opened_by_storage({"s3.region": "eu"})["py-io-impl"].endswith("StoredFileIO")
    assert opened_by_storage({"py-io-impl": "mine.IO"}) == {"py-io-impl": "mine.IO"}
    assert needs_pyiceberg({"adls.connection-string": "x"})


# --- names that people type ------------------------------------------------------------------------------------------

TYPED = {
    "dbfs:/mnt/t": "'/dbfs/mnt/t'",
    "wasbs://box@acc.blob.core.windows.net/t": "'abfss://box@acc.dfs.core.windows.net/t'",
    "adl://acc.azuredatalakestore.net/t": "abfss://CONTAINER@",
    "s3:bucket/t": "'s3://bucket/t'",
    "s3:/bucket/t": "'s3://bucket/t'",
    "s3a//bucket/t": "'s3://bucket/t'",
    "gs:bucket/t": "'gs://bucket/t'",
    "s3:///t": "names no bucket",
    "abfss://box/t": "azure_storage_account_name",
    "abfss://acc.dfs.core.windows.net/box/t": "abfss://box@acc.dfs.core.windows.net/t",
    "https://box.s3.eu-west-1.amazonaws.com/t": "'s3://box/t'",
    "https://s3.amazonaws.com/box/t": "'s3://box/t'",
    "https://storage.googleapis.com/box/t": "'gs://box/t'",
    "https://acc.blob.core.windows.net/box/t": "'abfss://box@acc.dfs.core.windows.net/t'",
    "http://minio:9000/box/t": "aws_endpoint_url=http://minio:9000",
    "C:\\lake\\t": "/mnt/c/lake/t",
    "C:/lake/t": "/mnt/c/lake/t",
    "\\\\server\\share": "mount the share",
    "minio://box/t": "s3://BUCKET/PATH",
    "main.sales.events": "iceberg:main.sales.events (with catalog, where",
    "sales.events": "iceberg:sales.events,",
    "https://host/t/0.metadata.json": "object store",
    "iceberg:s3://box/t": "metadata.json",
    "hdfs://host:1/t": "CLASSPATH",
}


@pytest.mark.parametrize("name", TYPED)
def test_other_names_are_refused_with_what_to_write_instead(name):
    assert TYPED[name] in failed(lambda: open_table(name).snapshot())


def test_a_local_file_may_have_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("s3:t", "main.sales.events", "C:"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / name / "a.parquet")
        assert len(open_table(name).snapshot().files) == 1
    assert not catalog_hint("missing.parquet")


def test_credentials_are_in_no_message():
    text = f"GET https://me:{SECRET}@host/x?sig={SECRET} with {SECRET}"
    assert SECRET not in hidden(text, [SECRET])
    assert cause_of(OSError(text), [SECRET]) == "GET https://…@host/x?… with …"
    message = failed(lambda: open_table(f"ftp://me:{SECRET}@host/t?x={SECRET}"))
    assert "'ftp://host/t'" in message
    assert SECRET not in repr(Storage(f"s3://me:{SECRET}@box/t", {})._stores)


# --- options ---------------------------------------------------------------------------------------------------------


def test_the_environments_endpoint_holds_beside_options_and_options_win(closed, monkeypatch):
    data = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1, 2, 3]}), data)
    with answering({"/box/a.parquet": data.getvalue().to_pybytes()}) as (url, heard):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        assert open_table("parquet:s3://box/a.parquet", storage_options=KEYS).snapshot().files.rows.tolist() == [3]
        assert heard
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", closed)
        assert closed in failed(lambda: open_table("parquet:s3://box/a.parquet", storage_options=KEYS))
        given = KEYS | {"s3.endpoint": url}
        assert open_table("parquet:s3://box/a.parquet", storage_options=given).snapshot().files.rows.tolist() == [3]


def test_workers_get_the_drivers_endpoint(closed, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", closed)
    sent = pickle.dumps(Storage("s3://box/t", KEYS))
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert closed in failed(lambda: pickle.loads(sent).locate("s3://box/t/a"))  # noqa: S301


def test_a_location_may_hold_options_and_given_ones_win():
    storage = Storage("s3://me:pa%2Fss@box/t?region=eu-west-1", {"aws_access_key_id": "other"})
    found = dict(storage.store_at("s3://box/t").arguments)
    assert found == {"access_key": "other", "secret_key": "pa/ss", "region": "eu-west-1"}
    assert "'regoin'" in failed(lambda: Storage("s3://box/t?regoin=x", {}))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"aws_acess_key_id": SECRET}, "Did you mean 'aws_access_key_id'"),
        ({"aws_web_identity_token_file": "x"}, "Set AWS_WEB_IDENTITY_TOKEN_FILE"),
        ({"delta_dynamo_table_name": "x"}, "no locks in DynamoDB"),
        ({"azure_storage_token": SECRET}, "azure_storage_sas_token"),
        ({"aws_s3_allow_unsafe_rename": "true"}, "Leave it out"),
        ({"uri": "x"}, "is for an Iceberg table"),
    ],
)
def test_options_that_nothing_uses_are_refused_before_any_work(options, what, tmp_path):
    assert what in failed(lambda: open_table(str(tmp_path / "nothing"), storage_options=options))
    if "uri" not in options:
        assert what in failed(lambda: open_table("iceberg:db.t", catalog="none", storage_options=options))
        assert what in failed(lambda: open_destination("delta:x", storage_options=options))


def test_options_of_every_store_and_of_catalogs_are_known():
    check_options(
        dict.fromkeys(("aws_region", "allow_http", "azure_storage_account_key", "gcs.project-id"), "x"), iceberg=False
    )
    names = {
        getattr(pyiceberg_io, name) for name in dir(pyiceberg_io) if name.startswith(("S3_", "GCS_", "ADLS_", "AWS_"))
    }
    check_options(dict.fromkeys(names - {"v1/aws/s3/sign"} | {"uri", "header.x", "glue.region"}, "x"), iceberg=True)
    check_options({"anything": "x", "py-catalog-impl": "mine.Catalog"}, iceberg=True)


def test_names_of_delta_rs_reach_pyiceberg_by_its_own():
    given = {"AWS_ENDPOINT_URL": "http://a", "s3.region": "b", "aws_region": "c", "token": "t", "client.region": "d"}
    assert for_pyiceberg(given) == {
        "s3.endpoint": "http://a", "s3.region": "b", "token": "t", "client.region": "d",
    }  # fmt: skip


def test_azure_hosts_are_taken_from_the_location_or_the_endpoint():
    def hosts(host, **options):
        found = azure_arguments(Given((options,)), host)
        return found["account_name"], found.get("blob_storage_authority"), found.get("dfs_storage_authority")

    assert hosts("c@acc.dfs.core.windows.net") == ("acc", None, None)
    assert hosts("c@acc.dfs.core.usgovcloudapi.net") == (
        "acc", ".blob.core.usgovcloudapi.net", ".dfs.core.usgovcloudapi.net",
    )  # fmt: skip
    emulator = "127.0.0.1:10000"
    assert hosts("c", azure_storage_use_emulator="true") == ("devstoreaccount1", emulator, emulator)
    assert hosts(f"c@{emulator}", account_name="a", allow_http="true") == ("a", emulator, emulator)
    assert hosts("c", account_name="a", azure_endpoint="http://h:1/a") == ("a", "h:1", "h:1")


def test_roles_timeouts_and_plain_http_are_honored():
    given = {"aws_role_arn": "arn", "s3.connect-timeout": "7", "allow_http": "true", "endpoint": "minio:9000"}
    assert s3_arguments(Given((given,))) == {
        "role_arn": "arn", "connect_timeout": 7.0, "endpoint_override": "minio:9000", "scheme": "http",
    }  # fmt: skip
    assert "not a number of seconds" in failed(lambda: s3_arguments(Given(({"s3.connect-timeout": "soon"},))))


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_values_may_stand_in_the_environment_or_a_file(tmp_path, monkeypatch):
    (tmp_path / "key").write_text("from-file\n")
    monkeypatch.setenv("LAKE_KEY", "from-environment")
    given = {"aws_access_key_id": "@env:LAKE_KEY", "aws_secret_access_key": f"@file:{tmp_path}/key", "aws_region": "x"}
    assert revealed(given) == {
        "aws_access_key_id": "from-environment", "aws_secret_access_key": "from-file", "aws_region": "x",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "what"), [("@env:LAKE_NONE", "'LAKE_NONE', which isn't set"), ("@file:/nowhere/key", "No such file")]
)
def test_a_value_that_is_not_there_is_named_before_any_work(value, what, closed):
    options = KEYS | {"aws_endpoint_url": closed, "aws_secret_access_key": value}
    assert what in failed(lambda: open_table("delta:s3://box/t", storage_options=options))
    assert what in failed(lambda: open_destination("delta:s3://box/t", storage_options=options))


def test_a_profile_signs_requests(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = other\naws_secret_access_key = s\n[lake]\n"
                    "aws_access_key_id = of-lake\naws_secret_access_key = s\n")  # fmt: skip
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    with answering({"/box/a": b"hello"}) as (url, heard):
        options = {"aws_profile": "lake", "aws_region": "us-east-1", "aws_endpoint_url": url}
        filesystem, path = Storage("s3://box/t", options).locate("s3://box/a")
        assert filesystem.open_input_stream(path).read() == b"hello"
    assert {request.signer for request in heard} == {"of-lake"}
    assert "AWS_PROFILE" not in os.environ


def test_a_key_file_of_google_is_read_here_and_given_to_the_client(tmp_path, monkeypatch):
    (tmp_path / "key.json").write_text('{"type": "service_account"}')
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    seen = []

    def client(**_):
        path = Path(os.environ["GOOGLE_APPLICATION_CREDENTIALS"])
        seen.append((path.read_text(), path.stat().st_mode & 0o777))
        return pa.fs.LocalFileSystem()

    monkeypatch.setattr(pa.fs, "GcsFileSystem", client)
    storage = pickle.loads(pickle.dumps(Storage("gs://box/t", {"google_service_account": f"{tmp_path}/key.json"})))  # noqa: S301
    (tmp_path / "key.json").unlink()
    storage.locate("gs://box/t")
    assert set(seen) == {('{"type": "service_account"}', 0o600)}
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in os.environ
    assert "service_account" not in repr(storage._stores)
