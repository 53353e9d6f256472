"""Decide how new files of an Iceberg table are written: where, with which columns, by the table's settings."""

import re
from collections.abc import Iterator, Mapping

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, FloatType

from zonal.errors import TableError, quoted, suggestion
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Writing
from zonal.plan.run import run_folder
from zonal.storage import Storage
from zonal.storage.options import store_options
from zonal.tables.iceberg.arrow_schema import writing_schema
from zonal.tables.iceberg.bounds import fields
from zonal.tables.iceberg.files import data_location
from zonal.tables.iceberg.io import StoredFileIO
from zonal.tables.iceberg.manifest_writers import lost_metadata

CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
BLOOM = "write.parquet.bloom-filter-enabled.column."
_CODECS = {name: name for name in ("zstd", "gzip", "snappy", "brotli", "lz4")} | {"uncompressed": "none"}
_SIGNING = ("s3.signer", "s3.remote-signing-enabled")


def writing_of(
    name: str, table: Table, schema: Schema, *, layout: Layout, run: str, compression: str | None = None
) -> Writing:
    """Return how files that replace others are written, or refuse what a rewrite can't keep.

    With a `compression` other than the table's, the table's level isn't meant.
    """
    if lost := lost_metadata(table):
        raise TableError(
            f"{quoted(name)} can't be rewritten: its metadata has parts that PyIceberg would lose, such as "
            f"{quoted(lost[0])}."
        )
    properties = table.metadata.properties
    codec, level = compression, None
    if compression in (None, _CODECS.get(properties.get(CODEC, "zstd").lower())):
        codec, level = compression_of(name, properties)
    return Writing(
        folder=f"{data_location(table.metadata)}/{run_folder(layout.id, run)}",
        storage=storage_of(table),
        schema=writing_schema(schema, lineage=table.metadata.format_version >= 3),
        compression=codec,
        compression_level=level,
        bloom_columns=tuple(dict.fromkeys((*layout.bloom_columns, *_bloom_columns(properties, schema)))),
        # Iceberg's vectorized reader refused the newer ones until lately: docs/decisions.md has the versions.
        encodings=layout.encodings or "plain",
    )


def storage_of(table: Table) -> Storage:
    """Return how workers open the table's files: with the options of the catalog's file access, and no others."""
    properties: Mapping[str, object] = table.io.properties
    if any(str(properties.get(key, "false")).lower() != "false" for key in _SIGNING):
        raise TableError(
            "The catalog signs each request to the object store itself, which Spark's workers can't ask for. Give "
            "credentials with the storage options, and set s3.remote-signing-enabled to false."
        )
    loan = table.io.loan if isinstance(table.io, StoredFileIO) else None
    return Storage(table.metadata.location, store_options(properties), loan=loan)


def compression_of(name: str, properties: Mapping[str, str]) -> tuple[str, int | None]:
    """Return the codec, by its name in Arrow, and its level."""
    codec = properties.get(CODEC, "zstd").lower()
    if codec not in _CODECS:
        raise TableError(
            f"{quoted(name)} asks for {CODEC}={quoted(codec)}, which zonal can't write. {suggestion(codec, _CODECS)}"
        )
    level = properties.get(LEVEL)
    if level is None or level == "null" or codec not in ("zstd", "gzip", "brotli"):
        return _CODECS[codec], None
    if not re.fullmatch(r"-?[0-9]{1,4}", level):
        raise TableError(f"{quoted(name)} asks for {LEVEL}={quoted(level)}, which is not a number.")
    return _CODECS[codec], int(level)


def codec_property(compression: str | None) -> dict[str, str]:
    """Return the property by which every writer of a new table takes a codec; none where none is asked for."""
    return {} if compression is None else {CODEC: "uncompressed" if compression == "none" else compression}


def _bloom_columns(properties: Mapping[str, str], schema: Schema) -> Iterator[str]:
    """Yield the columns that the table asks filters for, but for floats.

    A filter hashes bits, so that an engine which asks it for 0.0 misses -0.0, which is equal: reading everything is
    slower, and right.
    """
    known = fields(schema)
    for key, value in properties.items():
        name = key[len(BLOOM) :]
        asked = key.startswith(BLOOM) and value.lower() == "true" and name in known
        if asked and not isinstance(known[name].field_type, (FloatType, DoubleType)):
            yield name
