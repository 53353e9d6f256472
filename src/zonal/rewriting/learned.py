"""What `cluster` learned from queries: a layout, or what they read under a given one."""

from dataclasses import dataclass, replace

from zonal.advising.queries import BoundQueries
from zonal.errors import LayoutError, option, quoted
from zonal.layouts.layout import TREE, Layout
from zonal.rewriting.request import Request
from zonal.snapshot import Snapshot
from zonal.tables.protocol import Table
from zonal.trials.today import standing
from zonal.values.progress import Progress

AUTO = "auto"
LEARNED = (AUTO, TREE)


@dataclass(frozen=True)
class Predicted:
    """Mean shares of the table's bytes that queries read: before the rewrite, as predicted, and after it."""

    queries: int
    share_before: float
    share_predicted: float
    share_after: float


@dataclass(frozen=True, eq=False)
class Learned:
    """A layout, and what all queries of the log read: before, and as predicted of the whole table, freshly clustered.

    However the layout came about, the same log and the same layout give the same numbers. `advise` measures candidates
    with held-out queries, and its shares are of those.
    """

    layout: Layout | None
    """None: the table is best left as it is."""
    reason: str
    asked: BoundQueries
    before: float
    predicted: float
    per_day: float = 0.0
    """Scans of the table in one day."""

    def held_against(self, after: Snapshot) -> Predicted:
        """Compare the prediction with what the queries read of the rewritten table."""
        share = standing(after, self.asked.bounds, self.asked.weights).current.mean
        return Predicted(len(self.asked), self.before, self.predicted, share)


def learned_for(source: Table, snapshot: Snapshot, request: Request, progress: Progress) -> Learned | None:
    """Learn a layout where the request says so, else predict what queries read under its own; None without queries."""
    by, layout, queries = request.by, request.layout, request.queries
    if layout in LEARNED:
        if queries is None:
            raise LayoutError(
                f"{option('layout', layout)} is learned from queries: give their logs with {option('queries')}."
            )
        if by is not None:
            subject = f"{option('layout', layout)} finds its columns in the queries"
            raise LayoutError(f"{subject}: leave out {option('by', by)}.")
        from zonal.rewriting.lessons import learn  # noqa: PLC0415 - slow to import, and seldom asked for

        return learn(
            str(layout), source, snapshot, queries, target_file_bytes=request.files.target_bytes, progress=progress
        )
    if queries is None:
        return None
    if by is None and layout is None and snapshot.layout is None:
        raise LayoutError(
            f"{quoted(snapshot.name, limit=200)} records no layout: say {option('layout', AUTO)} or "
            f"{option('layout', TREE)} to learn one from the queries, or which columns, as in "
            f"{option('by', ['ts', 'payload_id'])}."
        )
    from zonal.rewriting.lessons import foretell  # noqa: PLC0415

    return foretell(request.chosen(snapshot), source, snapshot, queries, progress=progress)


def settled(request: Request, learned: Learned | None) -> Request:
    """Return a request with the learned layout, where one was learned."""
    if learned is None:
        return request
    return replace(request, by=None, layout=learned.layout, asked=learned.asked, per_day=learned.per_day)
