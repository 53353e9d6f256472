"""The result of a rewrite as a value: numbers, notes, picture, and its record for the history."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from datetime import timezone as zones

from zonal.display import Display, Shown
from zonal.errors import ZonalError
from zonal.history.opened import Database, opened, remember_run
from zonal.history.records import RunRecord
from zonal.layouts.layout import Layout, short_text
from zonal.picture.picture import Picture
from zonal.plan.file_size import size_reason
from zonal.plan.rewrite import Property
from zonal.rewriting.done import Done, RewrittenFiles
from zonal.rewriting.learned import Learned, Predicted
from zonal.rewriting.ledger import LedgerEntry, kind_of_run
from zonal.rewriting.request import Job, too_small
from zonal.skipping.depth import column_depth
from zonal.snapshot import Snapshot
from zonal.study.drawing import compared, is_wanted


@dataclass(frozen=True)
class KeyDepth:
    """Files that a look-up of one value of a key column reads on average."""

    column: str
    before: float
    after: float
    share_before: float | None = None
    """Share of the table's bytes that it read before."""
    share_after: float | None = None
    """Share that it reads now; fewer and larger files may be as many bytes."""


@dataclass(frozen=True)
class Run:
    """The run of a rewrite: its commits, and how it went."""

    id: str
    """The name of the run in the table's log; empty where nothing was done."""
    versions: tuple[int, ...]
    """One per commit that replaced files, in order; empty where there was nothing to do."""
    conflicts: int
    """Attempts that another writer's commit invalidated, wholly or in part."""
    seconds: float
    carried_deletes: int = 0
    """Rows that other writers deleted from replaced files meanwhile, and that are deleted in the new files."""


@dataclass(frozen=True)
class LookUps:
    """What look-ups of the key columns read before and after."""

    files_before: int
    files_after: int
    depths: tuple[KeyDepth, ...]


@dataclass(frozen=True)
class Clustering(Shown):
    """What a rewrite did."""

    table: str
    format: str
    layout: str
    run: Run
    change: RewrittenFiles
    lookups: LookUps
    predicted: Predicted | None = None
    """What the given queries read; None without queries."""
    note: str = ""
    """Why nothing was done, where queries say so, what a prediction is of, or why the run isn't in the history."""
    picture: Picture | None = field(default=None, repr=False, compare=False)
    """The files before and after as rectangles, if one was requested."""
    location: str = ""
    """Where the table is stored."""
    properties: tuple[Property, ...] = ()
    """Table properties that were set, so that readers use the key columns' statistics."""
    old_files_until: str = ""
    """What removes replaced files; see `Traits`."""
    layout_recorded: bool = False
    """Whether the layout was recorded for rows that arrive, and no file rewritten."""


@dataclass(frozen=True)
class RunAccount:
    """When a run began, and how its result is reported: what it shows, and the history."""

    began: float
    display: Display
    database: Database

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def check(self) -> None:
        """Refuse a history that can't be opened before any work starts."""
        with opened(self.database):
            pass

    def remembered(self, done: Clustering, entry: LedgerEntry) -> Clustering:
        """Add a run to the history; what is committed stays done where that fails, and a note says so."""
        problem = remember_run(self.database, run_record(done), entry.keep) if done.run.versions else ""
        return replace(done, note=_noted(done, problem)) if problem else done

    def remember_part(self, job: Job, run: str, done: Done) -> None:
        """Add the commits of a run that failed later to the history, as far as that can be told."""
        if done.versions:
            with suppress(ZonalError):
                after = job.table.newest().snapshot()
                kind = kind_of_run(job.snapshot, after, job.layout)
                entry = LedgerEntry(run, kind, done, job.layout, after)
                self.remembered(result_of(job.snapshot, after, job.layout, run, done, self, None), entry)

    def drawn(
        self, done: Clustering, before: Snapshot, after: Snapshot, columns: Sequence[str], learned: Learned | None
    ) -> Clustering:
        """Add the picture, where one is wanted; a failure to draw becomes a note, for the commits stand."""
        if not is_wanted(self.display.picture, before, after):
            return done
        asked = None if learned is None else learned.asked
        try:
            return replace(done, picture=compared(before, after, columns, asked, hide=self.display.hide_literals))
        except Exception as error:
            return replace(done, note=_noted(done, f"It can't be drawn: {error!r}. Please report this."))


def _noted(done: Clustering, note: str) -> str:
    return f"{done.note} {note}".lstrip()


