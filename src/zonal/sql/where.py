"""SQL text to predicates: the WHERE clause of a statement in any dialect that sqlglot reads.

The law: a predicate is true for every row for which the SQL is, in any engine of the dialect, and perhaps for more.
What can't be followed, or what engines do differently, becomes `Unknown` with its reason. Nothing is ever executed.
"""

from collections.abc import Iterator
from datetime import datetime

from sqlglot import exp

from zonal.errors import PredicateError, option, quoted, suggestion
from zonal.predicates.expressions import Constant, Predicate, Unknown
from zonal.predicates.scalars import Session
from zonal.sql.conditions import join, read_condition
from zonal.sql.statement import parse, parse_statement, prepare, with_room
from zonal.sql.terms import Context, TableScope
from zonal.sql.unusable import describe


def parse_where(
    text: str, *, dialect: str | None = None, now: datetime | None = None, timezone: str = "UTC"
) -> Predicate:
    """Read a condition as a predicate; it is true for every row for which the SQL is, and perhaps for more.

    `now` is what current_timestamp means (an aware datetime; the time of the call), `timezone` the session's zone.

    >>> parse_where("year(ts) = 2024")
    Compare(term=Call(name='year', column=Column(name='ts', quoted=False), argument=''), op='=', value=2024)
    """
    read = prepare(text, "condition", dialect, now, timezone)
    return with_room(read.depth, lambda: read_condition(parse(read), False, Context(read.session)))


def parse_query(
    sql: str,
    *,
    dialect: str | None = None,
    now: datetime | None = None,
    timezone: str = "UTC",
    table: str | None = None,
) -> Predicate:
    """Read what a SELECT asks of one of its tables; a row that the query needs satisfies the predicate.

    `table` names it where the query reads several; conditions on the others are `Unknown`. Where the table is read more
    than once, the predicate is true for the rows that any of the reads needs.

    >>> parse_query("SELECT * FROM events AS e WHERE e.id = 7")
    Compare(term=Column(name='id', quoted=False), op='=', value=7)
    """
    read = prepare(sql, "query", dialect, now, timezone)
    return with_room(read.depth, lambda: _queried(parse(read), read.session, table))


def tables_in(sql: str, *, dialect: str | None = None) -> tuple[str, ...]:
    """Return the names of the tables that a statement reads, none of them twice; those of its WITH clauses aren't any.

    >>> tables_in("INSERT INTO x WITH d AS (SELECT * FROM db.events) SELECT * FROM d JOIN users USING (id)")
    ('users', 'db.events')
    """
    read = prepare(sql, "statement", dialect, None, "UTC")
    statement = with_room(read.depth, lambda: parse_statement(read))
    clauses: dict[int, dict[str, int]] = {}
    found = () if statement is None else statement.find_all(exp.Table, bfs=False)
    named = [node for node in found if isinstance(node.this, exp.Identifier | exp.Dot) and not _is_cte(node, clauses)]
    read_from = [node for node in named if node.find_ancestor(exp.Query)]  # others are what it writes to, or makes
    return tuple(dict.fromkeys(".".join(_path(node)) for node in read_from))


def _queried(statement: exp.Expr, session: Session, table: str | None) -> Predicate:
    return join([_read(node, session) for node in _reads(statement, table)], is_and=False)


def _reads(statement: exp.Expr, table: str | None) -> list[exp.Table]:
    """Return where the statement reads the table; a `PredicateError` if it isn't clear which one is meant."""
    clauses: dict[int, dict[str, int]] = {}
    found = [node for node in statement.find_all(exp.Table) if not _is_cte(node, clauses)]
    names = list(dict.fromkeys(".".join(_path(node)) for node in found))
    if not found:
        raise PredicateError("The query reads no table.")
    if table is None:
        if len({name.casefold() for name in names}) > 1:
            shown = ", ".join(quoted(name) for name in names[:8])
            raise PredicateError(f"The query reads several tables. Name one of them ({option('read_as')}): {shown}.")
        return found
    wanted = [part.strip('`"[]').casefold() for part in table.split(".")]
    same = [node for node in found if _is_same([part.casefold() for part in _path(node)], wanted)]
    same = same or [node for node in found if node.alias.casefold() == table.casefold()]
    if not same:
        raise PredicateError(f"The query doesn't read a table {quoted(table)}. {suggestion(table, names)}")
    return same


