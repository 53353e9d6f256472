"""In an object store a name is given once, whoever asks for it; without obstore that is said before any work."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.cluster_tables import never, parts_of, telemetry
from support.commit_race import check_race
from support.s3_server import CUT, Fault
from support.store_tables import StoredDelta
from zonal.cli.app import app
from zonal.errors import CommitUnknownError, TableError
from zonal.storage import Storage, objects
from zonal.storage.credentials import s3_credentials
from zonal.storage.exclusive import exclusive_folder
from zonal.storage.store import Store

pytest.importorskip("obstore", reason="obstore needs Python 3.11")

PROCESSES, COMMITS = 8, int(os.environ.get("ZONAL_RACE_COMMITS", "4"))
"""More than these take minutes: `ZONAL_RACE_COMMITS=50` ran once for the record."""


@pytest.fixture
def folder(server):
    return exclusive_folder(Storage("s3://box/t", server.options), "s3://box/t/_delta_log")


def put(folder, name="a", text="mine"):
    return folder.put_if_absent(name, text, sending=lambda: None)


def test_of_many_processes_one_gets_each_version(server):
    check_race(server, processes=PROCESSES, commits=COMMITS)


def test_a_taken_name_stays_as_it_is(folder, server):
    assert put(folder)
    assert not put(folder, text="theirs")
    assert server.read("t/_delta_log/a") == b"mine"


def test_a_store_is_checked_once(folder, server):
    for name in "abc":
        put(folder, name)
    assert sum("/.zonal-" in request for request in server.heard if request.startswith("PUT")) == 2
    assert server.objects() == ["t/_delta_log/a", "t/_delta_log/b", "t/_delta_log/c"]


def test_an_object_that_is_gone_was_not_overwritten(folder, server):
    """Another writer makes a checkpoint right after a commit, and removes the versions before it."""
    put(folder)
    server.client.delete_object(Bucket="box", Key="t/_delta_log/a")
    assert not folder.is_overwritten("a", "mine")
    server.client.put_object(Bucket="box", Key="t/_delta_log/a", Body=b"theirs")
    assert folder.is_overwritten("a", "mine")


def test_an_interrupt_during_the_request_leaves_the_outcome_open(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    folder.check()
    monkeypatch.setattr(objects.Objects, "create", interrupted)
    with pytest.raises(CommitUnknownError, match="KeyboardInterrupt"):
        put(folder)


def test_denied_access_is_named_with_what_to_check(folder, server):
    server.faults = [Fault("PUT", "/box", "403 Forbidden", times=99, code="AccessDenied")]
    with pytest.raises(TableError, match=r"(?s)Can't write to 's3://box/t/_delta_log'.*403.*Check the credentials"):
        folder.check()


def test_an_answer_that_is_lost_during_the_check_is_no_refusal(folder, server):
    server.faults = [Fault("PUT", ".zonal-", CUT, after=True)]
    folder.check()
    assert server.objects() == []


# --- without obstore -------------------------------------------------------------------------------------------------


@pytest.fixture
def lacking(monkeypatch):
    real = objects.find_spec
    monkeypatch.setattr(objects, "find_spec", lambda name: None if name == "obstore" else real(name))


@pytest.mark.usefixtures("lacking")
def test_without_obstore_a_rewrite_is_refused_before_any_work(server):
    table = StoredDelta(server).make(parts_of(telemetry(100), 2))
    with pytest.raises(TableError, match=r"can't be rewritten.*pip install 'zonal\[stores\]'"):
        table.cluster(by=["x"], runner=never)
    with pytest.raises(TableError, match=r"pip install 'zonal\[stores\]'"):
        table.cluster(by=["x"], into="delta:s3://box/copy", runner=never)


@pytest.mark.usefixtures("lacking")
def test_show_and_advise_say_so_before_they_recommend_it(server, tmp_path):
    table = StoredDelta(server).make(parts_of(telemetry(2000), 8))
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE x = 7;\n" * 5)
    given = [word for name, value in server.options.items() for word in ("--storage-option", f"{name}={value}")]
    for words in (["show", table.name], ["advise", table.name, "--queries", str(log)]):
        done = CliRunner().invoke(app, [*words, *given], env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.output
        assert "pip install 'zonal[stores]'" in done.output, words


def test_hdfs_has_no_conditional_writes():
    assert "can't commit on hdfs://" in objects.unavailable("hdfs")


# --- what obstore is given -------------------------------------------------------------------------------------------


def test_keys_of_options_are_not_mixed_with_those_of_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another key")
    found = s3_credentials({"access_key": "k", "secret_key": "s"}, "us-east-1")()
    assert found == {"access_key_id": "k", "secret_access_key": "s", "token": None, "expires_at": None}


def test_profiles_are_read_as_aws_reads_them(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    file.write_text("[lake]\naws_access_key_id = of-lake\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "lake")
    assert s3_credentials({}, "us-east-1")()["access_key_id"] == "of-lake"


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        (Store("gs", "box", (("anonymous", True),)), "GCSStore"),
        (Store("gs", "box", (("endpoint_override", "h:1"), ("scheme", "http"), ("access_token", "t"))), "GCSStore"),
        (Store("abfss", "box@a.dfs.core.windows.net", (("account_name", "a"), ("account_key", "aw=="))), "AzureStore"),
        (Store("abfss", "box", (("account_name", "a"), ("blob_storage_authority", "h:1"))), "AzureStore"),
    ],
)
def test_other_stores_are_opened_by_the_same_arguments(store, shown):
    assert shown in repr(objects.Objects(store, "t")._opened)


def test_the_only_door_to_obstore_is_one_module():
    source = Path(objects.__file__).parents[1]
    found = {path.name for path in source.rglob("*.py") if "import obstore" in path.read_text()}
    assert found == {"objects.py"}
