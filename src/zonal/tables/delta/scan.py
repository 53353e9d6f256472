"""Describe how workers read a Delta table's files: physical columns and row tracking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from zonal.errors import ColumnError, TableError, quoted, suggestion
from zonal.plan.rewrite import Reading
from zonal.tables.delta.log import Metadata, Protocol
from zonal.tables.delta.schema import DeltaLeaf, file_fields, read_schema

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
