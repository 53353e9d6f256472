"""Write manifests, manifest lists and metadata of versions 1 to 3, with parts of PyIceberg that it keeps private.

PyIceberg writes no delete manifests, nothing of version 3, and loses fields that it doesn't know. Records come as
mappings by field id, and are written with PyIceberg's Avro encoder.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import to_json
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.manifest import DATA_FILE_TYPE, DEFAULT_BLOCK_SIZE, MANIFEST_ENTRY_SCHEMAS, MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import Compressor, ToOutputFile
from pyiceberg.table import CreateTableTransaction, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertCreate, TableRequirement, TableUpdate, ValidatableTableRequirement
from pyiceberg.typedef import IcebergBaseModel, Record
from pyiceberg.types import (
    IcebergType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
)

from zonal.storage.durability import flush_file, flush_folders
from zonal.tables.iceberg.field_ids import (
    ADDED_BY,
    ADDED_FILES,
    ADDED_ROWS,
    CONTENT,
    DATA,
    DATA_FILE,
    DELETED_FILES,
    DELETED_ROWS,
    DELETES,
    EQUALITY_IDS,
    EXISTING_FILES,
    EXISTING_ROWS,
    MANIFEST_CONTENT,
    MANIFEST_FIRST_ROW_ID,
    MANIFEST_PATH,
    MANIFEST_SEQUENCE,
    PARTITION,
    RECORDS,
    REFERENCED,
    SEQUENCE_NUMBER,
    SPEC_ID,
    STATUS,
    Fields,
)
from zonal.tables.iceberg.manifests import naming

EXISTING, ADDED, DELETED = 0, 1, 2
MANIFEST_LENGTH, MIN_SEQUENCE, PARTITIONS = 501, 516, 507
_COUNTS = {
    EXISTING: (EXISTING_FILES, EXISTING_ROWS),
    ADDED: (ADDED_FILES, ADDED_ROWS),
    DELETED: (DELETED_FILES, DELETED_ROWS),
}
_DEFAULTS = {CONTENT: DATA, 105: DEFAULT_BLOCK_SIZE, MANIFEST_CONTENT: DATA, MANIFEST_SEQUENCE: 0, MIN_SEQUENCE: 0}
"""Values of fields that an older version leaves out and another one requires; 105 is `block_size_in_bytes`."""
_BLOCK = 1000
"""Records in a block of an Avro file."""
_CODEC = {"avro.codec": "deflate"}


# --- manifests -----------------------------------------------------------------------------------------------------


def write_manifest(
    io: FileIO,
    path: str,
    entries: Sequence[Fields],
    *,
    metadata: TableMetadata,
    spec_id: int,
    content: int,
    snapshot_id: int,
    sequence: int,
) -> Fields:
    """Write a manifest of data files or of delete files, and return its line for the manifest list."""
    version = metadata.format_version
    partition = partition_type(metadata, spec_id)
    schema = Schema(*(_entry_field(field, version, partition) for field in MANIFEST_ENTRY_SCHEMAS[version].fields))
    spec = metadata.specs()[spec_id]
    meta = {
        "schema": metadata.schema().model_dump_json(),
        "partition-spec": to_json(spec.fields).decode(),
        "partition-spec-id": str(spec_id),
        "format-version": str(version),
        **({"content": "deletes" if content == DELETES else "data"} if version > 1 else {}),
    }
    length = _write(io, path, schema, "manifest_entry", meta, entries)
    sequences = [_assigned(entry, sequence) for entry in entries if entry[STATUS] != DELETED]
    return {
        MANIFEST_PATH: path,
        MANIFEST_LENGTH: length,
        SPEC_ID: spec_id,
        MANIFEST_CONTENT: content,
        MANIFEST_SEQUENCE: sequence,
        MIN_SEQUENCE: min(sequences, default=sequence),
        ADDED_BY: snapshot_id,
        **_counts(entries),
        PARTITIONS: [_summary(field, entries) for field in partition.fields],
    }


def _assigned(entry: Fields, sequence: int) -> int:
    own = entry.get(SEQUENCE_NUMBER)
    return sequence if own is None else int(own)


def _entry_field(field: NestedField, version: int, partition: StructType) -> NestedField:
    if field.field_id != DATA_FILE:
        return field
    fields = [_file_field(part, partition) for part in DATA_FILE_TYPE[version].fields]
    if version == 2:
        # "Data File Fields": optional from version 2 on, and Java writes it; PyIceberg knows it in version 3 only.
        fields.append(NestedField(REFERENCED, "referenced_data_file", StringType(), required=False))
    return NestedField(DATA_FILE, field.name, StructType(*fields), required=True)


def _file_field(field: NestedField, partition: StructType) -> NestedField:
    if field.field_id == PARTITION:
        return NestedField(PARTITION, field.name, partition, required=True)
    if field.field_id == EQUALITY_IDS:
        # The specification says list<int>, PyIceberg list<long>, which Java can't read.
        kind = ListType(136, IntegerType(), element_required=True)
        return NestedField(EQUALITY_IDS, field.name, kind, required=False)
    return field


def partition_type(metadata: TableMetadata, spec_id: int) -> StructType:
    """Return the type of a spec's partition values; a dropped source column is found in an older schema."""
    schemas = [metadata.schema(), *reversed(metadata.schemas)]

    def result(source: int, spec: PartitionSpec, at: int) -> IcebergType:
        field = next((schema.find_field(source) for schema in schemas if source in schema.field_ids), None)
        return UnknownType() if field is None else spec.fields[at].transform.result_type(field.field_type)

    spec = metadata.specs()[spec_id]
    return StructType(
        *(
            NestedField(field.field_id, field.name, result(field.source_id, spec, at), required=False)
            for at, field in enumerate(spec.fields)
        )
    )


