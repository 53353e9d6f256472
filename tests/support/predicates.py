"""Any predicate over columns of all types: strategies, and the same predicate as SQL for DuckDB."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from zonal.predicates.expressions import And, Call, Column, Compare, Constant, In, IsNull, Or, StartsWith, Unknown

UTC = dt.timezone.utc
SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "big": pa.int64(),
        "d": pa.decimal128(10, 2),
        "wide": pa.decimal128(38, 4),
        "f": pa.float64(),
        "g": pa.float32(),
        "s": pa.string(),
        "b": pa.bool_(),
        "day": pa.date32(),
        "ts": pa.timestamp("us"),
        "tz": pa.timestamp("us", "UTC"),
    }
)
MOMENTS = st.datetimes(dt.datetime(1968, 1, 1), dt.datetime(1973, 1, 1))
NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.decimals(-5, 5, places=2).map(lambda d: d.quantize(Decimal("0.01"))),
    st.sampled_from([0.1, -0.0, 2.5, 1e300, 0.30000000000000004, 5e-324]),
)
TEXT = st.one_of(st.text("aä\U0010ffffz", max_size=6), st.sampled_from(["aaaaaaaaaaaa", "aaaaaaaaaaab", ""]))
VALUES = {
    "i": st.integers(-5, 5),
    "big": st.one_of(st.integers(-5, 5), st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63)])),
    "d": st.decimals(-5, 5, places=2).map(lambda d: d.quantize(Decimal("0.01"))),
    "wide": st.one_of(st.decimals(-5, 5, places=4), st.sampled_from([Decimal(10**30), Decimal(-(10**30))])),
    "f": st.one_of(NUMBERS.map(float), st.sampled_from([math.nan, math.inf, -math.inf])),
    "g": st.one_of(st.sampled_from([0.1, 2.5, -1.0, 16777216.0]), st.just(math.nan)),
    "s": TEXT,
    "b": st.booleans(),
    "day": st.dates(dt.date(1968, 1, 1), dt.date(1973, 1, 1)),
    "ts": MOMENTS,
    "tz": MOMENTS.map(lambda m: m.replace(tzinfo=UTC)),
}
DAYS = st.one_of(VALUES["day"], MOMENTS, VALUES["tz"], VALUES["day"].map(str), MOMENTS.map(str))
LITERALS = {
    "i": NUMBERS, "big": st.one_of(NUMBERS, VALUES["big"]), "d": NUMBERS, "wide": st.one_of(NUMBERS, VALUES["wide"]),
    "f": st.one_of(NUMBERS, VALUES["f"]), "g": st.one_of(NUMBERS, VALUES["g"]),
    "s": TEXT, "b": st.booleans(), "day": DAYS, "ts": DAYS, "tz": DAYS,
}  # fmt: skip
UNITS = ("year", "quarter", "month", "week", "day", "hour")
CALLS = {
    "f": [Call("floor", Column("f")), Call("ceil", Column("f")), Call("cast", Column("f"), "int64")],
    "d": [Call("floor", Column("d")), Call("cast", Column("d"), "int64"), Call("cast", Column("d"), "decimal(10,1)")],
    "i": [Call("cast", Column("i"), "double"), Call("cast", Column("i"), "int64")],
    "big": [Call("cast", Column("big"), "double"), Call("cast", Column("big"), "float")],
    "ts": [Call("date", Column("ts")), *(Call("date_trunc", Column("ts"), unit) for unit in UNITS)],
    "tz": [Call("date", Column("tz")), Call("date_trunc", Column("tz"), "month")],
    "day": [Call("date_trunc", Column("day"), "month"), Call("cast", Column("day"), "timestamp")],
}  # fmt: skip
OPS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


@st.composite
def leaf(draw):
    name = draw(st.sampled_from(SCHEMA.names))
    column = Column(name)
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "like", "call", "year", "constant", "unknown"]))
    if kind == "null":
        return IsNull(column, draw(st.booleans()))
    if kind == "constant":
        return Constant(draw(st.booleans()))
    if kind == "unknown":
        return Unknown("a mystery", (column,))
    if kind == "like":
        return StartsWith(Column("s"), draw(TEXT), draw(st.booleans()))
    if kind == "year":
        return Compare(
            Call("year", Column(draw(st.sampled_from(["ts", "tz", "day"])))), draw(OPS), draw(st.integers(1966, 1975))
        )
    if kind == "in":
        return In(column, tuple(draw(st.lists(LITERALS[name], max_size=12))), draw(st.booleans()))
    term = draw(st.sampled_from(CALLS[name])) if kind == "call" and name in CALLS else column
    return Compare(term, draw(OPS), draw(LITERALS[name]))


PREDICATES = st.recursive(
    leaf(),
    lambda inner: st.builds(
        lambda joint, parts: joint(tuple(parts)), st.sampled_from([And, Or]), st.lists(inner, max_size=3)
    ),
    max_leaves=6,
)


def literal_sql(value):
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"'{value!r}'::DOUBLE"
    if isinstance(value, int | Decimal):
        return f"({value})" if isinstance(value, int) else f"({value:f})"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None)}'"
    return f"DATE '{value}'"


def term_sql(term):
    if isinstance(term, Column):
        return term.name
    name = term.column.name
    casts = {"int64": "BIGINT", "double": "DOUBLE", "float": "FLOAT"}
    return {
        "year": f"year({name})", "date": f"CAST({name} AS DATE)",
        "date_trunc": f"date_trunc('{term.argument}', {name})", "floor": f"floor({name})", "ceil": f"ceil({name})",
        "cast": f"TRY_CAST({name} AS {casts.get(term.argument, term.argument)})",
    }[term.name]  # fmt: skip


def sql(predicate):
    match predicate:
        case And(parts):
            return "(" + (" AND ".join(map(sql, parts)) or "TRUE") + ")"
        case Or(parts):
            return "(" + (" OR ".join(map(sql, parts)) or "FALSE") + ")"
        case Compare(term, op, value):
            return f"({term_sql(term)} {op} {literal_sql(value)})"
        case In(term, values, negated):
            if not values:
                return str(negated).upper() if not negated else f"({term_sql(term)} IS NOT NULL OR TRUE)"
            joint, op = (" AND ", "<>") if negated else (" OR ", "=")
            return "(" + joint.join(f"{term_sql(term)} {op} {literal_sql(value)}" for value in values) + ")"
        case IsNull(column, negated):
            return f"({column.name} IS {'NOT ' if negated else ''}NULL)"
        case StartsWith(column, prefix, negated):
            return f"({'NOT ' if negated else ''}starts_with({column.name}, {literal_sql(prefix)}))"
        case Constant(value):
            return str(value).upper()
        case Unknown():
            return "TRUE"
    raise AssertionError(predicate)
