"""Convert SQL conditions to predicates: comparisons, lists, patterns and their negations."""

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp

from zonal.predicates.conversion import may_be_one
from zonal.predicates.expressions import (
    FLIPPED,
    NEGATED,
    And,
    Call,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Op,
    Or,
    Parameter,
    Predicate,
    StartsWith,
    Term,
    Unknown,
    Value,
    leaves,
)
from zonal.predicates.scalars import MYSQL, TRINO, TSQL, Opaque, Session, read_moment
from zonal.sql.literals import literal, plain
from zonal.sql.terms import read_column, read_columns, read_term, unwrapped_value
from zonal.sql.unusable import describe

_COLLATED = TSQL | {"mysql", "singlestore", "teradata", "redshift"}
"""Dialects that by default ignore the case of text, or the spaces at its end."""
_LOCALE_ORDER = frozenset({"postgres"})
"""Dialects whose default collations order text by a locale, not by its bytes."""
_LOOSE_BOOLEANS = MYSQL | {"duckdb", "snowflake", "sqlite", "clickhouse"}
"""Dialects in which a number is true unless it is 0."""
_UNORDERED_NAN = TRINO | {"bigquery", "clickhouse"}
"""Dialects in which no comparison with NaN is true; elsewhere it is the greatest number."""
_OPS: dict[type[exp.Expr], Op] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def join(parts: Sequence[Predicate], *, is_and: bool) -> Predicate:
    if Constant(not is_and) in parts:
        return Constant(not is_and)
    rest = tuple(part for part in parts if part != Constant(is_and))
    if len(rest) < 2:
        return rest[0] if rest else Constant(is_and)
    return And(rest) if is_and else Or(rest)


def _unwrapped(node: exp.Expr, negated: bool = False) -> tuple[exp.Expr, bool]:
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return node, negated