def _counts(entries: Sequence[Fields]) -> dict[int, int]:
    counts = dict.fromkeys((field for pair in _COUNTS.values() for field in pair), 0)
    for entry in entries:
        files, rows = _COUNTS[entry[STATUS]]
        counts[files] += 1
        counts[rows] += entry[DATA_FILE][RECORDS]
    return counts


def _summary(field: NestedField, entries: Sequence[Fields]) -> Fields:
    """Summarize a partition field for the manifest list: `contains_null`, `contains_nan`, lower and upper bound."""
    values = [entry[DATA_FILE][PARTITION].get(field.field_id) for entry in entries]
    known = [value for value in values if value is not None and value == value]  # noqa: PLR0124 - NaN
    kind = field.field_type
    bounds = known and isinstance(kind, PrimitiveType) and not isinstance(kind, UnknownType)
    return {
        509: any(value is None for value in values),
        518: any(value != value for value in values),  # noqa: PLR0124 - NaN
        510: to_bytes(kind, min(known)) if bounds else None,  # type: ignore[arg-type]
        511: to_bytes(kind, max(known)) if bounds else None,  # type: ignore[arg-type]
    }


# --- manifest lists ------------------------------------------------------------------------------------------------


def write_manifest_list(
    io: FileIO,
    path: str,
    lines: Sequence[Fields],
    *,
    version: int,
    snapshot_id: int,
    parent_id: int | None,
    sequence: int,
    next_row_id: int | None = None,
) -> int:
    """Write a manifest list and return how many row ids it assigned, which only version 3 does.

    "First Row ID Assignment": manifests of data files without a first row id get the next one, and take as many ids as
    they have existing and added rows.
    """
    meta = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
        "format-version": str(version),
        **({"sequence-number": str(sequence)} if version > 1 else {}),
        **({"first-row-id": str(next_row_id)} if next_row_id is not None else {}),
    }
    assigned = 0
    numbered = []
    for line in lines:
        holds_data = line.get(MANIFEST_CONTENT) in (None, DATA)
        if next_row_id is not None and holds_data and line.get(MANIFEST_FIRST_ROW_ID) is None:
            line = {**line, MANIFEST_FIRST_ROW_ID: next_row_id + assigned}
            assigned += line[EXISTING_ROWS] + line[ADDED_ROWS]
        numbered.append(line)
    _write(io, path, MANIFEST_LIST_FILE_SCHEMAS[version], "manifest_file", meta, numbered)
    return assigned


def _write(io: FileIO, path: str, schema: Schema, name: str, meta: Mapping[str, str], records: Sequence[Fields]) -> int:
    struct = schema.as_struct()
    output = io.new_output(path)
    with AvroOutputFile[Record](output, schema, name, metadata={**meta, **_CODEC}) as writer:
        for start in range(0, len(records), _BLOCK):
            writer.write_block([_record(struct, record) for record in records[start : start + _BLOCK]])
        size = int(writer.output_stream.tell())
    flush_file(path)
    return size


