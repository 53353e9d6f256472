"""Push conditions down to a table: through the outputs of queries, and through joins.

The law: a row of a relation that the query's result depends on satisfies every condition that is pushed to it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from zonal.errors import PredicateError
from zonal.predicates.scalars import Opaque
from zonal.sql.outputs import Names, column_at
from zonal.sql.relations import Joined, NamePath, NameScope, Relation, RelationTree
from zonal.sql.terms import is_word, path_of
from zonal.sql.unusable import elsewhere, is_elsewhere

OTHERS = "a column of another table"
HIDDEN = "a column that is computed before it is compared"
UNCLEAR = "a column that may be another table's, for want of a qualifier"
LISTED = "a name of the SELECT list"
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_STRICT = (exp.Paren, exp.Cast, exp.Neg, exp.Date, exp.TsOrDsToDate, exp.DateTrunc, exp.TimestampTrunc, exp.Year)
_MOST_NODES = 300_000


@dataclass(eq=False)
class Effort:
    """Nodes that were rewritten so far; a statement whose conditions grow with every step is refused."""

    nodes: int = 0

    def spend(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > _MOST_NODES:
            raise PredicateError(
                "The statement is too complex to follow. Its conditions pass through too many queries."
            )


def substituted(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr], effort: Effort) -> exp.Expr:
    """Return a condition with every column changed, and without the queries inside of it; the rest is shared."""
    done: dict[int, exp.Expr] = {}
    waiting: list[tuple[exp.Expr, bool]] = [(node, False)]
    count = 0
    while waiting:
        here, is_ready = waiting.pop()
        count += 1
        if is_ready:
            done[id(here)] = _rebuilt(here, done)
        elif isinstance(here, exp.Query):
            done[id(here)] = elsewhere("a subquery")
        elif isinstance(here, exp.Lambda | exp.Identifier | exp.Literal):
            done[id(here)] = here
        elif isinstance(here, exp.Column | exp.Dot):
            done[id(here)] = change(here)
        else:
            waiting.append((here, True))
            for child in here.iter_expressions():
                if isinstance(child, exp.Literal) or is_word(child, here):
                    done[id(child)] = child
                else:
                    waiting.append((child, False))
    effort.spend(count)
    return done[id(node)]


def _rebuilt(node: exp.Expr, done: dict[int, exp.Expr]) -> exp.Expr:
    """Return the node with its changed children; the node itself if none changed."""
    children = list(node.iter_expressions())
    if all(done[id(child)] is child for child in children):
        return node
    changed = {
        name: [done.get(id(item), item) for item in value] if isinstance(value, list) else done.get(id(value), value)
        for name, value in node.args.items()
    }
    return type(node)(**changed)


def as_own(number: int, names: Names) -> Callable[[exp.Expr], exp.Expr]:
    """Return a function that turns one relation's columns into bare names, and all others into `elsewhere`."""

    def change(node: exp.Expr) -> exp.Expr:
        try:
            parts = path_of(node)
        except Opaque as reason:
            return elsewhere(str(reason))
        owners, length = names.owners(tuple(part.name.casefold() for part in parts))
        if number not in owners:
            is_listed = not length and parts[0].name.casefold() in names.hidden
            return elsewhere(LISTED if is_listed else OTHERS if owners or length else UNCLEAR)
        own = parts[length:]
        known = names.columns(number)
        if known is not None and own[0].name.casefold() not in known:
            return elsewhere("a column that the table doesn't have")
        marks = [bool(part.args.get("quoted")) for part in own]
        spelled = names.world.spelling.get(own[0].name.casefold()) if names.relations[number].is_wanted else None
        if spelled is not None:
            return column_at([spelled, *(part.name for part in own[1:])], [False, *marks[1:]])
        return column_at([part.name for part in own], marks)

    return change


