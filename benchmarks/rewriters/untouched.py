"""Leave a table as it arrived, which is what rewrites are compared with."""

from benchmarks.rewriters.job import Job, Rewrite


def leave(_: Job) -> Rewrite:
    """Do nothing."""
    return lambda: None
