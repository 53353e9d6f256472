"""Read a statement as predicates on one table: one per read, through CTEs, derived tables, views, unions and joins.

The law: a row of the table on which the statement's result depends satisfies the predicate of one of its reads.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from sqlglot import TokenType, exp

from zonal.errors import PredicateError
from zonal.predicates.expressions import And, Predicate, Unknown
from zonal.predicates.scalars import Opaque, Session
from zonal.sql.conditions import join, read_condition
from zonal.sql.dialect_guess import guess_dialect
from zonal.sql.pushdown import OTHERS
from zonal.sql.reads import Read, reads_of
from zonal.sql.relations import Definition, NamePath, World, table_path
from zonal.sql.statement import Text, parse_statement, prepare, unloaded_query, with_room
from zonal.sql.terms import read_column
from zonal.sql.unusable import is_elsewhere
from zonal.sql.views import read_views

__all__ = ["TableRead", "ask", "guess_dialect"]

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class TableRead:
    """One read of the table by a statement."""

    predicate: Predicate
    """True for every row of the table that the statement needs; Constant(True) if it needs all."""
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
    """Return the predicate of each read of the table, in the order of the text; each is a scan of its own.

    [] where the statement reads no table by one of the names `tables`, or is no query (DDL, SET); a `PredicateError`
    where it can't be read. `views` are queries by the names of views. `columns` are the table's in order: with them,
    names without a qualifier find their table in joins. Columns that a UNION puts together are taken to be of one type.

    >>> ask("WITH d AS (SELECT * FROM events) SELECT count(*) FROM d WHERE id = 7", ["db.events"])[0].predicate
    Compare(term=Column(name='id', quoted=False), op='=', value=7)
    """
    wanted = tuple(dict.fromkeys(table_path(name) for name in tables))
    if not wanted or not all(all(path) for path in wanted):
        raise PredicateError("Which table? Give its names, such as 'db.events'.")
    read = prepare_statement(sql, dialect, now, timezone)
    if not _mentions(read.sql, [path[-1] for path in (*wanted, *map(table_path, views or ()))]):
        followed(read, lambda: parse_statement(read))  # what can't be read is told apart from other tables
        return []
    seen = read_views(views or {}, read.sql, dialect)
    session = replace(read.session, doubtful=read.session.doubtful | seen.doubtful)
    world = world_of(session, wanted, columns, views=seen.definitions)
    return followed(read, lambda: _asked(parse_statement(read), world), depth=seen.depth)


def prepare_statement(sql: str, dialect: str | None, now: datetime | None, timezone: str) -> Text:
    """Tokenize a statement; for an UNLOAD, the query whose result it writes."""
    read = prepare(sql, "statement", dialect, now, timezone)
    unloaded = unloaded_query(read)
    return read if unloaded is None else prepare_statement(unloaded, dialect, now, timezone)


def followed(read: Text, work: Callable[[], _Found], *, depth: int = 0) -> _Found:
    """Run with a stack for the statement's depth; a chain of CTEs is followed as deep as it is long."""
    queries = sum(token.token_type == TokenType.SELECT for token in read.tokens)
    return with_room(max(read.depth, queries // 2) + depth, work)


def world_of(
    session: Session,
    tables: tuple[NamePath, ...] | None,
    columns: Sequence[str] | None = None,
    *,
    alias: str = "",
    views: Mapping[NamePath, Definition] | None = None,
) -> World:
    """Return what a statement is read against; `columns` are the table's, in order."""
    names = None if columns is None else tuple(dict.fromkeys(name.partition(".")[0].casefold() for name in columns))
    session = replace(session, parameters=True)
    return World(session, tables, names, _spelling(columns or ()), views or {}, alias=alias)


def _mentions(sql: str, names: Sequence[str]) -> bool:
    """Tell whether a name occurs in the text at all: most statements of a log are about other tables."""
    folded = sql.casefold()
    return any(name in folded for name in names)


def _spelling(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns' names by their case-folded ones, where these are unique."""
    names = list(dict.fromkeys(name.partition(".")[0] for name in columns))
    counts = Counter(name.casefold() for name in names)
    return {name.casefold(): name for name in names if counts[name.casefold()] == 1}


def _asked(statement: exp.Expr | None, world: World) -> list[TableRead]:
    return [] if statement is None else table_reads(reads_of(statement, world).reads, world.session)


def table_reads(reads: Sequence[Read], session: Session) -> list[TableRead]:
    """Convert the conditions of each read to a predicate."""
    return [_read(one.conditions, session, len(reads)) for one in reads]


def _read(conditions: Sequence[exp.Expr], session: Session, reads: int) -> TableRead:
    """Convert the conditions of one read to a predicate; pure join conditions are left out."""
    parts: dict[Predicate, None] = {}
    joins: dict[str, None] = {}
    for condition in conditions:
        joins |= dict.fromkeys(_join_keys(condition))
        if _is_join(condition):
            continue
        predicate = read_condition(condition, False, session)
        for part in predicate.parts if isinstance(predicate, And) else (predicate,):
            if not isinstance(part, Unknown) or part.columns or is_elsewhere(condition):
                parts[part] = None
    return TableRead(join(list(parts), is_and=True), tuple(joins), reads)


def _is_join(node: exp.Expr) -> bool:
    is_equal = isinstance(node, exp.EQ | exp.NullSafeEQ)
    return is_equal and any(is_elsewhere(side, OTHERS) for side in (node.this, node.expression))


def _join_keys(node: exp.Expr) -> Iterator[str]:
    """Yield the columns that a condition compares with those of other tables, or with a query's result."""
    keys: list[exp.Expr] = []
    if _is_join(node):
        keys = [node.expression if is_elsewhere(node.this) else node.this]
    elif isinstance(node, exp.In) and node.args.get("query") is not None:
        keys = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    for key in keys:
        if isinstance(key, exp.Column | exp.Dot):
            try:
                yield read_column(key).name
            except Opaque:
                continue
