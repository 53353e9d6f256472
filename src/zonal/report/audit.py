"""An audit as blocks of a report: the verdict first, then where it comes from."""

from collections.abc import Iterator, Sequence

from zonal.auditing.audit import Audit, ColumnAudit, CommitAudit, QueryAudit
from zonal.auditing.drift import Alerts
from zonal.history.records import AuditRecord, RunRecord
from zonal.report.audit_wording import (
    audit_facts,
    audit_notes,
    commit_text,
    is_culprit,
    remedy,
    verdict,
)
from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    Command,
    CommitsChart,
    DepthChart,
    Facts,
    FileChart,
    Heading,
    Lines,
    Mood,
    Paragraph,
    QueriesChart,
    Remarks,
    Sentences,
    TableBlock,
    TableRow,
    Tiles,
    Title,
    TrendChart,
)
from zonal.report.command import CommandOptions
from zonal.report.wording import asked_text, clipped, known_share, plural, share_text
from zonal.values.sizes import size_text

_MOST_QUERIES, _MOST_COMMITS, _MOST_COLUMNS, _MOST_WORST = 10, 8, 10, 20
_MOST_NAMED = 5
"""Files and partitions that a terminal names."""
_MOST_CHOSEN = 20
"""Commits that can be chosen in the chart of files."""
_LIMIT = Alerts().ratio
_IN_TILES = ("rows matching", "for nothing")
"""Facts that tiles show."""

_COLUMNS = (
    Heading("column", kind="text"),
    Heading("queries' weight", "filtered"),
    Heading("files with bounds", "has bounds"),
    Heading("skips of the files", "skips files"),
    Heading("of the bytes", "bytes"),
)
_COMMITS = (
    Heading("files added by", "files by commit", kind="text"),
    Heading("time (UTC)", on_terminal=False),
    Heading("files"),
    Heading("bytes"),
    Heading("of what is read", "of all read"),
    Heading("of that for nothing", "of all for nothing"),
    Heading("widened", on_terminal=False),
)


def audit_blocks(
    audit: Audit,
    audits: Sequence[AuditRecord] = (),
    runs: Sequence[RunRecord] = (),
    *,
    limit: float | None = _LIMIT,
    given: CommandOptions | None = None,
) -> Iterator[Block]:
    """Yield an audit, with earlier `audits` and the `runs` between them, oldest first.

    `limit` is the ratio above which an audit is an alert, and is drawn into the trend; `given` is how the table and its
    logs were named, for the command to run.
    """
    commits = [(each.id, commit_text(each)) for each in audit.blame.commits[:_MOST_CHOSEN] if each.id is not None]
    yield Title("Audit of ", audit.table.name)
    yield from verdict_blocks(audit, given)
    yield Tiles(_tiles(audit))
    yield Facts(list(audit_facts(audit)), 16, drawn=_IN_TILES)
    yield TrendChart(audit, audits, runs, limit)
    yield CommitsChart(audit, _commits(audit))
    yield Remarks([each.sentence for each in audit.blame.commits[:_MOST_COMMITS] if each.sentence])
    yield FileChart(audit.picture, commits=commits)
    yield DepthChart.of(audit.picture)
    yield QueriesChart(audit)
    yield _queries(audit)
    yield _hindered(audit)
    yield _columns(audit)
    yield _worst_partitions(audit)
    yield _worst_files(audit)
    yield Lines("What this rests on", list(audit_notes(audit)))
    yield Colophon(_made(audit))


def verdict_blocks(audit: Audit, given: CommandOptions | None = None) -> Iterator[Block]:
    """Yield whether an alert is due, and what to do."""
    mood: Mood = "bad" if audit.judgment.alerts else "other" if audit.reads.ratio is None else "good"
    yield Sentences(verdict(audit), mood)
    if (advised := remedy(audit, given)) is None:
        yield Paragraph("There is nothing to do.")
    else:
        intro, command = advised
        yield Command(command, intro)


def _made(audit: Audit) -> str:
    made = audit.made
    hidden = " Values that queries compare with are hidden." if audit.workload.hidden else ""
    return (
        f"Made by zonal audit at {made.audited:%Y-%m-%d %H:%M} UTC in {made.seconds:,.1f} s, with seed {made.seed}. "
        f"No query was run: statistics tell what must be read.{hidden}"
    )


def _tiles(audit: Audit) -> list[tuple[str, str]]:
    tiles = [
        (known_share(audit.reads.ratio), "of the files in matching partitions are read"),
        (share_text(audit.reads.byte_share), "of the table's bytes are read, in the mean"),
        (share_text(audit.excess.excess_share), "of the bytes read are in files without a match, estimated"),
    ]
    if audit.fresh is not None:
        tiles.append((share_text(audit.fresh.byte_share), "of the bytes if clustered anew, predicted"))
    if audit.reads.selectivity is not None:
        tiles.append((share_text(audit.reads.selectivity), "of the rows match: no layout reads less"))
    return tiles


# --- Commits ---------------------------------------------------------------------------------------------------------


def _commits(audit: Audit) -> TableBlock:
    return TableBlock(
        "Commits",
        "Live files by the commit that added them: those that did harm first, then those that cause most of what is "
        "read for nothing.",
        _COMMITS,
        [_commit(each, is_bad=is_culprit(each, audit)) for each in audit.blame.commits],
        most=_MOST_COMMITS,
    )


