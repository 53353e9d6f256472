"""Iceberg tables for tests: a SQLite catalog in a temporary folder, and commits by hand where PyIceberg can't write.

PyIceberg writes neither delete manifests nor format version 3, so `Handmade` writes manifests, a manifest list and
metadata JSON itself, with the Avro writer of PyIceberg.
"""

import itertools
import json
import struct
import uuid
from pathlib import Path

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

DELETE_PATH = 2147483546


def catalog_in(folder: Path) -> SqlCatalog:
    """Make a catalog with the namespace `db`; its properties are `properties_in(folder)`."""
    catalog = SqlCatalog("test", **properties_in(folder))
    catalog.create_namespace("db")
    return catalog


def properties_in(folder: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def put(io: FileIO, location: str, body: bytes) -> int:
    """Write a file wherever a table's files are, and return its size."""
    with io.new_output(location).create(overwrite=True) as file:
        file.write(body)
    return len(body)


class Handmade:
    """Commits of any files to a table: each `commit` gives the path of a new metadata file; no data is written."""

    def __init__(self, table: Table, *, format_version: int = 2) -> None:
        self.table = table
        self.version = format_version
        self.metadata = json.loads(table.metadata.model_dump_json()) | {"format-version": format_version}
        self.folder = f"{table.location().removeprefix('file://')}/metadata"
        """A local path, or a place in a store."""
        if "://" not in self.folder:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        self.manifests = list(table.current_snapshot().manifests(table.io)) if table.current_snapshot() else []
        self.numbers, self.own = itertools.count(1), uuid.uuid4()
        self.sequence = self.metadata.get("last-sequence-number", 0)

    def retype(self, **types) -> None:
        """Give columns other types, such as those that PyIceberg doesn't create tables with."""
        for field in self.metadata["schemas"][0]["fields"]:
            field["type"] = str(types.get(field["name"], field["type"]))

    def data_file(self, path: str, **fields) -> DataFile:
        return self.file(DataFileContent.DATA, path, **fields)

    def position_deletes(self, path: str, *, paths: tuple[str, str] | None = None, **fields) -> DataFile:
        if paths:
            lower, upper = ({DELETE_PATH: bound.encode()} for bound in paths)
            fields |= {"lower_bounds": lower, "upper_bounds": upper}
        return self.file(DataFileContent.POSITION_DELETES, path, **fields)

    def deletion_vector(self, target: str, **fields) -> DataFile:
        fields |= {"referenced_data_file": target, "content_offset": 4, "content_size_in_bytes": 40}
        return self.file(DataFileContent.POSITION_DELETES, "dv.puffin", file_format=FileFormat.PUFFIN, **fields)

    def equality_deletes(self, path: str, **fields) -> DataFile:
        return self.file(DataFileContent.EQUALITY_DELETES, path, equality_ids=[1], **fields)

    @staticmethod
    def file(content: DataFileContent, path: str, **fields) -> DataFile:
        fields = {"partition": Record(), "record_count": 10, "file_size_in_bytes": 100} | fields
        fields = {"file_format": FileFormat.PARQUET} | fields
        return DataFile.from_args(_table_format_version=3, content=content, file_path=path, **fields)

    def add_manifest(self, files: list[DataFile], *, spec_id: int = 0, status=ManifestEntryStatus.ADDED) -> str:
        """Write a manifest for the next commit; entries inherit its sequence number and snapshot."""
        path = f"{self.folder}/hand-{next(self.numbers)}-{self.own}.avro"
        content = ManifestContent.DATA if files[0].content == DataFileContent.DATA else ManifestContent.DELETES
        partition = self.table.specs()[spec_id].partition_type(self.table.schema())
        snapshot_id = self.snapshot_id if self.version == 1 else None  # required in version 1, inherited later
        entries = [
            ManifestEntry.from_args(_table_format_version=3, status=status, snapshot_id=snapshot_id, data_file=file)
            for file in files
        ]
        written, record = (
            manifest_entry_schema_with_data_file(version, data_file_with_partition(partition, version))
            for version in (self.version, 3)
        )
        output = self.table.io.new_output(path)
        meta = {"format-version": str(self.version)}
        with AvroOutputFile(output, written, "manifest_entry", record, meta) as writer:
            for start in range(0, len(entries), 1000):
                writer.write_block(entries[start : start + 1000])
        self.manifests.append(
            ManifestFile.from_args(
                _table_format_version=3,
                manifest_path=path,
                manifest_length=len(self.table.io.new_input(path)),
                partition_spec_id=spec_id,
                content=content,
                sequence_number=self.sequence + 1,
                min_sequence_number=self.sequence + 1,
                added_snapshot_id=self.snapshot_id,
                **dict.fromkeys(("added_files_count", "existing_files_count", "deleted_files_count"), 0),
                **dict.fromkeys(("added_rows_count", "existing_rows_count", "deleted_rows_count"), 0),
            )
        )
        return path

    @property
    def snapshot_id(self) -> int:
        """The snapshot that the next commit makes."""
        return 1000 + self.sequence + 1

    def commit(self, **summary: str) -> str:
        """Make a snapshot of all manifests, and return the path of the table's new metadata file."""
        path = f"{self.folder}/snap-{self.snapshot_id}-{self.own}.avro"
        padded = []
        for manifest in self.manifests:
            manifest._data = [*manifest._data, *[None] * (16 - len(manifest._data))]
            padded.append(manifest)
        with AvroOutputFile(
            self.table.io.new_output(path),
            MANIFEST_LIST_FILE_SCHEMAS[self.version],
            "manifest_file",
            MANIFEST_LIST_FILE_SCHEMAS[3],
        ) as writer:
            writer.write_block(padded)
        self._add_snapshot(path, summary)
        target = f"{self.folder}/{self.sequence:05d}-{self.own}.metadata.json"
        put(self.table.io, target, json.dumps(self.metadata).encode())
        return target

    def _add_snapshot(self, manifest_list: str, summary: dict[str, str]) -> None:
        snapshot_id = self.snapshot_id
        self.sequence += 1
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": self.sequence,
            "timestamp-ms": self.metadata["last-updated-ms"] + self.sequence,
            "manifest-list": manifest_list,
            "summary": {"operation": "append", **summary},
            "schema-id": self.metadata["current-schema-id"],
        }
        self.metadata["snapshots"] = [*self.metadata.get("snapshots", []), snapshot]
        self.metadata |= {"current-snapshot-id": snapshot_id, "last-sequence-number": self.sequence, "next-row-id": 0}
        self.metadata["refs"] = {"main": {"snapshot-id": snapshot_id, "type": "branch"}}


