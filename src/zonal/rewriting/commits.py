"""Rewrite a job's files in one commit or several, each from the table's newest version, and report on them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from zonal.errors import CommitUnknownError, ZonalError
from zonal.layouts.ranks import Ranks
from zonal.plan.choice import still_there
from zonal.rewriting.division import cost_text, divide
from zonal.rewriting.in_place import Done, Report, Rewriter, Runner
from zonal.rewriting.request import Job, refuse_unwritable, too_small
from zonal.snapshot import Snapshot
from zonal.values.arrays import Int64Array
from zonal.values.progress import Progress, Step


def rewrite_in_commits(
    job: Job,
    run: str,
    running: AbstractContextManager[Runner],
    report: Progress,
    on_failure: Callable[[Done], None],
) -> tuple[Done, Snapshot]:
    """Rewrite the job's files, and return what was committed and the table after it.

    `on_failure` hears what was committed before an error, which stays; the error itself tells of it, too.
    """
    groups = job.groups()
    if not groups:
        return Done(), job.snapshot
    if small := too_small(job.snapshot, [path for paths in groups for path in paths], job.layout):
        report(Step("planning", notice=small))
    refuse_unwritable(job.writing(run), run)
    ranks = _ranks(job, groups, run, report)
    report(Step("starting Spark"))
    commits: list[Done] = []
    try:
        with running as runner:
            rewriter = partial(
                Rewriter, job.table, job.layout, run, runner, choose=job.choose, tell=commits.append, files=job.files
            )
            _rewrite(job, groups, ranks, rewriter, report)
        report(Step("reading the table's metadata"))
        return sum(commits, Done()), job.table.newest().snapshot()
    except (ZonalError, KeyboardInterrupt) as error:
        _tell_commits(error, commits)
        on_failure(sum(commits, Done()))
        raise


def _ranks(job: Job, groups: Sequence[Sequence[str]], run: str, report: Progress) -> Sequence[Ranks | None]:
    """Plan several commits of a run together: fit the ranks of each, and say what look-ups pay for them."""
    if len(groups) < 2:
        return [None] * len(groups)
    report(Step("planning the commits"))
    files = [still_there(job.snapshot, paths) for paths in groups]
    division = divide(job.table, job.snapshot, files, job.layout, job.writing(run), by=job.divided_by())
    report(Step("planning the commits", notice=cost_text(division.lookups, len(groups))))
    return division.ranks


def _rewrite(
    job: Job,
    groups: Sequence[Sequence[str]],
    ranks: Sequence[Ranks | None],
    rewriter: Callable[..., Rewriter],
    report: Progress,
) -> None:
    """Rewrite the files of each commit, one commit after the other."""
    for number, (paths, shared) in enumerate(zip(groups, ranks, strict=True)):
        snapshot = job.snapshot
        if number:
            snapshot = job.table.newest().snapshot()
            job.check(snapshot)
        files = still_there(snapshot, paths)
        steps = told(report, sized(snapshot, files, number + 1, len(groups)))
        rewriter(report=steps, ranks=shared).rewrite(snapshot, files, number)


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


def told(report: Progress, where: Step) -> Report:
    """Return what tells of the tasks of a commit."""

    def tell(name: str, done: int = 0, total: int = 0, notice: str = "") -> None:
        report(replace(where, name=name, done=done, total=total, notice=notice))

    return tell
