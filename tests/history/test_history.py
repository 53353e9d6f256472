"""What the history keeps, in SQLite and in PostgreSQL: the same laws hold in both."""

import multiprocessing
import os
import socket
import sqlite3
import stat
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.dialects import mssql, mysql
from sqlalchemy.schema import CreateIndex, CreateTable

from support import postgres_server
from zonal.errors import ZonalError
from zonal.history import database as database_module
from zonal.history import schema
from zonal.history.database import within
from zonal.history.records import AuditRecord, HistoryError, RunRecord
from zonal.history.store import History

NOON = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=timezone.utc)
AUDIT = AuditRecord(
    table="delta:/lake/events",
    location="/lake/events",
    format="delta",
    version=2**63 - 1,
    audited=NOON,
    queries=1000,
    ratio=0.125,
    byte_ratio=0.1,
    file_share=0.01,
    byte_share=0.02,
    partition_byte_share=0.2,
    selectivity=None,
    fresh_share=0.015,
    excess_share=0.9,
    alerts=("files read rose", "0.4 is above 0.3"),
    culprit="version 12 widened payload_id 57 times",
    layout="zorder(ts, payload_id)",
)
RUN = RunRecord(
    table="events",
    location="/lake/events",
    format="delta",
    version=13,
    finished=NOON + timedelta(hours=1),
    run="0f" * 16,
    layout="zorder(ts, payload_id)",
    rows=10**12,
    removed_files=9,
    removed_bytes=2**62,
    added_files=3,
    added_bytes=5,
    queries=None,
    share_before=None,
    share_predicted=0.1,
    share_after=0.11,
    seconds=12.5,
    predicted_files=4,
    predicted_bytes=6,
)
NUMBERS = count()


