"""What a rewrite committed, in numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from zonal.plan.rewrite import Property, Written


@dataclass(frozen=True)
class RewrittenFiles:
    """What a rewrite took from the table and gave to it, and what was expected of that."""

    rows: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    added_files: int = 0
    added_bytes: int = 0
    predicted_files: int = 0
    """Number of new files expected from a sample, before they were written."""
    predicted_bytes: int = 0
    """Size of the new files expected from a sample."""
    file_size: int = 0
    """Size of a file that new ones are made for."""
    file_size_reason: str = ""

    @classmethod
    def of(cls, written: Sequence[Written], *, removed_files: int = 0, removed_bytes: int = 0) -> "RewrittenFiles":
        """Count new files and their rows."""
        rows, size = sum(file.rows for file in written), sum(file.size for file in written)
        return cls(rows, removed_files, removed_bytes, len(written), size)

    def __add__(self, other: "RewrittenFiles") -> "RewrittenFiles":
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in _COUNTED})


_COUNTED = (
    "rows", "removed_files", "removed_bytes", "added_files", "added_bytes", "predicted_files", "predicted_bytes",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """What was committed: by one commit, or by several."""

    versions: tuple[int, ...] = ()
    change: RewrittenFiles = field(default_factory=RewrittenFiles)
    conflicts: int = 0
    """Attempts that another writer's commit invalidated, wholly or in part."""
    carried_deletes: int = 0
    """Rows that other writers deleted from replaced files meanwhile, and that are deleted in the new files."""
    properties: tuple[Property, ...] = ()
    """Table properties that were set."""

    def __add__(self, other: "Done") -> "Done":
        return Done(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))
