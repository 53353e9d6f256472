"""Parse the definitions of views, each once however many statements name it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from zonal.errors import PredicateError, quoted
from zonal.sql.relations import Definition, NamePath, NameScope, table_path
from zonal.sql.statement import parse_statement, prepare, with_room


@dataclass(frozen=True, eq=False)
class Views:
    definitions: Mapping[NamePath, Definition]
    depth: int
    """The nesting depth that they add to the statement's."""
    doubtful: frozenset[str]
    """Text in them with escapes that engines read differently."""


@dataclass(frozen=True, eq=False)
class _View:
    query: exp.Expr
    depth: int
    doubtful: frozenset[str]


def read_views(views: Mapping[str, str], sql: str, dialect: str | None) -> Views:
    """Return the views whose names occur in the statement, or in the text of one that does."""
    definitions: dict[NamePath, Definition] = {}
    left = {table_path(name): (name, text) for name, text in views.items()}
    waiting, depth, doubtful = [sql], 0, frozenset[str]()
    while waiting:
        text = waiting.pop().casefold()
        for path in [path for path in left if _names(text, path[-1])]:
            name, query = left.pop(path)
            view = _read(name, query, dialect)
            definitions[path] = Definition(view.query, NameScope())
            depth, doubtful = depth + view.depth + 5, doubtful | view.doubtful
            waiting.append(query)
    return Views(definitions, depth, doubtful)


def check_views(views: Mapping[str, str], dialect: str | None) -> None:
    """Raise an error for a view that can't be read."""
    for name, text in views.items():
        _read(name, text, dialect)


def _names(text: str, name: str) -> bool:
    """Tell whether a name may stand in a text as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


@lru_cache(maxsize=512)
def _read(name: str, sql: str, dialect: str | None) -> _View:
    try:
        read = prepare(sql, "statement", dialect, None, "UTC")
        node = with_room(read.depth, lambda: parse_statement(read))
    except PredicateError as error:
        raise PredicateError(f"The view {quoted(name)} can't be read: {error}") from None
    query = node.args.get("expression") if isinstance(node, exp.Create) else node
    if not isinstance(query, exp.Query):
        raise PredicateError(f"The view {quoted(name)} is no query. Give its SELECT.")
    return _View(query, read.depth, read.session.doubtful)
