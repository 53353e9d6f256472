"""What must hold after every schedule; a violation is a text that begins with its category."""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path

from simulation.events import Event, World
from simulation.ledgers import Ledger
from simulation.verbs import Asked, Verb
from zonal.errors import CommitUnknownError, ZonalError

_NOTHING = re.compile(r"nothing (was|is|has been) (committed|written)|(table|it) is as it was", re.IGNORECASE)
_COUNTED = re.compile(
    r"(\d[\d,]*|no|one) commits?\b[^.:;]{0,40}?\b(?:(?:is|are|was|were) (?:done|made)|succeeded)", re.IGNORECASE
)
_FORGETTING = {"recreate", "recreate_on_files", "expire", "clean_log"}
"""Acts after which the table doesn't know any more what it had."""
_MIXED = ("rows", "missing-file", "wrong-size", "unreadable")


def violations(verb: Verb, ledger: Ledger, world: World, asked: Asked, error: BaseException | None) -> Iterator[str]:
    """Yield all that is wrong; what follows from what is wrong already isn't looked at."""
    yield from told(world, error)
    yield from own(verb, ledger, world)
    broken = [*table(ledger, world)]
    yield from broken
    if not broken and world.strange is None:
        yield from leftovers(verb, ledger, world, error)
        yield from verb.check(ledger, world, asked, error)


# --- what was said ---------------------------------------------------------------------------------------------------


def told(world: World, error: BaseException | None) -> Iterator[str]:
    """An error is one of zonal's own, and says what is true."""
    if error is None:
        return
    text, done = str(error), len(world.commits)
    if not isinstance(error, ZonalError):
        yield f"raw-{_kind(error)}-in-{_module(error)}: {type(error).__name__}: {text[:200]}"
        return
    counted = _COUNTED.search(text)
    if counted:
        number = {"no": 0, "one": 1}[counted[1].lower()] if counted[1].isalpha() else int(counted[1].replace(",", ""))
        allowed = {done, done - 1} if isinstance(error, CommitUnknownError) else {done}
        if number not in allowed:
            yield f"untrue-count: {done} commits are in the table, and the message is {text!r}"
    elif _NOTHING.search(text) and done:
        yield f"untrue-nothing: {done} commits are in the table, and the message is {text!r}"
    if "hard links" in text:
        yield f"untrue-hint: no schedule is on a file system without hard links, and the message is {text!r}"
    if isinstance(error, CommitUnknownError) and not _is_unknowable(world):
        yield f"groundless-unknown: {text}"


def _is_unknowable(world: World) -> bool:
    """Tell whether a request was sent, and its answer or the look for its effect may have been lost."""
    if not world.requests:
        return False
    if any("recreate" in thing.name for _, thing in world.fired):
        return True  # what was to be linked may be gone with the table
    first = min(world.requests)
    if any(number >= first for number in world.refused):
        return True
    return any(
        number > first or (number == first and not thing.definite) or thing.then is not None
        for number, thing in world.faults
        if number >= first
    )


def _kind(error: BaseException) -> str:
    return "OSError" if isinstance(error, OSError) else type(error).__name__


def _module(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/zonal/" in frame.filename]
    return Path(frames[-1].filename).stem if frames else "nowhere"


# --- what was done to files ------------------------------------------------------------------------------------------


def own(verb: Verb, ledger: Ledger, world: World) -> Iterator[str]:
    """The verb wrote where it may, and removed nothing but its own."""
    root = f"{ledger.table.root}/"
    for path in sorted({*world.created}):
        inside = path.startswith(root) if verb.writes_source else not path.startswith(root)
        if not path.startswith(world.folder) or not inside:
            yield f"wrote-outside: {world.relative(path)}"
    # What is in quarantine may go: `clean` proves that it comes back, or that nobody needs it.
    for path in sorted(path for path in {*world.removed} - {*world.created} if "/_zonal_quarantine/" not in path):
        yield f"removed-foreign: {world.relative(path)}"


def table(ledger: Ledger, world: World) -> Iterator[str]:
    """The table has its files, and the ledger's rows."""
    found = [*_files(ledger, world)]
    if not found:
        try:
            wrong = ledger.wrong()
            found = [f"rows: {wrong}"] if wrong and world.strange is None else []
        except Exception as problem:
            found = [f"unreadable: {type(problem).__name__}: {problem}"]
    yield from (_recreated(text, world) for text in found)


def _recreated(text: str, world: World) -> str:
    """Say where a commit to a Delta table that was dropped and made anew explains what is wrong."""
    made = [number for number, thing in world.fired if "recreate" in thing.name]
    links = [number for number in world.commits if world.events[number - 1].kind == "link"]
    if not made or max([0, *links]) < min(made) or not text.startswith(_MIXED):
        return text
    return f"{'recreated-window' if _is_in_window(world, made, links) else 'recreated-mixed'}: {text}"


def _files(ledger: Ledger, world: World) -> Iterator[str]:
    try:
        needed, live = ledger.needed(), ledger.live()
    except Exception as problem:
        swept = [path for path in world.removed if path.endswith(".avro")]
        what = "removed-live" if swept and isinstance(problem, FileNotFoundError) else "unreadable"
        yield f"{what}: {type(problem).__name__}: {problem}"
        return
    for path in sorted(needed):
        there = Path(path)
        if path in world.harmed:
            yield f"harmed-committed: {world.relative(path)}"
        elif not there.exists():
            what = "removed-live" if path in world.removed else "missing-file"
            yield f"{what}: {world.relative(path)}"
        elif path in live and there.stat().st_size != live[path]:
            size = there.stat().st_size
            yield f"wrong-size: {world.relative(path)} has {size} bytes instead of {live[path]}"


def _is_in_window(world: World, made: list[int], links: list[int]) -> bool:
    """Tell whether a Delta table was made anew between the last look at its log and the link of a commit.

    The number of a version is all that a writer can ask for, so that no Delta writer can close this window.
    """
    return any(
        number <= link and not any(_looks(event, world.events[link - 1]) for event in world.events[number - 1 : link])
        for number in made
        for link in links
    )


def _looks(event: Event, link: Event) -> bool:
    return event.kind in ("list", "read", "stat") and "_delta_log" in event.path and event.path != link.path


def leftovers(verb: Verb, ledger: Ledger, world: World, error: BaseException | None) -> Iterator[str]:
    """Files of the run that no version has are there only where a crash, an unknown commit or a fault explains it."""
    excused = world.dead or isinstance(error, CommitUnknownError) or world.cleaning_failed
    if excused or (verb.writes_source and _FORGETTING & {*ledger.done}):
        return
    known = ledger.ever() if verb.writes_source else ledger.copied()
    for path in sorted({*world.created}):
        if path.endswith((".parquet", ".tmp", ".avro")) and path not in known and Path(path).exists():
            yield f"leftover{'' if verb.writes_source else '-of-copy'}: {world.relative(path)}"
