"""Learn a layout for `cluster` from queries, or predict what they read under a given one."""

from dataclasses import dataclass, replace

from zonal.advising.conclusion import conclude
from zonal.advising.ground import Ground
from zonal.advising.layout_search import learn_tree
from zonal.advising.queries import BoundQueries
from zonal.errors import LayoutError, TableError, option, quoted
from zonal.layouts.layout import TREE, Layout
from zonal.layouts.ranks import bind
from zonal.rewriting.request import Request
from zonal.snapshot import Snapshot
from zonal.study.advice_request import AdviceRequest, request_of
from zonal.tables.protocol import Table
from zonal.trials.today import standing
from zonal.values.progress import Progress
from zonal.workload.logs import Queries

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
    return foretell(request.chosen(snapshot), source, snapshot, queries, progress=progress)


def settled(request: Request, learned: Learned | None) -> Request:
    """Return a request with the learned layout, where one was learned."""
    if learned is None:
        return request
    return replace(request, by=None, layout=learned.layout, asked=learned.asked, per_day=learned.per_day)


def learn(
    kind: str,
    table: Table,
    snapshot: Snapshot,
    queries: Queries,
    *,
    target_file_bytes: int | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learn a layout: `auto` is the advice of `advise`, `tree` a tree learned from all queries."""
    request = _request(table, snapshot, queries, target_file_bytes, progress)
    ground = request.ground()
    if isinstance(ground, str):
        raise TableError(f"No layout can be learned for {quoted(snapshot.name, limit=200)}. {ground}")
    learned = _best(request, ground) if kind == AUTO else _tree(ground)
    return replace(learned, per_day=request.terms.per_day)


def foretell(
    layout: Layout,
    table: Table,
    snapshot: Snapshot,
    queries: Queries,
    *,
    progress: Progress | None = None,
) -> Learned:
    """Predict what queries would read under a given layout."""
    bind(snapshot.schema, layout.columns)
    request = _request(table, snapshot, queries, layout.file_bytes, progress)
    ground = request.ground(columns=layout.columns, parted=False)
    if isinstance(ground, str):
        name = quoted(snapshot.name, limit=200)
        raise TableError(f"What queries would read of {name} can't be predicted. {ground}")
    return replace(_applied(layout, ground), per_day=request.terms.per_day)


def _request(
    table: Table,
    snapshot: Snapshot,
    queries: Queries,
    target_file_bytes: int | None,
    progress: Progress | None,
) -> AdviceRequest:
    return request_of(table, snapshot, queries, target_file_size=target_file_bytes, progress=progress)


def _best(request: AdviceRequest, ground: Ground) -> Learned:
    advice = conclude(ground, request.terms)
    best = advice.best
    if advice.verdict != "cluster" or best is None or best.layout is None:
        before = ground.standing.current.mean
        return Learned(None, advice.reason, ground.asked, before, before)
    return _applied(best.layout, ground, advice.reason)


def _applied(layout: Layout, ground: Ground, reason: str = "") -> Learned:
    """Predict what all queries read under a chosen layout."""
    prediction = ground.unparted().predicted(layout)
    return Learned(layout, reason, ground.asked, ground.standing.current.mean, prediction.mean)


def _tree(ground: Ground) -> Learned:
    tree = learn_tree(
        ground.sample,
        ground.asked.bounds,
        columns=ground.columns,
        target_file_bytes=ground.target_file_bytes,
        row_group_rows=ground.row_group_rows,
        seed=ground.seed,
    )
    if tree is None:
        name = quoted(ground.snapshot.name, limit=200)
        raise LayoutError(f"No tree can be learned for {name}: no cut would spare its queries anything.")
    return _applied(ground.sized(tree), ground)
