"""Run rewrites on Spark; pyspark, which is an extra, is imported on use."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from zonal.rewriting.in_place import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_runner(
    spark: "SparkSession | None",
    master: str | None,
    remote: str | None,
    conf: Mapping[str, str] | None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Runner]:
    """Yield what runs a rewrite on Spark, in the caller's session or in one that is stopped at the end.

    `tell` hears of a start that takes long; without it, a warning says so.
    """
    from zonal.spark.session import spark_session, warn_of  # noqa: PLC0415 - pyspark is an extra

    with spark_session(session=spark, master=master, remote=remote, conf=conf, tell=tell or warn_of) as session:
        from zonal.spark.job import run_job  # noqa: PLC0415

        yield partial(run_job, session)
