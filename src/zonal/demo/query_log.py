"""The log of queries that the demonstration writes: what the people at a ground station ask in a day, as SQL."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zonal.demo.telemetry import CONDITIONS, MISSIONS, PAYLOADS, payloads

NAME = "telemetry"
"""The table's name in the log."""


@dataclass(frozen=True)
class QueryKind:
    """Queries of one kind: a text for all of them, and the condition and the statement of each."""

    text: str
    conditions: tuple[str, ...]
    statements: tuple[str, ...]


def kinds(seed: int = 11) -> tuple[QueryKind, ...]:
    """Make the queries, the same ones every time; the first of each kind is one of `CONDITIONS`, where there is one.

    >>> [len(kind.statements) for kind in kinds()]
    [45, 30, 20, 15]
    """
    rng = np.random.default_rng(seed)
    return (
        _kind(
            "payload_id = ?",
            "SELECT ts, sensor, value FROM {name} WHERE {condition} ORDER BY ts",
            [CONDITIONS[0], *_made(44, lambda: f"payload_id = {_payload(rng)}")],
        ),
        _kind(
            "mission_id = ? AND date(ts) = ?",
            "SELECT * FROM {name} WHERE {condition}",
            [CONDITIONS[1], *_made(29, lambda: f"mission_id = {_mission(rng)} AND date(ts) = '{_day(rng)}'")],
        ),
        _kind(
            "one hour of ts",
            "SELECT sensor, avg(value) FROM {name} WHERE {condition} GROUP BY sensor",
            [CONDITIONS[2], *_made(19, lambda: _hour(rng))],
        ),
        _kind(
            "1,000 payload_ids in a week",
            "SELECT payload_id, max(value) FROM {name} WHERE {condition} GROUP BY payload_id",
            _made(15, lambda: _block(rng)),
        ),
    )


def log_text(kinds: tuple[QueryKind, ...], seed: int = 11) -> str:
    """Write the statements as a file of SQL, in random order."""
    statements = [statement for kind in kinds for statement in kind.statements]
    order = np.random.default_rng(seed).permutation(len(statements))
    return "".join(f"{statements[place]};\n" for place in order)


def _kind(text: str, statement: str, conditions: list[str]) -> QueryKind:
    written = tuple(statement.format(name=NAME, condition=condition) for condition in conditions)
    return QueryKind(text, tuple(conditions), written)


def _made(count: int, condition: Callable[[], str]) -> list[str]:
    return [condition() for _ in range(count)]


def _payload(rng: np.random.Generator) -> int:
    return int(payloads(rng, 1)[0])


def _mission(rng: np.random.Generator) -> int:
    return _payload(rng) // (PAYLOADS // MISSIONS)


def _day(rng: np.random.Generator) -> str:
    return f"2026-01-{rng.integers(1, 31):02}"


def _hour(rng: np.random.Generator) -> str:
    day, hour = _day(rng), int(rng.integers(0, 23))
    return f"ts BETWEEN '{day} {hour:02}:00' AND '{day} {hour + 1:02}:00'"


def _block(rng: np.random.Generator) -> str:
    first, day = _payload(rng), int(rng.integers(1, 24))
    return f"payload_id BETWEEN {first} AND {first + 999} AND ts >= '2026-01-{day:02}' AND ts < '2026-01-{day + 7:02}'"
