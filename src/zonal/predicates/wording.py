"""Predicates as text for people, with the values or without them."""

import re
from datetime import date, datetime, time

from zonal.errors import quoted
from zonal.predicates.expressions import (
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Or,
    Parameter,
    Predicate,
    StartsWith,
    Term,
    Unknown,
    Value,
)

EVERYTHING = "everything: it has no filter"
"""The wording of a query without a condition."""

_PLAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_MOST_VALUES, _MOST_CHARACTERS = 5, 400


def describe(predicate: Predicate, *, hide: bool = False) -> str:
    """Return the predicate in a short form of SQL; with `hide`, question marks stand for all values.

    Long lists and texts are shortened, and control characters escaped: it is for reading, not for running.

    >>> describe(And((Compare(Column("id"), "=", 7), StartsWith(Column("name"), "ab"))))
    "id = 7 AND name LIKE 'ab%'"
    >>> describe(In(Column("id"), (7, 8)), hide=True)
    'id IN (?, ?)'
    """
    pieces: list[str] = []
    length = 0
    # The texts still to come, first one last: predicates may be deeper than the interpreter's stack.
    waiting: list[str | tuple[Predicate, bool]] = [(predicate, False)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node[0], And | Or) and node[0].parts:
            waiting.extend(reversed(_joined(node[0], is_inner=node[1])))
        else:
            pieces.append(_leaf(node[0], hide))
        length += len(pieces[-1]) if pieces else 0
        if length > _MOST_CHARACTERS and waiting:
            return "".join(pieces).rstrip() + " …"
    return "".join(pieces)


def _joined(node: And | Or, *, is_inner: bool) -> list[str | tuple[Predicate, bool]]:
    word = " AND " if isinstance(node, And) else " OR "
    parts: list[str | tuple[Predicate, bool]] = []
    for part in node.parts:
        parts += [word, (part, len(node.parts) > 1)]
    inside = parts[1:]
    return ["(", *inside, ")"] if is_inner else inside


def _leaf(node: Predicate, hide: bool) -> str:
    if isinstance(node, Compare):
        return f"{_term(node.term)} {node.op} {_value(node.value, hide)}"
    if isinstance(node, In):
        shown = [_value(value, hide) for value in node.values[:_MOST_VALUES]]
        if len(node.values) > _MOST_VALUES:
            shown.append(f"… {len(node.values):,} values")
        return f"{_term(node.term)} {'NOT ' if node.negated else ''}IN ({', '.join(shown)})"
    if isinstance(node, IsNull):
        return f"{_name(node.column)} IS {'NOT ' if node.negated else ''}NULL"
    if isinstance(node, StartsWith):
        pattern = "?" if hide else _text(node.prefix + "%")
        return f"{_name(node.column)} {'NOT ' if node.negated else ''}LIKE {pattern}"
    if isinstance(node, Unknown):
        # The reason may name a function, or quote the SQL.
        columns = ", ".join(_name(column) for column in node.columns[:_MOST_VALUES])
        reason = "" if hide else f": {quoted(node.reason, limit=60)[1:-1]}"
        return f"something of {columns}{reason}" if columns else f"something{reason}"
    if isinstance(node, And):
        return "TRUE"
    return "TRUE" if isinstance(node, Constant) and node.value else "FALSE"


def _term(term: Term) -> str:
    if isinstance(term, Column):
        return _name(term)
    if term.name == "cast":
        return f"cast({_name(term.column)} AS {term.argument})"
    unit = f"'{term.argument}', " if term.argument else ""
    return f"{term.name}({unit}{_name(term.column)})"


def _name(column: Column) -> str:
    name = column.name if len(column.name) <= 80 else column.name[:79] + "…"
    if _PLAIN.fullmatch(name):
        return name
    escaped = name.encode("unicode_escape").decode() if not name.isprintable() else name
    return '"' + escaped.replace('"', '""') + '"'


def _value(value: Value, hide: bool) -> str:
    if isinstance(value, Parameter):
        return "?" if hide or not _PLAIN.fullmatch(value.name) else f":{value.name[:40]}"
    if hide:
        return "?"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return f"X'{value[:20].hex()}{'…' if len(value) > 20 else ''}'"
    if isinstance(value, bool) or value is None:
        return str(value).upper().replace("NONE", "NULL")
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    text = str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _text(value: str) -> str:
    shown = value if len(value) <= 60 else value[:59] + "…"
    if not shown.isprintable():
        shown = shown.encode("unicode_escape").decode()
    return "'" + shown.replace("'", "''") + "'"
