"""What kind of commit an entry of a Delta log is, and who made it: by its operation and `engineInfo`."""

import re
from collections.abc import Mapping

from zonal.snapshot import CommitKind
from zonal.tables.engines import RUN_MARK, marked_engine

ENGINE = "engineInfo"

_KINDS: Mapping[str, CommitKind] = {
    "WRITE": "append",
    "STREAMING UPDATE": "append",
    "COPY INTO": "append",
    "CONVERT": "append",
    "CLONE": "append",
    "CREATE TABLE": "append",
    "CREATE TABLE AS SELECT": "append",
    "OPTIMIZE": "compaction",
    "REORG": "compaction",
    "REORG TABLE": "compaction",
    "COMPUTE STATS": "compaction",
    "DELETE": "delete",
    "TRUNCATE": "delete",
    "UPDATE": "overwrite",
    "MERGE": "overwrite",
    "RESTORE": "overwrite",
    "REPLACE TABLE": "overwrite",
    "REPLACE TABLE AS SELECT": "overwrite",
    "CREATE OR REPLACE TABLE": "overwrite",
    "CREATE OR REPLACE TABLE AS SELECT": "overwrite",
}


def kind_of(operation: str, details: Mapping[str, str]) -> CommitKind:
    """Tell the kind of a commit; what changes rows in place, an update or a merge, is an overwrite.

    Of zonal's own, a write of new rows is an append like those of others.
    """
    mode = (details.get("mode") or details.get("outputMode") or "").lower()
    if RUN_MARK in details and operation != "WRITE":
        return "zonal"
    kind = _KINDS.get(operation.upper(), "unknown")
    return "overwrite" if kind == "append" and mode in ("overwrite", "complete") else kind


def writer_of(details: Mapping[str, str]) -> str:
    """Return the engine with its version, as far as the commit tells; an empty text where it doesn't.

    The forms of the engines that are known are shortened; others are taken as they are.

    >>> writer_of({"engineInfo": "delta-rs:py-1.6.6"})
    'delta-rs 1.6.6'
    """
    text = details.get(ENGINE)
    if not text:
        return marked_engine(details)
    if match := re.fullmatch(r"delta-rs[:.](?:py-|rust-)?([\w.+-]{1,40})", text):
        return f"delta-rs {match[1]}"
    if match := re.fullmatch(r"Apache-Spark/([\w.+-]{1,40}) Delta-Lake/([\w.+-]{1,40})", text):
        return f"Spark {match[1]}, Delta Lake {match[2]}"
    if match := re.fullmatch(r"zonal/([\w.+-]{1,40})", text):
        return f"zonal {match[1]}"
    return text
