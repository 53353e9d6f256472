"""What a seed draws: one to four things, and at which events they happen."""

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError
from sqlalchemy.exc import OperationalError

from simulation.delta_ledger import DeltaLedger
from simulation.events import WRITTEN, Crash, Outage, Thing, World
from simulation.ledgers import Ledger

ERRORS = [errno.EIO, errno.ENOSPC, errno.EACCES, errno.ETIMEDOUT, errno.ESTALE, errno.EROFS, errno.EDQUOT]
REFUSALS = {errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT}
"""Errors of a link that say that it wasn't made."""
STORAGE = (
    "any", "read", "list", "stat", "create", "write", "close", "mkdir", "rm", "rmdir", "open", "fsync", "link", "link",
    "link", "move",
)  # fmt: skip
CATALOG = (
    "any", "read", "create", "write", "close", "rm", "rmdir", "io.open", "io.create", "io.stat", "io.delete", "load",
    "load", "commit", "commit", "commit",
)  # fmt: skip
MOST = {
    "any": 90, "read": 20, "io.open": 30, "write": 60, "list": 6, "stat": 3, "load": 8, "commit": 3, "link": 3,
    "open": 3, "fsync": 4, "rm": 3, "rmdir": 2, "io.delete": 3, "move": 1,
}  # fmt: skip
"""How many events of a kind runs usually have; 6 where nothing is said."""
CONFLICTS = ("overwrite", "delete", "mark", "positions")
"""Acts that change files which a rewrite replaces."""
_SHARES = {
    "another writer": 36, "fault": 16, "lost answer": 13, "crash": 10, "harm": 8, "clock": 5, "recreate": 5, "busy": 4,
    "lost result": 3,
}  # fmt: skip
"""How often what happens, of a hundred."""
JUMPS = (-(10**9), -86_400, -60, 3600, 10**9)
"""Seconds by which a clock is set."""


def drawn(rng: Random, ledger: Ledger, world: World, *, catalog: bool, more: tuple[str, ...] = ()) -> list[Thing]:
    """Draw a schedule; `catalog` tells whether commits go to a catalog or to a log of files.

    Things happen at events of `more` kinds, too.
    """
    kinds = (*(CATALOG if catalog else STORAGE), *more)
    things = range(rng.choice([1, 1, 2, 2, 3, 4]))
    always = [_act(WRITTEN, 1, ledger, act) for act in ledger.MEANWHILE]
    return always + [thing for _ in things for thing in _one(rng, ledger, world, kinds, catalog=catalog)]


def _one(rng: Random, ledger: Ledger, world: World, kinds: tuple[str, ...], *, catalog: bool) -> Iterator[Thing]:
    kind = rng.choice(kinds)
    count = 1 + int(rng.random() ** 2 * MOST.get(kind, 6))
    (sort,) = rng.choices(list(_SHARES), weights=list(_SHARES.values()))
    if sort == "another writer":
        yield _act(kind, count, ledger, rng.choice(ledger.ACTS))
    elif sort == "crash":
        after = rng.random() < 0.5
        yield Thing(kind, count, f"crash {_when(after)}", error=Crash, after=after)
    elif sort == "clock":
        seconds = rng.choice(JUMPS)
        yield Thing(kind, count, f"the clock is set by {seconds} s", meanwhile=partial(_set, world, seconds))
    elif sort == "harm":
        yield _harm(rng, ledger, world)
    elif sort == "lost result":
        yield Thing(WRITTEN, rng.choice([1, 2]), "a worker's result is lost", meanwhile=world.lose_result)
    elif sort == "busy":
        first, act = rng.choice([1, 2]), rng.choice([act for act in ledger.ACTS if act in CONFLICTS])
        yield from (_act(WRITTEN, first + number, ledger, act) for number in range(8))
    elif sort == "lost answer":
        creating = "squat" in ledger.ACTS
        yield _lost_answer(rng, ledger, creating=creating) if catalog else _lost_link(rng, ledger)
    elif sort == "recreate":
        act = rng.choice([act for act in ledger.ACTS if "recreate" in act] or ["append"])
        yield _act(rng.choice(["load", "commit"] if catalog else ["open", "fsync", "link"]), 1, ledger, act)
    else:
        yield _fault(rng, kind, count)


def _act(kind: str, count: int, ledger: Ledger, act: str) -> Thing:
    return Thing(kind, count, f"another writer: {act}", meanwhile=partial(ledger.act, act))


def _when(after: bool) -> str:
    return "after the effect" if after else "before the effect"


def _set(world: World, seconds: float) -> None:
    world.clock += seconds


