"""Print an audit on a terminal: the verdict first, then where it comes from."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zonal.auditing.audit import Audit, Before, ColumnAudit, CommitAudit
from zonal.auditing.savings import WORTH
from zonal.layouts.layout import short_text
from zonal.report.command import CommandOptions, advise_command, repair_command
from zonal.report.sparkline import sparkline
from zonal.report.terminal.text import print_fact, print_line, print_list, print_whole, printable
from zonal.report.wording import Fact, clipped, plural, share_text
from zonal.report.wrap import fit
from zonal.values.sizes import size_text

_MOST_QUERIES, _MOST_COMMITS, _MOST_COLUMNS, _MOST_UNREAD = 10, 8, 10, 3


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


def print_audit(console: Console, audit: Audit, given: CommandOptions | None = None) -> None:
    """Print an audit; `given` is how the table and its logs were named, for the command to run."""
    for line in verdict(audit):
        print_line(console, line, style="bold red" if audit.judgment.alerts else "bold green")
    console.print()
    for label, value in audit_facts(audit):
        print_fact(console, label, value, 16)
    if audit.columns:
        console.print(_columns(audit.columns))
    if (advised := remedy(audit, given)) is not None:
        print_whole(console, " ".join(advised))
    if audit.blame.commits:
        console.print(fit(console, _commits(audit.blame.commits)))
        print_list(console, "Commits:", [clipped(each.sentence, 600) for each in audit.blame.commits[:_MOST_COMMITS]])
        if len(audit.blame.commits) > _MOST_COMMITS:
            console.print(f"· and {plural(len(audit.blame.commits) - _MOST_COMMITS, 'other commit')}")
    console.print(fit(console, _queries(audit)))
    if len(audit.asked) > _MOST_QUERIES:
        console.print(f"· and {plural(len(audit.asked) - _MOST_QUERIES, 'other query', 'other queries')}")
    print_list(console, "Read for nothing most:", [*worst_partitions(audit), *worst_files(audit)])
    print_list(console, "Queries that statistics can't help:", hindered(audit))
    print_list(console, "Notes:", audit_notes(audit))


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


def _columns(columns: Sequence[ColumnAudit]) -> Table:
    table = Table()
    table.add_column("column", overflow="fold")
    for heading in ("filtered", "has bounds", "skips files", "bytes"):
        table.add_column(heading, justify="right")
    for column in columns[:_MOST_COLUMNS]:
        name = Text(printable(clipped(column.column, 120)) + (" (partitions)" if column.partitions else ""))
        skipped = share_text(column.skipped_files), share_text(column.skipped_bytes)
        table.add_row(name, f"{column.weight:.0%}", f"{column.files_with_bounds:,}", *skipped)
    return table


def _commits(commits: Sequence[CommitAudit]) -> Table:
    table = Table()
    table.add_column("files by commit", overflow="fold")
    for heading in ("files", "bytes", "of all read", "of all for nothing"):
        table.add_column(heading, justify="right")
    for each in commits[:_MOST_COMMITS]:
        name = Text(printable(clipped(commit_text(each), 120)))
        shares = share_text(each.read_share), share_text(each.excess_share)
        table.add_row(name, f"{each.files:,}", size_text(each.bytes), *shares)
    return table


def commit_text(commit: CommitAudit) -> str:
    """Name a commit."""
    if commit.id is None and len(commit.ids) < 2:
        return "other commits" if commit.kind == "several" else "commits that the history doesn't tell"
    by = f" by {commit.writer}" if commit.writer else ""
    what = f"{len(commit.ids):,} commits" if commit.id is None else str(commit.id)
    return f"{what}: {commit.operation}{by}"


def _queries(audit: Audit) -> Table:
    table = Table()
    table.add_column("queries that read most", overflow="fold", min_width=20)
    inside = ("in partitions",) if audit.table.partitioning else ()
    before = ("before",) if audit.blame.before is not None else ()
    for heading in ("weight", "files", "bytes", *before, *inside, "matching", "anew"):
        table.add_column(heading, justify="right")
    for each in audit.asked[:_MOST_QUERIES]:
        sooner = (each.before_share,) if before else ()
        partitions = (each.reads.partition_bytes / max(audit.table.bytes, 1),) if inside else ()
        table.add_row(
            Text(printable(clipped(each.query, 200))),
            f"{each.weight:.1%}",
            f"{each.reads.files:,}",
            *map(known_share, (each.reads.byte_share, *sooner, *partitions, each.selectivity, each.fresh_share)),
        )
    return table


def known_share(share: float | None) -> str:
    """Print a share, or a dash where it isn't known."""
    return "-" if share is None else share_text(share)


def worst_files(audit: Audit) -> Iterator[str]:
    """Name the files that are read for nothing most."""
    for file in audit.excess.worst_files[:5]:
        read = f"read by {share_text(file.read)} of the queries' weight, by {share_text(file.excess)} for nothing"
        yield f"{clipped(file.path)} ({size_text(file.bytes)}): {read}"


def worst_partitions(audit: Audit) -> Iterator[str]:
    """Name the partitions that cause most of the excess."""
    for each in audit.excess.worst_partitions[:5]:
        files = plural(each.files, "file")
        yield f"partition {clipped(each.partition)} ({files}): {share_text(each.excess_share)} of it"


def hindered(audit: Audit) -> Iterator[str]:
    """Name the queries that statistics can't help, why, and what to do."""
    for each in audit.asked:
        if each.hindrance:
            yield f"{clipped(each.query, 120)} ({each.weight:.1%}): {each.hindrance}. {each.remedy}".rstrip()


def audit_notes(audit: Audit) -> Iterator[str]:
    """Say what the numbers rest on."""
    yield from audit.made.notes
    summary = audit.workload.summary
    left = [(summary.older, "older"), (summary.undated, "without a time")]
    apart = "".join(f", and {count:,} {why}" for count, why in left if count)
    outcome = f"{summary.matched:,} ask this table, {summary.unparsable:,} can't be read"
    yield f"{plural(summary.statements, 'statement')}{apart}: {outcome}."
    yield from (f"It can't be read: {example}" for example in summary.examples[:_MOST_UNREAD])


def print_versions(console: Console, audits: Sequence[Audit]) -> None:
    """Print the audits of past versions, oldest first."""
    ratios = [each.reads.ratio for each in audits]
    print_line(console, f"ratio by version  {sparkline(ratios)}", style="bold")
    table = Table()
    longest = max((len(str(each.table.version)) for each in audits), default=0)
    table.add_column("version", justify="right", overflow="fold", min_width=min(longest, 10))  # Iceberg's: 19 digits
    table.add_column("made by", overflow="fold", min_width=10)
    for heading in ("UTC", "files", "ratio", "files read", "bytes read"):
        table.add_column(heading, justify="right")
    for each in audits:
        time = "" if each.table.time is None else f"{each.table.time:%m-%d %H:%M}"
        ratio = "-" if each.reads.ratio is None else f"{each.reads.ratio:.3f}"
        shares = map(share_text, (each.reads.file_share, each.reads.byte_share))
        made = Text(printable(clipped(each.blame.operation, 60)))
        table.add_row(str(each.table.version), made, time, f"{each.table.files:,}", ratio, *shares)
    console.print(table)
