"""Compute what a rewrite costs, what it saves per day, and after how many days it has paid for itself."""

import math

import numpy as np

from zonal.advising.advice import Cost, Prices
from zonal.advising.queries import BoundQueries
from zonal.values.arrays import Float64Array

_TERABYTE, _GIGABYTE, _HOUR, _MONTH = 1e12, 1e9, 3600.0, 30.0


def saved_bytes(
    queries: BoundQueries, before: Float64Array, after: Float64Array, *, table_bytes: int, per_day: float
) -> float:
    """Return how many bytes fewer the queries read per day.

    Where the log has the bytes that a query reads, they shrink in proportion to its share of the table: queries read
    some of the columns. Else a query is assumed to read all columns.
    """
    logged = np.array([math.nan if query.bytes is None else float(query.bytes) for query in queries.queries])
    read = np.where(np.isnan(logged) | (before <= 0), before * table_bytes, logged)
    kept = np.divide(after, before, out=np.ones_like(after), where=before > 0)
    saved = np.where(before > 0, read * (1 - kept), -after * table_bytes)
    return float(saved @ queries.runs) / max(float(queries.runs.sum()), 1e-300) * per_day


def cost_of(
    *, rewritten_bytes: int, rewritten_rows: float, row_seconds: float, saved_per_day: float, prices: Prices
) -> Cost:
    """Return the cost of a rewrite; one that rewrites nothing costs nothing."""
    core_seconds = rewritten_rows * row_seconds
    rewrite = core_seconds / _HOUR * prices.core_hour
    storage = rewritten_bytes / _GIGABYTE * prices.storage * prices.keep_days / _MONTH
    saved_price = saved_per_day / _TERABYTE * prices.scan
    payback = (rewrite + storage) / saved_price if saved_price > 0 else None
    return Cost(
        bytes=rewritten_bytes,
        core_seconds=core_seconds,
        rewrite_price=rewrite,
        storage_price=storage,
        saved_bytes_per_day=saved_per_day,
        saved_price_per_day=saved_price,
        payback_days=payback if payback is None or math.isfinite(payback) else None,
    )
