"""Find where a statement reads a table, and the conditions that the rows of each read must satisfy.

Conditions travel down as SQL: each column of a query's result is replaced by the expression that it is made of.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from zonal.errors import PredicateError
from zonal.predicates.scalars import Opaque
from zonal.sql.outputs import Inside, Names, aliases_of, column_at, inner_queries, outputs_of, placed, unaliased
from zonal.sql.pass_through import grouped_gate, is_renamed, result_gate
from zonal.sql.pushdown import HIDDEN, OTHERS, About, Effort, as_own, column_path, pushed, strangers, substituted
from zonal.sql.relations import (
    Definition,
    Joined,
    JoinKind,
    NameScope,
    Relation,
    RelationTree,
    World,
    conjuncts,
    ons_of,
    qualifiers_of,
    read_from,
    read_item,
    relations_of,
    with_clauses,
)
from zonal.sql.terms import path_of
from zonal.sql.unusable import elsewhere

_MOST_QUERIES = 5_000
_PLAIN_BRACKETS = frozenset({"this", "alias", "with_"})
_PLAIN_UNION = frozenset({"this", "expression", "with_", "distinct", "order", "by_name"})


@dataclass(frozen=True, eq=False)
class _Task:
    """A query to visit, and the conditions on its result: columns by bare names, all others `elsewhere`."""

    query: exp.Expr
    scope: NameScope
    conditions: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class Read:
    """A read of the table, and the conditions on its rows: columns by bare names, all others `elsewhere`."""

    relation: Relation
    conditions: Sequence[exp.Expr]


@dataclass(eq=False)
class _Walk:
    world: World
    effort: Effort = field(default_factory=Effort)
    reads: list[Read] = field(default_factory=list)
    strangers: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class StatementReads:
    """The reads of a table, in the order of the text."""

    reads: Sequence[Read]
    strangers: Sequence[str]
    """Names in conditions that are no column of any relation."""


def reads_of(statement: exp.Expr, world: World) -> StatementReads:
    """Find each read of the world's table.

    A query of a WITH clause or a view counts as often as it is named, as engines that merge it into the query do.
    """
    walk = _Walk(world)
    waiting = [_Task(statement, NameScope())]
    count = 0
    while waiting:
        count += 1
        if count > _MOST_QUERIES:
            raise PredicateError(
                f"The statement has more than {_MOST_QUERIES:,} queries, those of WITH clauses and views once for each "
                "time that they are named."
            )
        waiting.extend(reversed(list(_visit(waiting.pop(), walk))))
    return StatementReads(walk.reads, tuple(walk.strangers))


def _visit(task: _Task, walk: _Walk) -> Iterator[_Task]:
    """Visit one query or statement: record its own reads, and yield the queries in it as the next tasks."""
    query, scope = task.query, with_clauses(task.scope, task.query)
    for clause in (query.args.get("with_") or exp.With()).expressions:
        if isinstance(clause.this, exp.DML):
            yield _Task(clause.this, scope)
    if isinstance(query, exp.Subquery):
        is_plain = not any(value and name not in _PLAIN_BRACKETS for name, value in query.args.items())
        yield _Task(query.this, scope, task.conditions if is_plain else ())
    elif isinstance(query, exp.SetOperation):
        yield from _branches(query, scope, task.conditions, walk)
    elif isinstance(query, exp.Select):
        yield from _select(query, scope, task.conditions, walk)
    elif isinstance(query, exp.Delete | exp.Update):
        yield from _changed(query, scope, walk)
    elif isinstance(query, exp.Merge):
        yield from _merged(query, scope, walk)
    elif isinstance(query, exp.Pivot):
        tree = read_item(query.this, walk.world, scope)
        yield from _joined(tree, (), Names(tree, walk.world, scope), scope, (), walk)
    elif (inner := _written(query)) is not None:
        yield _Task(inner, scope)


def _written(node: exp.Expr) -> exp.Expr | None:
    """Return the query whose result a statement writes somewhere; a view that isn't materialized runs none."""
    inner = node.this if isinstance(node, exp.Copy) else node.args.get("expression")
    is_filled = str(node.args.get("kind")).upper() == "TABLE" or node.find(exp.MaterializedProperty) is not None
    is_run = isinstance(node, exp.Insert | exp.Cache | exp.Copy) or (isinstance(node, exp.Create) and is_filled)
    return inner if is_run and isinstance(inner, exp.Query) else None


