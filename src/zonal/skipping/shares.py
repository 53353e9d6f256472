"""Shares of a table's bytes that a query reads, compared: when it reads more than before."""

from dataclasses import dataclass
from typing import overload

from zonal.values.arrays import BoolArray, Float64Array


@dataclass(frozen=True)
class Tolerance:
    """How much more than before is no difference yet."""

    share: float
    """In shares of the table's bytes."""
    factor: float = 1.0


MEASURED = Tolerance(0.001)
"""Of shares that come from files' bounds: sizes are rounded."""
PREDICTED = Tolerance(0.01, 1.15)
"""Of predicted shares: the prediction's error."""


@overload
def is_worse(before: float, after: float, tolerance: Tolerance = MEASURED) -> bool: ...
@overload
def is_worse(before: Float64Array, after: Float64Array, tolerance: Tolerance = MEASURED) -> BoolArray: ...
def is_worse(
    before: float | Float64Array, after: float | Float64Array, tolerance: Tolerance = MEASURED
) -> bool | BoolArray:
    """Tell whether a query, or each of several, reads more than before.

    >>> is_worse(0.5, 0.5005), is_worse(0.5, 0.51), is_worse(0.5, 0.52, PREDICTED)
    (False, True, False)
    """
    return (after > before + tolerance.share) & (after > before * tolerance.factor)
