"""Where rewrites run: on Spark, in threads of this process, or by a function of the caller's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Union

from zonal.errors import ZonalError, in_line, option
from zonal.rewriting.in_place import Runner
from zonal.rewriting.on_this_machine import ThisMachine
from zonal.spark.place import HERE, Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Place = Union["SparkSession", Spark, Runner, None]
"""Where work runs: in a session, at a place for a new one, in this process, or by a function of the caller's."""


def check_place(place: Place) -> None:
    """Refuse what is no place, before any work is done for it."""
    if not (place is None or isinstance(place, Spark) or callable(place) or hasattr(place, "conf")):
        raise ZonalError(f"spark={in_line(place)} is not a Spark session, a Spark(…), or a function.")


@contextmanager
def runner_at(place: Place, tell: Callable[[str], None] | None = None) -> Iterator[Runner]:
    """Yield what runs a rewrite; a Spark session that isn't the caller's is stopped at the end.

    `tell` hears that Spark starts, with an empty text, and then of a start that takes long; without it, a warning says
    the latter.
    """
    if callable(place):
        yield place
    elif isinstance(place, Spark) and place.master == HERE:
        refused = [option(name) for name in ("remote", "conf") if getattr(place, name)]
        if refused:
            raise ZonalError(f"{option('master', HERE)} runs without Spark: leave out {', '.join(refused)}.")
        yield ThisMachine()
    else:
        with _on_spark(place, tell) as runner:
            yield runner


@contextmanager
def _on_spark(place: Union["SparkSession", Spark, None], tell: Callable[[str], None] | None) -> Iterator[Runner]:
    from zonal.spark.session import spark_session, warn_of  # noqa: PLC0415 - pyspark is an extra

    new, given = (place, None) if isinstance(place, Spark) else (Spark(), place)
    if tell is not None:
        tell("")
    with spark_session(
        master=new.master, remote=new.remote, conf=new.conf, session=given, tell=tell or warn_of
    ) as session:
        from zonal.spark.job import run_job  # noqa: PLC0415

        yield partial(run_job, session)
