"""`clean`: what no version of a table needs goes to a quarantine, comes back from it, or is deleted."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from os import PathLike
from typing import Literal

from zonal.arguments import check_arguments
from zonal.cleaning.enclosure import spellings
from zonal.cleaning.quarantine import Held, Moved, Quarantine
from zonal.cleaning.retention import SAFE_AGE, Retention
from zonal.cleaning.spares import Spare, Total, totals
from zonal.display import Shown
from zonal.errors import TableError, ZonalError, option, quoted
from zonal.plan.run import new_run
from zonal.tables.protocol import Cleanable, Table, is_cleanable, is_expirable, is_versioned
from zonal.tables.registry import table_of
from zonal.values.durations import duration_name
from zonal.values.progress import Progress, Step, only_notices


@dataclass(frozen=True)
class Cleaning(Shown):
    """What `clean` did, or would do."""

    table: str
    action: Literal["plan", "clean", "undo", "purge"]
    """`plan`: nothing was changed."""
    run: str | None
    """The clean-up that the files are in quarantine under, or were."""
    files: tuple[Spare, ...]
    snapshots: tuple[int, ...] = ()
    """Snapshots that were removed from the table's metadata, or would be."""
    notes: tuple[str, ...] = ()
    """What is left, and why."""

    @property
    def bytes(self) -> int:
        """Return the size of all files."""
        return sum(file.size for file in self.files)

    @property
    def totals(self) -> tuple[Total, ...]:
        """Return files and bytes by their reason."""
        return totals(self.files)