def left(snapshot: Snapshot, learned: Learned, account: RunAccount) -> Clustering:
    """Return the result of a run that leaves the table as it is, because its queries say so."""
    recorded = "" if snapshot.layout is None else str(snapshot.layout)
    files = len(snapshot.files)
    done = Clustering(
        table=snapshot.name,
        format=snapshot.format,
        layout=recorded,
        run=Run("", (), 0, account.seconds),
        change=RewrittenFiles(),
        lookups=LookUps(files, files, ()),
        note=learned.reason,
        location=snapshot.location,
    )
    return account.drawn(done, snapshot, snapshot, (), learned)


def result_of(
    before: Snapshot,
    after: Snapshot,
    layout: Layout,
    run: str,
    done: Done,
    account: RunAccount,
    learned: Learned | None,
    note: str = "",
) -> Clustering:
    """Put the result of a run together from the snapshots before and after it; `note` says why nothing was done."""
    result = Clustering(
        table=after.name,
        location=after.location,
        format=after.format,
        layout=str(layout),
        run=Run(run, done.versions, done.conflicts, account.seconds, done.carried_deletes),
        change=replace(done.change, file_size=layout.file_bytes, file_size_reason=size_reason(layout, before)),
        lookups=LookUps(len(before.files), len(after.files), tuple(depths(before, after, layout))),
        properties=_set(after, done.properties),
        old_files_until=after.traits.old_files_until,
        layout_recorded=not done.versions and _recorded(after, layout) and not _recorded(before, layout),
        predicted=None if learned is None else learned.held_against(after),
        note=" ".join([note] * bool(note and not done.versions) + [*_notes(before, after, done, learned, layout)]),
    )
    return account.drawn(result, before, after, layout.columns, learned)


def _notes(before: Snapshot, after: Snapshot, done: Done, learned: Learned | None, layout: Layout) -> Iterator[str]:
    if done.change.removed_files and (small := too_small(before, before.files.paths.to_pylist(), layout)):
        yield small
    if learned is not None and (partly := _partly(before, done)):
        yield partly
    for each in dict.fromkeys(done.properties):
        if each not in _set(after, done.properties):
            yield (
                f"The table property {each.name} stays as it is until all files have statistics of the key columns: "
                "rewrite the rest of the table, too."
            )


def _recorded(snapshot: Snapshot, layout: Layout) -> bool:
    return snapshot.layout is not None and snapshot.layout.id == layout.id


def _set(after: Snapshot, properties: Sequence[Property]) -> tuple[Property, ...]:
    """Return the properties that were set in the end."""
    return tuple(each for each in dict.fromkeys(properties) if after.properties.get(each.name) == each.value)


def _partly(before: Snapshot, done: Done) -> str:
    """Say that the prediction is of the whole table where a part was rewritten; a copy is whole, and removes none."""
    if not 0 < done.change.removed_files < len(before.files):
        return ""
    return (
        f"{done.change.removed_files:,} of {len(before.files):,} files were rewritten: what was predicted is of the "
        "whole table in this layout."
    )


def depths(before: Snapshot, after: Snapshot, layout: Layout) -> Iterator[KeyDepth]:
    """Compare how well each key column skips before and after."""
    for name in layout.columns if len(after.files) else ():  # nothing is looked up in an empty table
        read = [_lookup(snapshot, name) for snapshot in (before, after)]
        if read[0] is not None and read[1] is not None:
            yield KeyDepth(name, read[0][0], read[1][0], read[0][1], read[1][1])


def _lookup(snapshot: Snapshot, name: str) -> tuple[float, float | None] | None:
    """Return the files that a look-up reads, and their share of the bytes."""
    if (depth := column_depth(snapshot, name)) is None:
        return (float(len(snapshot.files)), 1.0) if name in snapshot.physical else None
    return depth.lookup_files, depth.lookup_share


def run_record(done: Clustering) -> RunRecord:
    """Return what the history records of a rewrite: what was predicted, and what came out."""
    prediction = done.predicted
    return RunRecord(
        table=done.table,
        location=done.location,
        format=done.format,
        version=done.run.versions[-1] if done.run.versions else None,
        finished=datetime.now(zones.utc),
        run=done.run.id,
        layout=short_text(done.layout),
        rows=done.change.rows,
        removed_files=done.change.removed_files,
        removed_bytes=done.change.removed_bytes,
        added_files=done.change.added_files,
        added_bytes=done.change.added_bytes,
        queries=None if prediction is None else prediction.queries,
        share_before=None if prediction is None else prediction.share_before,
        share_predicted=None if prediction is None else prediction.share_predicted,
        share_after=None if prediction is None else prediction.share_after,
        seconds=done.run.seconds,
        predicted_files=done.change.predicted_files,
        predicted_bytes=done.change.predicted_bytes,
    )
