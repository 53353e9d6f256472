"""How far a verb is: the one value that every progress callback hears."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from zonal.errors import ZonalNotice


@dataclass(frozen=True)
class Step:
    """What a verb does now, and how many of its tasks are done; for a rewrite, also which commit it is."""

    name: str
    commit: int = 1
    commits: int = 1
    done: int = 0
    total: int = 0
    """0: not known."""
    rows: int = 0
    """Rows of the files that the commit replaces."""
    bytes: int = 0
    """Bytes of the files that the commit replaces."""
    notice: str = ""
    """What the user should know meanwhile: what a run costs, or that Spark takes long, and what it waits for."""


Progress = Callable[[Step], None]
"""Hears each step."""


def within(report: Progress, commit: Step) -> Progress:
    """Return what hears the steps of a commit, and tells them with its number, its rows and its bytes."""

    def tell(step: Step) -> None:
        report(replace(commit, name=step.name, done=step.done, total=step.total, notice=step.notice))

    return tell


def only_notices(step: Step) -> None:
    """Tell nobody of a step, and of what makes it wait in a warning."""
    if step.notice:
        warnings.warn(step.notice, ZonalNotice, stacklevel=2)
