"""The verbs that write, each with what a seed draws for it and what must hold after it; a new one is a new entry."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any
from unittest import mock

import zonal.verbs.clean
from simulation.events import DROP, World
from simulation.ledgers import COLUMNS, Ledger, is_there
from support.cluster_options import grouped
from support.cluster_tables import Delta, Iceberg, Parquet, telemetry
from support.local_runner import run_here
from zonal.errors import CommitUnknownError, LayoutError, ZonalError
from zonal.rewriting.in_place import Runner
from zonal.verbs.append import append
from zonal.verbs.clean import clean
from zonal.verbs.cluster import cluster

Asked = dict[str, Any]
"""The options of a verb."""
IN_PLACE = (
    "delta", "delta-dv", "delta-carried", "delta-store", "iceberg1", "iceberg2", "iceberg3", "iceberg-carried",
)  # fmt: skip


@dataclass(frozen=True)
class Verb:
    """A verb that writes."""

    kinds: tuple[str, ...]
    """Of schedules that it is in."""
    draw: Callable[[Random, Ledger], Asked]
    run: Callable[[Ledger, Asked, Runner], Any]
    check: Callable[[Ledger, World, Asked, BaseException | None], Iterator[str]]
    """Yield what is wrong after it, beyond what holds for every table; it may run verbs, without faults."""
    committed: Callable[[Ledger, Asked], None] = lambda _, __: None
    """Tell the ledger what a commit of the verb does to the rows."""
    writes_source: bool = True
    """Whether it may write to the table itself."""
    calls: tuple[str, ...] = ()
    """Kinds of events that others don't have, and at which something may happen."""


# --- cluster in place ------------------------------------------------------------------------------------------------


def _layout(rng: Random) -> Asked:
    return {
        "by": rng.choice([["x", "y"], ["x"], ["s", "y"], ["y", "id"]]),
        "layout": rng.choice(["zorder", "hilbert", "linear"]),
        "target_file_size": rng.choice([2000, 4000, 20_000]),
    }


def _clustering(rng: Random, _: Ledger) -> Asked:
    more = {
        "where": ["id < 120", "x >= 300", "p = 'a'"],
        "full": [True],
        "commit_every": [3000, 8000, 8000, 20_000],
        "max_bytes": [20_000, 60_000],
        "verify": [True],
    }
    return _layout(rng) | {name: rng.choice(values) for name, values in more.items() if rng.random() < 0.25}


def _cluster(ledger: Ledger, asked: Asked, runner: Runner) -> Any:
    return cluster(ledger.table.name, spark=runner, **ledger.table.options, **grouped(**asked))


def _again(ledger: Ledger, world: World, asked: Asked, _: BaseException | None) -> Iterator[str]:  # noqa: ARG001
    """A second run clusters the table, and a third one finds nothing to do."""
    plain = {"layout": asked["layout"], "target_file_size": asked["target_file_size"], "by": ledger.known(asked["by"])}
    try:
        _cluster(ledger, plain, run_here)
        third = _cluster(ledger, plain, run_here)
    except Exception as problem:
        yield f"second-run: {type(problem).__name__}: {problem}"
        return
    if third.run.versions:
        yield f"third-run: there is still something to do, and versions {third.run.versions} were made"
    if wrong := ledger.wrong():
        yield f"rows: after a second run {wrong}"


# --- cluster, in another layout --------------------------------------------------------------------------------------


def _recording(rng: Random, ledger: Ledger) -> Asked:
    """Cluster the table, and ask for another layout under a bound that lets hardly any file be moved."""
    first, other = rng.sample([["x", "y"], ["s"], ["y", "id"]], 2)
    asked = {"layout": "zorder", "target_file_size": rng.choice([2000, 20_000])}
    _cluster(ledger, asked | {"by": first}, run_here)
    return asked | {"by": other, "max_amplification": 1}


def _recorded(ledger: Ledger, world: World, asked: Asked, error: BaseException | None) -> Iterator[str]:
    """After a second run at the latest, the table records the layout."""
    yield from _again(ledger, world, asked, error)
    recorded, wanted = ledger.recorded_columns()[0], ledger.known(asked["by"])
    if recorded != wanted:
        yield f"not-recorded: the table records {recorded}, and {wanted} was asked for"


