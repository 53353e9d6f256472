"""Create Delta tables for `--into`: files are written first, then one commit makes the table appear."""

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs

from zonal.cleaning.places import FOLDER as QUARANTINE
from zonal.errors import ConflictError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Property, Writing, Written
from zonal.plan.run import RUN_FOLDER, run_folder
from zonal.storage import Storage, local_path
from zonal.storage.causes import STORAGE_ERRORS
from zonal.storage.durability import flush_folders
from zonal.storage.folders import entries_in
from zonal.tables.delta.actions import add_action, stats_json
from zonal.tables.delta.additions import engine
from zonal.tables.delta.adds import LAYOUT_TAG, RUN_TAG
from zonal.tables.delta.commit import log_folder, new_versions, put_version
from zonal.tables.delta.indexed import covering, indexed
from zonal.tables.delta.listing import LogFolder
from zonal.tables.delta.log import Metadata, named_in
from zonal.tables.delta.partition_values import partition_text
from zonal.tables.delta.scan import Columns
from zonal.tables.delta.schema import TIMESTAMP_NTZ, delta_schema, file_fields
from zonal.tables.delta.traits import ENCODINGS
from zonal.tables.hive_folders import hive_folders
from zonal.tables.protocol import LAYOUT_PROPERTY, Sending, unheard
from zonal.values.columns import find


@dataclass(frozen=True, eq=False)
class _Plan:
    """The content of the commit, fixed before any file is written."""

    schema: str
    """The schema as JSON, for the log."""
    fields: Mapping[str, pa.Field]
    partitioning: tuple[str, ...]
    values: tuple[Mapping[str, str | None], ...]
    layout: Layout
    run: str
    properties: tuple[Property, ...]

    @property
    def configuration(self) -> dict[str, str]:
        """Return the table's properties."""
        return {LAYOUT_PROPERTY: self.layout.to_json()} | {each.name: each.value for each in self.properties}


