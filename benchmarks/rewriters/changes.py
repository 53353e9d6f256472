"""Write what a stream of changes leaves: unique ids, entities that change again and again, times that come late."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 2_000_000
"""At scale 1."""
PART_ROWS = 250_000
FIRST = int(np.datetime64("2026-01-01", "us").astype(np.int64))
LENGTH = 90 * 86_400_000_000
STATES = ("active", "blocked", "closed", "new", "pending", "review")


def write(scale: float, scratch: Path) -> None:
    """Write the changes of ninety days in the order in which they arrived."""
    rng = np.random.default_rng(29)
    rows = _changes(round(ROWS * scale), rng)
    (scratch / "made").mkdir()
    for number, start in enumerate(range(0, rows.num_rows, PART_ROWS)):
        part = rows.slice(start, PART_ROWS)
        pq.write_table(part, scratch / "made" / f"part-{number:05d}.parquet", store_schema=False)


def _changes(count: int, rng: np.random.Generator) -> pa.Table:
    time = np.sort(rng.integers(FIRST, FIRST + LENGTH, count))
    entities = max(100, count // 12)
    # Most changes are of few entities, and an entity is more likely to be an old one.
    entity = (entities * rng.beta(0.45, 1.0, count)).astype(np.int64)
    entity = np.random.default_rng(31).permutation(entities)[entity].astype(np.int64) + 1_000_000
    order = np.lexsort((time, entity))
    version = np.empty(count, np.int32)
    firsts = np.append(0, np.flatnonzero(np.diff(entity[order])) + 1)
    version[order] = np.arange(count) - np.repeat(firsts, np.diff(np.append(firsts, count)))
    kind = np.where(version == 0, 0, np.where(rng.random(count) < 0.03, 2, 1))
    late = np.where(rng.random(count) < 0.05, rng.exponential(6 * 3600e6, count), rng.exponential(20e6, count))
    # As in ids that systems hand out: milliseconds, then a number that makes them unique.
    unique = (time // 1000 << 20) + np.arange(count) % 2**20
    table = pa.table(
        {
            "change_id": unique,
            "entity_id": entity,
            "event_time": pa.array(time).cast(pa.timestamp("us", "UTC")),
            "operation": pa.array(["insert", "update", "delete"]).take(pa.array(kind)),
            "version": version,
            "state": pa.array(STATES).take(pa.array(rng.zipf(1.6, count) % len(STATES))),
            "amount": np.round(np.exp(rng.normal(7, 1.5, count))).astype(np.int64),
            "trace": pa.array(rng.integers(2**40, 2**63, count)).cast(pa.string()),
            "note": pa.array(rng.integers(0, 20_000, count)).cast(pa.string()),
        }
    )
    return table.take(np.argsort(time + late, kind="stable"))
