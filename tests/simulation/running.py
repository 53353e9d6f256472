"""One schedule from its seed to its verdict."""

import gc
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from simulation.checks import violations
from simulation.delta_ledger import DeltaLedger, MarkedLedger, VectorLedger
from simulation.disk import heard
from simulation.events import WRITTEN, Crash, Event, Thing, World
from simulation.iceberg_ledger import Iceberg1, Iceberg3, IcebergLedger, PositionedLedger
from simulation.ledgers import Ledger
from simulation.schedules import drawn
from simulation.seeding import seeded
from simulation.store import stored
from simulation.verbs import VERBS, Asked, Verb
from support.local_runner import run_here

LEDGERS: dict[str, tuple[type[Ledger], ...]] = {
    "delta": (DeltaLedger,),
    "delta-dv": (VectorLedger,),
    "delta-carried": (MarkedLedger,),
    "delta-store": (DeltaLedger,),
    "iceberg1": (Iceberg1,),
    "iceberg2": (IcebergLedger,),
    "iceberg3": (Iceberg3,),
    "iceberg-carried": (PositionedLedger,),
    "record-delta": (DeltaLedger, VectorLedger),
    "record-iceberg": (Iceberg1, IcebergLedger, Iceberg3),
    "into": (DeltaLedger, IcebergLedger),
    "clean-delta": (DeltaLedger, VectorLedger),
    "clean-iceberg": (Iceberg1, IcebergLedger, Iceberg3),
    "clean-delta-store": (DeltaLedger, VectorLedger),
    "clean-iceberg-store": (Iceberg1, IcebergLedger, Iceberg3),
}
"""Kinds of schedules, and the tables of each."""
STORED = ("delta-store", "clean-delta-store", "clean-iceberg-store")
"""Kinds whose commits and quarantines go to an object store."""


@dataclass(frozen=True)
class Verdict:
    """What came of a schedule."""

    kind: str
    seed: int
    outcome: str
    """`done`, `crash`, the name of the error, or `skipped` where another writer couldn't do its part."""
    violations: tuple[str, ...]
    """Each begins with its category."""
    told: str
    """What was asked for, what happened, and how it ended."""
    events: tuple[Event, ...]

    @property
    def categories(self) -> set[str]:
        return {violation.partition(":")[0] for violation in self.violations}

    @property
    def command(self) -> str:
        """What replays the schedule with all its events."""
        return f"make simulate KINDS={self.kind} SEEDS={self.seed}:{self.seed + 1} V=1"


Drawing = Callable[[Random, Ledger, World], list[Thing]]


def run_schedule(kind: str, seed: int, *, verbose: bool = False, things: Drawing | None = None) -> Verdict:
    """Run a schedule in a folder of its own, which is gone afterwards; `things` happen instead of what is drawn."""
    folder = Path(tempfile.mkdtemp(prefix="zonal-simulation-")).resolve()
    world = World(folder, verbose=verbose)
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None  # what a dead process had open can't be closed well
    try:
        with seeded(world, f"{kind}-{seed}"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _run(kind, seed, folder, world, things)
    finally:
        gc.collect()
        sys.unraisablehook = hook
        shutil.rmtree(folder, ignore_errors=True)


def _run(kind: str, seed: int, folder: Path, world: World, things: Drawing | None) -> Verdict:
    rng = Random(f"{kind}-{seed}")  # noqa: S311
    ledger = rng.choice(LEDGERS[kind])(Random(f"rows of {kind}-{seed}"), folder).make()  # noqa: S311
    verb = VERBS[rng.choice([name for name, verb in VERBS.items() if kind in verb.kinds])]
    asked = verb.draw(rng, ledger)
    for _ in range(rng.choice([0, 0, 1, 2])):
        ledger.act(rng.choice([act for act in ledger.ACTS if act not in ledger.UNSETTLING and act != "squat"]))
    before = len(ledger.done)
    ledger.past = ledger.past[-1:]
    catalog = (asked.get("into") or ledger.table.name).startswith("iceberg:")
    world.things = (things or partial(drawn, catalog=catalog, more=verb.calls))(rng, ledger, world)
    stale: list[str] = []
    world.on_commit = lambda: (verb.committed(ledger, asked), stale.extend(_stale(verb, ledger)))
    with stored(world) if kind in STORED else nullcontext():
        error = _perform(verb, ledger, asked, world)
        found = [*dict.fromkeys(stale), *violations(verb, ledger, world, asked, error)]
    found = [text.replace(str(folder), "") for text in found]
    outcome = "crash" if world.dead else type(error).__name__ if error is not None else "done"
    outcome = "skipped" if world.strange is not None and not found else outcome
    shown = {name: value for name, value in asked.items() if name not in ("storage_options", "there", "later")}
    told = f"{shown}; {[(number, thing.name) for number, thing in world.fired]}; others: {ledger.done[:before]} before"
    told += f" -> {outcome} {str(error or '')[:300]}{world.strange or ''}"
    return Verdict(kind, seed, outcome, tuple(found), told.replace(str(folder), ""), tuple(world.events))


def _perform(verb: Verb, ledger: Ledger, asked: Asked, world: World) -> BaseException | None:
    def runner(*given):
        tallies, written = run_here(*given)
        world.event(WRITTEN, "", lambda: None)
        lost, world.losing = world.losing, False
        return tallies, written[1:] if lost else written

    with heard(world), _listening(world):
        try:
            verb.run(ledger, asked, runner)
        except Crash:
            return None
        except Exception as problem:
            return problem
    return None


@contextmanager
def _listening(world: World) -> Iterator[None]:
    world.listening = True
    try:
        yield
    finally:
        world.listening = False


def _stale(verb: Verb, ledger: Ledger) -> Iterator[str]:
    """A commit records a layout of columns that the table has at this moment."""
    if not verb.writes_source:
        return
    try:
        recorded, known = ledger.recorded_columns()
    except Exception:  # a table that is broken is found to be so afterwards
        return
    if gone := [name for name in recorded if name not in known]:
        yield f"stale-layout: a commit recorded {recorded}, and the table has no {gone}"
