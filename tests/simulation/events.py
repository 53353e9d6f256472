"""The world that hears every call of a verb to the outside, and lets the things of a schedule happen there."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REQUESTS = ("link", "commit", "move")
"""Events that ask for a commit, or make a folder of Parquet files appear."""
REMOVALS = ("rm", "rmdir", "io.delete")
DROP = "drop"
"""The deletion of an object that has a copy in quarantine."""
WRITTEN = "written"
"""The moment between writing and commit, which no storage hears of."""
START = 1_767_225_600.0
"""When every schedule begins: 2026-01-01, so that names of runs are the same each time."""


class Crash(BaseException):
    """The process died here; nothing that it calls afterwards has an effect."""


@dataclass(frozen=True)
class Outage:
    """Calls that fail, too, after a first one did."""

    kinds: tuple[str, ...]
    """Empty for all."""
    calls: int
    error: Callable[[], Exception]


@dataclass(frozen=True)
class Thing:
    """What happens at an event: others do something, or the call fails, or the process dies."""

    kind: str
    """Of the event, `any` for all."""
    count: int
    """At which event of the kind, from 1 on."""
    name: str
    """For people."""
    meanwhile: Callable[[], object] | None = None
    """What others do before the call."""
    error: Callable[[], BaseException] | None = None
    """How the call fails."""
    after: bool = False
    """The call fails after it took effect: its answer is lost …"""
    then: Callable[[], object] | None = None
    """… and others do something before the caller hears of it."""
    outage: Outage | None = None
    definite: bool = False
    """By the error the caller knows that nothing happened, whether or not that is true."""


@dataclass(frozen=True)
class Event:
    """A call, by its kind and the path that it is about, from the schedule's folder on."""

    number: int
    kind: str
    path: str


class World:
    """Hears every call while a verb runs, and keeps what came of it."""

    def __init__(self, folder: Path, *, verbose: bool = False) -> None:
        self.folder, self.verbose = str(folder), verbose
        self.things: list[Thing] = []
        self.listening = self.dead = False
        self.clock = START
        self.events: list[Event] = []
        self.created: list[str] = []
        """Paths that were to be written, also where that failed."""
        self.closed: list[str] = []
        """Data files that are written …"""
        self.committed = 0
        """… and how many of them were when a commit last had its effect."""
        self.removed: list[str] = []
        self.harmed: set[str] = set()
        """New files that were lost or torn before their commit."""
        self.losing = False
        """Whether the next result of a worker is lost."""
        self.requests: list[int] = []
        """Numbers of the events that asked for a commit …"""
        self.commits: list[int] = []
        """… and of those that had their effect."""
        self.fired: list[tuple[int, Thing]] = []
        self.refused: list[int] = []
        """Events that failed because of an outage."""
        self.strange: str | None = None
        """What another writer couldn't do."""
        self.on_commit: Callable[[], object] = lambda: None
        self._seen: Counter[str] = Counter()
        self._outage: Outage | None = None
        self._left = 0

    # --- events ---

    def event(self, kind: str, path: str, call: Callable[[], Any], *, nested: bool = False) -> Any:
        """Run a call with what the schedule has for it; calls that it makes itself are events where it is `nested`."""
        if not self.listening:
            return call()
        if self.dead:
            raise Crash
        number = self._heard(kind, path)
        fault = self._fault(kind)
        if kind in REQUESTS:
            self.requests.append(number)
        if fault is None:
            return self._perform(number, kind, call, nested)
        if fault.after:
            self._perform(number, kind, call, nested)
            if fault.then is not None:
                self._let(fault, fault.then)
        problem = fault.error()
        self.dead = isinstance(problem, Crash)
        if fault.outage is not None:
            self._outage, self._left = fault.outage, fault.outage.calls
        raise problem

    def _heard(self, kind: str, path: str) -> int:
        number = len(self.events) + 1
        self.events.append(Event(number, kind, self.relative(path)))
        self._seen.update([kind] if kind == WRITTEN else [kind, "any"])
        if self.verbose:
            print(f"  {number:4} {kind:10} {self.relative(path)}")
        if self._left and (not self._outage.kinds or kind in self._outage.kinds) and kind != WRITTEN:
            self._left -= 1
            self.refused.append(number)
            if kind in REQUESTS:
                self.requests.append(number)
            self._tell(f"outage, {self._left} calls are left")
            raise self._outage.error()
        return number

    def _fault(self, kind: str) -> Thing | None:
        """Let others do what is due, and return how the call fails, if it does."""
        fault = None
        for thing in list(self.things):
            due = self._seen[thing.kind] == thing.count and (thing.kind == kind or kind != WRITTEN)
            if thing.kind not in (kind, "any") or not due:
                continue
            self.things.remove(thing)
            self.fired.append((len(self.events), thing))
            self._tell(thing.name)
            if thing.meanwhile is not None:
                self._let(thing, thing.meanwhile)
            if thing.error is not None:
                fault = thing
        return fault

    def _let(self, thing: Thing, do: Callable[[], object]) -> None:
        """Let others do something; where they can't, the schedule has no verdict."""
        self.listening = False
        try:
            do()
        except Exception as problem:
            self.strange = f"{thing.name}: {problem!r}"[:300]
        finally:
            self.listening = True

    def _perform(self, number: int, kind: str, call: Callable[[], Any], nested: bool) -> Any:
        self.listening = nested
        try:
            result = call()
        finally:
            self.listening = True
        if kind in REQUESTS:
            self.commits.append(number)
            self.committed = len(self.closed)
            self.listening = False
            try:
                self.on_commit()
            finally:
                self.listening = True
        return result

    def lose_result(self) -> None:
        """Lose the result of a worker that is on its way."""
        self.losing = True

    def _tell(self, what: str) -> None:
        if self.verbose:
            print(f"       >>> {what}")

    # --- what is asked afterwards ---

    def relative(self, path: str) -> str:
        """Return a path from the schedule's folder on."""
        return local(path).replace(self.folder, "", 1).lstrip("/")

    @property
    def faults(self) -> list[tuple[int, Thing]]:
        """What failed, without what others did."""
        return [(number, thing) for number, thing in self.fired if thing.error is not None]

    @property
    def cleaning_failed(self) -> bool:
        """Whether a run couldn't remove what it wrote, or couldn't be told whether a table has it."""
        asked = min(self.requests, default=len(self.events) + 1)
        failed = [self.events[number - 1] for number in {*self.refused, *(number for number, _ in self.faults)}]
        looked = [event for event in failed if event.kind in ("list", "stat") and "zonal-" in event.path]
        return bool(looked) or any(event.kind in (*REMOVALS, DROP) or event.number >= asked for event in failed)

    def going(self, path: str) -> list[str]:
        """Return the files that go when a file or folder does."""
        path = local(path)
        if os.path.isdir(path):
            return [str(file) for file in Path(path).rglob("*") if file.is_file()]
        return [path]


def local(path: object) -> str:
    """Return a location as a local path."""
    return str(path).removeprefix("file://")
