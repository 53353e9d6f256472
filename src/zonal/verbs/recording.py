"""What is remembered of audits and rewrites: results as records of the history."""

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from datetime import timezone as zones
from typing import TYPE_CHECKING

from zonal.auditing.audit import Audit
from zonal.errors import ZonalError, quoted
from zonal.history.records import AuditRecord, RunRecord
from zonal.history.store import History
from zonal.layouts.layout import short_text

if TYPE_CHECKING:
    from zonal.verbs.outcome import Clustering

Database = History | str | None
"""A history, the URL of one, or none."""


def check_database(database: object) -> None:
    """Refuse what is no history, before any work is done for it."""
    if not isinstance(database, History | str | None):
        raise ZonalError(f"database={quoted(repr(database))} is no history: give its URL, an open one, or None.")


def opened(database: Database) -> AbstractContextManager[History | None]:
    """Open a history by its URL, and close it in the end; one that is open stays so."""
    check_database(database)
    return History.open(database) if isinstance(database, str) else nullcontext(database)


def audit_record(found: Audit) -> AuditRecord:
    """Return what is remembered of an audit: its numbers, and no query."""
    culprit = found.culprit if found.alerts else None
    return AuditRecord(
        table=found.table,
        location=found.location,
        format=found.format,
        version=found.version,
        audited=found.audited,
        queries=found.queries,
        ratio=found.ratio,
        byte_ratio=found.byte_ratio,
        file_share=found.file_share,
        byte_share=found.byte_share,
        partition_byte_share=found.partition_byte_share,
        selectivity=found.selectivity,
        fresh_share=None if found.fresh is None else found.fresh.byte_share,
        excess_share=found.excess_share,
        alerts=tuple(alert.text for alert in found.alerts),
        culprit="" if culprit is None else culprit.sentence,
        layout=None if found.layout is None else short_text(found.layout),  # a tree's cuts are values of queries
    )


def run_record(done: "Clustering") -> RunRecord:
    """Return what is remembered of a rewrite, right after it: what was predicted, and what came out."""
    told = done.predicted
    return RunRecord(
        table=done.table,
        location=done.location,
        format=done.format,
        version=done.versions[-1] if done.versions else None,
        finished=datetime.now(zones.utc),
        run=done.run,
        layout=short_text(done.layout),
        rows=done.rows,
        removed_files=done.removed_files,
        removed_bytes=done.removed_bytes,
        added_files=done.added_files,
        added_bytes=done.added_bytes,
        queries=None if told is None else told.queries,
        share_before=None if told is None else told.share_before,
        share_predicted=None if told is None else told.share_predicted,
        share_after=None if told is None else told.share_after,
        seconds=done.seconds,
        predicted_files=done.predicted_files,
        predicted_bytes=done.predicted_bytes,
    )