def clean(
    table: "Table | str | PathLike[str]",
    *,
    expire: str | None = None,
    yes: bool = False,
    undo: str | None = None,
    purge: bool = False,
    older_than: str = SAFE_AGE,
    ignore_retention: bool = False,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Cleaning:
    """Find files that no version of a table needs, and with `yes` move them to a quarantine in its folder.

    Without `expire` these are leftovers of broken runs of zonal, and files of snapshots that have expired already.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        expire: also older versions and what only they need: `7d` keeps every moment of the last seven days readable.
        yes: do it; without, nothing is changed.
        undo: a run whose files are brought back from the quarantine.
        purge: delete quarantined files for good, with `yes`.
        older_than: the age of leftovers, or of the quarantine that is deleted.
        ignore_retention: let versions expire that the table's own properties promise to keep, and allow ages at which
            a job may still be running.
        catalog: of an Iceberg table.
        storage_options: of the storage, or of the catalog.
        progress: hears each step.

    Example:
        >>> plan = zonal.clean("events", expire="7d")
        >>> plan.action, len(plan.files)
        ('plan', 0)
    """
    check_arguments(clean, locals())
    source = _cleanable(table_of(table, catalog=catalog, storage_options=storage_options))
    report = progress or only_notices
    _refuse_contradiction(expire=expire, undo=undo, purge=purge)
    retention = Retention.of(_time(), expire=expire, older_than=older_than, ignore_retention=ignore_retention)
    if undo is not None:
        with _interruptible("Some files may be back already: run it again to go on."):
            return _undone(source, undo)
    if purge and yes:
        with _interruptible("Some files may be deleted already: run it again to go on."):
            return _purged(source, retention, report)
    if purge:
        return _to_purge(source, retention)
    if yes:
        return _cleaned(source, retention, report)
    report(Step("looking for files that nobody needs"))
    found = source.spare(retention)
    return Cleaning(source.name, "plan", None, found.files, found.expiring, found.notes)


def _cleanable(table: Table) -> Cleanable:
    if not is_cleanable(table):
        raise TableError(f"{quoted(table.name, limit=300)} can't be cleaned.")
    if is_versioned(table) and table.pinned:
        raise TableError(
            f"{quoted(table.name, limit=300)} is named with a version. Leave it out: files are cleaned of all versions."
        )
    return table


def _refuse_contradiction(*, expire: str | None, undo: str | None, purge: bool) -> None:
    given = [
        option(name)
        for name, value in (("expire", expire), ("undo", undo), ("purge", purge))
        if value not in (None, False)
    ]
    if len(given) > 1:
        raise ZonalError(f"{' and '.join(given)} are different things: ask for one at a time.")


def _time(shown: datetime | None = None) -> datetime:
    """Return the time by this machine's clock, or by the storage's, where that is behind."""
    now = datetime.now(timezone.utc)
    return now if shown is None else min(now, shown)


# --- into the quarantine ---------------------------------------------------------------------------------------------


def _cleaned(source: Cleanable, asked: Retention, report: Progress) -> Cleaning:
    """Expire what has to be, then move files, then see whether somebody needs one after all."""
    quarantine = Quarantine(source.place())
    run = new_run()
    retention = replace(asked, now=_time(quarantine.open(run)))
    try:
        report(Step("looking for files that nobody needs"))
        with _interruptible("Snapshots may have expired, and no file was moved: run it again."):
            snapshots, retention = _expired(source, retention)
            found = source.spare(retention)
        back = option("undo", run)
        with _interruptible(f"Files that were moved before are in quarantine: {back} brings them back."):
            moved = quarantine.put(run, found.files, report) if found.files else None
    except BaseException:
        quarantine.close(run)
        raise
    if moved is None:
        quarantine.close(run)
        return Cleaning(source.name, "clean", None, (), snapshots, found.notes)
    taken = _back_again(source, quarantine, run, moved, retention)
    kept = {file.path for file in taken.files}
    files = tuple(file for file in moved.files if file.path not in kept)
    return Cleaning(source.name, "clean", run, files, snapshots, (*found.notes, *moved.notes, *taken.notes))


def _expired(source: Cleanable, retention: Retention) -> tuple[tuple[int, ...], Retention]:
    """Remove expired snapshots where a table has some; nothing else of its metadata may count as expired afterwards."""
    if not is_expirable(source):
        return (), retention
    return source.expire(retention), replace(retention, expire=None)


def _back_again(source: Cleanable, quarantine: Quarantine, run: str, moved: Moved, retention: Retention) -> Moved:
    """Bring back what another writer has taken up while files were moved, as a restore to an older version does."""
    try:
        needed = source.needed(retention)
        root = source.place().root
        taken = {file.path for file in moved.files if not needed.isdisjoint(spellings(f"{root}/{file.path}"))}
        if not taken:
            return Moved(())
        back = quarantine.bring_back(run, taken)
    except ZonalError as error:
        note = (
            f"Whether another writer took up some of the files can't be seen ({error}): look, and undo run {run} if so."
        )
        return Moved((), (note,))
    note = f"{len(taken):,} files were brought back: another writer took them up while they were moved."
    return Moved(back.files, (note, *back.notes))


@contextmanager
def _interruptible(stays: str) -> Iterator[None]:
    """Let an interrupt say what stays."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(stays) from None


# --- out of it -------------------------------------------------------------------------------------------------------


def _undone(source: Cleanable, run: str) -> Cleaning:
    back = Quarantine(source.place()).bring_back(run)
    notes = back.notes
    if is_expirable(source) and any("expired" in file.reason for file in back.files):
        notes = (*notes, "Expired snapshots stay expired: the older metadata files of the table still list them.")
    return Cleaning(source.name, "undo", run, back.files, notes=notes)


def _to_purge(source: Cleanable, retention: Retention) -> Cleaning:
    old, notes = _old_runs(source, Quarantine(source.place()), retention)
    files = tuple(file for held in old if not held.is_undone for file in held.files)
    return Cleaning(source.name, "plan", None, files, notes=notes)


def _purged(source: Cleanable, retention: Retention, report: Progress) -> Cleaning:
    quarantine = Quarantine(source.place())
    old, notes = _old_runs(source, quarantine, retention)
    gone = [file for held in old for file in quarantine.delete(held, report).files]
    return Cleaning(source.name, "purge", None, tuple(gone), notes=notes)


def _old_runs(source: Cleanable, quarantine: Quarantine, retention: Retention) -> tuple[list[Held], tuple[str, ...]]:
    """Return the runs that may be deleted, and say which stay: one that is young, or that has what the table needs.

    A file in quarantine that the table needs by now may be the only one of its name, unless its place is taken.
    """
    old, notes = [], []
    needed = source.needed(replace(retention, expire=None if is_expirable(source) else timedelta(0)))
    root = source.place().root
    for run in quarantine.runs():
        held = quarantine.read(run)
        taken = [file for file in held.files if not needed.isdisjoint(spellings(f"{root}/{file.path}"))]
        taken = quarantine.missing(taken) if taken and not held.is_undone else []
        if held.time > retention.stale:
            age = duration_name(retention.older_than)
            notes.append(f"Run {run} stays: it is younger than {age} ({option('older_than')}).")
        elif taken:
            notes.append(
                f"Run {run} stays: the table needs {quoted(taken[0].path, limit=300)} by now. Bring it back with "
                f"{option('undo', run)}."
            )
        else:
            old.append(held)
    return old, tuple(notes)
