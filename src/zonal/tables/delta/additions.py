"""Describe the new files of a commit to a Delta log: their `add` actions, row ids, and what `commitInfo` always has."""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa

from zonal.errors import ConflictError, TableError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Property, Vector, Written
from zonal.tables.delta.actions import add_action, stats_json
from zonal.tables.delta.adds import LAYOUT_TAG, RUN_TAG
from zonal.tables.delta.commit import Action
from zonal.tables.delta.indexed import indexed
from zonal.tables.delta.log import Metadata, State
from zonal.tables.delta.scan import is_true, tracks_rows
from zonal.tables.delta.vectors import descriptor_of
from zonal.tables.protocol import LAYOUT_PROPERTY

_ROW_IDS = "delta.rowTracking"


@dataclass(frozen=True, eq=False, kw_only=True)
class Additions:
    """New files of a table, all in one layout."""

    root: str
    base: State
    """The version that was read."""
    added: Sequence[Written]
    values: Mapping[int, Mapping[str, str | None]]
    """Partition values by partition number."""
    layout: Layout
    run: str
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    """Deletion vectors that new files begin with, by path."""

    def same_table(self, current: State) -> None:
        """Raise a `ConflictError` where another table was made in the place of the one that was read."""
        same_table(self.root, self.base, current)

    def recorded(self, current: State) -> Layout | None:
        """Return the layout to record: that of the new files, unless another run has recorded one since."""
        now, before = (state.metadata.configuration.get(LAYOUT_PROPERTY) for state in (current, self.base))
        return self.layout if now == before else None


def same_table(root: str, base: State, current: State) -> None:
    """Raise a `ConflictError` where another table was made in the place of the one that was read."""
    if current.version < base.version or base.mark.replaced or _id(current) != _id(base):
        raise ConflictError(f"{quoted(root, limit=300)} was replaced by another table meanwhile.")


def _id(state: State) -> object:
    return state.metadata.action.get("id")


def parsed_schema(metadata: Metadata) -> object:
    """Return the schema in a form that compares: texts of the same schema may differ."""
    try:
        schema = json.loads(metadata.schema)
        for member in schema["fields"]:
            # Every append to a table with an identity column moves its mark.
            (member.get("metadata") or {}).pop("delta.identity.highWaterMark", None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return metadata.schema
    return schema


def added_actions(
    new: Additions, current: State, schema: pa.Schema, now: int, *, data_change: bool
) -> Iterator[Action]:
    """Yield an `add` for each new file, after the row ids that they take; `schema` is that of the files."""
    chosen = indexed(current.metadata, new.layout.columns)
    provider = {"clusteringProvider": "zonal"} if "clustering" in current.protocol.writer_features else {}
    adds = [
        add_action(
            file,
            root=new.root,
            values=new.values[file.partition],
            stats=stats_json(file, schema, chosen, tight=file.path not in new.vectors),
            tags={LAYOUT_TAG: new.layout.id, RUN_TAG: new.run},
            time=now,
            data_change=data_change,
        )
        | provider
        | ({"deletionVector": descriptor_of(new.vectors[file.path], new.root)} if file.path in new.vectors else {})
        for file in new.added
    ]
    if tracks_rows(current.protocol, current.metadata.configuration):
        yield _assign_row_ids(adds, new.added, current)
    yield from ({"add": add} for add in adds)


def _assign_row_ids(adds: Sequence[Action], files: Sequence[Written], current: State) -> Action:
    """Give new files row ids that were never used before, and return the new high-water mark ("Row Tracking")."""
    mark = -1
    if stored := current.domains.get(_ROW_IDS):
        try:
            mark = int(json.loads(stored)["rowIdHighWaterMark"])
        except (ValueError, KeyError, TypeError):
            raise TableError(f"The table's domain metadata {_ROW_IDS} can't be read: {quoted(stored)}") from None
    for add, file in zip(adds, files, strict=True):
        add |= {"baseRowId": mark + 1, "defaultRowCommitVersion": current.version + 1}
        mark += file.rows
    configuration = json.dumps({"rowIdHighWaterMark": mark})
    return {"domainMetadata": {"domain": _ROW_IDS, "configuration": configuration, "removed": False}}


def with_properties(metadata: Metadata, layout: Layout | None, properties: Sequence[Property] = ()) -> Metadata:
    """Return the metadata with the layout, where one is to be recorded, and the other properties that a commit sets."""
    recorded = {} if layout is None else {LAYOUT_PROPERTY: layout.to_json()}
    changes = recorded | {each.name: each.value for each in properties}
    configuration = {**metadata.configuration, **changes}
    kept = {name: value for name, value in metadata.action.items() if value is not None}
    action = {"format": {"provider": "parquet", "options": {}}, **kept, "configuration": configuration}
    return replace(metadata, configuration=configuration, action=action)


def commit_info(current: State, now: int, **told: Any) -> Action:  # noqa: ANN401 - whatever JSON has
    """Return the `commitInfo` of the version after `current`, after the timestamp that some tables ask for."""
    info: Action = {}
    if is_true(current.metadata.configuration, "delta.enableInCommitTimestamps"):
        info["inCommitTimestamp"] = max(now, _in_commit_timestamp(current) + 1)
    common = {"readVersion": current.version, "engineInfo": engine(), "txnId": str(uuid.uuid4())}
    return info | {"timestamp": now} | told | common


def engine() -> str:
    """Return zonal's name and version for a table's history."""
    try:
        return f"zonal/{version('zonal')}"
    except PackageNotFoundError:
        return "zonal"


def _in_commit_timestamp(state: State) -> int:
    timestamp = state.infos.get(state.version, {}).get("inCommitTimestamp")
    if not isinstance(timestamp, int):
        raise TableError(
            f"The table has in-commit timestamps, but the commit of version {state.version} has none, or isn't there "
            "any more. Write to the table with Delta once, and run zonal again."
        )
    return timestamp
