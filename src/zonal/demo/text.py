"""What the demonstration says of each result: a heading, and a few lines that a newcomer understands."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.demo.chapters import Chapter, Compacted, Compared
from zonal.layouts.layout import short_text
from zonal.report.advice import what_text
from zonal.report.audit_wording import verdict
from zonal.report.sparkline import sparkline
from zonal.report.terminal.text import print_line
from zonal.report.wording import clipped, plural, share_text
from zonal.rewriting.outcome import Clustering
from zonal.values.sizes import size_text
from zonal.verbs.explain import Explanation
from zonal.verbs.show import TableHealth

_MOST_OTHERS = 3


def print_chapter(console: Console, form: str, number: int, chapter: Chapter) -> None:
    """Print a chapter under its heading."""
    print_line(console, f"{form} {number} · {chapter.heading}", "bold")
    for text, style in chapter.lines:
        print_line(console, f"  {text}", style)
    console.print()


def _plain(heading: str, texts: Iterable[str], result: object = None) -> Chapter:
    return Chapter(heading, tuple((text, "") for text in texts), result)


LEFT = _plain(
    "the end", ["Leaving it as it is, the story ends here: more --rows and --files give queries more to skip."]
)


def arrived(health: TableHealth) -> Chapter:
    """Tell what `show` says of a new table."""
    rows = "" if health.table.rows is None else f", {health.table.rows:,} rows"
    size = f"{plural(health.table.files, 'file')}, {size_text(health.table.bytes)}{rows}"
    return _plain("show: the table as its rows arrived", [size, *(column.verdict for column in health.columns)], health)


def advised(advice: Advice, log: str) -> Chapter:
    """Tell what `advise` says by a log of queries."""
    return _plain("advise: what to do, by a log of queries", _advised(advice, log), advice)


def clustered(done: Clustering, version_word: str, *, again: bool = False) -> Chapter:
    """Tell what `cluster` did; `again` in the layout that the table recorded before."""
    how = "cluster again: in the layout that the table remembers" if again else "cluster: rewritten on Spark"
    return _plain(how, _clustered(done, version_word), done)


def compared(reads: Compared) -> Chapter:
    """Tell what the questions read before and after, as `explain` says."""
    return _plain("explain: what queries read, before → now", _compared(reads), reads)


def audited(audits: Sequence[Audit]) -> Chapter:
    """Tell what `audit` says, compared with the audits before; only its verdict has a color."""
    audit = audits[-1]
    color = "red" if audit.judgment.alerts else "green"
    rest = _audited(audit, [each.reads.ratio for each in audits])
    lines = (*((text, color) for text in verdict(audit)), *((text, "") for text in rest))
    return Chapter(f"audit: what all {plural(audit.workload.queries, 'query', 'queries')} read", lines, audit)


def compacted(done: Compacted) -> Chapter:
    """Tell what another tool did."""
    return _plain("another tool comes along", _compacted(done), done)


def _advised(advice: Advice, log: str) -> Iterator[str]:
    filters = plural(advice.workload.queries, "different filter")
    yield f"{plural(advice.workload.summary.statements, 'statement')} in {log}, with {filters}"
    yield clipped(advice.reason, 600)
    others = [each for each in advice.candidates if each is not advice.best and each.layout is not None]
    if others:
        predicted = (f"{what_text(each, 80)} {share_text(each.reads.bytes)}" for each in others[:_MOST_OTHERS])
        yield f"predicted for others: {', '.join(predicted)}"


def _clustered(done: Clustering, version_word: str) -> Iterator[str]:
    if not done.change.added_files:
        yield f"nothing to do. {clipped(done.note, 600)}".rstrip()
        return
    yield f"{clipped(short_text(done.layout))}, in one commit: {version_word} {done.run.versions[-1]}"
    removed, added = plural(done.change.removed_files, "file"), plural(done.change.added_files, "file")
    yield f"{removed} → {added} with all {done.change.rows:,} rows in {done.run.seconds:,.1f} s"
    if (predicted := done.predicted) is not None:
        shares = predicted.share_before, predicted.share_predicted, predicted.share_after
        before, expected, after = map(share_text, shares)
        queries = plural(predicted.queries, "query", "queries")
        yield f"{queries} of the log: {before} of the bytes before, {expected} predicted, {after} real"


def _compared(reads: Compared) -> Iterator[str]:
    for question, then, now in zip(reads.questions, reads.before, reads.after, strict=True):
        shares = f"{share_text(then.share)} → {share_text(now.share)} of the bytes"
        worse = ": the order in which the rows arrived suited it better" if now.share > then.share else ""
        yield f"{clipped(question.text)}: {then.files:,.0f} → {now.files:,.0f} files, {shares}{worse}"
    before, after = reads.shares
    less = (
        f"{before / after:.1f} times less" if 0 < after < before else "no less: this layout doesn't help these queries"
    )
    yield f"on average {share_text(before)} → {share_text(after)} of the bytes, {less}"
    if reads.explained is not None:
        yield _explained(*reads.explained)


def _explained(before: Explanation, after: Explanation) -> str:
    then, now = before.levels[-1], after.levels[-1]
    by = ", ".join(f"min/max values of {clipped(name, 120)} skip {count:,}" for name, count in after.skipped_by.items())
    why = f"; {by}" if by else ""
    shares = [share_text(level.kept_bytes / max(level.total_bytes, 1)) for level in (then, now)]
    files = [f"{level.kept:,} of {level.total:,} files" for level in (then, now)]
    reads = f"{files[0]} ({shares[0]} of the bytes) before, {files[1]} ({shares[1]}) now"
    return f"one query, {clipped(after.predicate)}: {reads}{why}"


def _audited(audit: Audit, ratios: Sequence[float | None]) -> Iterator[str]:
    fresh = audit.fresh
    if audit.judgment.alerts and fresh is not None and fresh.gain > 0:
        saved = (
            f"queries would read {share_text(fresh.byte_share)} of the bytes, not {share_text(audit.reads.byte_share)}"
        )
        yield f"Clustered anew, {saved} (predicted)."
    if len(ratios) > 1:
        went = " → ".join("-" if ratio is None else share_text(ratio) for ratio in ratios)
        yield f"since the first audit: {sparkline(ratios)} {went}"


def _compacted(done: Compacted) -> Iterator[str]:
    if done.files_after == done.files_before:
        yield f"{done.deed} and finds nothing to do."
        return
    made = f"{plural(done.files_before, 'file')} → {plural(done.files_after, 'file')}"
    yield f"{done.deed}: {made} in {done.seconds:,.1f} s, {done.version_word} {done.version}"
    yield "No row is lost, but files were joined by their sizes, whatever values they hold."