def _is_same(path: list[str], wanted: list[str]) -> bool:
    shared = min(len(path), len(wanted))
    return path[-shared:] == wanted[-shared:]


def _path(node: exp.Table) -> tuple[str, ...]:
    if not isinstance(node.this, exp.Identifier | exp.Dot):
        return (describe(node.this).removeprefix("the function "),)
    return tuple(part.name for part in node.parts)


def _is_cte(node: exp.Table, known: "dict[int, dict[str, int]]") -> bool:
    """Tell whether a name is that of a WITH clause which it can see: one before it, or around it if recursive.

    `known` remembers the names of each clause, and the first place of each.
    """
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return False
    child: exp.Expr = node
    parent = node.parent
    while parent is not None:
        clause = parent if isinstance(parent, exp.With) else parent.args.get("with_")
        if clause is not None and clause is not child:
            if id(clause) not in known:
                pairs = [(cte.alias.casefold(), place) for place, cte in enumerate(clause.expressions)]
                known[id(clause)] = dict(reversed(pairs))
            place = known[id(clause)].get(node.name.casefold())
            is_inside = parent is clause and not clause.args.get("recursive")
            if place is not None and (not is_inside or place < (child.index or 0)):
                return True
        child, parent = parent, parent.parent
    return False


def _read(node: exp.Table, session: Session) -> Predicate:
    """Return what one SELECT asks of one table of its FROM clause."""
    select = node.find_ancestor(exp.Select)
    where = select.args.get("where") if select else None
    if select is None or where is None:
        return Constant(True)
    joins = select.args.get("joins") or []
    places = [select.args.get("from_"), *joins]
    place = next((i for i, item in enumerate(places) if item is not None and item.this is node), None)
    if place is None or not _is_plain_read(node, select):
        return Unknown("a table that the WHERE clause doesn't filter directly")
    if _is_optional(place, joins) or any(column.args.get("join_mark") for column in where.find_all(exp.Column)):
        return Unknown("a table on a side of a join that also returns rows without a match")
    others = [item.this for i, item in enumerate(places) if item is not None and i != place]
    others += select.args.get("laterals") or []
    return read_condition(where.this, False, Context(session, _source(node, others, select, session)))


def _is_plain_read(node: exp.Table, select: exp.Select) -> bool:
    """Tell whether WHERE sees the table's rows and columns as they are: not pivoted, renamed or matched before."""
    known = {"this", "db", "catalog", "alias", "version", "when", "hints", "only"}
    is_plain = not any(value and name not in known for name, value in node.args.items())
    return is_plain and not (node.alias_column_names or select.args.get("connect") or select.args.get("match"))


def _is_optional(place: int, joins: list[exp.Join]) -> bool:
    """Tell whether a row that WHERE refuses may still change the result: by turning up as a null, or as no match."""
    sides = [(join.side or ("FULL" if join.kind.upper() == "OUTER" else "")).upper() for join in joins]
    own = joins[place - 1] if place else None
    is_joined = own is None or own.kind.upper() in ("", "INNER", "CROSS", "OUTER")
    is_nullable = own is not None and sides[place - 1] not in ("", "RIGHT")
    return not is_joined or is_nullable or any(side in ("RIGHT", "FULL") for side in sides[place:])


def _source(node: exp.Table, others: list[exp.Expr], select: exp.Select, session: Session) -> TableScope:
    elsewhere = frozenset(name for other in others for name in _qualifiers(other))
    aliases = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    return TableScope(
        frozenset(_qualifiers(node)) - (elsewhere if not node.alias else elsewhere - {(node.alias.casefold(),)}),
        elsewhere - ({(node.alias.casefold(),)} if node.alias else set()),
        is_alone=not others,
        aliases=frozenset(aliases if session.dialect == "clickhouse" else ()),
    )


def _qualifiers(node: exp.Expr) -> Iterator[tuple[str, ...]]:
    if node.alias:
        yield (node.alias.casefold(),)
    if isinstance(node, exp.Table):
        path = tuple(part.casefold() for part in _path(node))
        yield from (path[start:] for start in range(len(path)))
