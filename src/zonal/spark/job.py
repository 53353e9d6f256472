"""A rewrite as one Spark job: splits are read and placed, payloads shuffled, files sorted and written."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zonal.errors import ZonalError
from zonal.plan.placement import Placement
from zonal.plan.rewrite import ReadTally, Scan, Writing, Written
from zonal.spark.progress import Stage, watch
from zonal.spark.session import is_on_this_machine, settings
from zonal.spark.shipping import shipped
from zonal.spark.splits import dealt
from zonal.worker.exchange import payload, results
from zonal.worker.splits import Split
from zonal.worker.tasks import read_step, write_step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    # Rows are payloads of up to some megabytes: a batch of a few hundred is large already.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024**2),
    "spark.sql.adaptive.enabled": "false",  # the number of tasks is planned; merging some would double their memory
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
}


def run_job(
    spark: "SparkSession",
    scan: Scan,
    writing: Writing,
    placement: Placement,
    splits: Sequence[Split],
    report: Callable[..., None],
) -> tuple[list[ReadTally], list[Written]]:
    """Rewrite the scan's rows into new files, and return what was read and what was written.

    Of tasks that Spark repeats, the results of one attempt count; files of others stay behind in the run's folder.
    """
    names = {1: "reading", 2: "reading", 3: "writing"}

    def tell(stage: Stage) -> None:
        report(names.get(stage.number, "writing"), stage.done, stage.tasks)

    with shipped(by_value=not is_on_this_machine(spark)), settings(spark, _SETTINGS), watch(spark, tell):
        placed = dealt(spark, splits).mapInArrow(read_step(scan.reading, scan.storage, placement), payload.COLUMNS)
        gathered = placed.repartitionById(placement.tasks, F.col("task"))
        written = gathered.mapInArrow(write_step(scan.reading.schema, writing, placement), results.COLUMNS)
        try:
            told = written.toArrow()
        except Exception as error:
            # Where Ctrl-C meets a call to the JVM, pyspark raises what the broken call says instead.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise ZonalError(f"Spark couldn't finish the rewrite: {_reason(error)}") from error
        return results.read_results(told)


def _reason(error: Exception) -> str:
    """Return what a worker's Python said last, or the first line of what Spark says."""
    said = re.findall(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt)): (.+)$", str(error), re.MULTILINE)
    said = [(kind, text) for kind, text in said if kind not in ("SparkException", "PythonException")]
    if not said:
        return str(error).partition("\n")[0]
    kind, text = said[-1]
    return text if kind in ("TableError", "FileError", "ZonalError") else f"{kind}: {text}"
