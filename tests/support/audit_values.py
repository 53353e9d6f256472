"""An audit and the records of a history made by hand."""

from datetime import datetime, timezone

from support.grouped import made
from zonal.auditing.audit import Alert, Audit
from zonal.history.records import AuditRecord, RunRecord
from zonal.workload.query import Summary

NOON = datetime(2026, 11, 16, 12, tzinfo=timezone.utc)
AUDIT = made(
    Audit, name="delta:/lake/events", format="delta", location="/lake/events", version=12, time=NOON, audited=NOON,
    files=187_000, bytes=2**44, rows=None, layout=None, partitioning=(), queries=7, hindered=0.25, ratio=0.125,
    byte_ratio=0.1, file_share=1e-5, byte_share=0.02, partition_file_share=0.3, partition_byte_share=0.2,
    row_group_share=None, selectivity=None, fresh=None, excess_share=0.9, columns=(), asked=(), worst_files=(),
    worst_partitions=(), commits=(), alerts=(), notes=(), summary=Summary(0, 0, 0, 0, 0, 0), seed=0, seconds=1.5,
)  # fmt: skip
ALERT = Alert("ratio", 0.5, 0.3, "too much")
RECORD = AuditRecord("events", "/lake/events", "delta", 12, NOON, 7, 0.1, 0.1, 0.1, 0.2, 0.5, None, 0.05, 0.3)
RUN = RunRecord(
    "events", "/lake/events", "delta", 13, NOON, "r", "zorder(ts, id)", 9, 1200, 5, 3, 5, 7, 0.31, 0.021, 0.024, 1.5
)
