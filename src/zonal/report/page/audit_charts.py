"""Chart an audit: the trend with its limit, the commits whose files are read, and the queries."""

from collections.abc import Sequence
from datetime import timedelta

from zonal.auditing.audit import Audit, CommitAudit
from zonal.auditing.record import audit_record
from zonal.history.records import AuditRecord, RunRecord
from zonal.layouts.layout import short_text
from zonal.report.audit_wording import is_culprit
from zonal.report.blocks import TableBlock
from zonal.report.page.charts import Chart, shown
from zonal.report.page.frame import element, text
from zonal.report.page.share_charts import Series, share_chart, worse_series, worse_text
from zonal.report.trend import trend_table
from zonal.report.wording import plural, share_text

_MOST_BARS = 12
_MOST_AUDITS = 500
_MOST_RUNS = 100
_SAME = timedelta(seconds=1)
"""An audit in the history that is nearer in time is this audit itself."""
_FORM = "%Y-%m-%d %H:%M:%S"


# --- Trend -----------------------------------------------------------------------------------------------------------


def trend_chart(
    audit: Audit, audits: Sequence[AuditRecord], runs: Sequence[RunRecord], limit: float | None
) -> Chart | None:
    """Draw the ratio over time, of this audit and all others; None where there is no other."""
    others = [each for each in audits if abs(each.audited - audit.made.audited) > _SAME]
    if not others:
        return None
    points = sorted([*others, audit_record(audit)], key=lambda each: each.audited)[-_MOST_AUDITS:]
    made = [run for run in runs if run.finished >= points[0].audited or len(points) < _MOST_AUDITS][-_MOST_RUNS:]
    data = {
        "kind": "trend",
        "times": [f"{point.audited:{_FORM}}" for point in points],
        "values": [point.ratio for point in points],
        "alarms": [bool(point.alerts) for point in points],
        "texts": [shown(_point_text(point), 500) for point in points],
        "runs": [{"time": f"{run.finished:{_FORM}}", "text": shown(_run_text(run), 300)} for run in made],
        "limit": limit,
        "limit_text": "" if limit is None else f"alert above {share_text(limit)}",
    }
    return Chart(
        id="trend",
        label=f"{plural(len(points), 'audit')} in order of time",
        caption=element("p", text(_trend_caption(alerts=any(point.alerts for point in points), runs=bool(made)))),
        data=data,
        numbers=trend_table(points, made),
        plots=[("Files read, of those in partitions that might match", "")],
    )


def _trend_caption(*, alerts: bool, runs: bool) -> str:
    caption = "Each point is an audit of the queries of its day. Lower is better."
    caption += " Red triangles raised an alert." if alerts else ""
    return caption + (" Green lines are rewrites by zonal." if runs else "")


def _point_text(point: AuditRecord) -> str:
    of = "" if point.version is None else f", version {point.version}"
    read = "no query can be helped" if point.ratio is None else f"{share_text(point.ratio)} of the files"
    bytes_read = f"{share_text(point.byte_share)} of the bytes"
    return " ".join([f"{point.audited:%Y-%m-%d %H:%M} UTC{of}: {read}, {bytes_read}.", *point.alerts])


def _run_text(run: RunRecord) -> str:
    version = "" if run.version is None else f", version {run.version}"
    shares = ""
    if run.share_before is not None and run.share_after is not None:
        shares = f": queries read {share_text(run.share_before)} before, {share_text(run.share_after)} after"
        shares += "" if run.share_predicted is None else f" ({share_text(run.share_predicted)} predicted)"
    return f"{run.finished:%Y-%m-%d %H:%M} UTC{version}: clustered by {short_text(run.layout)}{shares}"


# --- Commits ---------------------------------------------------------------------------------------------------------


def commits_chart(audit: Audit, numbers: TableBlock) -> Chart | None:
    """Draw each commit's part of what is read; None where one commit added all and none did harm."""
    commits = sorted((each for each in audit.blame.commits if each.read_share > 0), key=lambda each: -each.read_share)
    commits = commits[:_MOST_BARS]
    if len(commits) < 2 and audit.blame.culprit is None:
        return None
    data = {
        "kind": "bars",
        "labels": [shown(_short(each), 24) for each in commits],
        "values": [each.read_share for each in commits],
        "said_values": [share_text(each.read_share) for each in commits],
        "marked": [is_culprit(each, audit) for each in commits],
        "texts": [shown(each.sentence, 400) for each in commits],
    }
    caption = (
        "A commit that widens files makes many queries read them. Some are read for nothing: a query's box meets their "
        "bounds, but no row in them matches; estimated from bounds and row counts."
    )
    return Chart(
        id="commits",
        label="commits, those whose files are read most first",
        caption=element("p", text(caption + (" Red: what most likely did it." if audit.blame.culprit else ""))),
        data=data,
        numbers=numbers,
        plots=[("Part of each commit's files in the bytes that queries read", "")],
    )


def _short(commit: CommitAudit) -> str:
    """Name a commit in a few characters; a long number by its last digits, which differ."""
    if commit.id is None:
        return "others"
    number = str(commit.id)
    return f"{number if len(number) <= 8 else '…' + number[-6:]} {commit.kind}"


# --- Queries ---------------------------------------------------------------------------------------------------------


def queries_chart(audit: Audit) -> Chart | None:
    """Draw what each query reads beside what it read before, and what partitions alone and a fresh layout would."""
    if len(audit.asked) < 2:
        return None
    queries = sorted(audit.asked, key=lambda each: -each.reads.byte_share)[:1000]
    series = [Series("reads now", "bar", [each.reads.byte_share for each in queries])]
    if audit.table.partitioning:
        alone = [each.reads.partition_bytes / max(audit.table.bytes, 1) for each in queries]
        series.append(Series("partitions alone", "line", alone))
    if any(each.fresh_share is not None for each in queries):
        series.append(Series("clustered anew (predicted)", "mark", [each.fresh_share for each in queries]))
    said = [] if len(queries) == len(audit.asked) else [f"{len(queries):,} of {len(audit.asked):,} queries are drawn."]
    before, now = [each.before_share or 0.0 for each in queries], [each.reads.byte_share for each in queries]
    if audit.blame.before is not None:
        version = "before" if audit.blame.before.version is None else f"version {audit.blame.before.version}"
        series += [*worse_series(before, now), Series(f"{version}, before that", "old", before)]
        said.append(worse_text(before, now))
    texts = [each.query for each in queries]
    return share_chart(texts, series, "share of the bytes that each query reads", " ".join(said))
