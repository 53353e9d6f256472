"""What an audit says in sentences: its verdict, what to do, facts and notes."""

from collections.abc import Iterator

from zonal.auditing.audit import Audit, Before, CommitAudit
from zonal.auditing.savings import WORTH
from zonal.layouts.layout import short_text
from zonal.report.command import CommandOptions, advise_command, repair_command
from zonal.report.wording import Fact, clipped, plural, share_text
from zonal.values.sizes import size_text

_MOST_UNREAD = 3


def verdict(audit: Audit) -> list[str]:
    """Say which alerts are due and which commits caused them, or that there is none."""
    if audit.reads.ratio is None:
        return ["No query has a filter that statistics could use: no layout can help."]
    if not audit.judgment.alerts and audit.judgment.tolerated is not None:
        return [f"{clipped(audit.judgment.tolerated.text).removesuffix('.')}, but {_as_good(audit)}: no alert."]
    if not audit.judgment.alerts:
        return [
            f"Queries read {share_text(audit.reads.ratio)} of the files in the partitions that might match: no alert."
        ]
    because = ("Most likely because", *["And because"] * len(audit.blame.culprits))
    return [
        *(f"Alert: {clipped(alert.text)}" for alert in audit.judgment.alerts),
        *(f"{why} {clipped(each.sentence, 600)}." for why, each in zip(because, audit.blame.culprits, strict=False)),
    ]


def audit_facts(audit: Audit) -> Iterator[Fact]:
    """Say what was audited, and what queries read of it."""
    table, reads = audit.table, audit.reads
    version = "" if table.version is None else f", version {table.version}"
    yield (
        "table",
        f"{clipped(table.name)} ({table.format}{version}): {plural(table.files, 'file')}, {size_text(table.bytes)}",
    )
    if table.layout:
        yield "layout", clipped(short_text(table.layout))
    groups = "" if reads.row_group_share is None else f"; {share_text(reads.row_group_share)} with row groups skipped"
    yield (
        "queries read",
        f"{share_text(reads.file_share)} of the files, {share_text(reads.byte_share)} of the bytes{groups}",
    )
    if audit.blame.before is not None:
        yield "before that", before_text(audit, audit.blame.before)
    if table.partitioning:
        share = share_text(reads.partition_byte_share)
        yield (
            "partitions",
            f"alone would read {share} of the bytes (by {', '.join(map(clipped, table.partitioning))})",
        )
    if reads.ratio is not None and reads.byte_ratio is not None:
        yield (
            "ratio",
            f"{reads.ratio:.3f} by files, {reads.byte_ratio:.3f} by bytes, of the matching partitions",
        )
    if reads.selectivity is not None:
        yield "rows matching", f"{share_text(reads.selectivity)} of the rows, by a sample: no layout reads less"
    if audit.fresh is not None:
        yield "clustered anew", fresh_text(audit)
    yield (
        "for nothing",
        f"about {share_text(audit.excess.excess_share)} of the bytes read: in files without a matching row",
    )
    if audit.workload.hindered > 0:
        yield "can't profit", f"{audit.workload.hindered:.0%} of the queries' weight, which the ratio leaves out"


def _as_good(audit: Audit) -> str:
    """Say why a high ratio can't be lowered."""
    if audit.fresh is None:
        return (
            "every file is in the table's layout"
            if not audit.judgment.outside
            else "its layout would save hardly anything"
        )
    if not audit.fresh.recorded:
        return "a layout by what queries filter would save hardly anything"
    return "the layout is as good as new"


def remedy(audit: Audit, given: CommandOptions | None = None) -> tuple[str, str] | None:
    """Say what to run, with the command; None where there is nothing to do."""
    judged = audit.judgment
    if not judged.alerts:
        return _without_alert(audit, given)
    if audit.table.layout is None:
        return "To find a layout:", repair_command(audit, given)
    outside = f"{judged.outside or 0:,} of {plural(audit.table.files, 'file')} {'is' if judged.outside == 1 else 'are'}"
    if judged.saving is None or judged.saving >= WORTH:
        told = f"{outside} not in its layout. " if judged.outside else ""
        return f"{told}To repair it:", repair_command(audit, given)
    told = f"{outside} not in its layout, but clustering them" if judged.outside else "Clustering it anew"
    return f"{told} would save hardly anything. To find another layout:", advise_command(audit, given)


def _without_alert(audit: Audit, given: CommandOptions | None) -> tuple[str, str] | None:
    """Say what could be done although no limit is crossed; None where it would save next to nothing."""
    if audit.judgment.saving is None or audit.judgment.saving < WORTH:
        return None
    saves = f"could save about {audit.judgment.saving:.0%} of the bytes that queries read"
    if audit.table.layout is None:
        return f"No alert, but a layout {saves}:", repair_command(audit, given)
    return f"No alert, but clustering {saves}:", repair_command(audit, given)


def before_text(audit: Audit, before: Before) -> str:
    """Say what queries read of the version before the worst commit."""
    version = "" if before.version is None else f" of version {before.version}"
    worse = f"{before.worse:,} of {plural(audit.workload.queries, 'query', 'queries')}"
    more = f"{worse} {'reads' if before.worse == 1 else 'read'} more now"
    return f"queries read {share_text(before.byte_share)} of the bytes{version}; {more}"


def fresh_text(audit: Audit) -> str:
    """Say what clustering the table anew would bring."""
    fresh = audit.fresh
    if fresh is None:
        return "not known"
    which = "its own layout" if fresh.recorded else "a layout by what queries filter"
    change = f"{fresh.gain:.0%} less" if fresh.gain > 0.005 else "nothing to gain"
    share = share_text(fresh.byte_share)
    return f"queries would read {share} of the bytes, {change} ({which}, {clipped(fresh.layout)}; predicted)"


def commit_text(commit: CommitAudit) -> str:
    """Name a commit."""
    if commit.id is None and len(commit.ids) < 2:
        return "other commits" if commit.kind == "several" else "commits that the history doesn't tell"
    by = f" by {commit.writer}" if commit.writer else ""
    what = f"{len(commit.ids):,} commits" if commit.id is None else str(commit.id)
    return f"{what}: {commit.operation}{by}"


def is_culprit(commit: CommitAudit, audit: Audit) -> bool:
    """Tell whether a commit is a culprit, alone or with others."""
    return any(commit.id in each.ids for each in audit.blame.culprits)


def audit_notes(audit: Audit) -> Iterator[str]:
    """Say what the numbers rest on."""
    yield from audit.made.notes
    summary = audit.workload.summary
    left = [(summary.older, "older"), (summary.undated, "without a time")]
    apart = "".join(f", and {count:,} {why}" for count, why in left if count)
    outcome = f"{summary.matched:,} ask this table, {summary.unparsable:,} can't be read"
    yield f"{plural(summary.statements, 'statement')}{apart}: {outcome}."
    yield from (f"It can't be read: {example}" for example in summary.examples[:_MOST_UNREAD])
