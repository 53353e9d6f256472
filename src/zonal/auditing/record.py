"""Turn an audit into its record in the history."""

from zonal.auditing.audit import Audit
from zonal.history.records import AuditRecord
from zonal.layouts.layout import short_text


def audit_record(found: Audit) -> AuditRecord:
    """Return what the history records of an audit: numbers, and no query."""
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
