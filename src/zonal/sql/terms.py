"""Read columns in SQL, and functions of one column that can be turned into ranges."""

from sqlglot import exp

from zonal.predicates.calendar import DAYS, MICROS, MONTHS
from zonal.predicates.expressions import Call, Column, Term
from zonal.predicates.scalars import INTEGERS, SPARK, TEXTS, TRINO, TSQL, Opaque, Session
from zonal.sql.literals import fraction_digits, plain, trunc_unit, type_name, type_sizes
from zonal.sql.unusable import describe

_NARROW_FLOATS = SPARK | TRINO | {"duckdb", "doris", "starrocks", "clickhouse"}
"""Dialects whose FLOAT or REAL has 32 bits."""
_WIDE_INTEGERS = frozenset({"bigquery", "snowflake"})
_UNITS = frozenset({*MICROS, *DAYS, *MONTHS})


def unwrapped_value(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def read_term(node: exp.Expr, session: Session) -> Term:
    node = unwrapped_value(node)
    if isinstance(node, exp.Column | exp.Dot):
        return read_column(node)
    if isinstance(node, exp.Cast | exp.Convert):
        return _cast(node, session)
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc | exp.DatetimeTrunc):
        return Call("date_trunc", _argument(node.this, node), trunc_unit(node, session))
    if isinstance(node, exp.Floor | exp.Ceil):
        plain(node, "this")
        return Call("floor" if isinstance(node, exp.Floor) else "ceil", _argument(node.this, node))
    if isinstance(node, exp.Date | exp.TsOrDsToDate) and session.dialect != "oracle":
        plain(node, "this", "safe")
        return Call("date", _argument(node.this, node))
    if (moment := _year_of(node)) is not None:
        return Call("year", _argument(moment, node))
    raise Opaque(describe(node))


def _year_of(node: exp.Expr) -> exp.Expr | None:
    """Return what an expression takes the year of."""
    if isinstance(node, exp.Year):
        inner = unwrapped_value(node.this)
        if isinstance(inner, exp.TsOrDsToDate) and not inner.args.get("format"):
            return unwrapped_value(inner.this)
        return inner
    if isinstance(node, exp.Extract) and node.this.name.lower() == "year":
        plain(node, "this", "expression")
        return unwrapped_value(node.expression)
    is_part = isinstance(node, exp.Anonymous) and node.name.lower() in ("date_part", "datepart")
    if is_part and len(node.expressions) == 2 and node.expressions[0].name.lower() == "year":
        return unwrapped_value(node.expressions[1])
    return None


def _argument(node: exp.Expr | None, outer: exp.Expr) -> Column:
    node = None if node is None else unwrapped_value(node)
    if not isinstance(node, exp.Column | exp.Dot):
        raise Opaque(f"{describe(outer)} of another expression")
    return read_column(node)


def _cast(node: exp.Expr, session: Session) -> Call:
    is_convert = isinstance(node, exp.Convert)
    plain(node, *("this", "expression") if is_convert else ("this", "to", "safe", "requires_string"))
    kind, inner = (node.this, node.expression) if is_convert else (node.args["to"], node.this)
    if not isinstance(kind, exp.DataType):
        raise Opaque("a cast to a type of its own")
    column = _argument(inner, node)
    target = _target(kind, session)
    return Call("date", column) if target == "date" else Call("cast", column, target)


def _target(kind: exp.DataType, session: Session) -> str:
    """Return the target type of a cast by the tree's name; `Opaque` if its values depend on the engine."""
    name, sizes = type_name(kind), type_sizes(kind)
    if name in INTEGERS and not sizes:
        return f"int{64 if session.dialect in _WIDE_INTEGERS else INTEGERS[name]}"
    if name == "DECIMAL" and sizes:
        return f"decimal({sizes[0]},{sizes[1] if len(sizes) > 1 else 0})"
    if name in TEXTS and not sizes and session.dialect not in TSQL:
        return "string"
    if name in ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME2", "TIMESTAMPTZ", "TIMESTAMPLTZ"):
        if fraction_digits(kind, session) == 6:
            has_zone = name.endswith(("TZ", "LTZ")) and name != "TIMESTAMPNTZ"
            return "timestamptz" if has_zone or (name == "TIMESTAMP" and session.dialect in SPARK) else "timestamp"
    elif not sizes and (
        name in ("DOUBLE", "TIME")
        or (name == "DATE" and session.dialect != "oracle")
        or (name == "FLOAT" and session.dialect in _NARROW_FLOATS)
    ):
        return name.lower()
    raise Opaque(f"a cast to {name.lower()}")


def read_column(node: exp.Expr) -> Column:
    """Return a column by its path."""
    parts = path_of(node)
    return Column(".".join(part.name for part in parts), any(part.args.get("quoted") for part in parts))


def path_of(node: exp.Expr) -> list[exp.Identifier]:
    """Return the parts of a column's path, its qualifier first; `Opaque` if it is no plain column."""
    behind: list[exp.Expr] = []
    while isinstance(node, exp.Dot):
        behind.append(node.expression)
        node = unwrapped_value(node.this)
    if not isinstance(node, exp.Column):
        raise Opaque(describe(node))
    plain(node, "this", "table", "db", "catalog")
    parts = [*node.parts, *reversed(behind)]
    identifiers = [part for part in parts if isinstance(part, exp.Identifier)]
    if len(identifiers) != len(parts):
        raise Opaque("several columns")
    return identifiers


def read_columns(node: exp.Expr) -> tuple[Column, ...]:
    """Return the columns of the table that an expression names, outside of its subqueries."""
    columns: dict[Column, None] = {}
    waiting: list[exp.Expr] = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, exp.Column | exp.Dot):
            try:
                columns[read_column(here)] = None
                continue
            except Opaque:
                if isinstance(here, exp.Column):
                    continue
        if isinstance(here, exp.Query | exp.Struct | exp.Lambda | exp.Placeholder | exp.Parameter):
            continue
        waiting.extend(reversed([child for child in here.iter_expressions() if not is_word(child, here)]))
    return tuple(columns)


def is_word(node: exp.Expr, parent: exp.Expr) -> bool:
    """Tell whether a name is a unit of time, not a column: `day` in DATEADD(day, 1, ts)."""
    if not isinstance(node, exp.Column) or node.args.get("table"):
        return False
    name = node.name.lower()
    return (isinstance(parent, exp.Func) and name.removesuffix("s") in _UNITS) or name == "localtimestamp"
