"""Convert an Iceberg schema to Arrow: as the table shows it, as files are read, and as they are written."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, IcebergType, ListType, MapType, NestedField, StringType, StructType, UUIDType

from zonal.plan.rewrite import FIELD_ID

ROW_ID, LAST_UPDATED = "_row_id", "_last_updated_sequence_number"
ROW_LINEAGE = {ROW_ID: 2147483540, LAST_UPDATED: 2147483539}
"""Columns of row lineage by their reserved field ids ("Row Lineage"); tables of version 3 have them."""
_NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


@dataclass(frozen=True)
class _Conversion:
    """What differs between the Arrow schemas of one table."""

    uuid: pa.DataType
    has_ids: bool

    def field(self, field: NestedField) -> pa.Field:
        ids = {FIELD_ID: str(field.field_id)} if self.has_ids else None
        return pa.field(field.name, self.type(field.field_type), not field.required, ids)

    def type(self, kind: IcebergType) -> pa.DataType:
        """Convert a type; text, bytes and lists are those that reading a Parquet file gives."""
        if isinstance(kind, StructType):
            return pa.struct([self.field(field) for field in kind.fields])
        if isinstance(kind, ListType):
            return pa.list_(self.field(kind.element_field))
        if isinstance(kind, MapType):
            return pa.map_(self.field(kind.key_field), self.field(kind.value_field))
        if isinstance(kind, UUIDType):
            return self.uuid
        arrow = schema_to_pyarrow(kind)
        return _NARROW.get(arrow, arrow)

    def schema(self, fields: Sequence[NestedField], *, lineage: bool = False) -> pa.Schema:
        extra = ROW_LINEAGE.items() if lineage else ()
        tracked = [pa.field(name, pa.int64(), True, {FIELD_ID: str(number)}) for name, number in extra]
        return pa.schema([*map(self.field, fields), *tracked])


_SHOWN = _Conversion(pa.uuid(), has_ids=False)
_READ = _Conversion(pa.binary(16), has_ids=True)
_WRITTEN = _Conversion(pa.uuid(), has_ids=True)


def arrow_schema(schema: Schema) -> pa.Schema:
    """Convert the schema of a table as predicates and results have it."""
    return _SHOWN.schema(schema.fields)


def reading_schema(schema: Schema, names: Sequence[str] | None = None, *, lineage: bool = False) -> pa.Schema:
    """Convert a schema with the field id at every level; UUIDs are 16 bytes, as they are stored."""
    by_name = {field.name: field for field in schema.fields}
    return _READ.schema(schema.fields if names is None else [by_name[name] for name in names], lineage=lineage)


def writing_schema(schema: Schema, *, lineage: bool = False) -> pa.Schema:
    """Convert a schema likewise, with UUIDs for which Parquet writes the annotation that Java's readers look for."""
    return _WRITTEN.schema(schema.fields, lineage=lineage)


def reading_type(kind: IcebergType) -> pa.DataType:
    """Return the type that a column is read with."""
    return _READ.type(kind)


def bound_type(kind: IcebergType) -> pa.DataType:
    """Return the type that bounds of a column have."""
    return pa.large_binary() if isinstance(kind, (StringType, BinaryType)) else _READ.type(kind)