class DeltaDestination:
    """A Delta table that doesn't exist yet, at a folder."""

    def __init__(self, location: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._storage = Storage(location, storage_options or {})
        self._plan: _Plan | None = None
        self.name = self._storage.root

    def file_columns(self, schema: pa.Schema, partitioning: Sequence[str]) -> list[str]:
        """Return the columns that don't partition the table: Delta keeps the others in its log only."""
        return [name for name in schema.names if name not in partitioning]

    def writing(
        self,
        schema: pa.Schema,
        partitioning: Sequence[str],
        partitions: Sequence[Mapping[str, pa.Scalar]],
        *,
        layout: Layout,
        run: str,
        compression: str | None = None,
    ) -> Writing:
        """Return how the table's files are written; refuse a schema that Delta can't hold or a folder that isn't empty.

        Left-over files of failed runs of zonal are harmless and don't count.
        """
        new_versions(self._storage)
        self._refuse_existing()
        columns = self.file_columns(schema, partitioning)
        if not columns:
            raise TableError(f"All columns partition {quoted(self.name, limit=300)}: a Delta table needs another one.")
        text = json.dumps(delta_schema(schema), ensure_ascii=False)
        fields = file_fields(text)
        in_files = pa.schema([fields[name] for name in columns])
        for name in layout.bloom_columns:
            find(in_files, name)
        values = tuple(
            {name: partition_text(partition[name], name) for name in partitioning} for partition in partitions
        )
        properties = covering(Metadata(text, tuple(partitioning), {}, {}), layout.columns)
        self._plan = _Plan(text, fields, tuple(partitioning), values, layout, run, properties)
        return Writing(
            folder=f"{self._storage.root}/{run_folder(layout.id, run)}",
            storage=self._storage,
            schema=in_files,
            subfolders=tuple(hive_folders(one, plain_keys=True) or "" for one in values) if partitioning else (),
            compression=compression or "zstd",
            bloom_columns=layout.bloom_columns,
            encodings=layout.encodings or ENCODINGS,
            properties=properties,
            log=log_folder(self._storage),
        )

    def publish(self, added: Sequence[Written], *, sending: Sending = unheard) -> int:
        """Write version 0 with all files; a table that appeared meanwhile is a `ConflictError`."""
        if self._plan is None:
            raise TableError(f"No files were written for {quoted(self.name, limit=300)}.")
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self._actions(self._plan, added))
        with self._folder_made():
            if put_version(new_versions(self._storage), 0, lines, self.name, sending):
                return 0
        raise ConflictError(f"Another writer made a table at {quoted(self.name, limit=300)} meanwhile.")

    @contextmanager
    def _folder_made(self) -> Iterator[None]:
        """Make the log's folder, where a disk needs one, and remove it again where no version comes into it."""
        path = local_path(log_folder(self._storage))
        if path is None:
            yield
            return
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flush_folders([str(folder / "log")], self._storage.root)
            yield
        except (TableError, OSError) as error:
            with suppress(OSError):  # only while it is empty
                folder.rmdir()
            if isinstance(error, TableError):
                raise
            raise TableError(f"Can't create {quoted(str(folder), limit=300)}: {error}") from None

    def refers_to(self, added: Sequence[Written]) -> set[str]:
        """Return the written files that the table has, if it appeared; see `Destination`."""
        filesystem, folder = self._storage.locate(log_folder(self._storage))
        infos = filesystem.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True))
        if not any(info.is_file and not info.base_name.startswith(".") for info in infos):
            return set()
        log = LogFolder.of(filesystem, folder)
        return named_in(log, log.commits, self._storage) & {file.path for file in added}

    def _refuse_existing(self) -> None:
        filesystem, root = self._storage.locate(self._storage.root)
        try:
            taken = filesystem.get_file_info(root).is_file or any(
                not _is_left_over(filesystem, entry) for entry in entries_in(filesystem, root)
            )
        except STORAGE_ERRORS as error:
            raise TableError(f"Can't look at {quoted(self.name, limit=300)}: {self._storage.told(error)}") from None
        if taken:
            raise TableError(f"{quoted(self.name, limit=300)} isn't empty. Give the new table a folder of its own.")

    def _actions(self, plan: _Plan, added: Sequence[Written]) -> list[dict[str, Any]]:
        now = time.time_ns() // 1_000_000
        metadata = Metadata(plan.schema, plan.partitioning, plan.configuration, {})
        schema, chosen = Columns.of(metadata).reading.schema, indexed(metadata, plan.layout.columns)
        tags = {LAYOUT_TAG: plan.layout.id, RUN_TAG: plan.run}
        adds = [
            add_action(
                file,
                root=self._storage.root,
                values=plan.values[file.partition] if plan.partitioning else {},
                stats=stats_json(file, schema, chosen),
                tags=tags,
                time=now,
                data_change=True,
            )
            for file in added
        ]
        return [
            {"commitInfo": _info(plan, added, now)},
            {"protocol": _protocol(plan.fields.values())},
            {
                "metaData": {
                    "id": str(uuid.uuid4()),
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": plan.schema,
                    "partitionColumns": list(plan.partitioning),
                    "configuration": plan.configuration,
                    "createdTime": now,
                }
            },
            *({"add": add} for add in adds),
        ]


def _is_left_over(filesystem: pa.fs.FileSystem, entry: pa.fs.FileInfo) -> bool:
    """Tell whether a failed run left this: its own folder, a log without commits, or a quarantine of such files."""
    if entry.is_file:
        return False
    if entry.base_name == "_delta_log":
        return all(each.base_name.startswith(".") for each in entries_in(filesystem, entry.path))
    return RUN_FOLDER.fullmatch(entry.base_name) is not None or entry.base_name == QUARANTINE


def _info(plan: _Plan, added: Sequence[Written], now: int) -> dict[str, Any]:
    return {
        "timestamp": now,
        "operation": "CREATE TABLE AS SELECT",
        "operationParameters": {
            "isManaged": "false",
            "partitionBy": json.dumps(plan.partitioning),
            "properties": json.dumps(plan.configuration),
            LAYOUT_PROPERTY: plan.layout.to_json(),
            RUN_TAG: plan.run,
        },
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {
            "numFiles": str(len(added)),
            "numOutputRows": str(sum(file.rows for file in added)),
            "numOutputBytes": str(sum(file.size for file in added)),
        },
        "engineInfo": engine(),
        "txnId": str(uuid.uuid4()),
    }


def _protocol(fields: Iterable[pa.Field]) -> dict[str, Any]:
    """Return the lowest protocol that the types need: timestamps without a zone are a table feature."""
    if any(_has_ntz(field.type) for field in fields):
        features = ["timestampNtz"]
        return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    return {"minReaderVersion": 1, "minWriterVersion": 2}


def _has_ntz(kind: pa.DataType) -> bool:
    return kind == TIMESTAMP_NTZ or any(_has_ntz(kind.field(number).type) for number in range(kind.num_fields))
