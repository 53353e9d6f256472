"""Write conditions of queries on values that a table has: look-ups, ranges and lists, in SQL that all engines read."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Sorted: TypeAlias = dict[str, npt.NDArray[np.generic]]
"""Values of columns in their order."""
Draw: TypeAlias = np.random.Generator
_Item = TypeVar("_Item")


def in_order(data: pa.Table, columns: Sequence[str] | None = None) -> Sorted:
    """Sort the values of columns, of all by default."""
    return {name: np.sort(data[name].drop_null().to_numpy()) for name in columns or data.column_names}


def between(name: str, ordered: Sorted, rng: Draw, least: float, most: float, *, recent: bool = False) -> str:
    """Make a condition on a range with a share of the rows; with `recent`, late ones more often."""
    values, width = ordered[name], rng.uniform(least, most)
    middle = 1 - rng.beta(1, 4) if recent else rng.random()
    start = float(np.clip(middle - width / 2, 0, 1 - width))
    low, high = (literal(values[int(place * (len(values) - 1))]) for place in (start, start + width))
    return f"{name} >= {low} AND {name} <= {high}"


def top(name: str, ordered: Sorted, rng: Draw, least: float, most: float) -> str:
    """Make a condition on a share of the rows with the largest values."""
    values = ordered[name]
    return f"{name} >= {literal(values[int(len(values) * (1 - rng.uniform(least, most)))])}"


def equal(name: str, data: pa.Table, rng: Draw) -> str:
    """Make a look-up of a random row's value, so that frequent values are asked for more often."""
    return f"{name} = {literal(_some(name, data, rng, 1)[0])}"


def among(name: str, data: pa.Table, rng: Draw, count: int) -> str:
    """Make a list of the values of random rows."""
    values = sorted(set(_some(name, data, rng, count)))
    return f"{name} IN ({', '.join(map(literal, values))})"


def _some(name: str, data: pa.Table, rng: Draw, count: int) -> list[Any]:
    """Draw rows until enough have a value."""
    found: list[Any] = []
    while len(found) < count:
        value = data[name][int(rng.integers(data.num_rows))].as_py()
        found += [] if value is None else [value]
    return found


def literal(value: object) -> str:
    """Write a value in SQL; times are in UTC.

    >>> literal(np.datetime64("2026-01-02T03:04:05")), literal("it's"), literal(np.int64(7))
    ("TIMESTAMP '2026-01-02 03:04:05'", "'it''s'", '7')
    """
    if isinstance(value, np.datetime64):
        text = str(value).replace("T", " ")
        return f"TIMESTAMP '{text}'" if " " in text else f"DATE '{text}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None)}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value) if isinstance(value, int | float) else str(value)


def halves(queries: Sequence[_Item], rng: Draw) -> tuple[list[_Item], list[_Item]]:
    """Deal queries out at random, half for training and half held out."""
    places = rng.permutation(len(queries))
    half = len(queries) // 2
    return [queries[at] for at in places[:half]], [queries[at] for at in places[half:]]