def _branches(
    query: exp.SetOperation, scope: NameScope, conditions: tuple[exp.Expr, ...], walk: _Walk
) -> Iterator[_Task]:
    """Visit the branches of a UNION, INTERSECT or EXCEPT: its rows come from rows that satisfy the same conditions.

    Columns are matched by position: conditions on a name become conditions on its position in the first branch.
    """
    if any(value and name not in _PLAIN_UNION for name, value in query.args.items()):
        conditions = ()
    first = outputs_of(Definition(query.this, scope), walk.world)
    places = {item.name: placed(place) for place, item in reversed(list(enumerate(first.items)))}
    single = [condition for condition in conditions if not _is_loose(condition)]
    if query.args.get("by_name"):
        yield from (_Task(part, scope, tuple(single)) for part in (query.this, query.expression))
        return
    yield _Task(query.this, scope, tuple(single))
    moved = tuple(_renamed(condition, places, walk.effort) for condition in single)
    yield _Task(query.expression, scope, moved)


def _is_loose(condition: exp.Expr) -> bool:
    """Tell whether a condition compares with a number in quotes: a UNION of text and numbers may be text."""
    texts = (node.name.strip() for node in condition.find_all(exp.Literal) if node.is_string)
    return any(text.lstrip("+-").replace(".", "", 1).isdecimal() for text in texts)


def _renamed(condition: exp.Expr, names: "dict[str, str]", effort: Effort) -> exp.Expr:
    """Return a condition with the columns' new names; columns without one are hidden."""

    def change(node: exp.Expr) -> exp.Expr:
        try:
            parts = path_of(node)
        except Opaque as reason:
            return elsewhere(str(reason))
        name = names.get(parts[0].name.casefold())
        return elsewhere(HIDDEN) if name is None else column_at([name, *(part.name for part in parts[1:])])

    return substituted(condition, change, effort)


def _select(select: exp.Select, scope: NameScope, conditions: tuple[exp.Expr, ...], walk: _Walk) -> Iterator[_Task]:
    tree = read_from(select, walk.world, scope)
    names = Names(tree, walk.world, scope, hidden=_hidden(select, walk.world))
    inside = Inside(select, names, scope)
    held = _lowered(conditions, inside, walk.effort)
    held += _kept(conjuncts(_clause(select, "having")), inside, walk.effort)
    held += conjuncts(_clause(select, "where"))
    # CONNECT BY and MATCH_RECOGNIZE look at rows that WHERE refuses afterwards.
    is_filtered = not (select.args.get("connect") or select.args.get("match"))
    held = _without_aliases(held, inside, walk.effort) if is_filtered else []
    own = [value for name, value in select.args.items() if name not in ("with_", "from_", "joins", "laterals")]
    yield from _joined(tree, held, names, scope, own, walk)


def _hidden(select: exp.Select, world: World) -> frozenset[str]:
    """Return the aliases of the SELECT list that hide columns of the same name.

    ClickHouse's do by default; its setting prefer_column_name_to_alias, which the text doesn't tell, turns that off.
    """
    if world.session.dialect != "clickhouse":
        return frozenset()
    return frozenset(node.alias.casefold() for node in aliases_of(select) if not _is_itself(node))


def _is_itself(node: exp.Alias) -> bool:
    column = unaliased(node)
    is_bare = isinstance(column, exp.Column) and not column.args.get("table")
    return is_bare and column.name.casefold() == node.alias.casefold()


def _clause(node: exp.Expr, name: str) -> exp.Expr | None:
    clause = node.args.get(name)
    return None if clause is None else clause.this