def _commit(each: CommitAudit, *, is_bad: bool) -> TableRow:
    texts = (
        "-" if each.time is None else f"{each.time:%Y-%m-%d %H:%M}",
        f"{each.files:,}",
        size_text(each.bytes),
        share_text(each.read_share),
        share_text(each.excess_share),
        _widths(each),
    )
    return TableRow(commit_text(each), _cells(texts), [each.sentence], mood="bad" if is_bad else "other")


def _widths(commit: CommitAudit) -> str:
    widened = [width for width in commit.widths if width.times is not None and width.times >= 1.1]
    return ", ".join(f"{clipped(width.column, 60)} {width.times:,.3g} times" for width in widened[:3]) or "-"


# --- Queries ---------------------------------------------------------------------------------------------------------


def _queries(audit: Audit) -> TableBlock:
    before = [Heading("before that", "before")] if audit.blame.before is not None else []
    inside = [Heading("partitions alone", "in partitions")] if audit.table.partitioning else []
    more = len(audit.asked) - _MOST_QUERIES
    return TableBlock(
        "Queries",
        "Those that read most first, by their weight. Shares are of the table's bytes or, where they match, rows.",
        [
            Heading("query", "queries that read most", kind="text"),
            Heading("reads", "bytes"),
            *(Heading("files"), Heading("weight"), *before, *inside),
            *(Heading("rows matching", "matching"), Heading("clustered anew", "anew")),
        ],
        [_query(each, audit) for each in audit.asked[:_MOST_QUERIES]],
        f"And {plural(more, 'other query', 'other queries')}." if more > 0 else "",
    )


def _query(each: QueryAudit, audit: Audit) -> TableRow:
    before = () if audit.blame.before is None else (each.before_share,)
    inside = (each.reads.partition_bytes / max(audit.table.bytes, 1),) if audit.table.partitioning else ()
    shares = map(known_share, (*before, *inside, each.selectivity, each.fresh_share))
    cells = [
        Cell(share_text(each.reads.byte_share), each.reads.byte_share),
        *_cells((f"{each.reads.files:,}", share_text(each.weight), *shares)),
    ]
    return TableRow(each.query, cells, [asked_text(each.source, each.count)], is_code=True)


def _hindered(audit: Audit) -> TableBlock:
    return TableBlock(
        "Queries that statistics can't help",
        "Queries that statistics can't help: they read what they read, whatever the layout.",
        (
            *(Heading("query", kind="text"), Heading("weight")),
            *(Heading("why", kind="text"), Heading("what would help", kind="text")),
        ),
        [
            TableRow(each.query, _cells((share_text(each.weight), each.hindrance, each.remedy)), is_code=True)
            for each in audit.asked
            if each.hindrance
        ][:_MOST_WORST],
        on_terminal="lines",
    )


# --- Columns and files -----------------------------------------------------------------------------------------------


def _columns(audit: Audit) -> TableBlock:
    return TableBlock(
        "Columns",
        "What each filtered column skips in the mean; a file counts for the first column that excludes it.",
        _COLUMNS,
        [_column(each, audit.table.files) for each in audit.columns],
        most=_MOST_COLUMNS,
    )


def _column(each: ColumnAudit, files: int) -> TableRow:
    skipped = share_text(each.skipped_files), share_text(each.skipped_bytes)
    texts = (f"{each.weight:.0%}", f"{each.files_with_bounds:,} of {files:,}", *skipped)
    return TableRow(f"{clipped(each.column)}{' (partitions)' if each.partitions else ''}", _cells(texts))


def _worst_partitions(audit: Audit) -> TableBlock:
    rows = [
        TableRow(
            each.partition or "the whole table",
            _cells((f"{each.files:,}", size_text(each.bytes), share_text(each.excess_share))),
        )
        for each in audit.excess.worst_partitions[:_MOST_WORST]
    ]
    return TableBlock(
        "Partitions that are read for nothing",
        "Partitions that cause most of what is read for nothing; estimated.",
        (
            *(Heading("partition", kind="text"), Heading("files"), Heading("bytes")),
            Heading("of what is read for nothing"),
        ),
        rows if len(rows) > 1 else (),
        most=_MOST_NAMED,
        on_terminal="lines",
    )


def _worst_files(audit: Audit) -> TableBlock:
    added = {each.id: f"added by {commit_text(each)}" for each in audit.blame.commits}
    return TableBlock(
        "Files that are read for nothing",
        "Files that are read for nothing most, by the queries' weight; estimated.",
        (
            *(Heading("file", kind="text"), Heading("bytes")),
            *(Heading("queries that read it"), Heading("find nothing")),
        ),
        [
            TableRow(
                each.path,
                _cells((size_text(each.bytes), share_text(each.read), share_text(each.excess))),
                [added.get(each.added_by, "") if each.added_by is not None else ""],
            )
            for each in audit.excess.worst_files[:_MOST_WORST]
        ],
        most=_MOST_NAMED,
        on_terminal="lines",
    )


def _cells(texts: Sequence[str]) -> list[Cell]:
    return [Cell(text) for text in texts]
