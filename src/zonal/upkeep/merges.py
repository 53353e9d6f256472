"""Merges of a table's files: which would be made, what they cost and save, and why others would not."""

from dataclasses import dataclass, field
from typing import Literal

from zonal.values.arrays import Int64Array
from zonal.values.sizes import size_text

Reason = Literal["first", "arrived", "runs", "deletes", "layout", "full"]
REASONS: dict[Reason, str] = {
    "first": "most bytes are not clustered yet",
    "arrived": "rows that arrived since",
    "runs": "runs that overlap",
    "deletes": "files heavy with deletes",
    "layout": "files of another layout",
    "full": "all chosen files, as requested",
}


@dataclass(frozen=True)
class MergeTerms:
    """When a merge is worth its cost."""

    scans: float = 20.0
    """A merge must save as many bytes as it rewrites within so many scans of the table, where queries are known."""
    amplification: float = 3.0
    """The most bytes to rewrite per byte that arrived, the first clustering included."""


@dataclass(frozen=True, eq=False)
class Merge:
    """Files of one partition that are, or aren't, to be clustered together."""

    files: Int64Array
    """Positions in the snapshot."""
    partition: int
    reason: Reason
    bytes: int
    saving: float | None = None
    """Bytes that a scan is predicted to read less; None where that isn't predicted."""
    why_not: str = ""
    """Why it isn't made; empty where it is."""
    delays: tuple[int, ...] = ()
    """By how many bits each column waits in the key, since the files cover little of it; empty for none."""

    @property
    def chosen(self) -> bool:
        """Whether the merge is to be made."""
        return not self.why_not

    @property
    def text(self) -> str:
        """Say what it merges and why, or why not."""
        count = len(self.files)
        what = f"{count:,} {'file' if count == 1 else 'files'}, {size_text(self.bytes)}: {REASONS[self.reason]}"
        if self.saving is not None and self.bytes:
            what += f"; a scan would read {size_text(max(round(self.saving), 0))} less"
        return f"{what}; {self.why_not}" if self.why_not else what


@dataclass(frozen=True, eq=False)
class MergeChoice:
    """What a run would do now: the merges to make, and those that aren't worth it."""

    chosen: tuple[Merge, ...] = ()
    left: tuple[Merge, ...] = field(default=())

    @property
    def why_nothing(self) -> str:
        """Say why nothing is done; empty where something is, or where nothing needs to be."""
        if self.chosen or not self.left:
            return ""
        return " ".join(f"{merge.text[:1].upper()}{merge.text[1:]}." for merge in self.left[:3])
