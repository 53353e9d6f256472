"""Comparisons with a literal, as ranges of the column's domain."""

import math
from fractions import Fraction
from typing import TypeAlias

import pyarrow as pa

from zonal.predicates.bound import Interval, Ranges, union
from zonal.predicates.conversion import Incomparable
from zonal.predicates.domain import Domain, locate
from zonal.predicates.expressions import Value

ExactPoint: TypeAlias = Fraction | float | bytes


def compare(domain: Domain, op: str, value: Value) -> Ranges:
    """Return where `column op value` may be true."""
    _check(domain, op, value)
    low, high = locate(domain, value)
    if isinstance(low, float) and math.isnan(low):
        # NaN equals itself and is above all numbers in Spark and DuckDB; elsewhere it equals nothing.
        numbers = (Interval(),) if op in ("<", "<=", "<>") else ()
        return Ranges(domain.column, numbers, nan=op != "<")
    return compare_between(domain, op, low, high)


def _check(domain: Domain, op: str, value: Value) -> None:
    """Refuse comparisons for which engines convert the column, or the literal to something else."""
    is_equality = op in ("=", "<>")
    if isinstance(value, bool) and not pa.types.is_boolean(domain.kind) and (value or not is_equality):
        # Some engines compare with 1, others tell whether the number isn't 0; with 0 both are the same.
        raise Incomparable("a truth value compared with numbers")
    if isinstance(value, str) and op != "=" and pa.types.is_fixed_size_binary(domain.kind):
        raise Incomparable("text compared with bytes, which it is a UUID for in some engines only")


def compare_between(domain: Domain, op: str, low: ExactPoint, high: ExactPoint) -> Ranges:
    """Return where `column op literal` may be true if all that is known of the literal is low ≤ literal ≤ high."""
    if op == "=":
        intervals = [_limits(domain, low, high)]
    elif op in ("<", "<="):
        intervals = [_limits(domain, None, high, is_open=op == "<")]
    elif op in (">", ">="):
        intervals = [_limits(domain, low, None, is_open=op == ">")]
    elif low == high:
        intervals = [_limits(domain, None, high, is_open=True), _limits(domain, low, None, is_open=True)]
    else:
        intervals = [Interval()]
    return Ranges(domain.column, union(intervals), nan=domain.family == "float" and op in (">", ">=", "<>"))


def half_open(first: Fraction | None, end: Fraction | None) -> Interval:
    """Return the values of a whole-number domain from `first` up to, but without, `end`."""
    return Interval(
        None if first is None else math.ceil(first),
        None if end is None else math.ceil(end) - 1,
    )


def _limits(domain: Domain, low: ExactPoint | None, high: ExactPoint | None, *, is_open: bool = False) -> Interval:
    if not domain.is_whole:
        assert not isinstance(low, Fraction)  # noqa: S101 - floats and bytes only
        assert not isinstance(high, Fraction)  # noqa: S101
        return Interval(low, high, low is not None and is_open, high is not None and is_open)
    first = last = None
    if isinstance(low, Fraction):
        first = math.floor(low) + 1 if is_open else math.ceil(low)
    if isinstance(high, Fraction):
        last = math.ceil(high) - 1 if is_open else math.floor(high)
    return Interval(first, last)