# --- cluster --into --------------------------------------------------------------------------------------------------


def _copying(rng: Random, ledger: Ledger) -> Asked:
    copy = rng.choice([Delta, Parquet, Iceberg])(ledger.folder, "copy")
    ledger.copy = copy
    # A copy can't take over more than one way to partition.
    ledger.ACTS = (*(act for act in ledger.ACTS if act != "evolve"), "squat", "squat")
    return _layout(rng) | {"into": copy.name} | (copy.options or ledger.table.options)


def _copy(ledger: Ledger, asked: Asked, runner: Runner) -> Any:
    return cluster(ledger.table.name, spark=runner, **grouped(**asked))


def _whole(ledger: Ledger, world: World, asked: Asked, error: BaseException | None) -> Iterator[str]:
    """A copy is whole or not there; where it isn't, a second attempt makes it."""
    copy, squatted = ledger.copy, ledger.squatted
    if squatted is not None:
        if sorted(copy.rows()["id"].to_pylist()) != sorted(squatted["id"].to_pylist()):
            yield "copy-over-others: what another writer made there isn't as it was"
        return
    if error is not None and world.commits and ("nother writer made" in str(error) or "somebody else" in str(error)):
        yield f"untrue-other-writer: {error}"
    if not is_there(copy):
        if error is None and not world.dead:
            yield "copy-lost: the copy isn't there"
        since = len(ledger.past) - 1
        try:
            _copy(ledger, asked | {"by": ledger.known(asked["by"])}, run_here)
        except ZonalError as problem:
            yield f"copy-again{_excuse(world, error)}: {problem}"
            return
    else:
        since = 0
    try:
        wrong = ledger.wrong_copy(copy.rows(), since)
    except Exception as problem:
        wrong = f"{type(problem).__name__}: {problem}"
    if wrong:
        swept = any(path.endswith(".parquet") for path in world.removed)
        yield f"{'harmed-copied' if world.harmed else 'copy-swept' if swept else 'copy-torn'}: {wrong}"


def _excuse(world: World, error: BaseException | None) -> str:
    """Say why something may be left of a copy that isn't there."""
    if world.dead:
        return "-after-crash"
    if isinstance(error, CommitUnknownError):
        return "-after-unknown"
    return "-after-outage" if world.cleaning_failed else ""


# --- clean -----------------------------------------------------------------------------------------------------------

_HARMLESS = ("append", "delete", "overwrite", "recluster", "mark", "positions", "branch", "compact", "checkpoint")
_DELETING = {"vacuum", "recreate", "recreate_on_files"}
"""Acts that remove files of the table."""


def _cleaning(rng: Random, ledger: Ledger) -> Asked:
    """Let others replace some files, leave what a broken run leaves, and ask at a time when all that is old."""
    for _ in range(rng.choice([2, 3, 4])):
        ledger.act(rng.choice([act for act in ledger.ACTS if act in _HARMLESS]))
    parent = ledger.table.root / "data" if isinstance(ledger.table, Iceberg) else ledger.table.root
    left = parent / f"zonal-0123456789ab-20250101-000000-{rng.getrandbits(32):08x}-0"
    left.mkdir()
    (left / "left.parquet").write_bytes(b"not committed")
    (left / "left.crc").write_bytes(b"neither")
    expire = rng.choice(["0m", "7d", "7d", None])
    ahead = timedelta(days=rng.choice([1, 40, 40]), minutes=10)
    later = datetime.fromtimestamp(left.stat().st_mtime, timezone.utc) + ahead
    return {"expire": expire, "ignore_retention": True, "later": later, "there": _files_of(ledger)}


def _files_of(ledger: Ledger) -> set[str]:
    """List data files; checkpoints are removed by whoever writes to a log."""
    return {str(path) for path in ledger.table.root.rglob("*.parquet") if path.parent.name != "_delta_log"}


