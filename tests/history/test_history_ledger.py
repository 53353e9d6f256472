"""Ledgers in SQLite and in PostgreSQL: one entry per run and table, however often and by however many it is kept."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from support.history_records import NOON, engine_of
from support.processes import run_at_once
from zonal.history.records import HistoryError, LedgerRecord
from zonal.history.store import History

ENTRY = LedgerRecord(
    "événts <b>", "/lake/events", "iceberg", 2**62, NOON, "20260101-000000-0123abcd", "merge", 2, 10**12, None, 5, True,
    3, 4, "zorder(ts, x)", 0.25, 0.125, 7, 0.5, 0.25,
)  # fmt: skip


def test_entries_come_back_as_they_were_oldest_first(database):
    later = replace(ENTRY, run="later", finished=NOON + timedelta(hours=1), exact=False, kind="rewrite", layout=None)
    with History.open(database) as history:
        assert history.ledger("/lake/events") == ()
        history.keep_ledger("/lake/events", lambda _: [later, ENTRY])
    with History.open(database) as history:
        assert history.ledger("/lake/events") == (ENTRY, later)
        assert history.ledger("/lake/Events") == ()


def test_an_entry_of_a_known_run_replaces_it_in_its_table_alone(database):
    other = replace(ENTRY, location="/lake/other")
    with History.open(database) as history:
        history.keep_ledger("/lake/events", lambda _: [ENTRY])
        history.keep_ledger("/lake/other", lambda known: [other] if not known else [])
        history.keep_ledger("/lake/events", lambda known: [replace(known[0], commits=9)])
        assert history.ledger("/lake/events") == (replace(ENTRY, commits=9),)
        assert history.ledger("/lake/other") == (other,)


def test_nothing_is_kept_where_an_entry_cant_be_made_or_stored(database):
    def broken(_):
        yield ENTRY
        raise ValueError("no entry")

    with History.open(database) as history:
        for entries in (broken, lambda _: [ENTRY, replace(ENTRY, run="b", arrived_bytes=2**64)]):
            with pytest.raises(HistoryError):
                history.keep_ledger("/lake/events", entries)
        assert history.ledger("/lake/events") == ()


def test_the_database_itself_refuses_a_second_entry_of_a_run(database):
    with History.open(database) as history:
        history.keep_ledger("/lake/events", lambda _: [ENTRY])
    names = "location_key, location, table_name, format, finished, run, kind, commits, arrived_bytes, rewritten_bytes"
    again = text(f"INSERT INTO zonal_ledger ({names}, exact) SELECT {names}, exact FROM zonal_ledger")
    with engine_of(database).connect() as connection, pytest.raises(IntegrityError):
        connection.execute(again)


def _count_up(url, ready, number):
    ready.wait(120)
    with History.open(url) as history:
        for each in range(5):
            own = replace(ENTRY, run=f"{number}-{each}")
            history.keep_ledger("/lake/events", lambda known, own=own: [replace(own, arrived_bytes=len(known))])


def test_each_of_many_runs_at_once_sees_all_entries_before_its_own(database):
    run_at_once(_count_up, database)
    with History.open(database) as history:
        found = history.ledger("/lake/events")
    assert sorted(each.arrived_bytes for each in found) == list(range(15))
