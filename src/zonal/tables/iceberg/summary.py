"""The summaries of new snapshots, by "Optional Snapshot Summary Fields" of the specification."""

from collections.abc import Mapping, Sequence

from pyiceberg.table.snapshots import Snapshot

from zonal.tables.iceberg.conflicts import IcebergReplacement
from zonal.tables.iceberg.field_ids import RECORDS, SIZE, Fields

RUN = "zonal.run"
"""Key of the run that wrote a snapshot's files."""

DELETE_BYTES = "zonal.added-delete-files-size"
"""Key of the part of `added-files-size` that isn't data."""

_TOTALS = (
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


def summary_of(
    added: Sequence[Fields], replacement: IcebergReplacement, deletes: Sequence[Fields] = ()
) -> dict[str, str]:
    """Count what a commit adds and removes, and the totals that follow from those of the head, where it has them.

    `deletes` are new files of positions.
    """
    kinds = [(entry.delete.kind, entry) for entry in replacement.deletes]
    new_deletes = {
        "added-files-size": sum(file[SIZE] for file in (*added, *deletes)),
        "added-delete-files": len(deletes),
        "added-position-delete-files": len(deletes),
        "added-position-deletes": sum(file[RECORDS] for file in deletes),
        DELETE_BYTES: sum(file[SIZE] for file in deletes),
    }
    counts = (
        added_counts(added)
        | new_deletes
        | {
            "deleted-data-files": len(replacement.data),
            "deleted-records": sum(entry.rows for entry in replacement.data),
            "removed-files-size": sum(entry.size for entry in (*replacement.data, *replacement.deletes)),
            "removed-delete-files": len(replacement.deletes),
            "removed-dvs": sum(kind == "vector" for kind, _ in kinds),
            "removed-position-delete-files": sum(kind == "position" for kind, _ in kinds),
            "removed-equality-delete-files": sum(kind == "equality" for kind, _ in kinds),
            "removed-position-deletes": sum(entry.rows for kind, entry in kinds if kind != "equality"),
            "removed-equality-deletes": sum(entry.rows for kind, entry in kinds if kind == "equality"),
            "changed-partition-count": len({entry.key for entry in replacement.data}),
        }
    )
    return {name: str(count) for name, count in counts.items() if count} | totals(counts, replacement.head)


def added_counts(added: Sequence[Fields]) -> dict[str, int]:
    """Count new data files, their rows and their bytes."""
    return {
        "added-data-files": len(added),
        "added-records": sum(file[RECORDS] for file in added),
        "added-files-size": sum(file[SIZE] for file in added),
    }


def totals(counts: Mapping[str, int], head: Snapshot | None) -> dict[str, str]:
    """Return the totals that follow from those of the head, as far as it has them; without a head, all are 0."""
    before = {} if head is None or head.summary is None else head.summary.additional_properties
    new = {}
    for total, added, removed in _TOTALS:
        text = "0" if head is None else before.get(total)
        if text is not None and text.isdecimal():
            value = int(text) + counts.get(added, 0) - counts.get(removed, 0)
            if value >= 0:  # a writer before us counted otherwise: say nothing rather than something wrong
                new[total] = str(value)
    return new
