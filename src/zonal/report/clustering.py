"""What a rewrite did or would do, as blocks of a report."""

from collections.abc import Iterator, Sequence

from zonal.errors import option
from zonal.layouts.layout import short_text
from zonal.plan.rewrite import Property
from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    DepthChart,
    Facts,
    FileChart,
    Heading,
    Paragraph,
    ReadsChart,
    Sentences,
    TableBlock,
    TableRow,
    Title,
)
from zonal.report.wording import Fact, duration_text, lookup_text, plural, share_text
from zonal.rewriting.division import cost_text
from zonal.rewriting.dry_run import ClusteringPlan
from zonal.rewriting.learned import Predicted
from zonal.rewriting.outcome import Clustering, KeyDepth
from zonal.skipping.shares import is_worse
from zonal.storage.location import local_path, store_of
from zonal.storage.objects import unavailable
from zonal.values.sizes import format_size, size_text

_LOOKUPS = (
    Heading("column", kind="text"),
    Heading("before"),
    Heading("now"),
)


def clustering_blocks(done: Clustering) -> Iterator[Block]:
    """Yield what `cluster` did: what it brought, facts, and the files before and after."""
    yield Title("Clustering of ", done.table)
    yield Sentences(_verdict(done), "good" if done.change.added_files else "other")
    yield Facts([("table", _table_text(done)), *clustering_facts(done)], drawn=("look-up",))
    yield TableBlock(
        "Look-ups",
        "What a look-up of one value reads of the table's bytes, in the mean over all rows.",
        _LOOKUPS,
        [TableRow(depth.column, _lookup_cells(depth, done)) for depth in done.lookups.depths],
        on_terminal="nothing",
    )
    is_compared = done.picture is not None and len(done.picture.drawings) > 1
    yield FileChart(done.picture, "The files, before and after" if is_compared else "The files")
    yield ReadsChart(done.picture)
    yield DepthChart.of(done.picture)
    yield Colophon("Made by zonal cluster. Old files stay until the table's own clean-up removes them.")


def plan_blocks(plan: ClusteringPlan) -> Iterator[Block]:
    """Yield what `cluster` would do."""
    yield Title("Plan for ", plan.table)
    if not plan.change.files:
        yield Sentences(_idle(plan), "other")
        return
    yield Facts([("table", f"{plan.table} ({plan.format})"), *_plan_facts(plan)])
    yield Paragraph(f"Nothing was changed: leave out {option('dry_run')} to do it.")


def committed_text(done: Clustering) -> str:
    """Say in a sentence what a run has committed."""
    if not done.change.added_files:
        return "Nothing was changed."
    versions = f" as version {', '.join(map(str, done.run.versions))}" if done.run.versions else ""
    new = plural(done.change.added_files, "new file")
    return f"The rewrite was done before: {new} of {done.table} are committed{versions}."


# --- Verdict ---------------------------------------------------------------------------------------------------------


def _idle(result: Clustering | ClusteringPlan) -> list[str]:
    """Say why no file is rewritten, and what is recorded all the same."""
    if result.layout_recorded:
        said = "is" if isinstance(result, Clustering) else "would be"
        told = f"{short_text(result.layout)} {said} the layout of {result.table} for rows that arrive."
        return [f"{told} Files stay as they are. {result.note}".rstrip()]
    why = result.note or f"Every chosen file of {result.table} is in {short_text(result.layout)} already."
    return ["Nothing to do.", why]


def _verdict(done: Clustering) -> list[str]:
    """Say what the rewrite brought, and how many queries lose by it."""
    if not done.change.added_files:
        return _idle(done)
    sentences = [] if done.predicted is None else [f"{_predicted_text(done.predicted)}."]
    if done.lookups.depths:
        best = max(done.lookups.depths, key=lambda depth: _shares(depth, done)[0] / max(_shares(depth, done)[1], 1e-9))
        before, after = _lookup_texts(best, done)
        sentences.append(f"A look-up of one {best.column} read {before} before, and reads {after} now.")
    new = f"{plural(done.change.added_files, 'file')} written in the order of {short_text(done.layout)}."
    return [*(sentences or [new]), _losers_text(done)]


def _losers_text(done: Clustering) -> str:
    """Say how many queries read more than before; empty where none does."""
    if done.picture is None or len(done.picture.drawings) < 2:
        return ""
    questions = done.picture.questions
    lost = sum(is_worse(question.shares[0], question.shares[-1]) for question in questions)
    of = plural(len(questions), "query", "queries")
    return f"{lost:,} of {of} {'reads' if lost == 1 else 'read'} more than before." if lost else ""


# --- Look-ups --------------------------------------------------------------------------------------------------------


def _lookup_texts(depth: KeyDepth, done: Clustering) -> tuple[str, str]:
    """Say what a look-up read before, and what it reads now."""
    read = done.lookups
    return (
        lookup_text(depth.before, read.files_before, depth.share_before),
        lookup_text(depth.after, read.files_after, depth.share_after),
    )


def _lookup_cells(depth: KeyDepth, done: Clustering) -> list[Cell]:
    read = (depth.before, done.lookups.files_before), (depth.after, done.lookups.files_after)
    return [
        Cell(share_text(share), share, lookup_text(count, files, None))
        for share, (count, files) in zip(_shares(depth, done), read, strict=True)
    ]


