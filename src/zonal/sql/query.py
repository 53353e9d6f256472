"""Read a statement as one predicate on one of its tables: the predicates of its reads, joined by OR."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from zonal.errors import PredicateError, option, quoted, suggestion
from zonal.predicates.expressions import Predicate
from zonal.sql.ask import followed, prepare_statement, table_reads, world_of
from zonal.sql.conditions import join
from zonal.sql.reads import reads_of
from zonal.sql.relations import CALL, NamePath, Relation, World, is_same, table_path
from zonal.sql.statement import Text, parse_statement

_SHOWN = 8


def parse_query(
    sql: str, *, dialect: str | None = None, now: datetime | None = None, timezone: str = "UTC"
) -> "ParsedQuery":
    """Parse a statement and find the tables that it reads; a `PredicateError` if it reads none.

    >>> parse_query("WITH d AS (SELECT * FROM events) SELECT * FROM d WHERE id = 7").predicate()
    Compare(term=Column(name='id', quoted=False), op='=', value=7)
    """
    text = prepare_statement(sql, dialect, now, timezone)
    statement = followed(text, lambda: parse_statement(text))
    tables = _tables_of(text, statement)
    if statement is None or not tables:
        raise PredicateError("The query reads no table.")
    return ParsedQuery(text, statement, tables)


def tables_in(sql: str, *, dialect: str | None = None) -> tuple[str, ...]:
    """Return the names of the tables that a statement reads, each once; those of its WITH clauses aren't any.

    >>> tables_in("INSERT INTO x WITH d AS (SELECT * FROM db.events) SELECT * FROM d JOIN users USING (id)")
    ('users', 'db.events')
    """
    text = prepare_statement(sql, dialect, None, "UTC")
    tables = _tables_of(text, followed(text, lambda: parse_statement(text)))
    names = (".".join(item.written) for item in tables)
    return tuple(dict.fromkeys(name for name in names if not name.endswith(CALL)))


def _tables_of(text: Text, statement: exp.Expr | None) -> tuple[Relation, ...]:
    """Return the items of a statement's FROM clauses that are tables."""
    if statement is None:
        return ()
    every = world_of(text.session, None)
    return tuple(read.relation for read in followed(text, lambda: reads_of(statement, every)).reads)


@dataclass(frozen=True, eq=False)
class ParsedQuery:
    """A statement, and the items of its FROM clauses that are tables."""

    text: Text
    statement: exp.Expr
    tables: tuple[Relation, ...]

    def predicate(
        self, *, table: str | None = None, own: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> Predicate:
        """Return a predicate that is true for every row of a table that the statement needs.

        The table is the one that the statement knows by the name or alias `table`, else its only one, else the one of
        its own names `own`; a `PredicateError` if it isn't clear. With the table's `columns`, in order, names without
        a qualifier find their table in joins, and a name that is no column is a `PredicateError`.
        """
        world = self._world(table, own, columns)
        result = followed(self.text, lambda: reads_of(self.statement, world))
        if result.strangers and columns is not None:
            name = result.strangers[0]
            raise PredicateError(f"Unknown column {quoted(name)}. {suggestion(name, columns)}")
        reads = followed(self.text, lambda: table_reads(result.reads, world.session))
        return join([read.predicate for read in reads], is_and=False)

    def _world(self, table: str | None, own: Sequence[str], columns: Sequence[str] | None) -> World:
        if table is not None:
            return self._named(table, columns)
        functions = [path for path in self._paths() if path[-1].endswith(CALL)]
        paths = [path for path in self._paths() if path not in functions] or functions
        if len(paths) > 1:
            names = [table_path(name) for name in own]
            paths = [name for name in names if any(is_same(path, name) for path in paths)]
        if not paths:
            shown = ", ".join(quoted(name) for name in self._names()[:_SHOWN])
            raise PredicateError(f"The query reads several tables. Name one of them ({option('read_as')}): {shown}.")
        return world_of(self.text.session, tuple(paths), columns)

    def _named(self, table: str, columns: Sequence[str] | None) -> World:
        name = table_path(table)
        for wanted in (name, (*name[:-1], name[-1] + CALL)):
            if any(is_same(path, wanted) for path in self._paths()):
                return world_of(self.text.session, (wanted,), columns)
        alias = table.casefold()
        aliased = tuple(dict.fromkeys(_folded(item) for item in self.tables if (alias,) in item.qualifiers))
        if not aliased:
            raise PredicateError(f"The query doesn't read a table {quoted(table)}. {suggestion(table, self._names())}")
        return world_of(self.text.session, aliased, columns, alias=alias)

    def _paths(self) -> list[NamePath]:
        return list(dict.fromkeys(map(_folded, self.tables)))

    def _names(self) -> list[str]:
        return list(dict.fromkeys(".".join(item.written).removesuffix(CALL) for item in self.tables))


def _folded(table: Relation) -> NamePath:
    return tuple(part.casefold() for part in table.written)
