"""What the history keeps, in SQLite and in PostgreSQL: the same laws hold in both."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect, make_url, text

from support.history_records import AUDIT, NOON, RUN, engine_of
from zonal.history.records import HistoryError
from zonal.history.store import History


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


def test_a_row_that_others_spoiled_is_an_error_that_names_the_database(database):
    with History.open(database) as history:
        history.add_audit(AUDIT)
        engine = engine_of(database)
        with engine.begin() as connection:
            connection.execute(text("UPDATE zonal_audits SET alerts = '{\"a\": 1}'"))
        engine.dispose()
        with pytest.raises(HistoryError, match=r"history.*alerts that are no list of texts"):
            history.audits("/lake/events")


def test_a_limit_must_be_positive(tmp_path):
    with History.open(f"sqlite:///{tmp_path}/h.db") as history, pytest.raises(HistoryError, match="limit=0"):
        history.audits("/lake/events", limit=0)
