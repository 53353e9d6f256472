"""Tables of the official engines that zonal clusters in this process, and what the engines tell of them."""

from collections import Counter
from collections.abc import Callable, Mapping

from support.cluster_options import grouped
from support.local_runner import run_here
from zonal.rewriting.outcome import Clustering
from zonal.verbs.cluster import cluster

FILE_BYTES = 8_000
"""Target size of files: a few hundred rows, so that small tables are many files."""


def clustered(table, **options) -> Clustering:
    """Cluster a table without another Spark: this process's session is the engines'."""
    return cluster(table, **grouped(**{"spark": run_here, "target_file_size": FILE_BYTES, **options}))


def meanwhile(action: Callable[[], object]) -> Callable:
    """Return a runner during whose first run, after all files have been read, another writer acts."""
    actions = [action]

    def run(*work):
        done = run_here(*work)
        if actions:
            actions.pop()()
        return done

    return run


def rows_of(spark, query: str) -> Counter[str]:
    """Return the rows of a query as the engine shows them, with how often each is there.

    Stricter than `exceptAll`: it compares maps and variants, and tells -0.0 from 0.0.
    """
    return Counter(repr(row) for row in spark.sql(query).collect())


def scan_metrics(spark, query: str) -> Mapping[str, int]:
    """Run a query over one table and return what its scan counted, such as files that were read."""
    frame = spark.sql(query)
    frame.collect()
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    found = leaf.metrics().iterator()
    metrics = {}
    while found.hasNext():
        pair = found.next()
        metrics[pair._1()] = pair._2().value()
    return metrics