def _clean(ledger: Ledger, asked: Asked, _: Runner | None = None, **more: Any) -> Any:
    """Clean the table, by a clock that is some days ahead."""
    given = {name: asked[name] for name in ("expire", "ignore_retention")} if not more else {}
    with mock.patch.object(zonal.verbs.clean, "_time", return_value=asked["later"]):
        return clean(ledger.table.name, **({"yes": True} | given | more), **ledger.table.options)


def _undoable(ledger: Ledger, world: World, asked: Asked, error: BaseException | None) -> Iterator[str]:  # noqa: ARG001
    """A second run succeeds, a third one finds nothing; undone, all files are back that nobody else removed."""
    try:
        _clean(ledger, asked)
        third = _clean(ledger, asked)
        runs = sorted(path.name for path in (ledger.table.root / "_zonal_quarantine").glob("*"))
        wrong = ledger.wrong()
        for run in runs:
            _clean(ledger, asked, undo=run, yes=False)
    except Exception as problem:
        yield f"clean-again: {type(problem).__name__}: {problem}"
        return
    if third.files or third.snapshots:
        yield f"clean-third: there is still something to do: {third}"
    if wrong or (wrong := ledger.wrong()):
        yield f"rows: after a second run {wrong}"
    if not _DELETING & {*ledger.done} and (lost := asked["there"] - _files_of(ledger)):
        yield f"clean-lost: {sorted(lost)} didn't come back"


# --- append ----------------------------------------------------------------------------------------------------------


def _appending(rng: Random, ledger: Ledger) -> Asked:
    rows = telemetry(rng.choice([1, 40, 400]), rng.randrange(10**6), first=ledger.next)
    ledger.next += rows.num_rows
    return {"by": rng.choice([["x", "y"], ["s"]]), "rows": rows, "transaction": ("stream", rng.randrange(5))}


def _append(ledger: Ledger, asked: Asked, runner: Runner) -> Any:
    rows = ledger.named(asked["rows"])
    given = {"transaction": asked["transaction"], "spark": runner, **ledger.table.options}
    try:
        return append(ledger.table.name, rows, by=ledger.known(asked["by"]), **given)
    except LayoutError:  # the table records another one
        return append(ledger.table.name, rows, **given)


def _add(ledger: Ledger, asked: Asked) -> None:
    columns = (asked["rows"][name].to_pylist() for name in COLUMNS)
    ledger.rows |= {row[0]: row for row in zip(*columns, strict=True)}
    ledger.settled()


def _once(ledger: Ledger, world: World, asked: Asked, error: BaseException | None) -> Iterator[str]:  # noqa: ARG001
    """A repeated batch is in the table exactly once, whatever became of the first attempt."""
    recorded, known = ledger.recorded_columns()
    if not {*recorded} <= {*known}:
        return  # another writer dropped a key: until `cluster` records another layout, nothing can be appended
    for attempt in ("second", "third"):
        try:
            done = _append(ledger, asked, run_here)
        except Exception as problem:
            yield f"{attempt}-run: {type(problem).__name__}: {problem}"
            return
        if not done.repeated:
            _add(ledger, asked)
        if attempt == "third" and not done.repeated:
            yield "appended-twice: a batch that the table has was appended again"
        if wrong := ledger.wrong():
            yield f"rows: after a {attempt} run {wrong}"


VERBS = {
    "cluster": Verb(IN_PLACE, _clustering, _cluster, _again),
    "cluster --by": Verb(("record-delta", "record-iceberg"), _recording, _cluster, _recorded),
    "append": Verb(IN_PLACE, _appending, _append, _once, committed=_add),
    "cluster --into": Verb(("into",), _copying, _copy, _whole, writes_source=False),
    "clean": Verb(
        ("clean-delta", "clean-iceberg"), _cleaning, _clean, _undoable, calls=("rename",) * 8 + ("stat", "mkdir")
    ),
    "clean in a store": Verb(
        ("clean-delta-store", "clean-iceberg-store"),
        _cleaning,
        _clean,
        _undoable,
        calls=("copy",) * 8 + (DROP,) * 8 + ("stat",) * 4,
    ),
}
