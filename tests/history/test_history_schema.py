"""The schema of the history: migrations, versions of others, and indexes."""

import os
import sqlite3
from dataclasses import replace
from datetime import datetime, timezone
from hashlib import sha256
from unittest.mock import patch

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.dialects import mssql, mysql
from sqlalchemy.schema import CreateIndex, CreateTable

from support.history_records import AUDIT, NOON, engine_of, new_postgres
from support.processes import run_at_once
from zonal.history import schema
from zonal.history.records import AuditRecord, HistoryError
from zonal.history.store import History

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
    run_at_once(_add_many, database)
    with History.open(database) as history:
        found = [each.queries for each in history.audits("/lake/events", limit=1000) if each.audited == NOON]
    assert sorted(found) == [number * 100 + each for number in range(3) for each in range(10)]
    assert schema_of(database)[1] == [len(schema.MIGRATIONS)]


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
