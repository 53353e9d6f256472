"""Draw the results of verbs: choose the columns, and turn queries into boxes over them."""

from collections.abc import Sequence
from dataclasses import replace

from zonal.advising.queries import BoundQueries, filter_weights
from zonal.picture.picture import MOST_QUESTIONS, Picture, picture_of
from zonal.predicates.bound import Bound
from zonal.predicates.wording import describe
from zonal.snapshot import Snapshot

MOST_FILES = 500
"""Files up to which a table is drawn by default: so many can be told apart in a notebook, and cost next to nothing."""


def is_wanted(picture: bool | None, *versions: Snapshot) -> bool:
    """Tell whether a picture is to be drawn: as requested, else of tables with few files."""
    return max(len(each.files) for each in versions) <= MOST_FILES if picture is None else picture


def drawn(
    versions: Sequence[tuple[str, Snapshot]],
    columns: Sequence[str],
    questions: Sequence[tuple[str, Bound, float]] = (),
) -> Picture | None:
    """Draw versions of a table over those of the columns that have bounds; None where there is nothing to see.

    A single column is joined by another one of the table, for rectangles have two sides.
    """
    versions = [(label, snapshot) for label, snapshot in versions if len(snapshot.files)]
    known = list(dict.fromkeys(name for _, snapshot in versions for name in _with_bounds(snapshot)))
    names = [name for name in dict.fromkeys(columns) if name in known]
    if len(names) < 2:
        names += [name for name in known if name not in names][: 2 - len(names)]
    picture = picture_of(versions, names, questions) if names else None
    return picture if picture is not None and picture.axes else None


def _with_bounds(snapshot: Snapshot) -> list[str]:
    return [*snapshot.files.partition_bounds, *snapshot.files.bounds]


def compared(
    before: Snapshot, after: Snapshot, columns: Sequence[str], asked: BoundQueries | None, *, hide: bool = False
) -> Picture | None:
    """Draw two versions, or one where both are the same, over these columns, those of the queries and of the layout.

    With `hide` the picture shows no values that queries compare with.
    """
    versions = [("now", after)] if before is after else [("before", before), ("after", after)]
    filtered = [] if asked is None else list(filter_weights(asked)[0])
    recorded = () if before.layout is None else before.layout.columns
    questions = [] if asked is None else _questions(asked, hide=hide)
    picture = drawn(versions, [*columns, *filtered, *recorded], questions)
    return without_values(picture) if picture is not None and hide else picture


def without_values(picture: Picture) -> Picture:
    """Return a picture without the values that its queries compare with; what they read stays.

    Ticks that are values of the data are left out, too: the files of a tree begin where queries cut them. Round
    numbers and times stay.
    """
    axes = [axis if axis.has_round_ticks else replace(axis, ticks=()) for axis in picture.axes]
    questions = [replace(question, boxes={}) for question in picture.questions]
    return replace(picture, axes=tuple(axes), questions=tuple(questions))


def _questions(asked: BoundQueries, *, hide: bool) -> list[tuple[str, Bound, float]]:
    """Return the queries of the most weight, heaviest first; with `hide` their texts hold no values."""
    weighed = zip(asked.queries, asked.bounds, asked.weights.tolist(), strict=True)
    heaviest = sorted(weighed, key=lambda each: -each[2])[:MOST_QUESTIONS]
    return [(describe(query.predicate, hide=hide), bound, weight) for query, bound, weight in heaviest]
