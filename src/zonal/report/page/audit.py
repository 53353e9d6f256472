"""Write an audit as a page: whether an alert is due, since when, and which commits caused it."""

from collections.abc import Sequence

from zonal.auditing.audit import Audit, CommitAudit, QueryAudit
from zonal.auditing.drift import Alerts
from zonal.history.records import AuditRecord, RunRecord
from zonal.report.command import CommandOptions
from zonal.report.page.audit_charts import commits_chart, queries_chart, trend_chart
from zonal.report.page.charts import charted, scripts_of
from zonal.report.page.file_charts import depth_chart, files_chart
from zonal.report.page.frame import (
    NOTHING,
    Html,
    Row,
    described,
    element,
    joined,
    listed,
    name,
    page,
    section,
    share_bar,
    table,
    text,
)
from zonal.report.terminal.audit import audit_facts, audit_notes, commit_text, fresh_text, known_share, remedy, verdict
from zonal.report.wording import plural, share_text
from zonal.values.sizes import size_text

_LONG = 600
_MOST_QUERIES = 10
_MOST_LISTED = 20
_LIMIT = Alerts().ratio
_LARGE = ("rows matching", "clustered anew", "for nothing")
"""Facts that the tiles show."""
_MOST_CHOSEN = 20
"""Commits that can be chosen in the chart of files."""


def audit_page(
    audit: Audit,
    audits: Sequence[AuditRecord] = (),
    runs: Sequence[RunRecord] = (),
    *,
    limit: float | None = _LIMIT,
    given: CommandOptions | None = None,
) -> str:
    """Return the page of an audit, with earlier `audits` and the `runs` between them, oldest first.

    `limit` is the ratio above which an audit is an alert, and is drawn into the trend; `given` is how the table and its
    logs were named, for the command to run.
    """
    commits = [(each.id, commit_text(each)) for each in audit.blame.commits[:_MOST_CHOSEN] if each.id is not None]
    files = files_chart(audit.picture, commits)
    trend, blamed = trend_chart(audit, audits, runs, limit), commits_chart(audit)
    queries = queries_chart(audit)
    depths = depth_chart(
        [(each.label, each.files, each.depths) for each in audit.picture.drawings] if audit.picture else []
    )
    parts = [
        element("h1", text("Audit of "), name(audit.table.name)),
        _verdict(audit),
        remedy_box(audit, given),
        _tiles(audit),
        described((text(label), text(fact, _LONG)) for label, fact in audit_facts(audit) if label not in _LARGE),
        charted("Trend", trend),
        charted("Whose files are read", blamed),
        charted("The files", files),
        charted("How deep files lie", depths),
        charted("What each query reads", queries),
        _queries(audit),
        _hindered(audit),
        _columns(audit),
        _worst(audit),
        section("What this rests on", listed(text(line, _LONG) for line in audit_notes(audit))),
        element("footer", text(_made(audit))),
    ]
    return page(f"zonal audit: {audit.table.name}", joined(parts), scripts_of([trend, blamed, files, depths, queries]))


def _made(audit: Audit) -> str:
    made = audit.made
    hidden = " Values that queries compare with are hidden." if audit.workload.hidden else ""
    return (
        f"Made by zonal audit at {made.audited:%Y-%m-%d %H:%M} UTC in {made.seconds:,.1f} s, with seed {made.seed}. "
        f"No query was run: statistics tell what must be read.{hidden}"
    )


def _verdict(audit: Audit) -> Html:
    fresh = [f"Clustered anew, {fresh_text(audit)}."] if audit.fresh is not None and audit.fresh.gain > 0.005 else []
    return verdict_box(audit, fresh)


def verdict_box(audit: Audit, more: Sequence[str] = ()) -> Html:
    """Write the verdict in its color, and more sentences below it."""
    kind = "verdict bad" if audit.judgment.alerts else "verdict other" if audit.reads.ratio is None else "verdict"
    return element("div", *(element("p", text(each, 2 * _LONG)) for each in [*verdict(audit), *more]), class_=kind)


def remedy_box(audit: Audit, given: CommandOptions | None = None) -> Html:
    """Write what to do, with the command."""
    advised = remedy(audit, given)
    if advised is None:
        return element("p", text("There is nothing to do."), class_="soft")
    what, command = advised
    return joined([element("p", text(what, _LONG)), element("pre", element("code", text(command, 20_000)))])


