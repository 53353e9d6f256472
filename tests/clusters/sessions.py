"""Sessions on clusters, started by zonal itself."""

from contextlib import contextmanager

from clusters.daemons import QUICK
from zonal.spark.session import spark_session

KINDS = ("local-cluster", "standalone", "connect", "restricted")
LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.sql.shuffle.partitions": "2",
    # The settings that the JVM was started with are defaults of all later sessions of the process.
    "spark.task.maxFailures": "4",
    "spark.speculation": "false",
}


@contextmanager
def classic(master, python, **conf):
    """A session of zonal's own on a cluster, whose executors run this Python and import nothing from here."""
    given = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
    asked = {**LOOPBACK, "spark.executorEnv.PYTHONPATH": "", "spark.pyspark.python": str(python), **given}
    with spark_session(master=master, conf=asked) as session:
        yield session
