"""Read FROM clauses: what each name in them stands for, and how the relations are joined."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from zonal.errors import PredicateError
from zonal.predicates.scalars import Session
from zonal.sql.unusable import describe

NamePath: TypeAlias = tuple[str, ...]
JoinKind = Literal["inner", "left", "right", "full", "semi", "anti", "unclear"]

CALL = "()"
"""Ends the name of a function that stands in the place of a table."""
_MOST_CLAUSES = 1_000
_PLAIN_TABLE = frozenset({"this", "db", "catalog", "alias", "version", "when", "hints", "only", "joins", "laterals"})
_PLAIN_JOIN = frozenset({"this", "on", "side", "kind", "using", "method", "hint", "global_"})


@dataclass(frozen=True, eq=False)
class NameScope:
    """What a query sees beside its own FROM clause."""

    clauses: "Mapping[str, Definition]" = field(default_factory=dict)
    """Queries of the WITH clauses, by case-folded name."""
    outer: frozenset[NamePath] = frozenset()
    """Qualifiers of the relations around it."""
    is_correlated: bool = False
    """Whether names without a qualifier may be columns of those relations."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A query that a relation stands for: of a WITH clause, a view, or in brackets."""

    query: exp.Expr
    scope: NameScope
    columns: NamePath = ()
    """New names of its columns, case-folded."""
    is_recursive: bool = False


@dataclass(frozen=True, eq=False)
class Relation:
    """One item of a FROM clause."""

    qualifiers: frozenset[NamePath]
    is_wanted: bool = False
    """Whether it is the table whose reads are wanted."""
    definition: Definition | None = None
    names: NamePath | None = None
    """The names of its columns, if it is neither the table nor a query and they are known."""
    is_plain: bool = True
    """Whether conditions see its rows and columns as they are: not sampled, pivoted or renamed."""
    nodes: tuple[exp.Expr, ...] = ()
    """Expressions of its own, such as an array that it unnests."""
    written: NamePath = ()
    """A table's name as it stands in the text; () if its reads aren't wanted."""


@dataclass(frozen=True, eq=False)
class Joined:
    """Two sides of a join; `on` are conditions that all hold, `using` case-folded names that both sides share."""

    left: "RelationTree"
    right: "RelationTree"
    kind: JoinKind = "inner"
    on: tuple[exp.Expr, ...] = ()
    using: NamePath = ()


RelationTree: TypeAlias = Relation | Joined


@dataclass(frozen=True, eq=False)
class OutputColumn:
    """A column of a query's result: its case-folded name ("" where the engine makes one) and its expression."""

    name: str
    node: exp.Expr


@dataclass(frozen=True, eq=False)
class Outputs:
    """The columns of a query's result in order, as far as they are known; others may follow."""

    items: tuple[OutputColumn, ...]
    is_complete: bool


@dataclass(frozen=True, eq=False)
class World:
    """What a statement is read against: the table, the views, and how values are read."""

    session: Session
    tables: tuple[NamePath, ...] | None
    """The table's names, case-folded; None if the reads of every table are wanted."""
    columns: NamePath | None = None
    """Case-folded, in the table's order; None if they aren't known."""
    spelling: Mapping[str, str] = field(default_factory=dict)
    """The columns' names by their case-folded ones."""
    views: Mapping[NamePath, Definition] = field(default_factory=dict)
    outputs: "dict[int, tuple[Definition, Outputs]]" = field(default_factory=dict)
    """Answers of `outputs_of` by the number of the query's node, kept with it."""
    alias: str = ""
    """The alias, case-folded, that the table must have to be meant, if any."""

    def wants(self, path: NamePath, alias: str) -> bool:
        """Tell whether a name in a FROM clause is the table's; the path and the alias are case-folded."""
        is_meant = self.tables is None or any(is_same(path, wanted) for wanted in self.tables)
        return is_meant and self.alias in ("", alias)


def relations_of(tree: RelationTree) -> list[Relation]:
    """Return the relations of a tree from left to right, without recursion: joins may be thousands."""
    relations: list[Relation] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Joined):
            waiting += [node.right, node.left]
        else:
            relations.append(node)
    return relations


