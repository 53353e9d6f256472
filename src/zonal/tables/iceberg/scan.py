"""Plan how workers read the files of an Iceberg table: schema with field ids, deletes of each file, row lineage."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, parse_mapping_from_json
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import IcebergType, NestedField, PrimitiveType, UUIDType

from zonal.errors import ColumnError, TableError, quoted, suggestion
from zonal.plan.rewrite import EqualityDelete, Reading, Scan, Source, Vector
from zonal.snapshot import UNKNOWN, Snapshot
from zonal.storage import Storage
from zonal.tables.iceberg.arrow_schema import LAST_UPDATED, ROW_ID, reading_schema, reading_type
from zonal.tables.iceberg.bounds import fields
from zonal.tables.iceberg.deletes import Delete
from zonal.tables.iceberg.live_files import LiveFiles, PartitionKey
from zonal.values.arrays import Int64Array

NAME_MAPPING = "schema.name-mapping.default"


def scan(
    metadata: TableMetadata,
    schema: Schema,
    live: LiveFiles,
    snapshot: Snapshot,
    files: Int64Array,
    *,
    columns: Sequence[str] | None,
    storage: Storage,
) -> Scan:
    """Return what workers need to read the rows of these files; see `Rewritable.scan`."""
    if not live.paths.equals(snapshot.files.paths):  # files are known by their positions
        raise TableError(f"The snapshot of {quoted(snapshot.name)} is not one of this table. Read it again.")
    names = [field.name for field in schema.fields] if columns is None else list(columns)
    unknown = next((name for name in names if name not in {field.name for field in schema.fields}), None)
    if unknown is not None:
        known = suggestion(unknown, [field.name for field in schema.fields])
        raise ColumnError(f"Unknown column {quoted(unknown)} of {quoted(snapshot.name)}. {known}")
    lineage = columns is None and metadata.format_version >= 3
    reading = _reading(metadata, schema, names, lineage=lineage)
    sources = _Sources(metadata, schema, live, lineage=lineage, columns=set(names))
    return Scan(
        sources=tuple(map(sources.of, files.tolist())),
        reading=reading,
        columns={
            name: name for name in fields(Schema(*(field for field in schema.fields if field.name in set(names))))
        },
        storage=storage,
    )


def _reading(metadata: TableMetadata, schema: Schema, names: Sequence[str], *, lineage: bool) -> Reading:
    present = index_by_id(Schema(*(field for field in schema.fields if field.name in set(names))))
    return Reading(
        schema=reading_schema(schema, names, lineage=lineage),
        by_id=True,
        aliases=_aliases(metadata),
        defaults={number: _default(field) for number, field in present.items() if field.initial_default is not None},
        row_id=ROW_ID if lineage else None,
        row_version=LAST_UPDATED if lineage else None,
    )


def _aliases(metadata: TableMetadata) -> dict[int, tuple[str, ...]]:
    """Flatten the name mapping; names are those of the last step of a path, as the mapping has them."""
    text = metadata.properties.get(NAME_MAPPING)
    if text is None:
        return {}
    try:
        return dict(_names(parse_mapping_from_json(text).root))
    except ValueError as error:
        raise TableError(f"The table property {NAME_MAPPING} can't be read: {quoted(str(error), limit=200)}") from None


def _names(mapped: Sequence[MappedField]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for field in mapped:
        if field.field_id is not None:
            yield field.field_id, tuple(field.names)
        yield from _names(field.fields)


def _default(field: NestedField) -> pa.Scalar:
    """Convert an initial default, which stands for a column that a file was written without."""
    if not isinstance(field.field_type, PrimitiveType):
        raise TableError(f"zonal can't read the default of the nested column {quoted(field.name)}.")
    return scalar(field.initial_default, field.field_type)


def scalar(value: Any, kind: IcebergType) -> pa.Scalar:  # noqa: ANN401
    """Convert a value of the metadata to the type that its column is read with."""
    value = value.bytes if isinstance(kind, UUIDType) and hasattr(value, "bytes") else value
    return pa.scalar(value, reading_type(kind))


# --- files ---------------------------------------------------------------------------------------------------------


class _Constant(NamedTuple):
    partition_field: int
    name: str
    type: IcebergType


class _Sources:
    """Data files with their deletes."""

    def __init__(
        self,
        metadata: TableMetadata,
        schema: Schema,
        live: LiveFiles,
        *,
        lineage: bool,
        columns: set[str],
    ) -> None:
        self._live, self._lineage = live, lineage
        self._field_ids = set(index_by_id(schema))
        # Files that were brought into a table with a name mapping may lack the columns that partition it; "Column
        # Projection" then takes the partition value. All other files have every column that they need.
        mapped = NAME_MAPPING in metadata.properties
        tops = {field.field_id: field for field in schema.fields if field.name in columns} if mapped else {}
        self._constants = {number: list(_identities(spec, tops)) for number, spec in metadata.specs().items()}
        self._equality: dict[tuple[int, ...], tuple[EqualityDelete, ...]] = {}

    def of(self, number: int) -> Source:
        live = self._live
        path, sequence, partition = live.paths[number].as_py(), int(live.sequences[number]), int(live.partition[number])
        key, first_row_id = live.keys[partition], int(live.first_row_ids[number])
        positions = [live.deletes.deletes[at] for at in live.deletes.positions(path, sequence, key)]
        vectors = [delete for delete in positions if delete.kind == "vector"]
        if len(vectors) > 1:
            raise TableError(f"The data file {quoted(path, limit=300)} has {len(vectors)} deletion vectors.")
        has_lineage = self._lineage and first_row_id != UNKNOWN
        return Source(
            number=number,
            path=path,
            size=int(live.sizes[number]),
            rows=int(live.rows[number]),
            partition=partition,
            vector=_vector(vectors[0]) if vectors else None,
            position_deletes=() if vectors else tuple(map(_parquet, positions)),
            equality_deletes=self._equalities(live.deletes.equality(sequence, key)),
            constants=self._partition_values(live.partitions[partition]),
            first_row_id=first_row_id if has_lineage else None,
            # Of files from before version 3 both columns are null: "Row Lineage for Upgraded Tables".
            row_version=sequence if has_lineage else None,
        )

    def _equalities(self, numbers: tuple[int, ...]) -> tuple[EqualityDelete, ...]:
        if numbers not in self._equality:
            deletes = [self._live.deletes.deletes[at] for at in numbers]
            self._equality[numbers] = tuple(EqualityDelete(_parquet(one), self._columns(one)) for one in deletes)
        return self._equality[numbers]

    def _columns(self, delete: Delete) -> tuple[int, ...]:
        if not delete.columns or not self._field_ids.issuperset(delete.columns):
            raise TableError(
                f"The equality delete file {quoted(delete.location, limit=300)} compares columns that the table has "
                f"dropped (field ids {list(delete.columns)}). Rewrite the deletes with the engine that wrote them."
            )
        return delete.columns

    def _partition_values(self, key: PartitionKey) -> Mapping[str, pa.Scalar]:
        spec_id, values = key
        return {
            constant.name: scalar(values[constant.partition_field], constant.type)
            for constant in self._constants.get(spec_id, ())
            if constant.partition_field in values
        }


def _vector(delete: Delete) -> Vector:
    if delete.place is None:
        raise TableError(f"A deletion vector in {quoted(delete.location, limit=300)} has no place in that file.")
    return Vector(rows=delete.rows, location=delete.location, offset=delete.place[0], size=delete.place[1])


def _parquet(delete: Delete) -> str:
    if delete.format.upper() != "PARQUET":
        raise TableError(
            f"The delete file {quoted(delete.location, limit=300)} is {delete.format}; zonal reads Parquet only."
        )
    return delete.location


def _identities(spec: PartitionSpec, columns: Mapping[int, NestedField]) -> Iterator[_Constant]:
    for field in spec.fields:
        if isinstance(field.transform, IdentityTransform) and field.source_id in columns:
            column = columns[field.source_id]
            yield _Constant(field.field_id, column.name, column.field_type)


def global_specs(specs: Mapping[int, PartitionSpec]) -> set[int]:
    """Return the partition specs without fields; in version 1, dropped ones stay behind as `void`."""
    void = {
        number: [isinstance(field.transform, VoidTransform) for field in spec.fields] for number, spec in specs.items()
    }
    return {number for number, fields_void in void.items() if all(fields_void)}
