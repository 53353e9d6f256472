"""Names of the engines that leave a mark in a table's history."""

from collections.abc import Mapping

RUN_MARK = "zonal.run"
"""Detail of zonal's own commits."""

# Marks in Iceberg summaries and in operationParameters of Delta, and whose they are where there is no name.
_MARKS = {RUN_MARK: "zonal", "trino_query_id": "Trino", "spark.app.id": "Spark", "flink.job-id": "Flink"}


def marked_engine(details: Mapping[str, str]) -> str:
    """Return the engine whose mark a commit has; an empty text where it has none.

    >>> marked_engine({"trino_query_id": "1"}), marked_engine({})
    ('Trino', '')
    """
    return next((name for mark, name in _MARKS.items() if mark in details), "")
