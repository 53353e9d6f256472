"""Rewrite a job's files in one commit or several, each from the table's newest version, and report on them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from zonal.errors import CommitUnknownError, ZonalError
from zonal.layouts.ranks import Ranks
from zonal.plan.choice import still_there
from zonal.rewriting.division import cost_text, divide
from zonal.rewriting.done import Done
from zonal.rewriting.in_place import Rewriter, Runner
from zonal.rewriting.request import Job, refuse_unwritable, too_small
from zonal.rewriting.units import Unit, units_of
from zonal.snapshot import Snapshot
from zonal.upkeep.merges import MergeChoice
from zonal.values.arrays import Int64Array
from zonal.values.progress import Progress, Step, within

ROUNDS = 8
"""Times that a run looks at the table again for what is due: other writers may keep it growing."""


def rewrite_in_commits(
    job: Job,
    run: str,
    running: AbstractContextManager[Runner],
    report: Progress,
    on_failure: Callable[[Done], None],
) -> tuple[Done, Snapshot, MergeChoice]:
    """Rewrite the job's files, and return what was committed, the table after it, and what was chosen at first.

    Where no file is rewritten, the layout alone is recorded.

    `on_failure` hears what was committed before an error, which stays; the error itself tells of it, too.
    """
    units, choice = units_of(job, job.snapshot)
    if not units:
        return Done(), _recorded(job, report), choice
    if small := too_small(job.snapshot, [path for unit in units for path in unit.paths], job.layout):
        report(Step("planning", notice=small))
    refuse_unwritable(job.writing(run), run)
    ranks = [_ranks(job, job.snapshot, unit, run, report) for unit in units]  # before Spark starts
    commits: list[Done] = []
    try:
        with running as runner:
            rewriter = partial(
                Rewriter, job.table, job.layout, run, runner, tell=commits.append, files=job.files, queries=job.queries
            )
            after = _rewrite_rounds(job, units, ranks, run, rewriter, report)
        return sum(commits, Done()), after, choice
    except (ZonalError, KeyboardInterrupt) as error:
        _tell_commits(error, commits)
        on_failure(sum(commits, Done()))
        raise


def _recorded(job: Job, report: Progress) -> Snapshot:
    """Record the layout where no file is worth moving to it now, so that rows that arrive take it."""
    if not job.changes_layout:
        return job.snapshot
    report(Step("committing"))
    job.table.record(job.layout, job.snapshot)
    return job.table.newest().snapshot()


def _rewrite_rounds(
    job: Job,
    units: Sequence[Unit],
    ranks: Sequence[Sequence[Ranks | None]],
    run: str,
    rewriter: Callable[..., Rewriter],
    report: Progress,
) -> Snapshot:
    """Rewrite the units, and what is due after them, until nothing is; return the table after it."""
    number, snapshot = 0, job.snapshot
    for _ in range(ROUNDS):
        commits = number + sum(len(unit.commits) for unit in units)
        for unit, each in zip(units, ranks, strict=True):
            number = _rewrite(job, unit, each, rewriter, report, number, commits)
        report(Step("reading the table's metadata"))
        snapshot = job.table.newest().snapshot()
        if job.is_explicit or job.scope.most_bytes is not None:
            break
        job.check(snapshot)
        units, _ = units_of(job, snapshot)
        if not units:
            break
        ranks = [_ranks(job, snapshot, unit, run, report) for unit in units]
    return snapshot


def _ranks(job: Job, snapshot: Snapshot, unit: Unit, run: str, report: Progress) -> Sequence[Ranks | None]:
    """Plan several commits of a unit together: fit the ranks of each, and say what look-ups pay for them."""
    if len(unit.commits) < 2:
        return [None] * len(unit.commits)
    report(Step("planning the commits"))
    files = [still_there(snapshot, paths) for paths in unit.commits]
    division = divide(job.table, snapshot, files, job.layout, job.writing(run, snapshot), by=unit.by)
    report(Step("planning the commits", notice=cost_text(division.lookups, len(unit.commits))))
    return division.ranks


def _rewrite(
    job: Job,
    unit: Unit,
    ranks: Sequence[Ranks | None],
    rewriter: Callable[..., Rewriter],
    report: Progress,
    number: int,
    commits: int,
) -> int:
    """Rewrite the files of each commit of a unit, one commit after the other; return the number of the next one."""
    for paths, shared in zip(unit.commits, ranks, strict=True):
        snapshot = job.snapshot
        if number:
            snapshot = job.table.newest().snapshot()
            job.check(snapshot)
        files = still_there(snapshot, paths)
        steps = within(report, sized(snapshot, files, number + 1, commits))
        mine = rewriter(report=steps, choose=partial(job.again, paths), ranks=shared, delays=unit.delays)
        mine.rewrite(snapshot, files, number)
        number += 1
    return number


def _tell_commits(error: ZonalError | KeyboardInterrupt, commits: Sequence[Done]) -> None:
    """Add to an error what was committed before it, and stays: only the caller of all commits knows."""
    versions = [version for done in commits for version in done.versions]
    if versions:
        many = f"{len(versions)} commits" if len(versions) > 1 else "1 commit"
        outcome = f"Before this, {many} of the run succeeded (up to {versions[-1]}); the next run goes on from there."
    elif isinstance(error, CommitUnknownError) or (isinstance(error, KeyboardInterrupt) and error.args):
        return
    else:
        outcome = "Nothing was committed."
    message = str(error)
    ends = not message or message.endswith((".", "?", "!"))
    joint = "\n" if "\n" in message else " " if ends else ". "  # the last lines of a log stay by themselves
    error.args = (f"{message}{joint}{outcome}".lstrip(), *error.args[1:])


def sized(snapshot: Snapshot, files: Int64Array, commit: int = 1, commits: int = 1) -> Step:
    """Return a step of a commit that replaces these files."""
    rows, sizes = snapshot.files.rows[files], snapshot.files.sizes[files]
    return Step("", commit, commits, rows=int(rows[rows > 0].sum()), bytes=int(sizes.sum()))
