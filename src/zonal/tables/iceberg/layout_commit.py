"""Record a table's layout in an Iceberg table's properties by a commit of its own, which makes no snapshot."""

import random
import time
from collections.abc import Callable

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertCurrentSchemaId, AssertTableUUID, SetPropertiesUpdate

from zonal.errors import CommitUnknownError, ConflictError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.tables.iceberg.commit import ATTEMPTS, LONGEST_PAUSE, is_retried
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.manifest_writers import commit_updates, lost_metadata
from zonal.tables.protocol import LAYOUT_PROPERTY


def record(name: str, load: Callable[[], Table], base: TableMetadata, layout: Layout) -> None:
    """Record a layout that fits the metadata that was read; another one that was recorded since is a conflict."""
    for attempt in range(ATTEMPTS):
        table = load()
        if _is_recorded(table.metadata, layout):
            return
        _check(name, base, table)
        metadata = table.metadata
        try:
            commit_updates(
                table,
                [
                    AssertTableUUID(uuid=metadata.table_uuid),
                    AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
                ],
                [SetPropertiesUpdate(updates={LAYOUT_PROPERTY: layout.to_json()})],
            )
            return
        except Exception as error:  # every catalog brings the errors of its own client
            if _looked_up(name, load, layout, error):
                return
            if not isinstance(error, CommitFailedException) and not is_retried(error):
                raise TableError(f"The layout of {quoted(name)} wasn't recorded: {what_of(error)}") from error
        time.sleep(min(0.05 * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5))  # noqa: S311 - only a pause
    raise ConflictError(
        f"{quoted(name)} changes faster than zonal can commit: {ATTEMPTS} attempts failed. Try again later."
    )


def _check(name: str, base: TableMetadata, table: Table) -> None:
    """Raise an error where the table isn't any more what the layout was checked against."""
    now = table.metadata
    if now.table_uuid != base.table_uuid:
        raise ConflictError(f"{quoted(name)} was replaced by another table meanwhile.")
    if now.schema().as_struct() != base.schema().as_struct():
        raise ConflictError(f"The schema of {quoted(name)} was changed meanwhile. Run it again.")
    if now.properties.get(LAYOUT_PROPERTY) != base.properties.get(LAYOUT_PROPERTY):
        raise ConflictError(f"Another layout of {quoted(name)} was recorded meanwhile. Run it again.")
    if lost := lost_metadata(table):
        raise TableError(
            f"The layout of {quoted(name)} can't be recorded: its metadata has parts that PyIceberg would lose, such "
            f"as {quoted(lost[0])}."
        )


def _is_recorded(metadata: TableMetadata, layout: Layout) -> bool:
    return metadata.properties.get(LAYOUT_PROPERTY) == layout.to_json()


def _looked_up(name: str, load: Callable[[], Table], layout: Layout, error: Exception) -> bool:
    """Tell whether a commit that was reported as failed happened all the same."""
    try:
        return _is_recorded(load().metadata, layout)
    except TableError as problem:
        raise CommitUnknownError(
            f"The catalog didn't say whether the layout of {quoted(name)} was recorded ({what_of(error)}; {problem}). "
            "No file was changed: run it again."
        ) from error
