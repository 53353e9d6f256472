"""Report queries that wait for executors: how long, and what the session requests from the cluster."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from zonal.spark.address import shown
from zonal.spark.session import is_connect, is_local_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 30.0
"""Time without a running task until the first notice; each further one comes after twice the time."""


class Idle:
    """Notices that no task has run for some time, and tells so at growing intervals."""

    def __init__(
        self,
        lacking: Callable[[], str],
        tell: Callable[[str], None],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.lacking = lacking
        self.tell = tell
        self.clock = clock or time.monotonic
        self.since: float | None = None
        self.due = SECONDS

    def look(self, *, waits: bool) -> None:
        """Take note of whether the queries wait now."""
        now = self.clock()
        if not waits:
            if self.since is not None and self.due > SECONDS:
                self.tell(f"Spark runs tasks again, after {now - self.since:.0f} s.")
            self.since, self.due = None, SECONDS
        elif self.since is None:
            self.since = now
        elif now - self.since >= self.due:
            self.due = 2 * (now - self.since)
            self.tell(f"No task has run for {now - self.since:.0f} s: {self.lacking()}")


def lacking(spark: "SparkSession") -> str:
    """Say what the queries wait for, as far as the session knows, and what to do."""
    until = "This run goes on waiting: Ctrl-C ends it, and leaves the table as it is."
    if is_connect(spark):
        return f"the Spark Connect server has no free executor for them. It was set to ask for {asked(spark)}. {until}"
    master = str(spark.conf.get("spark.master", ""))
    executors = _executors(spark)
    if executors or is_local_master(master):
        return f"other queries of the session keep its executors busy. {until}"
    return (
        f"Spark on {shown(master)} granted no executor. Asked for: {asked(spark)}. See on the cluster's page that it "
        "has workers with as much free, or ask for less with --conf. " + until
    )


def asked(spark: "SparkSession") -> str:
    """Say which executors a session requests from its cluster."""
    memory = spark.conf.get("spark.executor.memory", None) or "1g"
    cores = spark.conf.get("spark.executor.cores", None)
    many = spark.conf.get("spark.executor.instances", None)
    most = spark.conf.get("spark.cores.max", None)
    each = f"spark.executor.memory={memory}"
    each += f", spark.executor.cores={cores}" if cores else ", spark.executor.cores as the cluster has it"
    number = f"{many} executors" if many else "executors"
    return f"{number} with {each}" + (f", and spark.cores.max={most} in all" if most else "")


def _executors(spark: "SparkSession") -> int:
    """Count a classic session's executors; the driver is listed among them."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    return len(tracker.getExecutorInfos()) - 1
