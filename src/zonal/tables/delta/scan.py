"""Describe how workers read a Delta table's files: physical columns, row tracking and deletion vectors."""

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from zonal.errors import ColumnError, TableError, quoted, suggestion
from zonal.plan.rewrite import Reading, Vector
from zonal.tables.delta.adds import LiveFile
from zonal.tables.delta.log import Metadata, Protocol
from zonal.tables.delta.schema import DeltaLeaf, file_fields, read_schema

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS = {character: value for value, character in enumerate(_Z85)}
_MATERIALIZED = ("materializedRowIdColumnName", "materializedRowCommitVersionColumnName")


@dataclass(frozen=True, eq=False)
class Columns:
    """A table's columns as its files hold them."""

    mapping: str
    """`delta.columnMapping.mode`."""
    fields: Mapping[str, pa.Field]
    """Top-level fields in files, by logical name, partition columns included."""
    leaves: tuple[DeltaLeaf, ...]
    partitioning: tuple[str, ...]
    tracking: tuple[str, str] | None
    """Columns in files with the ids and commit versions of rows, where the table tracks rows."""

    @classmethod
    def of(cls, metadata: Metadata) -> "Columns":
        """Return the columns of a table with this metadata."""
        mapping = metadata.configuration.get("delta.columnMapping.mode", "none")
        return cls(
            mapping=mapping,
            fields=file_fields(metadata.schema, mapping=mapping),
            leaves=read_schema(metadata.schema, mapping=mapping)[1],
            partitioning=metadata.partitioning,
            tracking=_tracking(metadata.configuration),
        )

    @property
    def reading(self) -> Reading:
        """Return how to read all columns of data files, with those that track rows."""
        fields = [field for name, field in self.fields.items() if name not in self.partitioning]
        if self.tracking is None:
            return Reading(pa.schema(fields), by_id=self.mapping == "id")
        row_id, version = self.tracking
        fields += [pa.field(name, pa.int64()) for name in self.tracking]
        return Reading(pa.schema(fields), by_id=self.mapping == "id", row_id=row_id, row_version=version)

    def reading_of(self, names: Sequence[str]) -> Reading:
        """Return how to read only these columns, in this order, partition columns included."""
        if unknown := [name for name in names if name not in self.fields]:
            raise ColumnError(f"Unknown column {quoted(unknown[0])}. {suggestion(unknown[0], self.fields)}")
        return Reading(pa.schema([self.fields[name] for name in names]), by_id=self.mapping == "id")

    def paths(self, names: Sequence[str]) -> dict[str, str]:
        """Return the dotted path in files of each leaf of the given top-level columns."""
        wanted = {self.fields[name].name for name in names}
        return {leaf.name: ".".join(leaf.steps) for leaf in self.leaves if leaf.steps[0] in wanted}

    @property
    def in_files(self) -> list[str]:
        """Return the logical names of the top-level columns in files."""
        return [name for name in self.fields if name not in self.partitioning]


def is_true(configuration: Mapping[str, str], name: str) -> bool:
    """Tell whether a table property is set to true."""
    return configuration.get(name, "false").strip().lower() == "true"


def tracks_rows(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Tell whether new files need row ids: if the feature is supported, enabled or not ("Row Tracking")."""
    return "rowTracking" in protocol.writer_features and not is_true(configuration, "delta.rowTrackingSuspended")


def _tracking(configuration: Mapping[str, str]) -> tuple[str, str] | None:
    if not is_true(configuration, "delta.enableRowTracking"):
        return None
    names = [f"delta.rowTracking.{name}" for name in _MATERIALIZED]
    if missing := [name for name in names if not configuration.get(name)]:
        raise TableError(
            f"The table tracks rows (delta.enableRowTracking), but its property {missing[0]} isn't set, so a rewrite "
            "couldn't keep their ids. Set it, or disable row tracking."
        )
    return configuration[names[0]], configuration[names[1]]


# --- deletion vectors ------------------------------------------------------------------------------------------------


def deletion_vector(file: LiveFile, root: str, resolve: Callable[[str], str]) -> Vector | None:
    """Return the place of a file's deletion vector ("Deletion Vector Descriptor Schema")."""
    if file.vector is None:
        return None
    try:
        return _vector(file.vector, root, resolve)
    except (KeyError, ValueError, TypeError, struct.error) as error:
        raise TableError(
            f"The deletion vector of {quoted(file.path, limit=300)} can't be read: {type(error).__name__} {error}"
        ) from None


def _vector(descriptor: Mapping[str, Any], root: str, resolve: Callable[[str], str]) -> Vector:
    kind, text = descriptor["storageType"], str(descriptor["pathOrInlineDv"])
    rows, size = int(descriptor["cardinality"]), int(descriptor["sizeInBytes"])
    if kind == "i":
        data = z85(text)
        if not size <= len(data) < size + 4:
            raise ValueError(f"{len(data)} bytes instead of {size}")
        return Vector(rows, inline=data[:size])
    location = vector_location(descriptor, root, resolve)
    # Length and checksum, four bytes each, frame the vector in its file.
    return Vector(rows, location=location, offset=int(descriptor.get("offset") or 0), size=size + 8)


def vector_location(descriptor: Mapping[str, Any], root: str, resolve: Callable[[str], str]) -> str | None:
    """Return the file that a deletion vector lies in; None for one in the log itself."""
    kind, text = descriptor["storageType"], str(descriptor["pathOrInlineDv"])
    if kind == "u":
        # A random prefix, which may be empty, and a UUID in 20 characters.
        prefix, name = text[:-20], f"deletion_vector_{uuid.UUID(bytes=z85(text[-20:]))}.bin"
        return f"{root}/{prefix}/{name}" if prefix else f"{root}/{name}"
    if kind == "p":
        return resolve(text)
    if kind == "i":
        return None
    raise ValueError(f"unknown storage type {quoted(str(kind))}")


def z85(text: str) -> bytes:
    """Decode Base85 with ZeroMQ's alphabet (RFC 32): four bytes in five characters.

    >>> z85("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    if len(text) % 5:
        raise ValueError(f"{len(text)} characters are not a multiple of five")
    groups = (text[start : start + 5] for start in range(0, len(text), 5))
    return b"".join(struct.pack(">I", _number(group)) for group in groups)


def _number(group: str) -> int:
    number = 0
    for character in group:
        if character not in _DIGITS:
            raise ValueError(f"{quoted(character)} is not a character of Base85")
        number = number * 85 + _DIGITS[character]
    return number
