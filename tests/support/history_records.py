"""Records of audits and runs, and new databases for them."""

from datetime import datetime, timedelta, timezone
from itertools import count

from sqlalchemy import create_engine, text

from zonal.history.records import AuditRecord, RunRecord

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
