"""The demonstration's own data: a month of telemetry as a ground station receives it, and what people ask of it."""

import numpy as np
import pyarrow as pa

KEYS = ("ts", "payload_id")
MISSIONS, PAYLOADS = 40, 200_000

CONDITIONS = (
    "payload_id = 4711",
    "mission_id = 3 AND date(ts) = '2026-01-12'",
    "ts BETWEEN '2026-01-12 06:00' AND '2026-01-12 07:00'",
)
"""One payload over the month, one mission's payloads on one day, and one hour of everything."""

_SENSORS = tuple(
    f"{what}-{place}"
    for what in ("current", "flux", "gyro", "humidity", "magnet", "pressure", "temperature", "tilt", "voltage")
    for place in ("bus", "left", "mast", "right")
)


def payloads(rng: np.random.Generator, count: int) -> "np.typing.NDArray[np.int64]":
    """Draw ids of payloads: those with low numbers send, and are queried, more often."""
    return (PAYLOADS * rng.beta(0.7, 2.5, count)).astype(np.int64)


def telemetry(rows: int, seed: int = 7) -> pa.Table:
    """Make rows as payloads send them: nearly in order of time, a few late, ids of payloads and missions skewed.

    Ids of payloads were given to missions in blocks, so a mission's are next to each other.

    >>> telemetry(1000).column_names
    ['ts', 'mission_id', 'payload_id', 'sensor', 'value', 'status', 'battery', 'trace_id']
    """
    rng = np.random.default_rng(seed)
    start = np.datetime64("2026-01-01", "us").astype(np.int64)
    late = np.where(rng.random(rows) < 0.03, rng.exponential(6 * 3600e6, rows), rng.exponential(20e6, rows))
    ts = start + np.linspace(0, 30 * 86400e6, rows).astype(np.int64) - late.astype(np.int64)
    payload = payloads(rng, rows)
    sensor = pa.DictionaryArray.from_arrays(rng.integers(0, len(_SENSORS), rows, np.int8), pa.array(_SENSORS))
    hexadecimal = np.frombuffer(b"0123456789abcdef", np.uint8)[rng.integers(0, 16, (rows, 16), np.uint8)]
    offsets = np.arange(0, 16 * rows + 1, 16, dtype=np.int32)
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "mission_id": (payload // (PAYLOADS // MISSIONS)).astype(np.int32),
            "payload_id": payload,
            "sensor": sensor.cast(pa.string()),
            "value": np.round(rng.gamma(2.0, 15.0, rows), 2),
            "status": rng.choice(np.array([0, 1, 2, 16, 32], np.int32), rows, p=[0.9, 0.05, 0.02, 0.02, 0.01]),
            "battery": pa.array(rng.integers(0, 101, rows, np.int32), mask=rng.random(rows) < 0.1),
            "trace_id": pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(hexadecimal)),
        }
    )
