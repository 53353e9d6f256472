"""Rewrite files in place and commit them; retry the partitions that another writer changed meanwhile."""

import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from zonal.errors import CommitUnknownError, ConflictError, TableError, ZonalError, option, quoted
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.plan.choice import still_there
from zonal.plan.placement import Placement, Sizes
from zonal.plan.rewrite import ReadTally, Rewrite, Scan, Writing, Written
from zonal.rewriting.carry_over import CARRIES, carry_over
from zonal.rewriting.done import Done, RewrittenFiles
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.proof import check_new_files, check_rows
from zonal.snapshot import Snapshot
from zonal.storage.removal import remove_folder
from zonal.study.page_reads import WeightedPredicates
from zonal.study.sample import Delays, plan
from zonal.tables.protocol import Rewritable
from zonal.values.arrays import Int64Array
from zonal.values.progress import Progress, Step
from zonal.worker.splits import Split, plan_splits, refuse_wrong_sizes
from zonal.worker.write.writer import WRITES_BLOOM_FILTERS

ATTEMPTS = 5
"""Attempts to rewrite partitions that other writers keep changing."""
_FIRST_PAUSE = 0.5

Runner = Callable[[Scan, Writing, Placement, Sequence[Split], Progress], tuple[list[ReadTally], list[Written]]]
"""Runs the two steps of `zonal.worker.tasks` on all splits: on Spark, or in this process."""


