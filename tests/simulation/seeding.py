"""What is random or tells the time, by a seed and a clock of the schedule: the same seed gives the same names."""

import datetime as datetimes
import itertools
import pkgutil
import random
import secrets
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib import import_module

from pyiceberg.utils.concurrent import ExecutorFactory

import zonal.cleaning
import zonal.plan
import zonal.rewriting
import zonal.storage
import zonal.study
import zonal.tables
import zonal.verbs
import zonal.worker
from simulation.events import World
from support import iceberg_rewriting


def replaced(stack: ExitStack, owner: object, name: str, value: object) -> None:
    """Give an attribute another value until the stack is left."""
    known = vars(owner)
    if name in known:
        stack.callback(setattr, owner, name, known[name])
    else:
        stack.callback(delattr, owner, name)
    setattr(owner, name, value)


_PACKAGES = (
    zonal.cleaning, zonal.plan, zonal.rewriting, zonal.storage, zonal.study, zonal.tables, zonal.verbs, zonal.worker,
)  # fmt: skip


def load_everything() -> None:
    """Import all modules that a verb might import later: what a schedule replaces must be there before it begins."""
    for package in (
        zonal.cleaning,
        zonal.plan,
        zonal.rewriting,
        zonal.storage,
        zonal.study,
        zonal.tables,
        zonal.verbs,
        zonal.worker,
    ):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


class Serial(Executor):
    """A pool without threads: calls happen one after the other, in order."""

    def __init__(self, *_, **__) -> None:
        super().__init__()

    def submit(self, function, /, *given, **named):
        """Call at once."""
        future = Future()
        try:
            future.set_result(function(*given, **named))
        except Exception as problem:
            future.set_exception(problem)
        return future

    def map(self, function, *items, timeout=None, chunksize=1):  # noqa: ARG002
        """Call in order, when a result is asked for."""
        return (function(*each) for each in zip(*items, strict=False))


@contextmanager
def seeded(world: World, seed: str) -> Iterator[None]:
    """Draw ids and names from the seed, take times from the world's clock, and run pools one call at a time."""
    load_everything()
    draw = random.Random(f"names of {seed}")  # noqa: S311
    clock = _Clock(world)
    with ExitStack() as stack:
        stack.callback(random.setstate, random.getstate())
        random.seed(f"pauses of {seed}")
        replaced(stack, uuid, "uuid4", lambda: uuid.UUID(int=draw.getrandbits(128), version=4))
        replaced(stack, secrets, "token_hex", lambda size=32: f"{draw.getrandbits(8 * size):0{2 * size}x}")
        replaced(stack, time, "time", _here(clock.now, time.time))
        replaced(stack, time, "time_ns", _here(lambda: round(clock.now() * 1000) * 1_000_000, time.time_ns))
        replaced(stack, time, "sleep", _here(clock.sleep, time.sleep))
        replaced(stack, iceberg_rewriting, "NUMBERS", itertools.count())
        replaced(stack, ExecutorFactory, "get_or_create", staticmethod(Serial))
        dates = clock.dates()
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "zonal":
                for attribute, value in list(vars(module).items()):
                    if value is ThreadPoolExecutor:
                        replaced(stack, module, attribute, Serial)
                    elif value is datetimes.datetime:
                        replaced(stack, module, attribute, dates)
        yield


def _here(simulated: Callable[..., object], real: Callable[..., object]) -> Callable[..., object]:
    """Simulate calls of this thread alone: others, such as a Spark session's, would move the world's clock."""
    me = threading.get_ident()

    def call(*arguments: object) -> object:
        return (simulated if threading.get_ident() == me else real)(*arguments)

    return call


class _Clock:
    """The world's time: a millisecond passes at each look."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> float:
        self._world.clock += 0.001
        return self._world.clock

    def sleep(self, seconds: float) -> None:
        self._world.clock += seconds

    def dates(self) -> type:
        """Return a `datetime` whose `now` is the world's; all others are datetimes of it as well."""
        real, now = datetimes.datetime, self.now

        class Same(type(real)):
            def __instancecheck__(cls, value: object) -> bool:
                return isinstance(value, real)

        class Datetime(real, metaclass=Same):
            @classmethod
            def now(cls, tz=None):
                return real.fromtimestamp(now(), tz)

        return Datetime