_FAILURES: list[Callable[[], Exception]] = [
    partial(CommitFailedException, "on purpose"),
    partial(CommitStateUnknownException, "on purpose"),
    partial(ConnectionResetError, "on purpose"),
    partial(OperationalError, "UPDATE", {}, Exception("disk I/O error")),
]
"""Of a catalog; the first one can't come from a load."""
_EXPIRED = ("append", "expire")
"""What makes a table forget the snapshot of a commit, and keep its files."""


# --- faults ----------------------------------------------------------------------------------------------------------


def _fault(rng: Random, kind: str, count: int) -> Thing:
    """Let a call fail, and perhaps some more."""
    after = rng.random() < 0.5
    if kind in ("commit", "load"):
        error = rng.choice(_FAILURES[kind == "load" :])
        calls = Outage(("load", "commit"), rng.choice([0, 0, 1, 2, 9]), partial(ConnectionResetError, "outage"))
    else:
        error = _os_error(rng.choice(ERRORS))
        calls = Outage((), rng.choice([0, 0, 1, 5, 40]), error)
    name = f"{_named(error)} {_when(after)}, and {calls.calls} calls fail then"
    return Thing(kind, count, name, error=error, after=after, outage=calls, definite=_is_definite(kind, error))


def _lost_answer(rng: Random, ledger: Ledger, *, creating: bool) -> Thing:
    """Let the catalog commit, and the client hear of a failure: its repeated request met its own commit."""
    refused = [_FAILURES[0]] * 3 + [partial(TableAlreadyExistsError, "on purpose")] * 3 * creating
    error = rng.choice([*refused, *_FAILURES[1:]])
    then, loads = rng.choice([((), 0), ((), 1), ((), 2), (("append",), 0), (_EXPIRED, 0), (_EXPIRED, 1)])
    then = then if {*then} <= {*ledger.ACTS} else ()
    outage = Outage(("load",), loads, partial(ConnectionResetError, "the catalog restarts"))
    name = f"{_named(error)} though it was committed, then {then or 'nothing'} and {outage.calls} loads fail"
    return Thing(
        "commit", rng.choice([1, 1, 2]), name, error=error, after=True, outage=outage,
        then=ledger.several(*then) if then else None, definite=_is_definite("commit", error),
    )  # fmt: skip


def _lost_link(rng: Random, ledger: Ledger) -> Thing:
    """Let a link be made, and the caller hear of a failure: a network file system repeated its request."""
    error = _os_error(rng.choice([errno.EEXIST, errno.EEXIST, errno.EIO, errno.ESTALE, errno.ETIMEDOUT]))
    then = rng.choice([None, None, None, "append", "checkpoint"])
    then = then if then in ledger.ACTS else None
    outage = Outage((), rng.choice([0, 0, 1, 2]), _os_error(errno.EIO))
    name = f"{_named(error)} though it was linked, then {then or 'nothing'} and {outage.calls} calls fail"
    return Thing(
        "link", rng.choice([1, 1, 2]), name, error=error, after=True, outage=outage,
        then=None if then is None else partial(ledger.act, then),
    )  # fmt: skip


def _os_error(number: int) -> Callable[[], Exception]:
    return partial(OSError, number, os.strerror(number))


def _named(error: partial) -> str:
    return errno.errorcode[error.args[0]] if error.func is OSError else error.func.__name__


def _is_definite(kind: str, error: partial) -> bool:
    if kind == "link":
        return error.func is OSError and error.args[0] in REFUSALS
    return error.func in (CommitFailedException, TableAlreadyExistsError)


# --- new files that don't stay as they were written ------------------------------------------------------------------


def _harm(rng: Random, ledger: Ledger, world: World) -> Thing:
    """Lose or tear a new file between its writing and its commit."""
    ways: list[Callable[[Path], None]] = [_vanish, _truncate, _zero]
    names = ["vanishes", "is cut", "becomes zeros"]
    chosen, draw = rng.randrange(len(ways) + isinstance(ledger, DeltaLedger)), rng.random()

    def harm() -> None:
        files = [path for path in world.closed[world.committed :] if os.path.exists(path)]
        if chosen == len(ways):
            ledger.vacuum(full=True)
            world.harmed |= {path for path in files if not os.path.exists(path)}
        elif files:
            path = files[int(draw * len(files))]
            world.harmed.add(path)
            ways[chosen](Path(path))

    name = f"a new file {names[chosen]}" if chosen < len(ways) else "a vacuum without retention"
    return Thing(WRITTEN, rng.choice([1, 1, 1, 2]), name, meanwhile=harm)


def _vanish(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))