class About:
    """The relations that each condition of a FROM clause refers to, found once per condition."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.known: dict[int, frozenset[int] | None] = {}

    def concerns(self, condition: exp.Expr, number: int) -> bool:
        """Tell whether a condition has columns of the relation, or is about no columns at all."""
        if id(condition) not in self.known:
            self.known[id(condition)] = self._owners(condition)
        owners = self.known[id(condition)]
        return owners is None or number in owners

    def _owners(self, condition: exp.Expr) -> frozenset[int] | None:
        columns = [node for node in condition.walk(prune=_is_column_or_query) if isinstance(node, exp.Column | exp.Dot)]
        is_constant = not columns and not any(is_elsewhere(node) for node in condition.walk())
        return None if is_constant else frozenset[int]().union(*(_owners(node, self.names) for node in columns))


def strangers(conditions: Sequence[exp.Expr], names: Names, scope: NameScope) -> Iterator[str]:
    """Yield names in conditions that are no column of any relation of the FROM clause, nor of a query around it."""
    waiting = [] if scope.is_correlated or not names.is_complete() else list(conditions)
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Column | exp.Dot):
            path = column_path(node)
            owners, length = names.owners(path) if path else (frozenset[int](), 0)
            if length and len(owners) == 1 and path[length] not in (names.columns(min(owners)) or ()):
                yield path_of(node)[length].name
            elif path and not length and path[0] not in (*names.hidden, *names.shared) and not names.has(path[0]):
                yield path_of(node)[0].name
        elif not isinstance(node, exp.Query | exp.Lambda):
            waiting.extend(child for child in node.iter_expressions() if not is_word(child, node))


def column_path(node: exp.Expr) -> NamePath:
    """Return a column's path, case-folded; () if it is no plain column."""
    try:
        return tuple(part.name.casefold() for part in path_of(node))
    except Opaque:
        return ()


def _is_column_or_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Dot | exp.Query)


def _owners(node: exp.Expr, names: Names) -> frozenset[int]:
    path = column_path(node)
    return names.owners(path)[0] if path else frozenset()


def pushed(
    tree: RelationTree, conditions: Sequence[exp.Expr], names: Names
) -> Iterator[tuple[Relation, int, list[exp.Expr]]]:
    """Yield the relations, their numbers, and the conditions that each of their rows must satisfy."""
    waiting: list[tuple[RelationTree, list[exp.Expr]]] = [(tree, list(conditions))]
    number = 0
    while waiting:
        node, held = waiting.pop()
        if isinstance(node, Joined):
            left, right = _sides(node, held, names)
            waiting += [(node.right, right), (node.left, left)]
        else:
            yield node, number, held
            number += 1


def _sides(join: Joined, held: list[exp.Expr], names: Names) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the conditions of both sides of a join, of which its rows satisfy `held`.

    A row that an outer join would replace by nulls matters even where it fails a condition, unless nulls fail it, too.
    """
    on, kind = list(join.on), join.kind
    both = held + on
    if kind in ("left", "full") and _is_refused(names.numbers(join.right), held, names):
        kind = "inner" if kind == "left" else "right"
    if kind in ("right", "full") and _is_refused(names.numbers(join.left), held, names):
        kind = "inner" if kind == "right" else "left"
    if kind in ("full", "unclear"):
        return [], []
    if kind == "inner":
        return both, both
    if kind == "right":
        return on, held
    return (both if kind == "semi" else held), on


def _is_refused(numbers: frozenset[int], held: Sequence[exp.Expr], names: Names) -> bool:
    def is_own(node: exp.Expr) -> bool:
        owners = _owners(node, names)
        return bool(owners) and owners <= numbers

    return any(_refuses(condition, False, is_own) for condition in held)


def _refuses(node: exp.Expr, negated: bool, is_own: Callable[[exp.Expr], bool]) -> bool:
    """Tell whether a condition, or its negation, can't be true where the own columns are null."""
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    negated ^= bool(node.args.get("negate"))
    if isinstance(node, exp.And | exp.Or):
        sides = (_refuses(side, negated, is_own) for side in node.flatten())
        return any(sides) if isinstance(node, exp.And) != negated else all(sides)
    if isinstance(node, exp.Is):
        if isinstance(node.expression, exp.Null):
            return negated and _is_strict(node.this, is_own)
        return not negated and isinstance(node.expression, exp.Boolean) and _is_strict(node.this, is_own)
    if isinstance(node, exp.In):
        is_list = not any(node.args.get(name) for name in ("query", "unnest", "field"))
        return (is_list or not negated) and _is_strict(node.this, is_own)
    if isinstance(node, exp.Between | exp.Like):
        return _is_strict(node.this, is_own)
    if isinstance(node, _COMPARISONS):
        sides_of = (node.this, node.expression)
        return not any(isinstance(side, exp.Any | exp.All | exp.Query) for side in sides_of) and any(
            _is_strict(side, is_own) for side in sides_of
        )
    return isinstance(node, exp.Column) and is_own(node)


def _is_strict(node: exp.Expr, is_own: Callable[[exp.Expr], bool]) -> bool:
    """Tell whether an expression is null where the own columns are."""
    while isinstance(node, _STRICT):
        node = node.this
    return isinstance(node, exp.Column | exp.Dot) and is_own(node)
