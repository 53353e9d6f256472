"""Resolve columns: to a relation of a FROM clause, and from a query's output to the expression behind it."""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from zonal.sql.relations import (
    Definition,
    Joined,
    NamePath,
    NameScope,
    OutputColumn,
    Outputs,
    Relation,
    RelationTree,
    World,
    read_from,
    relations_of,
    with_clauses,
)

_MOST_NAMES = 20_000
_PLACE = "\0"
"""Prefix of a column that is known by its position; no name in SQL begins with it."""


class Names:
    """The relations of a FROM clause by number, which resolves a name to the relation that has the column."""

    def __init__(
        self, tree: RelationTree | None, world: World, scope: NameScope, *, hidden: frozenset[str] = frozenset()
    ) -> None:
        self.relations = [] if tree is None else relations_of(tree)
        self.outer = scope.outer
        self.hidden = hidden
        """Case-folded names that without a qualifier may not be columns."""
        self.world = world
        self._number = {id(relation): number for number, relation in enumerate(self.relations)}
        self._known: dict[int, frozenset[str] | None] = {}
        self.qualified: dict[NamePath, list[int]] = {}
        for number, relation in enumerate(self.relations):
            for path in relation.qualifiers:
                self.qualified.setdefault(path, []).append(number)
        self.shared: dict[str, frozenset[int]] = {}
        self._unknown: list[int] | None = None
        self._owners: dict[str, frozenset[int]] | None = None
        if tree is not None:
            self._share(tree)

    def numbers(self, tree: RelationTree) -> frozenset[int]:
        return frozenset(self._number[id(relation)] for relation in relations_of(tree))

    def owners(self, parts: NamePath) -> tuple[frozenset[int], int]:
        """Return the relations that a column path belongs to, and how many of its parts are the qualifier.

        Several relations own a column that USING joins; none, if it is another query's or if that isn't clear.
        """
        for end in range(len(parts) - 1, 0, -1):
            if parts[:end] in self.qualified:
                numbers = self.qualified[parts[:end]]
                return (frozenset(numbers) if len(numbers) == 1 else frozenset()), end
            if parts[:end] in self.outer:
                return frozenset(), end
        name = parts[0]
        if name in self.hidden:
            return frozenset(), 0
        if name in self.shared:
            return self.shared[name], 0
        if self._owners is None:
            self._look()
        assert self._owners is not None and self._unknown is not None  # noqa: S101, PT018 - _look sets both
        found_there = self._owners.get(name, frozenset())
        if found_there:
            return (found_there if len(found_there) == 1 else frozenset()), 0
        return (frozenset(self._unknown) if len(self._unknown) == 1 else frozenset()), 0

    def is_complete(self) -> bool:
        """Tell whether the columns of all relations are known."""
        return all(self.columns(number) is not None for number in range(len(self.relations)))

    def has(self, name: str) -> bool:
        """Tell whether a relation is known to have a column of the case-folded name."""
        return any(name in (self.columns(number) or ()) for number in range(len(self.relations)))

    def columns(self, number: int) -> frozenset[str] | None:
        if number not in self._known:
            names = columns_of(self.relations[number], self.world)
            self._known[number] = None if names is None else frozenset(names)
        return self._known[number]

    def _look(self) -> None:
        self._unknown, owners = [], dict[str, set[int]]()
        for number in range(len(self.relations)):
            known = self.columns(number)
            if known is None:
                self._unknown.append(number)
            for name in known or ():
                owners.setdefault(name, set()).add(number)
        self._owners = {name: frozenset(numbers) for name, numbers in owners.items()}

    def _share(self, tree: RelationTree) -> None:
        """Note the columns that USING joins: each of them is a column of both sides."""
        spine: list[Joined] = []
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Joined):
                spine.append(node)
                waiting += [node.right, node.left]
        for join in reversed(spine):
            for name in join.using:
                sides = [self._holders(name, side) for side in (join.left, join.right)]
                self.shared[name] = self.shared.get(name, frozenset()).union(*sides)

    def _holders(self, name: str, side: RelationTree) -> frozenset[int]:
        numbers = self.numbers(side)
        if shared := self.shared.get(name, frozenset()) & numbers:
            return shared
        known = {number: self.columns(number) for number in numbers}
        has = frozenset(number for number, names in known.items() if names is not None and name in names)
        unknown = frozenset(number for number, names in known.items() if names is None)
        return has or (unknown if len(unknown) == 1 else frozenset())