def read_condition(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    """Convert a condition, or its negation; chains of AND and OR, however long, on a list instead of the stack."""
    node, negated = _unwrapped(node, negated)
    if not isinstance(node, exp.And | exp.Or):
        return _leaf(node, negated, session)
    is_and = isinstance(node, exp.And) != negated
    waiting, parts = [(node.expression, negated), (node.this, negated)], []
    while waiting:
        child, flag = _unwrapped(*waiting.pop())
        if isinstance(child, exp.And | exp.Or) and (isinstance(child, exp.And) != flag) == is_and:
            waiting += [(child.expression, flag), (child.this, flag)]
        else:
            parts.append(read_condition(child, flag, session))
    return join(parts, is_and=is_and)


def _leaf(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    try:
        if type(node) not in _RULES:
            raise Opaque(describe(node))
        return _RULES[type(node)](node, negated != bool(node.args.get("negate")), session)
    except Opaque as reason:
        return Unknown(str(reason), read_columns(node))


def _compared(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    op = _OPS[type(node)]
    if not negated:
        return _compare(node.this, op, node.expression, session)
    comparison = _compare(node.this, NEGATED[op], node.expression, session)
    if session.dialect not in _UNORDERED_NAN:
        return comparison
    # Neither x > 5 nor x <= 5 is true for NaN there, so its negation is: x <= 5, or above all numbers.
    low = [leaf for leaf in leaves(comparison) if isinstance(leaf, Compare) and leaf.op in ("<", "<=")]
    numbers = [leaf for leaf in low if isinstance(leaf.value, int | Decimal | float)]
    return join([comparison, *(Compare(leaf.term, ">", math.inf) for leaf in numbers)], is_and=False)


def _compare(left: exp.Expr, op: Op, right: exp.Expr, session: Session) -> Predicate:
    sides = [_known(side, session) for side in (left, right)]
    values = [side for side in sides if not isinstance(side, Opaque)]
    if None in values:
        return Constant(False)  # a comparison with NULL is never true
    if len(values) == 2:
        return Constant(_fold(values[0], op, values[1]))
    if not isinstance(sides[1], Opaque):
        return _compare_value(left, op, sides[1], session)
    if not isinstance(sides[0], Opaque):
        return _compare_value(right, FLIPPED[op], sides[0], session)
    reasons = [str(side) for side in sides if str(side) != "another column"]
    raise Opaque(reasons[0] if reasons else "a comparison of two columns")


def _known(node: exp.Expr, session: Session) -> "Value | Opaque":
    try:
        return literal(node, session)
    except Opaque as reason:
        return reason.with_traceback(None)


def _compare_value(node: exp.Expr, op: Op, value: Value, session: Session) -> Predicate:
    node = unwrapped_value(node)
    if isinstance(node, exp.Coalesce):
        return _coalesced(node, op, value, session)
    term = read_term(node, session)
    return Compare(term, op, _fitting(term, op, value, session))


def _kind(value: object) -> str:
    kinds: dict[type, str] = {bool: "truth", int: "number", Decimal: "number", date: "moment", datetime: "moment"}
    return kinds.get(type(value), type(value).__name__)


def _fold(left: Value, op: Op, right: Value) -> bool:
    """Compare two literals, where every engine agrees on the result."""
    if isinstance(left, Parameter) or isinstance(right, Parameter):
        raise Opaque("a parameter, whose value isn't known")
    if isinstance(left, date) and isinstance(right, date):
        left, right = (v if isinstance(v, datetime) else datetime.combine(v, time()) for v in (left, right))
        if (left.tzinfo is None) != (right.tzinfo is None):
            raise Opaque("a comparison of times with and without a zone")
    if _kind(left) != _kind(right) or (isinstance(left, str) and not _is_plain_text(left, op, str(right))):
        raise Opaque("a comparison of two literals that engines do differently")
    if op in ("=", "<>"):
        return (left == right) == (op == "=")
    is_less: bool = left < right  # type: ignore[operator] # both are of one kind
    return op in ("<=", ">=") if left == right else is_less == (op in ("<", "<="))


def _is_plain_text(left: str, op: Op, right: str) -> bool:
    """Tell whether no collation can make a difference: the same text, or ASCII that differs in more than case."""
    is_other = left.rstrip().casefold() != right.rstrip().casefold() and (left + right).isascii()
    return op in ("=", "<>") and (left == right or is_other)


def _fitting(term: Term, op: Op, value: Value, session: Session) -> Value:
    """Return the value as it may be compared with a term; text only where no collation changes the result."""
    if isinstance(value, Parameter):
        return value
    dialect = session.dialect
    is_collated = dialect in _COLLATED or (dialect in _LOCALE_ORDER and op not in ("=", "<>"))
    if isinstance(term, Call):
        if term.argument == "string" and is_collated:
            raise Opaque("text, which this dialect compares by a collation")
        return _call_value(term, value)
    if not isinstance(value, str) or not is_collated:
        return value
    # As a date it can be compared with dates only: a column of text then has no range.
    moment = read_moment(value)
    if moment is None or (isinstance(moment, datetime) and moment.tzinfo is not None):
        raise Opaque("text, which this dialect compares by a collation")
    return moment


def _call_value(call: Call, value: Value) -> Value:
    kind = call.argument.partition("(")[0] if call.name == "cast" else call.name
    if kind == "string":
        is_fit = isinstance(value, str)
    elif kind == "time":
        is_fit = isinstance(value, time)
    elif kind in ("date", "date_trunc", "timestamp", "timestamptz"):
        if isinstance(value, str):  # some engines cut text with a time to a date, some make a timestamp of the date
            moment = read_moment(value)
            is_clock = isinstance(moment, datetime) and (kind == "date" or moment.tzinfo is not None)
            value = None if is_clock else moment
        is_fit = isinstance(value, date)
    else:
        is_fit = isinstance(value, int | Decimal | float) and not isinstance(value, bool)
    if not is_fit:
        raise Opaque(f"the function {call.name} compared with a value of another type")
    return value


def _coalesced(node: exp.Coalesce, op: Op, value: Value, session: Session) -> Predicate:
    """Expand COALESCE(column, literal) op value: the comparison, or a null for which the literal satisfies it."""
    plain(node, "this", "expressions", "is_nvl", "is_null")
    column = read_term(node.this, session)
    if not isinstance(column, Column) or len(node.expressions) != 1:
        raise Opaque(describe(node))
    other = literal(node.expressions[0], session)
    is_cut = bool(node.args.get("is_null")) and not isinstance(other, int)  # ISNULL gives the column's type
    # Engines may compare all three as text, which orders and tells apart other values than the column's type does.
    is_fit = _kind(value) in ("truth", "number", "moment") or (isinstance(value, str) and op == "=")
    if other is None or _kind(other) != _kind(value) or is_cut or not is_fit:
        raise Opaque(f"{describe(node)} of several types")
    compared = Compare(column, op, _fitting(column, op, value, session))
    is_true = _fold(other, op, value) or (isinstance(other, str) and may_be_one(other, str(value)))
    return join([compared, IsNull(column)] if is_true else [compared], is_and=False)


def _listed(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise Opaque("a subquery" if node.args.get("query") else "a list that isn't made of literals")
    plain(node, "this", "expressions")
    items = [_known(item, session) for item in node.expressions]
    values: list[Value] = [item for item in items if not isinstance(item, Opaque) and item is not None]
    op: Op = "<>" if negated else "="
    if not items:
        return Constant(negated)
    if negated and None in items:
        if session.dialect == "clickhouse":
            raise Opaque("NOT IN with a null, which this dialect may ignore")
        return Constant(False)
    unknown = next((item for item in items if isinstance(item, Opaque)), None)
    if len({_kind(value) for value in values} - {"Parameter"}) > 1 or (unknown and not negated):
        raise unknown or Opaque("a list of several types, which engines convert differently")
    term = unwrapped_value(node.this)
    if not values:
        return Unknown(str(unknown), read_columns(node)) if unknown else Constant(False)
    if isinstance(term, exp.Coalesce):
        known = join([_coalesced(term, op, value, session) for value in values], is_and=negated)
    else:
        left = read_term(term, session)
        known = In(left, tuple(_fitting(left, op, value, session) for value in values), negated)
    return known if unknown is None else And((known, Unknown(str(unknown), read_columns(node))))


def _between(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    plain(node, "this", "low", "high")
    low, high = node.args["low"], node.args["high"]
    known = [side for side in (_known(low, session), _known(high, session)) if side is not None]
    if len({_kind(side) for side in known if not isinstance(side, Opaque | Parameter)}) > 1:
        raise Opaque("limits of several types, which engines convert differently")
    ends: list[tuple[Op, exp.Expr]] = [("<", low), (">", high)] if negated else [(">=", low), ("<=", high)]
    return join([_attempt(node, op, side, session) for op, side in ends], is_and=not negated)


def _attempt(node: exp.Expr, op: Op, side: exp.Expr, session: Session) -> Predicate:
    try:
        return _compare(node.this, op, side, session)
    except Opaque as reason:
        return Unknown(str(reason), read_columns(node))


def _is(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    """Convert IS NULL, IS TRUE, IS FALSE and their negations."""
    plain(node, "this", "expression", "negate")
    if isinstance(node.expression, exp.Null):
        return _null(node.this, negated, session)
    if not isinstance(node.expression, exp.Boolean):
        raise Opaque(describe(node))
    is_true = bool(node.expression.this)
    if not negated:
        return read_condition(node.this, not is_true, session)
    inner = unwrapped_value(node.this)
    if type(inner) not in {*_OPS, exp.Column, exp.Dot, exp.In, exp.Like, exp.StartsWith}:
        raise Opaque("a condition that may be null in several ways")
    yes, no = _leaf(inner, False, session), _leaf(inner, True, session)
    if isinstance(inner, exp.Column | exp.Dot):
        column = read_column(inner)
    else:
        # Null where the column is, if nothing but the column can make it so.
        column = _only_column(yes)
        mirrored = isinstance(yes, Compare) and isinstance(no, Compare) and no.op == NEGATED[yes.op]
        if not mirrored and not (isinstance(yes, In | StartsWith) and type(no) is type(yes)):
            raise Opaque("a condition that may be null in several ways")
    return join([no if is_true else yes, IsNull(column)], is_and=False)


def _only_column(node: Predicate) -> Column:
    column = node.term if isinstance(node, Compare | In) else node.column if isinstance(node, StartsWith) else None
    if not isinstance(column, Column):
        raise Opaque("a condition that may be null in several ways")
    return column


def _null(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    value = _known(node, session)
    if isinstance(value, Parameter):
        raise Opaque("a parameter, whose value isn't known")
    if not isinstance(value, Opaque):
        return Constant((value is None) != negated)
    term = read_term(node, session)
    if isinstance(term, Column):
        return IsNull(term, negated)
    if negated:  # a function of a null is null
        return IsNull(term.column, negated=True)
    raise Opaque(f"the function {term.name}, which may be null for values that aren't")


def _distinct(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    """Convert IS [NOT] DISTINCT FROM and <=>, which are never null."""
    is_distinct = isinstance(node, exp.NullSafeNEQ) != negated
    left, right = node.this, node.expression
    value = _known(right, session)
    if isinstance(value, Opaque):
        left, value = right, literal(left, session)
    if isinstance(value, Parameter):  # which may be null
        raise Opaque("a parameter, whose value isn't known")
    if value is None:
        return _null(left, is_distinct, session)
    same = _compare_value(left, "<>" if is_distinct else "=", value, session)
    if not is_distinct or isinstance(unwrapped_value(left), exp.Coalesce):  # which is never null
        return same
    return join([same, IsNull(_only_column(same))], is_and=False)


def _like(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    return _pattern(node, None, negated, session)


def _escaped(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    escape = literal(node.expression, session)
    if not isinstance(node.this, exp.Like) or not isinstance(escape, str) or len(escape) != 1:
        raise Opaque("a pattern with an escape that zonal doesn't follow")
    return _pattern(node.this, escape, negated != bool(node.this.args.get("negate")), session)


def _pattern(node: exp.Expr, escape: str | None, negated: bool, session: Session) -> Predicate:
    plain(node, "this", "expression", "negate")
    pattern = literal(node.expression, session)
    if pattern is None:
        return Constant(False)
    if not isinstance(pattern, str):
        raise Opaque("a pattern that isn't text")
    prefix, rest = _prefix(pattern, escape)
    if rest and not rest.strip("%"):
        return _starts(node.this, prefix, negated, session)
    if negated or not (prefix or not rest):
        raise Opaque("a negated pattern" if negated else "a pattern that begins with a wildcard")
    if rest:
        return _starts(node.this, prefix, False, session)
    _starts(node.this, prefix, False, session)
    return _compare_value(node.this, "=", prefix, session)


def _prefix(pattern: str, escape: str | None) -> tuple[str, str]:
    """Split a pattern before its first wildcard; a backslash is an escape in some engines, so it ends the prefix too.

    >>> _prefix("10!%_off%", "!")
    ('10%', '_off%')
    """
    prefix: list[str] = []
    position = 0
    while position < len(pattern):
        here, behind = pattern[position], pattern[position + 1 : position + 2]
        if here == escape and behind in ("%", "_", escape):
            prefix.append(behind)
            position += 2
            continue
        if here in ("%", "_", escape) or (here == "\\" and escape is None):
            break
        prefix.append(here)
        position += 1
    return "".join(prefix), pattern[position:]


def _starts(node: exp.Expr, prefix: str, negated: bool, session: Session) -> Predicate:
    if session.dialect in _COLLATED | {"sqlite"}:
        raise Opaque("a pattern, which ignores case in this dialect")
    column = read_term(node, session)
    if not isinstance(column, Column):
        raise Opaque(f"a pattern for {describe(unwrapped_value(node))}")
    if prefix:
        return StartsWith(column, prefix, negated)
    return Constant(False) if negated else IsNull(column, negated=True)


def _started(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    plain(node, "this", "expression")
    prefix = literal(node.expression, session)
    if prefix is None:
        return Constant(False)
    if not isinstance(prefix, str):
        raise Opaque("a prefix that isn't text")
    return _starts(node.this, prefix, negated, session)


def _bare(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    """Convert a column, or a COALESCE, that is a condition by itself."""
    if session.dialect in _LOOSE_BOOLEANS:
        return _compare_value(node, "=" if negated else "<>", False, session)
    return _compare_value(node, "=", not negated, session)


def _constant(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    value = literal(node, session)
    if value is None:
        return Constant(False)
    if not isinstance(value, int):
        raise Opaque("a literal as a condition")
    return Constant(bool(value) != negated)


def _function(node: exp.Expr, negated: bool, session: Session) -> Predicate:
    name, arguments = node.name.lower(), node.expressions
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        return _null(arguments[0], negated != (name == "isnotnull"), session)
    raise Opaque(describe(node))


_Rule: TypeAlias = Callable[[exp.Expr, bool, Session], Predicate]
_RULES: dict[type[exp.Expr], _Rule] = {
    **dict.fromkeys(_OPS, _compared),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _distinct),
    **dict.fromkeys((exp.Column, exp.Dot, exp.Coalesce), _bare),
    **dict.fromkeys((exp.Boolean, exp.Null, exp.Literal), _constant),
    exp.In: _listed,
    exp.Between: _between,
    exp.Is: _is,
    exp.Like: _like,
    exp.Escape: _escaped,
    exp.StartsWith: _started,
    exp.Anonymous: _function,
}