def _shares(depth: KeyDepth, done: Clustering) -> tuple[float, float]:
    """Return what a look-up read before and reads now: of the bytes or, where they aren't known, of the files."""
    before, after = depth.before / max(done.lookups.files_before, 1), depth.after / max(done.lookups.files_after, 1)
    return (
        before if depth.share_before is None else depth.share_before,
        after if depth.share_after is None else depth.share_after,
    )


# --- Facts -----------------------------------------------------------------------------------------------------------


def _table_text(done: Clustering) -> str:
    """Name the table with its new version."""
    version = f", version {done.run.versions[-1]}" if done.run.versions else ""
    commits = f", {len(done.run.versions)} commits" if len(done.run.versions) > 1 else ""
    return f"{done.table} ({done.format}{version}{commits})"


def clustering_facts(done: Clustering) -> Iterator[Fact]:
    """Say what a rewrite did, and what was predicted."""
    change = done.change
    if done.layout:
        yield "layout", short_text(done.layout)
    if change.added_files:
        removed = f"{plural(change.removed_files, 'file')}, " if change.removed_files else "read "
        new = f"{plural(change.added_files, 'file')}, {size_text(change.added_bytes)}"
        yield "rewritten", f"{removed}{size_text(change.removed_bytes)} → {new}, {plural(change.rows, 'row')}"
        yield "predicted", f"{plural(change.predicted_files, 'file')}, {size_text(change.predicted_bytes)}"
        yield from _size_facts(change.file_size, change.file_size_reason)
    for depth in done.lookups.depths:
        before, after = _lookup_texts(depth, done)
        yield "look-up", f"one {depth.column}: {before} before, {after} now"
    if change.removed_files:
        yield "old files", _old_files_text(done)
    yield from _property_facts(done.properties)
    if change.added_files and done.note:
        yield "note", done.note
    if done.run.conflicts:
        yield "conflicts", f"{done.run.conflicts:,} with other writers; their changes are kept"
    if done.run.carried_deletes:
        rows = plural(done.run.carried_deletes, "row")
        yield "deletes", f"{rows}, deleted by other writers meanwhile: carried over to the new files"
    yield "time", f"{done.run.seconds:,.1f} s"


def _old_files_text(done: Clustering) -> str:
    """Say that replaced files stay for readers of older versions, and what removes them."""
    change = done.change
    stay = f"{plural(change.removed_files, 'file')}, {size_text(change.removed_bytes)} stay for older versions"
    until = f"{stay} until {done.old_files_until}" if done.old_files_until else stay
    is_cleanable = local_path(done.location) is not None or not unavailable(store_of(done.location.partition(":")[0]))
    return f"{until}; or until zonal clean --expire 7d sets them aside" if is_cleanable else until


def _predicted_text(shares: Predicted) -> str:
    """Compare what was predicted with what the new files' statistics say."""
    before, predicted, after = map(share_text, (shares.share_before, shares.share_predicted, shares.share_after))
    queries = plural(shares.queries, "query", "queries")
    return f"{queries} read {before} of the bytes before, {after} now; {predicted} were predicted"


def _property_facts(properties: Sequence[Property]) -> Iterator[Fact]:
    """Name the table properties that are set, with what they were."""
    for each in properties:
        before = "wasn't set" if each.before is None else f"was {each.before}"
        yield "property", f"{each.name} = {each.value} ({before}), so that readers use the statistics of all keys"


def _size_facts(size: int, reason: str) -> Iterator[Fact]:
    """Name the size of new files, and why they get it."""
    if reason:
        yield "file size", f"{format_size(size)}, {reason}"


def _plan_facts(plan: ClusteringPlan) -> Iterator[Fact]:
    """Say what a rewrite would do."""
    yield "layout", short_text(plan.layout)
    change = plan.change
    partitions = f" in {plural(change.partitions, 'partition')}" if change.partitions > 1 else ""
    old = f"{plural(change.files, 'file')}{partitions}, {size_text(change.bytes)}, {plural(change.rows, 'row')}"
    yield "to rewrite", old
    for text in plan.merging.merges:
        yield "merge", text
    for text in plan.merging.not_taken:
        yield "not merged", text
    yield "into", f"about {plural(change.new_files, 'file')}, {size_text(change.new_bytes)}"
    yield from _size_facts(change.file_size, change.file_size_reason)
    if plan.reads.share_before is not None and plan.reads.share_predicted is not None:
        before, after = share_text(plan.reads.share_before), share_text(plan.reads.share_predicted)
        queries = plural(plan.reads.queries, "query", "queries")
        yield "queries", f"{queries} read {before} of the bytes now, and {after} afterwards, as predicted"
    yield from _property_facts(plan.properties)
    yield "commits", f"{change.commits:,}"
    for each in plan.lookups:
        after = f"{share_text(each.in_commits)} of the files afterwards"
        yield "look-up", f"one {each.column}: {after}, {share_text(each.at_once)} after a single commit, as predicted"
    if plan.note:
        yield "note", plan.note
    if cost := cost_text(plan.lookups, change.commits):
        yield "note", cost
    cores = f"{plural(plan.time.cores, 'core')} of this machine" if plan.time.cores > 1 else "one core of this machine"
    yield "time", f"{duration_text(plan.time.seconds)} on {cores}, if nothing else runs there"