@pytest.fixture(scope="session")
def postgres():
    if reason := postgres_server.reason_not_to():
        pytest.skip(reason)
    with postgres_server.server() as folder:
        yield folder


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """The URL of a database with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    return new_postgres(request.getfixturevalue("postgres"))


def new_postgres(folder, options=""):
    name = f"history_{next(NUMBERS)}"
    admin = create_engine(
        f"postgresql+psycopg://zonal@/postgres?host={folder}", isolation_level="AUTOCOMMIT", pool_size=1
    )
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} {options}"))
    admin.dispose()
    return f"postgresql://zonal@/{name}?host={folder}"


def engine_of(url):
    return create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def test_records_come_back_as_they_were(database):
    with History.open(database) as history:
        history.add_audit(AUDIT)
        history.add_run(RUN)
    with History.open(database) as history:
        assert history.audits("/lake/events") == (AUDIT,)
        assert history.runs("/lake/events") == (RUN,)


def test_times_come_back_in_utc_to_the_microsecond(database):
    east = timezone(timedelta(hours=5, minutes=45))
    with History.open(database) as history:
        history.add_audit(replace(AUDIT, audited=NOON.astimezone(east)))
        (found,) = history.audits("/lake/events")
    assert found.audited == NOON
    assert found.audited.utcoffset() == timedelta(0)


def test_the_newest_records_are_given_oldest_first(database):
    with History.open(database) as history:
        for hour in (3, 1, 4, 0, 2):
            history.add_audit(replace(AUDIT, audited=NOON + timedelta(hours=hour), queries=hour))
            history.add_run(replace(RUN, finished=NOON + timedelta(hours=hour), rows=hour))
        assert [each.queries for each in history.audits("/lake/events", limit=3)] == [2, 3, 4]
        assert [each.rows for each in history.runs("/lake/events", limit=2)] == [3, 4]
        assert len(history.audits("/lake/events", limit=10**30)) == 5


def test_audits_of_one_moment_keep_the_order_in_which_they_were_added(database):
    with History.open(database) as history:
        for number in range(5):
            history.add_audit(replace(AUDIT, queries=number))
        assert [each.queries for each in history.audits("/lake/events")] == [0, 1, 2, 3, 4]


def test_tables_with_almost_the_same_location_are_kept_apart(database):
    locations = ["/lake/events", "/lake/Events", "/lake/events ", "/lake/événts", "/lake/%", "/" + "x" * 100_000]
    with History.open(database) as history:
        for number, location in enumerate(locations):
            history.add_audit(replace(AUDIT, location=location, queries=number))
        for number, location in enumerate(locations):
            assert [each.queries for each in history.audits(location)] == [number], location[:50]
        assert history.audits("/lake/event_") == ()


def test_reading_where_there_is_no_history_finds_nothing_and_makes_nothing(database):
    with History.open(database) as history:
        assert history.audits("/lake/events") == ()
        assert history.runs("/lake/events") == ()
    if database.startswith("sqlite"):
        assert not Path(make_url(database).database).exists()
    else:
        assert inspect(engine_of(database)).get_table_names() == []


def test_a_history_that_another_process_makes_later_is_seen(database):
    with History.open(database) as reader, History.open(database) as writer:
        assert reader.audits("/lake/events") == ()
        writer.add_audit(AUDIT)
        assert len(reader.audits("/lake/events")) == 1


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


@pytest.mark.parametrize(("column", "told"), [("ratio", "which is no number"), ("audited", "can't be read")])
def test_rows_that_were_damaged_are_told(tmp_path, column, told):
    url = f"sqlite:///{tmp_path}/h.db"
    with History.open(url) as history:
        history.add_audit(AUDIT)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE zonal_audits SET {column} = 'abc'"))
    with History.open(url) as history, pytest.raises(HistoryError, match=told):
        history.audits("/lake/events")


HOSTILE = [
    "'; DROP TABLE zonal_audits; --",
    "zero \x00 byte",
    "half \udc80",
    "\x1b[31m",
    "%s :name ? {x}",
    "🜚" * 1000,
    "",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_are_kept_and_found_again(database, hostile):
    kept = hostile.replace("\x00", "\\x00").replace("\udc80", "\\udc80")
    with History.open(database) as history:
        history.add_audit(replace(AUDIT, table=hostile, location=hostile, culprit=hostile, alerts=(hostile,)))
        (found,) = history.audits(hostile)
        history.add_run(replace(RUN, location=hostile, layout=hostile))
        assert history.runs(hostile)[0].layout == kept
    assert (found.table, found.location, found.culprit, found.alerts) == (kept, kept, kept, (kept,))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"ratio": float("nan")}, "ratio=nan"),
        ({"byte_share": float("inf")}, "byte_share=inf"),
        ({"version": 2**63}, "version=9223372036854775808 has more than 64 bits"),
        ({"audited": datetime(2026, 1, 1)}, "audited=2026-01-01 00:00:00 has no time zone"),
    ],
)
def test_what_no_database_can_store_is_refused_by_name(database, changed, named):
    with History.open(database) as history:
        with pytest.raises(HistoryError, match=named):
            history.add_audit(replace(AUDIT, **changed))
        assert history.audits("/lake/events") == ()


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(0, 1)),
            st.integers(-(2**63), 2**63 - 1),
            st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(timezone.utc)),
            st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
        ),
        max_size=5,
    )
)
def test_any_record_comes_back_as_it_was(tmp_path_factory, rows):
    written = [
        replace(AUDIT, ratio=ratio, version=version, audited=when, alerts=tuple(alerts))
        for ratio, version, when, alerts in rows
    ]
    with History.open(f"sqlite:///{tmp_path_factory.mktemp('any')}/h.db") as history:
        for record in written:
            history.add_audit(record)
        assert list(history.audits("/lake/events")) == sorted(written, key=lambda record: record.audited)


FIRST_VERSION = """
CREATE TABLE zonal_schema (version INTEGER NOT NULL PRIMARY KEY);
INSERT INTO zonal_schema VALUES (1);
CREATE TABLE zonal_audits (
    id {serial} NOT NULL PRIMARY KEY, location_key VARCHAR(64) NOT NULL, location TEXT NOT NULL,
    table_name TEXT NOT NULL, format VARCHAR(32) NOT NULL, version BIGINT,
    audited {time} NOT NULL, queries BIGINT NOT NULL,
    ratio {double}, byte_ratio {double}, file_share {double} NOT NULL,
    byte_share {double} NOT NULL, partition_byte_share {double} NOT NULL,
    selectivity {double}, excess_share {double} NOT NULL,
    alerts TEXT NOT NULL, culprit TEXT NOT NULL, layout TEXT);
