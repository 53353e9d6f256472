"""Write audits as metrics in Prometheus's text format, version 0.0.4, for a file that its node exporter collects."""

import math
from collections.abc import Callable, Sequence

from zonal.auditing.audit import Audit
from zonal.errors import ZonalError, quoted

_Number = int | float | None
_GAUGES: tuple[tuple[str, str, Callable[[Audit], _Number]], ...] = (
    ("ratio", "Files that queries read, of those in partitions that might match.", lambda audit: audit.reads.ratio),
    (
        "byte_ratio",
        "Bytes that queries read, of those in partitions that might match.",
        lambda audit: audit.reads.byte_ratio,
    ),
    ("file_share", "Share of the files that queries read.", lambda audit: audit.reads.file_share),
    ("byte_share", "Share of the bytes that queries read.", lambda audit: audit.reads.byte_share),
    (
        "partition_file_share",
        "Share of the files in partitions that might match.",
        lambda a: a.reads.partition_file_share,
    ),
    (
        "partition_byte_share",
        "Share of the bytes in partitions that might match.",
        lambda a: a.reads.partition_byte_share,
    ),
    ("row_group_share", "Share of the bytes where row groups are skipped.", lambda audit: audit.reads.row_group_share),
    ("selectivity", "Share of the rows that match.", lambda audit: audit.reads.selectivity),
    (
        "fresh_share",
        "Share of the bytes that queries would read of the table, freshly clustered; predicted.",
        lambda audit: None if audit.fresh is None else audit.fresh.byte_share,
    ),
    (
        "excess_share",
        "Part of the bytes read in which no row matches; estimated.",
        lambda audit: audit.excess.excess_share,
    ),
    ("hindered_share", "Weight of the queries that no layout can help.", lambda audit: audit.workload.hindered),
    ("files", "Files of the table.", lambda audit: audit.table.files),
    ("bytes", "Bytes of the table's files.", lambda audit: audit.table.bytes),
    ("rows", "Rows of the table.", lambda audit: audit.table.rows),
    ("queries", "Different filters that were asked.", lambda audit: audit.workload.queries),
    ("alert", "1 where a limit was crossed, 0 where none was.", lambda audit: int(bool(audit.judgment.alerts))),
    ("version", "Version or snapshot of the table that was audited.", lambda audit: audit.table.version),
    ("timestamp_seconds", "When the table was audited, in seconds since 1970.", lambda a: a.made.audited.timestamp()),
    ("duration_seconds", "How long the audit took.", lambda audit: audit.made.seconds),
)


def metrics_text(audits: Sequence[Audit]) -> str:
    """Write one gauge per number of an audit, for one audit per table; unknown numbers are left out.

    The same table twice is refused: a metric has one value. A scraper may round Iceberg's snapshot ids, because it
    reads numbers as floats; they still change with the table.
    """
    labels = [_labels(audit) for audit in audits]
    for label, audit in zip(labels, audits, strict=True):
        if labels.count(label) > 1:
            raise ZonalError(f"{quoted(audit.table.name, limit=200)} is there twice: a metric has one value per table.")
    lines = []
    for name, about, value_of in _GAUGES:
        values = [(label, value_of(audit)) for label, audit in zip(labels, audits, strict=True)]
        known = [f"zonal_audit_{name}{label} {_number(value)}" for label, value in values if value is not None]
        if known:
            lines += [f"# HELP zonal_audit_{name} {about}", f"# TYPE zonal_audit_{name} gauge", *known]
    return "".join(f"{line}\n" for line in lines)


def _labels(audit: Audit) -> str:
    """Name a table; its location tells apart tables of one name in several catalogs."""
    labels = {"table": audit.table.name, "format": audit.table.format, "location": audit.table.location}
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    """Escape a label's value as the format requires; lone surrogates, which UTF-8 can't hold, as Python does."""
    whole = value.encode(errors="backslashreplace").decode()
    return whole.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: int | float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