@dataclass(frozen=True)
class Rewriter:
    """Rewrites files of one table in one layout; each attempt writes to its own folder, named after the run."""

    table: Rewritable
    layout: Layout
    run: str
    runner: Runner
    report: Progress
    choose: Callable[[Snapshot], Int64Array]
    """The files of a snapshot that may be rewritten at all; an error where the layout doesn't fit it any more."""
    tell: Callable[[Done], None]
    """Hears of every commit as soon as it is done: what is committed stays, whatever fails later."""
    files: NewFiles = field(default_factory=NewFiles)
    """How new files are written."""
    ranks: Ranks | None = None
    """The commit's ranks in a run of several commits; None: fit them to its own sample."""
    delays: tuple[int, ...] = ()
    """By how many bits each column waits in the key, where ranks are fitted; see `upkeep.forecast.delays`."""
    queries: WeightedPredicates = ()
    """Predicates of a log and their weights: they weigh how rows are ordered inside of row groups."""

    def rewrite(self, snapshot: Snapshot, files: Int64Array, number: int = 0) -> None:
        """Replace these files; partitions that other writers changed meanwhile are retried from the newest version."""
        known = set(snapshot.files.paths.to_pylist())
        mine = set(snapshot.files.paths.take(pa.array(files)).to_pylist())
        for attempt in range(ATTEMPTS):
            if not len(files):
                return
            name = f"{self.run}-{number}" + (f"-{attempt}" if attempt else "")
            lost = self._attempt(snapshot, files, name)
            if not lost:
                return
            time.sleep(_FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311 - spreads retries
            snapshot = self.table.newest().snapshot()
            files = self._again(snapshot, known, mine, lost)
        raise ConflictError(
            f"Other writers changed {quoted(snapshot.name)} during each of {ATTEMPTS} attempts. Try again when fewer "
            f"jobs write, or rewrite less at a time with {option('scope_where')} or {option('commit_every')}."
        )

    def _again(self, snapshot: Snapshot, known: set[str], mine: set[str], lost: Collection[str]) -> Int64Array:
        """Choose the files to retry in the lost partitions: ours that are left, and those that replaced the others."""
        paths = snapshot.files.paths.to_pylist()
        parts = snapshot.files.partition
        ours = f"-{self.run}-"
        return np.array(
            [
                file
                for file in self.choose(snapshot).tolist()
                if snapshot.files.partitions[parts[file]] in lost
                and (paths[file] in mine or (paths[file] not in known and ours not in paths[file]))
            ],
            np.int64,
        )

    def _attempt(self, snapshot: Snapshot, files: Int64Array, name: str) -> set[str]:
        """Rewrite the files once and commit what can be; return the labels of partitions that were not."""
        table = self.table.newest()
        writing = table.writing(snapshot, layout=self.layout, run=name, compression=self.files.codec)
        request = CommitRequest()
        try:
            scan = table.scan(snapshot, files)
            written, expected = write_files(
                snapshot.name, snapshot.files.partitions, scan, writing, self.layout, self.runner, self.report,
                verify=self.files.verify, ranks=self.ranks, delays=self.delays, queries=self.queries,
            )  # fmt: skip
            self.report(Step("committing"))
            properties = () if self.files.keep_properties else writing.properties
            rewrite = Rewrite(snapshot, files, tuple(written), self.layout, name, properties)
            request = CommitRequest(partial(table.refers_to, rewrite))
            done, kept, lost = _commit(table, rewrite, writing, request)
        except BaseException as error:
            settle(writing, request, error)
            raise
        gone = [part for part, label in enumerate(snapshot.files.partitions) if label in lost]
        self.tell(done + expected.without(gone))
        with suppress(TableError):  # where the table can't be read, all files stay
            sweep(writing, {*kept, *(request.refers_to() if lost and request.sent else ())})
        return lost


@dataclass(frozen=True, eq=False)
class Expected:
    """The new files that the sample lets expect: partition and bytes of each."""

    partition: Int64Array
    bytes: Int64Array

    @classmethod
    def of(cls, placement: Placement, sizes: Sizes) -> "Expected":
        """Return what a plan lets expect."""
        return cls(placement.partition_of_file, np.round(placement.file_rows * sizes.row_bytes).astype(np.int64))

    def without(self, partitions: Sequence[int] = ()) -> Done:
        """Return what was expected of all partitions but these."""
        kept = ~np.isin(self.partition, partitions)
        return Done(change=RewrittenFiles(predicted_files=int(kept.sum()), predicted_bytes=int(self.bytes[kept].sum())))


def write_files(
    table: str,
    labels: Sequence[str],
    scan: Scan,
    writing: Writing,
    layout: Layout,
    runner: Runner,
    report: Progress,
    *,
    verify: bool = False,
    ranks: Ranks | None = None,
    delays: Delays = (),
    queries: WeightedPredicates = (),
) -> tuple[list[Written], Expected]:
    """Write the scan's rows in the layout's order, and return the new files only if every row is in them.

    `labels` name the table's partitions by their numbers, for errors. What the plan let expect is returned beside them.
    """
    report(Step("sampling"))
    refuse_wrong_sizes(scan)
    placement, sizes, writing = plan(scan, writing, physical(layout, scan), ranks=ranks, delays=delays, queries=queries)
    placement = replace(placement, verify=verify)
    report(Step("rewriting"))
    with scan.storage.advising(), writing.storage.advising():
        tallies, written = runner(scan, writing, placement, plan_splits(scan.sources, placement.files), report)
    check_rows(table, labels, scan, tallies, written)
    return written, Expected.of(placement, sizes)


RECENTLY = 60.0
"""Seconds for which a check of the new files stays valid: as little time as possible must pass between reading the
newest version and asking for the next one, or other writers are always faster."""


@dataclass
class CommitRequest:
    """A commit, before or after it was requested from the table."""

    refers_to: Callable[[], Collection[str]] = tuple
    """Returns those of the new files that the table refers to."""
    check: Callable[[], None] = lambda: None
    """Checks the new files; raises an error where one isn't as it was written."""
    sent: bool = False
    """Whether a request went out: from then on the commit may have happened, whatever errors say."""
    looked: float = -math.inf
    """When the files were last checked."""

    def look(self) -> None:
        """Check the new files."""
        self.check()
        self.looked = time.monotonic()

    def send(self) -> None:
        """Note that a request goes out now, once the files are known to be there."""
        if time.monotonic() - self.looked > RECENTLY:
            self.look()
        self.sent = True


def settle(writing: Writing, asked: CommitRequest, error: BaseException) -> None:
    """Remove the files of a run that failed; once a commit was requested, only on proof that no version has them.

    A commit may have succeeded whatever its error says: a client that repeats a request reports the failure of the
    second one. Where it may have, or that can't be known, all files stay, and a `CommitUnknownError` says so.
    """
    if not asked.sent:
        sweep(writing, ())
        return
    where = f"The new files stay in {quoted(writing.folder, limit=300)}"
    if not isinstance(error, Exception):  # Ctrl-C, which no other error may replace
        error.args = (f"Whether the commit happened isn't known. {where}.",)
        return
    if isinstance(error, CommitUnknownError):
        return
    try:
        kept = asked.refers_to()
    except Exception as problem:
        raise CommitUnknownError(
            f"A commit failed ({error}), and whether it happened all the same can't be seen ({problem}). {where}: see "
            "whether the table has them before you try again."
        ) from error
    if kept:
        raise CommitUnknownError(
            f"A commit was reported as failed ({error}), but the table has {len(kept)} of its new files. {where}; "
            "look at the table's newest version before you try again."
        ) from error
    sweep(writing, ())


def _commit(
    table: Rewritable, rewrite: Rewrite, writing: Writing, request: CommitRequest
) -> tuple[Done, set[str], set[str]]:
    """Commit what can be; return that, the paths of the committed files, and the labels of lost partitions."""
    lost: set[str] = set()
    conflicts = carries = 0
    files = rewrite.base.files
    while rewrite.removed.size:
        request.check = partial(check_new_files, writing, rewrite)
        request.look()
        try:
            version = table.commit(rewrite, sending=request.send)
        except ConflictError as error:
            parts = _partitions_of(rewrite, error.paths)
            if error.paths and carries < CARRIES:
                carries += 1
                rewrite, parts = carry_over(table, rewrite, writing, parts)
            if parts:
                conflicts += 1
                lost |= {files.partitions[part] for part in parts}
                rewrite = _without(rewrite, parts)
        else:
            return _done(rewrite, version, conflicts), set(_new_files(rewrite)), lost
    return Done(conflicts=conflicts), set(), lost


def _partitions_of(rewrite: Rewrite, paths: Collection[str]) -> set[int]:
    """Return the partitions of files that can't be replaced; all of them if the error names none."""
    removed = rewrite.removed
    if paths:
        named = still_there(rewrite.base, list(paths))
        removed = np.intersect1d(removed, named)
        if not len(removed):
            raise TableError(f"A conflict in {quoted(rewrite.base.name)} names files that were not to be replaced.")
    return set(rewrite.base.files.partition[removed].tolist())


def _without(rewrite: Rewrite, parts: set[int]) -> Rewrite:
    of = rewrite.base.files.partition[rewrite.removed]
    added = tuple(file for file in rewrite.added if file.partition not in parts)
    return replace(
        rewrite,
        removed=rewrite.removed[~np.isin(of, list(parts))],
        added=added,
        carried=None if rewrite.carried is None else rewrite.carried.of({file.path for file in added}),
    )


def _new_files(rewrite: Rewrite) -> Iterator[str]:
    """Yield the locations of all files that a commit adds."""
    yield from (file.path for file in rewrite.added)
    if rewrite.carried is not None:
        yield from (each.location for each in rewrite.carried.stored.values() if each.location is not None)


def _done(rewrite: Rewrite, version: int, conflicts: int) -> Done:
    size = int(rewrite.base.files.sizes[rewrite.removed].sum())
    change = RewrittenFiles.of(rewrite.added, removed_files=len(rewrite.removed), removed_bytes=size)
    carried = 0 if rewrite.carried is None else rewrite.carried.rows
    return Done((version,), replace(change, rows=change.rows - carried), conflicts, carried, rewrite.properties)


def physical(layout: Layout, scan: Scan) -> Layout:
    """Name the layout's columns as the scan reads them."""
    return replace(layout, columns=tuple(scan.columns[name] for name in layout.columns), bloom_columns=())


def refuse_filters(writing: Writing) -> None:
    """Raise an error where the layout or the table demands Bloom filters that can't be written."""
    if writing.bloom_columns and not WRITES_BLOOM_FILTERS:
        raise ZonalError(
            f"Bloom filters on {', '.join(map(quoted, writing.bloom_columns))} need pyarrow 26 or later, and this is "
            f"{pa.__version__}. Update pyarrow, or leave them out of the layout and of the table's properties."
        )


def sweep(writing: Writing, kept: Collection[str]) -> None:
    """Remove what a run left in its own folder: all files but those that are the table's now.

    What can't be removed stays, and harms nobody: no table refers to it.
    """
    remove_folder(writing.storage, writing.folder, kept=kept)
