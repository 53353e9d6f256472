"""Replace files of a Delta table by others with the same rows: the actions of the commit, and its conflicts."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from zonal.errors import ConflictError, quoted
from zonal.plan.rewrite import Property
from zonal.tables.delta.actions import has_bounds, remove_action
from zonal.tables.delta.additions import Additions, added_actions, commit_info, parsed_schema, with_properties
from zonal.tables.delta.adds import RUN_TAG, LiveFile
from zonal.tables.delta.commit import Action
from zonal.tables.delta.indexed import indexed
from zonal.tables.delta.log import Metadata, State
from zonal.tables.delta.scan import Columns, is_true
from zonal.tables.protocol import LAYOUT_PROPERTY


@dataclass(frozen=True, eq=False, kw_only=True)
class DeltaReplacement(Additions):
    """The files that a commit removes and adds, and the properties that it sets."""

    removed: Sequence[LiveFile]
    """With the deletion vectors that they must have: those of `base`, or later ones whose deletes were carried over."""
    properties: Sequence[Property] = ()

    def actions(self, current: State) -> Iterator[Action]:
        """Yield the actions of the version after `current`; see `LogChange`."""
        return actions(self, still_live(self, current), current)


# --- conflicts -------------------------------------------------------------------------------------------------------


def still_live(replacement: DeltaReplacement, current: State) -> list[LiveFile]:
    """Return the files to remove as in the current state; raise a `ConflictError` if the rewrite doesn't fit it."""
    base, name = replacement.base, quoted(replacement.root, limit=300)
    replacement.same_table(current)
    if _comparable(current.metadata) != _comparable(base.metadata):
        raise ConflictError(f"The schema or the properties of {name} changed since version {base.version}.")
    if current.protocol.comparable != base.protocol.comparable:
        raise ConflictError(f"The Delta protocol of {name} changed since version {base.version}.")
    live = {file.key: file for file in current.find([file.path for file in replacement.removed])}
    if gone := [file.path for file in replacement.removed if file.key not in live]:
        raise ConflictError(
            f"Another writer removed or changed {len(gone)} of the files of {name} that were rewritten, such as "
            f"{quoted(min(gone), limit=300)}.",
            gone,
        )
    return [live[file.key] for file in replacement.removed]


def _comparable(metadata: Metadata) -> object:
    """Return the part of the metadata that a rewrite depends on."""
    configuration = {name: value for name, value in metadata.configuration.items() if name != LAYOUT_PROPERTY}
    return parsed_schema(metadata), metadata.partitioning, configuration


# --- actions ---------------------------------------------------------------------------------------------------------


def actions(replacement: DeltaReplacement, removed: Sequence[LiveFile], current: State) -> Iterator[Action]:
    """Yield the actions of the version after `current`; `commitInfo` comes first ("In-Commit Timestamps")."""
    now = time.time_ns() // 1_000_000
    yield {"commitInfo": _info(replacement, current, now)}
    layout = replacement.recorded(current)
    covering = with_properties(current.metadata, layout, replacement.properties)
    metadata = covering
    if replacement.properties and not _have_statistics(current, removed, covering):
        metadata = with_properties(current.metadata, layout)
    if metadata.configuration != current.metadata.configuration:
        yield {"metaData": metadata.action}
    for file in removed:
        yield {"remove": remove_action(file, time=now)}
    schema = Columns.of(current.metadata).reading.schema
    yield from added_actions(replacement, replace(current, metadata=covering), schema, now, data_change=False)


def _have_statistics(current: State, removed: Sequence[LiveFile], covering: Metadata) -> bool:
    """Tell whether all files that stay have statistics of the columns whose statistics readers will use.

    deltalake's reader for pyarrow skips a file whose bound is missing, and so loses its rows.
    """
    removed_keys = {file.key for file in removed}
    wanted = indexed(covering) - indexed(current.metadata)
    for source in current.adds:
        names = ("path", "vector", "stats")
        for path, vector, stats in zip(*(source.rows[name].to_pylist() for name in names), strict=True):
            if (path, vector) not in removed_keys and not has_bounds(stats, wanted):
                return False
    return True


def _info(replacement: DeltaReplacement, current: State, now: int) -> Action:
    info = commit_info(
        current,
        now,
        operation="OPTIMIZE",
        operationParameters={
            "predicate": "[]",
            "zOrderBy": json.dumps(replacement.layout.columns),
            "clusterBy": "[]",
            "auto": False,
            LAYOUT_PROPERTY: replacement.layout.to_json(),
            RUN_TAG: replacement.run,
        },
        isolationLevel="SnapshotIsolation",
        isBlindAppend=False,
        operationMetrics=_metrics(replacement),
    )
    if is_true(current.metadata.configuration, "delta.enableRowTracking"):
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    return info


def _metrics(replacement: DeltaReplacement) -> dict[str, str]:
    removed, added = replacement.removed, replacement.added
    numbers = {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(file.size for file in removed),
        "numAddedFiles": len(added),
        "numAddedBytes": sum(file.size for file in added),
        "numDeletionVectorsRemoved": sum(file.vector is not None for file in removed),
    }
    if replacement.vectors:
        numbers["numDeletionVectorsAdded"] = len(replacement.vectors)
        numbers["numCarriedDeletes"] = sum(vector.rows for vector in replacement.vectors.values())
    return {name: str(number) for name, number in numbers.items()}
