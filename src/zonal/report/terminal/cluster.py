"""Say what a rewrite did or would do, and print it on a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from zonal.layouts.layout import short_text
from zonal.plan.rewrite import Property
from zonal.report.terminal.text import print_fact
from zonal.report.wording import Fact, duration_text, lookup_text, plural, share_text
from zonal.rewriting.division import cost_text
from zonal.rewriting.dry_run import ClusteringPlan
from zonal.rewriting.learned import Predicted
from zonal.rewriting.outcome import Clustering
from zonal.storage.location import local_path
from zonal.values.sizes import format_size, size_text


def print_clustering(console: Console, done: Clustering) -> None:
    """Print what `cluster` did."""
    if not done.change.added_files:
        _line(console, "recorded" if done.layout_recorded else "nothing to do", nothing_text(done))
        return
    _line(console, "table", table_text(done))
    for label, fact in clustering_facts(done):
        _line(console, label, fact)


def print_plan(console: Console, plan: ClusteringPlan) -> None:
    """Print what `cluster` would do."""
    if not plan.files:
        _line(console, "to record" if plan.layout_recorded else "nothing to do", nothing_text(plan))
        return
    _line(console, "table", f"{plan.table} ({plan.format})")
    for label, fact in plan_facts(plan):
        _line(console, label, fact)
    _line(console, "", "Nothing was changed: leave out --dry-run to do it.")


def _line(console: Console, label: str, text: str) -> None:
    print_fact(console, label, text)


# --- Facts -----------------------------------------------------------------------------------------------------------


def nothing_text(result: Clustering | ClusteringPlan) -> str:
    """Say why no file is rewritten, and what is recorded all the same."""
    if result.layout_recorded:
        said = "is" if isinstance(result, Clustering) else "would be"
        told = f"{short_text(result.layout)} {said} the layout of {result.table} for rows that arrive."
        return f"{told} Files stay as they are. {result.note}".rstrip()
    return result.note or f"Every chosen file of {result.table} is in {short_text(result.layout)} already."


def table_text(done: Clustering) -> str:
    """Name the table with its new version."""
    version = f", version {done.run.versions[-1]}" if done.run.versions else ""
    commits = f", {len(done.run.versions)} commits" if len(done.run.versions) > 1 else ""
    return f"{done.table} ({done.format}{version}{commits})"


def committed_text(done: Clustering) -> str:
    """Say in a sentence what a run has committed."""
    if not done.change.added_files:
        return "Nothing was changed."
    versions = f" as version {', '.join(map(str, done.run.versions))}" if done.run.versions else ""
    new = plural(done.change.added_files, "new file")
    return f"The rewrite was done before: {new} of {done.table} are committed{versions}."


def clustering_facts(done: Clustering, *, lookups: bool = True) -> Iterator[Fact]:
    """Say what a rewrite did, and what was predicted; without `lookups` where a table shows them."""
    change, read = done.change, done.lookups
    if done.layout:
        yield "layout", short_text(done.layout)
    if change.added_files:
        removed = f"{plural(change.removed_files, 'file')}, " if change.removed_files else "read "
        new = f"{plural(change.added_files, 'file')}, {size_text(change.added_bytes)}"
        yield "rewritten", f"{removed}{size_text(change.removed_bytes)} → {new}, {plural(change.rows, 'row')}"
        yield "predicted", f"{plural(change.predicted_files, 'file')}, {size_text(change.predicted_bytes)}"
        yield from _size_facts(change.file_size, change.file_size_reason)
    for depth in read.depths if lookups else ():
        before = lookup_text(depth.before, read.files_before, depth.share_before)
        after = lookup_text(depth.after, read.files_after, depth.share_after)
        yield "look-up", f"one {depth.column}: {before} before, {after} now"
    if done.predicted is not None:
        yield "queries", predicted_text(done.predicted)
    if change.removed_files:
        yield "old files", old_files_text(done)
    yield from _property_facts(done.properties)
    if change.added_files and done.note:
        yield "note", done.note
    if done.run.conflicts:
        yield "conflicts", f"{done.run.conflicts:,} with other writers; their changes are kept"
    if done.run.carried_deletes:
        rows = plural(done.run.carried_deletes, "row")
        yield "deletes", f"{rows}, deleted by other writers meanwhile: carried over to the new files"
    yield "time", f"{done.run.seconds:,.1f} s"


def old_files_text(done: Clustering) -> str:
    """Say that replaced files stay for readers of older versions, and what removes them."""
    change = done.change
    stay = f"{plural(change.removed_files, 'file')}, {size_text(change.removed_bytes)} stay for older versions"
    until = f"{stay} until {done.old_files_until}" if done.old_files_until else stay
    # In object stores, `clean` moves nothing.
    return until if local_path(done.location) is None else f"{until}; or until zonal clean --expire 7d sets them aside"


def predicted_text(shares: Predicted) -> str:
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


def plan_facts(plan: ClusteringPlan) -> Iterator[Fact]:
    """Say what a rewrite would do."""
    yield "layout", short_text(plan.layout)
    partitions = f" in {plural(plan.partitions, 'partition')}" if plan.partitions > 1 else ""
    old = f"{plural(plan.files, 'file')}{partitions}, {size_text(plan.bytes)}, {plural(plan.rows, 'row')}"
    yield "to rewrite", old
    for text in plan.merges:
        yield "merge", text
    for text in plan.not_taken:
        yield "not merged", text
    yield "into", f"about {plural(plan.new_files, 'file')}, {size_text(plan.new_bytes)}"
    yield from _size_facts(plan.file_size, plan.file_size_reason)
    if plan.share_before is not None and plan.share_predicted is not None:
        before, after = share_text(plan.share_before), share_text(plan.share_predicted)
        queries = plural(plan.queries, "query", "queries")
        yield "queries", f"{queries} read {before} of the bytes now, and {after} afterwards, as predicted"
    yield from _property_facts(plan.properties)
    yield "commits", f"{plan.commits:,}"
    for each in plan.lookups:
        after = f"{share_text(each.in_commits)} of the files afterwards"
        yield "look-up", f"one {each.column}: {after}, {share_text(each.at_once)} after a single commit, as predicted"
    if plan.note:
        yield "note", plan.note
    if cost := cost_text(plan.lookups, plan.commits):
        yield "note", cost
    cores = f"{plural(plan.cores, 'core')} of this machine" if plan.cores > 1 else "one core of this machine"
    yield "time", f"{duration_text(plan.seconds)} on {cores}, if nothing else runs there"
