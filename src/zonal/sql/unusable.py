"""Describe, for people, the parts of a condition that no statistics help with."""

import re

from sqlglot import exp

_ELSEWHERE = "\0"
"""Prefix that no name in SQL has: text with zero bytes is refused."""
_SPELLED = "spelled"
"""Where a function's own name is kept in its node: sqlglot gives dialects' functions names of its own."""
_ARITHMETIC = "arithmetic on a column, which may overflow or round"
_NAMES: dict[type[exp.Expr], str] = {
    exp.Query: "a subquery",
    exp.Any: "a comparison with any of several values",
    exp.All: "a comparison with all of several values",
    exp.SubqueryPredicate: "a subquery",
    exp.Window: "a window function",
    exp.AggFunc: "an aggregate",
    exp.Collate: "a collation",
    exp.Column: "another column",
    exp.Dot: "another column",
    exp.Tuple: "a row of several values",
    exp.Bracket: "an element of an array or map",
    exp.Case: "the expression CASE",
    exp.AtTimeZone: "a conversion between time zones",
    exp.ILike: "a pattern in any case",
    exp.RegexpLike: "a regular expression",
    exp.Cast: "a cast",
    exp.TsOrDsToDate: "the function to_date",
    exp.TimestampTrunc: "the function date_trunc",
    exp.Between: "the operator BETWEEN",
    exp.Xor: "the operator XOR",
    exp.Add: _ARITHMETIC,
    exp.Sub: _ARITHMETIC,
    exp.Mul: _ARITHMETIC,
    exp.Div: _ARITHMETIC,
    exp.Mod: _ARITHMETIC,
    exp.Neg: _ARITHMETIC,
}


def describe(node: exp.Expr) -> str:
    """Name, for people, what in an expression no statistics help with."""
    if is_parameter(node):
        return "a parameter, whose value isn't known"
    if is_elsewhere(node):
        return node.name.removeprefix(_ELSEWHERE)
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name.lower()[:60]}"
    for kind, name in _NAMES.items():
        if isinstance(node, kind):
            return name
    if isinstance(node, exp.Func):
        return f"the function {node.meta.get(_SPELLED) or node.sql_name().lower()}"
    if isinstance(node, exp.Binary):
        return f"the operator {type(node).__name__.upper()}"
    return f"an expression of kind {type(node).__name__.upper()}"


def with_spellings(statement: exp.Expr, sql: str) -> exp.Expr:
    """Keep the names of functions as they are written: `date_format`, which sqlglot reads as TIME_TO_STR."""
    for node in statement.find_all(exp.Func):
        start, end = (node.meta.get(side) for side in ("start", "end"))
        name = sql[start : end + 1][:60].lower() if start is not None and end is not None else ""
        if re.fullmatch(r"[a-z_]\w*", name, re.ASCII):
            node.meta[_SPELLED] = name
    return statement


def elsewhere(reason: str) -> exp.Expr:
    """Return a placeholder for what isn't a column of the table: another table's column, or a computed value."""
    return exp.Var(this=_ELSEWHERE + reason)


def is_elsewhere(node: object, reason: str = "") -> bool:
    """Tell whether a node is a placeholder of `elsewhere`, for that reason if one is given."""
    return isinstance(node, exp.Var) and node.name.startswith(_ELSEWHERE + reason)


def is_parameter(node: exp.Expr) -> bool:
    is_template = isinstance(node, exp.Struct) and any(isinstance(item, exp.Struct) for item in node.expressions)
    return is_template or isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter)
