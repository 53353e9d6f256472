"""Processes that do the same thing at once."""

import multiprocessing
from collections.abc import Callable
from typing import Any

MANY = 3


def run_at_once(work: Callable[..., None], database: str) -> None:
    """Run `work(database, ready, number)` in several new processes, which wait for each other at `ready`."""
    spawning: Any = multiprocessing.get_context("spawn")
    ready = spawning.Barrier(MANY)
    others = [spawning.Process(target=work, args=(database, ready, number)) for number in range(MANY)]
    for each in others:
        each.start()
    for each in others:
        each.join(180)
    assert [each.exitcode for each in others] == [0] * MANY
