"""Search for the best layouts of each kind, by rough predictions on the training queries."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from zonal.advising.ground import Ground
from zonal.layouts.layout import MAX_TREE_COLUMNS, TREE, Layout
from zonal.learning import grow
from zonal.predicates.bound import Bound
from zonal.trials.boxes import boxes_of
from zonal.trials.trial import Trial

_SINGLES, _COLUMNS = 12, 5
"""How many columns are tried alone, those of the most weight, and how many of them are then tried together."""
_FINALISTS = 2
_MOST_TOGETHER = 4
_LEAF_ROWS = 64
"""Least rows of the sample per leaf: smaller leaves can't be measured, and growing them takes long."""


def finalists(ground: Ground) -> list[Layout]:
    """Return the best linear orders, curves over two to four columns, and a tree; none where nothing is filtered."""
    names = ground.columns[:_SINGLES]
    if not names:
        return []
    singles = _ranked(ground, (ground.layout("linear", (name,)) for name in names))
    best = [layout.columns[0] for layout in singles[:_COLUMNS]]
    pairs = _ranked(ground, (ground.layout("linear", pair) for pair in permutations(best, 2)))
    curves = _ranked(ground, (ground.layout("zorder", columns) for columns in _together(best)))
    layouts = [singles[0], *pairs[:1], *curves[:_FINALISTS]]
    layouts += [replace(layout, kind="hilbert") for layout in curves[:1]]
    tree = learn_tree(
        ground.learning,
        [ground.asked.bounds[query] for query in ground.learn],
        columns=ground.columns,
        target_file_bytes=ground.target_file_bytes,
        row_group_rows=ground.row_group_rows,
        seed=ground.seed,
    )
    if tree is not None:
        layouts.append(ground.sized(tree))
    recorded = ground.snapshot.layout
    if recorded is not None and set(recorded.columns) <= set(ground.sample.coded.columns):
        layouts.append(ground.sized(recorded))
    return list(dict.fromkeys(layouts))


def _together(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for count in range(2, _MOST_TOGETHER + 1):
        yield from combinations(names, count)


def _ranked(ground: Ground, layouts: Iterable[Layout]) -> list[Layout]:
    scored = [(ground.screened(layout), number, layout) for number, layout in enumerate(layouts)]
    return [layout for _, _, layout in sorted(scored, key=lambda each: each[:2])]


def learn_tree(
    trial: Trial,
    bounds: Sequence[Bound],
    *,
    columns: Sequence[str],
    target_file_bytes: int,
    row_group_rows: int,
    seed: int = 0,
) -> Layout | None:
    """Learn a tree from the trial's sample and queries, whose predicates are `bounds`.

    Only `columns` are cut. The same arguments give the same tree; where no cut saves anything, there is none.
    """
    coded = trial.coded.only([name for name in trial.coded.columns if name in set(columns)][:MAX_TREE_COLUMNS])
    if not coded.columns or not len(coded):
        return None
    files = max(trial.total_rows * trial.row_bytes / target_file_bytes, 1.0)
    leaf_rows = max(len(coded) / files, _LEAF_ROWS)
    group_rows = len(coded) * row_group_rows / max(trial.total_rows, 1)
    tree = grow(
        coded,
        boxes_of(bounds, coded),
        trial.weights,
        schema=trial.rows.data.schema,
        leaf_rows=leaf_rows,
        group_rows=max(group_rows, _LEAF_ROWS) if group_rows < leaf_rows else None,
        seed=seed,
    )
    if tree.leaves == 1:
        return None
    return Layout(
        TREE,
        tree.columns,
        target_file_bytes=target_file_bytes,
        row_group_rows=row_group_rows,
        tree=tree.to_json(),
    )
