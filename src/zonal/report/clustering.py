"""What a rewrite did, or would do, as text on a terminal."""

from rich.console import Console
from rich.text import Text

from zonal.report.text import layout_text, printable
from zonal.report.wording import plural, share_text
from zonal.sizes import size_text
from zonal.verbs.cluster import Clustering, ClusteringPlan
from zonal.verbs.learning import Predicted


def print_clustering(console: Console, done: Clustering) -> None:
    """Print what `cluster` did."""
    if not done.added_files:
        _line(console, "nothing to do", done.note or _all_there(done))
        return
    versions = f", version {done.versions[-1]}" if done.versions else ""
    commits = f", {len(done.versions)} commits" if len(done.versions) > 1 else ""
    _line(console, "table", f"{done.table} ({done.format}{versions}{commits})")
    _line(console, "layout", layout_text(done.layout))
    removed = f"{done.removed_files:,} files, " if done.removed_files else "read "
    new = f"{done.added_files:,} files, {size_text(done.added_bytes)}"
    _line(console, "rewritten", f"{removed}{size_text(done.removed_bytes)} → {new}, {done.rows:,} rows")
    for depth in done.depths:
        before = f"{max(1, round(depth.before)):,} of {done.files_before:,}"
        after = f"{max(1, round(depth.after)):,} of {done.files_after:,}"
        _line(console, "look-up", f"one {depth.column}: {before} files before, {after} now")
    if done.predicted is not None:
        _line(console, "queries", _predicted(done.predicted))
    if done.note:
        _line(console, "note", done.note)
    if done.conflicts:
        _line(console, "conflicts", f"{done.conflicts} with other writers; their changes are kept")
    _line(console, "time", f"{done.seconds:,.1f} s")


def _all_there(result: Clustering | ClusteringPlan) -> str:
    return f"every chosen file of {result.table} is in {layout_text(result.layout)} already"


def _predicted(found: Predicted) -> str:
    """Hold what was predicted against what the new files tell."""
    before, predicted, after = map(share_text, (found.share_before, found.share_predicted, found.share_after))
    asked = plural(found.queries, "query", "queries")
    return f"{asked} read {before} of the bytes before, {after} now; {predicted} were predicted"


def print_plan(console: Console, plan: ClusteringPlan) -> None:
    """Print what `cluster` would do."""
    if not plan.files:
        _line(console, "nothing to do", plan.note or _all_there(plan))
        return
    _line(console, "table", f"{plan.table} ({plan.format})")
    _line(console, "layout", layout_text(plan.layout))
    partitions = f" in {plan.partitions:,} partitions" if plan.partitions > 1 else ""
    _line(console, "to rewrite", f"{plan.files:,} files{partitions}, {size_text(plan.bytes)}, {plan.rows:,} rows")
    _line(console, "into", f"about {plan.new_files:,} files, {size_text(plan.new_bytes)}")
    if plan.share_before is not None and plan.share_predicted is not None:
        before, after = share_text(plan.share_before), share_text(plan.share_predicted)
        _line(console, "queries", f"read {before} of the bytes now, and {after} afterwards, as predicted")
    _line(console, "commits", f"{plan.commits:,}")
    _line(console, "time", f"about {max(plan.seconds, 1):,.0f} s on this machine")
    _line(console, "", "Nothing was changed: leave out --dry-run to do it.")


def _line(console: Console, label: str, text: str) -> None:
    console.print(Text(f"{label:<14}", style="bold") + Text(printable(text)), soft_wrap=True)
