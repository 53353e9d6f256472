"""Who made a commit and what kind of commit it was, by what engines write into a table's history.

Delta has an operation and `engineInfo` in its commits. Iceberg has an operation and, from engines that run on its Java
library, `engine-name` in the summary of a snapshot; PyIceberg leaves no name there, and nobody is guessed.
"""

import math
import re
from collections.abc import Iterable

from zonal.snapshot import Commit

ZONAL = "zonal"
"""The kind of zonal's own commits."""
LONGEST = 100
"""Characters of a name that others chose."""

# Marks in Iceberg summaries and in operationParameters of Delta, and whose they are where there is no name.
_MARKS = {"zonal.run": "zonal", "trino_query_id": "Trino", "spark.app.id": "Spark", "flink.job-id": "Flink"}
_NAMES = {"spark": "Spark", "flink": "Flink", "trino": "Trino", "presto": "Presto", "hive": "Hive", "zonal": "zonal"}

_ICEBERG = {"append": "append", "replace": "compaction", "overwrite": "overwrite", "delete": "delete"}
_DELTA = {
    **dict.fromkeys(("WRITE", "STREAMING UPDATE", "COPY INTO", "CONVERT", "CLONE"), "append"),
    **dict.fromkeys(("CREATE TABLE", "CREATE TABLE AS SELECT"), "append"),
    **dict.fromkeys(("OPTIMIZE", "REORG", "REORG TABLE", "COMPUTE STATS"), "compaction"),
    **dict.fromkeys(("DELETE", "TRUNCATE"), "delete"),
    **dict.fromkeys(("UPDATE", "MERGE", "RESTORE"), "overwrite"),
    **dict.fromkeys(("REPLACE TABLE", "REPLACE TABLE AS SELECT"), "overwrite"),
    **dict.fromkeys(("CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT"), "overwrite"),
}


def kind_of(commit: Commit, table_format: str) -> str:
    """Return append, compaction, delete, overwrite, zonal or unknown.

    What changes rows in place, an update or a merge, is an overwrite. Iceberg tells copy-on-write deletes from other
    overwrites by their operation no more than PyIceberg does, so they are overwrites, too.
    """
    if "zonal.run" in commit.details:
        return ZONAL
    if table_format == "iceberg":
        return _ICEBERG.get(commit.operation.lower(), "unknown")
    mode = (commit.details.get("mode") or commit.details.get("outputMode") or "").lower()
    kind = _DELTA.get(commit.operation.upper(), "unknown")
    return "overwrite" if kind == "append" and mode in ("overwrite", "complete") else kind


def writer_of(commit: Commit) -> str:
    """Return the engine with its version, as far as the commit tells; an empty text where it doesn't.

    >>> writer_of(Commit(1, None, "OPTIMIZE", {"engineInfo": "delta-rs:py-1.6.6"}))
    'delta-rs 1.6.6'
    >>> writer_of(Commit(1, None, "append", {"engine-name": "spark", "engine-version": "4.1.4"}))
    'Spark 4.1.4'
    """
    details = commit.details
    if engine := details.get("engineInfo"):
        return plain(_delta_engine(engine))
    mark = next((name for key, name in _MARKS.items() if key in details), "")
    if mark == "zonal" or not (engine := details.get("engine-name")):
        return mark
    version = details.get("engine-version")
    return plain(_NAMES.get(engine.lower(), engine) + (f" {version}" if version else ""))


def _delta_engine(text: str) -> str:
    """Shorten the forms of the engines that are known; others are taken as they are."""
    if match := re.fullmatch(r"delta-rs[:.](?:py-|rust-)?([\w.+-]{1,40})", text):
        return f"delta-rs {match[1]}"
    if match := re.fullmatch(r"Apache-Spark/([\w.+-]{1,40}) Delta-Lake/([\w.+-]{1,40})", text):
        return f"Spark {match[1]}, Delta Lake {match[2]}"
    if match := re.fullmatch(r"zonal/([\w.+-]{1,40})", text):
        return f"zonal {match[1]}"
    return text


def time_of(commit: Commit) -> tuple[float, int]:
    """Return what puts commits in the order of time; one without a time comes first."""
    return (-math.inf if commit.time is None else commit.time.timestamp()), commit.id


def in_common(texts: Iterable[str]) -> str:
    """Return the text that all are; an empty one where they differ.

    >>> in_common(["WRITE", "WRITE"]), in_common(["WRITE", "DELETE"])
    ('WRITE', '')
    """
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def plain(text: str, limit: int = LONGEST) -> str:
    """Return a text of others on one line, without what can't be seen, and not too long.

    >>> plain("OPTI" + chr(10) + "MIZE")
    'OPTI�MIZE'
    """
    shown = "".join(each if each.isprintable() else "�" for each in text[:limit])
    return shown if len(text) <= limit else shown[:-1] + "…"
