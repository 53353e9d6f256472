"""The command: runs schedules by their seeds, and reports every violation with what replays it.

make simulate SEEDS=0:500 KINDS=delta,iceberg2      runs schedules
make simulate SEEDS=17:18 KINDS=delta V=1           replays one with all its events
"""

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from simulation.known import ACCEPTED, KNOWN
from simulation.running import LEDGERS, Verdict, run_schedule


def main() -> int:
    """Run what is asked for; 1 where something was violated that isn't acceptable."""
    given = _asked()
    began = time.perf_counter()
    tasks = [(kind, seed) for seed in range(*given.seeds) for kind in given.kinds]
    found, bad = _Found(), 0
    for verdict in _run(tasks, verbose=given.verbose, jobs=given.jobs):
        found.add(verdict)
        bad += bool(verdict.categories - {*ACCEPTED})
        if verdict.violations or given.verbose:
            print("\n".join(_told(verdict)), flush=True)
    found.show(time.perf_counter() - began)
    return 1 if bad else 0


def _asked() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="simulation", description=__doc__.partition("\n")[0])
    options.add_argument("--seeds", type=_seeds, default=(0, 100), help="FIRST:LAST, without the last")
    options.add_argument("--kinds", type=_kinds, default=list(LEDGERS), help=f"some of {','.join(LEDGERS)}")
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    options.add_argument("-v", "--verbose", action="store_true", help="print all events")
    return options.parse_args()


def _seeds(text: str) -> tuple[int, int]:
    first, _, last = text.partition(":")
    return int(first), int(last or int(first) + 1)


def _kinds(text: str) -> list[str]:
    kinds = [kind for kind in text.split(",") if kind]
    if unknown := [kind for kind in kinds if kind not in LEDGERS]:
        raise argparse.ArgumentTypeError(f"unknown kinds {unknown}; there are {', '.join(LEDGERS)}")
    return kinds or list(LEDGERS)


def _run(tasks: Iterable[tuple[str, int]], *, verbose: bool, jobs: int) -> Iterator[Verdict]:
    if verbose:
        yield from (run_schedule(*task, verbose=True) for task in tasks)
        return
    # New processes, since threads of Arrow and deltalake don't survive a fork.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(run_schedule, *zip(*tasks, strict=True), chunksize=4)


def _told(verdict: Verdict) -> Iterator[str]:
    yield f"{verdict.kind} {verdict.seed}: {verdict.told}"
    for violation in verdict.violations:
        category = violation.partition(":")[0]
        note = " (acceptable)" if category in ACCEPTED else " (known)" if category in KNOWN else ""
        yield f"    VIOLATION{note} {violation}"
    if verdict.violations:
        yield f"    {verdict.command}"


class _Found:
    """Counts of all verdicts."""

    def __init__(self) -> None:
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._events: Counter[str] = Counter()
        self._categories: dict[str, list[str]] = defaultdict(list)

    def add(self, verdict: Verdict) -> None:
        self._outcomes[verdict.kind][verdict.outcome] += 1
        self._events[verdict.kind] += len(verdict.events)
        for category in verdict.categories:
            self._categories[category].append(f"{verdict.kind} {verdict.seed}")

    def show(self, seconds: float) -> None:
        print()
        for kind, outcomes in self._outcomes.items():
            named = ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
            print(f"{kind}: {outcomes.total()} schedules, {self._events[kind]:,} events: {named}")
        for category, seeds in sorted(self._categories.items()):
            print(f"{category}: {len(seeds)} schedules, such as {', '.join(seeds[:4])}")
        total = sum(outcomes.total() for outcomes in self._outcomes.values())
        print(f"{total} schedules, {self._events.total():,} events in {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