def columns_of(relation: Relation, world: World) -> NamePath | None:
    """Return the names of a relation's columns in order, case-folded; None if they aren't known."""
    if relation.is_wanted:
        return world.columns if relation.is_plain else None
    if relation.definition is None:
        return relation.names
    if not relation.is_plain and not relation.definition.is_recursive:
        return None
    outputs = outputs_of(relation.definition, world)
    names = tuple(item.name for item in outputs.items)
    renamed = relation.definition.columns
    names = renamed + names[len(renamed) :]
    return names if outputs.is_complete and all(names) else None


def outputs_of(definition: Definition, world: World) -> Outputs:
    """Return the columns of a query's result; for a UNION, those of its first branch, which names them."""
    key = id(definition.query)
    if key not in world.outputs:  # the definition is kept with its answer, so that no other gets its number
        world.outputs[key] = (definition, _outputs(definition, world))
    return world.outputs[key][1]


def _outputs(definition: Definition, world: World) -> Outputs:
    query, scope = definition.query, definition.scope
    while not isinstance(query, exp.Select):
        scope = with_clauses(scope, query)
        if not isinstance(query, exp.Subquery | exp.SetOperation) or query.args.get("by_name"):
            return Outputs((), is_complete=False)
        query = query.this
    return select_outputs(query, world, with_clauses(scope, query))


def select_outputs(select: exp.Select, world: World, scope: NameScope, names: Names | None = None) -> Outputs:
    """Return the columns of a SELECT with its stars expanded, up to the first one whose columns aren't known."""
    if select.args.get("exclude") or select.args.get("kind") or select.args.get("operation_modifiers"):
        return Outputs((), is_complete=False)
    columns: list[OutputColumn] = []
    for node in select.expressions:
        star = star_of(node)
        if star is None:
            columns.append(OutputColumn(name_of(node).casefold(), unaliased(node)))
            continue
        names = names or Names(read_from(select, world, scope), world, scope)
        expanded = _expanded(node, star, names)
        if expanded is None or len(columns) > _MOST_NAMES:
            return Outputs(tuple(columns), is_complete=False)
        columns += expanded
    is_clear = not any(isinstance(node, exp.Columns | exp.Aliases) for node in select.expressions)
    return Outputs(tuple(columns), is_complete=is_clear)


def star_of(node: exp.Expr) -> exp.Star | None:
    """Return the star of `*`, `t.*` or `* EXCEPT (a)`."""
    if isinstance(node, exp.Column | exp.Dot):
        node = node.this if isinstance(node, exp.Column) else node.expression
    return node if isinstance(node, exp.Star) else None


def name_of(node: exp.Expr) -> str:
    """Return the name of an output; "" where the engine makes one."""
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, exp.Column | exp.Dot):
        return node.name
    return ""


