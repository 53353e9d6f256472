"""Convert the live files of an Iceberg table to those of a snapshot, and name what blocks a rewrite."""

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)

from zonal.errors import LayoutError, quoted
from zonal.layouts.layout import Layout
from zonal.snapshot import Commit, Files
from zonal.tables.iceberg.arrow_schema import ROW_LINEAGE
from zonal.tables.iceberg.bounds import column_bounds, leaves, partition_bounds
from zonal.tables.iceberg.buckets import buckets
from zonal.tables.iceberg.live_files import LiveFiles, PartitionKey, applied_deletes
from zonal.tables.protocol import LAYOUT_PROPERTY

NEWEST_FORMAT = 3
NOT_REWRITTEN = (GeometryType, GeographyType, UnknownType, TimestampNanoType, TimestamptzNanoType)
"""Types that zonal doesn't write; PyIceberg itself refuses tables with `variant`, which it doesn't know."""


def files_of(live: LiveFiles, metadata: TableMetadata, schema: Schema, commits: Mapping[int, Commit]) -> Files:
    """Return the files of a snapshot."""
    specs = metadata.specs()
    columns = leaves(schema)
    types = {field_id: field.field_type for field_id, field in index_by_id(schema).items()}
    applied = applied_deletes(live)
    return Files(
        paths=live.paths,
        sizes=live.sizes,
        rows=live.rows,
        deleted=applied.rows,
        delete_files=applied.files,
        added_by=live.added_by,
        layout_ids=pa.array(_layout_ids(live, metadata, commits), pa.string()),
        partition=live.partition,
        partitions=tuple(_partition_text(key, specs, types) for key in live.partitions),
        bounds=column_bounds(live, columns),
        partition_bounds=partition_bounds(live, specs, columns),
        buckets=buckets(live, specs, columns),
    )


def _layout_ids(live: LiveFiles, metadata: TableMetadata, commits: Mapping[int, Commit]) -> Iterator[str | None]:
    """Yield the layout of each file, by the snapshot that added it; once that is expired, by the folder of its run."""
    ids = {number: _layout_id(commit.details.get(LAYOUT_PROPERTY)) for number, commit in commits.items()}
    run = re.compile(re.escape(data_location(metadata)) + r"/zonal-([0-9a-f]{12})-")
    for path, number in zip(live.paths.to_pylist(), live.added_by.tolist(), strict=True):
        match = None if number in ids else run.match(path)
        yield match[1] if match else ids.get(number)


def data_location(metadata: TableMetadata) -> str:
    """Return where new data files lie; hashed folders, the layout for object stores, are left out in favor of runs."""
    return (metadata.properties.get("write.data.path") or f"{metadata.location.rstrip('/')}/data").rstrip("/")


def _layout_id(text: str | None) -> str | None:
    """Read a summary's layout, which is its JSON or its id; what can't be read counts as no layout."""
    if text is None or re.fullmatch(r"[0-9a-f]{12}", text):
        return text
    try:
        return Layout.from_json(text).id
    except LayoutError:
        return None


def set_fields(spec: PartitionSpec) -> list[PartitionField]:
    """List the fields that partition: in version 1, dropped ones stay behind as `void`."""
    return [field for field in spec.fields if not isinstance(field.transform, VoidTransform)]


def field_text(field: PartitionField, schema: Schema) -> str:
    """Name a partition field for people."""
    column = schema.find_column_name(field.source_id) or field.name
    return column if isinstance(field.transform, IdentityTransform) else f"{field.transform}({column})"


def _partition_text(key: PartitionKey, specs: Mapping[int, PartitionSpec], types: Mapping[int, IcebergType]) -> str:
    spec_id, values = key
    named = set_fields(specs[spec_id]) if spec_id in specs else []
    return "/".join(f"{_escaped(field.name)}={_escaped(_value_text(field, values, types))}" for field in named)


def _value_text(field: PartitionField, values: Mapping[int, object], types: Mapping[int, IcebergType]) -> str:
    value = values.get(field.field_id)
    try:
        return field.transform.to_human_string(types.get(field.source_id, UnknownType()), value)
    except (OverflowError, TypeError, ValueError):  # a date beyond the year 9999
        return str(value)


def _escaped(text: str) -> str:
    """Escape what would make a partition's text ambiguous, and what would break a line."""
    return re.sub(r"[%/=\x00-\x1f\x7f]", lambda match: f"%{ord(match[0]):02X}", text)


def blockers_of(metadata: TableMetadata, schema: Schema, live: LiveFiles) -> Iterator[str]:
    """Say what zonal can't keep in a rewrite."""
    version = metadata.format_version
    if version > NEWEST_FORMAT:
        yield f"The table has format version {version}; zonal rewrites versions up to {NEWEST_FORMAT}."
    total = len(live.sizes)
    for name, count in sorted(live.formats.items()):
        if name != "PARQUET":
            yield f"{count} of {total} data files are {name}; zonal rewrites Parquet files only."
    if live.encrypted or any(key.startswith("encryption.") for key in metadata.properties):
        yield "The table is encrypted; zonal has no keys."
    odd = sorted(
        f"{schema.find_column_name(field_id)} ({field.field_type})"
        for field_id, field in index_by_id(schema).items()
        if isinstance(field.field_type, NOT_REWRITTEN)
    )
    taken = [field.name for field in schema.fields if field.name in ROW_LINEAGE]
    if version >= 3 and taken:
        yield f"The column {quoted(taken[0])} has the name of a column that tracks rows. Rename it."
    if odd:
        yield f"zonal can't write columns of these types: {', '.join(odd)}."