def _lowered(conditions: Sequence[exp.Expr], inside: Inside, effort: Effort) -> list[exp.Expr]:
    """Return conditions on a SELECT's result as those on its FROM clause; what doesn't pass is hidden."""
    passes = result_gate(inside)

    def change(node: exp.Expr) -> exp.Expr:
        try:
            parts = path_of(node)
        except Opaque as reason:
            return elsewhere(str(reason))
        expression = inside.find(parts[0].name.casefold(), parts[0])
        if expression is None or not passes(expression):
            return elsewhere(HIDDEN)
        if len(parts) > 1 and not isinstance(expression, exp.Column | exp.Dot):
            return elsewhere(HIDDEN)
        for part in parts[1:]:
            expression = exp.Dot(this=expression, expression=part)
        return expression

    return [substituted(condition, change, effort) for condition in conditions]


def _kept(conditions: Iterable[exp.Expr], inside: Inside, effort: Effort) -> Iterator[exp.Expr]:
    """Yield conditions of HAVING with the columns that are the same in all rows of a group; others are hidden."""
    passes = grouped_gate(inside)

    def change(node: exp.Expr) -> exp.Expr:
        return node if passes(node) and not is_renamed(node, inside) else elsewhere(HIDDEN)

    return (substituted(condition, change, effort) for condition in conditions)


def _without_aliases(conditions: list[exp.Expr], inside: Inside, effort: Effort) -> list[exp.Expr]:
    """Replace names of the SELECT list, which some dialects allow in WHERE where no column has the name."""
    if not conditions or not inside.names.is_complete():
        return conditions
    aliases = {
        node.alias.casefold(): unaliased(node) for node in inside.select.expressions if isinstance(node, exp.Alias)
    }

    def change(node: exp.Expr) -> exp.Expr:
        name = node.name.casefold()
        is_bare = isinstance(node, exp.Column) and not node.args.get("table")
        if not is_bare or name not in aliases or inside.names.has(name):
            return node
        return aliases[name]

    return [substituted(condition, change, effort) for condition in conditions] if aliases else conditions


def _joined(
    tree: RelationTree | None,
    held: Sequence[exp.Expr],
    names: Names,
    scope: NameScope,
    own: Sequence[object],
    walk: _Walk,
) -> Iterator[_Task]:
    """Push conditions to the relations of a FROM clause, and look into the queries of everything else."""
    inner = replace(scope, outer=scope.outer | qualifiers_of(names.relations))
    items = [item for value in own for item in (value if isinstance(value, list) else [value])]
    nodes = [item for item in items if isinstance(item, exp.Expr)]
    marked = any(column.args.get("join_mark") for condition in held for column in condition.find_all(exp.Column))
    nodes += _loose_parts(tree)
    queries = list(inner_queries(nodes))
    listed = _listed(nodes)
    if tree is not None:
        correlated = [item for query in queries for item in _correlated(query)]
        about = About(names)
        walk.strangers |= dict.fromkeys(strangers([*held, *ons_of(tree)], names, scope))
        for relation, number, conditions in pushed(tree, [] if marked else held, names):
            if relation.is_wanted or relation.definition is not None:
                concerned = [condition for condition in conditions if about.concerns(condition, number)]
                yield from _related(relation, number, concerned, correlated, names, inner, walk)
    correlating = replace(inner, is_correlated=True)
    yield from (_Task(query, correlating, listed.get(id(query), ())) for query in queries)


def _listed(nodes: Sequence[exp.Expr]) -> dict[int, tuple[exp.Expr, ...]]:
    """Return what x IN (SELECT y …) tells of its query: y is joined with x."""
    keys: dict[int, tuple[exp.Expr, ...]] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.In) and isinstance(query := node.args.get("query"), exp.Query):
            width = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
            keys[id(query)] = tuple(_joined_key(column_at([placed(place)])) for place in range(width))
        if not isinstance(node, exp.Query):
            waiting.extend(node.iter_expressions())
    return keys


def _loose_parts(tree: RelationTree | None) -> list[exp.Expr]:
    """Return the expressions of a FROM clause outside of its queries."""
    if tree is None:
        return []
    return [*ons_of(tree), *(node for relation in relations_of(tree) for node in relation.nodes)]


