"""Decide which conditions on a SELECT's result may be pushed down to the rows that it reads.

A condition may be pushed down only if the rows that fail it leave no other trace: not in an aggregate, a window, a
LIMIT.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from sqlglot import exp

from zonal.predicates.scalars import Opaque
from zonal.sql.outputs import Inside, name_of, unaliased
from zonal.sql.terms import path_of

_Key: TypeAlias = tuple[object, ...]
_Gate: TypeAlias = Callable[[exp.Expr], bool]
_PLAIN_SELECT = frozenset(
    {"with_", "expressions", "hint", "distinct", "from_", "joins", "laterals", "where", "group", "having", "qualify"}
    | {"windows", "order", "sort", "cluster", "distribute", "locks", "options", "into"}
)


def grouped_gate(inside: Inside) -> _Gate:
    """Return which expressions are the same in all rows of a group; without groups, all are."""
    select = inside.select
    group = select.args.get("group")
    if group is None:
        return _none if select.args.get("having") or _aggregates(select) else _is_computed_here
    if group.args.get("all"):
        return _is_computed_here
    names = [name for name, value in group.args.items() if value and name != "expressions"]
    if names or any(isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets) for key in group.expressions):
        return _none
    return _among(list(_group_keys(group, inside)), inside)


def result_gate(inside: Inside) -> _Gate:
    """Return which expressions of the result let a condition on them through to the rows."""
    select = inside.select
    if any(value and name not in _PLAIN_SELECT for name, value in select.args.items()):
        return _none
    gates = [grouped_gate(inside)]
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        gates.append(_among(distinct.args["on"].expressions or [distinct.args["on"]], inside))
    for window in _windows(select):
        partition = _partition(window, select)
        gates.append(_none if partition is None else _among(partition, inside))
    return lambda node: all(gate(node) for gate in gates)


def _none(_node: exp.Expr) -> bool:
    return False


def _is_computed_here(node: exp.Expr) -> bool:
    """Tell whether an expression depends on nothing but the row: engines that allow others make them aggregates."""
    return not any(isinstance(part, exp.AggFunc | exp.Window | exp.Query | exp.UDTF) for part in node.walk())


def _among(keys: Iterable[exp.Expr], inside: Inside) -> _Gate:
    """Return a gate for expressions that are keys, or made of keys alone."""
    known = [unaliased(key) for key in keys]
    columns = {_key(key, inside) for key in known if isinstance(key, exp.Column | exp.Dot)}

    def passes(node: exp.Expr) -> bool:
        if not _is_computed_here(node):
            return False
        return any(node == key for key in known) or all(_key(part, inside) in columns for part in _columns(node))

    return passes


def _columns(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the columns of an expression, with the fields behind them."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, exp.Column | exp.Dot):
            yield here
        else:
            waiting.extend(here.iter_expressions())


def _key(node: exp.Expr, inside: Inside) -> _Key:
    """Return a key that is equal for all ways to write one column."""
    try:
        parts = tuple(part.name.casefold() for part in path_of(node))
    except Opaque:
        return (id(node),)
    owners, length = inside.names.owners(parts)
    return (owners, parts[length:]) if owners else (None, parts)


def _group_keys(group: exp.Expr, inside: Inside) -> Iterator[exp.Expr]:
    """Yield the keys; a name may be that of an output, a number is the place of one."""
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.name.isdecimal():
            place = int(key.name) - 1
            if 0 <= place < len(inside.outputs.items):
                yield inside.outputs.items[place].node
            continue
        yield key
        if isinstance(key, exp.Column) and not key.args.get("table"):
            yield from _explicit(key.name, inside)


def _explicit(name: str, inside: Inside) -> Iterator[exp.Expr]:
    for node in inside.select.expressions:
        if isinstance(node, exp.Alias) and name_of(node).casefold() == name.casefold():
            yield unaliased(node)


def is_renamed(column: exp.Expr, inside: Inside) -> bool:
    """Tell whether a name is also that of an output which is something else."""
    if not isinstance(column, exp.Column) or column.args.get("table"):
        return False
    outputs = list(_explicit(column.name, inside))
    return any(not isinstance(node, exp.Column) or _key(node, inside) != _key(column, inside) for node in outputs)


def _parts(select: exp.Select, *, below: type[exp.Expr] | None = None) -> Iterator[exp.Expr]:
    """Yield the nodes of what a SELECT computes of its rows, outside of inner queries and below no node of a type."""
    clauses = [select.args.get(name) for name in ("having", "qualify", "order")]
    waiting = [*select.expressions, *(clause for clause in clauses if clause is not None)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            continue
        yield node
        if below is None or not isinstance(node, below):
            waiting.extend(node.iter_expressions())


def _aggregates(select: exp.Select) -> bool:
    """Tell whether it aggregates all rows into one, unless it groups."""
    if any(isinstance(node, exp.AggFunc) for node in _parts(select, below=exp.Window)):
        return True
    inner = [node for window in _windows(select) for node in window.this.iter_expressions()]
    return any(isinstance(part, exp.AggFunc) for node in inner for part in node.walk())


def _windows(select: exp.Select) -> Iterator[exp.Window]:
    return (node for node in _parts(select) if isinstance(node, exp.Window))


def _partition(window: exp.Window, select: exp.Select) -> list[exp.Expr] | None:
    """Return the PARTITION BY keys of a window; None if they aren't clear."""
    named = {item.name.casefold(): item for item in select.args.get("windows") or []}
    for _ in range(len(named) + 1):
        if window.args.get("partition_by"):
            return list(window.args["partition_by"])
        alias = window.args.get("alias")
        if alias is None:
            return []
        if alias.name.casefold() not in named:
            return None
        window = named[alias.name.casefold()]
    return None