def _tiles(audit: Audit) -> Html:
    """Write the most important numbers as large tiles."""
    tiles = [
        (known_share(audit.reads.ratio), "of the files in matching partitions are read"),
        (share_text(audit.reads.byte_share), "of the table's bytes are read, in the mean"),
        (share_text(audit.excess.excess_share), "of the bytes read are in files without a match, estimated"),
    ]
    if audit.fresh is not None:
        tiles.append((share_text(audit.fresh.byte_share), "of the bytes if clustered anew, predicted"))
    if audit.reads.selectivity is not None:
        tiles.append((share_text(audit.reads.selectivity), "of the rows match: no layout reads less"))
    cells = [element("div", element("b", text(number)), element("span", text(what))) for number, what in tiles]
    return element("div", *cells, class_="tiles")


def _queries(audit: Audit) -> Html:
    if not audit.asked:
        return NOTHING
    before = ("before that",) if audit.blame.before is not None else ()
    inside = ("partitions alone",) if audit.table.partitioning else ()
    heads = ("query", "reads", "files", "weight", *before, *inside, "rows matching", "clustered anew")
    rows = [Row(_query_head(each), _query_cells(each, audit)) for each in audit.asked[:_MOST_QUERIES]]
    more = len(audit.asked) - _MOST_QUERIES
    rest = element("p", text(f"And {plural(more, 'other query', 'other queries')}, in the table above."), class_="soft")
    caption = "Those that read most first, by their weight. Shares are of the table's bytes or, where they match, rows."
    return section("Queries", table(caption, heads, rows, plain=heads[1:2]), rest if more > 0 else NOTHING)


def _query_head(each: QueryAudit) -> Html:
    times = "once" if each.count == 1 else f"{each.count:,} times"
    where = f"{each.source}, asked {times}" if each.source else f"asked {times}"
    return joined([element("code", name(each.query)), element("small", text(where))])


def _query_cells(each: QueryAudit, audit: Audit) -> list[Html]:
    inside = (each.reads.partition_bytes / max(audit.table.bytes, 1),) if audit.table.partitioning else ()
    before = () if audit.blame.before is None else (each.before_share,)
    return [
        share_bar(each.reads.byte_share, share_text(each.reads.byte_share)),
        text(f"{each.reads.files:,}"),
        text(share_text(each.weight)),
        *(text(known_share(share)) for share in (*before, *inside, each.selectivity, each.fresh_share)),
    ]


def _hindered(audit: Audit) -> Html:
    hindered = [each for each in audit.asked if each.hindrance][:_MOST_LISTED]
    if not hindered:
        return NOTHING
    heads = ("query", "weight", "why", "what would help")
    rows = [
        Row(
            element("code", name(each.query)),
            [text(share_text(each.weight)), text(each.hindrance, _LONG), text(each.remedy, _LONG)],
        )
        for each in hindered
    ]
    caption = "They read what they read whatever the layout."
    return section("Queries that statistics can't help", table(caption, heads, rows, plain=heads[2:]))


def _columns(audit: Audit) -> Html:
    if not audit.columns:
        return NOTHING
    rows = [
        Row(
            joined([name(each.column), element("small", text("partitions")) if each.partitions else NOTHING]),
            [
                text(f"{each.weight:.0%}"),
                text(f"{each.files_with_bounds:,} of {audit.table.files:,}"),
                text(share_text(each.skipped_files)),
                text(share_text(each.skipped_bytes)),
            ],
        )
        for each in audit.columns
    ]
    heads = ("column", "queries' weight", "files with bounds", "skips of the files", "of the bytes")
    caption = "What each filtered column skips in the mean; a file counts for the first column that excludes it."
    return section("Columns", table(caption, heads, rows))


def _worst(audit: Audit) -> Html:
    partitions = [
        Row(
            name(each.partition or "the whole table"),
            [text(f"{each.files:,}"), text(size_text(each.bytes)), text(share_text(each.excess_share))],
        )
        for each in audit.excess.worst_partitions[:_MOST_LISTED]
    ]
    files = [
        Row(
            joined([name(each.path), element("small", text(_added(each.added_by, audit.blame.commits)))]),
            [text(size_text(each.bytes)), text(share_text(each.read)), text(share_text(each.excess))],
        )
        for each in audit.excess.worst_files[:_MOST_LISTED]
    ]
    shown = []
    if len(partitions) > 1:
        heads = ("partition", "files", "bytes", "of what is read for nothing")
        shown.append(table("Partitions that cause most of it; estimated.", heads, partitions))
    if files:
        heads = ("file", "bytes", "queries that read it", "find nothing")
        shown.append(table("Files that are read for nothing most, by the queries' weight; estimated.", heads, files))
    return section("Read for nothing", *shown) if shown else NOTHING


def _added(number: int | None, commits: Sequence[CommitAudit]) -> str:
    commit = next((each for each in commits if each.id == number and number is not None), None)
    return "" if commit is None else f"added by {commit_text(commit)}"