CREATE TABLE zonal_runs (
    id {serial} NOT NULL PRIMARY KEY, location_key VARCHAR(64) NOT NULL, location TEXT NOT NULL,
    table_name TEXT NOT NULL, format VARCHAR(32) NOT NULL, version BIGINT,
    finished {time} NOT NULL, run VARCHAR(64) NOT NULL,
    layout TEXT NOT NULL, rows BIGINT NOT NULL, removed_files BIGINT NOT NULL, removed_bytes BIGINT NOT NULL,
    added_files BIGINT NOT NULL, added_bytes BIGINT NOT NULL, queries BIGINT, share_before {double},
    share_predicted {double}, share_after {double}, seconds {double} NOT NULL);
INSERT INTO zonal_audits (location_key, location, table_name, format, version, audited, queries, ratio, byte_ratio,
    file_share, byte_share, partition_byte_share, selectivity, excess_share, alerts, culprit, layout)
VALUES ('{key}', '/lake/events', 'events', 'delta', 7,
    '2026-01-02 03:04:05.000006', 5, 0.25, NULL, 0.1, 0.1, 0.5, NULL, 0.3, '["old"]', '', NULL)
"""
OLD = AuditRecord(
    "events", "/lake/events", "delta", 7, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc), 5, 0.25, None,
    0.1, 0.1, 0.5, None, None, 0.3, ("old",), "", None,
)  # fmt: skip


def make_first_version(url):
    """Make a database as the first schema was, by SQL that no later schema changes."""
    types = {
        "sqlite": {"serial": "INTEGER", "time": "DATETIME", "double": "DOUBLE"},
        "postgresql": {"serial": "BIGSERIAL", "time": "TIMESTAMP WITHOUT TIME ZONE", "double": "DOUBLE PRECISION"},
    }
    script = FIRST_VERSION.format(**types[url.partition(":")[0]], key=sha256(b"/lake/events").hexdigest())
    engine = engine_of(url)
    with engine.begin() as connection:
        for statement in script.split(";"):
            connection.exec_driver_sql(statement)
    engine.dispose()


def schema_of(url):
    """Columns by name with their type, and indexes."""
    engine = engine_of(url)
    known = inspect(engine)
    found = {
        table: (
            {column["name"]: (str(column["type"]), column["nullable"]) for column in known.get_columns(table)},
            {index["name"]: index["column_names"] for index in known.get_indexes(table)},
        )
        for table in known.get_table_names()
    }
    with engine.connect() as connection:
        versions = connection.execute(text("SELECT version FROM zonal_schema")).scalars().all()
    engine.dispose()
    return found, versions


def test_a_history_of_the_first_schema_is_migrated_and_keeps_its_records(database):
    make_first_version(database)
    with History.open(database) as history:
        assert history.audits("/lake/events") == (OLD,)
        history.add_audit(AUDIT)
        assert history.audits("/lake/events") == (OLD, AUDIT)
    assert schema_of(database)[1] == [len(schema.MIGRATIONS)]


def test_a_migrated_history_has_the_schema_of_a_new_one(database, tmp_path, request):
    make_first_version(database)
    History.open(database).close()
    other = (
        f"sqlite:///{tmp_path}/new.db"
        if database.startswith("sqlite")
        else new_postgres(request.getfixturevalue("postgres"))
    )
    with History.open(other) as history:
        history.add_audit(AUDIT)
    old, new = schema_of(database), schema_of(other)
    assert old == new
    assert new[0]["zonal_audits"][1] == {"zonal_audits_by_table": ["location_key", "audited"]}


def test_a_migration_that_fails_leaves_the_history_as_it_was(database):
    def broken(connection):
        connection.execute(text("CREATE TABLE half (a INTEGER)"))
        raise RuntimeError("power cut")

    make_first_version(database)
    before = schema_of(database)
    with patch.object(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken)), pytest.raises(RuntimeError):
        History.open(database)
    assert schema_of(database) == before, "one transaction: neither the second nor the third migration is seen"
    with History.open(database) as history:
        assert len(history.audits("/lake/events")) == 1


def test_a_history_of_a_newer_zonal_is_refused(database):
    with History.open(database) as history:
        history.add_audit(AUDIT)
    engine = engine_of(database)
    with engine.begin() as connection:
        connection.execute(text("UPDATE zonal_schema SET version = 99"))
    engine.dispose()
    with pytest.raises(HistoryError, match=r"made by a newer zonal: its schema is version 99.*Upgrade zonal"):
        History.open(database)


def _add_many(url, ready, number):
    ready.wait(120)
    with History.open(url) as history:
        for each in range(10):
            history.add_audit(replace(AUDIT, queries=number * 100 + each))


@pytest.mark.parametrize("old", [False, True], ids=["empty", "old"])
def test_processes_that_open_a_history_at_once_all_find_one(database, old):
    if old:
        make_first_version(database)
    spawning = multiprocessing.get_context("spawn")
    ready = spawning.Barrier(3)
    others = [spawning.Process(target=_add_many, args=(database, ready, number)) for number in range(3)]
    for each in others:
        each.start()
    for each in others:
        each.join(180)
    assert [each.exitcode for each in others] == [0, 0, 0]
    with History.open(database) as history:
        found = [each.queries for each in history.audits("/lake/events", limit=1000) if each.audited == NOON]
    assert sorted(found) == [number * 100 + each for number in range(3) for each in range(10)]
    assert schema_of(database)[1] == [len(schema.MIGRATIONS)]


def test_a_row_that_others_spoiled_is_an_error_that_names_the_database(database):
    with History.open(database) as history:
        history.add_audit(AUDIT)
        engine = engine_of(database)
        with engine.begin() as connection:
            connection.execute(text("UPDATE zonal_audits SET alerts = '{\"a\": 1}'"))
        engine.dispose()
        with pytest.raises(HistoryError, match=r"history.*alerts that are no list of texts"):
            history.audits("/lake/events")


def test_a_database_of_a_small_alphabet_refuses_what_it_cannot_write(postgres):
    url = new_postgres(postgres, "ENCODING 'LATIN1' TEMPLATE template0")
    with History.open(url) as history:
        history.add_audit(replace(AUDIT, culprit="é"))
        with pytest.raises(HistoryError, match=r"can't be written: .*encod"):
            history.add_audit(replace(AUDIT, culprit="🜚"))
        assert [each.culprit for each in history.audits("/lake/events")] == ["é"]


def test_a_limit_must_be_positive(tmp_path):
    with History.open(f"sqlite:///{tmp_path}/h.db") as history, pytest.raises(HistoryError, match="limit=0"):
        history.audits("/lake/events", limit=0)


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


def test_databases_that_take_no_index_of_long_texts_get_none():
    for dialect in (mysql.dialect(), mssql.dialect()):
        for table in (schema.SCHEMA, schema.AUDITS, schema.RUNS):
            assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
            for index in table.indexes:
                assert "location_key" in str(CreateIndex(index).compile(dialect=dialect))
    assert "DATETIME(6)" in str(CreateTable(schema.AUDITS).compile(dialect=mysql.dialect()))


def test_the_index_finds_a_tables_records(tmp_path):
    with History.open(f"sqlite:///{tmp_path}/h.db") as history:
        history.add_audit(AUDIT)
    with sqlite3.connect(tmp_path / "h.db") as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT * FROM zonal_audits WHERE location_key = 'x' ORDER BY audited DESC, id DESC"
        ).fetchall()
    assert "USING INDEX zonal_audits_by_table" in str(plan)
    assert "TEMP B-TREE" not in str(plan), "nothing is sorted"
    assert os.path.getsize(tmp_path / "h.db") < 100_000