def _record(struct: StructType, values: Fields) -> Record:
    return Record(*(_value(field.field_type, _filled(values, field.field_id)) for field in struct.fields))


def _filled(values: Fields, field_id: int) -> Any:  # noqa: ANN401
    value = values.get(field_id)
    return _DEFAULTS.get(field_id) if value is None else value


def _value(kind: IcebergType, value: Any) -> Any:  # noqa: ANN401
    if value is None or isinstance(kind, (PrimitiveType, MapType)):
        return value
    if isinstance(kind, ListType):
        return [_value(kind.element_type, item) for item in value]
    return _record(kind, value)  # type: ignore[arg-type]


# --- metadata ------------------------------------------------------------------------------------------------------


class _Unmoved(ValidatableTableRequirement):
    """The table's last sequence number is still this one.

    A commit to another branch takes a sequence number without moving ours. REST catalogs check the numbers themselves;
    PyIceberg's own catalogs would let two snapshots have the same one.
    """

    type: str = "zonal-assert-last-sequence-number"
    last_sequence_number: int

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        """Refuse the commit where another one came first."""
        last = None if base_metadata is None else _last_sequence(base_metadata)
        if last != self.last_sequence_number:
            raise CommitFailedException(f"Sequence number {last} instead of {self.last_sequence_number}.")


def _last_sequence(metadata: TableMetadata) -> int:
    return int(getattr(metadata, "last_sequence_number", 0) or 0)


def commit_updates(table: Table, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]) -> None:
    """Commit to the table's catalog, also in version 3, which PyIceberg itself refuses to write."""
    catalog = table.catalog
    if not isinstance(catalog, MetastoreCatalog):
        catalog.commit_table(table, tuple(requirements), tuple(updates))
        return
    own = _writing_all_versions(catalog)
    unmoved = [] if isinstance(table, StagedTable) else [_Unmoved(last_sequence_number=_last_sequence(table.metadata))]
    own.commit_table(table, (*requirements, *unmoved), tuple(updates))  # type: ignore[arg-type]


def commit_creation(creation: CreateTableTransaction, updates: Sequence[TableUpdate]) -> None:
    """Create a table together with its first snapshot."""
    commit_updates(creation._table, (AssertCreate(),), (*creation._updates, *updates))


def staged_table(creation: CreateTableTransaction) -> StagedTable:
    """Return the table as it will be."""
    return creation._table  # type: ignore[return-value]


def _writing_all_versions(catalog: MetastoreCatalog) -> Catalog:
    """Copy a catalog, on the same connections, with a `_write_metadata` that knows version 3."""
    own = copy.copy(catalog)
    own._write_metadata = _write_metadata  # type: ignore[method-assign]
    return own


def _write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
    """Write a metadata file, and put it on the disk before the catalog points to it."""
    output = io.new_output(metadata_path)
    if metadata.format_version < 3:
        ToOutputFile.table_metadata(metadata, output)
    else:
        data = IcebergBaseModel.model_dump_json(metadata).encode()
        with output.create(overwrite=False) as stream:
            stream.write(Compressor.get_compressor(metadata_path).bytes_compressor()(data))
    flush_file(metadata_path)
    flush_folders([metadata_path], metadata.location)


def lost_metadata(table: Table) -> list[str]:
    """List what the metadata file of a table says and PyIceberg would not write again.

    Catalogs with a server write the metadata themselves, and lose nothing.
    """
    if not isinstance(table.catalog, MetastoreCatalog) or table.metadata.format_version < 3:
        return []
    path = table.metadata_location
    with (
        naming(path),
        table.io.new_input(path).open() as stream,
        Compressor.get_compressor(path).stream_decompressor(stream) as text,
    ):
        stored = json.loads(text.read())
    return list(_lost(stored, json.loads(IcebergBaseModel.model_dump_json(table.metadata)), ""))


def _lost(stored: Any, written: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    if isinstance(stored, dict) and isinstance(written, dict):
        for name, value in stored.items():
            if name in written:
                yield from _lost(value, written[name], f"{path}.{name}" if path else name)
            elif value not in (None, [], {}):
                yield f"{path}.{name}" if path else name
    elif isinstance(stored, list) and isinstance(written, list) and len(stored) == len(written):
        for at, (left, right) in enumerate(zip(stored, written, strict=True)):
            yield from _lost(left, right, f"{path}[{at}]")
    elif stored != written:
        yield path
