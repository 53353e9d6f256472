"""Turn an audit into its record in the history."""

from zonal.auditing.audit import Audit
from zonal.history.records import AuditRecord
from zonal.layouts.layout import short_text


def audit_record(found: Audit) -> AuditRecord:
    """Return what the history records of an audit: numbers, and no query."""
    culprit = found.blame.culprit if found.judgment.alerts else None
    return AuditRecord(
        table=found.table.name,
        location=found.table.location,
        format=found.table.format,
        version=found.table.version,
        audited=found.made.audited,
        queries=found.workload.queries,
        ratio=found.reads.ratio,
        byte_ratio=found.reads.byte_ratio,
        file_share=found.reads.file_share,
        byte_share=found.reads.byte_share,
        partition_byte_share=found.reads.partition_byte_share,
        selectivity=found.reads.selectivity,
        fresh_share=None if found.fresh is None else found.fresh.byte_share,
        excess_share=found.excess.excess_share,
        alerts=tuple(alert.text for alert in found.judgment.alerts),
        culprit="" if culprit is None else culprit.sentence,
        layout=None
        if found.table.layout is None
        else short_text(found.table.layout),  # a tree's cuts are values of queries
    )
