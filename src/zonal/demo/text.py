"""Print a chapter of the demonstration: a heading, and a few lines that a newcomer understands."""

from collections.abc import Iterator

from rich.console import Console

from zonal.auditing.audit import Audit
from zonal.demo.chapters import Advised, Arrived, Audited, Chapter, Compacted, Compared, Left, Rewritten
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

StyledLine = tuple[str, str]
"""A text and its style."""


def print_chapter(console: Console, form: str, number: int, chapter: Chapter) -> None:
    """Print a chapter under its heading."""
    print_line(console, f"{form} {number} · {heading_of(chapter)}", "bold")
    for text, style in lines_of(chapter):
        print_line(console, f"  {text}", style)
    console.print()


def heading_of(chapter: Chapter) -> str:
    """Name the verb, and say what it does."""
    match chapter:
        case Arrived():
            return "show: the table as its rows arrived"
        case Advised():
            return "advise: what to do, by a log of queries"
        case Rewritten(again=True):
            return "cluster again: in the layout that the table remembers"
        case Rewritten():
            return "cluster: rewritten on Spark"
        case Compared():
            return "explain: what queries read, before → now"
        case Audited():
            return f"audit: what all {plural(chapter.audit.workload.queries, 'query', 'queries')} read"
        case Compacted():
            return "another tool comes along"
        case Left():
            return "the end"


def lines_of(chapter: Chapter) -> Iterator[StyledLine]:
    """Say what a chapter found; only its verdict has a color."""
    match chapter:
        case Arrived():
            yield from _plain(_arrived(chapter.health))
        case Advised():
            yield from _plain(_advised(chapter))
        case Rewritten():
            yield from _plain(_clustered(chapter.clustering, chapter.version_word))
        case Compared():
            yield from _plain(_compared(chapter))
        case Audited():
            for sentence in verdict(chapter.audit):
                yield sentence, "red" if chapter.audit.judgment.alerts else "green"
            yield from _plain(_audited(chapter.audit, chapter.ratios))
        case Compacted():
            yield from _plain(_compacted(chapter))
        case Left():
            yield "Leaving it as it is, the story ends here: more --rows and --files give queries more to skip.", ""


def _plain(texts: Iterator[str]) -> Iterator[StyledLine]:
    for text in texts:
        yield text, ""


def _arrived(health: TableHealth) -> Iterator[str]:
    rows = "" if health.table.rows is None else f", {health.table.rows:,} rows"
    yield f"{plural(health.table.files, 'file')}, {size_text(health.table.bytes)}{rows}"
    for column in health.columns:
        yield column.verdict


def _advised(chapter: Advised) -> Iterator[str]:
    advice = chapter.advice
    filters = plural(advice.workload.queries, "different filter")
    yield f"{plural(advice.workload.summary.statements, 'statement')} in {chapter.log.name}, with {filters}"
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


def _compared(chapter: Compared) -> Iterator[str]:
    for question, then, now in zip(chapter.questions, chapter.before, chapter.after, strict=True):
        shares = f"{share_text(then.share)} → {share_text(now.share)} of the bytes"
        worse = ": the order in which the rows arrived suited it better" if now.share > then.share else ""
        yield f"{clipped(question.text)}: {then.files:,.0f} → {now.files:,.0f} files, {shares}{worse}"
    before, after = chapter.shares
    less = (
        f"{before / after:.1f} times less" if 0 < after < before else "no less: this layout doesn't help these queries"
    )
    yield f"on average {share_text(before)} → {share_text(after)} of the bytes, {less}"
    if chapter.explained is not None:
        yield _explained(*chapter.explained)


def _explained(before: Explanation, after: Explanation) -> str:
    then, now = before.levels[-1], after.levels[-1]
    by = ", ".join(f"min/max values of {clipped(name, 120)} skip {count:,}" for name, count in after.skipped_by.items())
    why = f"; {by}" if by else ""
    shares = [share_text(level.kept_bytes / max(level.total_bytes, 1)) for level in (then, now)]
    files = [f"{level.kept:,} of {level.total:,} files" for level in (then, now)]
    reads = f"{files[0]} ({shares[0]} of the bytes) before, {files[1]} ({shares[1]}) now"
    return f"one query, {clipped(after.predicate)}: {reads}{why}"


def _audited(audit: Audit, ratios: tuple[float | None, ...]) -> Iterator[str]:
    fresh = audit.fresh
    if audit.judgment.alerts and fresh is not None and fresh.gain > 0:
        saved = (
            f"queries would read {share_text(fresh.byte_share)} of the bytes, not {share_text(audit.reads.byte_share)}"
        )
        yield f"Clustered anew, {saved} (predicted)."
    if len(ratios) > 1:
        went = " → ".join("-" if ratio is None else share_text(ratio) for ratio in ratios)
        yield f"since the first audit: {sparkline(ratios)} {went}"


def _compacted(chapter: Compacted) -> Iterator[str]:
    if chapter.files_after == chapter.files_before:
        yield f"{chapter.deed} and finds nothing to do."
        return
    made = f"{plural(chapter.files_before, 'file')} → {plural(chapter.files_after, 'file')}"
    yield f"{chapter.deed}: {made} in {chapter.seconds:,.1f} s, {chapter.version_word} {chapter.version}"
    yield "No row is lost, but files were joined by their sizes, whatever values they hold."
