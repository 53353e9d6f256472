"""Delta logs for tests: written action by action, or many files at once."""

import json
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

STRINGS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
ADD = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": STRINGS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
        "tags": STRINGS,
        "deletionVector": VECTOR,
        "clusteringProvider": pa.string(),
    }
)
CHECKPOINT = pa.schema(
    {
        "add": ADD,
        "remove": pa.struct({"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": STRINGS,
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.string()),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
        "sidecar": pa.struct({"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()}),
        "checkpointMetadata": pa.struct({"version": pa.int64()}),
    }
)


def field(name, kind, *, metadata=None):
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata or {}}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def protocol(reader=1, writer=2, *, reader_features=None, writer_features=None):
    body = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader_features is not None:
        body["readerFeatures"] = reader_features
    if writer_features is not None:
        body["writerFeatures"] = writer_features
    return {"protocol": body}


def features(*names):
    return protocol(3, 7, reader_features=list(names), writer_features=list(names))


def metadata(*fields, partitioning=(), configuration=None):
    return {
        "metaData": {
            "id": "00000000-0000-0000-0000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct(*fields)),
            "partitionColumns": list(partitioning),
            "configuration": configuration or {},
        }
    }


def add(path, *, stats=None, values=None, size=1000, **more):
    body = {"path": path, "partitionValues": values or {}, "size": size, "modificationTime": 0, "dataChange": True}
    if stats is not None:
        body["stats"] = stats if isinstance(stats, str) else json.dumps(stats)
    return {"add": body | more}


def remove(path, **more):
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True} | more}


def vector(name, *, cardinality=1, offset=1):
    return {
        "storageType": "u",
        "pathOrInlineDv": name,
        "offset": offset,
        "sizeInBytes": 40,
        "cardinality": cardinality,
    }


def stats(records, lower=None, upper=None, nulls=None, **more):
    return {"numRecords": records, "minValues": lower or {}, "maxValues": upper or {}, "nullCount": nulls or {}} | more


class LogWriter:
    """Writes a table's log one file at a time; `LogWriter(path).commit(...)` starts at version 0."""

    def __init__(self, path):
        self.path = Path(path)
        self.log = self.path / "_delta_log"
        self.log.mkdir(parents=True, exist_ok=True)
        self.version = -1

    def commit(self, *actions, version=None):
        self.version = self.version + 1 if version is None else version
        text = "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)
        (self.log / f"{self.version:020d}.json").write_text(text)
        return self

    def checkpoint(self, *actions, middle="", kind="parquet", schema=CHECKPOINT):
        """Write a checkpoint of the current version; `middle` is the part or the UUID in its name."""
        write_actions(self.log / f"{self.version:020d}.checkpoint{middle}.{kind}", actions, schema=schema)
        return self

    def sidecar(self, name, *actions):
        (self.log / "_sidecars").mkdir(exist_ok=True)
        write_actions(self.log / "_sidecars" / name, actions)
        return {"sidecar": {"path": name, "sizeInBytes": 1, "modificationTime": 0}}

    def forget(self, *versions):
        for version in versions:
            (self.log / f"{version:020d}.json").unlink()
        return self

    def __str__(self):
        return str(self.path)


def write_actions(path, actions, *, schema=CHECKPOINT):
    if path.name.endswith(".json"):
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    else:
        pq.write_table(pa.Table.from_pylist([_with_maps(action) for action in actions], schema), path)


def _with_maps(action):
    """Convert objects that are maps in Parquet to pairs."""
    maps = ("partitionValues", "tags", "configuration")
    return {
        name: {
            key: list(value.items()) if key in maps and isinstance(value, dict) else value
            for key, value in body.items()
        }
        for name, body in action.items()
    }


SYNTHETIC = ("long", "double", "string", "timestamp", "date", "decimal(12,2)")


def synthetic_table(path, files, *, columns=SYNTHETIC, checkpoint=True, commits=100, partitions=10):
    """Make the log of a table of many files that don't exist, with statistics on every column.

    Either one checkpoint holds all the files, or `commits` JSON commits hold equal shares of them.
    """
    writer = LogWriter(path)
    names = [f"c{number}_{kind.partition('(')[0]}" for number, kind in enumerate(columns)]
    fields = [field("part", "string"), *(field(name, kind) for name, kind in zip(names, columns, strict=True))]
    head = [protocol(), metadata(*fields, partitioning=["part"])]

    def one(number):
        lower = {name: _value(kind, number) for name, kind in zip(names, columns, strict=True)}
        upper = {name: _value(kind, number + 1) for name, kind in zip(names, columns, strict=True)}
        text = json.dumps(stats(1000, lower, upper, dict.fromkeys(names, number % 7)))
        part = f"p{number % partitions}"
        return add(f"part={part}/part-{number:08d}-{'0' * 36}.c000.snappy.parquet", stats=text, values={"part": part})

    if not checkpoint:
        share = -(-files // commits)
        for commit in range(commits):
            numbers = range(commit * share, min(files, (commit + 1) * share))
            info = {"commitInfo": {"timestamp": commit, "operation": "WRITE"}}
            writer.commit(info, *(head if commit == 0 else []), *map(one, numbers))
        return writer
    writer.version = 0
    adds = pa.Table.from_pylist([_with_maps(one(number)) for number in range(files)], CHECKPOINT)
    rest = pa.Table.from_pylist([_with_maps(action) for action in head], CHECKPOINT)
    pq.write_table(pa.concat_tables([rest, adds]), writer.log / f"{0:020d}.checkpoint.parquet")
    return writer


def _value(kind, number):
    if kind == "string":
        return f"customer-{number:010d}"
    if kind == "timestamp":
        time = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=number)
        return f"{time:%Y-%m-%dT%H:%M:%S}.123Z"
    if kind == "date":
        return str(date(2026, 1, 1) + timedelta(days=number // 100))
    return number + 0.25 if kind != "long" else number


def parsed_stats_schema(kind):
    """Return a checkpoint's schema in which files have `stats_parsed` of the given type, and no JSON statistics."""
    children = [*(child for child in ADD if child.name != "stats"), pa.field("stats_parsed", kind)]
    return CHECKPOINT.set(CHECKPOINT.get_field_index("add"), pa.field("add", pa.struct(children)))