def many_files(folder: Path, *, files: int = 20_000, manifests: int = 20, columns: int = 20) -> str:
    """Make a table of many files that don't exist, half longs and half strings; return its metadata file."""
    kinds = [LongType() if i % 2 else StringType() for i in range(columns)]
    schema = Schema(*(NestedField(i + 1, f"c{i}", kind, required=False) for i, kind in enumerate(kinds)))
    made = Handmade(catalog_in(folder).create_table("db.many", schema))
    each = files // manifests
    for manifest in range(manifests):
        made.add_manifest([_metrics_file(made, kinds, manifest * each + i) for i in range(each)])
    return made.commit()


def _metrics_file(made: Handmade, kinds: list, number: int) -> DataFile:
    lower, upper = ({}, {})
    for field_id, kind in enumerate(kinds, 1):
        for bounds, value in ((lower, number * 1000), (upper, number * 1000 + 999)):
            bounds[field_id] = struct.pack("<q", value) if isinstance(kind, LongType) else f"key-{value:012d}".encode()
    counts = dict.fromkeys(lower, 100_000)
    return made.data_file(
        f"file:///warehouse/db/many/data/00000-{number}-{number:032x}.parquet",
        record_count=100_000,
        file_size_in_bytes=128 * 1024**2,
        column_sizes=counts,
        value_counts=counts,
        null_value_counts=dict.fromkeys(lower, 0),
        nan_value_counts={},
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=[4, 64 * 1024**2],
    )
