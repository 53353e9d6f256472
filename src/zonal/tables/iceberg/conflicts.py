"""Detect conflicts: what other writers did between the snapshot that a rewrite read and the head of its branch.

Checked on every attempt to commit: concurrent appends survive, and equality deletes still apply, since new files keep
the data sequence number of the snapshot that was read; whatever changed a rewritten file is a conflict.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq
from pyiceberg.exceptions import ResolveError
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema, index_by_id, promote
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot as PyIcebergSnapshot
from pyiceberg.types import IcebergType, PrimitiveType

from zonal.errors import ConflictError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Rewrite
from zonal.tables.iceberg.deletes import Delete, DeleteIndex, may_name
from zonal.tables.iceberg.manifests import (
    Contents,
    KnownEntries,
    ManifestEntry,
    data_entries,
    delete_entries,
    read_contents,
)
from zonal.tables.iceberg.scan import global_specs

TAKES_POSITIONS = 2
"""The format version whose new deletes are position delete files; before there are none, and later ones are vectors."""
LARGEST_OPENED = 64 * 1024**2
"""Bytes of a position delete file that is opened to see which data files it is about."""


@dataclass(frozen=True, eq=False)
class IcebergReplacement:
    """What a commit replaces in the head of a branch."""

    base: PyIcebergSnapshot
    head: PyIcebergSnapshot
    contents: Sequence[Contents]
    """The manifests of the head."""
    data: Sequence[ManifestEntry]
    deletes: Sequence[ManifestEntry]
    """Deletion vectors and delete files that apply to rewritten files only."""

    @property
    def gone(self) -> set[int]:
        """Return the ids (`id()`) of all entries that are removed; vectors in one file share its path."""
        return {id(entry) for entry in (*self.data, *self.deletes)}


def replaced(
    name: str,
    metadata: TableMetadata,
    io: FileIO,
    *,
    branch: str,
    rewrite: Rewrite,
    schema: Schema,
    known: KnownEntries,
    carried: DeleteIndex | None = None,
) -> IcebergReplacement:
    """Find what a rewrite replaces in the newest version, or raise a `ConflictError`; `known` as in `read_contents`.

    `schema` is the one that the rewritten rows were read with. `carried` has the deletes of the version whose position
    deletes the rewrite carries over: of the replaced files, there must be those and no others.
    """
    if carried is not None and metadata.format_version != TAKES_POSITIONS:
        raise ConflictError(f"{quoted(name)} has format version {metadata.format_version} now.")
    base, head = _base_and_head(name, metadata, branch, rewrite)
    _check_schema(name, schema, metadata.schema())
    _check_layout(name, rewrite.layout, schema, metadata.schema())
    contents = read_contents(io, head.manifest_list, known)
    sequence = base.sequence_number or 0
    data, deletes = data_entries(contents), delete_entries(contents)
    removed = _live(name, data, rewrite, sequence)
    newer = [entry for entry in deletes if entry.sequence > sequence]
    seen = set() if carried is None else set(carried.deletes)
    _check_deletes(name, io, removed, [entry for entry in newer if entry.delete not in seen])
    if carried is not None:
        _check_carried(name, removed, {entry.delete for entry in deletes}, carried)
    gone = {id(entry) for entry in removed}
    left = [entry for entry in data if id(entry) not in gone]
    # Of newer deletes, only positions are carried over; equality deletes apply to the new files.
    spent = [
        entry
        for entry in deletes
        if entry.sequence <= sequence or (carried is not None and entry.delete.kind != "equality")
    ]
    return IcebergReplacement(
        base, head, contents, removed, _obsolete(spent, removed, left, global_specs(metadata.specs()))
    )


def _base_and_head(
    name: str, metadata: TableMetadata, branch: str, rewrite: Rewrite
) -> tuple[PyIcebergSnapshot, PyIcebergSnapshot]:
    base = metadata.snapshot_by_id(rewrite.base.version) if rewrite.base.version is not None else None
    if base is None:
        raise ConflictError(f"The snapshot {rewrite.base.version} of {quoted(name)}, which was read, has been expired.")
    ref = metadata.refs.get(branch)
    head = metadata.snapshot_by_id(ref.snapshot_id) if ref is not None else None
    if head is None or ref is None or ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise ConflictError(f"The branch {quoted(branch)} of {quoted(name)} is gone.")
    if not any(snapshot.snapshot_id == base.snapshot_id for snapshot in ancestors(head, metadata)):
        raise ConflictError(
            f"The branch {quoted(branch)} of {quoted(name)} was rolled back or replaced: "
            f"the snapshot {base.snapshot_id}, which was read, is not among its ancestors."
        )
    return base, head


def ancestors(head: PyIcebergSnapshot | None, metadata: TableMetadata) -> Iterator[PyIcebergSnapshot]:
    """Yield a snapshot and those before it, newest first, as far as they haven't expired."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    snapshot = head
    while snapshot is not None:
        yield snapshot
        by_id.pop(snapshot.snapshot_id, None)  # damaged metadata might go in circles
        snapshot = by_id.get(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id is not None else None


# --- schema --------------------------------------------------------------------------------------------------------


def _check_schema(name: str, before: Schema, after: Schema) -> None:
    """Refuse a change that the new files can't take: ids stand for columns, and a type may only be widened."""
    old, new = index_by_id(before), index_by_id(after)
    for number in old.keys() & new.keys():
        if not _still_reads(old[number].field_type, new[number].field_type):
            raise ConflictError(
                f"The type of column {quoted(after.find_column_name(number) or '')} of {quoted(name)} was changed from "
                f"{old[number].field_type} to {new[number].field_type} during the rewrite."
            )


def _check_layout(name: str, layout: Layout, before: Schema, after: Schema) -> None:
    """Refuse to record a layout whose columns have other names now, or are gone; ids tell."""
    for column in (*layout.columns, *layout.bloom_columns):
        now = after.find_column_name(before.find_field(column).field_id)
        if now != column:
            what = "dropped" if now is None else f"renamed to {quoted(now)}"
            raise ConflictError(f"The column {quoted(column)} of {quoted(name)} was {what} during the rewrite.")


def _still_reads(before: IcebergType, after: IcebergType) -> bool:
    if not isinstance(before, PrimitiveType) or not isinstance(after, PrimitiveType):
        return type(before) is type(after)
    try:
        return before == after or promote(before, after) is not None
    except ResolveError:
        return False


# --- files ---------------------------------------------------------------------------------------------------------


def _live(name: str, data: Sequence[ManifestEntry], rewrite: Rewrite, sequence: int) -> list[ManifestEntry]:
    """Find the files to remove: all of them must be live, as often as they were, and not added again since."""
    paths = rewrite.base.files.paths.take(rewrite.removed).to_pylist()
    wanted = Counter(paths)
    entries = [entry for entry in data if entry.path in wanted]
    live = Counter(entry.path for entry in entries if entry.sequence <= sequence)
    every = Counter(entry.path for entry in entries)
    changed = {path for path, count in wanted.items() if live[path] != count or every[path] != count}
    if changed:
        raise ConflictError(
            f"{len(changed)} of {len(wanted)} files that were rewritten were removed from {quoted(name)} meanwhile, "
            f"such as {quoted(min(changed), limit=300)}.",
            changed,
        )
    return entries


def _check_deletes(name: str, io: FileIO, removed: Sequence[ManifestEntry], deletes: Sequence[ManifestEntry]) -> None:
    """Refuse position deletes and deletion vectors of rewritten files, by path, or by partition and content."""
    by_key: dict[tuple[object, ...], list[str]] = {}
    for entry in removed:
        by_key.setdefault(entry.key, []).append(entry.path)
    paths = {entry.path for entry in removed}
    changed: set[str] = set()
    for entry in deletes:
        delete = entry.delete
        if delete.kind == "equality":
            continue
        if delete.target is not None:
            changed |= {delete.target} & paths
        else:
            changed |= _named(io, entry, [path for path in by_key.get(delete.key, ()) if may_name(delete, path)])
    if changed:
        raise ConflictError(
            f"Rows of {len(changed)} files that were rewritten were deleted from {quoted(name)} meanwhile, "
            f"such as of {quoted(min(changed), limit=300)}.",
            changed,
        )


def _check_carried(name: str, removed: Sequence[ManifestEntry], present: set[Delete], carried: DeleteIndex) -> None:
    """Refuse to carry position deletes over that have gone since: the rows may be back."""
    changed = {
        entry.path
        for entry in removed
        if any(carried.deletes[at] not in present for at in carried.positions(entry.path, entry.sequence, entry.key))
    }
    if changed:
        raise ConflictError(
            f"Deletes of {len(changed)} files that were rewritten were changed in {quoted(name)} meanwhile, such as of "
            f"{quoted(min(changed), limit=300)}.",
            changed,
        )


def _named(io: FileIO, entry: ManifestEntry, candidates: Sequence[str]) -> set[str]:
    """Return the candidates that a position delete file names; all of them where it can't be opened cheaply."""
    if not candidates or entry.size > LARGEST_OPENED:
        return set(candidates)
    try:
        with io.new_input(entry.path).open() as stream:
            column = pq.read_table(stream, columns=["file_path"]).column(0)
        return set(column.unique().to_pylist()) & set(candidates)
    except Exception:  # not a Parquet file, or damaged: a conflict is always safe
        return set(candidates)


def _obsolete(
    entries: Sequence[ManifestEntry],
    removed: Sequence[ManifestEntry],
    left: Sequence[ManifestEntry],
    everywhere: set[int],
) -> list[ManifestEntry]:
    """List the deletes that apply to removed files and to none that is left."""
    if not entries:
        return []
    deletes: list[Delete] = [entry.delete for entry in entries]
    index = DeleteIndex(deletes, everywhere)
    used = _applied(index, removed)
    return [entries[number] for number in sorted(used - _applied(index, left))] if used else []


def _applied(index: DeleteIndex, files: Sequence[ManifestEntry]) -> set[int]:
    keys = {id(entry): entry.key for entry in files}
    oldest: dict[tuple[object, ...], int] = {}
    applied: set[int] = set()
    for entry in files:
        key = keys[id(entry)]
        applied.update(index.positions(entry.path, entry.sequence, key))
        oldest[key] = min(oldest.get(key, entry.sequence), entry.sequence)
    # The lower a file's sequence number, the more equality deletes apply: the oldest file of a partition has all.
    for key, sequence in oldest.items():
        applied.update(index.equality(sequence, key))
    return applied


def partitions_of(rewrite: Rewrite, removed: Sequence[ManifestEntry]) -> Mapping[int, ManifestEntry]:
    """Return a removed file of each partition that the rewrite numbers; new files take over its spec and values."""
    by_path = {entry.path: entry for entry in removed}
    paths = rewrite.base.files.paths.take(rewrite.removed).to_pylist()
    numbers = rewrite.base.files.partition[rewrite.removed].tolist()
    return {number: by_path[path] for number, path in zip(numbers, paths, strict=True)}
