"""How conditions are read, as a value that verbs share."""

from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zonal
from zonal.errors import ZonalError

DAYS = [datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3)]


@pytest.fixture
def table(tmp_path):
    """One file per day, of which each has its first and its last hour in UTC."""
    for day in DAYS:
        hours = pa.array([day, day.replace(hour=23)], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": hours}), tmp_path / f"{day.day}.parquet")
    return str(tmp_path)


def kept(table, where, dialect):
    pruned = zonal.prune(table, where=where, dialect=dialect)
    assert pruned == [file.path for file in zonal.explain(table, where=where, dialect=dialect).files]
    return [path.rpartition("/")[2].removesuffix(".parquet") for path in pruned]


def test_the_time_zone_of_the_session_decides_what_a_day_is(table):
    where = "ts < TIMESTAMP '2026-01-02 05:00:00'"
    assert kept(table, where, "spark") == kept(table, where, zonal.Dialect("spark")) == ["1", "2"]
    assert kept(table, where, zonal.Dialect("spark", timezone="Asia/Tokyo")) == ["1"], "it is 20 o'clock in UTC"


def test_now_is_what_the_dialect_says(table):
    noon = zonal.Dialect(now=datetime(2026, 1, 2, 12, tzinfo=timezone.utc))
    assert kept(table, "ts > current_timestamp", noon) == ["2", "3"]
    assert kept(table, "ts > current_timestamp", zonal.Dialect(now=DAYS[2])) == ["3"]


def test_what_is_no_dialect_is_refused_by_name(table):
    with pytest.raises(ZonalError, match=r"dialect=5 is not a Dialect, a text, or None\."):
        zonal.prune(table, where="ts IS NULL", dialect=5)
    with pytest.raises(ZonalError, match=r"timezone=5 is not a text\."):
        zonal.Dialect(timezone=5)
