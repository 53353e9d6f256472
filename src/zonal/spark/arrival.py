"""Stage the rows of a DataFrame for an append: its query runs once, and workers write what it gives."""

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import to_arrow_type

from zonal.errors import ColumnError, ZonalError, quoted
from zonal.plan.append import Appending
from zonal.spark.failures import told_in_words
from zonal.spark.progress import Stage, watch
from zonal.spark.session import check_worker_python, is_on_this_machine
from zonal.spark.shipment import carried
from zonal.spark.versions import collected
from zonal.values.progress import Progress, Step
from zonal.worker.arrival.stage import COLUMNS, Staged, read_staged, stage_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frame_schema(df: "DataFrame") -> pa.Schema:
    """Return a DataFrame's schema in Arrow's types; a column that Spark can't pass on is refused by name."""
    if df.isStreaming:
        raise ZonalError("A streaming DataFrame never ends: use foreachBatch, and append each batch.")
    return pa.schema([pa.field(field.name, _arrow_type(field), field.nullable) for field in df.schema])


def _arrow_type(field: T.StructField) -> pa.DataType:
    try:
        return to_arrow_type(field.dataType)
    except Exception as error:  # pyspark has several for this
        kind = field.dataType.simpleString()[:80]
        raise ColumnError(f"Column {quoted(field.name)} has type {kind}, which can't be appended.") from error


def stage_frame(df: "DataFrame", table: str, appending: Appending, report: Progress) -> list[Staged]:
    """Run the query, and return the files that its rows were staged in; those of repeated tasks aren't among them."""

    def tell(stage: Stage) -> None:
        report(Step("staging", done=stage.done, total=stage.tasks))

    def wait(notice: str) -> None:
        report(Step("waiting for Spark", notice=notice))

    session = df.sparkSession
    check_worker_python(session)
    step = carried(stage_step(table, appending), by_value=not is_on_this_machine(session))
    with told_in_words("Spark couldn't take the rows"), watch(session, tell, wait):
        records = collected(df.mapInArrow(step, COLUMNS))
    return read_staged(records)
