"""The files that a Delta log adds, as columns: building one object per file would take longer than reading the log."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.snapshot import LARGEST_FILE

LAYOUT_TAG = "zonal.layout"
RUN_TAG = "zonal.run"
STRINGS = pa.map_(pa.string(), pa.string())
ADDS = pa.schema(
    {
        "path": pa.string(),
        "values": STRINGS,
        "size": pa.int64(),
        "stats": pa.large_string(),
        "layout": pa.string(),
        "vector": pa.string(),
        "deleted": pa.int64(),
        "version": pa.int64(),
        "provider": pa.string(),
        "logged": pa.string(),
        "tags": pa.string(),
        "descriptor": pa.string(),
        "first_row_id": pa.int64(),
        "row_version": pa.int64(),
    }
)
"""`path` is a full location, `logged` the path in the log; `tags` and the deletion vector's `descriptor` are JSON."""

Key = tuple[str, str | None]
"""Location and deletion vector: a file is the same only with the same vector ("Action Reconciliation")."""


@dataclass(frozen=True, eq=False)
class Adds:
    """Live files from one source: a checkpoint file, or all JSON commits together."""

    rows: pa.Table
    """One row per file, with the columns of `ADDS`."""
    parsed: pa.ChunkedArray | None
    """`stats_parsed` of the same files, where some of them have no JSON statistics."""


@dataclass(frozen=True)
class LiveFile:
    """One live file, with all fields that a commit which removes it must repeat."""

    path: str
    """Full location."""
    logged: str
    """The path in the log."""
    size: int
    values: Mapping[str, str | None]
    """Partition values by physical name."""
    tags: Mapping[str, str]
    vector: Mapping[str, Any] | None
    """The deletion vector's descriptor."""
    first_row_id: int | None
    row_version: int | None

    @property
    def key(self) -> Key:
        """Return the key that identifies the file in a version."""
        return self.path, vector_id(self.vector)


def vector_id(descriptor: Mapping[str, Any] | None) -> str | None:
    """Return the unique id of a deletion vector ("Deletion Vector Descriptor Schema", derived fields)."""
    if not descriptor:
        return None
    offset = descriptor.get("offset")
    return f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}{'' if offset is None else f'@{offset}'}"


def dumped(value: Mapping[str, Any] | None) -> str | None:
    """Serialize an object of an action to JSON without null parts; None if nothing is left."""
    kept = {name: part for name, part in (value or {}).items() if part is not None}
    return json.dumps(kept) if kept else None


def lives(rows: pa.Table) -> list[LiveFile]:
    """Return the files of a table of the schema `ADDS`."""
    names = ("path", "logged", "size", "values", "tags", "descriptor", "first_row_id", "row_version")
    columns = (rows[name].to_pylist() for name in names)
    return [
        LiveFile(
            path, logged, size, dict(values or ()), json.loads(tags or "{}"), json.loads(vector or "null"), first, at
        )
        for path, logged, size, values, tags, vector, first, at in zip(*columns, strict=True)
    ]


class AddedFiles:
    """Collects added files as columns while the log's JSON actions are read."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in ADDS.names if name != "values"}
        self.offsets = [0]
        self.keys: list[str] = []
        self.items: list[str | None] = []

    def append(self, add: Mapping[str, Any], path: str, version: int) -> int:
        """Append an `add` action and return its row; raise a KeyError if it lacks a required field."""
        deletions, tags, values = add.get("deletionVector"), add.get("tags"), add.get("partitionValues") or {}
        row = len(self.offsets) - 1
        columns = self.columns
        size = add["size"]
        if type(size) is not int or not 0 <= size <= LARGEST_FILE:
            raise TableError(f"The log is wrong: the size of {quoted(path, limit=300)} can't be {quoted(str(size))}.")
        columns["size"].append(size)
        columns["path"].append(path)
        columns["stats"].append(add.get("stats"))
        columns["layout"].append(tags.get(LAYOUT_TAG) if tags else None)
        columns["vector"].append(vector_id(deletions))
        columns["deleted"].append(int(deletions["cardinality"]) if deletions else 0)
        columns["version"].append(version)
        columns["provider"].append(add.get("clusteringProvider"))
        columns["logged"].append(add["path"])
        columns["tags"].append(dumped(tags) if tags else None)
        columns["descriptor"].append(dumped(deletions) if deletions else None)
        columns["first_row_id"].append(add.get("baseRowId"))
        columns["row_version"].append(add.get("defaultRowCommitVersion"))
        self.keys += values.keys()
        self.items += values.values()
        self.offsets.append(len(self.keys))
        return row

    def take(self, rows: Sequence[int]) -> Adds:
        """Return the given rows."""
        offsets, keys = pa.array(self.offsets, pa.int32()), pa.array(self.keys, pa.string())
        values = pa.MapArray.from_arrays(offsets, keys, pa.array(self.items, pa.string()))
        arrays = {
            field.name: pa.array(self.columns[field.name], field.type) for field in ADDS if field.name != "values"
        }
        return Adds(pa.table(arrays | {"values": values}).select(ADDS.names).take(pa.array(rows, pa.int64())), None)
