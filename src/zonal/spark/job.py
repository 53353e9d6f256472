"""Run a rewrite as one Spark job: read and place splits, shuffle payloads, sort and write files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from zonal.plan.placement import Placement
from zonal.plan.rewrite import ReadTally, Scan, Writing, Written
from zonal.spark.failures import told_in_words
from zonal.spark.progress import Stage, watch
from zonal.spark.row_partitions import addressed
from zonal.spark.session import is_elsewhere, is_on_this_machine, settings
from zonal.spark.shipment import carried
from zonal.spark.splits import dealt
from zonal.spark.versions import batch_settings, collected
from zonal.values.progress import Progress, Step
from zonal.worker.exchange import payload, results
from zonal.worker.splits import Split
from zonal.worker.tasks import WorkerStep, read_step, write_step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH_ROWS, _BATCH_BYTES = 256, 32 * 1024**2
"""Rows are payloads of up to some megabytes: a batch of a few hundred is large already."""
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # the number of tasks is planned; merging some would double their memory
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
}


def run_job(
    spark: "SparkSession",
    scan: Scan,
    writing: Writing,
    placement: Placement,
    splits: Sequence[Split],
    report: Progress,
) -> tuple[list[ReadTally], list[Written]]:
    """Rewrite the scan's rows into new files, and return what was read and what was written.

    Of tasks that Spark repeats, the results of one attempt count; files of other attempts stay in the run's folder.
    """
    names = {1: "reading", 2: "reading", 3: "writing"}

    def tell(stage: Stage) -> None:
        report(Step(names.get(stage.number, "writing"), done=stage.done, total=stage.tasks))

    def wait(notice: str) -> None:
        report(Step("waiting for Spark", notice=notice))

    failed = "Spark couldn't finish the rewrite"
    with told_in_words(failed):
        by_value, elsewhere = not is_on_this_machine(spark), is_elsewhere(spark)
        read = carried(addressed(read_step(scan.reading, scan.storage, placement)), by_value=by_value)
        write = carried(write_step(scan.reading.schema, writing, placement), by_value=by_value)
        with told_in_words(failed, elsewhere=elsewhere), watch(spark, tell, wait):
            returned = run_steps(spark, splits, read, write, placement.tasks)
    return results.read_results(returned)


def run_steps(
    spark: "SparkSession", splits: Sequence[Split], read: WorkerStep, write: WorkerStep, tasks: int
) -> pa.Table:
    """Read each split in a task of its own, and hand its records to `tasks` tasks that write; return their results."""
    batches = batch_settings(spark, rows=_BATCH_ROWS, size=_BATCH_BYTES)
    with settings(spark, {**_SETTINGS, **batches}):
        placed = dealt(spark, splits).mapInArrow(read, payload.COLUMNS)
        gathered = placed.repartition(tasks, "task")
        return collected(gathered.mapInArrow(write, results.COLUMNS))
