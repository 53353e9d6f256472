"""The schedules that run with the other tests: some seeds of every kind, half a minute in all."""

import pytest

from simulation.known import counts
from simulation.running import run_schedule

SEEDS = range(16)


def schedules(*kinds):
    """Parametrize a test by all default schedules of some kinds."""
    cases = [pytest.param(kind, seed, id=f"{kind}-{seed}") for kind in kinds for seed in SEEDS]
    return pytest.mark.parametrize(("kind", "seed"), cases)


def hold(kind, seed):
    """Run a schedule, and fail with what was violated and the command that replays it."""
    verdict = run_schedule(kind, seed)
    wrong = [violation for violation in verdict.violations if counts(violation)]
    assert not wrong, "\n".join([*wrong, verdict.told, verdict.command])
    assert verdict.outcome != "skipped", f"another writer couldn't do its part: {verdict.told}"
