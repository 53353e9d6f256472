"""Predicates as values: what a WHERE clause says of columns, by name, before any schema is known.

The tree is in negation normal form: NOT stands in no node, because SQL's three-valued logic lets it be pushed down to
the comparisons (NOT (a AND b) is NOT a OR NOT b, NOT x < 1 is x >= 1, and a null stays a null).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Literal, TypeAlias
from uuid import UUID


@dataclass(frozen=True)
class Parameter:
    """A value that only the caller of the query knows: `?`, `:name`, `$1`.

    It stands in comparisons and lists only where the SQL was read with `parameters`; elsewhere it is `Unknown`.
    """

    name: str = ""


Value: TypeAlias = "bool | int | Decimal | float | str | bytes | date | datetime | time | UUID | Parameter | None"
Op = Literal["=", "<>", "<", "<=", ">", ">="]

FLIPPED: dict[str, Op] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED: dict[str, Op] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Column:
    """A column by its name; dots lead into structs. `quoted` names keep their case in dialects that fold it."""

    name: str
    quoted: bool = False


@dataclass(frozen=True)
class Call:
    """A function of one column that may be turned into ranges of it once the column's type is known.

    `name` is one of: year, date, date_trunc (unit), floor, ceil, cast (type). `argument` is the unit or the target
    type, in lower case; target types are: int8 to int64, float, double, decimal(p,s), string, timestamp, timestamptz,
    time (a cast to date is `date`).
    """

    name: str
    column: Column
    argument: str = ""


Term: TypeAlias = "Column | Call"


@dataclass(frozen=True)
class Compare:
    """`term op value`; the value is never null (that comparison is never true: `Constant(False)`)."""

    term: Term
    op: Op
    value: Value


@dataclass(frozen=True)
class In:
    """`term IN (values)`, or NOT IN; no value is null (NOT IN with a null is never true: `Constant(False)`)."""

    term: Term
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True)
class IsNull:
    """`column IS NULL`, or IS NOT NULL."""

    column: Column
    negated: bool = False


@dataclass(frozen=True)
class StartsWith:
    """`column LIKE 'prefix%'` (case-sensitive), or its negation.

    `LIKE 'ab%c'` is a StartsWith, which keeps more rows than it does; `NOT LIKE 'ab%c'` is `Unknown`.
    """

    column: Column
    prefix: str
    negated: bool = False


@dataclass(frozen=True)
class And:
    """All parts are true."""

    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True)
class Or:
    """Some part is true."""

    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True)
class Constant:
    """True for every row, or for none; SQL's NULL is for none."""

    value: bool


@dataclass(frozen=True)
class Unknown:
    """Anything else: it might be true for every row. `reason` tells people why no statistics help."""

    reason: str
    columns: tuple[Column, ...] = ()


Predicate: TypeAlias = "Compare | In | IsNull | StartsWith | And | Or | Constant | Unknown"


def leaves(predicate: Predicate) -> Iterator[Predicate]:
    """Yield the nodes that are neither AND nor OR, from left to right, without recursion."""
    waiting = [predicate]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And | Or):
            waiting.extend(reversed(node.parts))
        else:
            yield node
