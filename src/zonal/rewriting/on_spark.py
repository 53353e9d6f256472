"""Run rewrites on Spark; pyspark, which is an extra, is imported on use."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Union

from zonal.rewriting.in_place import Runner
from zonal.spark.place import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Place = Union["SparkSession", Spark, Runner, None]
"""Where work runs: in a session, in a new one at a given place, or by a function of the caller's."""


@contextmanager
def spark_runner(spark: Place, tell: Callable[[str], None] | None = None) -> Iterator[Runner]:
    """Yield what runs a rewrite: on Spark in the caller's session, in one that is stopped at the end, or elsewhere.

    `tell` hears of a start that takes long; without it, a warning says so.
    """
    if callable(spark):
        yield spark
        return
    from zonal.spark.session import spark_session, warn_of  # noqa: PLC0415 - pyspark is an extra

    place, given = (spark, None) if isinstance(spark, Spark) else (Spark(), spark)
    tell = tell or warn_of
    with spark_session(master=place.master, remote=place.remote, conf=place.conf, session=given, tell=tell) as session:
        from zonal.spark.job import run_job  # noqa: PLC0415

        yield partial(run_job, session)
