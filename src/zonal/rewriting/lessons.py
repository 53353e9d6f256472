"""Learn a layout for `cluster` from queries, or predict what they read under a given one."""

from dataclasses import replace

from zonal.advising.conclusion import conclude
from zonal.advising.ground import Ground
from zonal.advising.layout_search import learn_tree
from zonal.errors import LayoutError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import bind
from zonal.rewriting.learned import AUTO, Learned
from zonal.snapshot import Snapshot
from zonal.study.advice_request import AdviceRequest, request_of
from zonal.tables.protocol import Table
from zonal.values.progress import Progress
from zonal.workload.logs import Queries


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
