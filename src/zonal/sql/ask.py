"""What a statement asks of one table: each read of it, through WITH clauses, derived tables, views, unions and joins.

The law: a row of the table on which the statement's result depends satisfies the predicate of one of its reads.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlglot import TokenType, exp

from zonal.errors import PredicateError
from zonal.predicates.expressions import And, Predicate, Unknown
from zonal.predicates.scalars import Opaque, Session
from zonal.sql.conditions import join, read_condition
from zonal.sql.dialects import guess_dialect
from zonal.sql.pushdown import OTHERS
from zonal.sql.reads import reads_of
from zonal.sql.relations import World, table_path
from zonal.sql.statement import Text, parse_statement, prepare, unloaded_query, with_room
from zonal.sql.terms import Context, read_column
from zonal.sql.unusable import is_elsewhere
from zonal.sql.views import read_views

__all__ = ["TableRead", "ask", "guess_dialect"]


@dataclass(frozen=True)
class TableRead:
    """What one read of the table asks of it."""

    predicate: Predicate
    """True for every row of the table that the statement needs; Constant(True): it needs all."""
    joins: tuple[str, ...]
    """The table's columns that are compared with other tables' columns for equality."""
    reads: int
    """How often the statement reads the table."""


def ask(
    sql: str,
    tables: Sequence[str],
    *,
    dialect: str | None = None,
    now: datetime | None = None,
    timezone: str = "UTC",
    views: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
) -> list[TableRead]:
    """Return what each read of the table asks of it, in the order of the text; each is a scan of its own.

    [] where the statement reads no table by one of the names `tables`, or is no query (DDL, SET); a `PredicateError`
    where it can't be read. `views` are queries by the names of views. `columns` are the table's in order: with them,
    names without a qualifier find their table in joins. Columns that a UNION puts together are taken to be of one type.

    >>> ask("WITH d AS (SELECT * FROM events) SELECT count(*) FROM d WHERE id = 7", ["db.events"])[0].predicate
    Compare(term=Column(name='id', quoted=False), op='=', value=7)
    """
    wanted = tuple(dict.fromkeys(table_path(name) for name in tables))
    if not wanted or not all(all(path) for path in wanted):
        raise PredicateError("Which table? Give its names, such as 'db.events'.")
    read = prepare(sql, "statement", dialect, now, timezone)
    unloaded = unloaded_query(read)
    if unloaded is not None:
        return ask(unloaded, tables, dialect=dialect, now=now, timezone=timezone, views=views, columns=columns)
    if not _mentions(sql, [path[-1] for path in (*wanted, *map(table_path, views or ()))]):
        with_room(read.depth, lambda: parse_statement(read))  # what can't be read is told apart from other tables
        return []
    seen = read_views(views or {}, sql, dialect)
    world = World(
        replace(read.session, parameters=True, doubtful=read.session.doubtful | seen.doubtful),
        wanted,
        None if columns is None else tuple(dict.fromkeys(name.partition(".")[0].casefold() for name in columns)),
        _spelling(columns or ()),
        seen.definitions,
    )
    # Queries that name each other one after the other are followed as deep as they are many.
    queries = sum(token.token_type == TokenType.SELECT for token in read.tokens)
    return with_room(max(read.depth, queries // 2) + seen.depth, lambda: _asked(read, world))


def _mentions(sql: str, names: Sequence[str]) -> bool:
    """Tell whether a name occurs in the text at all: most statements of a log are about other tables."""
    folded = sql.casefold()
    return any(name in folded for name in names)


def _spelling(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns' names by their case-folded ones, where these are unique."""
    names = list(dict.fromkeys(name.partition(".")[0] for name in columns))
    counts = Counter(name.casefold() for name in names)
    return {name.casefold(): name for name in names if counts[name.casefold()] == 1}


def _asked(read: Text, world: World) -> list[TableRead]:
    statement = parse_statement(read)
    found = [] if statement is None else reads_of(statement, world)
    return [_read(conditions, world.session, len(found)) for conditions in found]


def _read(conditions: Sequence[exp.Expr], session: Session, reads: int) -> TableRead:
    """Read the conditions of one read as a predicate; those that only join tables are no part of it."""
    parts: dict[Predicate, None] = {}
    joins: dict[str, None] = {}
    for condition in conditions:
        joins |= dict.fromkeys(_join_keys(condition, session))
        if _is_join(condition):
            continue
        found = read_condition(condition, False, Context(session))
        for part in found.parts if isinstance(found, And) else (found,):
            if not isinstance(part, Unknown) or part.columns or is_elsewhere(condition):
                parts[part] = None
    return TableRead(join(list(parts), is_and=True), tuple(joins), reads)


def _is_join(node: exp.Expr) -> bool:
    is_equal = isinstance(node, exp.EQ | exp.NullSafeEQ)
    return is_equal and any(is_elsewhere(side, OTHERS) for side in (node.this, node.expression))


def _join_keys(node: exp.Expr, session: Session) -> Iterator[str]:
    """Yield the columns that a condition compares with those of other tables, or with a query's result."""
    keys: list[exp.Expr] = []
    if _is_join(node):
        keys = [node.expression if is_elsewhere(node.this) else node.this]
    elif isinstance(node, exp.In) and node.args.get("query") is not None:
        keys = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    for key in keys:
        if isinstance(key, exp.Column | exp.Dot):
            try:
                yield read_column(key, Context(session)).name
            except Opaque:
                continue
