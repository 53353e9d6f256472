"""Databases of the history: which one is used, and how one that can't be used is told."""

import socket
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from sqlalchemy import create_engine, inspect

from support.history_records import AUDIT, RUN, new_postgres
from zonal.errors import ZonalError
from zonal.history import database as database_module
from zonal.history.database import within
from zonal.history.records import HistoryError
from zonal.history.store import History


def test_a_password_with_an_at_sign_is_refused_and_not_shown():
    with pytest.raises(HistoryError, match="write @ : / as %40") as caught:
        History.open("postgresql://u:sEc@ReT@127.0.0.1:1/d")
    assert "ReT" not in str(caught.value)


def test_a_server_that_says_nothing_is_not_waited_for_forever(monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.setattr(database_module, "_CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/d"
        with pytest.raises(HistoryError, match="can't be read"):
            History.open(url)


def test_a_database_of_a_small_alphabet_refuses_what_it_cannot_write(postgres):
    url = new_postgres(postgres, "ENCODING 'LATIN1' TEMPLATE template0")
    with History.open(url) as history:
        history.add_audit(replace(AUDIT, culprit="é"))
        with pytest.raises(HistoryError, match=r"can't be written: .*encod"):
            history.add_audit(replace(AUDIT, culprit="🜚"))
        assert [each.culprit for each in history.audits("/lake/events")] == ["é"]


def test_without_a_url_the_environment_names_the_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ZONAL_DATABASE", f"sqlite:///{tmp_path}/named.db")
    with History.open(None) as history:
        history.add_run(RUN)
    assert (tmp_path / "named.db").exists()


@pytest.mark.parametrize("named", [True, False])
def test_without_anything_it_is_in_the_users_state_folder_made_at_the_first_record(tmp_path, monkeypatch, named):
    monkeypatch.delenv("ZONAL_DATABASE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if named:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    else:
        monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    folder = tmp_path / ("state" if named else ".local/state") / "zonal"
    with History.open() as history:
        assert history.audits(AUDIT.location) == ()
        assert not folder.exists()
        history.add_audit(AUDIT)
    assert (folder / "history.db").is_file()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


SECRET = "hunter2/@"  # noqa: S105
QUOTED = "hunter2%2F%40"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            f"postgresql://user:{QUOTED}@127.0.0.1:1/lake",
            "can't be read.*Check that the database is reachable|No driver",
        ),
        (f"postgresql://127.0.0.1:1/lake?password={QUOTED}", "can't be read|No driver"),
        (f"postgresql://user:{QUOTED}@127.0.0.1:port/lake", "can't be read. Give sqlite:///PATH"),
        (f"user:{QUOTED}@nowhere", "can't be read. Give sqlite:///PATH"),
        (f"mongodb://user:{QUOTED}@host/x", "SQLAlchemy knows no database 'mongodb'"),
        (f"oracle+cx_oracle://user:{QUOTED}@host/x", "No driver for .*: install it, as in pip install 'cx_Oracle'"),
        (f"postgresql+asyncpg://user:{QUOTED}@host/x", "No driver for|asynchronous"),
        ("sqlite:///a\x00b", "can't be read"),
        ("", "can't be read"),
    ],
)
def test_a_database_that_cannot_be_used_is_told_without_its_password(url, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HistoryError, match=told) as caught:
        History.open(url).add_audit(AUDIT)
    error = caught.value
    assert isinstance(error, ZonalError)
    assert SECRET not in str(error)
    assert QUOTED not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.filterwarnings("ignore:Query string argument")
def test_a_password_that_the_server_quotes_is_hidden(tmp_path):
    (tmp_path / "h.db").touch()
    with (
        patch("zonal.history.store.version_of", side_effect=OSError(f"no access with {SECRET} here\nmore")),
        pytest.raises(HistoryError, match=r"no access with \*\*\* here\. Check") as caught,
    ):
        History.open(f"sqlite:///{tmp_path}/h.db?secret_key={QUOTED}")
    assert "more" not in str(caught.value)


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "h.db").write_bytes(b"This is a letter, and no database." * 100)
    with pytest.raises(HistoryError, match=r"h\.db' can't be read: file is not a database\."):
        History.open(f"sqlite:///{tmp_path}/h.db")


def test_a_folder_in_place_of_the_database_is_told(tmp_path):
    with pytest.raises(HistoryError, match="unable to open database file"):
        History.open(f"sqlite:///{tmp_path}")


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with (
        History.open(f"sqlite:///{tmp_path}/file/h.db") as history,
        pytest.raises(HistoryError, match="can't be written"),
    ):
        history.add_audit(AUDIT)


def test_a_database_of_other_things_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE letters (a TEXT)")
    with History.open(f"sqlite:///{path}") as history:
        assert history.audits(AUDIT.location) == ()
    assert inspect(create_engine(f"sqlite:///{path}")).get_table_names() == ["letters"]


def test_a_writer_waits_for_another_one(tmp_path):
    from threading import Timer

    url = f"sqlite:///{tmp_path}/h.db"
    with History.open(url) as history:
        history.add_audit(AUDIT)
        other = sqlite3.connect(tmp_path / "h.db", check_same_thread=False, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        timer = Timer(0.5, other.execute, ["COMMIT"])
        timer.start()
        history.add_audit(AUDIT)
        timer.join()
        assert len(history.audits("/lake/events")) == 2
        other.close()


def test_memory_is_a_database_too():
    with History.open("sqlite://") as history:
        history.add_audit(AUDIT)
        assert len(history.audits("/lake/events")) == 1


def test_a_relative_file_is_within_the_folder_that_names_it():
    folder = Path("/etc/zonal")
    assert within("sqlite:///h.db?timeout=5", folder) == "sqlite:////etc/zonal/h.db?timeout=5"
    for same in ("sqlite:////var/h.db", "sqlite://", "sqlite:///file:h.db?uri=true", "postgresql://u:p@h/d"):
        assert within(same, folder) == same