def ons_of(tree: RelationTree) -> list[exp.Expr]:
    """Return the ON conditions of all joins of a tree."""
    conditions: list[exp.Expr] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Joined):
            conditions += node.on
            waiting += [node.right, node.left]
    return conditions


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the parts of a conjunction, from left to right."""
    waiting = [] if node is None else [node]
    while waiting:
        here = waiting.pop()
        while isinstance(here, exp.Paren):
            here = here.this
        if isinstance(here, exp.And):
            waiting += [here.expression, here.this]
        else:
            yield here


def is_same(path: NamePath, wanted: NamePath) -> bool:
    """Tell whether two names may be one table's: the shorter one is the end of the other."""
    shared = min(len(path), len(wanted))
    return path[-shared:] == wanted[-shared:]


def with_clauses(scope: NameScope, node: exp.Expr) -> NameScope:
    """Return the scope of a statement that may begin with a WITH clause."""
    clause = node.args.get("with_")
    if clause is None:
        return scope
    if len(clause.expressions) > _MOST_CLAUSES:
        raise PredicateError(
            f"The WITH clause has {len(clause.expressions):,} queries; at most {_MOST_CLAUSES:,} are read."
        )
    known = dict(scope.clauses)
    for cte in clause.expressions:
        name, names = cte.alias.casefold(), _names(cte.args.get("alias"))
        is_recursive = bool(clause.args.get("recursive")) and _mentions(cte.this, name)
        seen = dict(known)
        if is_recursive:  # its own name isn't that of a table
            seen[name] = Definition(exp.Values(expressions=[]), scope)
        known[name] = Definition(cte.this, replace(scope, clauses=seen), names, is_recursive)
    return replace(scope, clauses=known)


def _mentions(node: exp.Expr, name: str) -> bool:
    return any(table.name.casefold() == name and not table.args.get("db") for table in node.find_all(exp.Table))


def read_from(node: exp.Expr, world: World, scope: NameScope) -> RelationTree | None:
    """Return the FROM clause of a SELECT as a tree; None if it has none."""
    clause = node.args.get("from_")
    if clause is None:
        return None
    return _with_joins(read_item(clause.this, world, scope), node, world, scope)


def read_item(node: exp.Expr, world: World, scope: NameScope) -> RelationTree:
    """Return one item of a FROM clause, with the joins in its brackets."""
    if isinstance(node, exp.Final):  # ClickHouse joins rows of one key before it looks at conditions
        inner = read_item(node.this, world, scope)
        return replace(inner, is_plain=False) if isinstance(inner, Relation) else _hidden(inner)
    if (
        isinstance(node, exp.Subquery)
        and isinstance(node.this, exp.Table | exp.Subquery)
        and not node.args.get("alias")
    ):
        inner = read_item(node.this, world, scope)
        return _with_joins(
            inner if _is_plain(node, {"this", "joins", "laterals"}) else _hidden(inner), node, world, scope
        )
    return _with_joins(_relation(node, world, scope), node, world, scope)


def _hidden(tree: RelationTree) -> RelationTree:
    """Wrap a tree in a join that lets no condition through."""
    return Joined(tree, Relation(frozenset(), names=()), "unclear")


def _with_joins(tree: RelationTree, node: exp.Expr, world: World, scope: NameScope) -> RelationTree:
    for join in node.args.get("joins") or []:
        using = tuple(name.name.casefold() for name in join.args.get("using") or [])
        right = read_item(join.this, world, scope)
        tree = Joined(tree, right, _kind(join), tuple(conjuncts(join.args.get("on"))), using)
    for lateral in node.args.get("laterals") or []:
        tree = Joined(tree, _relation(lateral, world, scope))
    return tree


def _kind(join: exp.Join) -> JoinKind:
    side, kind, method = join.side.upper(), join.kind.upper(), join.method.upper()
    if method not in ("", "NATURAL", "HASH", "LOOP", "GLOBAL") or not _is_plain(join, _PLAIN_JOIN):
        return "unclear"
    if kind in ("SEMI", "ANTI") and side in ("", "LEFT"):
        return "semi" if kind == "SEMI" else "anti"
    if kind in ("", "INNER", "CROSS", "OUTER"):
        sides: dict[str, JoinKind] = {"": "full" if kind == "OUTER" else "inner", "LEFT": "left", "RIGHT": "right"}
        return sides.get(side, "full" if side == "FULL" else "unclear")
    return "unclear"