def unaliased(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    return node


def aliases_of(select: exp.Select) -> Iterator[exp.Alias]:
    """Yield the aliases of a SELECT list, also those inside of expressions, but not those of inner queries."""
    for item in select.expressions:
        for node in item.walk(prune=lambda node: isinstance(node, exp.Query)):
            if isinstance(node, exp.Alias):
                yield node


def starred(star: exp.Star, name: str) -> exp.Expr | str | None:
    """Resolve a name in a star: an expression (REPLACE), a name of the relation (RENAME), or None (EXCEPT)."""
    for item in star.args.get("replace") or []:
        if item.alias.casefold() == name:
            return unaliased(item)
    for item in star.args.get("rename") or []:
        if item.alias.casefold() == name:
            return unaliased(item).name.casefold()
        if unaliased(item).name.casefold() == name:
            return None
    if any(item.name.casefold() == name for item in star.args.get("except_") or []):
        return None
    return name


def _expanded(node: exp.Expr, star: exp.Star, names: Names) -> list[OutputColumn] | None:
    """Return the columns of a star in order; None if they aren't known, or if USING joins some of them into one."""
    numbers = _starred_relations(node, names)
    if numbers is None or names.shared or not names.is_complete() or star.args.get("rename"):
        return None
    columns: list[OutputColumn] = []
    for number in numbers:
        for name in columns_of(names.relations[number], names.world) or ():
            inner = starred(star, name)
            if inner is not None:
                node = inner if isinstance(inner, exp.Expr) else _column(name, names, number)
                columns.append(OutputColumn(name, node))
    return columns


def _starred_relations(node: exp.Expr, names: Names) -> Sequence[int] | None:
    """Return the relations whose columns a star stands for."""
    if isinstance(node, exp.Star):
        return range(len(names.relations))
    if not isinstance(node, exp.Column):
        return None
    path = tuple(part.name.casefold() for part in node.parts[:-1])
    numbers = names.qualified.get(path, [])
    return numbers if len(numbers) == 1 else None


def _column(name: str, names: Names, number: int, mark: bool = False) -> exp.Expr:
    """Return a column of a relation, with its shortest qualifier."""
    path = min(names.relations[number].qualifiers, key=len, default=())
    return column_at((*path, name), [*[False] * len(path), mark])


def column_at(path: Sequence[str], quoted: Sequence[bool] = ()) -> exp.Expr:
    """Return a column by its path; dots lead into structs."""
    marks = [*quoted, *[False] * (len(path) - len(quoted))]
    parts = [exp.Identifier(this=name, quoted=mark) for name, mark in zip(path, marks, strict=True)]
    node: exp.Expr = exp.Column(this=parts[0])
    for part in parts[1:]:
        node = exp.Dot(this=node, expression=part)
    return node


def placed(place: int) -> str:
    """Return a name for the column at a position, which no real column has."""
    return f"{_PLACE}{place}"


def place_of(name: str) -> int | None:
    return int(name[1:]) if name.startswith(_PLACE) else None


class Inside:
    """A SELECT list: the expression behind each output name, in columns of the FROM clause."""

    def __init__(self, select: exp.Select, names: Names, scope: NameScope) -> None:
        self.select, self.names = select, names
        self.outputs = select_outputs(select, names.world, scope, names)
        self.by_name: dict[str, list[exp.Expr]] = {}
        for item in self.outputs.items:
            self.by_name.setdefault(item.name, []).append(item.node)
        self.stars = [node for node in select.expressions if star_of(node) is not None]

    def find(self, name: str, written: exp.Identifier) -> exp.Expr | None:
        """Return the expression of an output; None if there is none, or if it isn't clear which.

        `written` is the name as it stands in the text, in which it reaches a column of the same name.
        """
        place = place_of(name)
        if place is not None:
            return self.outputs.items[place].node if place < len(self.outputs.items) else None
        nodes = self.by_name.get(name, [])
        if self.outputs.is_complete or not self.stars:
            return nodes[0] if len(nodes) == 1 else None
        explicit = [unaliased(node) for node in self.select.expressions if name_of(node).casefold() == name]
        behind = [column for node in self.stars if (column := self._through(node, name, written)) is not None]
        if explicit:  # a star that has the name as well makes it ambiguous, which all but DuckDB refuse
            is_first = self.names.world.session.dialect == "duckdb"
            return explicit[0] if len(explicit) == 1 and not (is_first and behind) else None
        return behind[0] if len(behind) == 1 else None

    def _through(self, node: exp.Expr, name: str, written: exp.Identifier) -> exp.Expr | None:
        star = star_of(node)
        assert star is not None  # noqa: S101 - asked of stars only
        inner = starred(star, name)
        if inner is None or isinstance(inner, exp.Expr):
            return inner
        is_same = inner == name
        spelled, mark = (written.name, bool(written.args.get("quoted"))) if is_same else (inner, False)
        if isinstance(node, exp.Star):
            owners, _ = self.names.owners((inner,))
            return column_at([spelled], [mark]) if owners else None
        numbers = _starred_relations(node, self.names)
        if not numbers:
            return None
        known = self.names.columns(numbers[0])
        return _column(spelled, self.names, numbers[0], mark) if known is None or inner in known else None


def inner_queries(nodes: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the outermost queries inside expressions."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            yield node
        else:
            waiting.extend(reversed(list(node.iter_expressions())))
