"""Values for the parameters of queries whose log has none: `a = ?` gets values of the table's rows."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa

from zonal.errors import ColumnError, quoted
from zonal.predicates.expressions import And, Call, Column, Compare, In, Or, Parameter, Predicate, Term, Unknown, Value
from zonal.predicates.expressions import leaves as leaves_of
from zonal.predicates.fold import fold
from zonal.values.columns import find, leaf, leaves
from zonal.values.words import decoded_array

_LIMITS = {">": 0, ">=": 0, "<": 1, "<=": 1}
"""Which of two drawn values a comparison takes: the smaller for lower limits, the larger for upper ones."""
_MOST_VALUES = 1000
"""Parameters of one list that get a value of their own."""


def has_parameters(predicate: Predicate) -> bool:
    """Tell whether only the query's caller knows a value of the predicate."""
    return any(isinstance(value, Parameter) for node in leaves_of(predicate) for value in _values(node))


def draw_parameters(predicate: Predicate, data: pa.Table, seed: int) -> Predicate:
    """Replace parameters by values of random rows; the same seed gives the same values.

    Values come from one row, so that correlated columns stay correlated. The lower and the upper limit of a column
    come from two rows, the smaller value first. Comparisons for which nothing can be drawn (a column that the data
    lacks, one of nulls, most functions of a column) become `Unknown`.
    """
    return fold(predicate, _Draw(data, seed).leaf, _rejoined)


def _rejoined(node: And | Or, parts: list[Predicate]) -> Predicate:
    return replace(node, parts=tuple(parts))


def _values(node: Predicate) -> Sequence[Value]:
    if isinstance(node, Compare):
        return (node.value,)
    return node.values if isinstance(node, In) else ()


class _Draw:
    """Rows of a sample in a random order, from which values are taken."""

    def __init__(self, data: pa.Table, seed: int) -> None:
        self.data = data
        self.rows = np.random.default_rng(seed).permutation(data.num_rows)[: _MOST_VALUES + 1]
        self.names: dict[str, str] = {}
        for name in leaves(data.schema):
            self.names.setdefault(name.casefold(), name)
        self.known: dict[str, list[Value]] = {}

    def leaf(self, node: Predicate) -> Predicate:
        """Return the comparison with values, or `Unknown` where there are none."""
        if not isinstance(node, Compare | In) or not any(isinstance(value, Parameter) for value in _values(node)):
            return node
        column = node.term.column if isinstance(node.term, Call) else node.term
        evaluated = (_value_of(node.term, value) for value in self._column(column.name))
        fit = [value for value in evaluated if value is not None]
        if not fit:
            return Unknown(f"a parameter, and no values of {quoted(column.name)} to draw from", (column,))
        if isinstance(node, In):
            drawn = (
                fit[at % len(fit)] if isinstance(value, Parameter) else value for at, value in enumerate(node.values)
            )
            return replace(node, values=tuple(dict.fromkeys(drawn)))
        limit = _LIMITS.get(node.op)
        pair = sorted([fit[0], fit[1 % len(fit)]])  # type: ignore[type-var]
        return replace(node, value=fit[0] if limit is None else pair[limit])

    def _column(self, name: str) -> list[Value]:
        """Return the column's values in the drawn rows, without nulls and NaN."""
        if name not in self.known:
            try:
                column = leaf(self.data, find(self.data.schema, self.names.get(name.casefold(), name)))
            except ColumnError:
                return []
            values = pa.chunked_array([decoded_array(chunk) for chunk in column.chunks] or [pa.array([], column.type)])
            if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
                values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
            drawn = values.take(pa.array(self.rows)).to_pylist()
            self.known[name] = [value for value in drawn if _is_drawable(value)]
        return self.known[name]


_KINDS = (bool, int, float, Decimal, str, bytes, date, time, UUID)


def _is_drawable(value: object) -> bool:
    return isinstance(value, _KINDS) and not (isinstance(value, float) and math.isnan(value))


def _value_of(term: Term, value: Value) -> Value:
    """Evaluate a term for a value of its column; None for functions that are not known here."""
    if isinstance(term, Column):
        return value
    if isinstance(value, date) and term.name == "year":
        return value.year
    if isinstance(value, date) and term.name == "date":
        return value.date() if isinstance(value, datetime) else value
    return None