def _is_plain(node: exp.Expr, known: frozenset[str] | set[str]) -> bool:
    return not any(value and name not in known for name, value in node.args.items())


def _relation(node: exp.Expr, world: World, scope: NameScope) -> Relation:
    alias = node.args.get("alias")
    own = frozenset({(node.alias.casefold(),)} if node.alias else ())
    names = _names(alias)
    if isinstance(node, exp.Table):
        return _table(node, own, names, world, scope)
    query = node.this
    if isinstance(node, exp.Lateral) and isinstance(query, exp.Subquery):
        is_plain = _is_plain(node, {"this", "alias", "view", "cross_apply"}) and _is_plain(query, {"this", "alias"})
        lateral = Definition(query.this, replace(scope, is_correlated=True), names)
        return Relation(own, definition=lateral, is_plain=is_plain)
    if isinstance(node, exp.Subquery):
        is_plain = _is_plain(node, {"this", "alias", "joins", "laterals", "with_"})
        if isinstance(query, exp.Table | exp.Subquery):  # joins in brackets under one name
            query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=query))
        return Relation(own, definition=Definition(query, with_clauses(scope, node), names), is_plain=is_plain)
    if not node.alias and len(names) == 1:  # the dialects in which UNNEST(…) AS x names the value and its row
        own = frozenset({names})
    known = names if names and world.session.dialect != "bigquery" else None
    return Relation(own, names=known, nodes=(node,))


def _table(node: exp.Table, own: frozenset[NamePath], names: NamePath, world: World, scope: NameScope) -> Relation:
    written = written_path(node)
    path = tuple(part.casefold() for part in written)
    if not isinstance(node.this, exp.Identifier | exp.Dot):
        if world.wants(path, node.alias.casefold()):
            is_plain = _is_plain(node, _PLAIN_TABLE) and not names
            return Relation(own, is_wanted=True, is_plain=is_plain, nodes=(node.this,), written=written)
        return Relation(own, names=names or None, nodes=(node.this,))
    own = own or frozenset(path[start:] for start in range(len(path)))
    is_plain = _is_plain(node, _PLAIN_TABLE)
    clause = scope.clauses.get(path[0]) if len(path) == 1 else None
    if clause is not None:
        clause = replace(clause, columns=names or clause.columns)
        return Relation(own, definition=clause, is_plain=is_plain and not clause.is_recursive)
    if world.wants(path, node.alias.casefold()):
        return Relation(own, is_wanted=True, is_plain=is_plain and not names, written=written)
    view = next((view for name, view in world.views.items() if is_same(path, name)), None)
    if view is not None:
        return Relation(own, definition=replace(view, columns=names or view.columns), is_plain=is_plain)
    return Relation(own, names=names or None)


def written_path(node: exp.Table) -> NamePath:
    """Return a table's name as it stands in the text; of a function, one with brackets, which no table has."""
    if not isinstance(node.this, exp.Identifier | exp.Dot):
        return (describe(node.this).removeprefix("the function ") + CALL,)
    return tuple(part.name for part in node.parts)


def _names(alias: exp.Expr | None) -> NamePath:
    return (
        tuple(name.name.casefold() for name in (alias.args.get("columns") or []) if name) if alias is not None else ()
    )


def table_path(name: str) -> NamePath:
    """Split a table's name at its dots, case-folded; quotes around a part keep the dots in it.

    >>> table_path("delta.`/data/a.b`")
    ('delta', '/data/a.b')
    """
    parts: list[str] = [""]
    closing = ""
    for letter in name.strip():
        if closing:
            closing, letter = ("", "") if letter == closing else (closing, letter)
        elif not parts[-1] and letter in '`"[':
            closing, letter = {"[": "]"}.get(letter, letter), ""
        elif letter == ".":
            parts.append("")
            continue
        parts[-1] += letter
    return tuple(part.casefold() for part in parts)


def qualifiers_of(relations: Sequence[Relation]) -> frozenset[NamePath]:
    return frozenset(path for relation in relations for path in relation.qualifiers)