def _correlated(query: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the equalities of an inner query, which may join it with the query around it."""
    while isinstance(query, exp.Subquery):
        query = query.this
    for condition in conjuncts(_clause(query, "where") if isinstance(query, exp.Select) else None):
        if isinstance(condition, exp.EQ | exp.NullSafeEQ):
            yield condition


def _related(
    relation: Relation,
    number: int,
    conditions: list[exp.Expr],
    correlated: list[exp.Expr],
    names: Names,
    scope: NameScope,
    walk: _Walk,
) -> Iterator[_Task]:
    """Read a relation that is the table, or look into the query that it stands for."""
    definition = relation.definition
    change = as_own(number, names)
    lowered = [substituted(condition, change, walk.effort) for condition in conditions]
    lowered += _keys(number, correlated, names)
    if relation.is_wanted:
        unseen = [elsewhere("rows that are sampled, pivoted or renamed before")]
        walk.reads.append(Read(relation, lowered if relation.is_plain else unseen))
        return
    assert definition is not None  # noqa: S101 - one of both
    if isinstance(definition.query, exp.DML):  # which is read where it stands
        return
    seen = replace(definition.scope, outer=scope.outer | definition.scope.outer)
    if not relation.is_plain:
        lowered = []
    elif definition.columns:
        places = {name: placed(place) for place, name in enumerate(definition.columns)}
        lowered = [_renamed(condition, places, walk.effort) for condition in lowered]
    yield _Task(definition.query, seen, tuple(lowered))


def _keys(number: int, correlated: list[exp.Expr], names: Names) -> Iterator[exp.Expr]:
    """Yield the relation's columns that joins by name, or queries inside of conditions, compare with others'."""
    for name, owners in names.shared.items():
        if number in owners:
            yield _joined_key(column_at([name]))
    for condition in correlated:
        for side in (condition.this, condition.expression):
            path = column_path(side)
            owners, length = names.owners(path) if path else (frozenset[int](), 0)
            if length and number in owners:
                yield _joined_key(column_at(path[length:]))


def _joined_key(node: exp.Expr) -> exp.Expr:
    """Return a condition that records a join key and refuses no row, not even one of nulls."""
    return exp.NullSafeEQ(this=node, expression=elsewhere(OTHERS))


def _changed(node: exp.Expr, scope: NameScope, walk: _Walk) -> Iterator[_Task]:
    """Read what a DELETE or UPDATE changes, and what it joins that with."""
    tree = read_item(node.this, walk.world, scope)
    others = [clause.this for clause in [node.args.get("from_")] if clause is not None]
    for item in others + list(node.args.get("using") or []):
        tree = Joined(tree, read_item(item, walk.world, scope))
    names = Names(tree, walk.world, scope)
    held = list(conjuncts(_clause(node, "where")))
    own = [value for name, value in node.args.items() if name not in ("with_", "this", "from_", "using")]
    yield from _joined(tree, held, names, scope, own, walk)


def _merged(node: exp.Merge, scope: NameScope, walk: _Walk) -> Iterator[_Task]:
    """Read both sides of a MERGE; all rows of a side are needed where those without a match count, too."""
    whens = [when for clause in [node.args.get("whens")] if clause is not None for when in clause.expressions]
    unmatched = [when for when in whens if not when.args.get("matched")]
    is_source = any(not when.args.get("source") for when in unmatched)
    is_target = any(when.args.get("source") for when in unmatched)
    kinds: dict[tuple[bool, bool], JoinKind] = {
        (False, False): "inner",
        (True, False): "left",
        (False, True): "right",
        (True, True): "full",
    }
    target, source = (read_item(node.args[name], walk.world, scope) for name in ("this", "using"))
    on = tuple(conjuncts(node.args.get("on")))
    tree = Joined(target, source, kinds[is_target, is_source], on)
    yield from _joined(tree, [], Names(tree, walk.world, scope), scope, [node.args.get("whens")], walk)
